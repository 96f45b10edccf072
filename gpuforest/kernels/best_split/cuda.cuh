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
#include "shared/hashing.cuh"
#include "shared/scoring.cuh"
#include "generated/Rules.cuh"

template <class Bins>
__device__ __forceinline__ bool holds_rows(const Bins& bins, int b) {
  SUM weight = 0;
  for (int c = 0; c < (LABELS ? bins.C : 1); c++) weight += bins.at(b).channel(c);
  return weight > 0;
}

// The next bin above i that holds rows, and the last one, among the first n; -1: none.
template <class Bins>
__device__ __forceinline__ int bin_after(const Bins& bins, int i, int n) {
  for (int first = i + 1; first < n; first += 32) {
    int b = first + lane();
    u32 some = __ballot_sync(ALL_LANES, b < n && holds_rows(bins, b));
    if (some) return first + __ffs(some) - 1;
  }
  return -1;
}

template <class Bins>
__device__ __forceinline__ int last_bin(const Bins& bins, int n) {
  for (int first = (n - 1) & ~31; first >= 0; first -= 32) {
    int b = first + lane();
    u32 some = __ballot_sync(ALL_LANES, b < n && holds_rows(bins, b));
    if (some) return first + 31 - __clz(some);
  }
  return -1;
}

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
  const double* bounds;  // [2]; of no use if sign is 0

  __device__ __forceinline__ bool allow(i64 n_left, i64 a_left, i64 n_right, i64 a_right) const {
    if (n_left < min_weight || n_right < min_weight) return false;
    if (sign == 0) return true;
    double left = (double)a_left / (double)n_left, right = (double)a_right / (double)n_right;
    if (sign > 0 ? left > right : left < right) return false;
    return (left < right ? left : right) >= bounds[0] && (left < right ? right : left) <= bounds[1];
  }
};

// A number of the rules as an int, which is as good where it is compared with rows or levels.
__device__ __forceinline__ int as_int(i64 n) {
  return n < 0x7fffffff ? (int)n : 0x7fffffff;
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
  first_highest(cut.score, key, width);
  cut.score = __shfl_sync(ALL_LANES, cut.score, 0);
  key = __shfl_sync(ALL_LANES, key, 0);
  cut.item = key == 0x7fffffff ? -1 : key >> 2;
  cut.missing_left = key >> 1 & 1;
  cut.heavier = key & 1;
  return cut;
}

// The cuts behind EACH neighbouring items of a lane.
template <int EACH>
struct Cuts {
  SUM n_before;       // the weight before the items
  i64 a_left[EACH];   // the second channel of the left side
  int n_left[EACH];   // the rows of the left side, if a side must hold more than one
  Side left[EACH], right[EACH];

  // Adds up the items from `first` on, of which the lanes take EACH; `with`: the left side holds the
  // missing values.
  template <class Items>
  __device__ __forceinline__ void add(const Items& items, int n_items, int first, bool with,
                                      const Node& node, const i64* table) {
    int begin = first + lane() * EACH, width = lanes_for((n_items + EACH - 1) / EACH);
    bool more = first + 32 * EACH < n_items;
    n_before = 0;
    for (int c = 0; c < node.C; c++) {
      SUM own[EACH], here = 0;
#pragma unroll
      for (int j = 0; j < EACH; j++)
        here += own[j] = begin + j < n_items ? items.at(begin + j).channel(c) : 0;
      SUM before = first ? (SUM)node.so_far[c] : with ? (SUM)node.missing[c] : 0;
      here = before + sum_to_here(here, width) - here;
      if (LABELS || c == 0) n_before += here;
#pragma unroll
      for (int j = 0; j < EACH; j++) {
        here += own[j];
        if (c == 1) a_left[j] = (i64)here;
        left[j].add(c, here, table);
        right[j].add(c, (SUM)node.sums[c] - here, table);
      }
      if (more) {
        __syncwarp();
        if (lane() == 31) node.so_far[c] = here;
      }
    }
    __syncwarp();
  }

  // Counts the rows of left sides, after `before` others. Returns how many there are in all.
  template <class Items>
  __device__ __forceinline__ int count(const Items& items, int n_items, int first, int before) {
    int begin = first + lane() * EACH, here = 0;
#pragma unroll
    for (int j = 0; j < EACH; j++)
      here += n_left[j] = begin + j < n_items ? items.rows(begin + j) : 0;
    here = before + sum_to_here(here) - here;
#pragma unroll
    for (int j = 0; j < EACH; j++) n_left[j] = here += n_left[j];
    return __shfl_sync(ALL_LANES, here, 31);
  }

