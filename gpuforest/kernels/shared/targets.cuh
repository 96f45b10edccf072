// Where a row's targets lie.
#include "shared/cuda.cuh"
#include "generated/Targets.cuh"

static_assert(LABELS ? sizeof(TARGET) <= 4 : sizeof(TARGET) == 8, "a type of other targets");

__device__ __forceinline__ const TARGET* target_of(const Targets& y, i64 row) {
  // moments lie close: to know it saves registers
  return LABELS ? y.at + y.first + row * (int)y.stride : y.at + row * outputs(y.C);
}
