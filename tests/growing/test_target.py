"""Targets as integers: exact where they can be, never too large for their sums, and back again."""

import math
from fractions import Fraction

import array_api_compat.numpy as xp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuforest.common.dtypes import MAX_TOTAL_WEIGHT
from gpuforest.core.target import SUM_BITS, TargetCoding
from gpuforest.growing.targets import encode_moments, integer_weights

numbers = st.lists(st.floats(-1e300, 1e300), min_size=1, max_size=20)


def test_whole_numbers_are_exact_moments():
    y = np.array([[3.0, -7.0], [5.0, 2.0], [8.0, 0.0]])
    coding, moments = encode_moments(y, 10)
    assert moments.dtype == np.int64
    assert np.array_equal(moments / coding.scale + coding.centre, y)
    # one value is its own centre; without a centre zero stays zero
    coding, moments = encode_moments(np.full((3, 1), 0.1), 3)
    assert (coding.centre[0], coding.scale, moments.any()) == (0.1, 1.0, False)
    coding, moments = encode_moments(np.array([[0.0], [3.0]]), 4, centred=False)
    assert (coding.centre[0], *moments[:, 0]) == (0, 0, 3 * coding.scale)


@given(numbers, st.integers(1, MAX_TOTAL_WEIGHT), st.booleans())
def test_no_sum_of_moments_overflows(values, total_weight, centred):
    y = np.array(values)[:, None]
    coding, moments = encode_moments(y, total_weight, centred=centred)
    # the heaviest bag holds the largest moment alone
    assert total_weight * max(map(abs, moments[:, 0].tolist())) < 2**SUM_BITS
    assert math.frexp(coding.scale)[0] == 0.5  # a power of two


@given(numbers)
def test_moments_round_to_the_nearest_step(values):
    coding, moments = encode_moments(np.array(values)[:, None], len(values))
    scale, centre = Fraction(coding.scale), Fraction(float(coding.centre[0]))
    largest = max(abs(Fraction(v) - centre) for v in values)
    for value, moment in zip(values, moments[:, 0].tolist(), strict=True):
        # half a step, and the rounding of y - centre as a float64
        assert abs(Fraction(value) - centre - moment / scale) <= 1 / (2 * scale) + largest / 2**52


@given(numbers, st.randoms())
def test_the_order_of_the_rows_decides_nothing(values, random):
    shuffled = random.sample(values, len(values))
    (a, first), (b, second) = (encode_moments(np.array(v)[:, None], 99) for v in (values, shuffled))
    assert (a.scale, a.centre[0]) == (b.scale, b.centre[0])
    assert np.array_equal(np.sort(first, axis=0), np.sort(second, axis=0))


def test_the_centre_lies_near_most_targets():
    y = np.append(np.repeat(np.arange(10.0), 500), [1e9] * 40)[:, None]
    coding, moments = encode_moments(y, 5040)
    assert 2 <= coding.centre[0] <= 7
    assert np.array_equal(moments[:, 0] / coding.scale + coding.centre[0], y[:, 0])
    halves = encode_moments(np.where(y < 5, y, 1e9), 5040)[0]  # five values near, and one far out
    assert halves.centre[0] < 5
    two = encode_moments(np.where(y < 5, 0.0, 1e9), 5040)[0]  # of two values none is far out
    assert abs(two.centre[0] - 5e8) < 1e6


def test_a_heavier_bag_leaves_fewer_bits():
    y = np.array([[0.0], [1.0]])
    scales = [encode_moments(y, weight)[0].scale for weight in (1, 2**10, 2**20, 2**30)]
    # the moments of 0 and 1 lie half a scale around 0.5. They have 52 bits, exact in a float64,
    # and 62 less those of the weight, which are 1, 11, 21 and 31
    assert [math.log2(s) for s in scales] == [52, 51, 41, 31]


def test_other_means_are_predicted_where_they_differ():
    three = TargetCoding(np.arange(3), np.zeros(1), 1.0)  # votes go to the first of the heaviest
    assert three.votes(np.array([[0.2, 0.4, 0.4], [0, 0, 1.0]])).tolist() == [[0, 1, 0], [0, 0, 1]]
    classes = TargetCoding(np.arange(2), np.zeros(1), 1.0)
    sums, means = np.array([[3, 1], [0, 2]]), np.array([0.25, 0.75])
    assert classes.of_means(means).tolist() == [[0.75, 0.25], [0.25, 0.75]]
    assert classes.with_means(sums, means).tolist() == [[0.75, 0.25], [0.25, 0.75]]
    real = TargetCoding(None, np.array([10.0]), 2.0)
    sums, means = np.array([[2, 10], [1, -3]]), np.array([5.0, -4.0])
    assert real.values(sums).tolist() == [[12.5], [8.5]]
    assert real.with_means(sums, means).tolist() == [[12.5], [8.0]]


@given(st.lists(st.floats(0, 1e300), min_size=1, max_size=30).filter(any))
def test_weights_keep_their_order_and_zeros_and_fit(values):
    found = integer_weights(np.array(values))
    assert int(found.sum(dtype=np.int64)) <= MAX_TOTAL_WEIGHT
    assert np.array_equal(found > 0, np.array(values) > 0)
    order = np.argsort(values, kind="stable")
    assert np.all(xp.diff(found[order].astype(np.int64)) >= 0)


def test_weights_by_hand():
    whole = integer_weights(np.array([0.0, 2.0, 7.0]))
    assert (whole.dtype, whole.tolist()) == (np.int32, [0, 2, 7])
    # they add up to 1: frexp gives 0.5 and 1, so 2**29 is what one unit becomes
    assert integer_weights(np.array([0.25, 0.75, 0.0])).tolist() == [2**27, 3 * 2**27, 0]
    with pytest.raises(ValueError, match="add up to infinity"):
        integer_weights(np.array([1e308, 1e308]))
