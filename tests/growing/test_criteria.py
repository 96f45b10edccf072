"""Scores against their definitions in exact fractions and library logarithms."""

import ast
import math
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import array_api_compat.numpy as xp
import numpy as np
import pytest
from engine import Task
from hypothesis import example, given
from hypothesis import strategies as st
from in_numba import kernel
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import gpuforest
from gpuforest.backends.numpy import NumpyBackend
from gpuforest.core import criteria, nodes
from gpuforest.kernels.shared import numba as scoring

NUMBERS = {c.number: c for c in criteria.CRITERIA.values() if c.number != criteria.ABSOLUTE_ERROR}


@kernel
def logarithms(n, out):
    for i in range(len(n)):
        out[i] = scoring.log_int(n[i])


@kernel
def products(n, out):
    for i in range(len(n)):
        out[i] = scoring.xlogx(n[i])


@kernel
def node_scores(sums, criterion, out):
    for i in range(len(sums)):
        n = sums[i, 0] if criterion >= criteria.SQUARED_ERROR else sums[i].sum()
        out[i] = scoring.node_score(criterion, sums[i], n, sums.shape[1])
        if sums.shape[1] == 2:  # which has a short way
            out[i, 1] = scoring.pair_side(criterion, n, sums[i, 1])


def compiled(function, n, dtype):
    out = np.zeros(len(n), dtype)
    function(n, out)
    return out


def exact(sums: list[int], criterion: int) -> Fraction:
    """A side's score by definition, rational criteria only."""
    if criterion == criteria.GINI:
        return Fraction(sum(s * s for s in sums), sum(sums))
    if criterion == criteria.MISCLASSIFICATION:
        return Fraction(max(sums))
    return Fraction(sum(s * s for s in sums[1:]), sums[0])


def plain(sums: list[int], criterion: int) -> float:
    """A side's score by definition, with the library's logarithm."""
    if criterion == criteria.ENTROPY:
        terms = [s * math.log(s) for s in sums if s] + [-sum(sums) * math.log(sum(sums))]
        return math.fsum(terms)
    return math.fsum(s * math.log(s / sums[0]) for s in sums[1:])


whole = st.integers(1, 2**62) | st.integers(0, 61).flatmap(
    lambda e: st.sampled_from([2**e, 2**e + 1, max(1, 2**e - 1)])
)


@given(st.lists(whole, min_size=1, max_size=50))
def test_logarithm(numbers):
    n = np.array([*numbers, *range(1, 200)], np.int64)
    found = criteria.log_int(xp, n)
    for i, number in enumerate(n.tolist()):
        assert abs(found[i] - math.log(number)) <= 1e-15 * max(math.log(number), 1e-300)
    assert np.all(np.diff(found[len(numbers) :]) > 0)
    assert np.array_equal(compiled(logarithms, n, np.float64), found)


def test_fixed_point_of_the_entropy():
    n = np.concatenate([np.arange(10_000), 2 ** np.arange(31), 2**31 - 1 - np.arange(1000)])
    found = criteria.xlogx(xp, n)
    assert found.dtype == np.int64
    assert found[:2].tolist() == [0, 0]
    reference = np.array([i * math.log(i) if i else 0.0 for i in n.tolist()])
    # half a unit of rounding, and the float64's own relative error
    assert np.all(
        np.abs(found / criteria.XLOGX_SCALE - reference)
        <= 0.51 / criteria.XLOGX_SCALE + 4e-16 * reference
    )
    assert found.max() < 2**62
    assert np.array_equal(compiled(products, n, np.int64), found)


channel_sums = st.lists(
    st.lists(st.integers(0, 2**29) | st.integers(0, 20), min_size=3, max_size=3), min_size=1
)


def check_compiled(sums, criterion):
    sums = sums[NUMBERS[criterion].side_weight(xp, sums) > 0]  # a node holds rows
    out = np.zeros((len(sums), 2))
    node_scores(sums, criterion, out)
    expected = NUMBERS[criterion].side_score(xp, sums)
    assert np.array_equal(out, np.stack([expected, expected], axis=1))


@given(channel_sums, st.sampled_from([*range(5), criteria.LOGRANK]))
@example([[2**30, 2**30 - 1, 0], [2**31 - 1, 0, 0]], criteria.GINI)  # whose squares are the largest
def test_scores_are_their_definitions(rows, criterion):
    sums, known = np.array(rows, np.int64), NUMBERS[criterion]
    found = known.side_score(xp, sums)
    assert found.dtype == np.float64
    for row, score, weight in zip(rows, found, known.side_weight(xp, sums), strict=True):
        n = row[0] if criterion >= criteria.SQUARED_ERROR else sum(row)
        assert weight == n
        if n == 0 or (criterion in (criteria.POISSON, criteria.LOGRANK) and not all(row[1:])):
            assert score == -np.inf
        elif criterion in (criteria.ENTROPY, criteria.POISSON):
            # the terms cancel: their size sets the error
            size = sum(abs(s * math.log(s)) for s in [*row, n] if s) + n
            unit = criteria.XLOGX_SCALE if criterion == criteria.ENTROPY else 1.0
            rounding = 2.1 / criteria.XLOGX_SCALE if criterion == criteria.ENTROPY else 0.0
            assert abs(score / unit - plain(row, criterion)) <= 1e-14 * size + rounding
        else:
            reference = exact(row, criterion)
            assert abs(Fraction(float(score)) - reference) <= reference * Fraction(1, 2**51)
    check_compiled(sums, criterion)
    check_compiled(np.ascontiguousarray(sums[:, :2]), criterion)


