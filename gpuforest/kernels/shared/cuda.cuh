// What all CUDA kernels share: names of types, and functions of a whole warp or block.
//
// Kernels are specialised by macros: CODE (u8 or u16), LABELS (1: class codes, 0: moments)
// or CRITERION (the number in criteria.py, which decides LABELS), TARGET (the type of targets in
// memory: u8, u16 or i32 of class codes, i64 of moments), SETS (1: some features are
// categorical). Blocks have one dimension. Products and sums of doubles must not be fused:
// compile with --fmad=false.
#include "generated/constants.cuh"

typedef signed char i8;
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef int i32;
typedef unsigned long long u64;
typedef long long i64;

#ifdef CRITERION
#define LABELS (CRITERION < SQUARED_ERROR)
#endif
#ifdef LABELS
#if LABELS
typedef i32 SUM;  // of a channel, the class code: total weights stay below 2^31
#else
typedef i64 SUM;  // of fixed-point numbers; channel 0 is the weight
#endif
#endif

#ifdef LABELS
__device__ __forceinline__ int outputs(i64 C) { return LABELS ? 1 : (int)C - 1; }  // K
#endif

#ifndef DYNAMIC_SHARED
#define DYNAMIC_SHARED(name) extern __shared__ __align__(16) unsigned char name[]
#endif

#define ALL_LANES 0xffffffffu

__device__ __forceinline__ int lane() { return threadIdx.x & 31; }
__device__ __forceinline__ int warp() { return threadIdx.x >> 5; }
__device__ __forceinline__ u32 lanes_below() { return (1u << lane()) - 1; }
__device__ __forceinline__ i64 thread_number() {
  return (i64)blockIdx.x * blockDim.x + threadIdx.x;
}
__device__ __forceinline__ i64 thread_count() { return (i64)gridDim.x * blockDim.x; }

// The sum over the lanes up to this one, in each group of `width` lanes, a power of two.
template <class T>
__device__ __forceinline__ T sum_to_here(T x, int width = 32) {
  int i = lane() & (width - 1);
  for (int d = 1; d < width; d <<= 1) {
    T before = __shfl_up_sync(ALL_LANES, x, d, width);
    if (i >= d) x += before;
  }
  return x;
}

// The sum over each group of `width` lanes, a power of two; all of them get it.
template <class T>
__device__ __forceinline__ T warp_sum(T x, int width = 32) {
  for (int d = width >> 1; d > 0; d >>= 1) x += __shfl_xor_sync(ALL_LANES, x, d);
  return x;
}

// The greatest x of the lanes of a warp; all of them get it.
template <class T>
__device__ __forceinline__ T warp_max(T x) {
  for (int d = 16; d > 0; d >>= 1) {
    T other = __shfl_xor_sync(ALL_LANES, x, d);
    x = other > x ? other : x;
  }
  return x;
}

// Raises a number to the largest of a warp's.
__device__ __forceinline__ void raise_to(u64* most, u64 own) {
  own = warp_max(own);
  if (lane() == 0) atomicMax(most, own);
}

// The highest score of the first `width` lanes, a power of two, and the lowest number `at` of those
// that have it; lanes from `width` on may get another.
template <class T>
__device__ __forceinline__ void first_highest(double& score, T& at, int width = 32) {
  for (int d = width >> 1; d > 0; d >>= 1) {
    double other = __shfl_xor_sync(ALL_LANES, score, d);
    T other_at = __shfl_xor_sync(ALL_LANES, at, d);
    if (other > score || (other == score && other_at < at)) {
      score = other;
      at = other_at;
    }
  }
}

// How many threads of some warps before this one have the flag, and in `total`, how many have it.
// All of these threads call it, this one in warp `own` of theirs, and wait for each other by `sync`;
// `counts` is shared, with an element for each warp.
template <class Sync>
__device__ __forceinline__ int rank_in(bool flag, u32* counts, int own, int warps, Sync sync,
                                       int& total) {
  u32 mine = __ballot_sync(ALL_LANES, flag);
  if (lane() == 0) counts[own] = __popc(mine);
  sync();
  int before = 0;
  total = 0;
  for (int w = 0; w < warps; w++) {
    before += w < own ? counts[w] : 0;
    total += counts[w];
  }
  sync();
  return before + __popc(mine & lanes_below());
}

// The same of all threads of the block.
__device__ __forceinline__ int block_rank(bool flag, u32* counts, int& total) {
  return rank_in(flag, counts, warp(), (int)blockDim.x >> 5, [] { __syncthreads(); }, total);
}

// The first number from `low` on that `holds` is true of, as it is of all above; else `high`.
template <class T, class Holds>
__device__ __forceinline__ T first_of(T low, T high, Holds holds) {
  while (low < high) {
    T middle = (low + high) >> 1;
    if (holds(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}

// The number of lanes for n items: n rounded up to a power of two, at most 32.
__device__ __forceinline__ int lanes_for(int n) {
  return n > 16 ? 32 : n < 2 ? 1 : 1 << (32 - __clz(n - 1));
}

// Adds to the lower word of a 64-bit sum in shared memory, and returns what is to be added to the
// higher word: two native 32-bit adds, because a 64-bit add is a loop there.
__device__ __forceinline__ u32 add_low(u32* cell, i64 value) {
  u32 low = (u32)value;
  return (u32)((u64)value >> 32) + ((u32)(atomicAdd(cell, low) + low) < low);
}

__device__ __forceinline__ i64 value_64(const u32* cell) {
  return (i64)((u64)cell[1] << 32 | cell[0]);
}

__device__ __forceinline__ void add_global(i64* cell, i64 value) {
  atomicAdd((u64*)cell, (u64)value);
}

__device__ __forceinline__ void add_global(i32* cell, i32 value) { atomicAdd(cell, value); }

// Real values as doubles, which hold any float.
// CuPy compiles with -ftz=true, with which a cast would turn subnormal numbers into zeros.
__device__ __forceinline__ double widened(float x) {
#ifdef CUDA_ON_CPU
  return x;
#else
  double wide;
  asm("cvt.f64.f32 %0, %1;" : "=d"(wide) : "f"(x));
  return wide;
#endif
}
__device__ __forceinline__ double widened(double x) { return x; }
