// Grow subtrees on the device: a block takes a slot, copies its rows to shared memory once
// and grows the whole subtree there, level by level, a warp a node. The specification is the
// loop of grow.py: the trees are the same.
//
// A node of n rows has at most 2 n - 2 descendants, so the counts of rows alone determine the
// positions of nodes, in the order of nodes.py:
//
//     root | pair | all below the left child: 2 n_left - 2 | all below the right child
//
// Nodes lie there with gaps (words 0) until `collect` moves them together. A child's key
// waits at the position of its node.
#include "grow_subtrees/cuda.cuh"


// The rules of a subtree, and where it is written.
struct Growth {
  Growing may;
  CutRules rules;
  int F, B, C;
  u64* nodes;           // [2 n] of this block
  i64* leaf_sums;       // [n, C] of this block
  const bool* allowed;  // [F], features that the tree drew; or null
};

// Open nodes of one level, in shared memory.
struct Level {
  Open* nodes;
  int* count;
};

// The best split of a node so far.
struct Best {
  double score;
  int feature, bin;
  bool missing_left;
};

// Writes the channel sums of a node to `sums`; returns whether all its targets are equal.
__device__ bool node_totals(const Block& block, int low, int n, int C, i64* sums) {
  int K = outputs(C);
  int first = block.order[low];
  bool equal = true;
  for (int c = lane(); c < C; c += 32) sums[c] = 0;
  __syncwarp();
  for (int i = lane(); i < n; i += 32) {
    int position = block.order[low + i];
    for (int m = 0; m < K; m++)
      equal = equal && block.target[position * K + m] == block.target[first * K + m];
#if LABELS
    // totals stay below 2^31: the lower word is enough
    atomicAdd((u32*)&sums[block.target[position]], (u32)block.weight[position]);
#endif
  }
#if !LABELS
  for (int c = 0; c < C; c++) {
    i64 sum = 0;
    for (int i = lane(); i < n; i += 32) {
      int position = block.order[low + i];
      i64 w = block.weight[position];
      sum += c == 0 ? w : w * block.target[position * K + c - 1];
    }
    sum = warp_sum(sum);
    if (lane() == 0) sums[c] = sum;
  }
#endif
  __syncwarp();
  return __all_sync(ALL_LANES, equal);
}

// Writes the keys code << 16 | position of a node's rows in one feature, and counts the missing
// values. Returns false if all rows have the same code.
__device__ __forceinline__ bool load_keys(const Block& block, int f, int low, int n, int missing,
                                          int& n_missing) {
  int first = block.code(block.order[low], f);
  bool varies = false;
  n_missing = 0;
  for (int base = 0; base < n; base += 32) {
    int i = base + lane(), code = first;
    if (i < n) {
      int position = block.order[low + i];
      code = block.code(position, f);
      block.keys[low + i] = (u32)code << 16 | position;
    }
    varies = varies || code != first;
    n_missing += __popc(__ballot_sync(ALL_LANES, i < n && code == missing));
  }
  __syncwarp();
  return __any_sync(ALL_LANES, varies);
}

// The channel sums of the sorted rows first .. n - 1, those with missing values.
__device__ __forceinline__ void sum_missing(const SortedRows& rows, int first, int n, int C,
                                            i64* missing) {
  for (int c = 0; c < C; c++) {
    i64 sum = 0;
    for (int i = first + lane(); i < n; i += 32) sum += rows.at(i).channel(c);
    sum = warp_sum(sum);
    if (lane() == 0) missing[c] = sum;
  }
  __syncwarp();
}

// Sorts a node's keys: a few in registers, and more by counting codes, or by comparisons if a
// count for each code takes too much memory.
__device__ __forceinline__ void sort_rows(const Block& block, int f, int low, int n, int B) {
  u32* keys = block.keys + low;
  if (n <= 32) {
    u32 key = sort_lanes(lane() < n ? keys[lane()] : 0xffffffffu, lanes_for(n));
    __syncwarp();
    if (lane() < n) keys[lane()] = key;
  } else if (!block.counts) {
    sort_keys(keys, n);
  } else {
    u32* next = block.counts + warp() * B;  // where the next key goes, of each code
    for (int b = lane(); b < B; b += 32) next[b] = 0;
    __syncwarp();
    for (int i = lane(); i < n; i += 32) atomicAdd(&next[keys[i] >> 16], 1u);
    __syncwarp();
    u32 before = 0;
    for (int first = 0; first < B; first += 32) {
      int b = first + lane();
      u32 own = b < B ? next[b] : 0, here = before + sum_to_here(own);
      if (b < B) next[b] = here - own;
      before = __shfl_sync(ALL_LANES, here, 31);
    }
    __syncwarp();
    for (int i = lane(); i < n; i += 32) {
      int position = block.order[low + i];
      u32 code = block.code(position, f);
      keys[atomicAdd(&next[code], 1u)] = code << 16 | position;
    }
  }
  __syncwarp();
}

