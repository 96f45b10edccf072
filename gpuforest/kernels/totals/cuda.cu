// Totals on the device. The specification is numpy.py beside this file.
#include "shared/cuda.cuh"
#include "shared/slots.cuh"
#include "shared/targets.cuh"

// Sets flags[i] to false. The flags begin at a word of 32 bits, and their last word is whole.
__device__ __forceinline__ void clear_flag(bool* flags, i64 i) {
  atomicAnd((u32*)(flags + (i & ~3ll)), ~(0xffu << 8 * (i & 3)));
}

// A block for each tile of a slot's rows; blockIdx.y counts groups of channels. sums i64[S, C]
// holds zeros.
extern "C" __global__ void __launch_bounds__(THREADS)
totals(Targets y, Frontier slots, Tiles tiles, i64* sums) {
  int channel = blockIdx.y * GROUP_CHANNELS, C = (int)y.C;
  for (i64 p = blockIdx.x; p < tiles.first[tiles.S]; p += gridDim.x) {
    Tile tile = tile_of(slots, tiles, p);
    i64 s = tile.slot, sum[GROUP_CHANNELS] = {};
    for (i64 i = tile.low + threadIdx.x; i < tile.high; i += blockDim.x) {
      i64 r = slots.rows[i], w = slots.weights[i];
      const TARGET* target = target_of(y, r);
#pragma unroll
      for (int c = 0; c < GROUP_CHANNELS; c++)
        if (channel + c < C) sum[c] += added(target, (SUM)w, channel + c);
    }
#pragma unroll
    for (int c = 0; c < GROUP_CHANNELS; c++) {
      i64 all = warp_sum(sum[c]);
      if (lane() == 0 && channel + c < C && all != 0) add_global(&sums[s * C + channel + c], all);
    }
  }
}

// A block for each tile of a slot's rows. `constant` of a slot becomes false if some target differs
// from the slot's mean i64[K]; slots without `compare` stay as they are. The tiles are those of the
// slots above, if `n_left` is not null: their rows have moved by `half` rows, on or back, and
// n_left[s] of them are in slot 2 s below, the others in 2 s + 1.
extern "C" __global__ void __launch_bounds__(THREADS)
differing(Targets y, Frontier slots, Tiles tiles, const i64* n_left, i64 half, const i64* mean,
          const bool* compare, bool* constant) {
  i64 K = outputs(y.C);
  for (i64 p = blockIdx.x; p < tiles.first[tiles.S]; p += gridDim.x) {
    Tile tile = tile_of(slots, tiles, p);
    i64 s = tile.slot, left = s, right = s, middle = 0, move = 0;
    if (n_left) {
      left = 2 * s;
      right = left + 1;
      middle = slots.begin[s] + n_left[s];
      move = slots.begin[s] < half ? half : -half;
    }
    bool has_left = compare[left], has_right = compare[right];
    if (!has_left && !has_right) continue;
    int others = 0;  // 1 of the left slot, 2 of the right one
    for (i64 i = tile.low + threadIdx.x; i < tile.high; i += blockDim.x) {
      bool is_left = n_left && i < middle;
      if (is_left ? !has_left : !has_right) continue;
      i64 r = slots.rows[i + move];
      const i64* value = mean + (is_left ? left : right) * K;
      bool other = false;
      for (i64 k = 0; k < K; k++) other = other || target_of(y, r)[k] != value[k];
      if (other) others |= is_left ? 1 : 2;
    }
    // several warps and blocks may find the same: so words of four slots are changed at once
    if (__any_sync(ALL_LANES, others & 1) && lane() == 0) clear_flag(constant, left);
    if (__any_sync(ALL_LANES, others & 2) && lane() == 0) clear_flag(constant, right);
  }
}
