// Partition on the device. The specification is numpy.py beside this file.
//
// Two passes over tiles of rows, so that a row's place follows from counts alone: the first
// reads codes and keeps a bit a row, the second reads the bits and moves the rows.
#include "cuda.cuh"

// 1. which way each row goes: goes_left u32[tiles, tile / 32], counts i64[tiles]. With SETS 1
// slots whose bin is SET_BIN have theirs in sets u64[S, W].
extern "C" __global__ void __launch_bounds__(256)
mark(const CODE* codes, const i32* rows, const i64* begin, const i64* end, const i32* feature,
     const i32* bin, const bool* missing_left, i64 missing, const u64* sets, i64 W, i64 stride,
     const i64* first_tile, i64 S, i64 tile, u32* goes_left, i64* counts) {
  for (i64 p = blockIdx.x; p < first_tile[S]; p += gridDim.x) {
    i64 s = slot_of(first_tile, S, p), low = begin[s] + (p - first_tile[s]) * tile;
    i64 high = low + tile < end[s] ? low + tile : end[s];
    i64 f = feature[s], cut = bin[s];
    bool missing_goes = missing_left[s];
    int count = 0;
    for (i64 first = low; first < high; first += blockDim.x) {
      i64 i = first + threadIdx.x;
      bool left = false;
      if (i < high) {
        i64 code = codes[rows[i] * stride + f];
#if SETS
        if (cut == SET_BIN && code != missing) left = has_code(sets + s * W, code);
        else
#endif
        left = code == missing ? missing_goes : code <= cut;
      }
      u32 word = __ballot_sync(ALL_LANES, left);
      if (lane() == 0) goes_left[(p * tile + i - low) >> 5] = word;
      count += __syncthreads_count(left);
    }
    if (threadIdx.x == 0) counts[p] = count;
  }
}

// 2. stable: left_before i64[tiles + 1], left rows of all tiles before; n_left i64[S]
extern "C" __global__ void __launch_bounds__(256)
move(i32* rows, i32* weights, i64 half, const i64* begin, const i64* end, const i64* first_tile,
     i64 S, i64 tile, const u32* goes_left, const i64* left_before, i64* n_left) {
  __shared__ u32 counts[8];
  for (i64 p = blockIdx.x; p < first_tile[S]; p += gridDim.x) {
    i64 s = slot_of(first_tile, S, p), before = (p - first_tile[s]) * tile;
    i64 low = begin[s] + before, high = low + tile < end[s] ? low + tile : end[s];
    i64 all_left = left_before[first_tile[s + 1]] - left_before[first_tile[s]];
    i64 left = left_before[p] - left_before[first_tile[s]], right = all_left + before - left;
    i64 there = begin[s] + (begin[s] < half ? half : -half);
    if (before == 0 && threadIdx.x == 0) n_left[s] = all_left;
    for (i64 first = low; first < high; first += blockDim.x) {
      i64 i = first + threadIdx.x;
      bool inside = i < high;
      bool goes = inside && goes_left[(p * tile + i - low) >> 5] >> lane() & 1;
      int total, rank = block_rank(goes, counts, total);
      if (inside) {
        i64 place = there + (goes ? left + rank : right + threadIdx.x - rank);
        rows[place] = rows[i];
        weights[place] = weights[i];
      }
      left += total;
      right += blockDim.x - total;
    }
  }
}
