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

// Places of cuts: those with missing values right, then those with them left.
__device__ __forceinline__ void best_cut(const i64* cells, const Whole& node, i64 n_bins, i64 B,
                                         i64 bits, double sign, Scratch& shared, NodeSplit* out) {
  Sums missing = bin_at(cells, B - 1, bits), before = {0, 0, 0}, kept = {0, 0, 0};
  Best best = {0.0, NEVER};
  for (i64 first = 0; first < n_bins; first += blockDim.x) {
    i64 b = first + threadIdx.x;
    Sums own = {0, 0, 0};
    if (b < n_bins) own = bin_at(cells, b, bits);
    own = sums_to_here(own, before, shared);
    // the last cut divides missing values from all others
    if (b < (missing.n ? n_bins : n_bins - 1)) {
      best.take(node.gain(own, sign), b);
      if (best.at == b) kept = own;
    }
    if (missing.n && b < n_bins - 1) {
      best.take(node.gain(own + missing, sign), n_bins + b);
      if (best.at == n_bins + b) kept = own + missing;
    }
  }
  Best found = block_best(best, shared.best);
  if (!(found.gain > 0.0)) {
    if (threadIdx.x == 0) out->gain = 0.0;
  } else if (best.at == found.at) {
    bool left = found.at >= n_bins, heavier = missing.n == 0 && 2 * kept.n > node.sums.n;
    *out = {found.gain, left ? found.at - n_bins : found.at, left || heavier, kept.g, kept.h,
            kept.n};
  }
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
  Sums total, before = {0, 0, 0}, kept = {0, 0, 0};
  int m = list_categories(cells, node, n_bins, B, bits, shared, keys, used, total);
  __syncthreads();
  for (int i = threadIdx.x; i < m; i += blockDim.x) {
    int rank = 0;
    for (int j = 0; j < m; j++) rank += keys[j] < keys[i] || (keys[j] == keys[i] && j < i);
    order[rank] = used[i];
  }
  __syncthreads();
  Best best = {0.0, NEVER};
  int half = (m + 1) / 2;
  for (int first = 0; first < m && m > 1; first += blockDim.x) {
    int j = first + threadIdx.x, i = m - 2 - j;  // the last i + 1 follow the first j + 1
    Sums own = {0, 0, 0};
    if (j < m) own = bin_at(cells, order[j], bits);
    own = sums_to_here(own, before, shared);
    if (j < half) {
      best.take(node.gain(own, 0.0), j);
      if (best.at == j) kept = own;
    }
    if (i >= 0 && i < half) {
      best.take(node.gain(total - own, 0.0), m + i);
      if (best.at == m + i) kept = total - own;
    }
  }
  Best found = block_best(best, shared.best);
  if (!(found.gain > 0.0)) {
    if (threadIdx.x == 0) out->gain = 0.0;
    return;
  }
  if (best.at == found.at) {
    *out = {found.gain, SET_BIN, 0, kept.g, kept.h, kept.n};
    shared.left_n = kept.n;
  }
  __syncthreads();
  bool backwards = found.at >= m;
  int count = (int)(backwards ? found.at - m : found.at) + 1;
  write_set(cells, node, order, m, count, backwards, n_bins, B, bits, shared.left_n, out, set, W);
}
