"""What a fit of boosting needs besides trees: constraints, limits, and the scores of its rounds."""

from __future__ import annotations

import math
import warnings
from copy import copy
from dataclasses import dataclass
from numbers import Integral
from types import SimpleNamespace
from typing import Any

import numpy as np
from sklearn.metrics import check_scoring
from sklearn.model_selection import train_test_split

from gpuforest.backends.base import Backend, take_rows
from gpuforest.backends.booster import Boosting, Round
from gpuforest.backends.rows import draw_rows
from gpuforest.core.forest import Forest
from gpuforest.data.binned import BinnedData, Passed
from gpuforest.data.validation import check_groups
from gpuforest.estimators.settings import UNLIMITED
from gpuforest.growing.boosted import BoostedCoding, forest_of, joined
from gpuforest.growing.edges import bin_matrix
from gpuforest.growing.predict import predict


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows with their targets.

    X : table [N, F], checked; None: it is no longer needed
    y : numbers f64[N], or class codes i64[N]
    weight : f64[N] or None
    groups, blocks : i32[N], the numbers of the rows' groups, or blocks of time, or None
    """

    X: Any
    y: np.ndarray
    weight: np.ndarray | None
    groups: np.ndarray | None = None
    blocks: np.ndarray | None = None

    def take(self, rows: np.ndarray, backend: Backend) -> Rows:
        """Some of the rows; X may lie on the backend's device."""
        parts = self.weight, self.groups, self.blocks
        weight, groups, blocks = (None if a is None else a[rows] for a in parts)
        binned = isinstance(self.X, BinnedData)
        X = self.X.take(rows) if binned else take_rows(self.X, rows, backend)
        return Rows(X, self.y[rows], weight, groups, blocks)

    def numbers(self) -> np.ndarray | None:
        """The groups i32[N] by their numbers among those that have rows here."""
        if self.groups is None:
            return None
        return np.asarray(np.unique(self.groups, return_inverse=True)[1], np.int32)


def labels_of_rows(passed: Passed, n_rows: int) -> list[np.ndarray | None]:
    """The numbers i32[N] of the rows' groups, and of their blocks of time; None: there are none."""
    return [check_groups(getattr(passed, name), n_rows, name) for name in ("groups", "blocks")]


