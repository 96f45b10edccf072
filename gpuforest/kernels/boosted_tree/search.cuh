// The best split of a node by one feature. All threads of a block work on it.
#include "boosted_tree/cuda.cuh"

// What a block shares while it searches.
struct Scratch {
  Best best[WARPS];
  i64 sums[WARPS];
  u32 counts[WARPS];
  i64 left_n;
};

// Sums up to this thread's; `before` grows by those of all threads.
__device__ __forceinline__ Sums sums_to_here(Sums own, Sums& before, Scratch& shared) {
  Sums total;
  own.g = block_sum_to_here(own.g, shared.sums, total.g);
  own.h = block_sum_to_here(own.h, shared.sums, total.h);
  own.n = block_sum_to_here(own.n, shared.sums, total.n);
  own = own + before;
  before = before + total;
  return own;
}

// A thread's best candidate, and the sums of its left side.
struct Found {
  Best best = {0.0, NEVER};
  Sums left = {0, 0, 0};

  __device__ __forceinline__ void offer(double gain, i64 place, Sums sums) {
    best.take(gain, place);
    if (best.at == place) left = sums;
  }
};

// The best of all threads' candidates, of which one is the thread's `own`; its gain is 0 if there is
// none, as that of `out` is then. offer(i, sums) is called with the sums of the first items up to
// each of n, item(i). The block calls.
template <class Item, class Offer>
__device__ __forceinline__ Best scan(i64 n, Item item, Offer offer, const Found& own,
                                     Scratch& shared, NodeSplit* out) {
  Sums before = {0, 0, 0};
  for (i64 first = 0; first < n; first += blockDim.x) {
    i64 i = first + threadIdx.x;
    Sums sums = {0, 0, 0};
    if (i < n) sums = item(i);
    offer(i, sums_to_here(sums, before, shared));
  }
  Best found = block_best(own.best, shared.best);
  if (!(found.gain > 0.0) && threadIdx.x == 0) out->gain = 0.0;
  return found;
}

// Places of cuts: those with missing values right, then those with them left.
__device__ __forceinline__ void best_cut(const i64* cells, const Whole& node, i64 n_bins, i64 B,
                                         i64 bits, double sign, Scratch& shared, NodeSplit* out) {
  Sums missing = bin_at(cells, B - 1, bits);
  Found own;
  auto item = [&](i64 b) { return bin_at(cells, b, bits); };
  auto offer = [&](i64 b, Sums sums) {
    // the last cut divides missing values from all others
    if (b < (missing.n ? n_bins : n_bins - 1)) own.offer(node.gain(sums, sign), b, sums);
    sums = sums + missing;
    if (missing.n && b < n_bins - 1) own.offer(node.gain(sums, sign), n_bins + b, sums);
  };
  Best found = scan(n_bins, item, offer, own, shared, out);
  if (!(found.gain > 0.0) || own.best.at != found.at) return;
  bool left = found.at >= n_bins, heavier = missing.n == 0 && 2 * own.left.n > node.sums.n;
  *out = {found.gain, left ? found.at - n_bins : found.at, left || heavier, own.left.g, own.left.h,
          own.left.n};
}

// The categories with enough rows in `used`, and their sums; returns how many there are.
__device__ __forceinline__ int list_categories(const i64* cells, const Whole& node, i64 n_bins,
                                               i64 B, i64 bits, Scratch& shared, double* keys,
                                               i32* used, Sums& total) {
  int m = 0;
  Sums own = {0, 0, 0};
  for (i64 first = 0; first <= n_bins; first += blockDim.x) {
    i64 c = first + threadIdx.x, code = c < n_bins ? c : B - 1;
    Sums bin = {0, 0, 0};
    if (c <= n_bins) bin = bin_at(cells, code, bits);
    bool is_used = (double)bin.n >= CATEGORY_ROWS;
    int all, at = m + block_rank(is_used, shared.counts, all);
    if (is_used) {
      used[at] = (i32)code;
      keys[at] = ((double)bin.g * node.g) / ((double)bin.h * node.h + CATEGORY_ROWS);
      own = own + bin;
    }
    m += all;
  }
  total = {0, 0, 0};
  sums_to_here(own, total, shared);
  return m;
}

// Writes the set of the first `count` categories in the order, and which side missing values go to.
__device__ __forceinline__ void write_set(const i64* cells, const Whole& node, const i32* order,
                                          int m, int count, bool backwards, i64 n_bins, i64 B,
                                          i64 bits, i64 left_n, NodeSplit* out, u64* set, i64 W) {
  for (i64 w = threadIdx.x; w < W; w += blockDim.x) {
    u64 word = 0;
    bool side = false;
    for (int i = 0; i < count; i++) {
      int code = order[backwards ? m - 1 - i : i];
      if (code == B - 1) side = true;
      else if (code >> 6 == w) word |= 1ull << (code & 63);
    }
    if (bin_at(cells, B - 1, bits).n == 0) side = 2 * left_n > node.sums.n;
    bool unknown = side && bin_at(cells, n_bins - 1, bits).n == 0;
    if (unknown && (n_bins - 1) >> 6 == w) word |= 1ull << ((n_bins - 1) & 63);
    set[w] = word;
    if (w == 0) out->missing_left = side;
  }
}

// Places of sets: those of the first categories in their order, then those of the last.
__device__ __forceinline__ void best_set(const i64* cells, const Whole& node, i64 n_bins, i64 B,
                                         i64 bits, Scratch& shared, unsigned char* bytes,
                                         NodeSplit* out, u64* set, i64 W) {
  double* keys = (double*)bytes;
  i32 *used = (i32*)(keys + B), *order = used + B;
  Sums total;
  Found own;
  int m = list_categories(cells, node, n_bins, B, bits, shared, keys, used, total);
  __syncthreads();
  for (int i = threadIdx.x; i < m; i += blockDim.x) {
    int rank = 0;
    for (int j = 0; j < m; j++) rank += keys[j] < keys[i] || (keys[j] == keys[i] && j < i);
    order[rank] = used[i];
  }
  __syncthreads();
  int half = (m + 1) / 2;
  auto item = [&](i64 j) { return bin_at(cells, order[j], bits); };
  auto offer = [&](i64 j, Sums sums) {
    i64 i = m - 2 - j;  // the last i + 1 follow the first j + 1
    if (j < half) own.offer(node.gain(sums, 0.0), j, sums);
    sums = total - sums;
    if (i >= 0 && i < half) own.offer(node.gain(sums, 0.0), m + i, sums);
  };
  Best found = scan(m > 1 ? m : 0, item, offer, own, shared, out);
  if (!(found.gain > 0.0)) return;
  if (own.best.at == found.at) {
    *out = {found.gain, SET_BIN, 0, own.left.g, own.left.h, own.left.n};
    shared.left_n = own.left.n;
  }
  __syncthreads();
  bool backwards = found.at >= m;
  int count = (int)(backwards ? found.at - m : found.at) + 1;
  write_set(cells, node, order, m, count, backwards, n_bins, B, bits, shared.left_n, out, set, W);
}
