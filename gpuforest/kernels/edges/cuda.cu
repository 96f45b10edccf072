// Edges on the device, in three kernels after the sort. The specification is numpy.py beside this
// file. VALUE: float or double. A block takes a column, and each of its warps a span of it. What
// they add up are whole numbers, so the order of threads does not change a sum.
#include "edges/sort.cuh"
#include "shared/scans.cuh"
#include "generated/Columns.cuh"

#define NO_CAP (1.0 / 0.0)

// A warp's part of n items, in whole groups of 32; each lane takes every 32nd.
struct Span {
  int begin, end;

  __device__ int clamped(int i) const { return i < end ? i : end > 0 ? end - 1 : 0; }
  __device__ Span(int n) {
    int size = (n + EDGE_THREADS - 1) / EDGE_THREADS * 32;
    begin = warp() * size < n ? warp() * size : n;
    end = n - begin < size ? n : begin + size;
  }
};

// Values at every 32nd place from i on, and those before them, all loaded at once; beyond the end,
// the last.
constexpr int AT_ONCE = 4;
__device__ __forceinline__ void load_some(const VALUE* __restrict__ sorted, int i, int end,
                                          VALUE* here, VALUE* previous) {
  for (int j = 0; j < AT_ONCE; j++, i += 32) {
    int at = i < end ? i : end - 1;
    here[j] = sorted[at];
    previous[j] = sorted[at > 0 ? at - 1 : 0];
  }
}

// The sum of x over the warps before this one, and over all in `total`. x is the same in all lanes
// of a warp; all threads call it. `parts` is shared, with an element for each lane.
__device__ __forceinline__ double sum_of_warps(double x, double* parts, double& total) {
  if (lane() == 0) parts[warp()] = x;
  __syncthreads();
  double part = lane() < EDGE_THREADS / 32 ? parts[lane()] : 0;
  __syncthreads();
  total = warp_sum(part);
  return warp_sum(lane() < warp() ? part : 0.0);
}

__device__ __forceinline__ double block_sum(double x, double* parts) {
  double total;
  sum_of_warps(warp_sum(x), parts, total);
  return total;
}

// What the measures of a gap follow from: values on both sides, and the range of rows of both.
struct Gap {
  VALUE low, high;
  i32 begin, end;

  __device__ double width() const { return widened(high) / 2 - widened(low) / 2; }
  __device__ double rank() const { return end - begin; }
};

// The distinct values of a column, and the index of each one's first occurrence.
struct Gaps {
  VALUE* values;
  i32* first;

  __device__ double low(int i) const { return widened(values[i]); }
  __device__ double high(int i) const { return low(i + 1); }
  __device__ Gap operator[](int i) const {
    return {values[i], values[i + 1], first[i], first[i + 2]};
  }
  __device__ double middle(int i) const {
    double between = low(i) / 2 + high(i) / 2;
    return between >= low(i) && between < high(i) ? between : low(i);
  }
};

// Those of a block's column, as `find_gaps` writes them.
__device__ __forceinline__ Gaps gaps_of(const Columns& data, i32* all_first) {
  i64 f = blockIdx.x;
  return {(data.swapped[f] ? data.at : data.spare) + f * data.n, all_first + f * (data.n + 1)};
}

// Measures of gaps: their rank, or any numbers.
struct Ranks {
  const i32* first;
  __device__ i32 operator[](int i) const { return first[i + 2] - first[i]; }
};
typedef const double* Measures;

// How a measure is capped: a number of units, rounded up.
struct Cap {
  double most, scale;
  __device__ double of(double x) const { return ceil(fmin(x, most) * scale); }
};

__device__ __forceinline__ double units_of(int G) {
  return (double)(1ll << (SUM_BITS - 64 + __clzll(G)));
}

