// Histograms of nodes. A bin has two words of 32 bits in shared memory for each of its words.
#include "boosted_tree/cuda.cuh"
#include "shared/fill.cuh"

#define CELL (2 * WORDS)  // words of a bin
#ifndef PAD  // benchmarks set another number
#define PAD FILL_PAD
#endif
#define LEAST_ROWS 1024  // that a block takes: fewer are not worth the histograms it adds up

// The row that a thread adds.
struct Rows {
  static const int COUNT = 1;
  i32 row[1];
  i64 value[WORDS];

  template <int N>
  __device__ __forceinline__ void add(u32* cells, const int (&at)[N]) const {
    add_sums<N * WORDS>(cells, [&](int i) { return at[i / WORDS] + 2 * (i % WORDS); },
                        [&](int i) { return value[i % WORDS]; });
  }
};

// A block's part of one node's histograms, of `size` features from `first` on, added to `hist`.
__device__ __forceinline__ void fill_part(const Codes& codes, const i64* stats, const i32* order,
                                          i64 begin, i64 end, const bool* known, i64 first,
                                          int size, int2* own, u32* cells, i64* hist) {
  int words = (int)codes.B * WORDS, width = 2 * words + PAD;
  bool is_known = threadIdx.x < size && known[first + threadIdx.x];
  int n = list_features(is_known ? (int)(first + threadIdx.x) : -1, width, own);
  if (!n) return;
  for (int i = threadIdx.x; i < size * width; i += blockDim.x) cells[i] = 0;
  __syncthreads();
  for (i64 i = begin + threadIdx.x; i < end; i += blockDim.x) {
    Rows rows = {{order[i]}};
#pragma unroll
    for (int w = 0; w < WORDS; w++) rows.value[w] = stats[(i64)rows.row[0] * WORDS + w];
    add_rows(codes, rows, own, n, CELL, cells);
  }
  __syncthreads();
  for (int i = threadIdx.x; i < size * words; i += blockDim.x)
    if (i64 sum = value_64(cells + 2 * i + i / words * PAD)) add_global(hist + i, sum);
}
