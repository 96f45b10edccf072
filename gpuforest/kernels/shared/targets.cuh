// Where a row's targets lie.
#include "shared/cuda.cuh"
#include "generated/Targets.cuh"

static_assert(LABELS ? sizeof(TARGET) <= 4 : sizeof(TARGET) == 8, "a type of other targets");

__device__ __forceinline__ const TARGET* target_of(const Targets& y, i64 row) {
  // moments lie close: to know it saves registers
  return LABELS ? y.at + y.first + row * (int)y.stride : y.at + row * outputs(y.C);
}

// What a row of this target and this weight adds to channel c.
__device__ __forceinline__ SUM added(const TARGET* target, SUM w, int c) {
  return LABELS ? (*target == c ? w : 0) : c == 0 ? w : w * (SUM)target[c - 1];
}