// The best cut of one feature in one node. The keys of the node must be loaded.
__device__ __forceinline__ Best feature_cut(const Block& block, const Growth& growth,
                                            const Open& open, int f, int n_missing, i64* sums) {
  int C = growth.C, n = open.n, present = n - n_missing;
  Node node = {C, n, sums, n_missing > 0, n_missing, sums + C, sums + 2 * C};
  sort_rows(block, f, open.low, n, growth.B);
  SortedRows rows = {block, block.keys + open.low, outputs(C)};
  if (n_missing) sum_missing(rows, present, n, C, node.missing);
  Draw draw = {false, false, 0};
#if SPECIAL  // here it means that cuts are random
  u64 key = growth.nodes[open.position];
  if (present) draw.between(key, f, rows.code(0), rows.code(present - 1), n_missing > 0);
#endif
  Limits limits = limits_of(growth.rules.min_rows);
  Cut cut = best_cut_of(rows, present, node, limits, draw, growth.rules.table);
  Best best = {cut.score, f, 0, missing_goes_left(cut, node)};
  if (cut.item >= 0)
    best.bin = draw.random && draw.code < rows.code(present - 1)
                   ? draw.code
                   : middle_of_gap(rows, present, cut.item, growth.rules.n_bins[f]);
  __syncwarp();
  return best;
}

// Moves a node's left rows before its right rows, both in their order, and returns how many go
// left.
__device__ __forceinline__ int split_rows(const Block& block, const Open& node,
                                          const Best& split, int missing) {
  int low = node.low, n = node.n, left = 0, right = 0;
  for (int base = 0; base < n; base += 32) {
    int i = base + lane();
    bool inside = i < n, goes = false;
    u16 position = 0;
    if (inside) {
      position = block.order[low + i];
      goes = goes_left(block.code(position, split.feature), split.bin, split.missing_left, missing);
    }
    u32 go_left = __ballot_sync(ALL_LANES, goes);
    u32 go_right = __ballot_sync(ALL_LANES, inside && !goes);
    __syncwarp();  // all have read before any writes
    if (goes) block.order[low + left + __popc(go_left & lanes_below())] = position;
    if (inside && !goes) block.keys[low + right + __popc(go_right & lanes_below())] = position;
    left += __popc(go_left);
    right += __popc(go_right);
    __syncwarp();
  }
  for (int i = lane(); i < right; i += 32) block.order[low + left + i] = block.keys[low + i];
  __syncwarp();
  return left;
}

__device__ __forceinline__ void write_leaf(const Growth& growth, int position, int low,
                                           const i64* sums) {
  for (int c = lane(); c < growth.C; c += 32) growth.leaf_sums[(i64)low * growth.C + c] = sums[c];
  if (lane() == 0) growth.nodes[position] = LEAF_WORD | (u64)low;
  __syncwarp();
}

// A new node is a leaf at once, or waits in the next level's list.
__device__ __forceinline__ void open_node(const Block& block, const Growth& growth, Open node,
                                          u64 key, int depth, Level next) {
  i64* sums = block.scratch + warp() * NODE_SUMS * growth.C;
  bool equal = node_totals(block, node.low, node.n, growth.C, sums);
  if (equal || node.n < growth.may.fewest || depth >= growth.may.max_depth) {
    write_leaf(growth, node.position, node.low, sums);
    return;
  }
  if (lane() == 0) {
    growth.nodes[node.position] = key;
    next.nodes[atomicAdd(next.count, 1)] = node;
  }
  __syncwarp();
}

__device__ __forceinline__ int draw(const Growth& growth, u64 key, int position) {
  if (growth.may.k >= growth.F || position >= growth.F) return position;
  return (int)Order(key, growth.F).at(position);
}

