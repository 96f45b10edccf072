// Best splits on the device. The specification is numpy.py beside this file.
#include "best_split/cuda.cuh"
#include "generated/Histograms.cuh"
#include "generated/Frontier.cuh"
#include "generated/Splits.cuh"

// What the search leaves of each feature of a slot, besides its score: -1 if the feature was not
// tried, and otherwise its cut and these bits.

#define FOUND_CUT 0xfffff
#define FOUND_VARIES (WHERE_MISSING_LEFT + 1)

__device__ __forceinline__ bool found_varies(int found) {
  return found >= 0 && found >> FOUND_VARIES & 1;
}

// Bins of a histogram SUM[B, channels] in global memory.
struct Bins {
  static const bool BINS = true;
  const SUM* hist;
  int channels, C;

  struct Item {
    const SUM* cell;
    __device__ SUM channel(int c) const { return cell[c]; }
  };
  __device__ Item at(int i) const { return {hist + (i64)i * channels}; }
  __device__ int rows(int i) const { return (int)at(i).cell[C]; }
  __device__ int code(int i) const { return i; }
  __device__ int after(int i, int n) const { return bin_after(*this, i, n); }
};

// The limits on the cuts of feature f in slot s.
__device__ __forceinline__ Limits limits_of(const Rules& rules, const Frontier& slots, i64 s,
                                            int f) {
  int min_rows = as_int(rules.min_rows_leaf);
  i64 min_weight = SPECIAL ? rules.min_weight_leaf : 1;
  if (!SPECIAL || !rules.signs) return {min_rows, min_weight, 0, nullptr};
  return {min_rows, min_weight, rules.signs[f], slots.bounds + 2 * s};
}

// A warp for each slot and feature; the last bin is that of missing values. score f64[S, k];
// found i32[S, k], see FOUND_CUT; all_bins i32[F] counts the bins of
// features; table holds n ln n. Shared: i64[warps][CUT_SUMS][C].
extern "C" __global__ void __launch_bounds__(SPLIT_THREADS, 1)
best_cut(Histograms hist, const i32* features, Frontier slots, Rules rules,
         const i32* all_bins, const i64* table, double* score, i32* found) {
  DYNAMIC_SHARED(bytes);
  i64 B = hist.B, C = hist.C, warps = thread_count() >> 5;
  i64* scratch = (i64*)bytes + warp() * CUT_SUMS * C;
  for (i64 p = thread_number() >> 5; p < hist.S * hist.k; p += warps) {
    i64 s = p / hist.k;
    int f = features[p];
    if (f < 0) {
      if (lane() == 0) found[p] = -1;
      continue;
    }
    Bins bins = {hist.cells + p * B * hist.channels, (int)hist.channels, (int)C};
    // 1. which bins hold rows; the feature varies if at least two do
    int occupied = 0, where = 0;
    for (int b = 0; b < B && occupied < 2; b += 32)
      occupied += __popc(__ballot_sync(ALL_LANES, b + lane() < B && holds_rows(bins, b + lane())));
    double highest = MINUS_INFINITY;
    if (occupied > 1)
      highest = cut_bins<1>(bins, (int)B - 1, f, all_bins[f], (int)slots.n_rows[s],
                            slots.sums + s * C, slots.key[s], SPECIAL && rules.random,
                            limits_of(rules, slots, s, f), table, scratch, where);
    if (lane() == 0) {
      score[p] = highest;
      found[p] = where | (occupied > 1) << FOUND_VARIES;
    }
  }
}

// A warp for each slot: the best split by the first need[s] of its features that vary, or by all.
extern "C" __global__ void __launch_bounds__(SPLIT_THREADS)
best_split(Histograms hist, const i32* features, const double* score, const i32* found,
           const i64* need, Splits best) {
  i64 warps = thread_count() >> 5, k = hist.k;
  for (i64 s = thread_number() >> 5; s < hist.S; s += warps) {
    i64 most = need ? need[s] : k;
    int count = 0, winner = -1;
    double highest = MINUS_INFINITY;
    // a lane for each feature; those that vary are tried in the order of the draw, and of equal
    // scores the first wins
    for (i64 first = 0; first < k && count < most; first += 32) {
      i64 j = first + lane();
      int cut = j < k ? found[s * k + j] : -1, at = (int)j;
      u32 vary = __ballot_sync(ALL_LANES, found_varies(cut));
      bool own = vary >> lane() & 1 && count + __popc(vary & lanes_below()) < most;
      double mine = own ? score[s * k + j] : MINUS_INFINITY;
      first_highest(mine, at);
      if (mine > highest) {
        highest = mine;
        winner = at;
      }
      count += __popc(vary) < most - count ? __popc(vary) : (int)(most - count);
    }
    // the winner's left side: the bins for which goes_left is true
    int cut = winner < 0 ? 0 : found[s * k + winner], bin = cut & FOUND_CUT;
    bool missing_left = cut >> WHERE_MISSING_LEFT & 1;
    const SUM* cells = hist.cells + (s * k + winner) * hist.B * hist.channels;
    for (i64 c = 0; c < hist.C; c++) {  // `left_sum` of bins takes half as many registers again
      SUM sum = 0;
      for (i64 b = lane(); winner >= 0 && b <= bin; b += 32) sum += cells[b * hist.channels + c];
      sum = warp_sum(sum) + (missing_left ? cells[(hist.B - 1) * hist.channels + c] : 0);
      if (lane() == 0) best.left[s * hist.C + c] = sum;
    }
    if (lane() == 0) {
      best.score[s] = highest;
      best.feature[s] = winner < 0 ? -1 : features[s * k + winner];
      best.bin[s] = bin;
      best.missing_left[s] = missing_left;
      best.tried[s] = count;
    }
  }
}
