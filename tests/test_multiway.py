"""Multiway splits: a branch for each category, the textbook's tree, C4.5's gain ratio."""

import math

import numpy as np
import pandas as pd
import pytest
from engine import Task, same_forest
from laws import leaves_below
from paths import SHARED

import gpuforest
from gpuforest.backends import numba, numpy
from gpuforest.common import hashing
from gpuforest.common.dtypes import CATEGORICAL
from gpuforest.common.hashing import hash_at
from gpuforest.core.nodes import unpack
from gpuforest.growing.predict import apply
from gpuforest.splits.base import draw_features

PLAY_TENNIS = SHARED / "data" / "play_tennis.arff"
needs_play_tennis = pytest.mark.skipif(not PLAY_TENNIS.exists(), reason="no shared data here")


def play_tennis() -> tuple[pd.DataFrame, pd.Series]:
    rows = [line.strip().split(",") for line in PLAY_TENNIS.read_text().splitlines()]
    rows = [row for row in rows if len(row) == 5]
    frame = pd.DataFrame(rows, columns=["outlook", "temperature", "humidity", "windy", "play"])
    return frame, frame.pop("play")


@needs_play_tennis
@pytest.mark.parametrize("criterion", ["entropy", "gain_ratio"])
@pytest.mark.parametrize("backend", ["numpy", "numba"])
def test_the_tree_of_play_tennis_is_the_textbooks(criterion, backend):
    X, y = play_tennis()
    tree = gpuforest.DecisionTreeClassifier(
        criterion=criterion, categorical_split="multiway", backend=backend
    ).fit(X, y)
    assert gpuforest.export_rules(tree, plain=True).splitlines() == [
        "if outlook is overcast then yes",
        "if outlook is rainy and windy is FALSE then yes",
        "if outlook is rainy and windy is TRUE then no",
        "if outlook is sunny and humidity is high then no",
        "if outlook is sunny and humidity is normal then yes",
    ]
    assert gpuforest.export_rules(tree, plain=True, per="class").splitlines()[0] == (
        "if (outlook is rainy and windy is TRUE) or (outlook is sunny and humidity is high) then no"
    )
    assert (tree.get_depth(), tree.get_n_leaves()) == (2, 5)
    assert "entropy = 0.94" in gpuforest.export_graphviz(tree)
    assert tree.score(X, y) == 1.0


def test_c45_does_not_fall_for_a_key():
    """A column that names each row gains most, but by far more information than it gives.

    The noise lowers the mean gain: C4.5 looks at no ratio of features that gain less than it.
    """
    rng = np.random.default_rng(0)
    n = 64
    good, *noise = rng.integers(0, 2, (4, n)).astype(str)
    y = np.where(rng.random(n) < 0.9, good, "0")
    X = pd.DataFrame({"key": [f"row {i}" for i in range(n)], "good": good})
    X = X.assign(**{f"noise {i}": column for i, column in enumerate(noise)})
    for criterion, chosen in (("entropy", "key"), ("gain_ratio", "good")):
        options = {"categorical_split": "multiway", "min_category_frequency": 1, "max_depth": 1}
        tree = gpuforest.DecisionTreeClassifier(criterion=criterion, **options, backend="numpy")
        with pytest.warns(UserWarning, match="column 'key' has 64 different values"):
            tree.fit(X, y)
        assert gpuforest.tree_nodes(tree)[1].conditions[0].name == chosen


def test_a_ratio_needs_branches():
    tree = gpuforest.DecisionTreeClassifier(criterion="gain_ratio", backend="numpy")
    with pytest.raises(ValueError, match="categorical_split='multiway'"):
        tree.fit([[0.0], [1.0]], [0, 1])


# ---- every split is the best, by definition


def sums_of(training, rows):
    y, w = training.target.y[rows], training.sampling.weights[rows].astype(np.int64)
    if training.target.coding.is_classes:
        return np.bincount(y[:, 0], w, training.n_channels).astype(np.int64)
    return np.concatenate([[w.sum()], (w[:, None] * y).sum(axis=0)])


def parts_of(training, rows, f):
    """The ways to part a node's rows by a feature: its categories, or the sides of each cut."""
    code, missing = training.matrix.codes[rows, f], training.n_codes - 1
    codes = np.unique(code)
    if training.matrix.edges.kinds[f] == CATEGORICAL:
        return [[rows[code == c] for c in codes]]
    left = [(code <= c) & (code < missing) for c in codes]
    left += [one | (code == missing) for one in left]
    return [[rows[one], rows[~one]] for one in left if 0 < one.sum() < len(rows)]


def allowed(training, parts, sign, bounds):
    rules = training.rules
    sums = np.stack([sums_of(training, part) for part in parts])
    if min(map(len, parts)) < rules.min_rows_leaf:
        return False
    if rules.criterion.side_weight(np, sums).min() < rules.min_weight_leaf:
        return False
    means = rules.criterion.side_value(np, sums)
    inside = bounds[0] <= means.min() and means.max() <= bounds[1]
    return not sign or (sign * means[0] <= sign * means[1] and inside)


