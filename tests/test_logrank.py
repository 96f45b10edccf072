"""Log-rank splits: every one is the best, by the definition in plain Python."""

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from survivors import data_of_ties

from gpuforest import RandomSurvivalForest
from gpuforest.backends.numpy import NumpyBackend
from gpuforest.growing.bags import draw_bags
from gpuforest.splits.logrank.numba import ONE


def expected(time, event, drawn):
    """The hazard that each row of a node went through, in units of 2**-30, and exactly."""
    whole, exact = [], []
    for t in time:
        whole.append(0)
        exact.append(Fraction(0))
        for s in sorted({s for s, e in zip(time, event, strict=True) if e and s <= t}):
            d = sum(n for u, e, n in zip(time, event, drawn, strict=True) if e and u == s)
            at_risk = sum(n for u, n in zip(time, drawn, strict=True) if u >= s)
            whole[-1] += (2 * ONE * d + at_risk) // (2 * at_risk)
            exact[-1] += Fraction(d, at_risk)
    return [max(h, 1) for h in whole], exact


def score(sides, hazard, event, drawn, kinds, fewest):
    """Of two sides, lists of rows; None if the split is not allowed."""
    total = 0.0
    for side in sides:
        events = [sum(drawn[i] for i in side if event[i] == k + 1) for k in range(kinds)]
        if len(side) < fewest or (kinds == 1 and not events[0]):
            return None
        total += sum(float(d) * d for d in events) / float(sum(drawn[i] * hazard[i] for i in side))
    return total


def ways(values, is_set):
    """All partitions of rows in two by one feature."""
    rows, kinds = range(len(values)), sorted(set(values[~np.isnan(values)]))
    missing = [i for i in rows if np.isnan(values[i])]
    if is_set:
        sets = [s for n in range(1, len(kinds)) for s in combinations(kinds, n)]
        lefts = [[i for i in rows if values[i] in s] for s in sets]
    else:
        lefts = [[i for i in rows if values[i] <= cut] for cut in kinds[:-1]]
        lefts += [left + missing for left in lefts]
        lefts += [[i for i in rows if i not in missing]] * bool(missing)
    for left in lefts:
        if 0 < len(left) < len(values):
            yield left, [i for i in rows if i not in left]


@pytest.mark.parametrize(("kinds", "fewest"), [(1, 1), (1, 3), (2, 1)])
def test_every_split_is_the_best(kinds, fewest):
    n_splits = 0
    for seed in range(6):
        X, y = data_of_ties(40, seed, kinds)
        weight = None if seed % 2 else np.random.default_rng(seed).integers(0, 3, 40)
        forest = RandomSurvivalForest(
            6, criterion="logrank", min_samples_leaf=fewest, min_samples_split=2, random_state=seed,
            bootstrap=seed > 0, max_features=None, categorical_features=[2],
        ).fit(X, y, sample_weight=weight)  # fmt: skip
        bags = draw_bags(forest._sampling_, forest.seed_, 0, 6, NumpyBackend())
        for drawn, tree in zip(bags, forest.estimators_, strict=True):
            n_splits += check_tree(tree, X, y, drawn, kinds, fewest)
    assert n_splits > 150


def check_tree(tree, X, y, drawn, kinds, fewest):
    """Compare each split with all others, and return the number of splits."""
    passes, nodes = tree.decision_path(X).toarray() > 0, tree.tree_
    splits = np.flatnonzero(nodes.children_left >= 0)
    for node in range(nodes.node_count):
        here = np.flatnonzero(passes[:, node] & (drawn > 0))
        times = y["time"][here].tolist(), y["event"][here].tolist(), drawn[here].tolist()
        hazard, exact = expected(*times)
        assert all(abs(h / ONE - e) < 1e-6 for h, e in zip(hazard, exact, strict=True))
        scores = [
            score(sides, hazard, *times[1:], kinds, fewest)
            for f in range(3)
            for sides in ways(X[here, f], f == 2)
        ]
        scores = [s for s in scores if s is not None]
        if node in splits:
            left = passes[here, nodes.children_left[node]]
            sides = np.flatnonzero(left).tolist(), np.flatnonzero(~left).tolist()
            assert score(sides, hazard, *times[1:], kinds, fewest) == max(scores)
        else:  # no split is allowed, or the rows are all alike
            assert not scores or not any(times[1]) or len(set(y[here].tolist())) == 1
    return len(splits)


def test_combinations_are_refused():
    forest = RandomSurvivalForest(criterion="logrank", feature_combinations=2.0)
    with pytest.raises(ValueError, match="criterion='logrank' takes no feature_combinations: pas"):
        forest.fit(*data_of_ties(20, 0))
