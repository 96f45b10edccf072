// Histograms on the device. The specification is numpy.py beside this file.
#include "cuda.cuh"

#define MOST_FEATURES 64  // of a group, whose histograms share a block's memory

// A block fills the histograms of `group` features (blockIdx.y counts groups) from a tile
// of a slot's rows in its shared memory,
//
//     [group][B][cells]    cells: C classes, or a weight and two words a moment; row count
//
// and adds what is not zero to hist i64[S, k, B, channels], which holds zeros. With group 0
// a histogram does not fit: each block adds one feature's rows to `hist` itself.
extern "C" __global__ void __launch_bounds__(256, 4)
histogram(const CODE* codes, const TARGET* y, const i32* rows, const i32* weights,
          const i64* begin, const i64* end, const i32* features, i64 B, i64 C, i64 count_rows,
          i64 stride, i64 k, const i64* first_tile, i64 S, i64 tile, i64 group, i64* hist) {
  DYNAMIC_SHARED(bytes);
  __shared__ i32 own[MOST_FEATURES];
  u32* cells = (u32*)bytes;
  int K = (int)C - 1, channels = (int)(C + count_rows);
  int width = LABELS ? (int)C : 1 + 2 * K, size = width + (int)count_rows;
  i64 first = blockIdx.y * (group ? group : 1);
  int n = (int)(group == 0 ? 1 : first + group < k ? group : k - first);
  for (i64 p = first_tile[0] + blockIdx.x; p < first_tile[S]; p += gridDim.x) {
    i64 s = slot_of(first_tile, S, p), low = begin[s] + (p - first_tile[s]) * tile;
    i64 high = low + tile < end[s] ? low + tile : end[s];
    bool mine = threadIdx.x < n && features[s * k + first + threadIdx.x] >= 0;
    if (threadIdx.x < n) own[threadIdx.x] = features[s * k + first + threadIdx.x];
    if (group)
      for (i64 i = threadIdx.x; i < n * B * size; i += blockDim.x) cells[i] = 0;
    if (!__syncthreads_or(mine)) continue;  // nothing to try in this slot any more
    for (i64 i = low + threadIdx.x; i < high; i += blockDim.x) {
      i64 r = rows[i], w = weights[i];
      // neighbouring lanes begin with different features, so they meet in fewer cells
      for (int step = 0, j = lane() % n; step < n; step++, j = j + 1 == n ? 0 : j + 1) {
        if (own[j] < 0) continue;
        // 1. the row's bin
        i64 b = codes[r * stride + own[j]];
        // 2. its weight, or weight and moments
        if (group) {
          u32* cell = cells + (j * B + b) * size;
#if LABELS
          atomicAdd(cell + y[r], (u32)w);
#else
          atomicAdd(cell, (u32)w);
          for (int m = 0; m < K; m++) add_64(cell + 1 + 2 * m, w * y[r * K + m]);
#endif
          // 3. its count
          if (count_rows) atomicAdd(cell + width, 1u);
        } else {
          i64* cell = hist + ((s * k + first + j) * B + b) * channels;
#if LABELS
          add_global(cell + y[r], w);
#else
          add_global(cell, w);
          for (int m = 0; m < K; m++) add_global(cell + 1 + m, w * y[r * K + m]);
#endif
          if (count_rows) add_global(cell + C, 1);
        }
      }
    }
    __syncthreads();
    i64* out = hist + (s * k + first) * B * channels;
    for (i64 i = threadIdx.x; group && i < n * B * channels; i += blockDim.x) {
      i64 bin = i / channels;
      int c = (int)(i - bin * channels);
      const u32* cell = cells + bin * size;
      i64 value = c == C ? cell[width] : LABELS || c == 0 ? cell[c] : value_64(cell + 2 * c - 1);
      if (value) add_global(out + i, value);
    }
    __syncthreads();
  }
}
