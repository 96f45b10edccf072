// Totals on the device. The specification is numpy.py beside this file.
#include "cuda.cuh"

#define GROUP 8  // channels that a thread adds up in registers; blockIdx.y counts groups

// A block for each tile of a slot's rows. sums i64[S, C] and differs i32[S] hold zeros;
// differs: some target is not its slot's first.
extern "C" __global__ void __launch_bounds__(256)
totals(const TARGET* y, const i32* rows, const i32* weights, const i64* begin, const i64* end,
       i64 C, const i64* first_tile, i64 S, i64 tile, i64 with_sums, i64* sums, i32* differs) {
  i64 K = LABELS ? 1 : C - 1;
  int channel = blockIdx.y * GROUP;
  for (i64 p = blockIdx.x; p < first_tile[S]; p += gridDim.x) {
    i64 s = slot_of(first_tile, S, p), low = begin[s] + (p - first_tile[s]) * tile;
    i64 high = low + tile < end[s] ? low + tile : end[s];
    i64 first = rows[begin[s]];
    i64 sum[GROUP] = {};
    bool other = false;
    for (i64 i = low + threadIdx.x; i < high; i += blockDim.x) {
      i64 r = rows[i], w = weights[i];
      // 1. sums
      if (with_sums) {
#pragma unroll
        for (int c = 0; c < GROUP; c++) {
#if LABELS
          sum[c] += y[r] == channel + c ? w : 0;
#else
          if (channel + c < C) sum[c] += channel + c == 0 ? w : w * y[r * K + channel + c - 1];
#endif
        }
      }
      // 2. rows that differ from their slot's first
      for (i64 k = 0; k < K; k++) other = other || y[r * K + k] != y[first * K + k];
    }
    if (with_sums) {
#pragma unroll
      for (int c = 0; c < GROUP; c++) {
        i64 all = warp_sum(sum[c]);
        if (lane() == 0 && channel + c < C && all != 0) add_global(&sums[s * C + channel + c], all);
      }
    }
    if (__any_sync(ALL_LANES, other) && lane() == 0) atomicOr(&differs[s], 1);
  }
}
