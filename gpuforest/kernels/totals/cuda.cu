// Totals on the device. The specification is numpy.py beside this file.
#include "shared/cuda.cuh"
#include "shared/slots.cuh"
#include "shared/targets.cuh"

// A block for each tile of a slot's rows; blockIdx.y counts groups of channels. sums i64[S, C]
// holds zeros.
extern "C" __global__ void __launch_bounds__(THREADS)
totals(Targets y, Slots slots, Tiles tiles, i64* sums) {
  int channel = blockIdx.y * GROUP_CHANNELS, C = (int)y.C;
  for (i64 p = blockIdx.x; p < tiles.first[tiles.S]; p += gridDim.x) {
    Tile tile = tile_of(slots, tiles, p);
    i64 s = tile.slot, sum[GROUP_CHANNELS] = {};
    for (i64 i = tile.low + threadIdx.x; i < tile.high; i += blockDim.x) {
      i64 r = slots.rows[i], w = slots.weights[i];
#if LABELS
      int own = *target_of(y, r) - channel;
#else
      const TARGET* target = target_of(y, r);
#endif
#pragma unroll
      for (int c = 0; c < GROUP_CHANNELS; c++) {
#if LABELS
        sum[c] += c == own ? w : 0;
#else
        if (channel + c < C) sum[c] += channel + c == 0 ? w : w * target[channel + c - 1];
#endif
      }
    }
#pragma unroll
    for (int c = 0; c < GROUP_CHANNELS; c++) {
      i64 all = warp_sum(sum[c]);
      if (lane() == 0 && channel + c < C && all != 0) add_global(&sums[s * C + channel + c], all);
    }
  }
}

// A block for each tile of a slot's rows. found i32[S] holds zeros; it becomes 1 if some target
// differs from the slot's value i64[K].
extern "C" __global__ void __launch_bounds__(THREADS)
differs(Targets y, Slots slots, Tiles tiles, const i64* values, i32* found) {
  i64 K = outputs(y.C);
  for (i64 p = blockIdx.x; p < tiles.first[tiles.S]; p += gridDim.x) {
    Tile tile = tile_of(slots, tiles, p);
    i64 s = tile.slot;
    bool other = false;
    for (i64 i = tile.low + threadIdx.x; i < tile.high; i += blockDim.x) {
      i64 r = slots.rows[i];
      for (i64 k = 0; k < K; k++) other = other || target_of(y, r)[k] != values[s * K + k];
    }
    if (__any_sync(ALL_LANES, other) && lane() == 0) atomicOr(&found[s], 1);
  }
}
