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

// The largest x of all threads, which all of them get; none is below zero.
template <class T>
__device__ __forceinline__ T block_max(T x, T* parts) {
  x = warp_max(x);
  if (lane() == 0) parts[warp()] = x;
  __syncthreads();
  T part = lane() < (int)blockDim.x >> 5 ? parts[lane()] : 0;
  __syncthreads();
  return warp_max(part);
}

// The sum of what earlier blocks counted, sums i64[blocks]; null if there is one block only.
__device__ __forceinline__ i64 before_block(const i64* sums, i64* shared) {
  i64 before = 0;
  if (!sums) return before;
  for (i64 b = threadIdx.x; b < blockIdx.x; b += blockDim.x) before += sums[b];
  return block_sum(before, shared);
}

// The last of n parts that begins at `item` or before it; parts may be empty. first i64[n].
__device__ __forceinline__ i64 part_of(const i64* first, i64 n, i64 item) {
  i64 p = 0, end = n;
  while (p + 1 < end) {
    i64 middle = (p + end) >> 1;
    if (first[middle] <= item) p = middle;
    else end = middle;
  }
  return p;
}
