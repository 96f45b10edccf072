// Doubles by their bits, and what boosting does with them.
#include "shared/cuda.cuh"

// The bits of the size of x, which have the order of these sizes.
__device__ __forceinline__ u64 size_bits(double x) {
  return (u64)__double_as_longlong(fabs(x));
}

// As math.frexp's exponent of a number > 0, from its bits.
__device__ __forceinline__ int exponent_of(u64 bits) {
  return bits >> 52 ? (int)(bits >> 52) - 1022 : -1010 - __clzll((i64)bits);
}

__device__ __forceinline__ double cut_off(double value, double low, double high) {
  value = low > value ? low : value;
  return high < value ? high : value;
}
