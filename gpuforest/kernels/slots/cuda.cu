// The O(nodes) work of a level on the device. The specification is backends/slots.py.
//
// Numbers that depend on all earlier slots take two launches: first each block counts a span of
// slots, then each block adds up the counts of earlier blocks and goes through its own span. If one
// block takes all slots, the second launch alone does it.
#include "shared/cuda.cuh"
#include "shared/scans.cuh"
#include "shared/hashing.cuh"
#include "generated/Frontier.cuh"
#include "generated/Kinds.cuh"
#include "generated/Rules.cuh"

#define TILE_SIZES (MOST_TILE / LEAST_TILE)

// What a running sum adds up for item s: values[s * stride], or if `begin` is not null, how many
// tiles of `size` the range from begin[s] to values[s] has.
__device__ __forceinline__ i64 item(const i64* values, const i64* begin, i64 stride, i64 size,
                                    i64 s) {
  return begin ? (values[s] - begin[s] + size - 1) / size : values[s * stride];
}

// The sum of each block's span of S items, see `item`: sums i64[blocks].
extern "C" __global__ void __launch_bounds__(THREADS)
sum_spans(const i64* values, const i64* begin, i64 stride, i64 size, i64 S, i64 span, i64* sums) {
  __shared__ i64 shared[THREADS / 32];
  i64 low = blockIdx.x * span, high = low + span < S ? low + span : S, n = 0;
  for (i64 s = low + threadIdx.x; s < high; s += blockDim.x)
    n += item(values, begin, stride, size, s);
  n = block_sum(n, shared);
  if (threadIdx.x == 0) sums[blockIdx.x] = n;
}

// The sum of the items before each of S items, and of all: first i64[S + 1]; the latter also to
// `total`, if it is not null.
extern "C" __global__ void __launch_bounds__(THREADS)
sums_before(const i64* values, const i64* begin, i64 stride, i64 size, i64 S, i64 span,
            const i64* sums, i64* first, i64* total) {
  __shared__ i64 shared[THREADS / 32];
  i64 low = blockIdx.x * span, high = low + span < S ? low + span : S;
  i64 before = before_block(sums, shared);
  for (i64 at = low; at < high; at += blockDim.x) {
    i64 s = at + threadIdx.x;
    i64 n = s < high ? item(values, begin, stride, size, s) : 0;
    i64 here, upto = block_sum_to_here(n, shared, here);
    if (s < high) first[s + 1] = before + upto;
    before += here;
  }
  if (threadIdx.x == 0 && blockIdx.x == 0) first[0] = 0;
  if (threadIdx.x == 0 && blockIdx.x == gridDim.x - 1 && total) *total = before;
}

__device__ __forceinline__ i8 kind_of(const Frontier& slots, const Rules& rules, i64 deep_rows,
                                      i64 s) {
  i64 n = slots.n_rows[s];
  if (n == 0) return NONE;
  if (slots.constant[s] || n < rules.fewest_rows || slots.depth[s] >= rules.max_depth)
    return LEAF;
  return n <= deep_rows ? DEEP : WIDE;
}

// The kinds of slots, i8[S]; each slot's number among those of its kind in its block's span, rank
// i64[S]; of each span, the number of wide slots, of deep ones, and of the rows of both, counts
// i64[4, spans]; and into how many tiles the wide ones are divided by each size that tiles may
// have, the multiples of LEAST_TILE: tiles i64[TILE_SIZES, spans].
extern "C" __global__ void __launch_bounds__(THREADS)
number_kinds(Frontier slots, Kinds kinds, Rules rules, i64 deep_rows) {
  __shared__ i64 shared[THREADS / 32];
  i64 low = blockIdx.x * kinds.span, high = low + kinds.span < kinds.S ? low + kinds.span : kinds.S;
  // wide slots are counted in the lower half of 64 bits, deep ones in the upper
  i64 before = 0, rows_wide = 0, rows_deep = 0;
  u32 tiles[TILE_SIZES] = {};
#pragma unroll 1
  for (i64 at = low; at < high; at += blockDim.x) {
    i64 s = at + threadIdx.x, stored = s < high ? slots.end[s] - slots.begin[s] : 0;
    int own = s < high ? kind_of(slots, rules, deep_rows, s) : NONE;
    i64 all, upto = block_sum_to_here(own == WIDE ? 1 : (i64)(own == DEEP) << 32, shared, all);
    upto += before;
    before += all;
    if (s < high) {
      kinds.kind[s] = own;
      kinds.rank[s] = (i64)(own == DEEP ? (u64)upto >> 32 : (u32)upto) - 1;
    }
    rows_wide += own == WIDE ? stored : 0;
    rows_deep += own == DEEP ? stored : 0;
#pragma unroll
    for (int j = 0; j < TILE_SIZES; j++) {
      u32 size = (j + 1) * LEAST_TILE;
      tiles[j] += own == WIDE ? ((u32)stored + size - 1) / size : 0;
    }
  }
  rows_wide = block_sum(rows_wide, shared);
  rows_deep = block_sum(rows_deep, shared);
  if (threadIdx.x == 0) {
    i64 found[] = {(u32)before, (i64)((u64)before >> 32), rows_wide, rows_deep};
#pragma unroll
    for (int j = 0; j < 4; j++) kinds.counts[j * gridDim.x + blockIdx.x] = found[j];
  }
#pragma unroll
  for (int j = 0; j < TILE_SIZES; j++) {
    i64 all = block_sum(tiles[j], shared);
    if (threadIdx.x == 0) kinds.tiles[j * gridDim.x + blockIdx.x] = all;
  }
}

