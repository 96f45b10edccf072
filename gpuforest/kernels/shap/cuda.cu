// SHAP values on the device. The specification is numpy.py beside this file.
//
// A thread walks one tree for one row, one output and one point, depth first. All operations are
// those of the specification in its order, so that the bits are the same.
#include "shared/goes_left/cuda.cuh"
#include "generated/Codes.cuh"
#include "generated/Trees.cuh"
#include "generated/Points.cuh"
#include "generated/Paths.cuh"

enum { APART, LEFT, RIGHT };  // of a row at a node: it has left the path by this feature above

// What an edge multiplies the product by, and the sums below it; and one over the share of the
// cover that the feature has left over below it.
struct Edge {
  double product, gain, below;
};

// Edge `side` from node i to its child for a row in this state; `above` is one over the share of
// the feature above the node, `times` what the product is multiplied by, too.
__device__ __forceinline__ Edge edge(int side, int state, double above, double cover, double child,
                                     double times, double at, double weight) {
  double u = 1.0 - at, old = 1.0 / (u + at * above), known = (above - 1.0) * old;
  Edge e;
  e.below = above * (cover / child);
  if (state == APART) {
    e.product = times;
    e.gain = 0.0;
  } else if (state == 1 + side) {
    double now = u + at * e.below;
    e.product = now * old * times;
    e.gain = ((e.below - 1.0) / now - known) * weight;
  } else {
    e.product = u * old * times;
    e.gain = -1.0 / u * weight - known * weight;
  }
  return e;
}

// The scratch of one thread; items of a level or feature lie apart by the number of threads.
struct Path {
  const Paths& all;
  i64 me, n;
  __device__ __forceinline__ double& product(int h) const { return all.product[h * n + me]; }
  __device__ __forceinline__ double& sums(int h) const { return all.sums[h * n + me]; }
  __device__ __forceinline__ double& before(int h) const { return all.before[h * n + me]; }
  __device__ __forceinline__ double& gain(int h) const { return all.gain[h * n + me]; }
  __device__ __forceinline__ i32& node(int h) const { return all.node[h * n + me]; }
  __device__ __forceinline__ i8& side(int h) const { return all.side[h * n + me]; }
  __device__ __forceinline__ i8& state(int h) const { return all.state[h * n + me]; }
  __device__ __forceinline__ double& share(int f) const { return all.share[f * n + me]; }
  __device__ __forceinline__ bool& along(int f) const { return all.along[f * n + me]; }
};

// To which side row r goes at node i of tree t.
__device__ __forceinline__ i8 side_of(const Trees& trees, int t, int i, const Codes& codes, i64 r) {
  i64 node = trees.offsets[t] + i;
  u64 word = trees.nodes[node];
  auto set = [&] { return trees.sets + trees.set_at[node]; };
  int code = codes.at[r * codes.stride + (word >> FEATURE_SHIFT)];
  bool missing_left = word >> MISSING_SHIFT & 1;
  bool left = goes_left(code, (int)(word & BIN_MASK), missing_left, (int)codes.B - 1, set);
  return left ? LEFT : RIGHT;
}

// A tree, and what its leaves add to an output: values[leaf * K].
struct Tree {
  const u64* nodes;
  const double *cover, *values;
  i64 K;
  __device__ __forceinline__ bool is_leaf(int i) const { return nodes[i] >= LEAF_WORD; }
  __device__ __forceinline__ int feature(int i) const { return (int)(nodes[i] >> FEATURE_SHIFT); }
  // what the products above a child are multiplied by
  __device__ __forceinline__ double times(int child) const {
    if (!is_leaf(child)) return 1.0;
    return values[(i64)(nodes[child] & LEAF_MASK) * K] * (cover[child] / cover[0]);
  }
};

