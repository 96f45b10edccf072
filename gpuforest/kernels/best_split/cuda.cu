// Best splits on the device. The specification is numpy.py beside this file.
#include "best_split/cuda.cuh"

// Bins of a histogram i64[B, channels] in global memory.
struct Bins {
  static const bool BINS = true;
  const i64* hist;
  int channels, C;

  struct Item {
    const i64* cell;
    __device__ SUM channel(int c) const { return (SUM)cell[c]; }
  };
  __device__ Item at(int i) const { return {hist + (i64)i * channels}; }
  __device__ int rows(int i) const { return (int)at(i).cell[C]; }
  __device__ int code(int i) const { return i; }
  __device__ bool holds_rows(int i) const {
    i64 weight = 0;
    for (int c = 0; c < (LABELS ? C : 1); c++) weight += at(i).cell[c];
    return weight > 0;
  }
  __device__ int after(int i, int n) const {
    for (int first = i + 1; first < n; first += 32) {
      int b = first + lane();
      u32 some = __ballot_sync(ALL_LANES, b < n && holds_rows(b));
      if (some) return first + __ffs(some) - 1;
    }
    return -1;
  }
  __device__ int last(int n) const {
    for (int first = (n - 1) & ~31; first >= 0; first -= 32) {
      int b = first + lane();
      u32 some = __ballot_sync(ALL_LANES, b < n && holds_rows(b));
      if (some) return first + 31 - __clz(some);
    }
    return -1;
  }
};

// A warp for each slot and feature; the last bin is that of missing values.
// score f64[S, k]; found i32[S, k]: cut | missing_left << 20 | varies << 21; -1: not tried.
// Shared: i64[warps][2][C]. keys u64[S]: of random cuts; signs i8[F] and bounds f64[S, 2]: of
// monotonic ones.
extern "C" __global__ void __launch_bounds__(128, 1)
best_cut(const i64* hist, const i32* features, const i64* sums, const i64* n_rows,
         const i32* n_bins, i64 min_rows, i64 min_weight, i64 has_keys, const u64* keys, i64 has_signs,
         const signed char* signs, const double* bounds, i64 B, i64 C, i64 channels, i64 k, i64 S,
         const i64* table, double* score, i32* found) {
  DYNAMIC_SHARED(bytes);
  i64* so_far = (i64*)bytes + warp() * 2 * C;
  i64* missing = so_far + C;
  i64 warps = thread_count() >> 5;
  for (i64 p = thread_number() >> 5; p < S * k; p += warps) {
    i64 s = p / k;
    int f = features[p];
    if (f < 0) {
      if (lane() == 0) found[p] = -1;
      continue;
    }
    Bins bins = {hist + p * B * channels, (int)channels, (int)C};
    // 1. which bins hold rows, and whether the feature varies: two of them do
    int occupied = 0;
    for (int b = 0; b < B && occupied < 2; b += 32)
      occupied += __popc(__ballot_sync(ALL_LANES, b + lane() < B && bins.holds_rows(b + lane())));
    Cut cut = {MINUS_INFINITY, -1, false, false};
    int where = 0;
    if (occupied > 1) {
      for (int c = lane(); c < C; c += 32) missing[c] = bins.at((int)B - 1).channel(c);
      __syncwarp();
      int rows_missing = min_rows > 1 ? bins.rows((int)B - 1) : 0;
      Node node = {sums + s * C, (int)n_rows[s], missing, bins.holds_rows((int)B - 1), rows_missing};
      Limits limits = limits_of((int)min_rows);
      Draw draw = {false, false, 0};
#if SPECIAL
      limits.min_weight = min_weight;
      if (has_signs) limits = {(int)min_rows, min_weight, signs[f], bounds[2 * s], bounds[2 * s + 1]};
      int low = has_keys ? bins.after(-1, (int)B - 1) : -1;
      if (low >= 0) draw.between(keys[s], f, low, bins.last((int)B - 1), node.some_missing);
#endif
      cut = best_cut_of(bins, (int)B - 1, node, (int)C, limits, draw, table, so_far);
      if (cut.item >= 0)
        where = (draw.random && bins.after(draw.code, (int)B - 1) >= 0
                     ? draw.code
                     : middle_of_gap(bins, (int)B - 1, cut.item, n_bins[f])) |
                missing_goes_left(cut, node) << 20;
      __syncwarp();
    }
    if (lane() == 0) {
      score[p] = cut.score;
      found[p] = where | (occupied > 1) << 21;
    }
  }
}

// A warp for each slot: the best of its features, of the first `need` that vary. What is in
// best_*, from features tried before, is improved; tried and need count on.
extern "C" __global__ void __launch_bounds__(128)
best_split(const i64* hist, const i32* features, const double* score, const i32* found, i64 B,
           i64 C, i64 channels, i64 k, i64 S, i64* need, double* best_score, i32* best_feature,
           i32* best_bin, bool* best_missing_left, i64* left, i64* tried) {
  i64 warps = thread_count() >> 5;
  for (i64 s = thread_number() >> 5; s < S; s += warps) {
    i64 more = need[s];
    int count = 0, place = -1;
    double best = best_score[s];
    // a lane each feature; those that vary are tried in the order of the draw, and the first
    // of the best wins
    for (i64 first = 0; first < k && count < more; first += 32) {
      i64 j = first + lane();
      int cut = j < k ? found[s * k + j] : -1;
      u32 vary = __ballot_sync(ALL_LANES, cut >= 0 && cut >> 21 & 1);
      bool own = vary >> lane() & 1 && count + __popc(vary & lanes_below()) < more;
      double mine = own ? score[s * k + j] : MINUS_INFINITY;
      int at = (int)j;
      for (int d = 16; d > 0; d >>= 1) {
        double other = __shfl_xor_sync(ALL_LANES, mine, d);
        int other_at = __shfl_xor_sync(ALL_LANES, at, d);
        if (other > mine || (other == mine && other_at < at)) {
          mine = other;
          at = other_at;
        }
      }
      if (mine > best) {
        best = mine;
        place = at;
      }
      count += __popc(vary) < more - count ? __popc(vary) : (int)(more - count);
    }
    __syncwarp();
    if (lane() == 0) {
      need[s] = more - count;
      tried[s] += count;
    }
    if (place < 0) continue;
    // the winner's left side
    int cut = found[s * k + place], last = cut & 0xfffff;
    bool with_missing = cut >> 20 & 1;
    const i64* bins = hist + (s * k + place) * B * channels;
    for (i64 c = 0; c < C; c++) {
      i64 sum = 0;
      for (i64 b = lane(); b <= last; b += 32) sum += bins[b * channels + c];
      sum = warp_sum(sum) + (with_missing ? bins[(B - 1) * channels + c] : 0);
      if (lane() == 0) left[s * C + c] = sum;
    }
    if (lane() == 0) {
      best_score[s] = best;
      best_feature[s] = features[s * k + place];
      best_bin[s] = last;
      best_missing_left[s] = with_missing;
    }
  }
}
