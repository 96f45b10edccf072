// A block splits a node of many rows: histograms of as many features as fit, a warp for each.
#include "grow_subtrees/node.cuh"

// What the warps of a block tell each other, in shared memory.
struct Table {
  double score[DEEP_WARPS / BLOCKS];
  int where[DEEP_WARPS / BLOCKS], drawn[DEEP_WARPS / BLOCKS], features[DEEP_WARPS / BLOCKS];
};

// `where` holds the bin, and above it:
#define WHERE_MISSING_LEFT 20

// The histograms of a block: `group` features at once, each u32[words][size].
struct Histogram {
  int group, words, size;
};

__device__ __forceinline__ Histogram histogram_of(const Growth& growth, int n_cells) {
  int words = (LABELS ? growth.C : 2 * growth.C - 1) + (growth.rules.min_rows > 1);
  int size = (growth.B + 127) & ~127, fit = n_cells / (words * size);
  return {fit < (int)blockDim.x >> 5 ? fit : (int)blockDim.x >> 5, words, size};
}

// Whether rows of a node differ in a feature. A warp calls it.
__device__ __forceinline__ bool varies(const Block& block, int f, int low, int n) {
  int first = block.code(block.order[low], f);
  for (int base = 0; base < n; base += 32) {
    int i = base + lane();
    if (__any_sync(ALL_LANES, i < n && block.code(block.order[low + i], f) != first)) return true;
  }
  return false;
}

// Puts the next features that vary into the table, at most `most`, from a position of the node's
// order on, and returns their number and the position after them. Each warp looks at one.
__device__ __noinline__ int2 next_features(const Block& block, const Growth& growth,
                                           const Open& node, u64 key, int most, int position,
                                           Table& table) {
  int found = 0, warps = blockDim.x >> 5;
  if (growth.may.k >= growth.F && !growth.allowed) {  // all are tried: the others have no cut
    found = min(most, growth.F - position);
    if ((int)threadIdx.x < found) table.features[threadIdx.x] = position + threadIdx.x;
    return {found, position + found};
  }
  while (found < most && position < growth.F) {
    int f = position + warp() < growth.F ? draw(growth, key, position + warp()) : -1;
    if (f >= 0 && growth.allowed && !growth.allowed[f]) f = -1;
    if (f >= 0 && !varies(block, f, node.low, node.n)) f = -1;
    if (lane() == 0) table.drawn[warp()] = f;
    __syncthreads();
    for (int w = 0; w < warps && found < most && position < growth.F; w++, position++) {
      if (table.drawn[w] < 0) continue;
      if (threadIdx.x == 0) table.features[found] = table.drawn[w];
      found++;
    }
    __syncthreads();
  }
  return {found, position};
}

// Fills the histograms of the table's first n_features features.
__device__ __forceinline__ void fill(const Block& block, const Growth& growth, const Open& node,
                                     const Histogram& hist, int n_features, const Table& table) {
  int K = outputs(growth.C), each = hist.words * hist.size;
  bool count = growth.rules.min_rows > 1;
  u32* cells = block.cells;
  for (int i = threadIdx.x; i < n_features * each / 4; i += blockDim.x)
    ((uint4*)cells)[i] = {0, 0, 0, 0};
  __syncthreads();
  for (int i = threadIdx.x; i < node.n; i += blockDim.x) {
    int position = block.order[node.low + i];
    i32 w = block.weight[position];
    for (int j = 0; j < n_features; j++)
      Cells{cells + j * each, hist.size, growth.C}.add(
          block.code(position, table.features[j]), block.target + position * K, w, count);
  }
  __syncthreads();
}

// Neighbouring bins that a lane takes: as many as the registers allow.
#if CRITERION == GINI || CRITERION == SQUARED_ERROR
#define CUT_ITEMS 4
#else
#define CUT_ITEMS 1
#endif

// The best cut of a histogram of a feature. A warp calls it; its scratch holds the sums of rows
// with missing values then.
__device__ __forceinline__ void cut_histogram(const Growth& growth, const Open& open, u64 key,
                                              const Cells& cells, int f, const i64* sums,
                                              i64* scratch, double& score, int& where) {
  int C = growth.C, last = growth.B - 1, n_bins = min(growth.rules.n_bins[f], last);
  i64 *missing = scratch + C, *so_far = missing + C;
  for (int c = lane(); c < C; c += 32) missing[c] = cells.at(last).channel(c);
  __syncwarp();
  int rows_missing = growth.rules.min_rows > 1 ? cells.rows(last) : 0;
  Node node = {C, open.n, sums, cells.holds_rows(last), rows_missing, missing, so_far};
  Draw draw = {false, false, 0};
#if SPECIAL
  int low = cells.after(-1, n_bins);
  if (low >= 0) draw.between(key, f, low, last_bin(cells, n_bins), node.some_missing);
#endif
  Limits limits = limits_of(growth.rules.min_rows);
  Cut cut = best_cut_of<CUT_ITEMS>(cells, n_bins, node, limits, draw, growth.rules.table);
  score = cut.score;
  where = missing_goes_left(cut, node) << WHERE_MISSING_LEFT;
  if (cut.item >= 0)
    where |= draw.random && cells.after(draw.code, n_bins) >= 0
                 ? draw.code
                 : middle_of_gap(cells, n_bins, cut.item, growth.rules.n_bins[f]);
  __syncwarp();
}

