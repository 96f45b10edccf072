// Walking down trees on the device. The specification is numpy.py beside this file, the
// packing of nodes in nodes.py.
#include "shared/goes_left.cuh"
#include "generated/Codes.cuh"
#include "generated/Trees.cuh"

#define TREES 32  // a block keeps the leaves of so many trees at once

// The number of the leaf that row r reaches in tree t. With SETS 1, nodes may be splits by a set,
// with SUMS 1 also by a combination of features.
__device__ __forceinline__ int walk(const Trees& trees, int t, const Codes& codes, i64 r) {
  const u64* tree = trees.nodes + trees.offsets[t];
  const CODE* row = codes.at + r * codes.stride;
  const i64* set_at = trees.set_at + trees.offsets[t];
  int at = 0;
  for (u64 word = tree[0]; word < LEAF_WORD; word = tree[at]) {
    int code = row[word >> FEATURE_SHIFT], bin = (int)(word & BIN_MASK);
    auto set = [&] { return trees.sets + set_at[at]; };
    bool missing_left = word >> MISSING_SHIFT & 1;
    bool left = goes_left(code, bin, missing_left, (int)codes.B - 1, set);
    if (SUMS && n_summed(bin) > 0)
      left = sum_goes_left(set(), n_summed(bin), missing_left, trees.coordinates, codes.B,
                           [&](int f) { return (int)row[f]; });
    at = (int)(word >> CHILD_SHIFT & CHILD_MASK) + !left;
  }
  return at;
}

// A block takes 32 rows; each of its warps walks them down one tree after another. out i64[N, T].
extern "C" __global__ void __launch_bounds__(THREADS)
apply(Trees trees, Codes codes, i64 N, i64* out) {
  for (i64 first = (i64)blockIdx.x * 32; first < N; first += (i64)gridDim.x * 32) {
    i64 r = first + lane();
    for (int t = warp(); t < trees.T && r < N; t += blockDim.x >> 5)
      out[r * trees.T + t] = walk(trees, t, codes, r);
  }
}

// Warps walk, then each thread adds one value of one row, tree after tree in their order.
// skip bool[T, N] or null; values f64[V, n_values]; total f64[N, n_values].
extern "C" __global__ void __launch_bounds__(THREADS)
accumulate(Trees trees, Codes codes, i64 N, const double* values, i64 n_values, const bool* skip,
           double* total) {
  __shared__ i64 leaves[TREES][32];
  for (i64 first = (i64)blockIdx.x * 32; first < N; first += (i64)gridDim.x * 32) {
    i64 r = first + lane(), n_rows = N - first < 32 ? N - first : 32;
    for (i64 begin = 0; begin < trees.T; begin += TREES) {
      int n = (int)(trees.T - begin < TREES ? trees.T - begin : TREES);
      for (int j = warp(); j < n && r < N; j += blockDim.x >> 5) {
        int t = (int)begin + j;
        i64 leaf = -1;
        if (!skip || !skip[t * N + r])
          leaf = (i64)(trees.nodes[trees.offsets[t] + walk(trees, t, codes, r)] & LEAF_MASK);
        leaves[j][lane()] = leaf;
      }
      __syncthreads();
      for (i64 i = threadIdx.x; i < n_rows * n_values; i += blockDim.x) {
        i64 row = i / n_values, v = i - row * n_values;
        double sum = total[(first + row) * n_values + v];
        for (int j = 0; j < n; j++) {
          i64 leaf = leaves[j][row];
          if (leaf >= 0) sum = sum + values[leaf * n_values + v];
        }
        total[(first + row) * n_values + v] = sum;
      }
      __syncthreads();
    }
  }
}
