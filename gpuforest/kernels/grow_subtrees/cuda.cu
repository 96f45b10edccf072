// Grow subtrees on the device: a block takes some slots, copies their rows to shared memory once
// and grows their whole subtrees there. The specification is the loop of grow.py: the trees are the
// same.
//
//     nodes of many rows   teams of warps split them, level by level, by histograms
//     nodes of few rows    a warp takes one and grows its subtree, by sorted rows
//
// A node of n rows has at most 2 n - 2 descendants, so the counts of rows alone determine the
// positions of nodes, in the order of nodes.py:
//
//     root | pair | all below the left child: 2 n_left - 2 | all below the right child
//
// Nodes lie there with gaps (words 0) until `collect` moves them together.
#include "shared/scans.cuh"
#include "grow_subtrees/by_team.cuh"
#include "grow_subtrees/by_warp.cuh"

// The slots of a block at a time: their numbers begin .. end - 1, and their rows. In shared memory,
// to save registers.
struct Batch {
  i64 begin, end;
  int n;
  i64 stop;  // the end of the block's slots
};

// The number of slots that begin before a row, among those from `low` on.
__device__ __forceinline__ i64 slots_before(const Roots& roots, i64 low, i64 row) {
  return first_of(low, roots.D, [&](i64 d) { return roots.first[d] >= row; });
}

// Goes on with the next slots of which all rows fit the block, if there are more in its share.
// Trees that have features of their own are not mixed: their slots are `alone`.
__device__ __forceinline__ void next_batch(Batch& batch, const Roots& roots, int most_rows,
                                           bool alone) {
  i64 begin = batch.end;
  batch.begin = begin;
  if (begin >= batch.stop) return;
  i64 last = roots.first[begin] + most_rows, next = batch.stop;
  if (alone) next = begin + 1;
  else if (roots.first[next] > last) next = slots_before(roots, begin, last + 1) - 1;
  batch.end = next;
  batch.n = (int)(roots.first[next] - roots.first[begin]);
}

// The slots that begin in the block's share of the rows.
__device__ __forceinline__ void own_slots(Batch& batch, const Roots& roots) {
  i64 row = roots.begin + blockIdx.x * roots.share;
  batch.end = slots_before(roots, 0, row);
  batch.stop = slots_before(roots, batch.end, row + roots.share);
}

// The slot of row i of a batch.
__device__ __forceinline__ i64 slot_of(const Roots& roots, const Batch& batch, int i) {
  const i64* first = roots.first + batch.begin;
  return batch.begin + part_of(first, batch.end - batch.begin, first[0] + i);
}

// Copies the rows of a batch.
__device__ __forceinline__ void load_block(const Block& block, const Targets& y,
                                           const Frontier& slots, const Roots& roots,
                                           const Batch& batch, i64 F) {
  i64 K = outputs(y.C), first = roots.first[batch.begin];
#pragma unroll 1
  for (int i = threadIdx.x; i < batch.n; i += blockDim.x) {
    i64 d = slot_of(roots, batch, i), from = slots.begin[d] + first + i - roots.first[d];
    i64 r = slots.rows[from];
    block.order[i] = (u16)i;
    block.weight[i] = slots.weights[from];
    block.keys[i] = (u32)r;
    if (block.row) block.row[i] = (i32)r;
#pragma unroll 1
    for (i64 m = 0; m < K; m++) block.target[i * K + m] = target_of(y, r)[m];
  }
  if (block.row) return;
  __syncthreads();
  // a warp copies a row, so that neighbouring lanes read neighbouring words; rows begin and
  // end at whole words
  i64 words = (F * sizeof(CODE) + 3) / 4, from = block.matrix.stride * sizeof(CODE) / 4;
  i64 to = block.stride * sizeof(CODE) / 4;
  u32* to_words = (u32*)(CODE*)block.codes;
#pragma unroll 1
  for (int i = warp(); i < batch.n; i += WARPS)
#pragma unroll 1
    for (i64 w = lane(); w < words; w += 32)
      to_words[i * to + w] = ((const u32*)block.matrix.at)[block.keys[i] * from + w];
}

