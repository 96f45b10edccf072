// The work between two searches: O(nodes) for one tree. A block does it, mostly one thread of it.
#include "boosted_tree/cuda.cuh"

// What belongs to one tree.
struct Own {
  i64 k, F;
  TreeNode* nodes;
  bool *groups, *tried;
  u64* sets;
  i64 *open, *free;
  NodeSplit* splits;
  u64* split_sets;

  __device__ __forceinline__ Own(const TreeTable& table, const TreeRules& rules, i64 k, i64 F)
      : k(k), F(F), nodes(table.nodes + k * table.M),
        groups(table.groups + k * table.M * rules.n_groups), tried(table.tried + 3 * k * F),
        sets(table.sets + k * table.M * table.W), open(table.open + k * table.M),
        free(table.free + k * table.P), splits(table.splits + 2 * k * F),
        split_sets(table.split_sets + 2 * k * F * table.W) {}
};

__device__ __forceinline__ i64 take_slot(const Own& own, TreeState& s) {
  return s.n_free ? own.free[--s.n_free] : -1;
}

__device__ __forceinline__ void give_slot(const Own& own, TreeState& s, i64 slot) {
  if (slot >= 0) own.free[s.n_free++] = slot;
}

// The node that was divided last is done: its children's others are known.
__device__ __forceinline__ void settle(TreeNode* nodes, TreeState& s) {
  if (s.split < 0) return;
  i64 left = nodes[s.split].left;
  nodes[left].other_end = nodes[left + 1].other_begin = s.other_left;
  s.split = -1;
}

// Takes the best split of a searched node, of equals that by the first feature. The block calls.
__device__ __forceinline__ void take_found(const Own& own, TreeState& s, i64 node, int which, i64 W,
                                           Best* shared) {
  Best best = {0.0, NEVER};
  const NodeSplit* splits = own.splits + which * own.F;
  const bool* tried = own.tried + which * own.F;
  for (i64 f = threadIdx.x; f < own.F; f += blockDim.x)
    if (tried[f]) best.take(splits[f].gain, f);
  best = block_best(best, shared);
  bool found = best.gain > 0.0;
  TreeNode& to = own.nodes[node];
  if (found && threadIdx.x == 0) {
    const NodeSplit& from = splits[best.at];
    to.gain = best.gain;
    to.feature = best.at;
    to.bin = from.bin;
    to.missing_left = from.missing_left;
    to.left_g = from.g;
    to.left_h = from.h;
    to.left_n = from.n;
    own.open[s.n_open++] = node;
    if (from.bin == SET_BIN)
      for (i64 w = 0; w < W; w++)
        own.sets[node * W + w] = own.split_sets[(which * own.F + best.at) * W + w];
  }
  if (!found && threadIdx.x == 0) give_slot(own, s, to.slot);
  __syncthreads();
}

// Takes the open node whose split gains most, the first of equals. Without a limit of leaves their
// order changes nothing: then the last, which frees histograms soonest. The block calls.
__device__ __forceinline__ i64 next_node(const Own& own, TreeState& s, bool limited, Best* shared) {
  i64 n = s.n_open, at = n - 1;
  i64 node = own.open[at];
  if (limited) {
    Best best = {0.0, NEVER};
    for (i64 i = threadIdx.x; i < n; i += blockDim.x)
      best.take(own.nodes[own.open[i]].gain, own.open[i]);
    node = block_best(best, shared).at;
  }
  i64 last = own.open[n - 1];
  __syncthreads();
  for (i64 i = threadIdx.x; i < n; i += blockDim.x)
    if (own.open[i] == node) own.open[i] = last;
  __syncthreads();
  return node;
}

__device__ __forceinline__ void make_node(TreeNode& node, u64 key, i64 depth, Sums sums, double low,
                                          double high) {
  node.key = key;
  node.depth = depth;
  node.g = sums.g;
  node.h = sums.h;
  node.n = sums.n;
  node.low = low;
  node.high = high;
  node.slot = node.feature = node.left = -1;
  node.gain = 0.0;
}

