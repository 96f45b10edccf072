// The nodes of a subtree: their sums, their features, and what a new node becomes.
//
// A node that waits has its key at its position among the nodes, and its sums among those of the
// leaves, where they stay if it becomes one.
#include "grow_subtrees/cuda.cuh"

// The rules of a subtree, and where it is written.
struct Growth {
  int k, max_depth, fewest_rows, min_rows;
  i64 min_weight;
  double min_gain;
  bool random;
  const i8* signs;     // [F], or null
  const i32* n_bins;   // [F]
  const i64* table;    // n ln n
  int F, B, C;
  u64* nodes;           // [2 n] of this block
  i64* leaf_sums;       // [n, C] of this block
  double* bounds;       // [n, 2] of the means of nodes that wait, at their first rows; or null
  const bool* allowed;  // [F], features that the tree drew; or null
#if SETS
  Categories sets;  // from this block's first row on
#endif
#if SUMS
  Combining combining;
#endif

  // One more than the greatest code of a key.
  __device__ __forceinline__ int n_codes() const {
#if SUMS
    return (int)combining.n_bins + 1;
#else
    return B;
#endif
  }
};

// SPECIAL 0: all cuts are tried, as most forests do; 1: cuts are random; LIMITED: they may be, and
// have limits of weight or of means.

// The best split of a node so far.
struct Best {
  double score;
  int feature, bin;
  bool missing_left;
};

__device__ __forceinline__ i64* scratch_of(const Block& block, const Growth& growth) {
  return block.scratch + warp() * NODE_SUMS * growth.C;
}

__device__ __forceinline__ int draw(const Growth& growth, u64 key, int position) {
  if (growth.k >= growth.F || position >= growth.F) return position;
  return (int)Order(key, growth.F).at(position);
}

// Whether the targets of the rows at two positions are equal.
__device__ __forceinline__ bool same_target(const Block& block, int a, int b, int K) {
  for (int m = 0; m < K; m++)
    if (block.target[a * K + m] != block.target[b * K + m]) return false;
  return true;
}

// Where the set of a node's split is: no other split has children at the same position, and a slot
// has fewer pairs of children than rows.
__device__ __forceinline__ u64* set_of(const Growth& growth, const Open& node) {
#if SETS
  return growth.sets.sets + (i64)(node.below >> 1) * growth.sets.words;
#else
  return nullptr;
#endif
}

// Writes the split of a node, with its children at `below` and `below` + 1. Numbers in nodes are
// those within the subtree.
__device__ __forceinline__ void write_split(const Growth& growth, const Open& node,
                                            const Best& best) {
  growth.nodes[node.position] =
      (u64)best.feature << FEATURE_SHIFT | (u64)best.missing_left << MISSING_SHIFT |
      (u64)(node.below - 2 * node.base) << CHILD_SHIFT | (u64)best.bin;
}

__device__ __forceinline__ void write_leaf(const Growth& growth, const Open& node) {
  growth.nodes[node.position] = LEAF_WORD | (u64)(node.low - node.base);
}

// The limits on the cuts of feature f in a node whose rows begin at `low`.
__device__ __forceinline__ Limits limits_of(const Growth& growth, int low, int f) {
  bool limited = SPECIAL == LIMITED;
  i64 min_weight = limited ? growth.min_weight : 1;
  if (!limited || !growth.bounds) return {growth.min_rows, min_weight, 0, nullptr};
  return {growth.min_rows, min_weight, growth.signs[f], growth.bounds + 2 * low};
}

__device__ __forceinline__ bool random_cuts(const Growth& growth) {
  return SPECIAL == 1 || (SPECIAL == LIMITED && growth.random);
}

// The weight of rows of these channel sums.
__device__ __forceinline__ i64 weight_of(const i64* sums, int C) {
  i64 n = sums[0];
  for (int c = 1; c < (LABELS ? C : 1); c++) n += sums[c];
  return n;
}

// Writes the bounds of the two children of a node, of which the left one has the node's first
// rows: the middle of their means divides those of the node. One lane calls it.
__device__ __forceinline__ void write_bounds(const Growth& growth, int f, int low, int left,
                                             const i64* left_sums, const i64* right_sums) {
  int C = growth.C, sign = growth.signs[f];
  double a = (double)left_sums[1] / (double)weight_of(left_sums, C);
  double b = (double)right_sums[1] / (double)weight_of(right_sums, C), middle = (a + b) * 0.5;
  double *own = growth.bounds + 2 * low, *right = growth.bounds + 2 * (low + left);
  double least = own[0], most = own[1];
  own[0] = sign < 0 ? middle : least;
  own[1] = sign > 0 ? middle : most;
  right[0] = sign > 0 ? middle : least;
  right[1] = sign < 0 ? middle : most;
}

// The children of a node whose first `left` rows go left.
__device__ __forceinline__ Open left_child(const Open& node, int left) {
  return {node.low, (u16)left, node.below, (u16)(node.below + 2), (u16)(node.levels - 1), node.base,
          NO_NODE};
}

__device__ __forceinline__ Open right_child(const Open& node, int left) {
  return {(u16)(node.low + left), (u16)(node.n - left), (u16)(node.below + 1),
          (u16)(node.below + 2 * left), (u16)(node.levels - 1), node.base, NO_NODE};
}