// The cap of the measures of G gaps. `top` is the largest measure that this thread takes. A step
// reads all measures once; those above its cap, which are few, are looked for only by threads whose
// largest one is above. It is not inlined: copies would not leave registers for 1,024 threads.
template <class M>
__device__ __noinline__ double cap_of(M measure, int G, int n, double top, double* parts) {
  Span own(G);
  double units = units_of(G), cap = NO_CAP;
  while (true) {
    double top_of_all = block_max(top, parts), scale = units / top_of_all, sum = 0;
#pragma unroll 4
    for (int i = own.begin + lane(); i < own.end; i += 32) {
      double x = measure[i];
      sum += x <= cap ? ceil(x * scale) : 0;
    }
    double before = cap, above = 0;
    cap = fmin(cap, top_of_all * (block_sum(sum, parts) / units / n));
    if (top > cap) {
      top = 0;
#pragma unroll 4
      for (int i = own.begin + lane(); i < own.end; i += 32) {
        double x = measure[i];
        if (x <= cap) top = fmax(top, x);
        else if (x <= before) above++;
      }
    }
    int capped = (int)block_sum(above, parts);
    if (!capped) return cap;
    n -= capped;
  }
}

// The sum of a thread's capped measures.
template <class M>
__device__ __forceinline__ double own_sum(M measure, int G, const Cap& cap) {
  Span own(G);
  double sum = 0;
#pragma unroll 4
  for (int i = own.begin + lane(); i < own.end; i += 32) sum += cap.of(measure[i]);
  return sum;
}

// Distinct values of the columns, which are sorted, NaN last; the array where a column is not gets
// its values. Their numbers are n_values[f]; all_first
// i32[F, n + 1], their first rows, ends with the number of values that are not NaN; widest[f] is
// the widest gap. It fills n_edges[f] of the edges f64[F, most_edges] if each gap has one.
extern "C" __global__ void __launch_bounds__(EDGE_THREADS)
find_gaps(Columns data, i64 max_bins, i64 most_edges,
          i32* all_first, double* widest, double* all_edges, i64* n_values, i64* n_edges) {
  __shared__ double parts[32];
  i64 f = blockIdx.x;
  const VALUE* __restrict__ sorted = (data.swapped[f] ? data.spare : data.at) + f * data.n;
  Span own((int)data.n);
  int starting = 0, present = 0;
  double width = TINY, total;
  VALUE here[AT_ONCE], previous[AT_ONCE];
  for (int i = own.begin + lane(); i < own.end; i += 32 * AT_ONCE) {
    load_some(sorted, i, own.end, here, previous);
    for (int j = 0; j < AT_ONCE; j++) {
      double x = widened(here[j]), before = widened(previous[j]);
      bool some = i + 32 * j < own.end && x == x;
      present += some;
      starting += some & (i + j == 0 | x != before);
      width = fmax(width, some ? x / 2 - before / 2 : TINY);
    }
  }
  width = block_max(width, parts);
  int n_present = (int)block_sum(present, parts);
  int at = (int)sum_of_warps(warp_sum(starting), parts, total);
  Gaps gaps = gaps_of(data, all_first);
  for (int begin = own.begin; begin < own.end; begin += 32 * AT_ONCE) {
    load_some(sorted, begin + lane(), own.end, here, previous);
    for (int j = 0; j < AT_ONCE; j++) {
      int i = begin + 32 * j + lane();
      bool starts = i < own.end && i < n_present;
      starts = starts && (i == 0 || widened(here[j]) != widened(previous[j]));
      u32 some = __ballot_sync(ALL_LANES, starts);
      if (starts) {
        int to = at + __popc(some & lanes_below());
        gaps.first[to] = i;
        gaps.values[to] = here[j];
      }
      at += __popc(some);
    }
  }
  int G = (int)total - 1;
  if (threadIdx.x == 0) {
    gaps.first[G + 1] = n_present;
    n_values[f] = G + 1;
    n_edges[f] = G > 0 ? G : 0;
    widest[f] = width;
  }
  __syncthreads();
  if (G >= max_bins) return;
  double* out = all_edges + f * most_edges;
  for (int i = threadIdx.x; i < G; i += EDGE_THREADS) out[i] = gaps.middle(i);
}

