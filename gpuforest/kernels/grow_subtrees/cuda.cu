// Grow subtrees on the device: a block takes a slot, copies its rows to shared memory once
// and grows the whole subtree there, level by level, a warp a node. The specification is the
// loop of grow.py: the trees are the same.
//
// A node of n rows has at most 2 n - 2 descendants, so places are reserved from the counts
// of rows alone, in the order of nodes.py:
//
//     root | pair | all below the left child: 2 n_left - 2 | all below the right child
//
// Nodes lie there with gaps (words 0) until `collect` moves them together. A child's key
// waits in the place of its node.
#include "grow_subtrees/cuda.cuh"

#define LEAF_WORD 0xffff800000000000ull

// What a subtree may do and where it goes; the arguments of `grow_subtrees`.
struct Growth {
  const i32* n_bins;
  int F, B, C, k, max_depth, fewest, min_rows;
  double min_gain;
  const i64* table;
  u64* nodes;      // [2 n] of this block
  i64* leaf_sums;  // [n, C] of this block
  const bool* allowed;  // [F], features that the tree drew; or null
};

// The channel sums of a node to `sums`; whether all its targets are equal.
__device__ bool node_totals(const Block& block, int low, int n, int C, i64* sums) {
  int K = LABELS ? 1 : C - 1;
  int first = block.order[low];
  bool equal = true;
  for (int c = lane(); c < C; c += 32) sums[c] = 0;
  __syncwarp();
  for (int i = lane(); i < n; i += 32) {
    int place = block.order[low + i];
    for (int m = 0; m < K; m++)
      equal = equal && block.target[place * K + m] == block.target[first * K + m];
#if LABELS
    // totals stay below 2^31: the lower word is enough
    atomicAdd((u32*)&sums[block.target[place]], (u32)block.weight[place]);
#endif
  }
#if !LABELS
  for (int c = 0; c < C; c++) {
    i64 sum = 0;
    for (int i = lane(); i < n; i += 32) {
      int place = block.order[low + i];
      i64 w = block.weight[place];
      sum += c == 0 ? w : w * block.target[place * K + c - 1];
    }
    sum = warp_sum(sum);
    if (lane() == 0) sums[c] = sum;
  }
#endif
  __syncwarp();
  return __all_sync(ALL_LANES, equal);
}

// Keys code << 16 | place of a node's rows in one feature; how many are missing. False: all
// rows have one code.
__device__ __forceinline__ bool load_keys(const Block& block, int f, int low, int n, int missing,
                                          int& n_missing) {
  int first = block.code(block.order[low], f);
  bool varies = false;
  n_missing = 0;
  for (int base = 0; base < n; base += 32) {
    int i = base + lane(), code = first;
    if (i < n) {
      int place = block.order[low + i];
      code = block.code(place, f);
      block.keys[low + i] = (u32)code << 16 | place;
    }
    varies = varies || code != first;
    n_missing += __popc(__ballot_sync(ALL_LANES, i < n && code == missing));
  }
  __syncwarp();
  return __any_sync(ALL_LANES, varies);
}

// Channel sums of the last `n` sorted keys, the missing ones.
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

// Sorts a node's keys: a few in registers, more by counting codes, or where a count for each
// code takes too much memory by comparing.
__device__ __forceinline__ void sort_rows(const Block& block, int f, int low, int n, int B) {
  u32* keys = block.keys + low;
  if (n <= 32) {
    u32 key = sort_lanes(lane() < n ? keys[lane()] : 0xffffffffu, lanes_for(n));
    __syncwarp();
    if (lane() < n) keys[lane()] = key;
  } else if (!block.counts) {
    sort_keys(keys, n);
  } else {
    u32* next = block.counts + warp() * B;  // place of the next row of each code
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
      int place = block.order[low + i];
      u32 code = block.code(place, f);
      keys[atomicAdd(&next[code], 1u)] = code << 16 | place;
    }
  }
  __syncwarp();
}

// The best cut of one feature in one node: its score, cut and side of missing values.
__device__ __forceinline__ double feature_cut(const Block& block, const Growth& growth, int f,
                                              u64 key, int low, int n, int n_missing, i64* sums,
                                              int& cut, bool& missing_left) {
  int B = growth.B, C = growth.C, present = n - n_missing;
  i64 *missing = sums + C, *so_far = missing + C;
  u32* keys = block.keys + low;
  Node node = {sums, n, missing, n_missing > 0, n_missing};
  sort_rows(block, f, low, n, B);
  SortedRows rows = {block, keys, LABELS ? 1 : C - 1};
  if (n_missing) sum_missing(rows, present, n, C, missing);
  Draw draw = {false, false, 0};
#if SPECIAL  // here it means that cuts are random
  if (present) draw.between(key, f, rows.code(0), rows.code(present - 1), n_missing > 0);
#endif
  Limits limits = limits_of(growth.min_rows);
  Cut best = best_cut_of(rows, present, node, C, limits, draw, growth.table, so_far);
  if (best.item >= 0)
    cut = draw.random && draw.code < rows.code(present - 1)
              ? draw.code
              : middle_of_gap(rows, present, best.item, growth.n_bins[f]);
  missing_left = missing_goes_left(best, node);
  __syncwarp();
  return best.score;
}

