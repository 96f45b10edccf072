// What the search leaves of each feature of a slot, besides its score: -1 if the feature was not
// tried, and otherwise its cut and these bits.
#include "shared/cuda.cuh"

#define FOUND_CUT 0xfffff
#define FOUND_MISSING_LEFT 20
#define FOUND_VARIES 21

__device__ __forceinline__ bool found_varies(int found) {
  return found >= 0 && found >> FOUND_VARIES & 1;
}
