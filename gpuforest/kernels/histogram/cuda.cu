// Histograms on the device. The specification is numpy.py beside this file.
#include "shared/cuda.cuh"
#include "shared/slots.cuh"
#include "generated/Codes.cuh"
#include "generated/Histograms.cuh"
#include "generated/Targets.cuh"

// A bin in shared memory, in `words` of 32 bits: one for each of C classes, or one for the weight
// and two for each moment; then one for the count of rows, if they are counted.
struct Bin {
  int C, words;
  bool count_rows;

  // Adds 2. a row's weight, or weight and moments, and 3. its count.
  __device__ __forceinline__ void add(u32* cell, const TARGET* target, i64 w) const {
#if LABELS
    atomicAdd(cell + *target, (u32)w);
#else
    atomicAdd(cell, (u32)w);
    for (int m = 0; m < C - 1; m++) add_64(cell + 1 + 2 * m, w * target[m]);
#endif
    if (count_rows) atomicAdd(cell + words - 1, 1u);
  }

  // As add, to a bin i64[channels] in global memory.
  __device__ __forceinline__ void add_direct(i64* cell, const TARGET* target, i64 w) const {
#if LABELS
    add_global(cell + *target, w);
#else
    add_global(cell, w);
    for (int m = 0; m < C - 1; m++) add_global(cell + 1 + m, w * target[m]);
#endif
    if (count_rows) add_global(cell + C, 1);
  }

  // Adds n bins in shared memory, where they are not zero, to those in global memory.
  __device__ __forceinline__ void flush(const u32* cells, i64 n, i64* hist) const {
    int channels = C + count_rows;
    for (i64 i = threadIdx.x; i < n * channels; i += blockDim.x) {
      i64 bin = i / channels;
      int c = (int)(i - bin * channels);
      const u32* cell = cells + bin * words;
      i64 value;
      if (c == C) value = cell[words - 1];
      else value = LABELS || c == 0 ? cell[c] : value_64(cell + 2 * c - 1);
      if (value) add_global(hist + i, value);
    }
  }
};

// A block fills the histograms of `group` features (blockIdx.y counts groups) from a tile of a
// slot's rows in its shared memory, u32[group][B][words], and adds them to `hist`, where those that
// are used hold zeros. Group 0 means that no histogram fits: each block adds the rows of one
// feature to `hist` directly.
extern "C" __global__ void __launch_bounds__(THREADS, 4)
histogram(Codes codes, Targets y, Slots slots, Tiles tiles, const i32* features, i64 group,
          i64 words, Histograms hist) {
  DYNAMIC_SHARED(bytes);
  __shared__ i32 own[GROUP_FEATURES];
  u32* cells = (u32*)bytes;
  Bin bin = {(int)hist.C, (int)words, hist.channels > hist.C};
  i64 each = group ? group : 1, B = hist.B, k = hist.k;
  for (i64 first = blockIdx.y * each; first < k; first += gridDim.y * each)
    for (i64 p = tiles.first[0] + blockIdx.x; p < tiles.first[tiles.S]; p += gridDim.x) {
      Tile tile = tile_of(slots, tiles, p);
      i64 at = tile.slot * k + first;
      int n = (int)(first + each < k ? each : k - first), f = -1;
      if (threadIdx.x < n) own[threadIdx.x] = f = features[at + threadIdx.x];
      if (!__syncthreads_or(f >= 0)) continue;  // this slot has no more features to try
      for (i64 i = threadIdx.x; group && i < n * B * words; i += blockDim.x) cells[i] = 0;
      __syncthreads();
      for (i64 i = tile.low + threadIdx.x; i < tile.high; i += blockDim.x) {
        i64 r = slots.rows[i], w = slots.weights[i];
        const TARGET* target = y.at + r * outputs(y.C);
        // neighbouring lanes begin with different features, so they meet in fewer cells
        for (int step = 0, j = lane() % n; step < n; step++, j = j + 1 == n ? 0 : j + 1) {
          if (own[j] < 0) continue;
          // 1. the row's bin
          i64 b = codes.at[r * codes.stride + own[j]];
          if (group) bin.add(cells + (j * B + b) * words, target, w);
          else bin.add_direct(hist.cells + ((at + j) * B + b) * hist.channels, target, w);
        }
      }
      __syncthreads();
      if (group) bin.flush(cells, n * B, hist.cells + at * B * hist.channels);
      __syncthreads();
    }
}
