"""Exponentials and logarithms: near the libraries', and the same in compiled code."""

import numpy as np
import pytest

from gpuforest.common import elementary

rng = np.random.default_rng(0)
WIDE, NEAR = rng.uniform(-700, 700, 20_000), rng.uniform(-2, 2, 20_000)
ULP = 2.0**-52


@pytest.mark.parametrize("x", [WIDE, NEAR], ids=["wide", "near"])
def test_exp_is_near_the_library(x: np.ndarray) -> None:
    # both are within an ulp or so of the true value
    assert np.abs(elementary.exp(x) / np.exp(x) - 1).max() <= 2 * ULP


def test_exp_at_the_ends() -> None:
    found = elementary.exp(np.array([0.0, -0.0, 1e300, -1e300, np.inf, -np.inf]))
    assert found[0] == found[1] == 1.0
    assert np.isfinite(found).all()
    assert (found > 0).all()


def test_log_is_near_the_library() -> None:
    x = np.concatenate([np.exp(rng.uniform(-600, 600, 20_000)), rng.uniform(0.9, 1.1, 20_000)])
    found, wanted = elementary.log(x), np.log(x)
    assert np.abs(found - wanted).max() <= 4 * ULP * np.abs(wanted).max()
    assert (np.abs(found - wanted) <= 4 * np.spacing(np.abs(wanted))).all()
    assert elementary.log(np.array([1.0]))[0] == 0.0


def test_log1p_exp_is_near_the_library() -> None:
    x = np.concatenate([rng.uniform(-600, 600, 20_000), NEAR])
    wanted = np.logaddexp(0, x)
    assert (np.abs(elementary.log1p_exp(x) - wanted) <= 4 * np.spacing(wanted)).all()