// The best cut of the first k features that vary.
__device__ __forceinline__ Best best_of_features(const Block& block, const Growth& growth,
                                                 const Open& node, i64* sums) {
  Best best = {MINUS_INFINITY, -1, 0, false};
  int k = growth.may.k, F = growth.F, missing = growth.B - 1;
  for (int tried = 0, position = 0, drawn = 0; tried < k && position < F; position++) {
    // each lane draws one of the next 32 features
    if ((position & 31) == 0) drawn = draw(growth, growth.nodes[node.position], position + lane());
    int f = __shfl_sync(ALL_LANES, drawn, position & 31), n_missing;
    if (growth.allowed && !growth.allowed[f]) continue;
    if (!load_keys(block, f, node.low, node.n, missing, n_missing)) continue;
    tried++;
    Best found = feature_cut(block, growth, node, f, n_missing, sums);
    if (found.score > best.score) best = found;
  }
  return best;
}

// Grows one open node: a leaf, or a split with two new nodes. The node stays in shared memory, to
// save registers.
__device__ void grow_node(const Block& block, const Growth& growth, const Open& node,
                          int depth, Level next) {
  int low = node.low, n = node.n;
  i64* sums = block.scratch + warp() * NODE_SUMS * growth.C;
  node_totals(block, low, n, growth.C, sums);
  // 1. the best cut
  Best best = best_of_features(block, growth, node, sums);
  Side whole;
  for (int c = 0; c < growth.C; c++) whole.add(c, sums[c], growth.rules.table);
  __syncwarp();
  // 2. a leaf
  if (best.feature < 0 ||
      best.score - whole.score(growth.rules.table) < growth.may.min_gain) {
    write_leaf(growth, node.position, low, sums);
    return;
  }
  // 3. or a split; the key is read again, to save registers
  u64 key = growth.nodes[node.position];
  int left = split_rows(block, node, best, growth.B - 1);
  if (lane() == 0)
    growth.nodes[node.position] =
        (u64)best.feature << FEATURE_SHIFT | (u64)best.missing_left << MISSING_SHIFT |
        (u64)node.below << CHILD_SHIFT | (u64)best.bin;
  __syncwarp();
  Open child = {node.low, (u16)left, node.below, (u16)(node.below + 2)};
  open_node(block, growth, child, hash_at(key, 0), depth + 1, next);
  child = {(u16)(low + left), (u16)(n - left), (u16)(node.below + 1), (u16)(node.below + 2 * left)};
  open_node(block, growth, child, hash_at(key, 1), depth + 1, next);
}

// Copies the n rows of a slot, from rows[begin] on.
__device__ __forceinline__ void load_block(const Block& block, const Targets& y,
                                           const Slots& slots, i64 begin, i64 n, i64 F) {
  const i32* rows = slots.rows + begin;
  i64 K = outputs(y.C);
  for (i64 i = threadIdx.x; i < n; i += blockDim.x) {
    i64 r = rows[i];
    block.order[i] = (u16)i;
    block.weight[i] = slots.weights[begin + i];
    if (block.row) block.row[i] = (i32)r;
    for (i64 m = 0; m < K; m++) block.target[i * K + m] = y.at[r * K + m];
  }
  if (block.row) return;
  // a warp copies a row, so that neighbouring lanes read neighbouring words; rows begin and
  // end at whole words
  i64 words = (F * sizeof(CODE) + 3) / 4, from = block.matrix.stride * sizeof(CODE) / 4;
  i64 to = block.stride * sizeof(CODE) / 4;
  u32* to_words = (u32*)(CODE*)block.codes;
  for (i64 i = warp(); i < n; i += blockDim.x >> 5)
    for (i64 w = lane(); w < words; w += 32)
      to_words[i * to + w] = ((const u32*)block.matrix.at)[rows[i] * from + w];
}

// Grows the subtree of a slot of n rows level by level. The rows must be loaded.
__device__ __forceinline__ void grow_levels(const Block& block, const Growth& growth, i64 n,
                                            u64 key, int depth, int rows, int* n_open) {
  if (warp() == 0) {
    Open root = {0, (u16)n, 0, 1};
    open_node(block, growth, root, key, depth, {block.open, &n_open[0]});
  }
  __syncthreads();
  for (int level = 0; n_open[level & 1] > 0; level++) {
    int now = level & 1;
    Open* nodes = block.open + now * (rows / 2 + 1);
    Level next = {block.open + (1 - now) * (rows / 2 + 1), &n_open[1 - now]};
    for (int i = warp(); i < n_open[now]; i += blockDim.x >> 5)
      grow_node(block, growth, nodes[i], depth + level, next);
    __syncthreads();
    if (threadIdx.x == 0) n_open[now] = 0;
    __syncthreads();
  }
}

