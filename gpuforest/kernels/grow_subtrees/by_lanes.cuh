// The best cut of a node of at most 32 rows. A lane holds a row, so that nodes of few rows leave
// room for several features: as many groups of `width` lanes as fit a warp try one each.
#include "grow_subtrees/node.cuh"

// The row of a lane, and its group.
struct Row {
  int width, group, i;  // i: the lane within its group
  bool inside;
  int position;
  i32 weight;

  __device__ __forceinline__ Row(const Block& block, const Open& node) {
    width = lanes_for(node.n);
    group = lane() / width;
    i = lane() & (width - 1);
    inside = i < node.n;
    position = block.order[node.low + (inside ? i : 0)];
    weight = block.weight[position];
  }
  // The bits of this group's lanes among those of a ballot.
  __device__ __forceinline__ u32 own(u32 ballot) const {
    return ballot >> group * width & (width < 32 ? (1u << width) - 1 : ALL_LANES);
  }
};

// The rows of a group in the order of their codes; a lane has one of them.
struct Sorted {
  int code, next;  // next: the code of the lane after this one
  int present, n_missing;
  i32 weight;
  const TARGET* target;

  __device__ __forceinline__ Sorted(const Block& block, const Row& row, int code_of_row, int n,
                                    int missing, int K) {
    n_missing = __popc(row.own(__ballot_sync(ALL_LANES, row.inside && code_of_row == missing)));
    present = n - n_missing;
    u32 key = row.inside ? (u32)code_of_row << 5 | row.i : 0xffffffffu;
    key = sort_lanes(key, row.width);
    int from = key & 31;
    code = key >> 5;
    next = __shfl_down_sync(ALL_LANES, code, 1, row.width);
    weight = __shfl_sync(ALL_LANES, row.weight, from, row.width);
    target = block.target + __shfl_sync(ALL_LANES, row.position, from, row.width) * K;
  }
  __device__ __forceinline__ SUM channel(int c) const { return added(target, weight, c); }
};

// Both sides of a cut, where missing values go to the right or to the left.
struct Sides {
  Side left, right;
  i64 second = 0;  // the second channel of the left side, if cuts have limits

  __device__ __forceinline__ void add(int c, SUM sum, SUM all, const i64* table) {
    left.add(c, sum, table);
    right.add(c, all - sum, table);
    if (SPECIAL == LIMITED && c == 1) second = sum;
  }
  __device__ __forceinline__ bool within(const Limits& limits, int C, const i64* sums) const {
    if (SPECIAL != LIMITED || C == 1) return true;
    return limits.allow(left.n, second, right.n, sums[1] - second);
  }
};

// A cut that a lane found: ranks are in the order of features, then of rows, then missing values
// to the right before to the left.
struct Found {
  double score;
  int rank;

  __device__ __forceinline__ void offer(const Sides& sides, int own_rank, const i64* table) {
    double own = sides.left.score(table) + sides.right.score(table);
    if (own > score) *this = {own, own_rank | (sides.left.n > sides.right.n)};
  }
};

#define NOT_FOUND 0x7fffffff
#define RANK_MISSING_LEFT 2
#define RANK_HEAVIER 1

