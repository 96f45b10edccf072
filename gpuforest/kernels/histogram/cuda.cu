// Histograms on the device. The specification is numpy.py beside this file.
#include "cuda.cuh"

#define MOST_FEATURES 64  // of a group, whose histograms share a block's memory

// 2. a row's weight, or weight and moments, and 3. its count, to a bin in shared memory:
// C classes, or a weight and two words a moment; then the count.
__device__ __forceinline__ void add_shared(u32* cell, const TARGET* target, i64 w, int C,
                                           bool count_rows) {
#if LABELS
  atomicAdd(cell + *target, (u32)w);
  if (count_rows) atomicAdd(cell + C, 1u);
#else
  atomicAdd(cell, (u32)w);
  for (int m = 0; m < C - 1; m++) add_64(cell + 1 + 2 * m, w * target[m]);
  if (count_rows) atomicAdd(cell + 2 * C - 1, 1u);
#endif
}

// The same to a bin i64[channels] in global memory.
__device__ __forceinline__ void add_direct(i64* cell, const TARGET* target, i64 w, int C,
                                           bool count_rows) {
#if LABELS
  add_global(cell + *target, w);
#else
  add_global(cell, w);
  for (int m = 0; m < C - 1; m++) add_global(cell + 1 + m, w * target[m]);
#endif
  if (count_rows) add_global(cell + C, 1);
}

// What is not zero of `bins` bins in shared memory, to global ones.
__device__ __forceinline__ void flush(const u32* cells, i64 bins, int C, bool count_rows,
                                      i64* hist) {
  int channels = C + count_rows, size = (LABELS ? C : 2 * C - 1) + count_rows;
  for (i64 i = threadIdx.x; i < bins * channels; i += blockDim.x) {
    i64 bin = i / channels;
    int c = (int)(i - bin * channels);
    const u32* cell = cells + bin * size;
    i64 value;
    if (c == C) value = cell[size - 1];
    else value = LABELS || c == 0 ? cell[c] : value_64(cell + 2 * c - 1);
    if (value) add_global(hist + i, value);
  }
}

// A block fills the histograms of `group` features (blockIdx.y counts groups) from a tile
// of a slot's rows in its shared memory, [group][B], and adds them to hist
// i64[S, k, B, channels], whose used parts hold zeros. With group 0 a histogram does not
// fit: each block adds one feature's rows to `hist` itself.
extern "C" __global__ void __launch_bounds__(256, 4)
histogram(const CODE* codes, const TARGET* y, const i32* rows, const i32* weights,
          const i64* begin, const i64* end, const i32* features, i64 B, i64 C, i64 count_rows,
          i64 stride, i64 k, const i64* first_tile, i64 S, i64 tile, i64 group, i64* hist) {
  DYNAMIC_SHARED(bytes);
  __shared__ i32 own[MOST_FEATURES];
  u32* cells = (u32*)bytes;
  int K = LABELS ? 1 : (int)C - 1, channels = (int)(C + count_rows);
  int size = (LABELS ? (int)C : 2 * (int)C - 1) + (int)count_rows;
  i64 each = group ? group : 1;
  for (i64 first = blockIdx.y * each; first < k; first += gridDim.y * each)
    for (i64 p = first_tile[0] + blockIdx.x; p < first_tile[S]; p += gridDim.x) {
      i64 s = slot_of(first_tile, S, p), low = begin[s] + (p - first_tile[s]) * tile;
      i64 high = low + tile < end[s] ? low + tile : end[s];
      int n = (int)(first + each < k ? each : k - first), f = -1;
      if (threadIdx.x < n) own[threadIdx.x] = f = features[s * k + first + threadIdx.x];
      if (!__syncthreads_or(f >= 0)) continue;  // nothing to try in this slot any more
      for (i64 i = threadIdx.x; group && i < n * B * size; i += blockDim.x) cells[i] = 0;
      __syncthreads();
      for (i64 i = low + threadIdx.x; i < high; i += blockDim.x) {
        i64 r = rows[i], w = weights[i];
        const TARGET* target = y + r * K;
        // neighbouring lanes begin with different features, so they meet in fewer cells
        for (int step = 0, j = lane() % n; step < n; step++, j = j + 1 == n ? 0 : j + 1) {
          if (own[j] < 0) continue;
          // 1. the row's bin
          i64 b = codes[r * stride + own[j]];
          if (group) add_shared(cells + (j * B + b) * size, target, w, (int)C, count_rows);
          else add_direct(hist + ((s * k + first + j) * B + b) * channels, target, w, (int)C,
                          count_rows);
        }
      }
      __syncthreads();
      if (group) flush(cells, n * B, (int)C, count_rows, hist + (s * k + first) * B * channels);
      __syncthreads();
    }
}
