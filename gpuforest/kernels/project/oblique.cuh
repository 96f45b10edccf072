// Splits by combinations of features. A warp adds up the coordinates of a node's rows, and the steps
// of these sums are the rows' codes in a column, which is then cut as a feature. terms.py beside
// this file says how combinations are drawn and stored; the specification is kind.py.
#include "grow_subtrees/node.cuh"

#if SUMS

#define ALL_LEFT 2147483647  // the threshold of a split by which all sums go left

// A combination of n features: lane i holds the i-th term, lanes from n on hold zero.
struct Terms {
  u32 own;
  int n;
};

// A node's rows in one combination: codes are (sum - low) >> shift.
struct Steps {
  int low, shift, n_missing;
  bool vary;
};

// The combination without the features that the tree did not draw; the first one is not such.
__device__ __noinline__ Terms only_allowed(const bool* allowed, Terms terms) {
  bool keep = lane() < terms.n && (lane() == 0 || allowed[feature_in(terms.own)]);
  u32 kept = __ballot_sync(ALL_LANES, keep);
  Terms found = {0, 0};
  for (; kept; kept &= kept - 1) {
    u32 term = __shfl_sync(ALL_LANES, terms.own, __ffs(kept) - 1);
    if (lane() == found.n++) found.own = term;
  }
  return found;
}

// Combination number a of the node with this key, whose first feature is known.
__device__ __noinline__ Terms draw_terms(const Growth& growth, u64 key, int a, int first) {
  const Combining& from = growth.combining;
  int i = lane(), place = from.position[first], n = 1;
  u64 h = hash_at(key, DRAWS + (u64)a * STRIDE + i);
  // 1. how many features it has
  u64 h_first = __shfl_sync(ALL_LANES, h, 0);
  if (place >= 0)
    n += __popc(__ballot_sync(ALL_LANES, i < (int)from.most && h_first < from.chances[i]));
  // 2. the others, without replacement (Floyd's method)
  int last = (int)from.n_numeric - 1 - n + i;
  int t = (int)(((h >> 32) * (u64)(u32)(last + 1)) >> 32);
  for (int j = 2; j < n; j++) {
    int drawn = __shfl_sync(ALL_LANES, t, j);
    u32 taken = __ballot_sync(ALL_LANES, i >= 1 && i < j && t == drawn);
    if (i == j && taken) t = last;
  }
  int f = i == 0 ? first : i < n ? from.numeric[t + (t >= place)] : 0;
  // 3. weights; the first is positive
  int weight = 1 + (int)((((h & 0xffffffffu) >> 1) * (u64)(u32)from.heaviest) >> 31);
  if (i > 0 && h & 1) weight = -weight;
  Terms terms = {i < n ? (u32)f << WEIGHT_BITS | (u32)(weight + WEIGHT_ZERO) : 0, n};
  return growth.allowed && n > 1 ? only_allowed(growth.allowed, terms) : terms;
}

// The sum of the row at a position, or its code if a feature is alone; HOLE if a value is missing.
// All lanes of a warp call it.
__device__ __forceinline__ int sum_of(const Block& block, const Growth& growth, const Terms& terms,
                                      int position) {
  const i32* coordinates = growth.combining.coordinates;
  int missing = growth.B - 1, sum = 0;
  bool is_missing = false;
  for (int i = 0; i < terms.n; i++) {
    u32 term = __shfl_sync(ALL_LANES, terms.own, i);
    int f = feature_in(term), code = block.code(position, f);
    is_missing = is_missing || code == missing;
    sum += terms.n == 1 ? code : weight_in(term) * coordinates[(i64)f * growth.B + code];
  }
  return is_missing ? HOLE : sum;
}

// Writes the keys code << 16 | position of a node's rows; the code of missing values is n_bins.
__device__ __noinline__ Steps load_steps(const Block& block, const Growth& growth, Open node,
                                         Terms terms) {
  int n = node.n, n_bins = (int)growth.combining.n_bins, least = ALL_LEFT, greatest = HOLE;
  const u16* order = block.order + node.low;
  u32* keys = block.keys + node.low;
  Steps steps = {0, 0, 0, false};
  for (int base = 0; base < n; base += 32) {
    int i = base + lane();
    bool inside = i < n;
    int sum = sum_of(block, growth, terms, order[inside ? i : 0]);
    if (inside) keys[i] = (u32)sum;
    steps.n_missing += __popc(__ballot_sync(ALL_LANES, inside && sum == HOLE));
    if (inside && sum != HOLE) {
      least = min(least, sum);
      greatest = max(greatest, sum);
    }
  }
  least = -warp_max(-least);
  greatest = warp_max(greatest);
  steps.vary = steps.n_missing ? steps.n_missing < n : least < greatest;
  if (!steps.vary) return steps;
  if (terms.n > 1) {
    steps.low = least;
    while ((greatest - least) >> steps.shift >= n_bins) steps.shift++;
  }
  for (int i = lane(); i < n; i += 32) {
    int sum = (int)keys[i], code = sum == HOLE ? n_bins : (sum - steps.low) >> steps.shift;
    keys[i] = (u32)code << 16 | order[i];
  }
  __syncwarp();
  return steps;
}

// Writes the words of a combination whose codes up to `best.bin` go left.
__device__ __forceinline__ void write_terms(const Growth& growth, const Open& node,
                                            const Terms& terms, const Steps& steps, Best& best) {
  bool all = best.bin >= (int)growth.combining.n_bins - 1;
  int threshold = all ? ALL_LEFT : steps.low + ((best.bin + 1) << steps.shift) - 1;
  u32 high = __shfl_sync(ALL_LANES, terms.own, (2 * lane()) & 31);
  u32 low = __shfl_sync(ALL_LANES, terms.own, (2 * lane() - 1) & 31);
  if (lane() == 0) low = (u32)threshold;
  if (lane() <= terms.n / 2) set_of(growth, node)[lane()] = (u64)high << 32 | low;
  best.bin = OBLIQUE_BIN + terms.n;
  __syncwarp();
}

#endif
