// Teams of warps split nodes of many rows: histograms of as many features as fit, a warp for each.
#include "grow_subtrees/node.cuh"

#define WARPS (DEEP_WARPS / BLOCKS)  // of a block
#ifndef PAD  // benchmarks set 0
#define PAD DEEP_PAD
#endif
#ifndef TURNED  // benchmarks set 0: all lanes add to the same feature at a time
#define TURNED 1
#endif

// Neighbouring warps that split a node together: 1, 2, 4, ... of the block.
struct Team {
  int first, warps;  // the first of its warps, and their number

  __device__ __forceinline__ explicit Team(int warps) : first(::warp() & -warps), warps(warps) {}
  __device__ __forceinline__ int warp() const { return ::warp() - first; }
  __device__ __forceinline__ int thread() const { return threadIdx.x - 32 * first; }
  __device__ __forceinline__ int threads() const { return 32 * warps; }

  // Its threads wait for each other. The numbers of barriers are constants, because a block that
  // may use any of the 16 holds all of them.
  __device__ __forceinline__ void sync() const {
    if (warps == 1) return __syncwarp();
    if (warps == WARPS) return __syncthreads();
    switch (first / warps) {
      case 0: return __barrier_sync_count(1, threads());
      case 1: return __barrier_sync_count(2, threads());
      case 2: return __barrier_sync_count(3, threads());
      default: return __barrier_sync_count(4, threads());
    }
  }

  // See `rank_in`; `counts` has an element for each warp of the block.
  __device__ __forceinline__ int rank(bool flag, u32* counts, int& total) const {
    return rank_in(flag, counts + first, warp(), warps, [&] { sync(); }, total);
  }
};

static_assert(WARPS <= 8, "more teams of two warps than barriers");

// How many histograms fit the memory of a block, at most one for each warp. Each is
// u32[words][size] and PAD words.
struct Histograms {
  int group, words, size;

  __device__ __forceinline__ int each() const { return words * size + PAD; }
  // Those of a team: how many, and where the first of its cells is.
  __device__ __forceinline__ int of(const Team& team) const { return group * team.warps / WARPS; }
  __device__ __forceinline__ int first(const Team& team) const {
    return team.first / team.warps * of(team) * each();
  }
};

__device__ __forceinline__ Histograms histograms_of(const Growth& growth, int n_cells) {
  int words = (LABELS ? growth.C : 2 * growth.C - 1) + (growth.min_rows > 1);
  int size = (growth.B + 127) & ~127, fit = n_cells / (words * size + PAD);
  return {fit < WARPS ? fit : WARPS, words, size};
}

// No teams split by combinations of features, which need the shared memory.
#define IN_TEAMS (SUMS ? 1 : WARPS)

// What the warps of a team tell each other, in shared memory; each warp has an element. `key` and
// `best` are those of the node that the warp's team splits, at the team's first warp.
struct Table {
  u64 key[IN_TEAMS];
  Best best[IN_TEAMS];
  double score[IN_TEAMS];
  int where[IN_TEAMS], drawn[IN_TEAMS], features[IN_TEAMS], node[IN_TEAMS];
  u32 counts[IN_TEAMS];
  Histograms all;
};

