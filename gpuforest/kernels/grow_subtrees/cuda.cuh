// What a block of the deep phase holds in shared memory, and the items that its cuts lie
// between: the rows of a node in the order of their codes.
#include "best_split/cuda.cuh"
#include "hashing/cuda.cuh"

#define OPEN_BYTES 8

// An open node: its rows are order[low .. low + n - 1].
struct Open {
  u16 low, n;
  u16 place;  // of its node, and where its descendants begin, both in the sparse block
  u16 below;
};

// A pointer into shared memory. Where it was kept in memory itself, the compiler does not see
// what it points into, and would load and add as to any address.
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

// Shared memory of a block for up to `most` rows; backends/cuda.py counts the same bytes.
struct Block {
  Shared<TARGET> target;  // [most, K]
  Shared<i64> scratch;    // [warps]: sums, missing, so_far [C] each
  Shared<Open> open;      // [2][most / 2 + 1] nodes of this level and of the next
  Shared<u32> keys;       // [most] code << 16 | place, sorted; or rows on their way to the right
  Shared<i32> weight;     // [most]
  Shared<i32> row;        // [most] row numbers, where codes stay in global memory
  Shared<u32> counts;     // [warps][B] rows of each code, to sort by; or nothing
  Shared<u16> order;      // [most] places of rows, by node
  Shared<CODE> codes;     // [most, stride], where they are here
  int stride;             // codes of a row and its padding
  const CODE* matrix;     // else [N, matrix_stride], all of them
  int matrix_stride;

  __device__ __forceinline__ int code(int place, int f) const {
    return row ? matrix[(i64)row[place] * matrix_stride + f] : codes[place * stride + f];
  }
};

__device__ __forceinline__ i64 rounded(i64 bytes) { return (bytes + 15) & ~15ll; }

__device__ __forceinline__ Block block_of(unsigned char* bytes, i64 most, i64 K, i64 C, i64 B,
                                          i64 stride, bool has_counts) {
  i64 warps = blockDim.x >> 5;
  Block block;
  block.target = (TARGET*)bytes;
  bytes += rounded(most * K * sizeof(TARGET));
  block.scratch = (i64*)bytes;
  bytes += rounded(warps * 3 * C * 8);
  block.open = (Open*)bytes;
  bytes += rounded(2 * (most / 2 + 1) * OPEN_BYTES);
  block.keys = (u32*)bytes;
  bytes += rounded(most * 4);
  block.weight = (i32*)bytes;
  bytes += rounded(most * 4);
  block.row = stride ? nullptr : (i32*)bytes;
  bytes += stride ? 0 : rounded(most * 4);
  block.counts = has_counts ? (u32*)bytes : nullptr;
  bytes += has_counts ? rounded(warps * B * 4) : 0;
  block.order = (u16*)bytes;
  bytes += rounded(most * 2);
  block.codes = (CODE*)bytes;
  block.stride = (int)stride;
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
    int place = keys[i] & 0xffff;
    return {block.target + place * K, block.weight[place]};
  }
  __device__ int code(int i) const { return keys[i] >> 16; }
  __device__ int rows(int i) const { return 1; }
  __device__ int after(int i, int n) const { return i + 1 < n ? code(i + 1) : -1; }
};

// Sorts the keys of the first `width` lanes, a power of two: a bitonic network.
__device__ __forceinline__ u32 sort_lanes(u32 key, int width) {
  for (int size = 2; size <= width; size <<= 1)
    for (int d = size >> 1; d > 0; d >>= 1) {
      u32 other = __shfl_xor_sync(ALL_LANES, key, d);
      bool smaller = ((lane() & d) == 0) == ((lane() & size) == 0);
      key = smaller == (other < key) ? other : key;
    }
  return key;
}

// Sorts n keys in shared memory by a warp. Every step of this form of the bitonic network
// puts the smaller key first, so that keys past the end need not exist.
__device__ __forceinline__ void sort_keys(u32* keys, int n) {
  for (int size = 2; size < 2 * n; size <<= 1)
    for (int d = size >> 1; d > 0; d >>= 1) {
      for (int i = lane(); i < n; i += 32) {
        // the first step of a merge mirrors within `size`, the others go `d` on
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
