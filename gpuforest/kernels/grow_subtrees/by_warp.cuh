// A warp splits a node: it puts the rows in the order of their codes, one feature after another.
#include "grow_subtrees/by_lanes.cuh"
#include "project/oblique.cuh"
#include "sets/cuda.cuh"

// Writes the sums of each channel of n items, item(i), to `sums`.
template <class Item>
__device__ __forceinline__ void sum_channels(int n, int C, i64* sums, Item item) {
  for (int c = 0; c < C; c++) {
    i64 sum = 0;
    for (int i = lane(); i < n; i += 32) sum += item(i).channel(c);
    sum = warp_sum(sum);
    if (lane() == 0) sums[c] = sum;
  }
}

// Writes the channel sums of a node's rows to `sums`.
__device__ __forceinline__ void sum_rows(const Block& block, int low, int n, int C, i64* sums) {
#if LABELS
  for (int c = lane(); c < C; c += 32) sums[c] = 0;
  __syncwarp();
  for (int i = lane(); i < n; i += 32) {
    int position = block.order[low + i];
    // totals stay below 2^31: the lower word is enough
    atomicAdd((u32*)&sums[block.target[position]], (u32)block.weight[position]);
  }
#else
  SortedRows rows = {block, nullptr, C - 1};
  sum_channels(n, C, sums, [&](int i) { return rows.row(block.order[low + i]); });
#endif
  __syncwarp();
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

// Sorts a node's keys by counting codes, or by comparisons if a count for each code takes too much
// memory.
__device__ __forceinline__ void sort_rows(const Block& block, const Growth& growth, int f, int low,
                                          int n) {
  u32* keys = block.keys + low;
  int B = growth.n_codes();
  if (SETS && n <= 32) {  // where this is the way of small nodes as well
    u32 key = sort_lanes(lane() < n ? keys[lane()] : 0xffffffffu, 32);
    if (lane() < n) keys[lane()] = key;
    __syncwarp();
    return;
  }
  if (!block.counts) {
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
#if SUMS  // codes are not read again, but steps of sums
    i32* spare = growth.sets.spare + low;
    for (int i = lane(); i < n; i += 32) spare[i] = (i32)keys[i];
    __syncwarp();
    for (int i = lane(); i < n; i += 32) {
      u32 key = (u32)spare[i];
      keys[atomicAdd(&next[key >> 16], 1u)] = key;
    }
#else
    for (int i = lane(); i < n; i += 32) {
      int position = block.order[low + i];
      u32 code = block.code(position, f);
      keys[atomicAdd(&next[code], 1u)] = code << 16 | position;
    }
#endif
  }
  __syncwarp();
}

// What is cut: feature f; or a combination of n features of which that is the first one. Hashes take
// its `number`.
struct Column {
  int f, number, n;

  __device__ __forceinline__ int n_bins(const Growth& growth) const {
#if SUMS
    if (n > 1) return (int)growth.combining.n_bins;
#endif
    return growth.n_bins[f];
  }
};

// The best cut of one column in one node. The keys of the node must be loaded. If the feature is
// categorical, `bin` is the row behind which they are cut in order, as `write_set` takes it.
__device__ __forceinline__ Best column_cut(const Block& block, const Growth& growth,
                                           const Open& open, u64 key, Column column, int n_missing,
                                           i64* sums) {
  int C = growth.C, n = open.n, f = column.f;
  sort_rows(block, growth, f, open.low, n);
#if SETS
  bool is_set = growth.sets.kinds[f] == CATEGORICAL;
  if (is_set) {
    order_categories(block, growth, open, key, column.number, sums);
    n_missing = 0;
  }
#endif
  int present = n - n_missing;
  Node node = {C, n, sums, n_missing > 0, n_missing, sums + C, sums + 2 * C};
  SortedRows rows = {block, block.keys + open.low, outputs(C)};
  if (n_missing)
    sum_channels(n_missing, C, node.missing, [&](int i) { return rows.at(present + i); });
  __syncwarp();
  Draw draw = {false, false, 0};
  if (random_cuts(growth) && present)
    draw.between(key, column.number, rows.code(0), rows.code(present - 1), n_missing > 0);
  Limits limits = limits_of(growth, open.low, f);
  Cut cut = best_cut_of<1>(rows, present, node, limits, draw, growth.table);
  Best best = {cut.score, f, 0, missing_goes_left(cut, node)};
  if (cut.item >= 0)
    best.bin = draw.random && draw.code < rows.code(present - 1)
                   ? draw.code
                   : middle_of_gap(rows, present, cut.item, column.n_bins(growth));
#if SETS
  if (is_set) best.bin = cut.item;
#endif
  __syncwarp();
  return best;
}

// The best cut of the first k features that vary, or combinations.
__device__ __noinline__ Best best_of_features(const Block& block, const Growth& growth,
                                              const Open& node, u64 key, i64* sums) {
  Best best = {MINUS_INFINITY, -1, 0, false};
  int k = growth.k, F = growth.F, attempts = SUMS ? F * ((k + F - 1) / F) : F;
  for (int tried = 0, a = 0, drawn = 0; tried < k && a < attempts; a++) {
    // each lane draws one of the next 32 features; the first one of a combination
    if ((a & 31) == 0) drawn = draw(growth, key, SUMS ? (a + lane()) % F : a + lane());
    int f = __shfl_sync(ALL_LANES, drawn, a & 31);
    if (growth.allowed && !growth.allowed[f]) continue;
#if SUMS
    Terms terms = draw_terms(growth, key, a, f);
    Steps steps = load_steps(block, growth, node, terms);
    if (!steps.vary) continue;
    int n_missing = steps.n_missing, number = a % k;
    if (growth.sets.kinds[f] == CATEGORICAL) number += k;
    Column column = {f, number, terms.n};
    u64 own_key = a < k ? key : hash_at(key, ROUNDS + (u64)(a / k));
#else
    int n_missing;
    if (!load_keys(block, f, node.low, node.n, growth.B - 1, n_missing)) continue;
    Column column = {f, f, 1};
    u64 own_key = key;
#endif
    tried++;
    Best found = column_cut(block, growth, node, own_key, column, n_missing, sums);
    if (!(found.score > best.score)) continue;
    best = found;
#if SUMS
    if (terms.n > 1) {
      write_terms(growth, node, terms, steps, best);
      continue;
    }
#endif
#if SETS
    if (growth.sets.kinds[f] == CATEGORICAL) write_set(block, growth, node, best);
#endif
  }
  return best;
}

// The lanes of a warp, as a group of threads that splits a node.
struct Lanes {
  __device__ __forceinline__ int thread() const { return lane(); }
  __device__ __forceinline__ int threads() const { return 32; }
  __device__ __forceinline__ void sync() const { __syncwarp(); }
  __device__ __forceinline__ int rank(bool flag, u32*, int& total) const {
    u32 some = __ballot_sync(ALL_LANES, flag);
    total = __popc(some);
    __syncwarp();
    return __popc(some & lanes_below());
  }
};

// How a node was split: how many rows go left, and which children wait.
struct Split {
  int left, wait;
};

// Splits an open node of these `sums`, or makes it a leaf. The children's sums are in the next two
// arrays of the warp's scratch then.
__device__ __noinline__ Split split_by_warp(const Block& block, const Growth& growth,
                                            const Open& node, i64* sums) {
  int C = growth.C;
  u64 key = growth.nodes[node.position];
  Best best = !SETS && node.n <= 32 ? best_of_few(block, growth, node, key, sums)
                                    : best_of_features(block, growth, node, key, sums);
  __syncwarp();
  if (refused(growth, best, sums)) {
    if (lane() == 0) write_leaf(growth, node);
    return {0, 0};
  }
  int left = split_rows(block, Lanes(), node, nullptr, [&](int position) {
    return goes_left_at(block, growth, node, best, position);
  });
  i64* left_sums = sums + C;
  sum_rows(block, node.low, left, C, left_sums);
  bool left_equal = all_equal(block, Lanes(), node.low, left, C, nullptr);
  bool right_equal = all_equal(block, Lanes(), node.low + left, node.n - left, C, nullptr);
  return {left, write_children(growth, node, key, best, left, sums, left_sums, left_sums + C,
                               left_equal, right_equal)};
}

__device__ __forceinline__ void read_sums(const Growth& growth, const Open& node, i64* sums) {
  for (int c = lane(); c < growth.C; c += 32)
    sums[c] = growth.leaf_sums[(i64)node.low * growth.C + c];
  __syncwarp();
}

// A warp splits a node of many rows, where no histogram fits.
__device__ __forceinline__ void split_large_by_warp(const Block& block, const Growth& growth,
                                                    const Open& node, const Lists& lists) {
  i64* sums = scratch_of(block, growth);
  read_sums(growth, node, sums);
  Split split = split_by_warp(block, growth, node, sums);
  lists.put(block, node, split.left, split.wait);
  __syncwarp();
}

// A warp grows the subtree of block.waiting[at], left before right: where both children of a node
// wait, it goes on with the left one, and the right one is the first of those that wait. The node
// stays in shared memory, to save registers; a child may take its place there.
__device__ __forceinline__ void grow_by_warp(const Block& block, const Growth& growth, int at) {
  i64* sums = scratch_of(block, growth);
  int C = growth.C;
  bool is_first = true;  // its sums are not there yet
  while (at != NO_NODE) {
    const Open& node = block.waiting[at];
    if (is_first) read_sums(growth, node, sums);
    Split split = split_by_warp(block, growth, node, sums);
    int next = node.next, from = split.wait & LEFT_WAITS ? C : 2 * C;
    is_first = !split.wait;
    if (split.wait) {
      Open right = right_child(node, split.left);
      Open child = split.wait & LEFT_WAITS ? left_child(node, split.left) : right;
      __syncwarp();  // all have read the node
      if (split.wait == (LEFT_WAITS | RIGHT_WAITS)) {
        right.next = next;
        next = right.low >> 1;
        if (lane() == 0) block.waiting[next] = right;
      }
      child.next = next;
      next = child.low >> 1;
      if (lane() == 0) block.waiting[next] = child;
      for (int c = lane(); c < C; c += 32) sums[c] = sums[from + c];
    }
    at = next;
    __syncwarp();
  }
}
