// The O(nodes) work of a level on the device. The specifications are gpuforest/slots.py and
// gpuforest/levels.py.
//
// Numbers that depend on all earlier slots take two launches: first each block counts a span of
// slots, then each block adds up the counts of earlier blocks and goes through its own span.
#include "shared/cuda.cuh"
#include "shared/scans.cuh"
#include "shared/hashing/cuda.cuh"
#include "generated/Fields.cuh"
#include "generated/Ends.cuh"

// The number of tiles of each block's span of slots: sums i64[blocks].
extern "C" __global__ void __launch_bounds__(THREADS)
count_tiles(const i64* begin, const i64* end, i64 S, i64 size, i64 span, i64* sums) {
  __shared__ i64 shared[THREADS / 32];
  i64 low = blockIdx.x * span, high = low + span < S ? low + span : S, n = 0;
  for (i64 s = low + threadIdx.x; s < high; s += blockDim.x)
    n += (end[s] - begin[s] + size - 1) / size;
  n = block_sum(n, shared);
  if (threadIdx.x == 0) sums[blockIdx.x] = n;
}

// The number of tiles before each slot, and of all: first i64[S + 1].
extern "C" __global__ void __launch_bounds__(THREADS)
number_tiles(const i64* begin, const i64* end, i64 S, i64 size, i64 span, const i64* sums,
             i64* first) {
  __shared__ i64 shared[THREADS / 32];
  i64 low = blockIdx.x * span, high = low + span < S ? low + span : S, before = 0;
  for (i64 b = threadIdx.x; b < blockIdx.x; b += blockDim.x) before += sums[b];
  before = block_sum(before, shared);
  for (i64 at = low; at < high; at += blockDim.x) {
    i64 s = at + threadIdx.x;
    i64 n = s < high ? (end[s] - begin[s] + size - 1) / size : 0;
    i64 total, upto = block_sum_to_here(n, shared, total);
    if (s < high) first[s + 1] = before + upto;
    before += total;
  }
  if (blockIdx.x == 0 && threadIdx.x == 0) first[0] = 0;
}

// The kinds of slots, i8[S]; and of each block's span, the number of wide slots, of deep ones, and
// of the rows of both: counts i64[blocks, 4].
extern "C" __global__ void __launch_bounds__(THREADS)
count_kinds(Fields slots, i64 S, Ends ends, i64 span, i8* kind, i64* counts) {
  __shared__ i64 shared[THREADS / 32];
  i64 low = blockIdx.x * span, high = low + span < S ? low + span : S, found[4] = {};
#pragma unroll 1
  for (i64 s = low + threadIdx.x; s < high; s += blockDim.x) {
    i64 n = slots.n_rows[s], stored = slots.end[s] - slots.begin[s];
    bool end = slots.constant[s] || n < ends.fewest || slots.depth[s] >= ends.max_depth;
    bool some = n != 0 && !end, deep = some && n <= ends.deep_rows, wide = some && !deep;
    kind[s] = n == 0 ? NONE : end ? LEAF : deep ? DEEP : WIDE;
    found[0] += wide;
    found[1] += deep;
    found[2] += wide ? stored : 0;
    found[3] += deep ? stored : 0;
  }
#pragma unroll
  for (int j = 0; j < 4; j++) {
    i64 all = block_sum(found[j], shared);
    if (threadIdx.x == 0) counts[4 * (i64)blockIdx.x + j] = all;
  }
}

// Each slot's number among the slots of its kind, rank i64[S]; order i64[S], which holds the wide
// slots from its beginning on, and the deep ones from its end back; and the sums of all counts,
// totals i64[4].
extern "C" __global__ void __launch_bounds__(THREADS)
number_kinds(const i8* kind, i64 S, i64 span, const i64* counts, i64 blocks, i64* rank, i64* order,
             i64* totals) {
  __shared__ i64 shared[THREADS / 32];
  if (blockIdx.x == 0) {
    for (int j = 0; j < 4; j++) {
      i64 n = 0;
      for (i64 b = threadIdx.x; b < blocks; b += blockDim.x) n += counts[4 * b + j];
      n = block_sum(n, shared);
      if (threadIdx.x == 0) totals[j] = n;
    }
  }
  // wide slots are counted in the lower half of 64 bits, deep ones in the upper
  i64 before = 0, low = blockIdx.x * span, high = low + span < S ? low + span : S;
  for (i64 b = threadIdx.x; b < blockIdx.x; b += blockDim.x)
    before += counts[4 * b] + (counts[4 * b + 1] << 32);
  before = block_sum(before, shared);
  for (i64 at = low; at < high; at += blockDim.x) {
    i64 s = at + threadIdx.x;
    int own = s < high ? kind[s] : NONE;
    i64 total, upto = block_sum_to_here(own == WIDE ? 1 : (i64)(own == DEEP) << 32, shared, total);
    upto += before;
    i64 number = (i64)(own == DEEP ? (u64)upto >> 32 : (u32)upto) - 1;
    if (s < high) rank[s] = number;
    if (own == WIDE) order[number] = s;
    if (own == DEEP) order[S - 1 - number] = s;
    before += total;
  }
}