// Walks a tree and adds what each edge adds to found[f * stride], zeros before. The path's shares
// are 1.0 and the row goes along everywhere, before and after. state_of(i, along) is the state of
// the row at node i, if `along` says whether it went along by the node's feature above.
template <class State>
__device__ __forceinline__ void walk(const Tree& tree, State state_of, double at, double weight,
                                     const Path& path, double* found, i64 stride) {
  if (tree.is_leaf(0)) return;
  auto enter = [&](int h, int i, double product) {
    int f = tree.feature(i);
    path.node(h) = i;
    path.side(h) = 0;
    path.before(h) = path.share(f);
    path.state(h) = state_of(i, path.along(f));
    path.product(h) = product;
  };
  auto add = [&](int h, int f, int side, double sums, double gain) {
    found[f * stride] += sums * gain;
    path.sums(h) = side == 0 ? sums : path.sums(h) + sums;
  };
  int h = 0;
  enter(0, 0, 1.0);
  while (true) {
    int i = path.node(h), side = path.side(h), state = path.state(h), f = tree.feature(i);
    int first = (int)(tree.nodes[i] >> CHILD_SHIFT & CHILD_MASK);
    double above = path.before(h), product = path.product(h);
    auto down = [&](int s) {
      double whole = tree.cover[i], own = tree.cover[first + s];
      return edge(s, state, above, whole, own, tree.times(first + s), at, weight);
    };
    if (side == 0 && tree.is_leaf(first) && tree.is_leaf(first + 1)) {
      // 1. two leaves are one, whose factor is the sum of theirs
      Edge left = down(0), right = down(1);
      path.side(h) = 2;
      path.sums(h) = product * (left.product + right.product);
      found[f * stride] += product * (left.product * left.gain + right.product * right.gain);
    } else if (side < 2) {
      // 2. one child after the other
      Edge e = down(side);
      path.side(h) = side + 1;
      double below = product * e.product;
      if (tree.is_leaf(first + side)) {
        add(h, f, side, below, e.gain);
      } else {
        path.gain(h) = e.gain;
        path.share(f) = e.below;
        path.along(f) = state == 1 + side;
        enter(++h, first + side, below);
      }
    } else {
      // 3. up again
      path.share(f) = above;
      path.along(f) = state != APART;
      if (h == 0) return;
      double sums = path.sums(h--);
      add(h, tree.feature(path.node(h)), path.side(h) - 1, sums, path.gain(h));
    }
  }
}

// What trees give the rows first .. first + n - 1 at points, f64[points.n, F, n].
// cover f64[M], of each node; values f64[V, K], what the rows of the leaf table add to each output.
extern "C" __global__ void __launch_bounds__(THREADS)
shap_values(Trees trees, const double* cover, const double* values, i64 K, Points points,
            Codes codes, i64 first, i64 n, Paths paths, double* found) {
  Path path = {paths, thread_number(), thread_count()};
  for (i64 f = 0; f < codes.F; f++) {
    path.share(f) = 1.0;
    path.along(f) = true;
  }
  for (i64 j = path.me; j < points.n * n; j += path.n) {
    i64 p = j / n, r = j - p * n;
    double* own = found + p * codes.F * n + r;
    for (i64 f = 0; f < codes.F; f++) own[f * n] = 0.0;
    int t = points.tree[p];
    i64 root = trees.offsets[t];
    Tree tree = {trees.nodes + root, cover + root, values + points.column[p], K};
    auto state = [&](int i, bool along) {
      return along ? side_of(trees, t, i, codes, first + r) : (i8)APART;
    };
    walk(tree, state, points.at[p], points.weight[p], path, own, n);
  }
}

// Adds up the points of each tree and output, and adds these sums, tree after tree, to the rows
// first .. first + n - 1 of out f64[N, F, K].
extern "C" __global__ void __launch_bounds__(THREADS)
add_points(Points points, const double* found, i64 F, i64 K, i64 first, i64 n, double* out) {
  for (i64 j = thread_number(); j < F * n; j += thread_count()) {
    i64 f = j / n, r = j - f * n;
    double* row = out + (first + r) * F * K + f * K;
    for (i64 p = 0; p < points.n;) {
      i64 begin = p;
      double own = found[p * F * n + j];
      for (p++; p < points.n && !points.is_first[p]; p++) own = own + found[p * F * n + j];
      row[points.column[begin]] += own;
    }
  }
}