class Watch:
    """Follows the scores of a fit, and says when it stops."""

    def __init__(
        self, estimator: Any, boosting: Boosting, backend: Backend, train: Rows,
        validation: Rows | None, coding: BoostedCoding, raw: np.ndarray, earlier: Any,
    ) -> None:  # fmt: skip
        self.estimator, self.boosting, self.coding = estimator, boosting, coding
        self.backend = backend
        self.train, self.validation, self.raw = train, validation, raw
        self.train_scores, self.validation_scores = list[float](), list[float]()
        self.earlier: Forest | None = None
        if earlier is not None:
            self.earlier = earlier.forest_
            self.train_scores = earlier.train_score_.tolist()
            self.validation_scores = earlier.validation_score_.tolist()
        self.is_on, self.by_loss = estimator.do_early_stopping_, estimator.scoring == "loss"
        if not self.is_on:
            return
        if validation is not None:
            self.matrix = bin_matrix(validation.X, boosting.matrix.edges, backend)
            start = np.repeat(coding.baseline[None], len(validation.y), axis=0)
            if self.earlier is not None:
                start = predict(self.earlier, validation.X, backend)
            self.raw_val = backend.asarray(start)
        if not self.by_loss:
            n, labels = len(train.y), train.y if boosting.loss.is_classes else None
            self.scored = None  # all of the training rows
            if n > SCORED_ROWS:
                self.scored = set_aside(n, SCORED_ROWS, labels, boosting.seed)[1]

    def forest(self, grown: list[Round]) -> Forest:
        """The model of the rounds so far."""
        b = self.boosting
        if not grown:
            assert self.earlier is not None
            return self.earlier
        made = forest_of(grown, b.matrix.edges, self.coding, b.seed)
        return made if self.earlier is None else joined(self.earlier, made)

    def stops(self, grown: list[Round]) -> bool:
        """Whether the fit ends after these rounds; their scores are added."""
        if not self.is_on:
            return False
        if self.validation is not None and grown:
            b = self.boosting
            last = forest_of(grown[-1:], b.matrix.edges, self.coding, b.seed)
            trees = range(last.n_trees)
            self.raw_val = self.backend.accumulate(
                last, self.matrix.codes, trees, None, self.raw_val
            )
        train, validation = self._losses(grown) if self.by_loss else self._scores()
        self.train_scores.append(train)
        scores = self.train_scores
        if validation is not None:
            self.validation_scores.append(validation)
            scores = self.validation_scores
        if self.by_loss and not np.isfinite(scores[-1]) and np.isfinite([0.0, *scores[:-1]]).all():
            warnings.warn(
                "the loss lies beyond float64, so early stopping compares nothing: divide y by a "
                "constant",
                stacklevel=2,
            )
        return has_converged(scores, self.estimator.n_iter_no_change, self.estimator.tol)

    def note(self, grown: list[Round], before: int) -> str:
        """How far the fit is, for people, after rounds `grown` and as many before."""
        word, scores = "score", [self.train_scores[-1:], self.validation_scores[-1:]]
        if not self.is_on or self.by_loss:
            word, train = "loss", scores[0] if self.is_on else [self._losses(grown)[0]]
            scores = [[-score for score in known] for known in (train, scores[1])]
        names = word, f"validation {word}"
        known = [f"{name} {s[0]:.6g}" for name, s in zip(names, scores, strict=True) if s]
        most = self.estimator.max_iter
        return ", ".join([f"round {before + len(grown)} of {most}", *known])

    def _losses(self, grown: list[Round]) -> tuple[float, float | None]:
        loss, train, other = self.boosting.loss, self.train, self.validation
        mean = grown[-1].loss if grown else None
        score = -(loss.mean(train.y, self.raw, train.weight) if mean is None else mean)
        if other is None:
            return score, None
        raw = self.backend.asnumpy(self.raw_val)
        return score, -loss.mean(other.y, np.ascontiguousarray(raw.T), other.weight)

    def _scores(self) -> tuple[float, float | None]:
        """Scores of the user's scorer, which calls the estimator's predictions."""
        train, raw = self.train, self.raw.T
        if self.scored is not None:
            train, raw = train.take(self.scored, self.backend), raw[self.scored]
        score = self._score(train, raw)
        if self.validation is None:
            return score, None
        return score, self._score(self.validation, self.backend.asnumpy(self.raw_val))

    def _score(self, rows: Rows, raw: np.ndarray) -> float:
        estimator = self.estimator
        y = rows.y if self.coding.classes is None else self.coding.classes[rows.y]
        scorer = check_scoring(estimator, estimator.scoring)
        weight = {} if rows.weight is None else {"sample_weight": rows.weight}
        predicting = replace_predictions(estimator, self.coding, raw)  # no tree is walked
        return float(scorer(predicting, rows.X, y, **weight))


def replace_predictions(estimator: Any, coding: BoostedCoding, raw: np.ndarray) -> Any:
    """A copy of an estimator whose raw predictions are known, whatever rows it gets."""
    predicting = copy(estimator)
    predicting.__dict__.update(
        _raw_predict=lambda X: raw, classes_=coding.classes, forest_=SimpleNamespace(coding=coding)
    )
    return predicting


def interacting(estimator: Any, n_features: int) -> np.ndarray:
    """The sets of features that may meet on a path, bool[n, F]; bool[0, F]: all may."""
    if estimator.interaction_cst is None:
        return np.zeros((0, n_features), np.bool_)
    from sklearn.ensemble._hist_gradient_boosting import gradient_boosting  # slow to import

    kind = gradient_boosting.BaseHistGradientBoosting
    sets = kind._check_interaction_cst(estimator, n_features)
    allowed = np.zeros((len(sets), n_features), np.bool_)
    for row, members in zip(allowed, sets, strict=True):
        row[[int(x) for x in members]] = True
    return allowed


MANY_ROWS = 10_000  # early_stopping="auto" stops early where there are more
SCORED_ROWS = 10_000  # of training rows at most, by a scorer