// The next of some items that the lanes of a warp share.
__device__ __forceinline__ int take(int& taken) {
  int i = 0;
  if (lane() == 0) i = atomicAdd(&taken, 1);
  return __shfl_sync(ALL_LANES, i, 0);
}

// Teams take the n open nodes of a level and split them.
__device__ __forceinline__ void split_nodes(const Block& block, const Growth& growth,
                                            const Open* nodes, int n, const Lists& lists,
                                            Table& table) {
  Team team(team_size(growth, table.all, n));
  for (;;) {
    if (team.warp() == 0) {
      int i = take(lists.counts.taken_open);
      if (lane() == 0) table.node[team.first] = i;
    }
    team.sync();
    int i = table.node[team.first];
    if (i >= n) return;
    split_by_team(block, growth, team, nodes[i], lists, table);
  }
}

// Splits the nodes of many rows, level by level.
__device__ __noinline__ void grow_large(const Block& block, const Growth& growth, Counts& counts,
                                        Table& table) {
  for (int now = 0; counts.open[now] > 0; now = 1 - now) {
    int n = counts.open[now];
    const Open* nodes = block.open + now * block.most_open;
    Lists lists = {counts, 1 - now};
    if (table.all.group && !SETS)
      split_nodes(block, growth, nodes, n, lists, table);
    else
      for (int i = warp(); i < n; i += WARPS)
        split_large_by_warp(block, growth, nodes[i], lists);
    __syncthreads();
    if (threadIdx.x == 0) counts.open[now] = counts.taken_open = 0;
    __syncthreads();
  }
}

// Warps take the nodes of few rows, and grow their subtrees.
__device__ __forceinline__ void grow_small(const Block& block, const Growth& growth,
                                           Counts& counts) {
  int n_long = counts.n_long, n = n_long + counts.n_short;
  for (int i; (i = take(counts.taken)) < n;)
    grow_by_warp(block, growth, block.roots[i < n_long ? i : block.n_roots - 1 - (i - n_long)]);
}

// A warp opens the root of slot d, which has to be split.
__device__ __forceinline__ void open_root(const Block& block, const Growth& growth,
                                          const Frontier& slots, const Roots& roots,
                                          const Batch& batch, i64 d, Counts& counts) {
  int low = (int)(roots.first[d] - roots.first[batch.begin]);
  int n = (int)(roots.first[d + 1] - roots.first[d]);
  for (int c = lane(); c < growth.C; c += 32)
    growth.leaf_sums[(i64)low * growth.C + c] = slots.sums[d * growth.C + c];
  if (lane() != 0) return;
  for (int i = 0; i < 2 && growth.bounds; i++)
    growth.bounds[2 * low + i] = slots.bounds[2 * d + i];
  int levels = growth.max_depth - slots.depth[d];
  levels = levels < n ? levels : n;  // no subtree has more, and 16 bits hold it
  growth.nodes[2 * low] = slots.key[d];
  Open root = {(u16)low,    (u16)n,   (u16)(2 * low), (u16)(2 * low + 1),
               (u16)levels, (u16)low, NO_NODE};
  Lists{counts, 0}.put(block, root);
}

// Counts the nodes and leaves of each slot of a batch, and writes them to i64[D, 2].
__device__ __forceinline__ void count_nodes(const Block& block, const Growth& growth,
                                            const Roots& roots, const Batch& batch, i64* counts) {
  u32* found = block.keys;  // [slots][2]
  int n_slots = (int)(batch.end - batch.begin);
  for (int i = threadIdx.x; i < 2 * n_slots; i += blockDim.x) found[i] = 0;
  __syncthreads();
#pragma unroll 1
  for (int i = threadIdx.x; i < 2 * batch.n; i += blockDim.x) {
    u64 word = growth.nodes[i];
    if (!word) continue;
    int d = (int)(slot_of(roots, batch, i >> 1) - batch.begin);
    atomicAdd(found + 2 * d, 1u);
    if (word >= LEAF_WORD) atomicAdd(found + 2 * d + 1, 1u);
  }
  __syncthreads();
#pragma unroll 1
  for (int i = threadIdx.x; i < 2 * n_slots; i += blockDim.x)
    counts[2 * batch.begin + i] = found[i];
}

