// Which way a row goes at a split: the one answer of all CUDA kernels.
#include "shared/cuda.cuh"

// A row of this code in the split's feature: missing values have a side, codes up to the bin go
// left.
__device__ __forceinline__ bool goes_left(int code, int bin, bool missing_left, int missing) {
  return code == missing ? missing_left : code <= bin;
}

// The same where the split may be by a set: of bin SET_BIN codes go left that are in it, bit after
// bit, and `set()` is asked where it lies. Chains of a multiway split are such sets too.
template <class Set>
__device__ __forceinline__ bool goes_left(int code, int bin, bool missing_left, int missing,
                                          Set set) {
#if SETS
  if (bin == SET_BIN && code != missing) return set()[code >> 6] >> (code & 63) & 1;
#endif
  return goes_left(code, bin, missing_left, missing);
}
