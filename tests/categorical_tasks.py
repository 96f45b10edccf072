"""Tasks with categorical features, for Hypothesis."""

import math

import numpy as np
from engine import Task, places
from hypothesis import strategies as st
from test_parity import CLASSIFICATION, tasks

FEW, MANY = (1, 2, 3, 8, 9, 20), (70, 300)  # categories; many take more than a word, or a byte


@st.composite
def categorical_tasks(draw: st.DrawFn) -> Task:
    """Tasks of which some columns, or all, are places of categories; most are split by them."""
    task, multiway = draw(tasks()), draw(st.booleans())
    X, rng = task.X.copy(), np.random.default_rng(draw(st.integers(0, 2**32)))
    n_rows, n_features = X.shape
    chosen = sorted(draw(st.sets(st.integers(0, n_features - 1), min_size=1)))
    for f in chosen:
        X[:, f] = places(rng, n_rows, draw(st.sampled_from(FEW if multiway else FEW + MANY)))
    signs = [0 if f in chosen else sign for f, sign in enumerate(task.signs)]
    criterion = task.criterion
    if multiway and criterion in CLASSIFICATION and task.y.ndim == 1:
        criterion = draw(st.sampled_from([criterion, "gain_ratio"]))
    return task.but(
        X=X,
        criterion=criterion,
        categorical=tuple(chosen),
        multiway=multiway,
        signs=tuple(signs),
        n_draws=draw(st.sampled_from([0, n_rows, 2 * n_rows])),
        max_depth=draw(st.sampled_from([1, 3, 10**9])),
        min_gain=draw(st.sampled_from([-math.inf, -math.inf, 0.0])),
    )
