"""What growing works with: features in a random order, bounds below a split, the better split."""

import array_api_compat.numpy as xp
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gpuforest.core.frontier import Splits
from gpuforest.splits.base import draw_features


@given(st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=8), st.integers(1, 40), st.data())
def test_features_come_in_a_random_order_each_once(keys, n_features, data):
    k = data.draw(st.integers(1, n_features))
    keys = np.array(keys, np.uint64)
    rounds = [draw_features(xp, keys, first, k, n_features) for first in range(0, n_features, k)]
    assert all(r.shape == (len(keys), k) and r.dtype == np.int32 for r in rounds)
    order = np.concatenate(rounds, axis=1)
    for row in order:
        assert sorted(row[:n_features].tolist()) == list(range(n_features))
    assert np.all(order[:, n_features:] == -1)  # past the end of the order
    if k < n_features:  # the order does not depend on how many are drawn at once
        ones = [draw_features(xp, keys, j, 1, n_features) for j in range(n_features)]
        assert np.array_equal(order[:, :n_features], np.concatenate(ones, axis=1))
    else:
        assert np.array_equal(order, np.broadcast_to(np.arange(k), order.shape))


def splits(score, feature, tried) -> Splits:
    numbers = np.array(feature, np.int32)
    return Splits(
        np.array(score), numbers, numbers * 10, numbers % 2 == 0,
        np.repeat(numbers[:, None], 2, axis=1).astype(np.int64),
        np.array(tried), numbers[:, None].astype(np.uint64),
    )  # fmt: skip


def test_the_better_split_wins_and_of_equals_the_earlier():
    first = splits([1.0, 5.0, -np.inf, -np.inf], [1, 2, 3, 4], [1, 1, 0, 0])
    second = splits([2.0, 5.0, 0.0, -np.inf], [5, 6, 7, 8], [2, 1, 1, 0])
    found = first.better(xp, second)
    assert found.score.tolist() == [2.0, 5.0, 0.0, -np.inf]
    assert found.feature.tolist() == [5, 2, 7, 4]
    assert found.bin.tolist() == [50, 20, 70, 40]
    assert found.missing_left.tolist() == [False, True, False, True]
    assert found.left.tolist() == [[5, 5], [2, 2], [7, 7], [4, 4]]
    assert found.sets.tolist() == [[5], [2], [7], [4]]
    assert found.tried.tolist() == [3, 2, 1, 0]  # both were