// Moves a node's left rows before its right rows, both in their order; how many go left.
__device__ __forceinline__ int split_rows(const Block& block, int f, int low, int n, int cut,
                                          bool missing_left, int missing) {
  int left = 0, right = 0;
  for (int base = 0; base < n; base += 32) {
    int i = base + lane();
    bool inside = i < n, goes = false;
    u16 place = 0;
    if (inside) {
      place = block.order[low + i];
      int code = block.code(place, f);
      goes = code == missing ? missing_left : code <= cut;
    }
    u32 go_left = __ballot_sync(ALL_LANES, goes);
    u32 go_right = __ballot_sync(ALL_LANES, inside && !goes);
    __syncwarp();  // all have read before any writes
    if (goes) block.order[low + left + __popc(go_left & lanes_below())] = place;
    if (inside && !goes) block.keys[low + right + __popc(go_right & lanes_below())] = place;
    left += __popc(go_left);
    right += __popc(go_right);
    __syncwarp();
  }
  for (int i = lane(); i < right; i += 32) block.order[low + left + i] = block.keys[low + i];
  __syncwarp();
  return left;
}

__device__ __forceinline__ void write_leaf(const Growth& growth, int place, int low,
                                           const i64* sums) {
  for (int c = lane(); c < growth.C; c += 32) growth.leaf_sums[(i64)low * growth.C + c] = sums[c];
  if (lane() == 0) growth.nodes[place] = LEAF_WORD | (u64)low;
  __syncwarp();
}

// A new node is a leaf at once, or waits in the next level's list.
__device__ __forceinline__ void open_node(const Block& block, const Growth& growth, Open node,
                                          u64 key, int depth, Open* list, int* count) {
  i64* sums = block.scratch + warp() * 3 * growth.C;
  bool equal = node_totals(block, node.low, node.n, growth.C, sums);
  if (equal || node.n < growth.fewest || depth >= growth.max_depth) {
    write_leaf(growth, node.place, node.low, sums);
    return;
  }
  if (lane() == 0) {
    growth.nodes[node.place] = key;
    list[atomicAdd(count, 1)] = node;
  }
  __syncwarp();
}

__device__ __forceinline__ int draw(const Growth& growth, u64 key, int position) {
  if (growth.k >= growth.F || position >= growth.F) return position;
  return (int)Order(key, growth.F).at(position);
}

// Grows one open node: a leaf, or a split with two new nodes.
__device__ void grow_node(const Block& block, const Growth& growth, Open node, int depth,
                          Open* list, int* count) {
  int low = node.low, n = node.n, missing = growth.B - 1;
  u64 key = growth.nodes[node.place];
  i64* sums = block.scratch + warp() * 3 * growth.C;
  node_totals(block, low, n, growth.C, sums);
  // 1. the best cut of the first k features that vary
  double best = MINUS_INFINITY;
  int best_f = -1, best_cut = 0;
  bool best_side = false;
  for (int tried = 0, position = 0, drawn = 0; tried < growth.k && position < growth.F; position++) {
    // each lane draws one of the next 32 features
    if ((position & 31) == 0) drawn = draw(growth, key, position + lane());
    int f = __shfl_sync(ALL_LANES, drawn, position & 31), n_missing;
    if (growth.allowed && !growth.allowed[f]) continue;
    if (!load_keys(block, f, low, n, missing, n_missing)) continue;
    tried++;
    int cut = 0;
    bool side;
    double score = feature_cut(block, growth, f, key, low, n, n_missing, sums, cut, side);
    if (score > best) {
      best = score;
      best_f = f;
      best_cut = cut;
      best_side = side;
    }
  }
  Side whole;
  for (int c = 0; c < growth.C; c++) whole.add(c, sums[c], growth.table);
  __syncwarp();
  // 2. a leaf
  if (best_f < 0 || best - whole.score(growth.table) < growth.min_gain) {
    write_leaf(growth, node.place, low, sums);
    return;
  }
  // 3. or a split
  int left = split_rows(block, best_f, low, n, best_cut, best_side, missing);
  if (lane() == 0)
    growth.nodes[node.place] =
        (u64)best_f << 47 | (u64)best_side << 46 | (u64)node.below << 16 | (u64)best_cut;
  __syncwarp();
  Open child = {node.low, (u16)left, node.below, (u16)(node.below + 2)};
  open_node(block, growth, child, hash_at(key, 0), depth + 1, list, count);
  child = {(u16)(low + left), (u16)(n - left), (u16)(node.below + 1), (u16)(node.below + 2 * left)};
  open_node(block, growth, child, hash_at(key, 1), depth + 1, list, count);
}