def stops_early(early_stopping: Any, n_rows: int) -> bool:
    """Whether a fit of n_rows rows watches its scores, if no validation rows were passed."""
    return n_rows > MANY_ROWS if early_stopping == "auto" else bool(early_stopping)


def refuse_refit(estimator: Any, X_val: Any) -> None:
    """Raise a ValueError if no rows of X would be set aside, or rounds be added to others."""
    against = {
        "X_val and y_val": X_val is not None,
        "validation_fraction=None": estimator.validation_fraction is None,
        "warm_start=True": estimator.warm_start,
    }
    if wrong := [name for name, is_so in against.items() if is_so]:
        raise ValueError(
            "refit=True grows all rounds anew, with the rows of X that early stopping had set "
            f"aside, which does not go with {', '.join(wrong)}: leave that out, or set refit=False"
        )


def most_leaves(estimator: Any) -> tuple[int, int]:
    """The most levels below the root, and the most leaves."""
    limits = estimator.max_depth, estimator.max_leaf_nodes
    depth, leaves = (UNLIMITED if n is None else min(int(n), UNLIMITED) for n in limits)
    return depth, leaves


def validation_rows(n_rows: int, fraction: float | int) -> int:
    """How many rows `set_aside` gives for validation."""
    return int(fraction if isinstance(fraction, Integral) else math.ceil(fraction * n_rows))


def set_aside(
    n_rows: int, fraction: float | int, labels: np.ndarray | None, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """The rows to train on and those to validate on, both ascending; a ValueError if no row would
    be left for one of them.

    labels : class codes, whose shares both parts keep
    seed : scikit-learn sets the same rows aside where it is random_state, an int below 2**32
    """
    if not validation_rows(n_rows, fraction) < n_rows:
        raise ValueError(
            f"validation_fraction={fraction} leaves no rows to train on: there are {n_rows}; set "
            "early_stopping=False, or pass X_val and y_val"
        )
    drawn = np.random.RandomState(seed % 2**32).randint(np.iinfo(np.uint32).max, dtype=np.uint64)
    train, validation = train_test_split(
        np.arange(n_rows), test_size=fraction, stratify=labels, random_state=int(drawn)
    )
    return np.sort(train), np.sort(validation)


def groups_aside(
    groups: np.ndarray, fraction: float | int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """As `set_aside`, but the rows i64[n] of whole groups, drawn by a hash of the seed from those
    i32[N] that are there; the fraction counts groups."""
    present, number = np.unique(groups, return_inverse=True)
    n_held = validation_rows(len(present), fraction)
    if not n_held < len(present):
        raise ValueError(
            f"validation_fraction={fraction} leaves no groups to train on: there are "
            f"{len(present)}; set early_stopping=False, or pass X_val and y_val"
        )
    held = np.isin(number, draw_rows(seed, len(present), n_held))
    return np.flatnonzero(~held), np.flatnonzero(held)


def last_blocks(blocks: np.ndarray, fraction: float | int) -> np.ndarray:
    """Which rows are of the last blocks of time i32[N], bool[N]: of as few as have this fraction of
    the rows."""
    present, number, counts = np.unique(blocks, return_inverse=True, return_counts=True)
    held = np.searchsorted(np.cumsum(counts[::-1]), validation_rows(len(blocks), fraction))
    return np.asarray(number >= len(present) - 1 - held)


def blocks_aside(blocks: np.ndarray, fraction: float | int) -> tuple[np.ndarray, np.ndarray]:
    """As `set_aside`, but the rows i64[n] of the last blocks of time i32[N]."""
    held = last_blocks(blocks, fraction)
    if held.all():
        raise ValueError(
            f"validation_fraction={fraction} leaves no blocks to train on: there are "
            f"{len(np.unique(blocks))}; set early_stopping=False, or pass X_val and y_val"
        )
    return np.flatnonzero(~held), np.flatnonzero(held)


def has_converged(scores: list[float], n_iter_no_change: int, tol: float) -> bool:
    """Whether none of the last scores is higher by more than `tol` than the one before them."""
    if len(scores) <= n_iter_no_change:
        return False
    before = scores[-n_iter_no_change - 1] + tol
    return not any(score > before for score in scores[-n_iter_no_change:])
