// Quantiles and means of residuals, as in gradients/losses.py. A block works on one set of them.
#include "boosted_tree/cuda.cuh"

static_assert(THREADS == 256, "a thread for each value of a byte");

// What a block shares.
struct Places {
  u32 cells[2 * THREADS];  // sums of 64 bits, one for each value of a byte
  i64 sums[WARPS];
  u64 most[WARPS];
  u64 key;
  i64 wanted;
};

// n residuals and, unless it is null, their weights.
struct Residuals {
  const double *rest, *weight;
  i64 n;
};

// Keys of doubles have their order; zeros may have either sign, which changes no result.
__device__ __forceinline__ u64 key_of(double x) {
  u64 bits = (u64)__double_as_longlong(x);
  return bits >> 63 ? ~bits : bits | 1ull << 63;
}

__device__ __forceinline__ double of_key(u64 key) {
  return __longlong_as_double((i64)(key >> 63 ? key & ~(1ull << 63) : ~key));
}

__device__ __forceinline__ int bit_length(i64 n) { return 64 - __clzll(n); }

// The weight of a residual as a whole number.
__device__ __forceinline__ i64 whole_weight(const Residuals& all, i64 i, double unit) {
  return all.weight ? (i64)rint(all.weight[i] * unit) : 1;
}

// The bits of the largest size of value(i) of n numbers, and at least `bits`.
template <class Value>
__device__ __forceinline__ u64 largest_bits(i64 n, Value value, u64 bits, Places& shared) {
  for (i64 i = threadIdx.x; i < n; i += blockDim.x) {
    u64 own = size_bits(value(i));
    bits = own > bits ? own : bits;
  }
  return block_max(bits, shared.most);
}

// The power of two that makes whole numbers of weights, whose sum stays below 2^52.
__device__ __forceinline__ double unit_of(const Residuals& all, Places& shared) {
  if (!all.weight) return 1.0;
  auto weight = [&](i64 i) { return all.weight[i]; };
  u64 most = largest_bits(all.n, weight, size_bits(1.0), shared);
  return ldexp(1.0, 52 - bit_length(all.n) - exponent_of(most));
}

// The least key up to which the weights add up to `wanted` > 0; byte after byte from the highest.
// With `by_count` every weight is one.
__device__ __forceinline__ u64 key_at(const Residuals& all, i64 wanted, bool by_count, double unit,
                                      Places& shared) {
  u64 key = 0, known = 0;
#pragma unroll 1
  for (int shift = 56; shift >= 0; shift -= 8) {
    shared.cells[2 * threadIdx.x] = shared.cells[2 * threadIdx.x + 1] = 0;
    __syncthreads();
    for (i64 i = threadIdx.x; i < all.n; i += blockDim.x) {
      u64 own = key_of(all.rest[i]);
      if ((own ^ key) & known) continue;
      u32* cell = shared.cells + 2 * (own >> shift & 255);
      u32 high = add_low(cell, by_count ? 1 : whole_weight(all, i, unit));
      atomicAdd(cell + 1, high);
    }
    __syncthreads();
    i64 total, own = value_64(shared.cells + 2 * threadIdx.x);
    i64 upto = block_sum_to_here(own, shared.sums, total);
    if (upto >= wanted && upto - own < wanted) {
      shared.key = key | (u64)threadIdx.x << shift;
      shared.wanted = wanted - (upto - own);
    }
    __syncthreads();
    key = shared.key;
    wanted = shared.wanted;
    known |= 255ull << shift;
    __syncthreads();
  }
  return key;
}

// As weighted_quantile in gradients/losses.py.
__device__ __forceinline__ double quantile_of(const Residuals& all, double share, Places& shared) {
  double unit = unit_of(all, shared), at = share * (double)(all.n - 1), wanted = 0.0;
  i64 total = 0, first = (i64)at + 1;  // the number of residuals up to the lower one
  if (all.weight) {
    for (i64 i = threadIdx.x; i < all.n; i += blockDim.x) total += whole_weight(all, i, unit);
    wanted = share * (double)block_sum(total, shared.sums);
    first = (i64)ceil(wanted);
  }
  bool none = first == 0;  // no weight is wanted: the least residual
  u64 key = key_at(all, none ? 1 : first, none, unit, shared), next = 0, most = 0;
  i64 upto = 0;
  for (i64 i = threadIdx.x; i < all.n; i += blockDim.x) {
    u64 own = key_of(all.rest[i]);
    i64 weight = whole_weight(all, i, unit);
    if (own <= key) upto += weight;
    else if (weight > 0 && ~own > next) next = ~own;  // the least one above has the largest ~
    most = own > most ? own : most;
  }
  upto = block_sum(upto, shared.sums);
  next = block_max(next, shared.most);
  most = block_max(most, shared.most);
  bool ends = all.weight ? (double)upto == wanted : upto == first && first < all.n;
  u64 high = !ends ? key : next ? ~next : most;
  double low = of_key(key), part = all.weight ? 0.5 : at - (double)(i64)at;
  return low + (of_key(high) - low) * part;
}

// As exact_sum in gradients/losses.py, of value(i).
template <class Value>
__device__ __forceinline__ double exact_sum(i64 n, Value value, Places& shared) {
  u64 bits = largest_bits(n, value, 0, shared);
  double most = __longlong_as_double((i64)bits);
  if (!(most > 0.0) || isinf(most)) return most;
  int shift = 62 - bit_length(n) - exponent_of(bits);
  i64 sum = 0;
  for (i64 i = threadIdx.x; i < n; i += blockDim.x) sum += (i64)rint(ldexp(value(i), shift));
  return ldexp((double)block_sum(sum, shared.sums), -shift);
}

// The mean of the residuals less `middle`, cut off at delta: as best_step in gradients/losses.py.
__device__ __forceinline__ double mean_cut_off(const Residuals& all, double middle, double delta,
                                               Places& shared) {
  auto value = [&](i64 i) {
    double own = cut_off(all.rest[i] - middle, -delta, delta);
    return all.weight ? own * all.weight[i] : own;
  };
  double sum = exact_sum(all.n, value, shared);
  if (!all.weight) return sum / (double)all.n;
  return sum / exact_sum(all.n, [&](i64 i) { return all.weight[i]; }, shared);
}
