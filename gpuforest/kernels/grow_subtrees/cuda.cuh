// The shared memory of a block of the deep phase, and the items that cuts lie between: the rows of
// a node in the order of their codes.
#include "best_split/cuda.cuh"
#include "shared/goes_left.cuh"
#include "shared/hashing.cuh"
#include "shared/targets.cuh"
#include "generated/Categories.cuh"
#include "generated/Codes.cuh"
#include "generated/Combining.cuh"
#include "generated/Grown.cuh"
#include "generated/Layout.cuh"
#include "generated/Open.cuh"
#include "generated/Roots.cuh"
#include "generated/Frontier.cuh"

// A part of a block's shared memory, by its offset: a pointer takes twice as many registers.
template <class T>
struct Shared {
  u32 at;

  __device__ __forceinline__ explicit operator bool() const { return at != ~0u; }
  __device__ __forceinline__ operator T*() const {
    DYNAMIC_SHARED(parts);
    return (T*)(parts + at);
  }
};

// Shared memory of a block, laid out by backends/cuda/deep_plan.py.
struct Block {
  Shared<TARGET> target;  // [rows, K]
  Shared<i64> scratch;    // [warps][NODE_SUMS][C]: sums, missing, so_far, left
  Shared<Open> open;      // [2][most_open] nodes of many rows, of this level and of the next: their
                          // rows are order[low .. low + n - 1]
  Shared<Open> waiting;   // [rows / 2 + 1] nodes of few rows, at low / 2
  Shared<u16> roots;      // [rows / 2 + 1] those above which there are more rows: their low / 2
  Shared<u32> keys;       // [rows] code << 16 | position, sorted; or rows on their way to the right
  Shared<i32> weight;     // [rows]
  Shared<i32> row;        // [rows] row numbers, where codes stay in global memory
  Shared<u32> cells;      // [group][words][size] histograms of a node of many rows
  Shared<u32> counts;     // [warps][n_codes] rows of each code, to sort by, in the same memory; or nothing
  Shared<u16> order;      // [rows] positions of rows in the block, by node
  Shared<CODE> codes;     // [rows, stride], where they are here
  int stride;             // codes of a row and its padding
  int most_open, n_roots;
  Codes matrix;           // all codes

  __device__ __forceinline__ int code(int position, int f) const {
    return row ? matrix.at[row[position] * matrix.stride + f] : codes[position * stride + f];
  }
};

__device__ __forceinline__ Block block_of(const Layout& at, const Codes& matrix,
                                          i64 n_codes) {
  bool counts = at.n_cells >= (int)(blockDim.x >> 5) * n_codes;
  return {{(u32)at.target}, {(u32)at.scratch}, {(u32)at.open}, {(u32)at.waiting}, {(u32)at.roots},
          {(u32)at.keys}, {(u32)at.weight}, {at.row ? (u32)at.row : ~0u}, {(u32)at.cells},
          {counts ? (u32)at.cells : ~0u}, {(u32)at.order}, {(u32)at.codes}, at.stride,
          at.rows / (FEW_ROWS + 1) + 1, at.rows / 2 + 1, matrix};
}

// Bins of a histogram in shared memory: u32[words][size], a word for each class, or one for the
// weight and two for each moment, and one for the count of rows if they are counted. Bins that a
// lane takes together lie 32 apart, in different banks for all lanes.
struct Cells {
  static const bool BINS = true;
  u32* cells;
  int size, C;

  struct Item {
    const u32* cell;
    int size;
    __device__ SUM channel(int c) const {
#if LABELS
      return (SUM)cell[c * size];
#else
      if (c == 0) return cell[0];
      return (i64)((u64)cell[2 * c * size] << 32 | cell[(2 * c - 1) * size]);
#endif
    }
  };
  static __device__ __forceinline__ int place(int b) {
    return (b & ~127) | (b & 3) << 5 | (b >> 2 & 31);
  }
  __device__ Item at(int i) const { return {cells + place(i), size}; }
  __device__ int rows(int i) const { return cells[(LABELS ? C : 2 * C - 1) * size + place(i)]; }
  __device__ int code(int i) const { return i; }
  __device__ int after(int i, int n) const { return bin_after(*this, i, n); }
  // Adds a row.
  __device__ __forceinline__ void add(int code, const TARGET* target, i32 w, bool count) const {
    u32* cell = cells + place(code);
#if LABELS
    atomicAdd(cell + *target * size, (u32)w);
#else
    atomicAdd(cell, (u32)w);
    for (int c = 1; c < C; c++) {
      u32 more = add_low(cell + (2 * c - 1) * size, w * target[c - 1]);
      if (more) atomicAdd(cell + 2 * c * size, more);
    }
#endif
    if (count) atomicAdd(cell + (LABELS ? C : 2 * C - 1) * size, 1u);
  }
};

// Present rows of a node in the order of their codes.
struct SortedRows {
  static const bool BINS = false;
  const Block& block;
  const u32* keys;
  int K;

  struct Item {
    const TARGET* target;
    i64 w;
    __device__ SUM channel(int c) const { return added(target, (SUM)w, c); }
  };
  __device__ Item row(int position) const {
    return {block.target + position * K, block.weight[position]};
  }
  __device__ Item at(int i) const { return row((u16)keys[i]); }
  __device__ int code(int i) const { return keys[i] >> 16; }
  __device__ int rows(int i) const { return 1; }
  __device__ int after(int i, int n) const { return i + 1 < n ? code(i + 1) : -1; }
};

// Sorts the keys of each group of `width` lanes, a power of two, by a bitonic network.
__device__ __forceinline__ u32 sort_lanes(u32 key, int width) {
  int i = lane() & (width - 1);
  for (int size = 2; size <= width; size <<= 1)
    for (int d = size >> 1; d > 0; d >>= 1) {
      u32 other = __shfl_xor_sync(ALL_LANES, key, d);
      bool smaller = ((i & d) == 0) == ((i & size) == 0);
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
