// Trees of boosting on the device, grown best first, one split of each tree after another. The
// specification is numpy.py beside this file; numba.py has the same steps.
//
// What to do next is decided here (`pick`) and stays here, so that the host enqueues step after
// step, or all at once, and waits for none. Kernels find nothing to do where a tree is done.
#include "boosted_tree/fill.cuh"
#include "boosted_tree/pick.cuh"
#include "boosted_tree/search.cuh"

// States of trees that have no node yet; `key` is the seed of all, `number` that of the first.
extern "C" __global__ void __launch_bounds__(THREADS)
begin(TreeTable table, u64 seed, i64 number, i64 K) {
  for (i64 k = thread_number(); k < K; k += thread_count()) {
    TreeState s = {};
    s.first = s.second = s.split = -1;
    s.key = hash_at(hash_at(seed, number + k), ROOT);
    table.states[k] = s;
  }
}

// Every tree's rows: the first R of a random order if they are drawn, and the others; and the sums
// of the first R.
extern "C" __global__ void __launch_bounds__(THREADS)
roots(TreeRows rows, TreeTable table, u64 key, i64 is_drawn) {
  i64 k = blockIdx.y, sums[WORDS] = {};
  Order order(key, rows.N);
  i32* to = rows_of(rows, k, 0);
  for (i64 i = thread_number(); i < rows.N; i += thread_count()) {
    i64 row = is_drawn ? order.at((u32)i) : i;
    to[i] = (i32)row;
    if (i >= rows.R) continue;
#pragma unroll
    for (int w = 0; w < WORDS; w++) sums[w] += rows.stats[(k * rows.N + row) * WORDS + w];
  }
#pragma unroll
  for (int w = 0; w < WORDS; w++) sums[w] = warp_sum(sums[w]);
  if (lane() > 0) return;
  add_global(&table.states[k].sum_first, sums[0]);
  if (WORDS == 2) add_global(&table.states[k].sum_last, sums[WORDS - 1]);
}

// Makes the root, and plans its search. One thread calls.
__device__ __forceinline__ void make_root(const Own& own, TreeState& s, const TreeRows& rows,
                                          const TreeRules& rules, i64 P) {
  TreeNode& root = own.nodes[0];
  i64 last = WORDS == 2 ? s.sum_last : s.sum_first;
  double most = rules.most * rules.scale->g * rules.scale->sum_g;
  make_node(root, s.key, 0, unpacked(s.sum_first, last, rules.n_bits), -most, most);
  root.begin = 0;
  root.end = root.other_begin = rows.R;
  root.other_end = rows.N;
  for (i64 j = 0; j < rules.n_groups; j++) own.groups[j] = true;
  for (i64 i = 0; i < P; i++) own.free[i] = i;
  s.n_free = P;
  s.n_nodes = s.n_leaves = 1;
  root.slot = take_slot(own, s);
  if (may_split(root, rules)) plan(s, 0, root.slot, -1, -1, false);
}