// Makes the two children of a node, and says how its rows are to be divided. One thread calls.
__device__ __forceinline__ void make_children(const Own& own, TreeState& s, const TreeRules& rules,
                                              i64 parent) {
  TreeNode& node = own.nodes[parent];
  i64 left = node.left = s.n_nodes, middle = node.begin + node.left_n;
  TreeNode &a = own.nodes[left], &b = own.nodes[left + 1];
  Sums whole = {node.g, node.h, node.n}, here = {node.left_g, node.left_h, node.left_n};
  Sums there = whole - here;
  double low = node.low, high = node.high;
  int sign = rules.signs[node.feature];
  double value = value_of(here.g, here.h, rules, low, high);
  double other = value_of(there.g, there.h, rules, low, high), mean = (value + other) * 0.5;
  make_node(a, hash_at(node.key, 0), node.depth + 1, here, sign < 0 ? mean : low,
            sign > 0 ? mean : high);
  make_node(b, hash_at(node.key, 1), node.depth + 1, there, sign > 0 ? mean : low,
            sign < 0 ? mean : high);
  a.begin = s.left = node.begin;
  a.end = b.begin = middle;
  b.end = s.right = node.end;
  a.other_begin = s.other_left = node.other_begin;
  b.other_end = s.other_right = node.other_end;
  for (i64 j = 0; j < rules.n_groups; j++) {
    bool inside = own.groups[parent * rules.n_groups + j] && rules.groups[j * own.F + node.feature];
    own.groups[left * rules.n_groups + j] = own.groups[(left + 1) * rules.n_groups + j] = inside;
  }
  s.split = parent;
  s.n_nodes += 2;
  s.n_leaves++;
}

__device__ __forceinline__ void plan(TreeState& s, i64 node, i64 slot, i64 other, i64 other_slot,
                                     bool subtract) {
  s.first = node;
  s.first_slot = slot;
  s.second = other;
  s.second_slot = other_slot;
  s.subtract = subtract;
}

// Plans the search for the splits of a node's two children, where they may have any: the smaller
// one's histograms are filled, the larger one's are what is left of their parent's.
__device__ __forceinline__ void plan_children(const Own& own, TreeState& s, const TreeRules& rules,
                                              i64 parent, i64 spare) {
  i64 left = own.nodes[parent].left, old = own.nodes[parent].slot;
  bool first = own.nodes[left].n < own.nodes[left + 1].n;
  i64 small = first ? left : left + 1, large = first ? left + 1 : left;
  plan(s, -1, -1, -1, -1, false);
  bool both = may_split(own.nodes[small], rules);
  if (may_split(own.nodes[large], rules)) {
    i64 slot = both ? take_slot(own, s) : -1;
    own.nodes[small].slot = slot;
    if (old >= 0) {
      own.nodes[large].slot = old;
      plan(s, small, slot >= 0 ? slot : spare, large, old, true);
      return;
    }
    i64 other = own.nodes[large].slot = take_slot(own, s);
    plan(s, both ? small : -1, slot >= 0 ? slot : spare, large, other >= 0 ? other : spare + 1,
         false);
  } else if (both) {  // the smaller one has too few rows as well; but it may have more hessian
    i64 slot = own.nodes[small].slot = old >= 0 ? old : take_slot(own, s);
    plan(s, small, slot >= 0 ? slot : spare, -1, spare, false);
  } else {
    give_slot(own, s, old);
  }
}

// Marks the features that a node tries, and those that have histograms. The block calls.
__device__ __forceinline__ void choose_features(const Own& own, const TreeRules& rules, i64 node,
                                                int which, bool any, u32* counts) {
  bool *tried = own.tried + which * own.F, *known = own.tried + 2 * own.F;
  int n = 0;
  for (i64 first = 0; first < own.F; first += blockDim.x) {
    i64 f = first + threadIdx.x;
    bool allowed = f < own.F && rules.n_groups == 0;
    for (i64 j = 0; f < own.F && j < rules.n_groups; j++)
      allowed |= own.groups[node * rules.n_groups + j] && rules.groups[j * own.F + f];
    if (f < own.F) known[f] = tried[f] = allowed;
    int all;
    block_rank(allowed, counts, all);
    n += all;
  }
  int wanted = (int)ceil(rules.share * (double)n), taken = 0;
  wanted = wanted > 1 ? wanted : 1;
  if (any && wanted >= n) return;
  for (i64 f = threadIdx.x; f < own.F; f += blockDim.x) tried[f] = false;
  __syncthreads();
  if (!any) return;
  Order order(own.nodes[node].key, own.F);
  for (i64 first = 0; first < own.F && taken < wanted; first += blockDim.x) {
    i64 position = first + threadIdx.x, f = position < own.F ? order.at((u32)position) : -1;
    bool allowed = f >= 0 && known[f];
    int all, rank = block_rank(allowed, counts, all);
    if (allowed && taken + rank < wanted) tried[f] = true;
    taken += all;
  }
}
