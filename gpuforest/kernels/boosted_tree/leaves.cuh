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
