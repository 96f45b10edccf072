// Gradients on the device. The specification is numpy.py beside this file.
#include "gradients/quantiles.cuh"

// A gradient and a hessian.
struct Derivatives {
  double g, h;
};

// The exponential of common/elementary.py.
__device__ __forceinline__ double exp_of(double x) {
  const double factorials[] = FACTORIALS;
  x = x < -MOST ? -MOST : x > MOST ? MOST : x;
  double k = floor(x * LOG2_E + 0.5);
  double rest = (x - k * LN2_HIGH) - k * LN2_LOW;
  double series = factorials[13];
#pragma unroll
  for (int i = 12; i >= 0; i--) series = series * rest + factorials[i];
  return series * __longlong_as_double(((i64)k + 1023) << 52);  // exact, as ldexp
}

// The derivatives of row r, without its weight, of a loss with one raw prediction a row.
__device__ __forceinline__ Derivatives one_class(const LossOf& loss, i64 r) {
  double y = loss.y[r], raw = loss.raw[r], rest = raw - y;
  switch (loss.number) {
    case SQUARED: return {rest, 1.0};
    case ABSOLUTE: return {y > raw ? -1.0 : 1.0, 1.0};
    case QUANTILE: return {y >= raw ? -loss.parameter : 1.0 - loss.parameter, 1.0};
    case HUBER: return {cut_off(rest, -*loss.delta, *loss.delta), 1.0};
    case COUNTS: {
      double h = exp_of(raw);
      return {h - y, h};
    }
    case GAMMA: {
      double h = y * exp_of(-raw);
      return {1.0 - h, h};
    }
    case TWEEDIE: {
      double low = 0.0, high = 0.0, power = 1.0 - loss.parameter;
#pragma unroll 1  // one exponential in the code: two take eight registers more
      for (int i = 0; i < 2; i++) {
        low = high;
        high = exp_of(power * raw);
        power += 1.0;
      }
      low *= y;
      return {high - low, (power - 1.0) * high - (power - 2.0) * low};
    }
  }
  double p = 1.0 / (1.0 + exp_of(-raw));
  return {p - y, p * (1.0 - p)};
}

// Of row r and several classes: the highest raw prediction, and the sum of shares.
__device__ __forceinline__ double top_of(const LossOf& loss, i64 r, double& total) {
  double top = loss.raw[r];
  for (i64 k = 1; k < loss.K; k++) {
    double other = loss.raw[k * loss.N + r];
    top = other > top ? other : top;
  }
  total = 0.0;
  for (i64 k = 0; k < loss.K; k++) total += exp_of(loss.raw[k * loss.N + r] - top);
  return top;
}

// The derivatives by class k of several.
__device__ __forceinline__ Derivatives some_class(const LossOf& loss, i64 r, i64 k, double top,
                                                  double total) {
  double p = exp_of(loss.raw[k * loss.N + r] - top) / total;
  return {p - (double)(loss.y[r] == (double)k), p * (1.0 - p)};
}

__device__ __forceinline__ Derivatives weighted(const LossOf& loss, i64 r, Derivatives d) {
  if (!loss.weight) return d;
  double w = loss.weight[r];
  return {d.g * w, d.h * w};
}

// Raises most[0] and most[1] to the largest size of a gradient and of a hessian, of a loss with
// one raw prediction a row. The bits of doubles that are not negative have the order of these.
extern "C" __global__ void __launch_bounds__(THREADS) largest(LossOf loss, u64* most) {
  u64 g = 0, h = 0;
  for (i64 r = thread_number(); r < loss.N; r += thread_count()) {
    Derivatives d = weighted(loss, r, one_class(loss, r));
    u64 own_g = size_bits(d.g), own_h = size_bits(d.h);
    g = own_g > g ? own_g : g;
    h = own_h > h ? own_h : h;
  }
  raise_to(most, g);
  raise_to(most + 1, h);
}

// The power of two that brings numbers up to `most` (its bits) below 2^bits: as power_of_two in
// numpy.py.
__device__ double unit_of(u64 most, i64 bits) {
  i64 exponent = exponent_of(most);
  i64 power = bits - (most && exponent < 1025 ? exponent : 0);  // not of zero or an infinite number
  power = power < -1000 ? -1000 : power > 1000 ? 1000 : power;
  return __longlong_as_double((power + 1023) << 52);
}