__device__ __forceinline__ void copy_slot(const Fields& from, i64 s, const Fields& to, i64 i,
                                          i64 C) {
  to.tree[i] = from.tree[s];
  to.key[i] = from.key[s];
  to.n_rows[i] = from.n_rows[s];
  to.begin[i] = from.begin[s];
  to.end[i] = from.end[s];
  to.constant[i] = from.constant[s];
  to.depth[i] = from.depth[s];
#pragma unroll 1
  for (i64 c = 0; c < C; c++) to.sums[i * C + c] = from.sums[s * C + c];
}

// The fields of the wide and of the deep slots, of C channels, by `order` of number_kinds; and the
// numbers of the wide slots.
extern "C" __global__ void __launch_bounds__(THREADS)
take_slots(Fields slots, i64 S, i64 C, const i64* order, i64 n_wide, i64 n_deep, Fields wide,
           Fields deep, i64* wide_slots) {
  for (i64 i = thread_number(); i < n_wide + n_deep; i += thread_count()) {
    if (i < n_wide) {
      wide_slots[i] = order[i];
      copy_slot(slots, order[i], wide, i, C);
    } else {
      copy_slot(slots, order[S - 1 - (i - n_wide)], deep, i - n_wide, C);
    }
  }
}

// The fields of the two slots below each of W slots. Rows have moved by `half` rows, on or back.
// For moments (`mean` i64[2 W, C - 1] is not null), `constant` tells whether their mean is a whole
// number, and `until` i64[2 W] is where the rows to compare with it end.
extern "C" __global__ void __launch_bounds__(THREADS)
children(Fields above, i64 W, i64 C, const i32* feature, const i64* left, const i64* n_left,
         i64 half, Fields below, i64* mean, i64* until) {
  for (i64 i = thread_number(); i < 2 * W; i += thread_count()) {
    i64 s = i >> 1, begin = above.begin[s], n = 0, middle = 0;
    bool is_right = i & 1;
    if (feature[s] >= 0) {
      n = above.end[s] - begin;
      middle = n_left[s];
    }
    begin += begin < half ? half : -half;
    i64 low = begin + (is_right ? middle : 0), high = begin + (is_right ? n : middle);
    below.tree[i] = above.tree[s];
    below.key[i] = hash_at(above.key[s], is_right);
    below.n_rows[i] = high - low;
    below.begin[i] = low;
    below.end[i] = high;
    below.depth[i] = above.depth[s] + 1;
    i64 most = 0, total = 0, weight = 1;
    bool whole = true;
#pragma unroll 1
    for (i64 c = 0; c < C; c++) {
      i64 sum = left[s * C + c];
      if (is_right) sum = above.sums[s * C + c] - sum;
      below.sums[i * C + c] = sum;
      most = sum > most ? sum : most;
      total += sum;
      if (!mean) continue;
      if (c == 0) {
        weight = sum > 1 ? sum : 1;
      } else {
        i64 quotient = sum / weight;
        whole = whole && quotient * weight == sum;
        mean[i * (C - 1) + c - 1] = quotient;
      }
    }
    below.constant[i] = mean ? whole : most == total;
    if (mean) until[i] = whole ? high : low;
  }
}

// The number of nodes at and below each slot of a level, size i64[S]: from those of the slots of
// the next level, below i64[2 W], and of the subtrees of this level's deep slots, blocks i64[D].
extern "C" __global__ void __launch_bounds__(THREADS)
subtree_sizes(const i8* kind, const i64* rank, i64 S, const i64* blocks, const i64* below,
              i64* size) {
  for (i64 s = thread_number(); s < S; s += thread_count()) {
    i64 own = kind[s], at = rank[s], n = own > NONE;
    if (own == DEEP) n = blocks[at];
    if (own == WIDE) n += below[2 * at] + below[2 * at + 1];
    size[s] = n;
  }
}

// The positions of the two nodes below each wide slot, and where their descendants begin, both
// i64[2 W]; above i64[S] is where those of the level above begin, and size i64[2 W] the number of
// nodes at and below.
extern "C" __global__ void __launch_bounds__(THREADS)
node_positions(const i64* wide, i64 W, const i64* above, const i64* size, i64* position,
               i64* below) {
  for (i64 i = thread_number(); i < 2 * W; i += thread_count()) {
    i64 first = above[wide[i >> 1]];
    position[i] = first + (i & 1);
    below[i] = i & 1 ? first + 1 + size[i - 1] : first + 2;
  }
}
