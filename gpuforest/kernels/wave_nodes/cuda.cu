// The trees of a wave on the device: nodes in their positions, and their leaves in order. The
// specifications are gpuforest/engine/wave_nodes.py and gpuforest/engine/leaf_rows.py.
//
// Numbers that depend on all earlier slots, nodes or rows take two launches, as in kernels/slots.
#include "shared/cuda.cuh"
#include "shared/scans.cuh"
#include "shared/hashing/cuda.cuh"
#include "generated/LevelSlots.cuh"
#include "generated/Levels.cuh"
#include "generated/Positions.cuh"

// What a slot ends as: a leaf is counted in the lower half of 64 bits, a wide slot whose split was
// refused in the upper. Only such a wide slot has no nodes below.
__device__ __forceinline__ i64 ending(i64 kind, i64 size) {
  return kind == LEAF ? 1 : (i64)(kind == WIDE && size == 1) << 32;
}

// The endings in each block's span of the slots of all levels, counts i64[blocks]; size i64[S] is the
// number of nodes at and below a slot.
extern "C" __global__ void __launch_bounds__(THREADS)
count_leaves(Levels levels, const i64* size, i64 span, i64* counts) {
  __shared__ i64 shared[THREADS / 32];
  i64 low = blockIdx.x * span, high = low + span < levels.S ? low + span : levels.S, n = 0;
  for (i64 s = low + threadIdx.x; s < high; s += blockDim.x) {
    i64 l = part_of(levels.first, levels.n, s);
    n += ending(levels.at[l].kind[s - levels.first[l]], size[s]);
  }
  n = block_sum(n, shared);
  if (threadIdx.x == 0) counts[blockIdx.x] = n;
}

// Writes the node of each slot, nodes u64[M], and the sums of leaves i64[V, C]: first those of
// slots that are leaves, then those of refused splits. Of each deep slot it notes in
// subtrees i64[D, 3] where its node lies, where the nodes below lie, less one, and what is added to
// the numbers of children.
extern "C" __global__ void __launch_bounds__(THREADS)
place_slots(Levels levels, Positions there, i64 span, const i64* counts, i64 n_leaves, u64* nodes,
            i64* leaf_sums, i64* subtrees) {
  __shared__ i64 shared[THREADS / 32];
  i64 low = blockIdx.x * span, high = low + span < levels.S ? low + span : levels.S, C = levels.C;
  i64 before = before_block(counts, shared);
#pragma unroll 1
  for (i64 at = low; at < high; at += blockDim.x) {
    i64 s = at + threadIdx.x, l = 0, i = 0, own = NONE, ends = 0;
    if (s < high) {
      l = part_of(levels.first, levels.n, s);
      i = s - levels.first[l];
      own = levels.at[l].kind[i];
      ends = ending(own, there.size[s]);
    }
    i64 total, upto = before + block_sum_to_here(ends, shared, total);
    before += total;
    if (own == NONE) continue;
    const LevelSlots& level = levels.at[l];
    i64 root = there.roots[level.tree[i]], node = root + there.position[s], rank = level.rank[i];
    i64 below = there.below[s];
    if (own == DEEP) {
      i64* subtree = subtrees + 3 * (level.n_deep_before + rank);
      subtree[0] = node;
      subtree[1] = root + below - 1;
      subtree[2] = below - 1;
    } else if (ends) {
      i64 leaf = (own == LEAF ? (i64)(u32)upto : n_leaves + (i64)((u64)upto >> 32)) - 1;
      nodes[node] = LEAF_WORD + leaf;
#pragma unroll 1
      for (i64 c = 0; c < C; c++) leaf_sums[leaf * C + c] = level.sums[i * C + c];
    } else {
      nodes[node] = (u64)level.feature[rank] << FEATURE_SHIFT |
                    (u64)level.missing_left[rank] << MISSING_SHIFT |
                    (u64)below << CHILD_SHIFT | (u64)level.bin[rank];
    }
  }
}

// Copies the nodes of each of D subtrees, which begin at offsets i64[D + 1], to their positions
// (see place_slots); the leaves of a subtree are rows of the table from n_before + first_leaf[d] on.
// A warp takes a subtree.
extern "C" __global__ void __launch_bounds__(THREADS)
place_subtrees(const u64* from, const i64* offsets, const i64* first_leaf, i64 D,
               const i64* subtrees, i64 n_before, u64* nodes) {
  for (i64 d = thread_number() >> 5; d < D; d += thread_count() >> 5) {
    i64 begin = offsets[d], end = offsets[d + 1], move = subtrees[3 * d + 1] - begin;
    u64 leaf = n_before + first_leaf[d], child = (u64)subtrees[3 * d + 2] << CHILD_SHIFT;
    for (i64 i = begin + lane(); i < end; i += 32) {
      u64 node = from[i];
      nodes[i == begin ? subtrees[3 * d] : i + move] = node + (node >= LEAF_WORD ? leaf : child);
    }
  }
}