// Shares of gaps, f64[F, n], of columns of more values than bins: two measures of each gap, each
// capped, then both together. most[f] is to cap the shares.
extern "C" __global__ void __launch_bounds__(EDGE_THREADS)
share_gaps(Columns data, i64 max_bins, i32* all_first,
           const double* widest, const i64* n_values, double* shares, double* most) {
  __shared__ double parts[32];
  i64 f = blockIdx.x;
  if (n_values[f] <= max_bins) return;
  int G = (int)n_values[f] - 1, E = (int)max_bins - 1, half_of_them = E / 2 > 1 ? E / 2 : 1;
  Gaps gaps = gaps_of(data, all_first);
  Ranks ranks = {gaps.first};
  Span own(G);
  double *share = shares + f * data.n, width = widest[f], top_rank = 0, top = 0;
  Gap next = gaps[own.clamped(own.begin + lane())];  // loaded while another is computed
  for (int i = own.begin + lane(); i < own.end; i += 32) {
    Gap gap = next;
    next = gaps[own.clamped(i + 32)];
    double half = sqrt(fmax(gap.width() / width, TINY));
    double spread = half * sqrt(half * sqrt(gap.rank()));
    top_rank = fmax(top_rank, gap.rank());
    top = fmax(top, spread);
    share[i] = spread;
  }
  double cap = cap_of((Measures)share, G, half_of_them, top, parts);
  Cap of_spread = {cap, units_of(G) / cap};
  cap = cap_of(ranks, G, half_of_them, top_rank, parts);
  Cap of_rank = {cap, units_of(G) / cap};
  double all_spreads = block_sum(own_sum((Measures)share, G, of_spread), parts);
  double all_ranks = block_sum(own_sum(ranks, G, of_rank), parts);
  top = 0;
  i32 next_rank = 0;
  double next_spread = 0;
  for (int i = own.begin + lane() - 32; i < own.end; i += 32) {
    double rank = next_rank, spread = next_spread;
    if (i + 32 < own.end) {
      next_rank = ranks[i + 32];
      next_spread = share[i + 32];
    }
    if (i < own.begin) continue;
    double x = of_rank.of(rank) / all_ranks + of_spread.of(spread) / all_spreads;
    share[i] = x;
    top = fmax(top, x);
  }
  cap = cap_of((Measures)share, G, E, top, parts);
  if (threadIdx.x == 0) most[f] = cap;
}

// An edge where the running sum of shares, counted in edges, rounds to a new number. A warp first
// keeps the gaps of its span's edges, in place of `all_first`.
extern "C" __global__ void __launch_bounds__(EDGE_THREADS)
edges(Columns data, i64 max_bins, i64 most_edges,
      i32* all_first, const i64* n_values, const double* shares, const double* most,
      double* all_edges, i64* n_edges) {
  __shared__ double parts[32];
  i64 f = blockIdx.x;
  if (n_values[f] <= max_bins) return;
  int G = (int)n_values[f] - 1, found = 0;
  Gaps gaps = gaps_of(data, all_first);
  Cap cap = {most[f], units_of(G) / most[f]};
  Span own(G);
  const double* __restrict__ share = shares + f * data.n;
  double all, before = sum_of_warps(warp_sum(own_sum(share, G, cap)), parts, all), total;
  double E = (double)(max_bins - 1), last = floor(before / all * E + 0.5);
  double next = share[own.clamped(own.begin + lane())];  // loaded while another is computed
  for (int begin = own.begin; begin < own.end; begin += 32) {
    int i = begin + lane();
    double sum = before + sum_to_here(i < own.end ? cap.of(next) : 0.0);
    next = share[own.clamped(i + 32)];
    double step = floor(sum / all * E + 0.5), step_before = __shfl_up_sync(ALL_LANES, step, 1);
    u32 some = __ballot_sync(ALL_LANES, step != (lane() ? step_before : last));
    if (some >> lane() & 1) gaps.first[own.begin + found + __popc(some & lanes_below())] = i;
    found += __popc(some);
    before = __shfl_sync(ALL_LANES, sum, 31);
    last = __shfl_sync(ALL_LANES, step, 31);
  }
  int at = (int)sum_of_warps(found, parts, total);
  double* out = all_edges + f * most_edges + at;
  for (int j = lane(); j < found; j += 32) out[j] = gaps.middle(gaps.first[own.begin + j]);
  if (threadIdx.x == 0) n_edges[f] = (i64)total;
}