// Writes the nodes of slot d to `nodes` from 2 first[d] on, where it holds zeros, the sums of its
// leaves to leaf_sums[first[d] ..., C], and its numbers of nodes and leaves to counts i64[D, 2].
extern "C" __global__ void __launch_bounds__(THREADS, 2)
grow_subtrees(Codes codes, Targets y, Slots slots, Roots roots, Growing may, CutRules rules,
              Layout layout, u64* nodes, i64* leaf_sums, i64* counts) {
  DYNAMIC_SHARED(bytes);
  __shared__ int n_open[2];
  __shared__ Block block;
  __shared__ Growth growth;
  for (i64 d = blockIdx.x; d < roots.D; d += gridDim.x) {
    i64 n = slots.end[d] - slots.begin[d], first = roots.first[d];
    if (threadIdx.x == 0) {
      n_open[0] = n_open[1] = 0;
      block = block_of(bytes, layout, codes);
      growth = {may, rules, (int)codes.F, (int)codes.B, (int)y.C, nodes + 2 * first,
                leaf_sums + first * y.C,
                roots.allowed ? roots.allowed + roots.tree[d] * codes.F : nullptr};
    }
    __syncthreads();
    load_block(block, y, slots, slots.begin[d], n, codes.F);
    __syncthreads();
    grow_levels(block, growth, n, roots.key[d], roots.depth[d], layout.rows, n_open);
    i64 n_nodes = 0, n_leaves = 0;
    for (i64 i = 0; i < 2 * n; i += blockDim.x) {
      u64 word = i + threadIdx.x < 2 * n ? growth.nodes[i + threadIdx.x] : 0;
      n_nodes += __syncthreads_count(word != 0);
      n_leaves += __syncthreads_count(word >= LEAF_WORD);
    }
    if (threadIdx.x == 0) {
      counts[2 * d] = n_nodes;
      counts[2 * d + 1] = n_leaves;
    }
    __syncthreads();
  }
}

// Closes the gaps between the nodes and leaves of each slot; they are moved to `offsets` and
// `leaf_offsets`, i64[D + 1] both. Shared: u16[2 * most], the rank of every position.
extern "C" __global__ void __launch_bounds__(THREADS)
collect(const u64* sparse, const i64* sparse_sums, const i64* first, i64 D, i64 C,
        const i64* offsets, const i64* leaf_offsets, u64* nodes, i64* leaf_sums) {
  DYNAMIC_SHARED(bytes);
  __shared__ u32 ranks[THREADS / 32];
  u16* rank = (u16*)bytes;
  for (i64 d = blockIdx.x; d < D; d += gridDim.x) {
    const u64* own = sparse + 2 * first[d];
    i64 n = 2 * (first[d + 1] - first[d]);
    int before = 0, total;
    for (i64 i = threadIdx.x; i - threadIdx.x < n; i += blockDim.x) {
      int here = block_rank(i < n && own[i] != 0, ranks, total);
      if (i < n) rank[i] = (u16)(before + here);
      before += total;
    }
    __syncthreads();
    before = 0;
    for (i64 i = threadIdx.x; i - threadIdx.x < n; i += blockDim.x) {
      u64 word = i < n ? own[i] : 0;
      bool leaf = word >= LEAF_WORD;
      int number = before + block_rank(leaf, ranks, total);
      before += total;
      if (word == 0) continue;
      i64 position = offsets[d] + rank[i];
      if (leaf) {
        i64 low = (i64)(word & LEAF_MASK), to = leaf_offsets[d] + number;
        nodes[position] = LEAF_WORD | (u64)number;
        for (i64 c = 0; c < C; c++)
          leaf_sums[to * C + c] = sparse_sums[(first[d] + low) * C + c];
      } else {
        u64 child = rank[word >> CHILD_SHIFT & CHILD_MASK];
        nodes[position] = (word & ~((u64)CHILD_MASK << CHILD_SHIFT)) | child << CHILD_SHIFT;
      }
    }
    __syncthreads();
  }
}