// Moves a warp's share of the rows begin .. end - 1 to the other half: those that go left from
// `left` upwards, the others from `right` downwards. Their order does not matter.
__device__ __forceinline__ void divide_rows(const Codes& codes, const TreeNode& node, const u64* set,
                                            const i32* from, i32* to, i64 begin, i64 end, i64* left,
                                            i64* right) {
  const int each = 8;
  i64 stride = thread_count() * each, share = (thread_number() >> 5) * 32 * each;
  int bin = (int)node.bin, missing = (int)codes.B - 1;
  bool missing_left = node.missing_left;
  for (i64 at = begin + share + lane(); at - lane() < end; at += stride) {
    i32 row[each];
    u32 here[each], there[each];
    int n_left = 0, n_right = 0;
#pragma unroll
    for (int q = 0; q < each; q++) row[q] = at + 32 * q < end ? from[at + 32 * q] : -1;
#pragma unroll
    for (int q = 0; q < each; q++) {
      int code = row[q] < 0 ? 0 : codes.at[row[q] * codes.stride + node.feature];
      bool goes = goes_left(code, bin, missing_left, missing, [&] { return set; });
      here[q] = __ballot_sync(ALL_LANES, row[q] >= 0 && goes);
      there[q] = __ballot_sync(ALL_LANES, row[q] >= 0 && !goes);
      n_left += __popc(here[q]);
      n_right += __popc(there[q]);
    }
    i64 up = 0, down = 0;
    if (lane() == 0) {
      up = atomicAdd((u64*)left, (u64)n_left);
      down = atomicAdd((u64*)right, (u64)-(i64)n_right);
    }
    up = __shfl_sync(ALL_LANES, up, 0);
    down = __shfl_sync(ALL_LANES, down, 0);
#pragma unroll
    for (int q = 0; q < each; q++) {
      if (here[q] >> lane() & 1) to[up + __popc(here[q] & lanes_below())] = row[q];
      if (there[q] >> lane() & 1) to[down - 1 - __popc(there[q] & lanes_below())] = row[q];
      up += __popc(here[q]);
      down -= __popc(there[q]);
    }
  }
}

// Divides the rows of the node that was split, and clears the histograms to be filled. The other
// threads of the grid change the state's four positions, and nothing else of it.
extern "C" __global__ void __launch_bounds__(THREADS)
divide(Codes codes, TreeRows rows, TreeTable table) {
  i64 k = blockIdx.y;
  TreeState& s = table.states[k];
  i64 each = codes.F * codes.B * WORDS;
  for (int which = 0; which < 2; which++) {
    if ((which ? s.second : s.first) < 0 || (which && s.subtract)) continue;
    i64* cells = cells_of(table, codes, k, which ? s.second_slot : s.first_slot, 0);
    for (i64 i = thread_number(); i < each; i += thread_count()) cells[i] = 0;
  }
  if (s.split < 0) return;
  const TreeNode& node = table.nodes[k * table.M + s.split];
  const u64* set = table.sets + (k * table.M + s.split) * table.W;
  const i32* from = rows_of(rows, k, node.depth);
  i32* to = rows_of(rows, k, node.depth + 1);
  divide_rows(codes, node, set, from, to, node.begin, node.end, &s.left, &s.right);
  divide_rows(codes, node, set, from, to, node.other_begin, node.other_end, &s.other_left,
              &s.other_right);
}

// Adds the rows of the one or two nodes of a search to their histograms. A block takes a share of
// the rows and `group` features, whose histograms fit its memory; blockIdx.z is the tree.
extern "C" __global__ void __launch_bounds__(HISTOGRAM_THREADS, 2)
fill(Codes codes, TreeRows rows, TreeTable table, i64 group) {
  DYNAMIC_SHARED(bytes);
  __shared__ int2 own[FILL_FEATURES];
  i64 k = blockIdx.z;
  const TreeState& s = table.states[k];
  const bool* known = table.tried + (3 * k + 2) * codes.F;
  const i64* stats = rows.stats + k * rows.N * WORDS;
  for (int which = 0; which < 2; which++) {
    i64 at = which ? s.second : s.first;
    if (at < 0 || (which && s.subtract)) continue;
    const TreeNode& node = table.nodes[k * table.M + at];
    i64 share = (node.n + gridDim.x - 1) / gridDim.x;
    share = share < LEAST_ROWS ? LEAST_ROWS : share;
    i64 first_row = node.begin + blockIdx.x * share;
    if (first_row >= node.end) continue;
    i64 end = first_row + share < node.end ? first_row + share : node.end;
    const i32* order = rows_of(rows, k, node.depth);
    for (i64 f = blockIdx.y * group; f < codes.F; f += gridDim.y * group) {
      int size = (int)(f + group < codes.F ? group : codes.F - f);
      i64* hist = cells_of(table, codes, k, which ? s.second_slot : s.first_slot, f);
      fill_part(codes, stats, order, first_row, end, known, f, size, own, (u32*)bytes, hist);
    }
  }
}