@pytest.mark.parametrize("criterion", ["gini", "entropy", "squared_error", "poisson"])
def test_gains_are_in_scikit_learns_unit(criterion):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 30, (300, 4)).astype(np.float64)
    y = rng.integers(0, 3, 300)
    reference = DecisionTreeClassifier(criterion=criterion, max_depth=1, random_state=0)
    if criteria.CRITERIA[criterion].task == "regression":
        y = X[:, 0] * 3 + rng.poisson(5, 300)
        reference = DecisionTreeRegressor(criterion=criterion, max_depth=1, random_state=0)
    task = Task(X, y, criterion, max_depth=1)
    forest = task.grow(NumpyBackend())
    tree = reference.fit(X, y).tree_
    feature, _, _, _ = nodes.unpack(np, forest.nodes)
    assert feature.tolist() == [tree.feature[0], -1, -1]
    score = criteria.CRITERIA[criterion].side_score(xp, forest.node_sums(0, 1))
    weighted = tree.impurity * tree.weighted_n_node_samples
    decrease = weighted[0] - weighted[1] - weighted[2]
    gain = forest.coding.score_gain(decrease, criteria.CRITERIA[criterion])
    assert score[1] + score[2] - score[0] == pytest.approx(gain, rel=1e-6)


def twice_the_squares(xp, sums, n):
    return 2 * xp.astype(xp.sum(sums * sums, axis=-1), xp.float64) / xp.astype(n, xp.float64)


def cubes(xp, sums, n):
    n = xp.astype(n, xp.float64)
    return xp.astype(xp.sum(sums**3, axis=-1), xp.float64) / (n * n)


TWICE = replace(
    criteria.CRITERIA["gini"], name="twice", number=None, score=twice_the_squares, unit=0.5
)


def some_classes():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(0, 9, 200), rng.normal(size=200), rng.integers(0, 4, 200)])
    return X, (X[:, 0] + rng.integers(0, 4, 200)).astype(int) // 3


@pytest.mark.parametrize(
    "parameters",
    [
        {"min_impurity_decrease": 0.01}, {"ccp_alpha": 0.02},
        {"max_leaf_nodes": 6, "min_samples_leaf": 3},
        {"categorical_features": [0, 2], "bootstrap": False, "max_features": None},
    ],
)  # fmt: skip
def test_a_criterion_from_elsewhere_grows_forests(parameters, monkeypatch, caplog):
    """Twice the Gini score, with half the unit, gives the forest of the Gini impurity."""
    monkeypatch.setitem(criteria.CRITERIA, "twice", TWICE)
    X, y = some_classes()
    ours, reference = (
        gpuforest.RandomForestClassifier(
            5, criterion=name, random_state=0, backend=backend, **parameters
        ).fit(X, y)
        for name, backend in (("twice", "numba"), ("gini", "numpy"))
    )
    assert ours.backend_ == "numpy"  # the only one that can
    assert "has no criterion='twice'" in caplog.text
    assert ours.forest_.n_nodes > 5
    assert np.array_equal(ours.forest_.nodes, reference.forest_.nodes)
    assert np.array_equal(ours.predict_proba(X), reference.predict_proba(X))
    assert np.array_equal(ours.feature_importances_, reference.feature_importances_)
    assert "twice = " in gpuforest.export_graphviz(ours[0])
    for a, b in zip(ours.estimators_, reference.estimators_, strict=True):
        assert np.array_equal(a.tree_.impurity, b.tree_.impurity)


def test_a_formula_from_elsewhere_chooses_the_splits(monkeypatch):
    monkeypatch.setitem(
        criteria.CRITERIA,
        "cubes",
        replace(criteria.CRITERIA["gini"], name="cubes", number=None, score=cubes),
    )
    X, y = some_classes()
    tree = gpuforest.DecisionTreeClassifier(criterion="cubes", max_depth=1, backend="numpy")
    found = tree.fit(X, y).tree_

    def worth(f, cut):
        sides = (y[X[:, f] <= cut], y[X[:, f] > cut])
        return sum(Fraction(sum(int(c) ** 3 for c in np.bincount(s)), len(s) ** 2) for s in sides)

    best = max(worth(f, cut) for f in range(3) for cut in np.unique(X[:, f])[:-1])
    assert worth(found.feature[0], found.threshold[0]) == best


# who may know a criterion by its name or number

NUMBER_NAMES = {
    "GINI", "ENTROPY", "MISCLASSIFICATION", "SQUARED_ERROR", "POISSON", "INFORMATION",
    "ABSOLUTE_ERROR", "LOGRANK",
}  # fmt: skip
# modules that compare names of losses, of which some are alike
LOSSES = {
    "kernels/gradients/losses.py", "export/model_file.py", "export/sklearn_boosting.py",
    "growing/reweighting.py", "explain/bias_variance.py",
}  # fmt: skip
PACKAGE = Path(gpuforest.__file__).parent


def compared(node):
    """Texts that a module compares something with."""
    match node:
        case ast.Compare(left=left, comparators=others):
            for side in [left, *others]:
                yield from (n.value for n in ast.walk(side) if isinstance(n, ast.Constant))
        case ast.MatchValue(value=ast.Constant(value=text)):
            yield text


def test_no_module_asks_which_criterion_it_is():
    for path in PACKAGE.rglob("*.py"):
        if path.name == "criteria.py" or "shared" in path.parts:  # of the kernels
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            names = {getattr(node, key, None) for key in ("id", "attr", "name")}
            assert not {name for name in names if isinstance(name, str)} & NUMBER_NAMES, path
            if path.relative_to(PACKAGE).as_posix() not in LOSSES:
                texts = {text for text in compared(node) if isinstance(text, str)}
                assert not set(criteria.CRITERIA) & texts, path