__device__ __forceinline__ void load_block(const Block& block, const CODE* codes, const TARGET* y,
                                           const i32* rows, const i32* weights, i64 n, i64 F,
                                           i64 stride, i64 K) {
  for (i64 i = threadIdx.x; i < n; i += blockDim.x) {
    i64 r = rows[i];
    block.order[i] = (u16)i;
    block.weight[i] = weights[i];
    if (block.row) block.row[i] = (i32)r;
    for (i64 m = 0; m < K; m++) block.target[i * K + m] = y[r * K + m];
  }
  if (block.row) return;
  // a warp copies a row, so that neighbouring lanes read neighbouring words; rows begin and
  // end at whole words
  i64 words = (F * sizeof(CODE) + 3) / 4, from = stride * sizeof(CODE) / 4;
  i64 to = block.stride * sizeof(CODE) / 4;
  u32* to_words = (u32*)(CODE*)block.codes;
  for (i64 i = warp(); i < n; i += blockDim.x >> 5)
    for (i64 w = lane(); w < words; w += 32)
      to_words[i * to + w] = ((const u32*)codes)[rows[i] * from + w];
}

// `first` i64[D + 1]: rows of the slots before; the slot's nodes are written to
// nodes u64[2 first[d] ...], zeros before, its leaves' sums to leaf_sums i64[first[d] ..., C];
// counts i64[D, 2]: its nodes and leaves.
extern "C" __global__ void __launch_bounds__(256, 2)
grow_subtrees(const CODE* codes, const TARGET* y, const i32* rows, const i32* weights, const i64* begin,
              const i64* end, const u64* keys, const i32* depth, i64 has_allowed,
              const i32* tree, const bool* allowed, const i32* n_bins, i64 F, i64 stride, i64 B,
              i64 C, i64 k, i64 max_depth, i64 fewest, i64 min_rows, double min_gain,
              const i64* table, i64 D, i64 most, i64 block_stride, i64 has_counts, const i64* first,
              u64* nodes, i64* leaf_sums, i64* counts) {
  DYNAMIC_SHARED(bytes);
  __shared__ int n_open[2];
  __shared__ Block block;
  __shared__ Growth growth;
  i64 K = LABELS ? 1 : C - 1;
  for (i64 d = blockIdx.x; d < D; d += gridDim.x) {
    i64 n = end[d] - begin[d];
    if (threadIdx.x == 0) {
      n_open[0] = n_open[1] = 0;
      block = block_of(bytes, most, K, C, B, block_stride, has_counts);
      block.matrix = codes;
      block.matrix_stride = (int)stride;
      growth = {n_bins, (int)F, (int)B, (int)C, (int)k, (int)max_depth, (int)fewest,
                (int)min_rows, min_gain, table, nodes + 2 * first[d], leaf_sums + first[d] * C,
                has_allowed ? allowed + tree[d] * F : nullptr};
    }
    __syncthreads();
    load_block(block, codes, y, rows + begin[d], weights + begin[d], n, F, stride, K);
    __syncthreads();
    if (warp() == 0) {
      Open root = {0, (u16)n, 0, 1};
      open_node(block, growth, root, keys[d], depth[d], block.open, &n_open[0]);
    }
    __syncthreads();
    for (int level = 0; n_open[level & 1] > 0; level++) {
      int now = level & 1;
      Open *nodes_now = block.open + now * (most / 2 + 1);
      Open *nodes_next = block.open + (1 - now) * (most / 2 + 1);
      for (int i = warp(); i < n_open[now]; i += blockDim.x >> 5)
        grow_node(block, growth, nodes_now[i], depth[d] + level, nodes_next, &n_open[1 - now]);
      __syncthreads();
      if (threadIdx.x == 0) n_open[now] = 0;
      __syncthreads();
    }
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

// Moves the nodes and leaves of each slot together, to offsets i64[D + 1] of nodes and of
// leaves. Shared: u16[2 * most], the rank of every place.
extern "C" __global__ void __launch_bounds__(256)
collect(const u64* sparse, const i64* sparse_sums, const i64* first, i64 D, i64 C,
        const i64* offsets, const i64* leaf_offsets, u64* nodes, i64* leaf_sums) {
  DYNAMIC_SHARED(bytes);
  __shared__ u32 ranks[8];
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
      i64 place = offsets[d] + rank[i];
      if (leaf) {
        i64 low = (i64)(word & 0x7fffffffffffull), to = leaf_offsets[d] + number;
        nodes[place] = LEAF_WORD | (u64)number;
        for (i64 c = 0; c < C; c++)
          leaf_sums[to * C + c] = sparse_sums[(first[d] + low) * C + c];
      } else {
        u64 child = rank[word >> 16 & 0x3fffffff];
        nodes[place] = (word & ~(0x3fffffffull << 16)) | child << 16;
      }
    }
    __syncthreads();
  }
}
