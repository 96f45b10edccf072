// Real values as doubles, which hold any float.
#include "shared/cuda.cuh"

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
