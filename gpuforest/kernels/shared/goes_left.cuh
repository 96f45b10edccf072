// The rule by which rows go left, for all CUDA kernels.
#include "shared/cuda.cuh"

// Whether a row of this code goes left: by missing_left if its value is missing, else if its code
// is at most the bin.
__device__ __forceinline__ bool goes_left(int code, int bin, bool missing_left, int missing) {
  return code == missing ? missing_left : code <= bin;
}

// The same for splits that may be by a set: with bin SET_BIN, the codes in the set go left. `set()`
// returns the words of the set, bit c for code c. Chains of multiway splits have such sets too.
template <class Set>
__device__ __forceinline__ bool goes_left(int code, int bin, bool missing_left, int missing,
                                          Set set) {
#if SETS
  if (bin == SET_BIN && code != missing) return set()[code >> 6] >> (code & 63) & 1;
#endif
  return goes_left(code, bin, missing_left, missing);
}