// The leaves in each block's span of nodes u64[M]: counts i64[blocks].
extern "C" __global__ void __launch_bounds__(THREADS)
count_leaf_nodes(const u64* nodes, i64 M, i64 span, i64* counts) {
  __shared__ i64 shared[THREADS / 32];
  i64 low = blockIdx.x * span, high = low + span < M ? low + span : M, n = 0;
  for (i64 i = low + threadIdx.x; i < high; i += blockDim.x) n += nodes[i] >= LEAF_WORD;
  n = block_sum(n, shared);
  if (threadIdx.x == 0) counts[blockIdx.x] = n;
}

// Numbers the leaves in the order of the nodes u64[M], and puts their rows of sums i64[..., C] in
// that order: table i64[V, C].
extern "C" __global__ void __launch_bounds__(THREADS)
order_leaves(u64* nodes, i64 M, i64 C, i64 span, const i64* counts, const i64* sums, i64* table) {
  __shared__ i64 shared[THREADS / 32];
  i64 low = blockIdx.x * span, high = low + span < M ? low + span : M;
  i64 before = before_block(counts, shared);
#pragma unroll 1
  for (i64 at = low; at < high; at += blockDim.x) {
    i64 i = at + threadIdx.x;
    u64 node = i < high ? nodes[i] : 0;
    bool is_leaf = node >= LEAF_WORD;
    i64 total, leaf = before + block_sum_to_here(is_leaf, shared, total) - 1;
    before += total;
    if (!is_leaf) continue;
    nodes[i] = LEAF_WORD + leaf;
    const i64* from = sums + (i64)(node & LEAF_MASK) * C;
#pragma unroll 1
    for (i64 c = 0; c < C; c++) table[leaf * C + c] = from[c];
  }
}

// A hash of each row: keys u64[V] of sums i64[V, C].
extern "C" __global__ void __launch_bounds__(THREADS)
row_keys(const i64* sums, i64 V, i64 C, u64* keys) {
  for (i64 v = thread_number(); v < V; v += thread_count()) {
    u64 key = 0;
    for (i64 c = 0; c < C; c++) key += (u64)sums[v * C + c] * (hash_at(0, c) | 1);
    keys[v] = key;
  }
}

// Whether the row at position i of `order` is the first of its key.
__device__ __forceinline__ bool is_first(const u64* keys, const i64* order, i64 i) {
  return i == 0 || keys[order[i]] != keys[order[i - 1]];
}

// The distinct keys u64[V] that begin in each block's span of `order` i64[V], which sorts them:
// counts i64[blocks].
extern "C" __global__ void __launch_bounds__(THREADS)
count_keys(const u64* keys, const i64* order, i64 V, i64 span, i64* counts) {
  __shared__ i64 shared[THREADS / 32];
  i64 low = blockIdx.x * span, high = low + span < V ? low + span : V, n = 0;
  for (i64 i = low + threadIdx.x; i < high; i += blockDim.x) n += is_first(keys, order, i);
  n = block_sum(n, shared);
  if (threadIdx.x == 0) counts[blockIdx.x] = n;
}

// The number of each row's key among the distinct ones, i64[V], and a row of each: some i64[...].
// `other` i32[1] becomes zero, for distinct_rows.
extern "C" __global__ void __launch_bounds__(THREADS)
number_keys(const u64* keys, const i64* order, i64 V, i64 span, const i64* counts, i64* number,
            i64* some, i32* other) {
  __shared__ i64 shared[THREADS / 32];
  i64 low = blockIdx.x * span, high = low + span < V ? low + span : V;
  i64 before = before_block(counts, shared);
  if (blockIdx.x == 0 && threadIdx.x == 0) *other = 0;
#pragma unroll 1
  for (i64 at = low; at < high; at += blockDim.x) {
    i64 i = at + threadIdx.x;
    bool first = i < high && is_first(keys, order, i);
    i64 total, own = before + block_sum_to_here(first, shared, total) - 1;
    before += total;
    if (i < high) number[order[i]] = own;
    if (first) some[own] = order[i];
  }
}

// The rows `some` i64[n] of sums i64[V, C]: table i64[n, C]; and whether some row of sums is another
// than that of its number, which has the same key.
extern "C" __global__ void __launch_bounds__(THREADS)
distinct_rows(const i64* sums, i64 V, i64 C, const i64* number, const i64* some, i64 n, i64* table,
              i32* other) {
  bool found = false;
  for (i64 v = thread_number(); v < V; v += thread_count()) {
    const i64 *own = sums + v * C, *same = sums + some[number[v]] * C;
    for (i64 c = 0; c < C; c++) found = found || own[c] != same[c];
    if (v >= n) continue;
    const i64* from = sums + some[v] * C;
    for (i64 c = 0; c < C; c++) table[v * C + c] = from[c];
  }
  if (found) atomicOr(other, 1);
}

// Gives the leaves among nodes u64[M] the new numbers of their rows, i64[V].
extern "C" __global__ void __launch_bounds__(THREADS)
number_leaves(u64* nodes, i64 M, const i64* number) {
  for (i64 i = thread_number(); i < M; i += thread_count()) {
    u64 node = nodes[i];
    if (node >= LEAF_WORD) nodes[i] = LEAF_WORD + number[node & LEAF_MASK];
  }
}
