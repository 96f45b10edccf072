// Histograms of nodes. A bin has two words of 32 bits in shared memory for each of its words.
#include "boosted_tree/cuda.cuh"

#define CELL (2 * WORDS)  // words of a bin
#define AT_ONCE 4  // features of which a thread reads codes before it adds any
#ifndef PAD  // benchmarks set another number
#define PAD FILL_PAD
#endif
#define LEAST_ROWS 1024  // that a block takes: fewer are not worth the histograms it adds up

// Lists those of n features from `first` on that have histograms, and where these begin; returns
// how many they are. The block calls.
__device__ __forceinline__ int list_known(const bool* known, i64 first, int n, int width, int2* own,
                                          u32* counts) {
  bool is_known = threadIdx.x < n && known[first + threadIdx.x];
  int all, at = block_rank(is_known, counts, all);
  if (is_known) own[at] = make_int2((int)first + threadIdx.x, threadIdx.x * width);
  return all;
}

// Adds a row's words to its bins of the N features from position j on; after the last comes 0.
template <int N>
__device__ __forceinline__ void add_features(const CODE* codes, const int2* own, int j, int n,
                                             const i64 (&value)[WORDS], u32* cells) {
  int at[N];
  u32 high[N * WORDS];
#pragma unroll
  for (int u = 0; u < N; u++) {
    int2 one = own[j + u < n ? j + u : j + u - n];
    at[u] = one.y + codes[one.x] * CELL;
  }
#pragma unroll
  for (int i = 0; i < N * WORDS; i++)
    high[i] = add_low(cells + at[i / WORDS] + 2 * (i % WORDS), value[i % WORDS]);
#pragma unroll
  for (int i = 0; i < N * WORDS; i++)
    atomicAdd(cells + at[i / WORDS] + 2 * (i % WORDS) + 1, high[i]);
}

// Adds the rows at the positions begin .. end - 1 of `order` to the histograms of n features.
__device__ __forceinline__ void add_rows(const Codes& codes, const i64* stats, const i32* order,
                                         i64 begin, i64 end, const int2* own, int n, u32* cells) {
  int first = lane() % n;  // neighbouring lanes begin with different features, and meet less
  for (i64 i = begin + threadIdx.x; i < end; i += blockDim.x) {
    i64 row = order[i], value[WORDS];
    const CODE* at = codes.at + row * codes.stride;
#pragma unroll
    for (int w = 0; w < WORDS; w++) value[w] = stats[row * WORDS + w];
    int j = first, last = first + n;
    for (; j + AT_ONCE <= last; j += AT_ONCE)
      add_features<AT_ONCE>(at, own, j, n, value, cells);
    for (; j < last; j++) add_features<1>(at, own, j < n ? j : j - n, n, value, cells);
  }
}

// A block's part of one node's histograms, of `size` features from `first` on, added to `hist`.
__device__ __forceinline__ void fill_part(const Codes& codes, const i64* stats, const i32* order,
                                          i64 begin, i64 end, const bool* known, i64 first,
                                          int size, int2* own, u32* counts, u32* cells, i64* hist) {
  int words = (int)codes.B * WORDS, width = 2 * words + PAD;
  int n = list_known(known, first, size, width, own, counts);
  if (!n) return;
  for (int i = threadIdx.x; i < size * width; i += blockDim.x) cells[i] = 0;
  __syncthreads();
  add_rows(codes, stats, order, begin, end, own, n, cells);
  __syncthreads();
  for (int i = threadIdx.x; i < size * words; i += blockDim.x)
    if (i64 sum = value_64(cells + 2 * i + i / words * PAD)) add_global(hist + i, sum);
  __syncthreads();
}
