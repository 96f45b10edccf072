// Partition on the device. The specification is numpy.py beside this file.
//
// Two passes over tiles of rows: the first reads codes, keeps a bit for each row and counts; the
// second reads the bits and moves the rows to positions that follow from the counts. Frontier whose
// feature is -1 have tiles too, and are passed over. The slots are in the order of their rows,
// all in one half, so each has words of its own for its bits.
#include "shared/goes_left.cuh"
#include "shared/scans.cuh"
#include "shared/slots.cuh"
#include "generated/Codes.cuh"
#include "generated/Kept.cuh"
#include "generated/Splits.cuh"

// Rows that a thread has under way at once in `move`. In `mark` one is as fast: its reads are at
// random, and limited by the memory.
#define ROWS 4

// Where the bits of a tile begin: words of 32 bits.
__device__ __forceinline__ i64 first_word(const Tile& tile, i64 half) {
  return (in_half(tile.low - tile.before, half) >> 5) + tile.slot + (tile.before >> 5);
}

// Bits before a feature's code in the kept codes of its slot: a byte for each feature that is tried.
__device__ __forceinline__ int kept_shift(const Kept& kept, i64 s, i64 f) {
  const i32* features = kept.features + s * kept.k;
  int shift = 0;
  for (int j = 0; features[j] != f; j++) shift += 8 * (features[j] >= 0);
  return shift;
}

// 1. which side each row goes to: left u32[half / 32 + S + 1], counts i64[tiles], and n_left i64[S]
// becomes zero. With SETS 1, slots of bin SET_BIN have a set of so many words. With KEPT 1,
// `histogram` kept the codes of the rows.
extern "C" __global__ void __launch_bounds__(THREADS)
mark(Codes codes, Frontier slots, Tiles tiles, Splits splits, i64 words, i64 half, u32* left, i64* counts,
     i64* n_left, Kept kept) {
  for (i64 s = thread_number(); s < tiles.S; s += thread_count()) n_left[s] = 0;
  for (i64 n = blockIdx.x; n < tiles.first[tiles.S]; n += gridDim.x) {
    i64 p = in_order(tiles, n);
    Tile tile = tile_of(slots, tiles, p);
    i64 s = tile.slot, f = splits.feature[s], word = first_word(tile, half);
    if (f < 0) continue;
    int bin = splits.bin[s], missing = (int)codes.B - 1;
    bool missing_left = splits.missing_left[s];
    auto set = [&] { return splits.sets + s * words; };
    int count = 0;
#if KEPT
    int shift = kept_shift(kept, s, f);
#endif
    for (i64 first = tile.low; first < tile.high; first += blockDim.x) {
      i64 i = first + threadIdx.x;
      bool goes = false;
      if (i < tile.high) {
#if KEPT
        int code = (int)(kept.codes[in_half(i, half)] >> shift & 255);
#else
        int code = codes.at[slots.rows[i] * codes.stride + f];
#endif
        goes = goes_left(code, bin, missing_left, missing, set);
      }
      u32 bits = __ballot_sync(ALL_LANES, goes);
      if (lane() == 0 && i < tile.high) left[word + ((i - tile.low) >> 5)] = bits;
      count += __syncthreads_count(goes);
    }
    if (threadIdx.x == 0) counts[p] = count;
  }
}

// The rows of a thread that go left, and their ranks among those of the block: first the first row
// of all threads, then the second. `shared` has THREADS / 32 * ROWS elements.
struct Ranks {
  bool goes[ROWS];
  int rank[ROWS], total;

  __device__ __forceinline__ void count(u32* shared) {
    u32 mine[ROWS];
    int warps = blockDim.x >> 5;
#pragma unroll
    for (int q = 0; q < ROWS; q++) {
      mine[q] = __ballot_sync(ALL_LANES, goes[q]);
      if (lane() == 0) shared[q * warps + warp()] = __popc(mine[q]);
    }
    __syncthreads();
    int own = shared[lane()], here = sum_to_here(own);  // an element for each lane
#pragma unroll
    for (int q = 0; q < ROWS; q++) {
      int before = __shfl_sync(ALL_LANES, here - own, q * warps + warp());
      rank[q] = before + __popc(mine[q] & lanes_below());
    }
    total = __shfl_sync(ALL_LANES, here, 31);
    __syncthreads();
  }
};
static_assert(THREADS / 32 * ROWS == 32, "");

// 2. stable; n_left i64[S]. Rows move to the other half, `half` rows on or back.
extern "C" __global__ void __launch_bounds__(THREADS)
move(Frontier slots, Tiles tiles, Splits splits, i64 half, const u32* bits, const i64* counts,
     i32* rows, i32* weights, i64* n_left) {
  __shared__ u32 shared[THREADS / 32 * ROWS];
  __shared__ i64 sums[THREADS / 32];
  for (i64 p = blockIdx.x; p < tiles.first[tiles.S]; p += gridDim.x) {
    Tile tile = tile_of(slots, tiles, p);
    i64 s = tile.slot, begin = slots.begin[s], left = 0, all_left = 0;
    if (splits.feature[s] < 0) continue;
    // the slot's tiles before this one, and all of them
    i64 end = tiles.first[s + 1];
    for (i64 q = tiles.first[s] + threadIdx.x; q < end; q += blockDim.x) {
      all_left += counts[q];
      left += q < p ? counts[q] : 0;
    }
    left = block_sum(left, sums);
    all_left = block_sum(all_left, sums);
    i64 right = all_left + tile.before - left, word = first_word(tile, half);
    i64 there = begin + (begin < half ? half : -half);
    if (tile.before == 0 && threadIdx.x == 0) n_left[s] = all_left;
    for (i64 first = tile.low; first < tile.high; first += ROWS * blockDim.x) {
      i32 row[ROWS], weight[ROWS];
      Ranks ranks;
#pragma unroll
      for (int q = 0; q < ROWS; q++) {
        i64 i = first + q * blockDim.x + threadIdx.x;
        bool inside = i < tile.high;
        row[q] = inside ? slots.rows[i] : -1;
        weight[q] = inside ? slots.weights[i] : 0;
        ranks.goes[q] = inside && bits[word + ((i - tile.low) >> 5)] >> lane() & 1;
      }
      ranks.count(shared);
#pragma unroll
      for (int q = 0; q < ROWS; q++) {
        int rank = ranks.rank[q];
        i64 to_right = right + q * blockDim.x + threadIdx.x - rank;
        i64 position = there + (ranks.goes[q] ? left + rank : to_right);
        if (row[q] < 0) continue;
        rows[position] = row[q];
        weights[position] = weight[q];
      }
      left += ranks.total;
      right += ROWS * blockDim.x - ranks.total;
    }
  }
}
