// Filling histograms in shared memory. `Rows` are those that a thread takes at once, COUNT of them
// with the numbers `row`. rows.add(cells, at, more...) adds them to the bins that begin at the
// words `at`: those of the first row in all features, then of the second.
#include "shared/cuda.cuh"
#include "generated/Codes.cuh"

// So many codes are read before any is added, because a read of memory takes far longer than an
// addition.
#define FEATURES 4

static_assert(FILL_FEATURES <= 64 && GROUP_FEATURES <= 64, "more features than two warps list");

// Lists the features of the first 64 threads, -1: none: their numbers, and the words where their
// histograms of `width` words begin. The block calls it, and gets how many they are.
__device__ __forceinline__ int list_features(int f, int width, int2* own) {
  __shared__ u32 used[2];  // from which the number is counted again, to save registers
  u32 mine = __ballot_sync(ALL_LANES, f >= 0);
  __syncthreads();
  if (threadIdx.x < 64 && lane() == 0) used[warp()] = mine;
  __syncthreads();
  int at = __popc(mine & lanes_below()) + (warp() ? __popc(used[0]) : 0);
  if (f >= 0) own[at] = make_int2(f, threadIdx.x * width);
  return __popc(used[0]) + __popc(used[1]);
}

// Adds value(i) to the sum of 64 bits at the word at(i) of shared memory, for each i below N.
template <int N, class At, class Value>
__device__ __forceinline__ void add_sums(u32* cells, At at, Value value) {
  u32 high[N];
#pragma unroll
  for (int i = 0; i < N; i++) high[i] = add_low(cells + at(i), value(i));
#pragma unroll
  for (int i = 0; i < N; i++) atomicAdd(cells + at(i) + 1, high[i]);
}

// Adds rows to the histograms, whose bins have `words`, of N of the n listed features: those from
// position j on; after position n - 1 comes 0.
template <int N, class Rows, class... More>
__device__ __forceinline__ void add_features(const Codes& codes, Rows& rows, const int2* own, int j,
                                             int n, int words, u32* cells, const More&... more) {
  int at[Rows::COUNT * N], stride = (int)codes.stride;
#pragma unroll
  for (int u = 0; u < N; u++) {
    int which = j + u < n ? j + u : j + u - n;
    int2 one = own[which];
    // 1. each row's bin
#pragma unroll
    for (int q = 0; q < Rows::COUNT; q++) {
      CODE code = codes.at[(i64)rows.row[q] * stride + one.x];
      at[q * N + u] = one.y + code * words;
#if KEPT
      rows.codes[q] |= (u64)code << 8 * which;
#endif
    }
  }
  rows.template add<N>(cells, at, more...);
}

// Adds rows to the histograms of all n listed features.
template <class Rows, class... More>
__device__ __forceinline__ void add_rows(const Codes& codes, Rows& rows, const int2* own, int n,
                                         int words, u32* cells, const More&... more) {
  // neighbouring lanes begin with different features, so they meet in fewer cells
  int j = lane() % n, end = j + n;
  for (; j + FEATURES <= end; j += FEATURES)
    add_features<FEATURES>(codes, rows, own, j, n, words, cells, more...);
  if (j + 2 <= end) {
    add_features<2>(codes, rows, own, j, n, words, cells, more...);
    j += 2;
  }
  for (; j < end; j++) add_features<1>(codes, rows, own, j, n, words, cells, more...);
}