  // Whether item i, the lane's j-th, is the last of its code, and both sides hold enough.
  template <class Items>
  __device__ __forceinline__ bool may_cut(const Items& items, int n_items, int i, int j, bool with,
                                          const Node& node, const Limits& limits,
                                          const Draw& draw) const {
    bool inside = i < n_items && right[j].n > 0;
    bool holds_rows = left[j].n > (j ? left[j ? j - 1 : 0].n : n_before);
    bool ends = inside && holds_rows;
    if (SPECIAL && node.C > 1)
      inside = inside && limits.allow(left[j].n, a_left[j], right[j].n, node.sums[1] - a_left[j]);
    ends = ends && inside;
    if (SPECIAL && draw.random) {  // an empty bin is no candidate, but a cut may be drawn there
      ends = inside && with == draw.missing_left && items.code(i) <= draw.code;
      ends = ends && (i + 1 == n_items || items.code(i + 1) > draw.code);
    } else if (!Items::BINS) {
      ends = ends && (i + 1 == n_items || items.code(i + 1) != items.code(i));
    }
    int least = limits.min_rows;
    return ends && (least <= 1 || (n_left[j] >= least && node.n_rows - n_left[j] >= least));
  }
};

// All lanes call it and get the same result. The more items a lane takes at a time, the fewer sums
// over lanes.
template <int EACH, class Items>
__device__ Cut best_cut_of(const Items& items, int n_items, const Node& node, const Limits& limits,
                           const Draw& draw, const i64* table) {
  Cut best = {MINUS_INFINITY, -1, false, false};
  for (int with = 0; with <= (int)node.some_missing; with++) {
    int rows_so_far = with ? node.rows_missing : 0;
    for (int first = 0; first < n_items; first += 32 * EACH) {
      // 2. left sides: without the missing values, then with them
      Cuts<EACH> cuts;
      cuts.add(items, n_items, first, with > 0, node, table);
      if (limits.min_rows > 1) rows_so_far = cuts.count(items, n_items, first, rows_so_far);
#pragma unroll
      for (int j = 0; j < EACH; j++) {
        // 3. candidates, and 4. their scores: the first of the highest
        int i = first + lane() * EACH + j;
        if (!cuts.may_cut(items, n_items, i, j, with > 0, node, limits, draw)) continue;
        const Side &left = cuts.left[j], &right = cuts.right[j];
        double score = left.score(table) + right.score(table);
        if (score > best.score || (score == best.score && i < best.item))
          best = {score, i, with > 0, left.n > right.n};
      }
    }
  }
  return best_of_lanes(best, lanes_for((n_items + EACH - 1) / EACH));
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

#define WHERE_MISSING_LEFT 20  // bits above that of the bin, where a cut and its side are one word

// The best cut between the bins of a feature f that has n of them, `last` that of missing values,
// in a node of these sums and this key; `where` it is. `scratch` i64[2, C] is the warp's: the first
// are the sums of rows with missing values then.
template <int EACH, class Bins>
__device__ __forceinline__ double cut_bins(const Bins& bins, int last, int f, int n, int n_rows,
                                           const i64* sums, u64 key, bool random,
                                           const Limits& limits, const i64* table, i64* scratch,
                                           int& where) {
  int C = bins.C, n_bins = min(n, last);  // those that may hold rows, but for missing values
  for (int c = lane(); c < C; c += 32) scratch[c] = bins.at(last).channel(c);
  __syncwarp();
  int rows_missing = limits.min_rows > 1 ? bins.rows(last) : 0;
  Node node = {C, n_rows, sums, holds_rows(bins, last), rows_missing, scratch, scratch + C};
  Draw draw = {false, false, 0};
  int low = random ? bins.after(-1, n_bins) : -1;
  if (low >= 0) draw.between(key, f, low, last_bin(bins, n_bins), node.some_missing);
  Cut cut = best_cut_of<EACH>(bins, n_bins, node, limits, draw, table);
  where = missing_goes_left(cut, node) << WHERE_MISSING_LEFT;
  if (cut.item >= 0)
    where |= draw.random && bins.after(draw.code, n_bins) >= 0
                 ? draw.code
                 : middle_of_gap(bins, n_bins, cut.item, n);
  __syncwarp();
  return cut.score;
}

// The sum of channel c on the left side of a cut.
template <class Bins>
__device__ __forceinline__ i64 left_sum(const Bins& bins, int c, int bin, bool missing_left,
                                        int last) {
  SUM sum = 0;
  for (int b = lane(); b <= bin; b += 32) sum += bins.at(b).channel(c);
  return warp_sum(sum) + (missing_left ? bins.at(last).channel(c) : 0);
}
