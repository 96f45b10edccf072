// What the kernels of boosted trees share: sums, values and gains.
//
// WORDS (1 or 2) is the number of words of a row's stats. K trees grow side by side: blockIdx.y is
// the tree, or blockIdx.x where a block does all of its tree's work.
#define SETS 1
#include "boosted_tree/leaves.cuh"
#include "shared/scans.cuh"
#include "shared/goes_left.cuh"
#include "shared/hashing.cuh"
#include "generated/Codes.cuh"
#include "generated/TreeNode.cuh"
#include "generated/TreeState.cuh"
#include "generated/NodeSplit.cuh"
#include "generated/TreeTable.cuh"

#define WARPS (THREADS / 32)
#define NEVER (1ll << 62)  // the place of no candidate

// The sums of gradients and hessians, and the number of rows.
struct Sums {
  i64 g, h, n;
};

__device__ __forceinline__ Sums operator+(Sums a, Sums b) {
  return {a.g + b.g, a.h + b.h, a.n + b.n};
}

__device__ __forceinline__ Sums operator-(Sums a, Sums b) {
  return {a.g - b.g, a.h - b.h, a.n - b.n};
}

// The three sums in the words of sums.
__device__ __forceinline__ Sums unpacked(i64 first, i64 last, i64 bits) {
  i64 n = last & ((1ll << bits) - 1), whole = last >> bits;
  if (WORDS == 2) return {first, whole, n};
  return {whole, n, n};
}

// Bin b of a histogram.
__device__ __forceinline__ Sums bin_at(const i64* cells, i64 b, i64 bits) {
  return unpacked(cells[b * WORDS], cells[b * WORDS + WORDS - 1], bits);
}

// Whether a node has enough rows and hessian, and lies not too deep.
__device__ __forceinline__ bool may_split(const TreeNode& node, const TreeRules& rules) {
  bool hessian = (double)node.h * rules.scale->sum_h >= rules.min_hessian;
  return node.n >= 2 * rules.min_rows && hessian && node.depth < rules.max_depth;
}

// A node whose splits are compared: its sums, bounds and score.
struct Whole {
  Sums sums;
  double low, high, score, g, h, l2, min_hessian;
  i64 min_rows;

  __device__ __forceinline__ Whole(const TreeNode& node, const TreeRules& rules)
      : sums{node.g, node.h, node.n}, low(node.low), high(node.high), g(rules.scale->sum_g),
        h(rules.scale->sum_h), l2(rules.l2), min_hessian(rules.min_hessian),
        min_rows(rules.min_rows) {
    score = -((double)node.g * g) * value_of(node.g, node.h, rules, low, high);
  }

  // The gain of a split with these left sums; 0 if it is not allowed.
  __device__ __forceinline__ double gain(Sums left, double sign) const {
    Sums right = sums - left;
    double g_left = (double)left.g * g, h_left = (double)left.h * h;
    double g_right = (double)right.g * g, h_right = (double)right.h * h;
    if (left.n < min_rows || right.n < min_rows) return 0.0;
    if (h_left < min_hessian || h_right < min_hessian) return 0.0;
    double value = cut_off(-g_left / (h_left + l2), low, high);
    double other = cut_off(-g_right / (h_right + l2), low, high);
    if (sign * (value - other) > 0.0) return 0.0;
    return (-g_left * value + -g_right * other) - score;
  }
};

// A candidate: the highest gain wins, of equal ones that at the lowest place.
struct Best {
  double gain;
  i64 at;

  __device__ __forceinline__ void take(double other, i64 place) {
    if (!(other > gain || (other == gain && place < at))) return;
    gain = other;
    at = place;
  }
};

// The best of all threads' candidates, which all of them get; `all` is shared, one for each warp.
__device__ __forceinline__ Best block_best(Best own, Best* all) {
  first_highest(own.gain, own.at);
  if (lane() == 0) all[warp()] = own;
  __syncthreads();
  for (int w = 0; w < (int)blockDim.x >> 5; w++) own.take(all[w].gain, all[w].at);
  __syncthreads();
  return own;
}

__device__ __forceinline__ i64* cells_of(const TreeTable& table, const Codes& codes, i64 k, i64 slot,
                                         i64 f) {
  return table.hist + ((k * (table.P + 2) + slot) * codes.F + f) * codes.B * WORDS;
}
