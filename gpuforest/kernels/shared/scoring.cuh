// The scores of core/criteria.py: the same operations on doubles in the same order.
#include "shared/cuda.cuh"

#define MINUS_INFINITY (-1.0 / 0.0)

__device__ __forceinline__ double log_int(i64 n) {
  const double atanh[] = ATANH;
  const int last = sizeof(atanh) / sizeof(double) - 1;
  int e = 63 - __clzll(n);
  double m = (double)n / (double)(1ll << e);
  if (m > SQRT2) {
    m = m * 0.5;
    e++;
  }
  double t = (m - 1.0) / (m + 1.0), t2 = t * t, series = atanh[last];
#pragma unroll
  for (int i = last - 1; i >= 0; i--) series = series * t2 + atanh[i];
  return (double)e * LN2 + t * series;
}

__device__ __forceinline__ i64 xlogx(i64 n, const i64* table) {
  if (n < XLOGX_TABLE_SIZE) return table[n];
  return (i64)floor((double)n * log_int(n) * XLOGX_SCALE + 0.5);
}

// One side of a split: its channel sums are added one channel after another, then scored.
struct Side {
  SUM n = 0;
#if LABELS
  i64 sum = 0;  // of squares or of n ln n; the largest
#else
  double sum = 0.0;
  bool allowed = true;
#endif

  __device__ __forceinline__ void add(int channel, SUM s, const i64* table) {
#if LABELS
    n += s;
#if CRITERION == GINI
    sum += (i64)s * s;
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
