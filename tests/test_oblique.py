"""Oblique splits: each is the best over all cuts of the drawn combinations, on every backend."""

from fractions import Fraction

import numpy as np
import pytest
from chances import splitmix
from cuda_on_cpu.module import launches
from devices import DEVICES
from engine import DeepFrom, Task, same_forest, table
from laws import leaves_below

from gpuforest import AdaBoostClassifier, DecisionTreeClassifier, RandomForestClassifier
from gpuforest.backends.numba import NumbaBackend
from gpuforest.backends.numpy import NumpyBackend
from gpuforest.common import hashing
from gpuforest.core.nodes import OBLIQUE_BIN, combined, unpack
from gpuforest.core.terms import DRAWS, STRIDE
from gpuforest.growing.predict import apply, predict
from gpuforest.splits.oblique.kind import mean_combined

rng = np.random.default_rng(0)
X = rng.normal(size=(300, 5))
X[rng.random(X.shape) < 0.05] = np.nan
FILLED = np.nan_to_num(X)
Y = (FILLED[:, 0] + FILLED[:, 1] > 0).astype(int)
BASE = {"combined": 2.0, "n_trees": 3, "n_draws": 300}


# ---- plain Python -------------------------------------------------------------------------------


def combinations(key, training):
    """The combinations of a node as lists of (feature, weight), in their order."""
    combining, k, F = training.combining, training.rules.n_tried, training.n_features
    chances, numeric = combining.chances.tolist(), combining.numeric.tolist()
    order = range(F)
    if k < F:
        places = np.arange(F, dtype=np.uint64)[None]
        order = hashing.permute(np, np.array([[key]], np.uint64), places, F)[0].tolist()
    found = []
    for a in range(F * -(-k // F)):
        hashes = [splitmix(key, DRAWS + STRIDE * a + i) for i in range(len(chances) + 1)]
        first = order[a % F]
        n = 1 + sum(hashes[0] < c for c in chances)
        others, drawn = [f for f in numeric if f != first], []
        for i in range(1, n):
            last = len(others) - (n - 1) + (i - 1)
            t = ((hashes[i] >> 32) * (last + 1)) >> 32
            drawn.append(last if t in drawn else t)
        features = [first, *(others[t] for t in drawn)]
        sizes = [1 + ((((h % 2**32) >> 1) * combining.heaviest) >> 31) for h in hashes]
        signs = [1, *(-1 if h & 1 else 1 for h in hashes[1:])]
        found.append([(f, sizes[i] * signs[i]) for i, f in enumerate(features)])
    return found


def codes_in(training, terms, rows):
    """Each row's code in a combination, None where a value is missing."""
    codes, missing = training.matrix.codes, training.n_codes - 1
    if len(terms) == 1:
        own = codes[rows, terms[0][0]].tolist()
        return [None if c == missing else c for c in own]
    coordinates, sums = training.combining.coordinates, []
    for r in rows:
        own = [(int(codes[r, f]), f, w) for f, w in terms]
        hole = any(c == missing for c, _, _ in own)
        sums.append(None if hole else sum(w * int(coordinates[f, c]) for c, f, w in own))
    some = [s for s in sums if s is not None]
    if not some:
        return sums
    shift = 0
    while (max(some) - min(some)) >> shift >= training.combining.n_bins:
        shift += 1
    return [None if s is None else (s - min(some)) >> shift for s in sums]


def gini(labels):
    """The score of a side: the sum of squares of class counts, divided by the number of rows."""
    counts = [labels.count(c) for c in {*labels}]
    return Fraction(sum(n * n for n in counts), len(labels))


def best_score(training, key, rows, y):
    """The highest score of all cuts of the first k combinations that vary; None: none does."""
    best, tried = None, 0
    for terms in combinations(key, training):
        own = codes_in(training, terms, rows)
        if len({*own}) < 2 or tried == training.rules.n_tried:
            continue
        tried += 1
        for cut in sorted({c for c in own if c is not None}):
            for missing_left in (False, True):
                left = [missing_left if c is None else c <= cut for c in own]
                sides = [
                    [label for label, goes in zip(y, left, strict=True) if goes is side]
                    for side in (True, False)
                ]
                if all(sides):
                    score = sum(map(gini, sides))
                    best = score if best is None else max(best, score)
    return best


@pytest.mark.parametrize("task", [
    Task(X[:80], Y[:80], combined=2.0),
    Task(X[:80], Y[:80], combined=3.0, heaviest=5, n_tried=2, seed=3),
    Task(X[:60], rng.integers(0, 3, 60), combined=2.0, n_tried=8, max_bins=9),
    Task(table(rng, 60, list("nfdN0")), rng.integers(0, 2, 60), combined=4.0, n_tried=3),
])  # fmt: skip
def test_every_split_is_the_best(task):
    training = task.training(NumpyBackend())
    forest = task.grow(NumpyBackend())
    feature, bin, _, child = unpack(np, forest.nodes)
    leaf, under = apply(forest, task.X, NumpyBackend())[:, 0], leaves_below(forest)
    tree_key = int(hashing.tree_keys(np, task.seed, 0, 1)[0])
    pending, n_sums = [(0, splitmix(tree_key, hashing.ROOT), list(range(len(task.X))))], 0
    while pending:
        node, key, rows = pending.pop()
        labels = [int(task.y[r]) for r in rows]
        best = None if len({*labels}) < 2 else best_score(training, key, rows, labels)
        if feature[node] < 0:
            assert best is None
            continue
        n_sums += bin[node] > OBLIQUE_BIN
        below = [child[node], child[node] + 1]
        sides = [[r for r in rows if leaf[r] in under[b]] for b in below]
        assert sum(map(len, sides)) == len(rows)
        assert sum(gini([int(task.y[r]) for r in side]) for side in sides) == best
        pending += [(b, splitmix(key, i), sides[i]) for i, b in enumerate(below)]
    assert n_sums > 3


# ---- backends -----------------------------------------------------------------------------------

MIXED = np.column_stack([rng.integers(0, 6, 300), X[:, 1:4], rng.integers(0, 300, 300)])
# beyond those of the parity tests; each criterion and kind of cut is a build of some seconds
CASES = {
    "plain": Task(X, Y, **BASE),
    "random cuts": Task(X, Y, **BASE, random=True, n_tried=12),
    "16 bits": Task(X, Y, **BASE, n_tried=2, max_bins=1000),
    "least rows": Task(X, Y, **BASE, min_rows_leaf=5),
    "two numbers": Task(X, FILLED[:, :2], "squared_error", **BASE, min_gain=0.5),
    "categories": Task(MIXED, Y, **BASE, categorical=(0,), n_tried=2),
    "random categories": Task(MIXED, Y, **BASE, categorical=(0, 4), random=True, n_tried=7),
}
ON_CPU = {
    "absolute error": Task(X, FILLED[:, 0] - FILLED[:, 2], "absolute_error", **BASE),
    "random categories": CASES["random categories"],
    "many terms, none missing": Task(FILLED, Y, combined=8.0, heaviest=5, n_trees=5, n_draws=300),
}


@pytest.mark.parametrize("task", ON_CPU.values(), ids=ON_CPU)
def test_backends_grow_the_same_forest_and_walk_it_alike(task):
    forest = task.grow(NumpyBackend())
    backends = DeepFrom(0), DeepFrom(40), NumbaBackend(), NumbaBackend(2), DeepFrom(0, 2, 4000)
    for backend in backends:
        assert same_forest(forest, task.grow(backend)), vars(backend)
    more = np.concatenate([task.X, rng.normal(size=(700, task.X.shape[1]))])
    more[300:][:, list(task.categorical)] = rng.integers(0, 8, (700, len(task.categorical)))
    expected = apply(forest, more, NumpyBackend())
    assert np.array_equal(expected, apply(forest, more, NumbaBackend(2)))
    for few in (more[:1], more[:40], more):
        values = predict(forest, few, NumpyBackend())
        assert np.array_equal(values, predict(forest, few, NumbaBackend()))


@pytest.mark.emulated(every=4)
@pytest.mark.parametrize("name", CASES)
def test_cuda_devices_grow_small_nodes_whole(cuda, name):
    task = CASES[name]
    forest = task.grow(NumbaBackend())
    for seed, deep in enumerate((None, 40)):
        before = launches.copy()
        with cuda.order(seed):
            assert same_forest(forest, task.grow(cuda.backend(deep=deep)))
        grown = launches - before
        if cuda is DEVICES["emulated"]:  # which counts them
            assert grown["grow_subtrees"] == 1
            # no level is wide if all rows fit a block
            assert (grown["columns"] > 0) == (deep is not None)


def test_one_feature_in_each_is_the_forest_without_combinations():
    alone, plain = Task(X, Y, combined=1.0, n_trees=3), Task(X, Y, n_trees=3)
    assert same_forest(alone.grow(NumbaBackend()), plain.grow(NumbaBackend()))
    assert not alone.grow(NumbaBackend()).oblique


# ---- missing values -----------------------------------------------------------------------------


def with_holes(share, n=300):
    rng = np.random.default_rng(1)
    y = rng.integers(0, 2, n)
    rows = rng.normal(size=(n, 4)) + 4 * y[:, None]
    rows[rng.random(rows.shape) < share] = np.nan
    return rows, y


def mean_of(rows, wanted, weights=None, backend=None):
    backend = NumpyBackend() if backend is None else backend
    matrix = Task(rows, np.zeros(len(rows), int), weights=weights).training(backend).matrix
    return mean_combined(matrix, weights, wanted, backend)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("share", "wanted"), [(0, 8), (0.05, 4), (0.1, 2.5), (0.3, 1.5)])
def test_sums_are_as_long_as_wanted_where_few_values_are_missing(share, wanted):
    assert mean_of(with_holes(share)[0], wanted) == wanted


@pytest.mark.filterwarnings("ignore:so many values are missing")
def test_sums_are_shorter_where_many_values_are_missing():
    rows, _ = with_holes(0.3)
    held = ~np.isnan(rows)
    found = mean_of(rows, 4)
    complete = (1 - (found - 1) / 3) ** (~held).sum(axis=1)
    assert 0.75 <= complete.mean() < 0.77
    assert mean_of(rows, 8) == found  # no sum has more than four
    twice = np.append(rows, rows[:99], axis=0)
    weights = np.where(np.arange(300) < 99, 2, 1).astype(np.int32)
    assert mean_of(rows, 4, weights) == mean_of(twice, 4)


@pytest.mark.filterwarnings("ignore:so many values are missing")
def test_devices_count_missing_values_alike(cuda):
    rows, _ = with_holes(0.3)
    assert mean_of(rows, 4, backend=cuda.backend()) == mean_of(rows, 4)


def test_forests_learn_by_sums_where_many_values_are_missing(backend):
    rows, y = with_holes(0.3, 600)
    model = RandomForestClassifier(
        10, feature_combinations=4, random_state=0, backend=backend, max_bins=64
    )
    words = "so many values are missing that 20% of the rows would have a sum of 4 features: "
    words += "sums have 1.7 on average instead. Impute values, or lower feature_combinations"
    with pytest.warns(UserWarning, match=words):
        model.fit(rows[:300], y[:300])
    assert combined(model.forest_.nodes).any()
    assert model.score(rows[300:], y[300:]) > 0.95


@pytest.mark.filterwarnings("ignore:so many values are missing")
def test_adaboost_learns_by_sums_as_long_as_the_warning_says():
    rows, y = with_holes(0.3)
    trees = (
        DecisionTreeClassifier(max_depth=3, feature_combinations=n) for n in (4, mean_of(rows, 4))
    )
    models = [AdaBoostClassifier(tree, n_estimators=3, random_state=0) for tree in trees]
    assert same_forest(*(model.fit(rows, y).forest_ for model in models))