def worth_of(training, rows, features, bounds):
    """The worth of each feature's best way to part a node's rows, and its gain."""
    criterion = training.rules.criterion
    whole, gains, spreads = sums_of(training, rows), {}, {}
    for f in features:
        sign = training.rules.signs[f] if len(training.rules.signs) else 0
        best = -np.inf, 0.0
        for parts in parts_of(training, rows, f):
            if allowed(training, parts, sign, bounds):
                sums = np.stack([sums_of(training, part) for part in parts])
                gain = criterion.side_score(np, sums).sum() - criterion.side_score(np, whole)
                weights = criterion.side_weight(np, sums).astype(float)
                spread = (weights * np.log(weights.sum() / weights)).sum()
                best = max(best, (gain, spread), key=lambda pair: pair[0])
        gains[f], spreads[f] = best
    if not criterion.by_ratio:
        return gains, gains
    some = [gain for gain in gains.values() if gain > -np.inf]
    mean = np.mean(some) if some else 0.0
    fair = {f: gains[f] >= mean - 1e-9 * abs(mean) and spreads[f] > 0 for f in features}
    return {f: gains[f] / spreads[f] if fair[f] else -np.inf for f in features}, gains


def assert_best(task, training, forest):
    rules, F = training.rules, training.n_features
    feature, _, _, child = unpack(np, forest.nodes)
    leaf, below = apply(forest, task.X, numpy.NumpyBackend())[:, 0], leaves_below(forest)
    root = hash_at(hashing.tree_keys(np, task.seed, 0, 1), hashing.ROOT)
    bagged = np.flatnonzero(training.sampling.weights)
    waiting, n_chains = [(0, root, bagged, 0, (), (-np.inf, np.inf))], 0
    while waiting:
        node, key, rows, depth, used, bounds = waiting.pop()
        order = np.arange(F)
        if rules.n_tried < F:
            order = np.concatenate([draw_features(np, key, i, 1, F)[0] for i in range(F)])
        varies = [f for f in order.tolist() if len(np.unique(training.matrix.codes[rows, f])) > 1]
        tried = [f for f in varies if f not in used][: rules.n_tried]
        pure = len(np.unique(training.target.y[rows])) == 1
        ends = pure or len(rows) < rules.min_rows_split or depth >= rules.max_depth
        worth, gains = worth_of(training, rows, () if ends else tried, bounds)
        most = max(worth.values(), default=-np.inf)
        chosen = int(feature[node])
        if chosen < 0:
            top = max((f for f in worth), key=worth.get, default=None)
            assert most == -np.inf or gains[top] < rules.min_gain + 1e-9
            continue
        assert worth[chosen] == pytest.approx(most, rel=1e-9)
        if training.matrix.edges.kinds[chosen] != CATEGORICAL:
            sides = [rows[[leaf[r] in below[child[node] + i] for r in rows]] for i in (0, 1)]
            sign, limits = rules.signs[chosen] if len(rules.signs) else 0, [bounds, bounds]
            if sign:
                means = rules.criterion.side_value(
                    np, np.stack([sums_of(training, side) for side in sides])
                )
                low, high = (bounds[0], means.mean()), (means.mean(), bounds[1])
                limits = [low, high] if sign > 0 else [high, low]
            for i in (0, 1):
                place = child[node] + i, hash_at(key, i), sides[i], depth + 1, used, limits[i]
                waiting.append(place)
            continue
        # a chain: each link separates one category
        n_chains += 1
        (parts,) = parts_of(training, rows, chosen)
        for number, part in enumerate(parts):
            if number < len(parts) - 1:
                assert feature[node] == chosen
                at, key, own = child[node], hash_at(key, 1), hash_at(key, 0)
            else:
                at, own = node, key
            assert {leaf[r] for r in part} <= below[at]
            waiting.append((at, own, part, depth + 1, (*used, chosen), bounds))
            node = child[node] + 1
    return n_chains


@pytest.mark.parametrize("seed", range(40))
def test_every_split_is_the_best(seed):
    rng = np.random.default_rng(seed)
    n, sizes = int(rng.integers(5, 80)), rng.choice([1, 2, 3, 7, 40], 2)
    X = np.stack([*(rng.integers(0, m, n) for m in sizes), rng.integers(0, 9, n)], axis=1) * 1.0
    X[rng.random(X.shape) < rng.choice([0.0, 0.2])] = np.nan
    criterion = str(rng.choice(["gini", "entropy", "gain_ratio", "squared_error"]))
    n_classes = int(rng.integers(2, 4))
    numbers = criterion == "squared_error"
    task = Task(
        X, rng.integers(0, 9, n) * 1.0 if numbers else rng.permutation(np.arange(n) % n_classes),
        criterion, multiway=True, categorical=(0, 1), n_tried=int(rng.integers(1, 4)),
        weights=rng.integers(1, 4, n).astype(np.int32), max_depth=int(rng.choice([2, 99])),
        min_rows_split=int(rng.choice([2, 9])), min_rows_leaf=int(rng.choice([1, 3])),
        min_weight_leaf=int(rng.choice([1, 5])), min_gain=float(rng.choice([-math.inf, 0.5])),
        signs=(0, 0, 1) if seed % 3 == 0 and (numbers or n_classes == 2) else (), seed=seed % 5,
    )  # fmt: skip
    forest = task.grow(numba.NumbaBackend())
    assert_best(task, task.training(numba.NumbaBackend()), forest)
    drawn = task.but(n_trees=5, n_draws=n, random=seed % 2 == 0, n_features_tree=seed % 3)
    assert same_forest(drawn.grow(numba.NumbaBackend()), drawn.grow(numba.NumbaBackend(3, 2**10)))
