// Encode on the device. The specification is numpy.py beside this file.
// VALUE: float or double; a thread for each value. codes [N, stride], padded.
#include "shared/cuda.cuh"

extern "C" __global__ void __launch_bounds__(THREADS)
encode(const VALUE* X, const double* edges, const i64* offsets, i64 missing, i64 N, i64 F,
       i64 stride, CODE* codes) {
  for (i64 i = thread_number(); i < N * F; i += thread_count()) {
    i64 r = i / F, f = i - r * F, low = offsets[f], first = low, high = offsets[f + 1];
    double x = widened(X[i]);
    // 1. the edges below the value
    while (low < high) {
      i64 middle = (low + high) >> 1;
      if (edges[middle] < x) low = middle + 1;
      else high = middle;
    }
    // 2. missing values
    codes[r * stride + f] = (CODE)(x != x ? missing : low - first);
  }
}
