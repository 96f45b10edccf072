// Grow subtrees on the device: a block takes a slot, copies its rows to shared memory once and
// grows the whole subtree there. The specification is the loop of grow.py: the trees are the same.
//
//     nodes of many rows   the block splits one after another, level by level, by histograms
//     nodes of few rows    a warp takes one and grows its subtree, by sorted rows
//
// A node of n rows has at most 2 n - 2 descendants, so the counts of rows alone determine the
// positions of nodes, in the order of nodes.py:
//
//     root | pair | all below the left child: 2 n_left - 2 | all below the right child
//
// Nodes lie there with gaps (words 0) until `collect` moves them together.
#include "grow_subtrees/by_block.cuh"
#include "grow_subtrees/by_warp.cuh"

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
    for (i64 m = 0; m < K; m++) block.target[i * K + m] = target_of(y, r)[m];
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

// Counts of nodes, in shared memory.
struct Counts {
  int open[2], roots, taken;
};

// Splits the nodes of many rows, level by level.
__device__ __forceinline__ void grow_large(const Block& block, const Growth& growth,
                                           const Histogram& hist, Counts& counts, Table& table,
                                           u32* ranks) {
  for (int level = 0; counts.open[level & 1] > 0; level++) {
    int now = level & 1, n = counts.open[now];
    Open* nodes = block.open + now * block.most_open;
    Lists lists = {block.open + (1 - now) * block.most_open, &counts.open[1 - now], &counts.roots};
    if (hist.group)
      for (int i = 0; i < n; i++)
        split_by_block(block, growth, nodes[i], hist, lists, table, ranks);
    else
      for (int i = warp(); i < n; i += blockDim.x >> 5)
        split_large_by_warp(block, growth, nodes[i], lists);
    __syncthreads();
    if (threadIdx.x == 0) counts.open[now] = 0;
    __syncthreads();
  }
}

// Warps take the nodes of few rows, and grow their subtrees.
__device__ __forceinline__ void grow_small(const Block& block, const Growth& growth,
                                           Counts& counts) {
  for (;;) {
    int i = 0;
    if (lane() == 0) i = atomicAdd(&counts.taken, 1);
    i = __shfl_sync(ALL_LANES, i, 0);
    if (i >= counts.roots) return;
    grow_by_warp(block, growth, block.roots[i]);
  }
}

// Opens the root of slot d, which has to be split.
__device__ __forceinline__ void open_root(const Block& block, const Growth& growth,
                                          const Roots& roots, i64 d, i64 n, Counts& counts) {
  for (int c = threadIdx.x; c < growth.C; c += blockDim.x)
    growth.leaf_sums[c] = roots.sums[d * growth.C + c];
  if (threadIdx.x == 0) {
    growth.nodes[0] = roots.key[d];
    Lists lists = {block.open, &counts.open[0], &counts.roots};
    lists.put(block, {0, (u16)n, 0, 1, 0, NO_NODE});
  }
}

// Writes the nodes of slot d to `nodes` from 2 first[d] on, where it holds zeros, the sums of its
// leaves to leaf_sums[first[d] ..., C], and its numbers of nodes and leaves to counts i64[D, 2].
extern "C" __global__ void __launch_bounds__(32 * DEEP_WARPS / BLOCKS, BLOCKS)
grow_subtrees(Codes codes, Targets y, Slots slots, Roots roots, Growing may, CutRules rules,
              Layout layout, u64* nodes, i64* leaf_sums, i64* counts) {
  __shared__ Counts waiting;
  __shared__ Block block;
  __shared__ Growth growth;
  __shared__ Table table;
  __shared__ u32 ranks[DEEP_WARPS / BLOCKS];
  for (i64 d = blockIdx.x; d < roots.D; d += gridDim.x) {
    i64 n = slots.end[d] - slots.begin[d], first = roots.first[d];
    if (threadIdx.x == 0) {
      waiting = {{0, 0}, 0, 0};
      block = block_of(layout, codes);
      growth = {may, rules, (int)codes.F, (int)codes.B, (int)y.C, roots.depth[d],
                nodes + 2 * first, leaf_sums + first * y.C,
                roots.allowed ? roots.allowed + roots.tree[d] * codes.F : nullptr};
    }
    __syncthreads();
    load_block(block, y, slots, slots.begin[d], n, codes.F);
    open_root(block, growth, roots, d, n, waiting);
    __syncthreads();
    grow_large(block, growth, histogram_of(growth, layout.n_cells), waiting, table, ranks);
    grow_small(block, growth, waiting);
    __syncthreads();
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
