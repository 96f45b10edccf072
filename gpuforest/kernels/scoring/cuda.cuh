// The scores of gpuforest/criteria.py: the same operations on doubles in the same order.
#include "cuda.cuh"

#define MINUS_INFINITY (-1.0 / 0.0)
#define XLOGX_PLACES 4096  // n ln n of small n comes from a table, see backends/cuda_kernels.py

__device__ __forceinline__ double log_int(i64 n) {
  const double atanh[10] = {2.0,       2.0 / 3,  2.0 / 5,  2.0 / 7,  2.0 / 9,
                            2.0 / 11, 2.0 / 13, 2.0 / 15, 2.0 / 17, 2.0 / 19};
  int e = 63 - __clzll(n);
  double m = (double)n / (double)(1ll << e);
  if (m > 1.4142135623730951) {
    m = m * 0.5;
    e++;
  }
  double t = (m - 1.0) / (m + 1.0), t2 = t * t, series = atanh[9];
#pragma unroll
  for (int i = 8; i >= 0; i--) series = series * t2 + atanh[i];
  return (double)e * 0.6931471805599453 + t * series;
}

__device__ __forceinline__ i64 xlogx(i64 n, const i64* table) {
  if (n < XLOGX_PLACES) return table[n];
  return (i64)floor((double)n * log_int(n) * 67108864.0 + 0.5);
}

// A set of rows: its channel sums are added one channel after another, then scored.
struct Side {
  i64 n = 0;
#if LABELS
  i64 sum = 0;  // of squares or of n ln n; the largest
#else
  double sum = 0.0;
  bool allowed = true;
#endif

  __device__ __forceinline__ void add(int channel, i64 s, const i64* table) {
#if LABELS
    n += s;
#if CRITERION == GINI
    sum += s * s;
#elif CRITERION == ENTROPY
    sum += xlogx(s, table);
#else
    sum = s > sum ? s : sum;
#endif
#else
    if (channel == 0) {
      n = s;
      return;
    }
#if CRITERION == SQUARED_ERROR
    sum = sum + (double)s * (double)s;
#else
#if CRITERION == POISSON
    allowed = allowed && s > 0;
#endif
    if (s > 0 && n > 0) sum = sum + (double)s * (log_int(s) - log_int(n));
#endif
#endif
  }

  __device__ __forceinline__ double score(const i64* table) const {
#if CRITERION == GINI || CRITERION == SQUARED_ERROR
    return (double)sum / (double)n;
#elif CRITERION == ENTROPY
    return (double)(sum - xlogx(n, table));
#elif CRITERION == MISCLASSIFICATION
    return (double)sum;
#else
    return allowed ? sum : MINUS_INFINITY;
#endif
  }
};