// All lanes call it, and get the best cut behind a lane's row; `takes`: the feature of the lane's
// group counts.
__device__ __forceinline__ Found cut_behind_rows(const Growth& growth, const Row& row,
                                                 const Sorted& sorted, bool takes,
                                                 const Draw& draw, const Limits& limits,
                                                 const i64* sums) {
  const i64* table = growth.table;
  int min_rows = limits.min_rows, n = sorted.present + sorted.n_missing;
  bool inside = row.i < sorted.present;
  bool some_missing = __any_sync(ALL_LANES, takes && sorted.n_missing > 0);
  Sides without, with;
  for (int c = 0; c < growth.C; c++) {
    SUM all = (SUM)sums[c];
    SUM here = sum_to_here(inside ? sorted.channel(c) : (SUM)0, row.width);
    without.add(c, here, all, table);
    if (some_missing) {
      SUM present = __shfl_sync(ALL_LANES, here, row.width - 1, row.width);
      with.add(c, here + all - present, all, table);
    }
  }
  int above = row.i + 1;  // rows of the left side, without missing values
  bool last = above == sorted.present, without_allowed = takes && inside, with_allowed;
  if (random_cuts(growth)) {
    without_allowed = without_allowed && sorted.code <= draw.code;
    without_allowed = without_allowed && (last || sorted.next > draw.code);
    with_allowed = without_allowed && draw.missing_left;
    without_allowed = without_allowed && !draw.missing_left;
  } else {
    without_allowed = without_allowed && (last || sorted.next != sorted.code) && sorted.weight > 0;
    with_allowed = without_allowed;
  }
  without_allowed = without_allowed && without.right.n > 0;
  without_allowed = without_allowed && above >= min_rows && n - above >= min_rows;
  above += sorted.n_missing;
  with_allowed = with_allowed && some_missing && sorted.n_missing > 0 && with.right.n > 0;
  with_allowed = with_allowed && above >= min_rows && n - above >= min_rows;
  without_allowed = without_allowed && without.within(limits, growth.C, sums);
  with_allowed = with_allowed && with.within(limits, growth.C, sums);
  Found found = {MINUS_INFINITY, NOT_FOUND};
  int rank = row.group << 8 | row.i << 2;
  if (without_allowed) found.offer(without, rank, table);
  if (with_allowed) found.offer(with, rank | RANK_MISSING_LEFT, table);
  first_highest(found.score, found.rank);
  return found;
}

// The best cut of the first k features that vary in a node of at most 32 rows.
__device__ __forceinline__ Best best_of_few(const Block& block, const Growth& growth,
                                            const Open& node, u64 key, const i64* sums) {
  Best best = {MINUS_INFINITY, -1, 0, false};
  Row row(block, node);
  for (int tried = 0, first = 0, drawn = 0; tried < growth.k && first < growth.F;
       first += 32 / row.width) {
    // each lane draws one of the next 32 features
    if ((first & 31) == 0) drawn = draw(growth, key, first + lane());
    int f = __shfl_sync(ALL_LANES, drawn, (first + row.group) & 31);
    bool drawn_too = first + row.group < growth.F && (!growth.allowed || growth.allowed[f]);
    // 1. the features of these groups that vary, and count
    int code = drawn_too ? block.code(row.position, f) : 0;
    int code_of_first = __shfl_sync(ALL_LANES, code, 0, row.width);
    bool differs = row.inside && code != code_of_first;
    bool varies = row.own(__ballot_sync(ALL_LANES, differs)) != 0;
    u32 vary = __ballot_sync(ALL_LANES, varies && row.i == 0);
    if (!vary) continue;
    int before = __popc(vary & ((1u << row.group * row.width) - 1));
    bool takes = varies && before < growth.k - tried;
    tried += __popc(vary);
    // 2. the best of their cuts
    Sorted sorted(block, row, code, node.n, growth.B - 1, outputs(growth.C));
    Draw draw = {false, false, 0};
    int high = 0;
    if (random_cuts(growth)) {
      high = __shfl_sync(ALL_LANES, sorted.code, sorted.present - 1, row.width);
      int low = __shfl_sync(ALL_LANES, sorted.code, 0, row.width);
      draw.between(key, f, low, high, sorted.n_missing > 0);
    }
    Limits limits = limits_of(growth, node.low, takes ? f : 0);
    Found found = cut_behind_rows(growth, row, sorted, takes, draw, limits, sums);
    if (!(found.score > best.score)) continue;
    // 3. the middle of the gap behind the cut, and where missing values go
    int last = row.i + 1 == sorted.present, n_bins = drawn_too ? growth.n_bins[f] : 0;
    int bin = last ? n_bins - 1 : (sorted.code + sorted.next - 1) >> 1;
    if (random_cuts(growth) && draw.code < high) bin = draw.code;
    bool missing_left =
        found.rank & (sorted.n_missing > 0 ? RANK_MISSING_LEFT : RANK_HEAVIER);
    int from = (found.rank >> 8) * row.width + (found.rank >> 2 & 31);
    best = {found.score, __shfl_sync(ALL_LANES, f, from), __shfl_sync(ALL_LANES, bin, from),
            (bool)__shfl_sync(ALL_LANES, (int)missing_left, from)};
  }
  return best;
}
