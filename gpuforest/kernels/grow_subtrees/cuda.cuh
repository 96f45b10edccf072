// The shared memory of a block of the deep phase, and the items that cuts lie between: the rows of
// a node in the order of their codes.
#include "best_split/cuda.cuh"
#include "shared/goes_left/cuda.cuh"
#include "shared/hashing/cuda.cuh"
#include "generated/Codes.cuh"
#include "generated/Growing.cuh"
#include "generated/Layout.cuh"
#include "generated/Open.cuh"
#include "generated/Roots.cuh"
#include "generated/Slots.cuh"
#include "generated/Targets.cuh"

// A pointer into shared memory. If a pointer was itself kept in memory, the compiler does not know
// what it points into, and would use the slower loads and adds for any address.
template <class T>
struct Shared {
  T* to;

  __device__ __forceinline__ void operator=(T* address) { to = address; }
  __device__ __forceinline__ explicit operator bool() const { return to != nullptr; }
  __device__ __forceinline__ operator T*() const {
#ifndef CUDA_ON_CPU
    __builtin_assume(__isShared(to));
#endif
    return to;
  }
};

// Shared memory of a block, laid out by backends/deep_plan.py.
struct Block {
  Shared<TARGET> target;  // [rows, K]
  Shared<i64> scratch;    // [warps][NODE_SUMS][C]: sums, missing, so_far
  Shared<Open> open;      // [2][rows / 2 + 1] nodes of this level and of the next: their rows
                          // are order[low .. low + n - 1]
  Shared<u32> keys;       // [rows] code << 16 | position, sorted; or rows on their way to the right
  Shared<i32> weight;     // [rows]
  Shared<i32> row;        // [rows] row numbers, where codes stay in global memory
  Shared<u32> counts;     // [warps][B] rows of each code, to sort by; or nothing
  Shared<u16> order;      // [rows] positions of rows in the block, by node
  Shared<CODE> codes;     // [rows, stride], where they are here
  int stride;             // codes of a row and its padding
  Codes matrix;           // all codes

  __device__ __forceinline__ int code(int position, int f) const {
    return row ? matrix.at[row[position] * matrix.stride + f] : codes[position * stride + f];
  }
};

__device__ __forceinline__ Block block_of(unsigned char* bytes, const Layout& at,
                                          const Codes& matrix) {
  Block block;
  block.target = (TARGET*)(bytes + at.target);
  block.scratch = (i64*)(bytes + at.scratch);
  block.open = (Open*)(bytes + at.open);
  block.keys = (u32*)(bytes + at.keys);
  block.weight = (i32*)(bytes + at.weight);
  block.row = at.row ? (i32*)(bytes + at.row) : nullptr;
  block.counts = at.counts ? (u32*)(bytes + at.counts) : nullptr;
  block.order = (u16*)(bytes + at.order);
  block.codes = (CODE*)(bytes + at.codes);
  block.stride = at.stride;
  block.matrix = matrix;
  return block;
}

// Present rows of a node in the order of their codes.
struct SortedRows {
  static const bool BINS = false;
  const Block& block;
  const u32* keys;
  int K;

  struct Item {
    const TARGET* target;
    i64 w;
    __device__ SUM channel(int c) const {
#if LABELS
      return *target == c ? (SUM)w : 0;
#else
      return c == 0 ? w : w * target[c - 1];
#endif
    }
  };
  __device__ Item at(int i) const {
    int position = (u16)keys[i];
    return {block.target + position * K, block.weight[position]};
  }
  __device__ int code(int i) const { return keys[i] >> 16; }
  __device__ int rows(int i) const { return 1; }
  __device__ int after(int i, int n) const { return i + 1 < n ? code(i + 1) : -1; }
};

// Sorts the keys of the first `width` lanes, a power of two, by a bitonic network.
__device__ __forceinline__ u32 sort_lanes(u32 key, int width) {
  for (int size = 2; size <= width; size <<= 1)
    for (int d = size >> 1; d > 0; d >>= 1) {
      u32 other = __shfl_xor_sync(ALL_LANES, key, d);
      bool smaller = ((lane() & d) == 0) == ((lane() & size) == 0);
      key = smaller == (other < key) ? other : key;
    }
  return key;
}

// A warp sorts n keys in shared memory. Every step of this form of the bitonic network puts the
// smaller key first, so no keys are needed past the end.
__device__ __forceinline__ void sort_keys(u32* keys, int n) {
  for (int size = 2; size < 2 * n; size <<= 1)
    for (int d = size >> 1; d > 0; d >>= 1) {
      for (int i = lane(); i < n; i += 32) {
        // the first step of a merge pairs mirrored keys within `size`, the others keys d apart
        int other = d == size >> 1 ? i ^ (size - 1) : i ^ d;
        if (other > i && other < n && keys[other] < keys[i]) {
          u32 key = keys[i];
          keys[i] = keys[other];
          keys[other] = key;
        }
      }
      __syncwarp();
    }
}