#if SETS
// The parts for a block's rows from `first` on.
__device__ __forceinline__ Categories categories_from(Categories all, i64 first) {
  all.sets += first * all.words;
  all.key += first;
  all.begin += first;
  all.spare += first;
  return all;
}
#endif

// Writes the nodes of slot d to `nodes` from 2 first[d] on, where it holds zeros, the sums of its
// leaves to leaf_sums[first[d] ..., C], and its numbers of nodes and leaves to counts i64[D, 2].
extern "C" __global__ void __launch_bounds__(32 * DEEP_WARPS / BLOCKS, BLOCKS)
grow_subtrees(Codes codes, Targets y, Frontier slots, Roots roots, Rules rules, Categories categories,
              Layout layout, Grown grown, Combining combining, const i64* xlogx) {
  __shared__ Counts waiting;
  __shared__ Block block;
  __shared__ Growth growth;
  __shared__ Table table;
  __shared__ Batch batch;
  if (threadIdx.x == 0) own_slots(batch, roots);
  for (;;) {
    if (threadIdx.x == 0) {
      next_batch(batch, roots, layout.rows, slots.allowed);
      i64 d = batch.begin, first = roots.first[d];
      waiting = {{0, 0}, 0, 0, 0, 0};
      block = block_of(layout, codes, SUMS ? combining.n_bins + 1 : codes.B);
      growth = {(int)rules.n_tried, as_int(rules.max_depth), as_int(rules.fewest_rows),
                as_int(rules.min_rows_leaf), rules.min_weight_leaf, rules.min_gain, rules.random,
                rules.signs, codes.n_bins, xlogx, (int)codes.F, (int)codes.B, (int)y.C,
                grown.nodes + 2 * first, grown.leaf_sums + first * y.C,
                grown.bounds ? grown.bounds + 2 * first : nullptr,
                slots.allowed && d < batch.stop ? slots.allowed + slots.tree[d] * codes.F : nullptr};
      table.all = histograms_of(growth, layout.n_cells);
#if SETS
      growth.sets = categories_from(categories, first);
#endif
#if SUMS
      growth.combining = combining;
#endif
    }
    __syncthreads();
    if (batch.begin >= batch.stop) return;
    load_block(block, y, slots, roots, batch, codes.F);
#pragma unroll 1
    for (i64 s = batch.begin + warp(); s < batch.end; s += WARPS)
      open_root(block, growth, slots, roots, batch, s, waiting);
    __syncthreads();
    grow_large(block, growth, waiting, table);
    grow_small(block, growth, waiting);
    __syncthreads();
    count_nodes(block, growth, roots, batch, grown.counts);
    __syncthreads();
  }
}

// Closes the gaps between the nodes and leaves of each slot; they are moved to `offsets` and
// `leaf_offsets`, i64[D + 1] both. With SETS 1, set_at i64[...] says where the sets of nodes
// begin, each of so many words. Shared: u16[2 * most], the rank of every position.
extern "C" __global__ void __launch_bounds__(THREADS)
collect(Grown sparse, const i64* first, i64 D, i64 C, const i64* offsets,
        const i64* leaf_offsets, u64* nodes, i64* leaf_sums, i64 words, i64* set_at) {
  DYNAMIC_SHARED(bytes);
  __shared__ u32 ranks[THREADS / 32];
  u16* rank = (u16*)bytes;
  for (i64 d = blockIdx.x; d < D; d += gridDim.x) {
    const u64* own = sparse.nodes + 2 * first[d];
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
      u32 pair = (u32)(word >> CHILD_SHIFT & CHILD_MASK) >> 1;
      if (SETS) set_at[position] = leaf ? 0 : (first[d] + pair) * words;
      if (leaf) {
        i64 low = (i64)(word & LEAF_MASK), to = leaf_offsets[d] + number;
        nodes[position] = LEAF_WORD | (u64)number;
        for (i64 c = 0; c < C; c++)
          leaf_sums[to * C + c] = sparse.leaf_sums[(first[d] + low) * C + c];
      } else {
        u64 child = rank[word >> CHILD_SHIFT & CHILD_MASK];
        nodes[position] = (word & ~((u64)CHILD_MASK << CHILD_SHIFT)) | child << CHILD_SHIFT;
      }
    }
    __syncthreads();
  }
}
