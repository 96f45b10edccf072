// Edges on the device. The specification is numpy.py beside this file.
// VALUE: float or double. A block adds up whole numbers only, so the order of its threads does not
// change a sum.
#include "encode/cuda.cuh"

#define NO_CAP (1.0 / 0.0)
#define NOT_A_NUMBER (0.0 / 0.0)

// The sum over the block's threads up to this one, and over all of them in `total`. All threads
// call it; `parts` is shared, with an element for each warp.
__device__ __forceinline__ double block_sum(double x, double* parts, double& total) {
  double here = sum_to_here(x), before = 0;
  if (lane() == 31) parts[warp()] = here;
  __syncthreads();
  total = 0;
  for (int w = 0; w < (int)blockDim.x >> 5; w++) {
    before += w < warp() ? parts[w] : 0;
    total += parts[w];
  }
  __syncthreads();
  return before + here;
}

__device__ __forceinline__ double block_max(double x, double* parts) {
  for (int d = 16; d > 0; d >>= 1) x = fmax(x, __shfl_xor_sync(ALL_LANES, x, d));
  if (lane() == 0) parts[warp()] = x;
  __syncthreads();
  for (int w = 0; w < (int)blockDim.x >> 5; w++) x = fmax(x, parts[w]);
  __syncthreads();
  return x;
}

// Caps the measures of G gaps in place, and returns their sum. As everywhere below, a thread
// takes every blockDim.x-th gap, and so reads what it has written itself. It is not inlined,
// because three copies would not leave registers for 1,024 threads.
__device__ __noinline__ double capped(double* measure, int G, int n, double* parts) {
  double units = (double)(1ll << (SUM_BITS - 64 + __clzll(G))), cap = NO_CAP, left = G;
  while (true) {
    double top = 0, count = 0, kept, sum = 0, total;
    for (int i = threadIdx.x; i < G; i += blockDim.x)
      if (measure[i] <= cap) {
        top = fmax(top, measure[i]);
        count++;
      }
    block_sum(count, parts, kept);
    if (cap < NO_CAP && kept == left) break;
    n -= (int)(left - kept);
    left = kept;
    top = block_max(top, parts);
    for (int i = threadIdx.x; i < G; i += blockDim.x)
      if (measure[i] <= cap) sum += ceil(measure[i] * (units / top));
    block_sum(sum, parts, total);
    cap = fmin(cap, top * (total / units / n));
  }
  double sum = 0, total;
  for (int i = threadIdx.x; i < G; i += blockDim.x) {
    measure[i] = ceil(fmin(measure[i], cap) * (units / cap));
    sum += measure[i];
  }
  block_sum(sum, parts, total);
  return total;
}

// A column's sorted values, and the index of each distinct one's first occurrence.
struct Gaps {
  const VALUE* sorted;
  const i32* first;

  __device__ double low(int i) const { return widened(sorted[first[i]]); }
  __device__ double high(int i) const { return low(i + 1); }
  __device__ double width(int i) const { return high(i) / 2 - low(i) / 2; }
  __device__ double rank(int i) const { return first[i + 2] - first[i]; }
  __device__ double middle(int i) const {
    double between = low(i) / 2 + high(i) / 2;
    return between >= low(i) && between < high(i) ? between : low(i);
  }
};

// A block takes a column of columns [F, n], each sorted, NaN last. Scratch: first i32[F, n + 1],
// rank and spread f64[F, n]. It fills n_edges[f] of the edges f64[F, most_edges].
extern "C" __global__ void __launch_bounds__(EDGE_THREADS)
edges(const VALUE* columns, i64 n, i64 max_bins, i64 most_edges, i32* all_first, double* all_rank,
      double* all_spread, double* all_edges, i64* n_edges) {
  __shared__ double parts[EDGE_THREADS / 32];
  __shared__ u32 counts[EDGE_THREADS / 32];
  i64 f = blockIdx.x;
  const VALUE* sorted = columns + f * n;
  i32* first = all_first + f * (n + 1);
  double *rank = all_rank + f * n, *spread = all_spread + f * n, *out = all_edges + f * most_edges;
  Gaps gaps = {sorted, first};
  // 1. distinct values
  int n_values = 0, n_present = 0;
  for (i64 begin = 0; begin < n; begin += blockDim.x) {
    i64 i = begin + threadIdx.x;
    double x = i < n ? widened(sorted[i]) : NOT_A_NUMBER;
    bool present = x == x, starts = present && (i == 0 || x != widened(sorted[i - 1]));
    int total, at = n_values + block_rank(starts, counts, total);
    if (starts) first[at] = (i32)i;
    n_values += total;
    n_present += __syncthreads_count(present);
  }
  if (threadIdx.x == 0) first[n_values] = n_present;
  __syncthreads();
  int G = n_values - 1, E = (int)max_bins - 1, half_of_them = E / 2 > 1 ? E / 2 : 1;
  if (n_values <= max_bins) {
    for (int i = threadIdx.x; i < G; i += blockDim.x) out[i] = gaps.middle(i);
    if (threadIdx.x == 0) n_edges[f] = G > 0 ? G : 0;
    return;
  }
  // 2. two measures of each gap
  double widest = TINY;
  for (int i = threadIdx.x; i < G; i += blockDim.x) widest = fmax(widest, gaps.width(i));
  widest = block_max(widest, parts);
  for (int i = threadIdx.x; i < G; i += blockDim.x) {
    rank[i] = gaps.rank(i);
    double half = sqrt(fmax(gaps.width(i) / widest, TINY));
    spread[i] = half * sqrt(half * sqrt(rank[i]));
  }
  // 3. each capped, then both together
  double all_ranks = capped(rank, G, half_of_them, parts);
  double all_spreads = capped(spread, G, half_of_them, parts);
  double* share = rank;
  for (int i = threadIdx.x; i < G; i += blockDim.x)
    share[i] = rank[i] / all_ranks + spread[i] / all_spreads;
  double all_shares = capped(share, G, E, parts), before = 0;
  // 4. an edge where their running sum, counted in edges, rounds to a new number
  int found = 0;
  for (int begin = 0; begin < G; begin += blockDim.x) {
    int i = begin + threadIdx.x;
    double own = i < G ? share[i] : 0, tile;
    double total = before + block_sum(own, parts, tile);
    double step = floor(total / all_shares * E + 0.5);
    bool rises = i < G && step != floor((total - own) / all_shares * E + 0.5);
    int n_rises, at = found + block_rank(rises, counts, n_rises);
    if (rises) out[at] = gaps.middle(i);
    found += n_rises;
    before += tile;
  }
  if (threadIdx.x == 0) n_edges[f] = found;
}
