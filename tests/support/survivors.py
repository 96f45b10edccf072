"""Rows of survival: of one cause, of two, and with many ties."""

import numpy as np


def target(event, time):
    """Events of the dtype that they have: truth values, or causes."""
    event = np.asarray(event)
    y = np.empty(len(event), [("event", event.dtype), ("time", float)])
    y["event"], y["time"] = event, time
    return y


def data(n=200, seed=0, ties=True):
    """Hazards rise with the first feature; a third is censored; some values are missing."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    time, censored = rng.exponential(np.exp(-X[:, 0])), rng.exponential(2.0, n)
    X[rng.random(X.shape) < 0.05] = np.nan
    known = np.minimum(time, censored)
    return X, target(time <= censored, np.round(known, 1) + 0.1 if ties else known)


def data_of_causes(n=300, seed=0):
    """The hazard of the first cause rises with the first feature, that of the second with the
    second one; some rows are censored, and many times are equal."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    times = np.stack([rng.exponential(2.0, n), *rng.exponential(np.exp(-X[:, :2])).T])
    return X, target(times.argmin(axis=0), np.round(times.min(axis=0), 1) + 0.1)


def data_of_ties(n, seed, kinds=1):
    """Few times and values, so that there are ties; some values are missing, a third is censored.
    The last feature has four categories."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 6, (n, 3)).astype(float)
    X[rng.random(X.shape) < 0.1] = np.nan
    X[:, 2] = rng.integers(0, 4, n)
    event = rng.integers(1, kinds + 1, n) * (rng.random(n) < 2 / 3)
    return X, target(event, rng.integers(1, 9, n) + 2.0 * (X[:, 2] > 1))
