// The best cut of one feature in one node, found by a warp. The specification is numpy.py
// beside this file.
//
// Items are bins of a histogram, or rows in the order of their codes; cuts lie between them. A
// warp takes 32 at a time, one in each lane. Running totals are integers, so the order of sums
// over the lanes does not matter. An Items type has
//
//     at(i)           item i; its channel(c) is what it adds to channel c
//     rows(i)         what it adds to the count of rows
//     code(i)         its code
//     after(i, n)     the next code that holds rows among the items below n, or -1
//     BINS            items may be empty; otherwise equal codes are neighbours
#include "shared/hashing/cuda.cuh"
#include "shared/scoring/cuda.cuh"
#include "generated/CutRules.cuh"

struct Cut {
  double score;
  int item;  // -1: none
  bool missing_left, heavier;
};

// A node's sums for one feature: of all rows, and of those with missing values. The last two
// arrays are the warp's, in shared memory.
struct Node {
  int C, n_rows;
  const i64* sums;  // [C]
  bool some_missing;
  int rows_missing;
  i64* missing;  // [C]
  i64* so_far;   // [C], scratch
};

// With SPECIAL 1 cuts may be limited or random; most forests need neither, and save registers.

// The limits on cuts: the least rows and weight of either side, the order of the sides' means (of
// the second channel), and the bounds of these means.
struct Limits {
  int min_rows;
  i64 min_weight;
  int sign;
  double low, high;

  __device__ __forceinline__ bool allow(i64 n_left, i64 a_left, i64 n_right, i64 a_right) const {
    if (n_left < min_weight || n_right < min_weight) return false;
    if (sign == 0) return true;
    double left = (double)a_left / (double)n_left, right = (double)a_right / (double)n_right;
    if (sign > 0 ? left > right : left < right) return false;
    return (left < right ? left : right) >= low && (left < right ? right : left) <= high;
  }
};

__device__ __forceinline__ Limits limits_of(int min_rows) {
  return {min_rows, 1, 0, MINUS_INFINITY, -MINUS_INFINITY};
}

// A random cut, if cuts are random: drawn between the first and the last code that hold rows.
struct Draw {
  bool random, missing_left;
  int code;

  __device__ __forceinline__ void between(u64 key, int f, int low, int high, bool some_missing) {
    u64 h = hash_at(key, CUT + (u64)f);
    random = true;
    missing_left = high > low && some_missing && (h & 1);
    code = high > low ? low + (int)((h >> 1) % (u64)(high - low)) : low;
  }
};

// The best cut of the first `width` lanes; of equal scores the first item wins, then missing
// values to the right. All lanes get the result.
__device__ __forceinline__ Cut best_of_lanes(Cut cut, int width) {
  int key = cut.item < 0 ? 0x7fffffff : cut.item << 2 | cut.missing_left << 1 | cut.heavier;
  for (int d = width >> 1; d > 0; d >>= 1) {
    double score = __shfl_xor_sync(ALL_LANES, cut.score, d);
    int other = __shfl_xor_sync(ALL_LANES, key, d);
    if (score > cut.score || (score == cut.score && other < key)) {
      cut.score = score;
      key = other;
    }
  }
  cut.score = __shfl_sync(ALL_LANES, cut.score, 0);
  key = __shfl_sync(ALL_LANES, key, 0);
  cut.item = key == 0x7fffffff ? -1 : key >> 2;
  cut.missing_left = key >> 1 & 1;
  cut.heavier = key & 1;
  return cut;
}

// All lanes call it and get the same result.
template <class Items>
__device__ Cut best_cut_of(const Items& items, int n_items, const Node& node, const Limits& limits,
                           const Draw& draw, const i64* table) {
  Cut best = {MINUS_INFINITY, -1, false, false};
  int width = lanes_for(n_items), min_rows = limits.min_rows, C = node.C;
  // 2. left sides: without the missing values, then with them
  for (int with = 0; with <= (int)node.some_missing; with++) {
    int rows_so_far = with ? node.rows_missing : 0;
    for (int first = 0; first < n_items; first += 32) {
      int i = first + lane();
      bool inside = i < n_items, more = first + 32 < n_items;
      auto item = items.at(inside ? i : first);
      SUM weight = 0;
      i64 a_left = 0;
      Side left, right;
      for (int c = 0; c < C; c++) {
        SUM own = inside ? item.channel(c) : 0;
        SUM before = first ? (SUM)node.so_far[c] : with ? (SUM)node.missing[c] : 0;
        SUM here = before + sum_to_here(own, width);
        if (LABELS || c == 0) weight += own;
        if (c == 1) a_left = (i64)here;
        left.add(c, here, table);
        right.add(c, node.sums[c] - here, table);
        if (more) {
          __syncwarp();
          if (lane() == 31) node.so_far[c] = here;
        }
      }
      __syncwarp();
      // 3. candidates: the item is the last of its code, and both sides hold enough rows
      bool ends = inside && weight > 0 && right.n > 0;
#if SPECIAL
      bool parts = inside && right.n > 0;
      if (C > 1) parts = parts && limits.allow(left.n, a_left, right.n, node.sums[1] - a_left);
      ends = ends && parts;
      if (draw.random) {  // an empty bin is no candidate, but a cut may be drawn there
        ends = parts && with == (int)draw.missing_left && items.code(i) <= draw.code;
        ends = ends && (i + 1 == n_items || items.code(i + 1) > draw.code);
      } else
#endif
      if (!Items::BINS)
        ends = ends && (i + 1 == n_items || items.code(i + 1) != items.code(i));
      if (min_rows > 1) {
        int n = rows_so_far + sum_to_here(inside ? items.rows(i) : 0, width);
        rows_so_far = __shfl_sync(ALL_LANES, n, 31);
        ends = ends && n >= min_rows && node.n_rows - n >= min_rows;
      }
      // 4. score them; the first of the highest
      if (ends) {
        double score = left.score(table) + right.score(table);
        if (score > best.score || (score == best.score && i < best.item))
          best = {score, i, with > 0, left.n > right.n};
      }
    }
  }
  return best_of_lanes(best, width);
}

// Steps 5 and 6: the middle of the gap behind the cut, and where missing values go.
template <class Items>
__device__ __forceinline__ int middle_of_gap(const Items& items, int n_items, int item,
                                             int n_bins) {
  int upper = items.after(item, n_items);
  return upper < 0 ? n_bins - 1 : (items.code(item) + upper - 1) >> 1;
}

__device__ __forceinline__ bool missing_goes_left(const Cut& cut, const Node& node) {
  return node.some_missing ? cut.missing_left : cut.heavier;
}
