// The distinct rows of a leaf table on the device. The specification is backends/slots.py.
//
// Numbers that depend on all earlier rows take two launches, as in kernels/slots.
#include "shared/cuda.cuh"
#include "shared/scans.cuh"
#include "shared/hashing.cuh"

// A hash of each row: keys u64[V] of sums i64[V, C].
extern "C" __global__ void __launch_bounds__(THREADS)
row_keys(const i64* sums, i64 V, i64 C, u64* keys) {
  for (i64 v = thread_number(); v < V; v += thread_count()) {
    u64 key = 0;
    for (i64 c = 0; c < C; c++) key += (u64)sums[v * C + c] * (hash_at(0, c) | 1);
    keys[v] = key;
  }
}

// Whether the row at position i of `order` is the first of its key.
__device__ __forceinline__ bool is_first(const u64* keys, const i64* order, i64 i) {
  return i == 0 || keys[order[i]] != keys[order[i - 1]];
}

// The distinct keys u64[V] that begin in each block's span of `order` i64[V], which sorts them:
// counts i64[blocks].
extern "C" __global__ void __launch_bounds__(THREADS)
count_keys(const u64* keys, const i64* order, i64 V, i64 span, i64* counts) {
  __shared__ i64 shared[THREADS / 32];
  i64 low = blockIdx.x * span, high = low + span < V ? low + span : V, n = 0;
  for (i64 i = low + threadIdx.x; i < high; i += blockDim.x) n += is_first(keys, order, i);
  n = block_sum(n, shared);
  if (threadIdx.x == 0) counts[blockIdx.x] = n;
}

// The number of each row's key among the distinct ones, i64[V], and a row of each: some i64[...].
// `other` i32[1] becomes zero, for distinct_rows.
extern "C" __global__ void __launch_bounds__(THREADS)
number_keys(const u64* keys, const i64* order, i64 V, i64 span, const i64* counts, i64* number,
            i64* some, i32* other) {
  __shared__ i64 shared[THREADS / 32];
  i64 low = blockIdx.x * span, high = low + span < V ? low + span : V;
  i64 before = before_block(counts, shared);
  if (blockIdx.x == 0 && threadIdx.x == 0) *other = 0;
#pragma unroll 1
  for (i64 at = low; at < high; at += blockDim.x) {
    i64 i = at + threadIdx.x;
    bool first = i < high && is_first(keys, order, i);
    i64 total, own = before + block_sum_to_here(first, shared, total) - 1;
    before += total;
    if (i < high) number[order[i]] = own;
    if (first) some[own] = order[i];
  }
}

// The rows `some` i64[n] of sums i64[V, C]: table i64[n, C]; and whether some row of sums is another
// than that of its number, which has the same key.
extern "C" __global__ void __launch_bounds__(THREADS)
distinct_rows(const i64* sums, i64 V, i64 C, const i64* number, const i64* some, i64 n, i64* table,
              i32* other) {
  bool found = false;
  for (i64 v = thread_number(); v < V; v += thread_count()) {
    const i64 *own = sums + v * C, *same = sums + some[number[v]] * C;
    for (i64 c = 0; c < C; c++) found = found || own[c] != same[c];
    if (v >= n) continue;
    const i64* from = sums + some[v] * C;
    for (i64 c = 0; c < C; c++) table[v * C + c] = from[c];
  }
  if (found) atomicOr(other, 1);
}
