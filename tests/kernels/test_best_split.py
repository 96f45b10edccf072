"""The best cut of a node: worked by hand, ties, missing values, and cuts that are not allowed."""

from dataclasses import replace

import array_api_compat.numpy as xp
import numpy as np
import pytest
from engine import Task
from laws import column, split_of

from gpuforest.common import hashing
from gpuforest.common.hashing import CUT, hash_at
from gpuforest.core.nodes import unpack
from gpuforest.growing.grow import roots
from gpuforest.growing.predict import predict
from gpuforest.splits.base import draw_features


def test_the_cut_lies_in_the_middle_of_the_nodes_own_gap(grower):
    # eleven values have bins; the right part of the tree holds but 4, 5, 8 and 10
    groups = [(0, v) for v in range(11)] + [(1, v) for v in (4, 5, 8, 10)]
    forest = Task(np.array(groups, float), np.array([0] * 11 + [1, 1, 2, 2])).grow(grower)
    assert split_of(forest) == (0, 0, True)  # eleven of fifteen lie left
    right = int(unpack(np, forest.nodes)[3][0]) + 1
    assert split_of(forest, right)[:2] == (1, 6)
    assert forest.edges.threshold(np.array([1]), np.array([6]))[0] == (5 + 8) / 2


def test_ties_go_to_the_first_feature_then_to_the_lowest_bin(grower):
    X = np.repeat([[3.0, 0.0, 0.0], [2.0, 1.0, 1.0], [1.0, 2.0, 2.0], [0.0, 3.0, 3.0]], 2, axis=0)
    # by symmetry the first and the last cut are worth the same, in all three columns
    y = np.repeat([0, 1, 1, 0], 2)
    assert split_of(Task(X, y).grow(grower))[:2] == (0, 0)
    assert split_of(Task(X[:, 1:], y).grow(grower))[:2] == (0, 0)