// What follows from a search, or begins a tree: takes the best splits found, splits the node that
// gains most, and plans the next search. The block calls.
__device__ __forceinline__ void pick(const Codes& codes, const TreeRows& rows,
                                     const TreeTable& table, const TreeRules& rules, i64 k,
                                     Scratch& shared) {
  __shared__ TreeState s;
  Own own(table, rules, k, codes.F);
  if (threadIdx.x == 0) {
    s = table.states[k];
    s.searched = 0;
    settle(own.nodes, s);
  }
  __syncthreads();
  i64 first = s.first, second = s.second;
  bool is_new = s.n_nodes == 0;
  __syncthreads();
  if (is_new) {
    if (threadIdx.x == 0) make_root(own, s, rows, rules, table.P);
  } else {
    if (first >= 0) take_found(own, s, first, 0, table.W, shared.best);
    if (second >= 0) take_found(own, s, second, 1, table.W, shared.best);
    bool ends = s.n_open == 0 || s.n_leaves >= rules.max_leaves;
    i64 node = ends ? -1 : next_node(own, s, rules.limited, shared.best);
    __syncthreads();
    if (threadIdx.x == 0) {
      plan(s, -1, -1, -1, -1, false);
      s.done = ends;
      if (!ends) {
        s.n_open--;
        make_children(own, s, rules, node);
        if (s.n_leaves < rules.max_leaves) plan_children(own, s, rules, node, table.P);
      }
    }
  }
  __syncthreads();
  // the histograms of the first may serve the second only
  if (s.first >= 0)
    choose_features(own, rules, s.first, 0, may_split(own.nodes[s.first], rules), shared.counts);
  if (s.second >= 0) choose_features(own, rules, s.second, 1, true, shared.counts);
  if (threadIdx.x == 0) table.states[k] = s;
}

#ifndef ALL_FENCE  // benchmarks set 1: every thread has a fence of its own
#define ALL_FENCE 0
#endif

// Whether this is the last of the blocks that share a tree to come here; it sees what the others
// have written. Barriers order a block's threads around the fences of the first one, as in the
// barriers of CUDA's cooperative groups.
__device__ __forceinline__ bool is_last_block(TreeState& state) {
  __shared__ bool is_last;
  if (ALL_FENCE) __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    is_last = atomicAdd((u64*)&state.searched, 1ull) == gridDim.x - 1;
    __threadfence();
  }
  __syncthreads();
  return is_last;
}

// Finds the best split of the one or two nodes of a search by each feature: a block takes one. The
// second one's histograms may be its parent's still. The tree's last block then goes on with it.
extern "C" __global__ void __launch_bounds__(THREADS)
search(Codes codes, TreeRows rows, TreeTable table, TreeRules rules) {
  DYNAMIC_SHARED(bytes);
  __shared__ Scratch shared;
  i64 k = blockIdx.y, F = codes.F, B = codes.B;
  TreeState& s = table.states[k];
  const bool* tried = table.tried + 3 * k * F;
  if (s.done) return;
  for (i64 f = blockIdx.x; f < F; f += gridDim.x)
    for (int which = 0; which < 2; which++) {
      i64 at = which ? s.second : s.first;
      if (at < 0) continue;
      i64* cells = cells_of(table, codes, k, which ? s.second_slot : s.first_slot, f);
      if (which && s.subtract && tried[2 * F + f]) {
        const i64* other = cells_of(table, codes, k, s.first_slot, f);
        for (i64 i = threadIdx.x; i < B * WORDS; i += blockDim.x) cells[i] -= other[i];
      }
      __syncthreads();
      if (!tried[which * F + f]) continue;
      i64 to = (2 * k + which) * F + f, n_bins = codes.n_bins[f];
      Whole node(table.nodes[k * table.M + at], rules);
      if (rules.kinds[f] == CATEGORICAL)
        best_set(cells, node, n_bins, B, rules.n_bits, shared, bytes, table.splits + to,
                 table.split_sets + to * table.W, table.W);
      else
        best_cut(cells, node, n_bins, B, rules.n_bits, (double)rules.signs[f], shared,
                 table.splits + to);
    }
  if (is_last_block(s)) pick(codes, rows, table, rules, k, shared);
}

