// The rule by which rows go left at splits by combinations of features: see splits/oblique/terms.py.
#include "shared/cuda.cuh"

#define HOLE (-2147483647 - 1)  // the sum of a combination of which a value is missing

// The feature of a term, and its weight.
__device__ __forceinline__ int feature_in(u32 term) { return (int)(term >> WEIGHT_BITS); }
__device__ __forceinline__ int weight_in(u32 term) {
  return (int)(term & ((1u << WEIGHT_BITS) - 1)) - WEIGHT_ZERO;
}

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

// Whether a split of this bin is by a combination, in a forest that may have such splits.
__device__ __forceinline__ bool is_combined(int bin) { return bin > OBLIQUE_BIN && bin < SET_BIN; }
