// Encode on the device. The specification is numpy.py beside this file.
// VALUE: float or double; a thread for each value. codes [N, stride], padded.
#include "shared/cuda.cuh"

extern "C" __global__ void __launch_bounds__(THREADS)
encode(const VALUE* X, const double* edges, const i64* offsets, i64 missing, i64 N, i64 F,
       i64 stride, CODE* codes) {
  for (i64 i = thread_number(); i < N * F; i += thread_count()) {
    i64 r = i / F, f = i - r * F, first = offsets[f];
    double x = widened(X[i]);
    // 1. the edges below the value
    i64 at = first_of(first, offsets[f + 1], [&](i64 e) { return !(edges[e] < x); });
    // 2. missing values
    codes[r * stride + f] = (CODE)(x != x ? missing : at - first);
  }
}