// Where each node lies in the order of nodes.py, and its first leaf. One thread calls.
__device__ __forceinline__ void number_nodes(TreeNode* nodes, i64 n) {
  for (i64 i = n - 1; i >= 0; i--) {  // children come after their parents
    i64 left = nodes[i].left;
    nodes[i].n_leaves = left < 0 ? 1 : nodes[left].n_leaves + nodes[left + 1].n_leaves;
  }
  nodes[0].position = nodes[0].first_leaf = 0;
  nodes[0].slot = 1;  // of histograms once; now the position of the first child
  for (i64 i = 0; i < n; i++) {
    i64 left = nodes[i].left, below = nodes[i].slot;
    if (left < 0) continue;
    TreeNode &a = nodes[left], &b = nodes[left + 1];
    a.position = below;
    b.position = below + 1;
    a.slot = below + 2;
    b.slot = below + 2 * a.n_leaves;
    a.first_leaf = nodes[i].first_leaf;
    b.first_leaf = a.first_leaf + a.n_leaves;
  }
}

// Writes a finished tree in the order of nodes.py, its leaves and its sets. A block for each tree.
extern "C" __global__ void __launch_bounds__(THREADS)
finish(TreeTable table, TreeRules rules, TreesOut out) {
  i64 k = blockIdx.x, M = out.M, n = table.states[k].n_nodes;
  TreeNode* nodes = table.nodes + k * table.M;
  u64* to = out.at + k * out.size;
  Leaf* leaves = leaves_of(out, k);
  u64* sets = (u64*)(leaves + (M + 1) / 2);
  if (threadIdx.x == 0) {
    settle(nodes, table.states[k]);
    number_nodes(nodes, n);
    to[0] = (u64)n;
    to[1] = (u64)__double_as_longlong(rules.scale->unit);
    to[2] = (u64)__double_as_longlong(rules.scale->sum_h);
    to[3] = (u64)(rules.scale->overflows != 0.0);
  }
  __syncthreads();
  for (i64 i = threadIdx.x; i < n; i += blockDim.x) {
    TreeNode& own = nodes[i];
    if (own.left < 0) {
      to[4 + own.position] = (u64)LEAF_WORD + (u64)own.first_leaf;
      Leaf& leaf = leaves[own.first_leaf];  // field by field, which spares registers
      leaf.g = own.g;
      leaf.h = own.h;
      leaf.n = own.n;
      leaf.begin = own.begin;
      leaf.end = own.end;
      leaf.other_begin = own.other_begin;
      leaf.other_end = own.other_end;
      leaf.half = own.depth & 1;
      leaf.value = value_of(own.g, own.h, rules, own.low, own.high) * rules.scale->value;
      leaf.added = added_by(leaf.value, rules);
      continue;
    }
    u64 word = (u64)own.feature << FEATURE_SHIFT | (u64)own.bin;
    word |= (u64)(own.missing_left != 0) << MISSING_SHIFT;
    to[4 + own.position] = word | (u64)own.slot << CHILD_SHIFT;
    for (i64 w = 0; w < table.W && own.bin == SET_BIN; w++)
      sets[own.position * table.W + w] = table.sets[(k * table.M + i) * table.W + w];
  }
}

// Adds what leaves predict to the raw predictions f64[K, N] of their rows.
extern "C" __global__ void __launch_bounds__(THREADS)
add_values(TreeRows rows, TreesOut out, double* raw) {
  i64 k = blockIdx.y;
  for (i64 i = thread_number(); i < rows.N; i += thread_count()) {
    const Leaf& own = leaves_of(out, k)[leaf_at(rows, out, k, i)];
    raw[k * rows.N + rows_of(rows, k, own.half)[i]] += own.added;
  }
}
