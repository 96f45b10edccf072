// Walking down trees on the device. The specification is numpy.py beside this file, the
// packing of nodes in nodes.py.
#include "cuda.cuh"

#define LEAF_WORD 0xffff800000000000ull
#define TREES 32  // whose leaves a block keeps at once

// The number in its tree of the leaf that a row of codes reaches. With SETS 1 the sets of the
// tree's splits by categories begin at set_at i64[...] in `sets`.
__device__ __forceinline__ i64 walk(const u64* tree, const CODE* row, i64 missing,
                                    const i64* set_at, const u64* sets) {
  i64 at = 0;
  for (u64 word = tree[0]; word < LEAF_WORD; word = tree[at]) {
    i64 code = row[word >> 47];
    bool left = code == missing ? word >> 46 & 1 : code <= (i64)(word & 0xffff);
#if SETS
    if ((word & 0xffff) == SET_BIN && code != missing) left = has_code(sets + set_at[at], code);
#endif
    at = (i64)(word >> 16 & 0x3fffffff) + !left;
  }
  return at;
}

// A block takes 32 rows; a warp takes them down one tree after another.
extern "C" __global__ void __launch_bounds__(256)
apply(const u64* nodes, const i64* offsets, const CODE* codes, i64 missing, const i64* set_at,
      const u64* sets, i64 N, i64 stride, i64 T, i64* out) {
  for (i64 first = (i64)blockIdx.x * 32; first < N; first += (i64)gridDim.x * 32) {
    i64 r = first + lane();
    for (i64 t = warp(); t < T && r < N; t += blockDim.x >> 5)
      out[r * T + t] =
          walk(nodes + offsets[t], codes + r * stride, missing, set_at + offsets[t], sets);
  }
}

// Warps walk, then each thread adds one value of one row, tree after tree in their order.
// skip bool[T, N] where `skips`; values f64[V, n_values]; total f64[N, n_values].
extern "C" __global__ void __launch_bounds__(256)
accumulate(const u64* nodes, const i64* offsets, const double* values, const CODE* codes,
           i64 missing, const i64* set_at, const u64* sets, const bool* skip, i64 skips, i64 N,
           i64 stride, i64 T, i64 n_values, double* total) {
  __shared__ i64 leaves[TREES][32];
  for (i64 first = (i64)blockIdx.x * 32; first < N; first += (i64)gridDim.x * 32) {
    i64 r = first + lane(), n = N - first < 32 ? N - first : 32;
    for (i64 begin = 0; begin < T; begin += TREES) {
      int trees = (int)(T - begin < TREES ? T - begin : TREES);
      for (int j = warp(); j < trees && r < N; j += blockDim.x >> 5) {
        i64 t = begin + j, leaf = -1;
        if (!skips || !skip[t * N + r]) {
          const u64* tree = nodes + offsets[t];
          i64 at = walk(tree, codes + r * stride, missing, set_at + offsets[t], sets);
          leaf = (i64)(tree[at] & 0x7fffffffffffull);
        }
        leaves[j][lane()] = leaf;
      }
      __syncthreads();
      for (i64 i = threadIdx.x; i < n * n_values; i += blockDim.x) {
        i64 row = i / n_values, v = i - row * n_values;
        double sum = total[(first + row) * n_values + v];
        for (int j = 0; j < trees; j++) {
          i64 leaf = leaves[j][row];
          if (leaf >= 0) sum = sum + values[leaf * n_values + v];
        }
        total[(first + row) * n_values + v] = sum;
      }
      __syncthreads();
    }
  }
}
