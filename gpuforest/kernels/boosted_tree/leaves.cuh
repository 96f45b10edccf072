// The leaves of finished trees of boosting, and what they predict.
#include "shared/doubles.cuh"
#include "generated/TreeRows.cuh"
#include "generated/Scales.cuh"
#include "generated/Leaf.cuh"
#include "generated/TreeRules.cuh"
#include "generated/TreesOut.cuh"

// What a node with these sums predicts.
template <class Sum>
__device__ __forceinline__ double value_of(Sum g, Sum h, const TreeRules& rules, double low,
                                           double high) {
  double bottom = (double)h * rules.scale->sum_h + rules.l2;
  double value = bottom > 0.0 ? -((double)g * rules.scale->sum_g) / bottom : 0.0;
  return cut_off(value, low, high);
}

// What a leaf adds that predicts a value.
__device__ __forceinline__ double added_by(double value, const TreeRules& rules) {
  return cut_off(value * rules.rate, -MOST_STEP, MOST_STEP);
}

// Where the rows of a node lie.
__device__ __forceinline__ i32* rows_of(const TreeRows& rows, i64 k, i64 depth) {
  return rows.order + (2 * k + (depth & 1)) * rows.N;
}

// The leaves of finished tree k, and how many they are.
__device__ __forceinline__ Leaf* leaves_of(const TreesOut& out, i64 k) {
  return (Leaf*)(out.at + k * out.size + 4 + out.M);
}

__device__ __forceinline__ i64 n_leaves(const TreesOut& out, i64 k) {
  return ((i64)out.at[k * out.size] + 1) / 2;
}

// The leaf of tree k that has position i of the order of all rows.
__device__ __forceinline__ i64 leaf_at(const TreeRows& rows, const TreesOut& out, i64 k, i64 i) {
  const Leaf* leaves = leaves_of(out, k);
  return first_of((i64)1, n_leaves(out, k), [&](i64 leaf) {  // the first that begins behind i
           return (i < rows.R ? leaves[leaf].begin : leaves[leaf].other_begin) > i;
         }) - 1;
}

// Calls visit(leaf, begin, end) for the parts of leaves of the one tree that are in the warp's
// share of the rows that it grew from. So all blocks share a leaf of most rows.
template <class Visit>
__device__ __forceinline__ void each_leaf(const TreeRows& rows, const TreesOut& out, Visit visit) {
  i64 n_warps = thread_count() >> 5, share = (rows.R + n_warps - 1) / n_warps;
  i64 begin = (thread_number() >> 5) * share;
  i64 end = begin + share < rows.R ? begin + share : rows.R;
  for (i64 leaf = leaf_at(rows, out, 0, begin); begin < end; leaf++) {
    i64 last = leaves_of(out, 0)[leaf].end, stop = last < end ? last : end;
    visit(leaf, begin, stop);
    begin = stop;
  }
}