// Turns the largest derivatives u64[2] into scales, and forgets them unless they are to be kept;
// one: every hessian is one.
extern "C" __global__ void __launch_bounds__(THREADS)
scales(u64* most, Scales* scale, i64 g_bits, i64 h_bits, i64 one, i64 keep) {
  if (threadIdx.x > 0) return;
  double g = unit_of(most[0], g_bits), h = unit_of(most[1], h_bits);
  double most_g = __longlong_as_double((i64)most[0]), most_h = __longlong_as_double((i64)most[1]);
  // trees grow from gradients of size one: no square of them overflows
  double sum_g = 1.0 / (double)((i64)1 << g_bits);
  bool overflows = !(most_g <= MOST_GRADIENT && most_h <= MOST_GRADIENT);
  *scale = {g, h, sum_g, one ? 1.0 : 1.0 / h, (double)overflows, 1.0 / g, 1.0 / (g * sum_g)};
  if (!keep) most[0] = most[1] = 0;
}

// What row r adds to the sums of tree k.
__device__ __forceinline__ void write_stats(Derivatives d, const TreeRules& rules, i64 words, i64* to) {
  i64 whole = (i64)floor(d.g * rules.scale->g + 0.5);
  if (words == 1) {
    to[0] = (i64)((u64)whole << rules.n_bits) + 1;
    return;
  }
  to[0] = whole;
  to[1] = (i64)((u64)(i64)floor(d.h * rules.scale->h + 0.5) << rules.n_bits) + 1;
}

// The stats i64[K, N, words] of all rows.
extern "C" __global__ void __launch_bounds__(THREADS)
gradients(LossOf loss, TreeRules rules, i64 words, i64* stats) {
  for (i64 r = thread_number(); r < loss.N; r += thread_count()) {
    if (loss.number != MULTICLASS) {
      write_stats(weighted(loss, r, one_class(loss, r)), rules, words, stats + r * words);
      continue;
    }
    double total, top = top_of(loss, r, total);
    for (i64 k = 0; k < loss.K; k++)
      write_stats(weighted(loss, r, some_class(loss, r, k, top, total)), rules, words,
                  stats + (k * loss.N + r) * words);
  }
}

// What rounding leaves of a number, in a finer unit.
__device__ __forceinline__ i64 rest_of(double x, double finer) {
  return (i64)floor((x - floor(x + 0.5)) * finer + 0.5);
}

// Sums i64[leaves, 2] of what rounding left of gradients and hessians, as residual_bits in
// backends/boosters.py; zero where a leaf's own sums have enough digits.
extern "C" __global__ void __launch_bounds__(THREADS)
sum_residual_bits(LossOf loss, TreeRows rows, TreeRules rules, TreesOut out, i64 h_bits, i64 g_bits,
                  i64* sums) {
  double finer = (double)(1ll << (RESIDUAL_BITS - rules.n_bits));
  each_leaf(rows, out, [&](i64 leaf, i64 begin, i64 end) {
    const Leaf& own = leaves_of(out, 0)[leaf];
    if (own.h >= own.n << h_bits && (own.g < 0 ? -own.g : own.g) >= own.n << g_bits) return;
    const i32* order = rows_of(rows, 0, own.half);
    i64 g = 0, h = 0;
    for (i64 i = begin + lane(); i < end; i += 32) {
      Derivatives d = weighted(loss, order[i], one_class(loss, order[i]));
      g += rest_of(d.g * rules.scale->g, finer);
      h += rest_of(d.h * rules.scale->h, finer);
    }
    g = warp_sum(g);
    h = warp_sum(h);
    if (lane() > 0) return;
    add_global(sums + 2 * leaf, g);
    add_global(sums + 2 * leaf + 1, h);
  });
}

