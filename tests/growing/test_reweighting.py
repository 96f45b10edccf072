"""AdaBoost's arithmetic, beside rounds worked by hand and NumPy's powers."""

import math
from fractions import Fraction

import numpy as np
import pytest

from gpuforest.common.sums import total_of
from gpuforest.growing.reweighting import LEAST_SHARE, boost, power_of_two, r2, samme

QUARTERS = np.full(4, 0.25)


def test_powers_of_two():
    x = -np.random.default_rng(0).random(10_000) * 60
    assert np.allclose(power_of_two(x), np.exp2(x), rtol=4e-16, atol=0)
    whole = -np.arange(1023.0)
    assert np.array_equal(power_of_two(whole), np.exp2(whole))
    assert power_of_two(np.array([-1074.0, -1101.0, -1e300])).tolist() == [5e-324, 0.0, 0.0]


def test_sums_are_free_of_order():
    x = np.random.default_rng(1).random(1000) ** 9
    exact = float(sum(map(Fraction, x.tolist())))
    assert total_of(x) == total_of(np.sort(x)) == exact
    assert total_of(np.full(3, 1e308)) == math.inf


def test_a_round_of_samme():
    weight, error, factors = samme(np.array([True, False, False, False]), QUARTERS, 2, 1.0)
    assert (weight, error) == (math.log(3), 0.25)
    assert factors.tolist() == [3, 1, 1, 1]
    slow_weight, _, slow = samme(np.array([True, False, False, False]), QUARTERS, 2, 0.5)
    assert slow_weight == weight / 2
    assert slow[0] == math.sqrt(3)
    # of three classes, chance is wrong in two thirds
    weight, _, factors = samme(np.array([True, True, False, False]), QUARTERS, 3, 1.0)
    assert (weight, factors.tolist()) == (math.log(2), [2, 2, 1, 1])


LOST = {
    "linear": [0, 0, 0.5, 1], "square": [0, 0, 0.25, 1],
    "exponential": [0, 0, 1 - math.exp(-0.5), 1 - math.exp(-1)],
}  # fmt: skip


@pytest.mark.parametrize(("loss", "lost"), LOST.items())
def test_a_round_of_r2(loss, lost):
    weight, found, factors = r2(np.array([0.0, 0.0, 2.0, 4.0]), QUARTERS, loss, 0.5)
    error = sum(lost) / 4
    beta = error / (1 - error)
    assert found == pytest.approx(error, rel=1e-15)
    assert weight == pytest.approx(0.5 * math.log(1 / beta), rel=1e-15)
    assert np.allclose(factors, beta ** (0.5 * (1 - np.array(lost))), rtol=1e-15)


def test_extreme_weights():
    seen = []

    def grow_round(t, weights):
        seen.append(weights.copy())
        return 1.0, 0.25, np.array([1.0, 1e-300])

    boost(np.ones(2), 3, grow_round)
    assert seen[2][1] == LEAST_SHARE
    infinite = 1.0, 0.3, np.array([np.inf, 1.0])
    with pytest.warns(UserWarning, match="infinite values, at iteration 0, causing overflow"):
        assert len(boost(np.array([1.0, 0.0]), 5, lambda t, weights: infinite)) == 1