// A warp writes a new node, a leaf or one that waits, and returns whether it waits. `equal`: all
// its targets are equal.
__device__ __forceinline__ bool add_node(const Growth& growth, const Open& node, u64 key,
                                         const i64* sums, bool equal) {
  bool waits = !equal && node.n >= growth.fewest_rows && node.levels > 0;
  i64 least = SPECIAL == LIMITED ? growth.min_weight : 1;
  waits = waits && (least <= 1 || weight_of(sums, growth.C) >= 2 * least);
  for (int c = lane(); c < growth.C; c += 32)
    growth.leaf_sums[(i64)node.low * growth.C + c] = sums[c];
  if (lane() == 0 && waits) growth.nodes[node.position] = key;
  if (lane() == 0 && !waits) write_leaf(growth, node);
  return waits;
}

// A warp writes the split of a node and its children, whose first rows, `left` of them, go left, and
// returns which of them wait. Writes `right_sums`.
#define LEFT_WAITS 1
#define RIGHT_WAITS 2

__device__ __forceinline__ int write_children(const Growth& growth, const Open& node, u64 key,
                                              const Best& best, int left, const i64* sums,
                                              const i64* left_sums, i64* right_sums,
                                              bool left_equal, bool right_equal) {
  for (int c = lane(); c < growth.C; c += 32) right_sums[c] = sums[c] - left_sums[c];
  __syncwarp();
  if (SPECIAL == LIMITED && growth.bounds && lane() == 0)
    write_bounds(growth, best.feature, node.low, left, left_sums, right_sums);
  if (lane() == 0) write_split(growth, node, best);
  Open a = left_child(node, left), b = right_child(node, left);
  bool left_waits = add_node(growth, a, hash_at(key, 0), left_sums, left_equal);
  bool right_waits = add_node(growth, b, hash_at(key, 1), right_sums, right_equal);
  __syncwarp();
  return left_waits * LEFT_WAITS | right_waits * RIGHT_WAITS;
}

// Whether the row at a position goes left.
__device__ __forceinline__ bool goes_left_at(const Block& block, const Growth& growth,
                                             const Open& node, const Best& split, int position) {
  auto set = [&] { return set_of(growth, node); };
#if SUMS
  if (n_summed(split.bin) > 0)
    return sum_goes_left(set(), n_summed(split.bin), split.missing_left,
                         growth.combining.coordinates, growth.B,
                         [&](int f) { return block.code(position, f); });
#endif
  return goes_left(block.code(position, split.feature), split.bin, split.missing_left,
                   growth.B - 1, set);
}

// Moves a node's left rows before its right rows, both in their order, and returns how many go left.
// A group of threads calls it: the lanes of a warp, or a team of warps, which counts in `counts`.
template <class Group, class Goes>
__device__ __forceinline__ int split_rows(const Block& block, const Group& group, const Open& node,
                                          u32* counts, Goes goes_left) {
  int low = node.low, n = node.n, left = 0, right = 0;
  for (int base = 0; base < n; base += group.threads()) {
    int i = base + group.thread(), total;
    bool inside = i < n, goes = false;
    u16 position = 0;
    if (inside) {
      position = block.order[low + i];
      goes = goes_left(position);
    }
    int rank = group.rank(goes, counts, total);  // all have read then
    if (goes) block.order[low + left + rank] = position;
    if (inside && !goes) block.keys[low + right + group.thread() - rank] = position;
    left += total;
    right += min(group.threads(), n - base) - total;
  }
  group.sync();
  for (int i = group.thread(); i < right; i += group.threads())
    block.order[low + left + i] = block.keys[low + i];
  group.sync();
  return left;
}

// Whether the targets of n rows are equal; a group calls it.
template <class Group>
__device__ __forceinline__ bool all_equal(const Block& block, const Group& group, int low, int n,
                                          int C, u32* counts) {
  int first = block.order[low], total;
  bool equal = true;
  for (int i = group.thread(); i < n && equal; i += group.threads())
    equal = same_target(block, block.order[low + i], first, outputs(C));
  group.rank(!equal, counts, total);
  return total == 0;
}

// Whether the best split is none, or gains too little.
__device__ __forceinline__ bool refused(const Growth& growth, const Best& best, const i64* sums) {
  if (best.feature < 0) return true;
  Side whole;
  for (int c = 0; c < growth.C; c++) whole.add(c, sums[c], growth.table);
  return best.score - whole.score(growth.table) < growth.min_gain;
}

// Counts of nodes, in shared memory.
struct Counts {
  int open[2], n_long, n_short, taken, taken_open;
};

// The lists of open nodes of a level, and the subtrees that warps will grow, in shared memory: those
// of many rows are at the begin of the list and are grown first, so that warps end together.
struct Lists {
  Counts& counts;
  int next;  // which of the two lists of open nodes gets new ones

  // A lane puts a node into the one or the other.
  __device__ __forceinline__ void put(const Block& block, const Open& node) const {
    if (node.n > FEW_ROWS) {
      block.open[next * block.most_open + atomicAdd(&counts.open[next], 1)] = node;
      return;
    }
    block.waiting[node.low >> 1] = node;
    bool is_long = node.n > FEW_ROWS / 2;
    int i = atomicAdd(is_long ? &counts.n_long : &counts.n_short, 1);
    block.roots[is_long ? i : block.n_roots - 1 - i] = node.low >> 1;
  }
  // The children of a node that wait; a warp calls it.
  __device__ __forceinline__ void put(const Block& block, const Open& node, int left,
                                      int wait) const {
    if (lane() == 0 && wait & LEFT_WAITS) put(block, left_child(node, left));
    if (lane() == 0 && wait & RIGHT_WAITS) put(block, right_child(node, left));
  }
};