@pytest.mark.parametrize("criterion", ["gini", "misclassification", "squared_error"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_ties_go_to_the_feature_drawn_first(grower, criterion, n_classes):
    # three equal columns, of which any round of two may hold none, one or two
    x = np.repeat([0.0, 1.0, 2.0, np.nan], 3)
    X = np.stack([x, np.zeros(12), x, np.full(12, np.nan), x], axis=1)
    y = np.arange(12) // 3 % n_classes
    task = Task(X, y, criterion, n_tried=2, max_depth=1, n_trees=200, seed=8)
    keys = hashing.hash_at(hashing.tree_keys(np, task.seed, 0, task.n_trees), hashing.ROOT)
    drawn = np.concatenate([draw_features(xp, keys, j, 1, 5) for j in range(5)], axis=1)
    first = drawn[np.arange(200), np.argmax(drawn % 2 == 0, axis=1)]
    forest = task.grow(grower)
    feature, bin, _, _ = unpack(np, forest.nodes[forest.tree_offsets[:-1]])
    assert np.array_equal(feature, first)
    assert len(set(bin.tolist())) == 1
    # all tried: in the order of the columns
    every = task.but(n_tried=5).grow(grower)
    assert not unpack(np, every.nodes[every.tree_offsets[:-1]])[0].any()


def test_missing_values_go_where_they_are_worth_more(grower):
    nan = np.nan
    # with the large ones
    forest = Task(column(0, 0, 1, 1, nan, nan), np.array([0, 0, 1, 1, 1, 1])).grow(grower)
    assert split_of(forest) == (0, 0, False)
    assert forest.n_nodes == 3
    # with the small ones
    forest = Task(column(0, 0, 1, 1, nan, nan), np.array([0, 0, 1, 1, 0, 0])).grow(grower)
    assert split_of(forest) == (0, 0, True)
    assert forest.n_nodes == 3
    # worth the same on either side: to the right
    forest = Task(column(0, 1, nan), np.array([0, 1, 2])).grow(grower)
    assert split_of(forest) == (0, 0, False)


def test_missing_against_all_others(grower):
    X = column(0, 1, 2, np.nan, np.nan)
    forest = Task(X, np.array([0, 0, 0, 1, 1])).grow(grower)
    assert split_of(forest) == (0, 2, False)  # behind the last bin
    assert forest.n_nodes == 3
    assert forest.edges.threshold(np.array([0]), np.array([2]))[0] == np.inf
    values = predict(forest, np.append(X, [[1e300]], axis=0), grower)
    assert values[:, 1].tolist() == [0, 0, 0, 1, 1, 0]
    # a column of one value and missing ones varies
    forest = Task(column(7, 7, np.nan), np.array([0, 0, 1])).grow(grower)
    assert forest.n_nodes == 3
    # a column of missing ones alone does not
    assert Task(column(np.nan, np.nan), np.array([0, 1])).grow(grower).n_nodes == 1


def test_missing_values_never_seen_go_to_the_heavier_side(grower):
    for y, left in (([0, 0, 0, 1], True), ([0, 1, 1, 1], False), ([0, 0, 1, 1], False)):
        forest = Task(column(*y), np.array(y)).grow(grower)
        assert split_of(forest) == (0, 0, left)
        value = predict(forest, column(np.nan), grower)[0]
        assert value.tolist() == ([1, 0] if left else [0, 1])
    # heavier, not of more rows
    weights = np.array([5, 1, 1, 1], np.int32)
    forest = Task(column(0, 1, 1, 1), np.array([0, 1, 1, 1]), weights=weights).grow(grower)
    assert split_of(forest) == (0, 0, True)


# seven values, so seven bins and the code 7 for missing ones
SEVEN = Task(np.arange(7.0)[:, None], np.arange(7) % 2)


def cut(engine, counts, key=0, bounds=None, **rules):
    """The split of one slot whose bins hold these classes: (score, bin, missing left, left)."""
    task = SEVEN.but(**rules)
    training = task.training(engine)
    hist = np.zeros((1, 1, 8, 2), np.int64)
    for code, classes in counts.items():
        hist[0, 0, code] = classes
    slot = roots(training, engine, 0, 1)  # whose histogram is another
    slot = replace(slot, key=np.array([key], np.uint64), sums=hist.sum(axis=(1, 2)))
    if bounds is not None:
        slot = replace(slot, bounds=np.array([bounds], float))
    found = engine.best_split(training, slot, hist, np.array([[0]], np.int32), np.array([1]))
    if found.feature[0] < 0:
        assert found.score[0] == -np.inf
        return None
    return found.score[0], found.bin[0], bool(found.missing_left[0]), found.left[0].tolist()


def key_that_draws(way, ways, missing_left):
    """A key whose hash cuts feature 0 behind the way-th of its bins."""
    keys = np.arange(1000, dtype=np.uint64)
    drawn = hash_at(keys, CUT)
    fits = ((drawn >> np.uint64(1)) % np.uint64(ways) == way) & (drawn % 2 == missing_left)
    return int(keys[np.argmax(fits)])


def test_random_cuts_by_hand(engine):
    # bins 1, 2 and 5 hold rows: behind bin 1, 2, 3 or 4, each as likely; the heavier side is left
    expected = [(3 + 3, 1, False, [3, 0])]
    expected += [((9 + 4) / 5 + 1, 1 + way, True, [3, 2]) for way in (1, 2, 3)]
    for way in range(4):
        key = key_that_draws(way, 4, False)
        found = cut(engine, {1: (3, 0), 2: (0, 2), 5: (0, 1)}, key, random=True)
        assert found == expected[way]
    # missing values go to a random side, but one value is cut from them whatever is drawn
    for side in (False, True):
        key = key_that_draws(0, 1, side)
        found = cut(engine, {1: (3, 0), 2: (0, 2), 7: (1, 0)}, key, random=True)
        assert found == ((4 + 2, 1, True, [4, 0]) if side else (3 + 5 / 3, 1, False, [3, 0]))
        found = cut(engine, {2: (3, 0), 7: (1, 1)}, key, random=True)
        assert found == (3 + 1, 6, False, [3, 0])
    # one that is not allowed is none
    for way in range(3):
        key = key_that_draws(way, 3, False)
        assert cut(engine, {0: (1, 0), 3: (0, 4)}, key, random=True)[1] == way
        assert cut(engine, {0: (1, 0), 3: (0, 4)}, key, random=True, min_weight_leaf=2) is None


def test_least_weight_by_hand(engine):
    # behind bin 0 the sides weigh 2 and 5, behind bin 1 4 and 3, and that scores more
    counts = {0: (0, 2), 1: (2, 0), 2: (0, 3)}
    assert cut(engine, counts) == (2 + 3, 1, True, [2, 2])
    assert cut(engine, counts, min_weight_leaf=3) == (2 + 3, 1, True, [2, 2])
    assert cut(engine, counts, min_weight_leaf=4) is None
    # a better cut that leaves too little on one side makes way for a worse one
    counts = {0: (1, 0), 1: (0, 2), 2: (1, 2)}
    assert cut(engine, counts) == (1 + 17 / 5, 0, False, [1, 0])
    assert cut(engine, counts, min_weight_leaf=2) == (5 / 3 + 5 / 3, 1, False, [1, 2])


def test_monotonic_signs_by_hand(engine):
    # the second class's share: behind bin 0 1 and 3/5, behind bin 1 1/2 and 1
    counts = {0: (0, 2), 1: (2, 0), 2: (0, 3)}
    best, falling = (2 + 3, 1, True, [2, 2]), (2 + 13 / 5, 0, False, [0, 2])
    wide = (-np.inf, np.inf)
    assert cut(engine, counts, bounds=wide, signs=(1,)) == best
    assert cut(engine, counts, bounds=wide, signs=(-1,)) == falling
    assert cut(engine, counts, bounds=wide, signs=(0,)) == best
    # bounds hold for features that have a sign, and touch
    assert cut(engine, counts, bounds=(0.5, 1), signs=(1,)) == best
    assert cut(engine, counts, bounds=(0.55, 1), signs=(-1,)) == falling
    assert cut(engine, counts, bounds=(0.55, 1), signs=(1,)) is None
    assert cut(engine, counts, bounds=(0, 0.9), signs=(-1,)) is None
    assert cut(engine, counts, bounds=(0.55, 0.9), signs=(0,)) == best
