// The rules by which rows go left at splits of every kind, for all CUDA kernels.
#include "shared/cuda.cuh"

#define HOLE (-2147483647 - 1)  // the sum of a combination of features of which a value is missing

// Whether a row of this code goes left: by missing_left if its value is missing, else if its code
// is at most the bin.
__device__ __forceinline__ bool goes_left(int code, int bin, bool missing_left, int missing) {
  return code == missing ? missing_left : code <= bin;
}

// The same for splits that may be by a set: with bin SET_BIN, the codes in the set go left. `set()`
// returns the words of the set, bit c for code c.
template <class Set>
__device__ __forceinline__ bool goes_left(int code, int bin, bool missing_left, int missing,
                                          Set set) {
#if SETS
  if (bin == SET_BIN && code != missing) return set()[code >> 6] >> (code & 63) & 1;
#endif
  return goes_left(code, bin, missing_left, missing);
}

// The feature of a term of a combination, and its weight: see core/terms.py.
__device__ __forceinline__ int feature_in(u32 term) { return (int)(term >> WEIGHT_BITS); }
__device__ __forceinline__ int weight_in(u32 term) {
  return (int)(term & ((1u << WEIGHT_BITS) - 1)) - WEIGHT_ZERO;
}

// The number of features that a split of this bin adds up; 0 or less if it tests one alone.
__device__ __forceinline__ int n_summed(int bin) { return bin < SET_BIN ? bin - OBLIQUE_BIN : 0; }

// Whether a row goes left at a split by the combination of n features in `words`: by missing_left
// if one of its values is missing. `code_of(f)` returns its code in feature f; coordinates i32[F, B].
template <class CodeOf>
__device__ __forceinline__ bool sum_goes_left(const u64* words, int n, bool missing_left,
                                              const i32* coordinates, i64 B, CodeOf code_of) {
  int total = 0;
  for (int i = 0; i < n; i++) {
    u32 term = (u32)(words[(i + 1) >> 1] >> (i & 1 ? 0 : 32));
    int f = feature_in(term), code = code_of(f);
    if (code == (int)B - 1) return missing_left;
    total += weight_in(term) * coordinates[f * B + code];
  }
  return total <= (int)(u32)words[0];
}
