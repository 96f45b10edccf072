// Splits by sets of categories. A warp puts the rows of a node in the order of their categories in
// which the best set is a cut, and gives each category its place in that order as its code; then
// the feature is cut as one of numbers. The specification is sets/order.py. Sums have two channels,
// or cuts are random.
//
// The rows are sorted by code first, so those of a category are a run of neighbours.
#include "grow_subtrees/node.cuh"

#if SETS

struct Runs {
  SortedRows rows;  // of a node
  u32* keys;        // theirs
  i32* begin;       // [m] the first row of each run
  double* key;      // [m] what the runs are put in order by
  i32* spare;       // [n]
  int n, m;         // rows and runs
  int width;        // lanes that take a run together

  __device__ __forceinline__ Runs(const Block& block, const Growth& growth, const Open& node)
      : rows{block, block.keys + node.low, outputs(growth.C)},
        keys(block.keys + node.low),
        begin(growth.sets.begin + node.low),
        key(growth.sets.key + node.low),
        spare(growth.sets.spare + node.low),
        n(node.n) {
    find();
  }
  __device__ __forceinline__ void find() {
    m = 0;
    for (int base = 0; base < n; base += 32) {
      int i = base + lane();
      bool first = i < n && (i == 0 || rows.code(i) != rows.code(i - 1));
      u32 found = __ballot_sync(ALL_LANES, first);
      if (first) begin[m + __popc(found & lanes_below())] = i;
      m += __popc(found);
    }
    width = 32 / lanes_for(m);
    __syncwarp();
  }
  __device__ __forceinline__ int end(int g) const { return g + 1 < m ? begin[g + 1] : n; }
  __device__ __forceinline__ int step() const { return 32 / width; }  // runs that lanes take at once
  __device__ __forceinline__ int of_lane() const { return lane() / width; }
  __device__ __forceinline__ bool writes(int g) const {
    return g < m && (lane() & (width - 1)) == 0;
  }

  // The sum of the values of the rows of run g, which `width` lanes call with; all lanes call it.
  template <class Value>
  __device__ __forceinline__ i64 sum(int g, Value value) const {
    i64 sum = 0;
    int last = g < m ? end(g) : 0;
    if (g < m)
      for (int i = begin[g] + (lane() & (width - 1)); i < last; i += width) sum += value(i);
    return warp_sum(sum, width);
  }
  __device__ __forceinline__ i64 weight(int g) const {
    return sum(g, [&](int i) { return rows.at(i).w; });
  }
  __device__ __forceinline__ i64 channel(int g, int c) const {
    return sum(g, [&](int i) { return (i64)rows.at(i).channel(c); });
  }

  // Puts the runs in the order of `key`; equal ones stay in order. The code of a row becomes the
  // place of its run.
  __device__ __forceinline__ void put_in_order() {
    __syncwarp();
    for (int i = lane(); i < n; i += 32) spare[i] = (i32)keys[i];
    __syncwarp();
    for (int g = of_lane(); g < m; g += step()) {
      int place = 0, to = 0;
      double own = key[g];
      for (int j = 0; j < m; j++) {
        bool before = key[j] < own || (key[j] == own && j < g);
        if (!before) continue;
        place++;
        to += end(j) - begin[j];
      }
      int first = begin[g], last = end(g);
      for (int i = first + (lane() & (width - 1)); i < last; i += width)
        keys[to + i - first] = (u32)place << 16 | (u16)spare[i];
    }
    __syncwarp();
  }
};

// The score of a lane's set of at most MOST_TRIED runs: bit g of its number stands for run g, and the
// last one is in no set. `free`: the same without limits.
struct SetScore {
  double score = MINUS_INFINITY, free = MINUS_INFINITY;

  __device__ __forceinline__ SetScore(const Runs& runs, const Growth& growth, const i64* sums) {
    int s = lane(), rows_left = 0;
    Side left, right;
    for (int g = 0; g < runs.m; g++)
      if (s >> g & 1) rows_left += runs.end(g) - runs.begin[g];
    for (int c = 0; c < growth.C; c++) {
      i64 own = runs.channel(runs.of_lane(), c), here = 0;
      for (int g = 0; g < runs.m; g++) {
        i64 run = __shfl_sync(ALL_LANES, own, g * runs.width);
        if (s >> g & 1) here += run;
      }
      left.add(c, (SUM)here, growth.table);
      right.add(c, (SUM)(sums[c] - here), growth.table);
    }
    if (s == 0 || s >= 1 << (runs.m - 1)) return;
    int min_rows = growth.min_rows;
    i64 min_weight = growth.min_weight;
    bool allowed = rows_left >= min_rows && runs.n - rows_left >= min_rows;
    allowed = allowed && left.n >= min_weight && right.n >= min_weight;
    if (allowed) score = left.score(growth.table) + right.score(growth.table);
#if CRITERION == POISSON
    left.allowed = right.allowed = true;
#endif
    free = left.score(growth.table) + right.score(growth.table);
  }
};

