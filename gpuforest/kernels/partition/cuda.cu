// Partition on the device. The specification is numpy.py beside this file.
//
// Two passes over tiles of rows: the first reads codes, keeps a bit for each row and counts; the
// second reads the bits and moves the rows to positions that follow from the counts.
#include "shared/goes_left/cuda.cuh"
#include "shared/slots.cuh"
#include "generated/Codes.cuh"
#include "generated/Sides.cuh"

// 1. which side each row goes to: left u32[tiles, tile / 32], counts i64[tiles]. With SETS 1, slots
// of bin SET_BIN have a set.
extern "C" __global__ void __launch_bounds__(THREADS)
mark(Codes codes, Slots slots, Tiles tiles, Sides sides, u32* left, i64* counts) {
  for (i64 p = blockIdx.x; p < tiles.first[tiles.S]; p += gridDim.x) {
    Tile tile = tile_of(slots, tiles, p);
    i64 s = tile.slot, f = sides.feature[s];
    int bin = sides.bin[s], missing = (int)codes.B - 1;
    bool missing_left = sides.missing_left[s];
    auto set = [&] { return sides.sets + s * sides.words; };
    int count = 0;
    for (i64 first = tile.low; first < tile.high; first += blockDim.x) {
      i64 i = first + threadIdx.x;
      bool goes = false;
      if (i < tile.high) {
        int code = codes.at[slots.rows[i] * codes.stride + f];
        goes = goes_left(code, bin, missing_left, missing, set);
      }
      u32 word = __ballot_sync(ALL_LANES, goes);
      if (lane() == 0) left[(p * tiles.size + i - tile.low) >> 5] = word;
      count += __syncthreads_count(goes);
    }
    if (threadIdx.x == 0) counts[p] = count;
  }
}

// 2. stable; left_before i64[tiles + 1] counts the left rows of all earlier tiles; n_left i64[S].
// Rows move to the other half, `half` rows on or back.
extern "C" __global__ void __launch_bounds__(THREADS)
move(Slots slots, Tiles tiles, i64 half, const u32* bits, const i64* left_before, i32* rows,
     i32* weights, i64* n_left) {
  __shared__ u32 counts[THREADS / 32];
  for (i64 p = blockIdx.x; p < tiles.first[tiles.S]; p += gridDim.x) {
    Tile tile = tile_of(slots, tiles, p);
    i64 s = tile.slot, begin = slots.begin[s], before = left_before[tiles.first[s]];
    i64 all_left = left_before[tiles.first[s + 1]] - before;
    i64 left = left_before[p] - before, right = all_left + tile.before - left;
    i64 there = begin + (begin < half ? half : -half);
    if (tile.before == 0 && threadIdx.x == 0) n_left[s] = all_left;
    for (i64 first = tile.low; first < tile.high; first += blockDim.x) {
      i64 i = first + threadIdx.x;
      bool inside = i < tile.high;
      bool goes = inside && bits[(p * tiles.size + i - tile.low) >> 5] >> lane() & 1;
      int total, rank = block_rank(goes, counts, total);
      if (inside) {
        i64 position = there + (goes ? left + rank : right + threadIdx.x - rank);
        rows[position] = rows[i];
        weights[position] = weights[i];
      }
      left += total;
      right += blockDim.x - total;
    }
  }
}