// The number of warps of a team, if n nodes are to be split: the rounds of histograms of the block
// are few then. Smaller teams read rows more often, so they must save an eighth.
__device__ __forceinline__ int team_size(const Growth& growth, const Histograms& all, int n) {
  int best = WARPS, fewest = 0;
  for (int warps = WARPS; warps >= 1; warps >>= 1) {
    int teams = WARPS / warps, group = all.group / teams;
    if (!group) break;
    int rounds = (n + teams - 1) / teams * ((growth.k + group - 1) / group);
    if (warps == WARPS || 8 * rounds <= 7 * fewest) {
      best = warps;
      fewest = rounds;
    }
  }
  return best;
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
__device__ __noinline__ int2 next_features(const Block& block, const Growth& growth, Team team,
                                           const Open& node, int most, int position,
                                           Table& table) {
  u64 key = table.key[team.first];
  int found = 0, *features = table.features + team.first, *drawn = table.drawn + team.first;
  if (growth.k >= growth.F && !growth.allowed) {  // all are tried: the others have no cut
    found = min(most, growth.F - position);
    if (team.thread() < found) features[team.thread()] = position + team.thread();
    return {found, position + found};
  }
  while (found < most && position < growth.F) {
    int f = position + team.warp() < growth.F ? draw(growth, key, position + team.warp()) : -1;
    if (f >= 0 && growth.allowed && !growth.allowed[f]) f = -1;
    if (f >= 0 && !varies(block, f, node.low, node.n)) f = -1;
    if (lane() == 0) drawn[team.warp()] = f;
    team.sync();
    for (int w = 0; w < team.warps && found < most && position < growth.F; w++, position++) {
      if (drawn[w] < 0) continue;
      if (team.thread() == 0) features[found] = drawn[w];
      found++;
    }
    team.sync();
  }
  return {found, position};
}

// Fills the histograms of the table's first n_features features.
__device__ __forceinline__ void fill(const Block& block, const Growth& growth, const Team& team,
                                     const Open& node, int n_features, const Table& table) {
  int K = outputs(growth.C), each = table.all.each();
  bool count = growth.min_rows > 1;
  u32* cells = block.cells + table.all.first(team);
  for (int i = team.thread(); i < n_features * each / 4; i += team.threads())
    ((uint4*)cells)[i] = {0, 0, 0, 0};
  team.sync();
  for (int i = team.thread(); i < node.n; i += team.threads()) {
    int position = block.order[node.low + i];
    i32 w = block.weight[position];
    // neighbouring lanes begin with different features, so they meet in fewer banks
    int j = TURNED * lane() % max(n_features, 1);
    for (int step = 0; step < n_features; step++, j = j + 1 < n_features ? j + 1 : 0)
      Cells{cells + j * each, table.all.size, growth.C}.add(
          block.code(position, table.features[team.first + j]), block.target + position * K, w,
          count);
  }
  team.sync();
}

// Neighbouring bins that a lane takes: as many as the registers allow.
#if SPECIAL != LIMITED && (CRITERION == GINI || CRITERION == SQUARED_ERROR)
#define CUT_ITEMS 4
#else
#define CUT_ITEMS 1
#endif

// The histogram of the table's feature j.
__device__ __forceinline__ Cells cells_of(const Block& block, const Growth& growth,
                                          const Table& table, const Team& team, int j) {
  return {block.cells + table.all.first(team) + j * table.all.each(), table.all.size, growth.C};
}

// A team's sums of a node in shared memory; its first warp's, as are those of the left side.
__device__ __forceinline__ i64* sums_of(const Block& block, const Growth& growth,
                                        const Team& team) {
  return block.scratch + team.first * NODE_SUMS * growth.C;
}

__device__ __forceinline__ i64* left_sums_of(const Block& block, const Growth& growth,
                                             const Team& team) {
  return sums_of(block, growth, team) + 3 * growth.C;
}

// The best cut of the first k features that vary becomes the team's best in the table; the sums of
// its left side are `left_sums_of` the team. Values that a warp can read again cost no registers.
__device__ __forceinline__ void best_by_team(const Block& block, const Growth& growth,
                                             const Team& team, const Open& node, Table& table) {
  if (team.thread() == 0) table.best[team.first] = {MINUS_INFINITY, -1, 0, false};
  for (int tried = 0, position = 0; tried < growth.k && position < growth.F;) {
    int most = min(table.all.of(team), growth.k - tried);
    int2 next = next_features(block, growth, team, node, most, position, table);
    int n = next.x;
    tried += n;
    position = next.y;
    fill(block, growth, team, node, n, table);
    if (team.warp() < n) {
      int f = table.features[warp()], where;
      double score = cut_bins<CUT_ITEMS>(
          cells_of(block, growth, table, team, team.warp()), growth.B - 1, f, growth.n_bins[f],
          node.n, sums_of(block, growth, team), table.key[team.first], random_cuts(growth),
          limits_of(growth, node.low, f), growth.table, scratch_of(block, growth) + growth.C, where);
      if (lane() == 0) {
        table.score[warp()] = score;
        table.where[warp()] = where;
      }
    }
    team.sync();
    int winner = -1;
    double score = table.best[team.first].score;
    for (int j = 0; j < n; j++)
      if (table.score[team.first + j] > score) {
        score = table.score[team.first + j];
        winner = j;
      }
    if (winner >= 0) {
      int where = table.where[team.first + winner], bin = where & ((1 << WHERE_MISSING_LEFT) - 1);
      bool missing_left = where >> WHERE_MISSING_LEFT > 0;
      Cells cells = cells_of(block, growth, table, team, winner);
      for (int c = team.warp(); c < growth.C; c += team.warps) {
        i64 sum = left_sum(cells, c, bin, missing_left, growth.B - 1);
        if (lane() == 0) left_sums_of(block, growth, team)[c] = sum;
      }
      team.sync();  // all have read the best one before
      if (team.thread() == 0)
        table.best[team.first] = {score, table.features[team.first + winner], bin, missing_left};
    }
    team.sync();
  }
}

// A team splits an open node, or makes it a leaf; its children wait in `lists`.
__device__ __noinline__ void split_by_team(const Block& block, const Growth& growth, Team team,
                                           const Open& node, Lists lists, Table& table) {
  for (int c = team.thread(); c < growth.C; c += team.threads())
    sums_of(block, growth, team)[c] = growth.leaf_sums[(i64)node.low * growth.C + c];
  if (team.thread() == 0) table.key[team.first] = growth.nodes[node.position];
  team.sync();
  best_by_team(block, growth, team, node, table);
  const Best& best = table.best[team.first];
  if (refused(growth, best, sums_of(block, growth, team))) {
    if (team.thread() == 0) write_leaf(growth, node);
    team.sync();
    return;
  }
  int left = split_rows(block, team, node, table.counts, [&](int position) {
    return goes_left_at(block, growth, node, best, position);
  });
  int n_right = node.n - left;
  bool left_equal = all_equal(block, team, node.low, left, growth.C, table.counts);
  bool right_equal = all_equal(block, team, node.low + left, n_right, growth.C, table.counts);
  if (team.warp() == 0) {
    i64* sums = sums_of(block, growth, team);
    int wait = write_children(growth, node, table.key[team.first], best, left, sums,
                              left_sums_of(block, growth, team), sums + growth.C, left_equal,
                              right_equal);
    lists.put(block, node, left, wait);
  }
  team.sync();
}
