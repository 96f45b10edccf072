// Histograms on the device. The specification is numpy.py beside this file.
#include "shared/fill.cuh"
#include "shared/slots.cuh"
#include "shared/targets.cuh"
#include "generated/Histograms.cuh"
#include "generated/Kept.cuh"

#define ROWS 2  // that a thread takes at once

#ifndef PAD  // benchmarks set 0
#define PAD 1
#endif

// Words of a histogram of n words in shared memory: an odd number of fours, see `FILL_PAD`.
__device__ __forceinline__ int padded(int n) { return 4 * ((n + 3) / 4 | PAD); }

// A bin in shared memory, in `words` of 32 bits: one for each of C classes, or one for the weight
// and two for each moment; then one for the count of rows, if they are counted.
struct Bin {
  int C, words;
  bool count_rows;

  // Adds n histograms of B bins in shared memory, where they are not zero, to those in global
  // memory; if they hold all rows of their slot, they replace those.
  __device__ __forceinline__ void flush(const u32* cells, int n, int B, SUM* hist,
                                        bool alone) const {
    int size = B * words, width = padded(size), gap = width - size;
#if LABELS  // a word for each channel; past the last bin are zeros
    for (int i = threadIdx.x; alone && i < n * size; i += blockDim.x)
      hist[i] = cells[i + i / size * gap];
    for (int i = 4 * threadIdx.x; !alone && i < n * width; i += 4 * blockDim.x) {
      uint4 four = *(const uint4*)(cells + i);
      SUM* to = hist + i - i / width * gap;
      if (four.x) add_global(to, four.x);
      if (four.y) add_global(to + 1, four.y);
      if (four.z) add_global(to + 2, four.z);
      if (four.w) add_global(to + 3, four.w);
    }
#else
    int channels = C + count_rows;
    for (int b = threadIdx.x; b < n * B; b += blockDim.x) {
      const u32* cell = cells + b * words + b / B * gap;
      if (!alone && !cell[0]) continue;  // no row
#pragma unroll 1
      for (int c = 0; c < channels; c++) {
        i64 sum = c == 0 ? cell[0] : c < C ? value_64(cell + 2 * c - 1) : cell[words - 1];
        if (alone) hist[(i64)b * channels + c] = sum;
        else add_global(hist + (i64)b * channels + c, sum);
      }
    }
#endif
  }
};

// Rows that a thread adds together. Beyond the tile's end they add nothing.
struct Rows {
  static const int COUNT = ROWS;
  i32 row[ROWS];
  SUM first[ROWS];  // the class, or the first moment, weighted
  i32 weight[ROWS];
#if KEPT
  u64 codes[ROWS] = {};  // of the features that are tried, a byte each
#endif

  __device__ __forceinline__ Rows(const Targets& y, const Frontier& slots, i64 i, i64 end) {
#pragma unroll
    for (int q = 0; q < ROWS; q++) {
      i64 at = i + q * blockDim.x;
      row[q] = slots.rows[at < end ? at : i];
      weight[q] = at < end ? slots.weights[at] : 0;
      first[q] = *target_of(y, row[q]) * (LABELS ? 1 : weight[q]);
    }
  }

  // Adds 2. the rows' weights, or weights and moments, and 3. counts.
  template <int N>
  __device__ __forceinline__ void add(u32* cells, const int (&at)[ROWS * N], const Targets& y,
                                      const Bin& bin) const {
#pragma unroll
    for (int i = 0; i < ROWS * N; i++)
      atomicAdd(cells + at[i] + (LABELS ? (int)first[i / N] : 0), (u32)weight[i / N]);
#if !LABELS
    i64 value[ROWS];
#pragma unroll
    for (int q = 0; q < ROWS; q++) value[q] = first[q];
#pragma unroll 1
    for (int m = 0; m < bin.C - 1; m++) {
      add_sums<ROWS * N>(cells + 1 + 2 * m, [&](int i) { return at[i]; },
                         [&](int i) { return value[i / N]; });
#pragma unroll
      for (int q = 0; q < ROWS && m + 2 < bin.C; q++)  // not target_of, to save registers
        value[q] = weight[q] * y.at[row[q] * (y.C - 1) + m + 1];
    }
#endif
#pragma unroll
    for (int i = 0; i < ROWS * N && bin.count_rows; i++)
      atomicAdd(cells + at[i] + bin.words - 1, (u32)(weight[i / N] > 0));
  }
};