__device__ __forceinline__ void copy_slot(const Frontier& from, i64 s, const Frontier& to, i64 i,
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

// The fields of the wide and of the deep slots, of C channels;
// `rank` becomes each slot's number among all of its kind. blockIdx.x counts the spans of slots.
// The first block of a span numbers the tiles of `size` rows of its wide slots, first i64[n_wide + 1],
// see `sums_before`; the others have a thread for each slot.
extern "C" __global__ void __launch_bounds__(THREADS)
take_slots(Frontier slots, Kinds kinds, i64 C, i64 size, Frontier wide, Frontier deep, i64* first) {
  __shared__ i64 shared[THREADS / 32];
  i64 low = blockIdx.x * kinds.span, high = low + kinds.span < kinds.S ? low + kinds.span : kinds.S;
  i64 wide_before = before_block(kinds.counts, shared);
  if (blockIdx.y) {
    i64 deep_before = before_block(kinds.counts + gridDim.x, shared);
    i64 s = low + (blockIdx.y - 1) * blockDim.x + threadIdx.x;
    if (s >= high) return;
    int own = kinds.kind[s];
    i64 number = kinds.rank[s] + (own == DEEP ? deep_before : wide_before);
    kinds.rank[s] = number;
    if (own == DEEP) copy_slot(slots, s, deep, number, C);
    if (own == WIDE) copy_slot(slots, s, wide, number, C);
    return;
  }
  i64 before = before_block(kinds.tiles + (size / LEAST_TILE - 1) * gridDim.x, shared);
#pragma unroll 1
  for (i64 at = low; at < high; at += blockDim.x) {
    i64 s = at + threadIdx.x, tiles = 0;
    bool is_wide = s < high && kinds.kind[s] == WIDE;
    if (is_wide) tiles = (slots.end[s] - slots.begin[s] + size - 1) / size;
    // tiles are counted in the lower half of 64 bits, wide slots in the upper
    i64 all, upto = block_sum_to_here((i64)is_wide << 32 | tiles, shared, all);
    if (is_wide) first[wide_before + (upto >> 32)] = before + (u32)upto;
    wide_before += all >> 32;
    before += (u32)all;
  }
  if (blockIdx.x == 0 && threadIdx.x == 0) first[0] = 0;
}

// The fields of S slots, of C channels, that are in several parts, one after another: slots from
// first[p] on, i64[parts], are in parts[p].
extern "C" __global__ void __launch_bounds__(THREADS)
join_slots(const Frontier* parts, const i64* first, i64 n_parts, i64 S, i64 C, Frontier to) {
  for (i64 s = thread_number(); s < S; s += thread_count()) {
    i64 p = part_of(first, n_parts, s);
    copy_slot(parts[p], s - first[p], to, s, C);
  }
}

// Writes the sums of slot i, sum(c) of each of C channels, and whether all targets of its rows may be
// equal: for classes (`mean` is null) one of them has the whole weight; for moments, C - 1 of them,
// their mean is a whole number, which goes to mean i64[S, C - 1], and `compare` bool[S] tells it.
template <class Sum>
__device__ __forceinline__ void write_sums(const Frontier& slots, i64 i, i64 C, i64* mean,
                                           bool* compare, Sum sum) {
  i64 most = 0, total = 0, weight = 1;
  bool whole = true;
#pragma unroll 1
  for (i64 c = 0; c < C; c++) {
    i64 here = slots.sums[i * C + c] = sum(c);
    most = here > most ? here : most;
    total += here;
    if (!mean) continue;
    if (c == 0) {
      weight = here > 1 ? here : 1;
    } else {
      i64 quotient = mean[i * (C - 1) + c - 1] = here / weight;
      whole = whole && quotient * weight == here;
    }
  }
  slots.constant[i] = mean ? whole : most == total;
  if (mean) compare[i] = whole;
}

// The root slots of T trees of C channels, which hold their rows from offsets[t] on, i64[T + 1];
// `mean`, `compare`: see `write_sums`.
extern "C" __global__ void __launch_bounds__(THREADS)
root_slots(const i64* offsets, const u64* key, const i64* sums, i64 T, i64 C, Frontier slots,
           i64* mean, bool* compare) {
  for (i64 t = thread_number(); t < T; t += thread_count()) {
    slots.tree[t] = (i32)t;
    slots.key[t] = key[t];
    slots.begin[t] = offsets[t];
    slots.end[t] = offsets[t + 1];
    slots.n_rows[t] = offsets[t + 1] - offsets[t];
    slots.depth[t] = 0;
    write_sums(slots, t, C, mean, compare, [&](i64 c) { return sums[t * C + c]; });
  }
}

// The fields of the two slots below each of W slots. Rows have moved by `half` rows, on or back.
// Where `compare` is true, `constant` depends on the rows, see `differing`.
extern "C" __global__ void __launch_bounds__(THREADS)
children(Frontier above, i64 W, i64 C, const i32* feature, const i64* left, const i64* n_left,
         i64 half, Frontier below, i64* mean, bool* compare) {
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
    write_sums(below, i, C, mean, compare, [&](i64 c) {
      i64 sum = left[s * C + c];
      return is_right ? above.sums[s * C + c] - sum : sum;
    });
    if (mean && high <= low) compare[i] = false;
  }
}
