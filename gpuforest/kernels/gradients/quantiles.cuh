// Quantiles and means of residuals in the leaves of the one tree, as in losses.py. Arrays of the R
// rows that it grew from have their order, leaf after leaf. `sums` i64[leaves, 2] are the bits of
// the largest size of a leaf's values, and their sum in whole numbers.
#include "boosted_tree/leaves.cuh"
#include "generated/LossOf.cuh"

__device__ __forceinline__ i64 n_rows(const TreesOut& out, i64 leaf) {
  return leaves_of(out, 0)[leaf].end - leaves_of(out, 0)[leaf].begin;
}

// The exponent of the power of two that brings the sum of n values up to `most` below 2^bits.
__device__ __forceinline__ int shift_of(i64 n, u64 most, int bits) {
  return bits - (64 - __clzll(n)) - exponent_of(most);
}

__device__ __forceinline__ bool is_infinite(u64 bits) { return exponent_of(bits) > 1024; }

// The residuals y - raw of the rows, their weights, unless all are one, and their leaves.
extern "C" __global__ void __launch_bounds__(THREADS)
residuals(LossOf loss, TreeRows rows, TreesOut out, double* rest, double* weight, i32* leaf) {
  for (i64 i = thread_number(); i < rows.R; i += thread_count()) {
    i64 own = leaf_at(rows, out, 0, i), row = rows_of(rows, 0, leaves_of(out, 0)[own].half)[i];
    rest[i] = loss.y[row] - loss.raw[row];
    if (weight) weight[i] = loss.weight[row];
    leaf[i] = (i32)own;
  }
}

// Raises the first of each leaf's two sums, which are zero.
extern "C" __global__ void __launch_bounds__(THREADS)
largest_in_leaves(TreeRows rows, TreesOut out, const double* values, i64* sums) {
  each_leaf(rows, out, [&](i64 leaf, i64 begin, i64 end) {
    u64 most = 0;
    for (i64 i = begin + lane(); i < end; i += 32) {
      u64 own = size_bits(values[i]);
      most = own > most ? own : most;
    }
    raise_to((u64*)sums + 2 * leaf, most);
  });
}

// Adds to the second one.
extern "C" __global__ void __launch_bounds__(THREADS)
sum_in_leaves(TreeRows rows, TreesOut out, const double* values, i64* sums) {
  each_leaf(rows, out, [&](i64 leaf, i64 begin, i64 end) {
    u64 most = (u64)sums[2 * leaf];
    if (is_infinite(most)) return;
    int shift = shift_of(n_rows(out, leaf), most, 62);
    i64 sum = 0;
    for (i64 i = begin + lane(); i < end; i += 32) sum += (i64)rint(ldexp(values[i], shift));
    sum = warp_sum(sum);
    if (lane() == 0) add_global(sums + 2 * leaf + 1, sum);
  });
}

// As exact_sum in losses.py.
__device__ __forceinline__ double exact_sum(i64 n, const i64* sums) {
  u64 most = (u64)sums[0];
  if (is_infinite(most)) return __longlong_as_double((i64)most);
  return ldexp((double)sums[1], -shift_of(n, most, 62));
}

// Weights in another order as whole numbers, in the unit of their leaf (unit_of in losses.py).
extern "C" __global__ void __launch_bounds__(THREADS)
whole_weights(TreeRows rows, TreesOut out, const double* weight, const i32* leaf, const i64* order,
              const i64* sums, i64* whole) {
  for (i64 i = thread_number(); i < rows.R; i += thread_count()) {
    u64 one = size_bits(1.0), most = (u64)sums[2 * leaf[i]];
    int shift = shift_of(n_rows(out, leaf[i]), most > one ? most : one, 52);
    whole[i] = (i64)rint(weight[order[i]] * ldexp(1.0, shift));
  }
}

// The quantile of each leaf, as quantile_of in losses.py, of residuals in the order of their size;
// upto i64[R] are sums of whole weights from the first leaf on, or null.
extern "C" __global__ void __launch_bounds__(THREADS)
quantiles(TreesOut out, const double* rest, const i64* upto, double share, double* found) {
  for (i64 leaf = thread_number(); leaf < n_leaves(out, 0); leaf += thread_count()) {
    i64 low = leaves_of(out, 0)[leaf].begin, last = leaves_of(out, 0)[leaf].end - 1, high;
    double part = 0.5;
    if (upto) {
      u64 before = low > 0 ? (u64)upto[low - 1] : 0;  // sums of very many leaves wrap around
      auto own = [&](i64 i) { return (i64)((u64)upto[i] - before); };
      double wanted = share * (double)own(last);
      low = first_of(low, last, [&](i64 i) { return (double)own(i) >= wanted; });
      bool ends = (double)own(low) == wanted;  // between two residuals
      high = ends ? first_of(low, last, [&](i64 i) { return own(i) > own(low); }) : low;
    } else {
      double at = share * (double)(last - low);
      part = at - (double)(i64)at;
      low += (i64)at;
      high = low < last ? low + 1 : last;
    }
    found[leaf] = rest[low] + (rest[high] - rest[low]) * part;
  }
}

// Sets what leaves add: their quantiles, and the means of the values of `sums`, unless it is null.
extern "C" __global__ void __launch_bounds__(THREADS)
set_steps(TreeRules rules, TreesOut out, const double* quantile, const i64* sums,
          const i64* weights) {
  for (i64 leaf = thread_number(); leaf < n_leaves(out, 0); leaf += thread_count()) {
    double step = quantile[leaf];
    i64 n = n_rows(out, leaf);
    if (sums)
      step += exact_sum(n, sums + 2 * leaf) /
              (weights ? exact_sum(n, weights + 2 * leaf) : (double)n);
    leaves_of(out, 0)[leaf].added = added_by(step, rules);
  }
}
