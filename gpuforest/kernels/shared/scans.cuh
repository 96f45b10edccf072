// Sums over the threads of a block. All of them call; `sums` is shared, with an element a warp.
#include "shared/cuda.cuh"

// The sum over the threads up to this one; `total` is that of all threads.
__device__ __forceinline__ i64 block_sum_to_here(i64 x, i64* sums, i64& total) {
  x = sum_to_here(x);
  if (lane() == 31) sums[warp()] = x;
  __syncthreads();
  total = 0;
  for (int w = 0; w < (int)blockDim.x >> 5; w++) {
    if (w == warp()) x += total;
    total += sums[w];
  }
  __syncthreads();
  return x;
}

// The sum over all threads, which all of them get.
__device__ __forceinline__ i64 block_sum(i64 x, i64* sums) {
  i64 total;
  block_sum_to_here(x, sums, total);
  return total;
}
