// The rows of a leaf table on the device. The specification is gpuforest/leaf_rows.py.
#include "shared/cuda.cuh"
#include "shared/hashing/cuda.cuh"

// A hash of each row: keys u64[V] of sums i64[V, C].
extern "C" __global__ void __launch_bounds__(THREADS)
row_keys(const i64* sums, i64 V, i64 C, u64* keys) {
  for (i64 v = thread_number(); v < V; v += thread_count()) {
    u64 key = 0;
    for (i64 c = 0; c < C; c++) key += (u64)sums[v * C + c] * (hash_at(0, c) | 1);
    keys[v] = key;
  }
}

// Whether some row of sums i64[V, C] is not row number[v] of the table: found i32[1] holds zero,
// and becomes 1.
extern "C" __global__ void __launch_bounds__(THREADS)
rows_differ(const i64* table, const i64* number, const i64* sums, i64 V, i64 C, i32* found) {
  bool other = false;
  for (i64 v = thread_number(); v < V; v += thread_count())
    for (i64 c = 0; c < C; c++) other = other || table[number[v] * C + c] != sums[v * C + c];
  if (other) atomicOr(found, 1);
}
