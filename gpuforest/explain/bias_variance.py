"""Expected test error taken apart into bias and variance, by bootstrap (Domingos 2000)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.utils import check_consistent_length, check_random_state, column_or_1d, resample

LOSSES = ("squared_error", "zero_one")
MAX_SEED = 2**31 - 1


@dataclass(frozen=True)
class BiasVariance:
    """The result of `bias_variance`: means over the test rows, and the values of each row.

    Of either loss, up to rounding,

        error = bias + unbiased_variance - biased_variance

    Attributes
    ----------
    loss : str, "squared_error" or "zero_one"
    error : float, mean loss of a fit
    bias : float, mean loss of the main prediction; of squared error the squared bias
    variance : float, mean loss of a fit against the main prediction
    unbiased_variance : float, the variance that adds to the error: where the main prediction
        is right; of squared error all of it
    biased_variance : float, the variance that takes off the error, because a fit that leaves a
        wrong main prediction may be right; of squared error 0
    main_prediction : ndarray of shape (n_test,), mean or most frequent of the predictions
    row_error, row_bias, row_variance : float64 ndarray of shape (n_test,)
    n_rounds : int
    """

    loss: str
    error: float
    bias: float
    variance: float
    unbiased_variance: float
    biased_variance: float
    main_prediction: np.ndarray
    row_error: np.ndarray
    row_bias: np.ndarray
    row_variance: np.ndarray
    n_rounds: int


def bias_variance(
    estimator: Any, X: Any, y: Any, X_test: Any, y_test: Any, *, n_rounds: int = 100,
    loss: str = "auto", random_state: int | np.random.RandomState | None = None,
) -> BiasVariance:  # fmt: skip
    """Bias and variance of an estimator's test error, by bootstrap.

    Each round fits a clone on as many rows as there are, drawn with replacement, with a seed of
    its own for each `random_state` of the estimator. The main prediction of a test row is what
    minimises the loss against the predictions of all rounds; the bias is its loss, the
    variance the mean loss of the predictions against it.

    Squared error: the main prediction is the mean, and bias (squared) and variance add up to the
    error exactly. Noise in `y_test` counts as bias; where the function is known, pass its
    values instead, and the bias is without noise.

    Zero-one loss (Domingos 2000): the main prediction is the most frequent class, of several the
    first in their order, and the bias of a row is 0 or 1. Variance adds to the error where the
    main prediction is right. Where it is wrong, each prediction that differs from it and is
    right decreases it. With two classes all differing predictions are right; with more, the
    decrease is their share (Domingos' factor) of the row's variance. Noise is taken as zero.

    Parameters
    ----------
    estimator : any scikit-learn estimator with fit and predict; it is not changed
    X : array-like, frame or sparse matrix of shape (n_train, n_features)
    y : array-like of shape (n_train,)
    X_test : as X, of shape (n_test, n_features)
    y_test : array-like of shape (n_test,)
    n_rounds : int >= 2, default=100
    loss : {"auto", "squared_error", "zero_one"}, default="auto"
        "auto": zero-one for classifiers, else squared error.
    random_state : int, RandomState or None, default=None
        An int gives the same result again.

    Returns
    -------
    BiasVariance

    Raises
    ------
    ValueError
        A parameter out of its range; rows and targets of different lengths; targets of several
        outputs, or not numbers for squared error; no test rows.

    References
    ----------
    P. Domingos, "A Unified Bias-Variance Decomposition for Zero-One and Squared Loss", AAAI 2000.

    Examples
    --------
    >>> import numpy as np
    >>> from gpuforest import DecisionTreeRegressor, bias_variance
    >>> X = np.linspace(0, 1, 50)[:, None]
    >>> y = np.sin(6 * X[:, 0])
    >>> trees = (DecisionTreeRegressor(max_depth=depth) for depth in (1, 6))
    >>> shallow, deep = (bias_variance(tree, X, y, X, y, n_rounds=20) for tree in trees)
    >>> shallow.bias > deep.bias
    True
    """
    if n_rounds < 2:
        raise ValueError(f"n_rounds={n_rounds} must be at least 2: variance is between rounds")
    if loss != "auto" and loss not in LOSSES:
        raise ValueError(f"loss={loss!r} must be 'auto', 'squared_error' or 'zero_one'")
    if loss == "auto":
        loss = LOSSES[is_classifier(estimator)]
    y, y_test = column_or_1d(y), column_or_1d(y_test)
    check_consistent_length(X, y)
    check_consistent_length(X_test, y_test)
    if len(y) == 0 or len(y_test) == 0:
        raise ValueError("X and X_test need at least one row each")
    if loss == "squared_error" and not all(a.dtype.kind in "biuf" for a in (y, y_test)):
        raise ValueError("squared error needs numbers as targets: choose loss='zero_one'")
    predictions = _predictions(estimator, X, y, X_test, len(y_test), n_rounds, random_state)
    parts = _squared_error if loss == "squared_error" else _zero_one
    *of_rows, main = parts(predictions, y_test)
    names = ("error", "bias", "variance", "unbiased_variance", "biased_variance")
    values: dict[str, Any] = dict(zip([f"row_{name}" for name in names[:3]], of_rows, strict=False))
    values |= {name: float(of_row.mean()) for name, of_row in zip(names, of_rows, strict=True)}
    return BiasVariance(loss=loss, main_prediction=main, n_rounds=n_rounds, **values)


def _predictions(
    estimator: Any, X: Any, y: np.ndarray, X_test: Any, n_test: int, n_rounds: int, seed: Any
) -> np.ndarray:
    """The predictions of each round, [n_rounds, n_test]."""
    rng = check_random_state(seed)
    params = clone(estimator).get_params()
    chances = sorted(name for name in params if name.split("__")[-1] == "random_state")
    rounds = []
    for _ in range(n_rounds):
        drawn_X, drawn_y = resample(X, y, random_state=rng)
        seeds = {name: int(rng.randint(MAX_SEED)) for name in chances}
        answer = clone(estimator).set_params(**seeds).fit(drawn_X, drawn_y).predict(X_test)
        rounds.append(column_or_1d(answer))
        if len(answer) != n_test:
            raise ValueError(f"the estimator predicts {len(answer)} rows, but X_test has {n_test}")
    return np.stack(rounds)


def _squared_error(predictions: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, ...]:
    """Errors, biases and variances f64[n_test], the parts of variances that raise the error and
    that lower it, and main predictions."""
    predictions, y = predictions.astype(np.float64), y.astype(np.float64)
    main = predictions.mean(axis=0)
    variance = ((predictions - main) ** 2).mean(axis=0)
    error = ((predictions - y) ** 2).mean(axis=0)
    return error, (main - y) ** 2, variance, variance, np.zeros(len(y)), main


def _zero_one(predictions: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, ...]:
    """As `_squared_error`."""
    n_rounds, n_test = predictions.shape
    classes, codes = np.unique(np.concatenate([predictions.ravel(), y]), return_inverse=True)
    votes = np.zeros((n_test, len(classes)), dtype=np.int64)
    np.add.at(votes, (np.arange(n_test), codes[:-n_test].reshape(n_rounds, n_test)), 1)
    main, truth = votes.argmax(axis=1), codes[-n_test:]
    right, wrong = votes[np.arange(n_test), truth], main != truth
    error, variance = ((n_rounds - n) / n_rounds for n in (right, votes.max(axis=1)))
    adds, takes_off = np.where(wrong, 0.0, variance), np.where(wrong, right / n_rounds, 0.0)
    return error, wrong.astype(np.float64), variance, adds, takes_off, classes[main]