// Sets the values of leaves, and what they add, from all digits.
extern "C" __global__ void __launch_bounds__(THREADS)
with_residual_bits(TreeRules rules, TreesOut out, const i64* sums) {
  double finer = (double)(1ll << (RESIDUAL_BITS - rules.n_bits));
  double most = rules.most * rules.scale->g * rules.scale->sum_g;
  for (i64 leaf = thread_number(); leaf < n_leaves(out, 0); leaf += thread_count()) {
    Leaf& own = leaves_of(out, 0)[leaf];
    double g = (double)own.g + (double)sums[2 * leaf] / finer;
    double h = (double)own.h + (double)sums[2 * leaf + 1] / finer;
    own.value = value_of(g, h, rules, -most, most) * rules.scale->value;
    own.added = added_by(own.value, rules);
  }
}

// The natural logarithm of common/elementary.py, of numbers from 1 on.
__device__ __forceinline__ double log_of(double x) {
  i64 bits = __double_as_longlong(x), e = (bits >> 52) - 1022;
  double m = __longlong_as_double((bits & ((1ll << 52) - 1)) | 1022ll << 52);
  bool low = m * SQRT2 < 1.0;
  m = low ? 2.0 * m : m;
  double k = (double)(e - low), t = (m - 1.0) / (m + 1.0), t2 = t * t, series = 2.0 / 19;
#pragma unroll
  for (int i = 8; i >= 0; i--) series = series * t2 + 2.0 / (2 * i + 1);
  return k * LN2_HIGH + (t * series + k * LN2_LOW);
}

// ln(1 + exp(x)), as there.
__device__ __forceinline__ double log1p_exp(double x) {
  double small = exp_of(-fabs(x)), t = small / (2.0 + small), t2 = t * t, series = 2.0 / 35;
#pragma unroll
  for (int i = 16; i >= 0; i--) series = series * t2 + 2.0 / (2 * i + 1);
  return (x > 0.0 ? x : 0.0) + t * series;
}

// The loss of row r, without its weight; as in gradients/losses.py.
__device__ __forceinline__ double loss_of(const LossOf& loss, i64 r) {
  double y = loss.y[r], raw = loss.raw[r], rest = y - raw, size = fabs(rest);
  switch (loss.number) {
    case SQUARED: return 0.5 * rest * rest;
    case ABSOLUTE: return size;
    case QUANTILE: return rest * (loss.parameter - (double)(rest < 0.0));
    case HUBER: {
      double delta = *loss.delta;
      return size <= delta ? 0.5 * rest * rest : delta * (size - 0.5 * delta);
    }
    case COUNTS: return exp_of(raw) - y * raw;
    case GAMMA: return raw + y * exp_of(-raw);
    case TWEEDIE: {
      double below = 1.0 - loss.parameter, above = 2.0 - loss.parameter;
      return exp_of(above * raw) / above - y * exp_of(below * raw) / below;
    }
    case CROSS_ENTROPY:
    case BINARY: return log1p_exp(raw) - y * raw;
  }
  double total, top = top_of(loss, r, total);
  return log_of(total) + top - loss.raw[(i64)y * loss.N + r];
}

// The losses f64[N] times weights, and in sum[0] the bits of the largest size of one.
extern "C" __global__ void __launch_bounds__(THREADS, 1)
losses(LossOf loss, double* values, u64* sum) {
  u64 most = 0;
  for (i64 r = thread_number(); r < loss.N; r += thread_count()) {
    double value = loss_of(loss, r);
    if (loss.weight) value *= loss.weight[r];
    values[r] = value;
    u64 own = size_bits(value);
    most = own > most ? own : most;
  }
  raise_to(sum, most);
}

// Adds them up in sum[1] as whole numbers of 2^-shift, where 2^(62 - bits) of the largest fit.
extern "C" __global__ void __launch_bounds__(THREADS)
sum_losses(const double* values, i64 N, i64 bits, u64* sum) {
  u64 most = sum[0];
  int e = exponent_of(most);
  if (!most || e > 1024) return;  // all are zero, or one is infinite
  i64 total = 0;
  for (i64 r = thread_number(); r < N; r += thread_count())
    total += (i64)rint(ldexp(values[r], 62 - (int)bits - e));
  total = warp_sum(total);
  if (lane() == 0) add_global((i64*)sum + 1, total);
}