// Adds a tile's rows to the histograms of n features in shared memory.
__device__ __forceinline__ void add_tile(const Codes& codes, const Targets& y, const Frontier& slots,
                                         const Tile& tile, const int2* own, int n, u32* cells,
                                         const Bin& bin, const Kept& kept) {
  for (i64 i = tile.low + threadIdx.x; i < tile.high; i += ROWS * blockDim.x) {
    Rows rows(y, slots, i, tile.high);
    add_rows(codes, rows, own, n, bin.words, cells, y, bin);
#if KEPT
#pragma unroll
    for (int q = 0; q < ROWS; q++) {
      i64 at = i + q * blockDim.x;
      if (at < tile.high) kept.codes[in_half(at, kept.half)] = rows.codes[q];
    }
#endif
  }
}

// A block fills the histograms of `group` features (blockIdx.y counts groups) from a tile of a
// slot's rows in its shared memory, u32[group][padded(B words)], and adds them to `hist`, where
// those that are used hold zeros, unless the slot has one tile only. With KEPT 1 it keeps the
// rows' codes.
extern "C" __global__ void __launch_bounds__(HISTOGRAM_THREADS, 2)
histogram(Codes codes, Targets y, Frontier slots, Tiles tiles, const i32* features, i64 group,
          i64 words, Histograms hist, Kept kept) {
  DYNAMIC_SHARED(bytes);
  __shared__ int2 own[GROUP_FEATURES];
  u32* cells = (u32*)bytes;
  Bin bin = {(int)hist.C, (int)words, hist.channels > hist.C};
  i64 k = hist.k;
  int B = (int)hist.B, width = padded(B * bin.words);
  for (i64 first = blockIdx.y * group; first < k; first += gridDim.y * group)
    for (i64 p = tiles.first[0] + blockIdx.x; p < tiles.first[tiles.S]; p += gridDim.x) {
      Tile tile = tile_of(slots, tiles, in_order(tiles, p));
      i64 at = tile.slot * k + first;
      int size = (int)(first + group < k ? group : k - first);
      int n = list_features(threadIdx.x < size ? features[at + threadIdx.x] : -1, width, own);
      if (!n) continue;  // this slot has no more features to try
      for (int i = 4 * threadIdx.x; i < size * width; i += 4 * blockDim.x)
        *(uint4*)(cells + i) = make_uint4(0, 0, 0, 0);
      __syncthreads();
      add_tile(codes, y, slots, tile, own, n, cells, bin, kept);
      __syncthreads();
      bool alone = tiles.first[tile.slot + 1] - tiles.first[tile.slot] == 1;
      bin.flush(cells, size, B, hist.cells + at * B * hist.channels, alone);
    }
}

// The same where not even one histogram fits shared memory: a block adds the rows of one feature
// (blockIdx.y counts features) to `hist` directly.
extern "C" __global__ void __launch_bounds__(THREADS)
histogram_direct(Codes codes, Targets y, Frontier slots, Tiles tiles, const i32* features,
                 Histograms hist) {
  for (i64 j = blockIdx.y; j < hist.k; j += gridDim.y)
    for (i64 p = tiles.first[0] + blockIdx.x; p < tiles.first[tiles.S]; p += gridDim.x) {
      Tile tile = tile_of(slots, tiles, p);
      i64 at = tile.slot * hist.k + j;
      int f = features[at];
      for (i64 i = tile.low + threadIdx.x; f >= 0 && i < tile.high; i += blockDim.x) {
        i64 r = slots.rows[i], w = slots.weights[i];
        const TARGET* target = target_of(y, r);
        // 1. the row's bin
        i64 b = codes.at[r * codes.stride + f];
        SUM* cell = hist.cells + (at * hist.B + b) * hist.channels;
        // 2. add its weight, or weight and moments
#if LABELS
        add_global(cell + *target, (SUM)w);
#else
        add_global(cell, w);
        for (int m = 0; m < outputs(y.C); m++) add_global(cell + 1 + m, w * target[m]);
#endif
        // 3. count it
        if (hist.channels > hist.C) add_global(cell + hist.C, 1);
      }
    }
}