// The best cut of the first k features that vary; the sums of its left side in `left`.
__device__ __forceinline__ Best best_by_block(const Block& block, const Growth& growth,
                                              const Open& node, u64 key, const Histogram& hist,
                                              const i64* sums, i64* left, Table& table) {
  Best best = {MINUS_INFINITY, -1, 0, false};
  int C = growth.C, each = hist.words * hist.size;
  i64* scratch = block.scratch + warp() * NODE_SUMS * C;
  for (int tried = 0, position = 0; tried < growth.may.k && position < growth.F;) {
    int most = min(hist.group, growth.may.k - tried);
    int2 next = next_features(block, growth, node, key, most, position, table);
    int n = next.x;
    tried += n;
    position = next.y;
    fill(block, growth, node, hist, n, table);
    Cells cells = {block.cells + warp() * each, hist.size, C};
    if (warp() < n) {
      double score;
      int where;
      cut_histogram(growth, node, key, cells, table.features[warp()], sums, scratch, score, where);
      if (lane() == 0) {
        table.score[warp()] = score;
        table.where[warp()] = where;
      }
    }
    __syncthreads();
    int winner = -1;
    for (int j = 0; j < n; j++)
      if (table.score[j] > best.score) {
        int where = table.where[j];
        best = {table.score[j], table.features[j], where & ((1 << WHERE_MISSING_LEFT) - 1),
                where >> WHERE_MISSING_LEFT > 0};
        winner = j;
      }
    if (warp() == winner)
      for (int c = 0; c < C; c++) {
        i64 sum = 0;
        for (int b = lane(); b <= best.bin; b += 32) sum += cells.at(b).channel(c);
        sum = warp_sum(sum) + (best.missing_left ? cells.at(growth.B - 1).channel(c) : 0);
        if (lane() == 0) left[c] = sum;
      }
    __syncthreads();
  }
  return best;
}

// As split_rows, by all threads of the block.
__device__ __forceinline__ int split_rows_by_block(const Block& block, const Open& node,
                                                   const Best& split, int missing, u32* counts) {
  int low = node.low, n = node.n, left = 0, right = 0;
  for (int base = 0; base < n; base += blockDim.x) {
    int i = base + threadIdx.x, total;
    bool inside = i < n, goes = false;
    u16 position = 0;
    if (inside) {
      position = block.order[low + i];
      goes = goes_left(block.code(position, split.feature), split.bin, split.missing_left, missing);
    }
    int rank = block_rank(goes, counts, total);  // all have read then
    if (goes) block.order[low + left + rank] = position;
    if (inside && !goes) block.keys[low + right + threadIdx.x - rank] = position;
    left += total;
    right += min((int)blockDim.x, n - base) - total;
  }
  __syncthreads();
  for (int i = threadIdx.x; i < right; i += blockDim.x)
    block.order[low + left + i] = block.keys[low + i];
  __syncthreads();
  return left;
}

// Splits an open node, or makes it a leaf; its children wait in `lists`.
__device__ __forceinline__ void split_by_block(const Block& block, const Growth& growth, const Open& node,
                               const Histogram& hist, const Lists& lists, Table& table,
                               u32* counts) {
  int C = growth.C, warps = blockDim.x >> 5, low = node.low;
  i64 *sums = block.scratch, *left_sums = block.scratch + warps * NODE_SUMS * C;
  u64 key = growth.nodes[node.position];
  for (int c = threadIdx.x; c < C; c += blockDim.x) sums[c] = growth.leaf_sums[(i64)low * C + c];
  __syncthreads();
  Best best = best_by_block(block, growth, node, key, hist, sums, left_sums, table);
  if (refused(growth, best, sums)) {
    if (threadIdx.x == 0) growth.nodes[node.position] = LEAF_WORD | (u64)low;
    __syncthreads();
    return;
  }
  int left = split_rows_by_block(block, node, best, growth.B - 1, counts);
  bool left_differ = false, right_differ = false;
  for (int i = threadIdx.x; i < node.n; i += blockDim.x) {
    int first = block.order[i < left ? low : low + left];
    bool differ = !same_target(block, block.order[low + i], first, outputs(C));
    if (i < left) left_differ = left_differ || differ;
    else right_differ = right_differ || differ;
  }
  left_differ = __syncthreads_or(left_differ);
  right_differ = __syncthreads_or(right_differ);
  if (warp() == 0) {
    i64* right_sums = sums + C;
    for (int c = lane(); c < C; c += 32) right_sums[c] = sums[c] - left_sums[c];
    __syncwarp();
    Open a = left_child(node, left), b = right_child(node, left);
    bool left_waits = add_node(growth, a, hash_at(key, 0), left_sums, !left_differ);
    bool right_waits = add_node(growth, b, hash_at(key, 1), right_sums, !right_differ);
    if (lane() == 0) {
      write_split(growth, node, best);
      if (left_waits) lists.put(block, a);
      if (right_waits) lists.put(block, b);
    }
  }
  __syncthreads();
}