// Where limits forbid the best cut of at most MOST_TRIED categories in order, the best allowed set
// comes first.
__device__ __forceinline__ void put_allowed_first(Runs& runs, const Growth& growth,
                                                  const i64* sums) {
  runs.find();
  if (runs.m > MOST_TRIED) return;
  SetScore found(runs, growth, sums);
  int set = lane();
  bool is_cut = (set & (set + 1)) == 0;
  double highest = warp_max(is_cut ? found.free : MINUS_INFINITY);
  double allowed = warp_max(is_cut ? found.score : MINUS_INFINITY);
  if (!(highest > allowed)) return;
  double score = !is_cut && found.score > allowed ? found.score : MINUS_INFINITY;
  first_highest(score, set);
  if (score == MINUS_INFINITY) return;
  for (int g = lane(); g < runs.m; g += 32) runs.key[g] = set >> g & 1 ? 0.0 : 1.0;
  runs.put_in_order();
}

// Puts a node's rows, sorted by a feature's codes, in the order of its categories. The code of a row
// becomes the place of its category; missing values are a category as well.
__device__ __forceinline__ void order_categories(const Block& block, const Growth& growth, Open node,
                                              u64 key, int f, const i64* sums) {
  Runs runs(block, growth, node);
  bool random = random_cuts(growth);
  if (random) {
    u64 h = hash_at(key, CUT + (u64)f);
    for (int g = lane(); g < runs.m; g += 32)
      runs.key[g] = (double)(hash_at(h, (u64)runs.rows.code(runs.begin[g])) >> 11);
  } else {
    for (int base = 0; base < runs.m; base += runs.step()) {
      int g = base + runs.of_lane();
      i64 weight = runs.weight(g), second = runs.channel(g, 1);
      if (runs.writes(g)) runs.key[g] = (double)second / (double)weight;
    }
  }
  runs.put_in_order();
  bool limits = growth.min_rows > 1 || growth.min_weight > 1 || CRITERION == POISSON;
  if (!random && limits) put_allowed_first(runs, growth, sums);
}

// The bits of `word` for all bins of a feature.
__device__ __forceinline__ u64 all_bins(int n_bins, int word) {
  int n = n_bins - 64 * word;
  return n < 64 ? (1ull << n) - 1 : ~0ull;
}

// Writes the set of a node's best split so far, while its rows are in order: `best.bin` is the last
// row of the left side, and `best.missing_left` says whether that is the heavier side.
__device__ __forceinline__ void write_set(const Block& block, const Growth& growth,
                                          const Open& node, Best& best) {
  int missing = growth.B - 1, last = best.bin, n_bins = growth.n_bins[best.feature];
  bool heavier = best.missing_left;
  const u32* keys = block.keys + node.low;
  u64* words = set_of(growth, node);
  for (int w = 0; 64 * w < n_bins; w++) {
    u64 lighter = 0;  // categories of the lighter side
    bool left = false, right = false;  // whether missing values are there
    for (int i = lane(); i < node.n; i += 32) {
      int code = block.code((u16)keys[i], best.feature);
      if (code == missing) {
        left = left || i <= last;
        right = right || i > last;
      } else if (code >> 6 == w && (i <= last) != heavier) {
        lighter |= 1ull << (code & 63);
      }
    }
    for (int d = 16; d > 0; d >>= 1) lighter |= __shfl_xor_sync(ALL_LANES, lighter, d);
    if (lane() == 0) words[w] = heavier ? all_bins(n_bins, w) & ~lighter : lighter;
    left = __any_sync(ALL_LANES, left);
    right = __any_sync(ALL_LANES, right);
    best.missing_left = left || (heavier && !right);
  }
  best.bin = SET_BIN;
  __syncwarp();
}

#endif
