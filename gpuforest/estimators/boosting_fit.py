"""What a fit of boosting needs besides trees: constraints, limits, and the scores of its rounds."""

import math
import warnings
from copy import copy
from dataclasses import dataclass, replace
from numbers import Integral
from types import SimpleNamespace
from typing import Any

import numpy as np
from sklearn.metrics import check_scoring
from sklearn.model_selection import train_test_split
from sklearn.utils.validation import _check_monotonic_cst

from gpuforest.backends import base, booster
from gpuforest.backends.rows import draw_rows, on_host
from gpuforest.common import elementary
from gpuforest.core import bins, criteria
from gpuforest.core.forest import Forest
from gpuforest.core.target import CheckedTarget
from gpuforest.data import arrays, binned, target_statistics, validation
from gpuforest.estimators import capabilities, fit_scope, settings
from gpuforest.estimators.task import On, Rows, host_target
from gpuforest.growing import boosted, edges, predict, rounds
from gpuforest.kernels.gradients import host_losses, ranking
from gpuforest.kernels.gradients.losses import Loss


@dataclass(frozen=True, eq=False)
class BoostingPlan:
    """What rounds grow from, the rows that train and judge, and whether scores may stop the fit."""

    boosting: booster.Boosting
    backend: base.Backend
    train: Rows
    validation: Rows | None
    stops: bool


def checked(estimator: Any, rows: Rows, y: Any, backend: base.Backend) -> Rows:
    """The rows with their target on the host, as the loss takes it."""
    target = estimator._task.check(y, rows.n_rows, On(criteria.CRITERIA["squared_error"], backend))
    columns, classes = host_target(target), target.classes
    numbers = columns[:, 0] if columns.shape[1] == 1 else columns
    return replace(rows, target=CheckedTarget([*columns.T] if classes else numbers, classes))


def read_held(
    estimator: Any, given: binned.FitInput, train: Rows, loss: Loss, backend: base.Backend
) -> Rows:
    """The rows to validate on that were passed, checked."""
    known = {**train.categories, **train.statistics}
    X = validation.check_table(estimator, given.X, backend, known)
    weight = arrays.to_host(given.sample_weight, "sample_weight_val")
    weight = validation.check_weights(weight, X.shape[0])
    rows = replace(train, X=X, weight=weight, groups=None, blocks=None, offset=None)
    rows = exposed(estimator, checked(estimator, rows, given.y, backend), given.exposure)
    if (given.init_score is None) != (train.offset is None):
        raise ValueError("pass init_score and init_score_val, or none of the two")
    rows = with_offset(rows, given.init_score, loss)
    if train.classes is None or rows.classes is None:
        return rows
    seen, labels = set(train.classes.tolist()), rows.classes
    if unknown := [label for label in labels.tolist() if label not in seen]:
        raise ValueError(f"y contains previously unseen labels: {unknown}")
    codes = np.asarray(np.searchsorted(train.classes, labels)[rows.y])
    return replace(rows, target=CheckedTarget([codes], [train.classes]))


def counted(rows: Rows, backend: base.Backend) -> Rows:
    """The rows of positive weight."""
    if rows.weight is None or rows.weight.all():
        return rows
    return rows.take(np.flatnonzero(rows.weight), backend)


def weigh(estimator: Any, rows: Rows) -> np.ndarray | None:
    """Weights f64[N] of rows: the weights passed, times class weights."""
    by_class = getattr(estimator, "class_weight", None)
    if by_class is None:
        return rows.weight
    return settings.check_some_weight(settings.row_weights_of(by_class, rows.target), rows.weight)


def on_host_alone(estimator: Any, given: binned.FitInput, backend: base.Backend) -> list[str]:
    """What of a fit has no kernels for devices."""
    if backend.on_host:
        return []
    y, shape, found = given.y, np.shape(given.y), list[str]()
    if given.groups is not None and estimator.subsample < 1:
        found += ["subsample of groups"]
    if loss_of(estimator, 0).on_host:
        found += ["loss of this kind"]
    if len(shape) == 2 and shape[1] > 1:
        found += ["boosting of several outputs"]
    elif estimator.multi_strategy == "multi_output_tree":
        on = On(criteria.CRITERIA["squared_error"], backend)
        classes = estimator._task.check(y, len(y), on).classes
        if classes is not None and len(classes[0]) > 2:
            found += ["trees for several classes"]
    return found


def loss_of(estimator: Any, n_classes: int, n_outputs: int = 1, seed: int = 0) -> Loss:
    """The loss that parameters name; n_classes: 0 for regression."""
    name, quantile, spread = estimator.loss, estimator.quantile, getattr(estimator, "scale", 1.0)
    if callable(name):
        return host_losses.GivenLoss.of_link(
            name, getattr(estimator, "link", "identity"), n_classes
        )
    if np.ndim(quantile):
        return host_losses.Several.of_quantiles(quantile)
    if name in ranking.NAMES:
        return ranking.RankingLoss(name, seed=seed)
    if name == "coxph":
        return host_losses.ProportionalHazards(name)
    if name in host_losses.AFT:
        return host_losses.AcceleratedFailure(name, spread=float(spread))
    loss = Loss.of(name, quantile, n_classes, float(getattr(estimator, "power", 1.5)))
    return loss if n_outputs == 1 else host_losses.Several.of_outputs(loss, n_outputs)


EXPOSED = {"poisson": 1.0, "gamma": 2.0}  # powers of the mean that variances follow


def exposed(estimator: Any, rows: Rows, exposure: Any) -> Rows:
    """Rows whose targets are per unit of exposure f64[N], which their weights account for."""
    if exposure is None:
        return rows
    known = EXPOSED | {"tweedie": getattr(estimator, "power", 1.5)}
    if estimator.loss not in known:
        raise ValueError(f"exposure is for the losses {', '.join(known)}: leave it out")
    exposure = numbers_of_rows(exposure, rows.n_rows, "exposure")[:, 0]
    if not (exposure > 0).all():
        raise ValueError("exposure must be positive: leave rows of exposure 0 out")
    more = 2.0 - known[estimator.loss]
    factor = exposure if more == 1 else elementary.exp(more * elementary.log(exposure))
    weight = rows.weight
    if more > 0:
        weight = factor if weight is None else weight * factor
    return replace(rows, weight=weight, target=CheckedTarget(rows.y / exposure, None))


def numbers_of_rows(values: Any, n_rows: int, name: str, n_columns: int = 1) -> np.ndarray:
    """Finite numbers f64[N, n_columns] that users pass for rows."""
    numbers = np.asarray(arrays.to_host(values, name), np.float64)
    if numbers.shape not in {(n_rows, n_columns), (n_rows,) if n_columns == 1 else ()}:
        shape = (n_rows,) if n_columns == 1 else (n_rows, n_columns)
        raise ValueError(f"{name} has shape {numbers.shape}: it must have shape {shape}")
    if not np.isfinite(numbers).all():
        raise ValueError(f"{name} has values that are NaN or infinite")
    return numbers.reshape(n_rows, n_columns)


def with_offset(rows: Rows, init_score: Any, loss: Loss) -> Rows:
    """Rows with their raw predictions before the first round."""
    if init_score is None:
        return rows
    return replace(rows, offset=numbers_of_rows(init_score, rows.n_rows, "init_score", loss.n_raw))


def offset_of(coding: Any, init_score: Any, n_rows: int) -> np.ndarray | None:
    """Raw predictions f64[N, K] before the first round, of rows to predict."""
    if coding.has_offset != (init_score is not None):
        raise ValueError(
            "this model was fitted with init_score: pass that of the rows to predict"
            if coding.has_offset
            else "this model was fitted without init_score: pass none to predict"
        )
    if init_score is None:
        return None
    return numbers_of_rows(init_score, n_rows, "init_score", coding.n_values)


def signs_of(estimator: Any, loss: Loss) -> np.ndarray:
    """Signs i8[F] of monotonic constraints; 0: no constraint."""
    signs = np.asarray(_check_monotonic_cst(estimator, estimator.monotonic_cst), np.int8)
    if signs.any() and loss.is_classes and loss.n_raw > 1:
        raise ValueError("monotonic constraints are not supported for multiclass classification.")
    if signs.any() and loss.n_raw > 1 and estimator.multi_strategy == "multi_output_tree":
        raise ValueError(
            "monotonic_cst bounds trees of one output: set multi_strategy='one_output_per_tree', "
            "or monotonic_cst=None"
        )
    return signs


def refuse_many_categories(estimator: Any, categories: bins.Categories) -> None:
    """Raise a ValueError if a feature has more categories than bins."""
    for f, values in categories.items():
        if len(values) > int(estimator.max_bins):
            names = getattr(estimator, "feature_names_in_", None)
            name = f"at index {f}" if names is None else repr(names[f])
            raise ValueError(
                f"Categorical feature {name} is expected to have a cardinality <= "
                f"{estimator.max_bins} but actually has a cardinality of {len(values)}."
            )


def rules_of(estimator: Any, stops: bool) -> dict[str, Any]:
    """The parameters as `Boosting` takes them."""
    depth, leaves = most_leaves(estimator)
    # a note of a round says the loss
    asked = estimator.scoring == "loss" if stops else bool(estimator.verbose)
    asked &= not callable(estimator.loss)  # which says no loss
    return {
        "learning_rate": float(estimator.learning_rate), "l2": float(estimator.l2_regularization),
        "min_rows": int(estimator.min_samples_leaf), "min_hessian": float(estimator.min_hessian),
        "max_depth": depth, "max_leaves": leaves,
        "share": float(estimator.max_features), "subsample": float(estimator.subsample),
        "watched": stops and not asked, "by_loss": asked,
    }  # fmt: skip


class EarlyStopping:
    """Follows the scores of a fit, and says when it stops."""

    def __init__(self, estimator: Any, plan: BoostingPlan, earlier: Any) -> None:
        """`earlier`: the estimator whose model gets more rounds, or None."""
        b, backend, train, held = plan.boosting, plan.backend, plan.train, plan.validation
        self.estimator, self.by_loss = estimator, estimator.scoring == "loss"
        offset, offset_val = (None if rows is None else rows.offset for rows in (train, held))
        self.train_scores, self.validation_scores = list[float](), list[float]()
        baseline = np.zeros(b.loss.n_raw)
        if offset is None:
            baseline = b.loss.baseline(train.y, train.weight)
        self.coding = boosted.BoostedCoding(
            train.classes, np.zeros(1), 1.0, loss=b.loss.for_model(), l2=b.l2, baseline=baseline,
            has_offset=offset is not None, is_vector=b.is_vector,
        )  # fmt: skip
        # raw predictions f64[K, N] before the first round
        self.raw, start = np.empty((b.loss.n_raw, b.n_rows)), baseline[None]
        self.earlier: Forest | None = None
        if earlier is None:
            rounds.warn_of_lost_precision(b, baseline)
            self.raw[:] = baseline[:, None]
            if self.by_loss:  # X may be a copy, which nothing needs more
                plan = replace(plan, train=replace(train, X=None))
        else:
            forest = self.earlier = earlier.forest_
            fit_scope.check_same_model(forest, b.matrix.edges, self.coding)
            values = predict.predict(forest, train.X, backend)
            self.raw[:] = (values if on_host(values) else backend.asnumpy(values)).T
            if forest.coding.has_offset != (offset is not None):
                raise ValueError(
                    "warm_start=True adds rounds to a model: pass init_score if the earlier fit "
                    "had it, and only then"
                )
            self.coding = forest.coding
            self.train_scores = earlier.train_score_.tolist()
            self.validation_scores = earlier.validation_score_.tolist()
        if offset is not None:
            self.raw += offset.T
        self.plan = plan
        if plan.stops and held is not None:
            self.matrix = edges.bin_matrix(held.X, b.matrix.edges, backend)
            if self.earlier is None:
                start = np.repeat(start, len(held.y), axis=0)
            else:
                start = predict.predict(self.earlier, held.X, backend)
            if offset_val is not None:
                start = start + backend.asarray(offset_val)
            self.raw_val = backend.asarray(start)
        self.scored: np.ndarray | None = None  # all of the training rows
        if plan.stops and not self.by_loss and len(train.y) > SCORED_ROWS:
            labels = train.y if b.loss.is_classes else None
            self.scored = set_aside(len(train.y), SCORED_ROWS, labels, b.seed)[1]

    def forest(self, grown: list[booster.Round]) -> Forest:
        """The model of the rounds so far."""
        b = self.plan.boosting
        if not grown:
            assert self.earlier is not None
            return self.earlier
        made = boosted.forest_of(grown, b.matrix.edges, self.coding, b.seed)
        return made if self.earlier is None else boosted.joined(self.earlier, made)

    def stops(self, grown: list[booster.Round]) -> bool:
        """Whether the fit ends after these rounds; their scores are added."""
        if not self.plan.stops:
            return False
        if self.plan.validation is not None and grown:
            b, codes = self.plan.boosting, self.matrix.codes
            last = boosted.forest_of(grown[-1:], b.matrix.edges, self.coding, b.seed)
            trees = range(last.n_trees)
            self.raw_val = self.plan.backend.accumulate(last, codes, trees, None, self.raw_val)
        found = self._losses(grown) if self.by_loss else self._scores()
        self.train_scores.append(found[0])
        self.validation_scores += found[1:]
        scores = self.train_scores if self.plan.validation is None else self.validation_scores
        if self.by_loss and not np.isfinite(scores[-1]) and np.isfinite([0.0, *scores[:-1]]).all():
            warnings.warn(
                "the loss lies beyond float64, so early stopping compares nothing: divide y by a "
                "constant",
                stacklevel=2,
            )
        n, tol = self.estimator.n_iter_no_change, self.estimator.tol
        return len(scores) > n and not any(s > scores[-n - 1] + tol for s in scores[-n:])

    def note(self, grown: list[booster.Round], before: int) -> str:
        """How far the fit is, for people, after rounds `grown` and as many before."""
        train = self.train_scores[-1:]
        if not self.plan.stops and self.plan.boosting.loss.has_value:
            train = self._losses(grown)
        word, sign = ("loss", -1) if self.by_loss or not self.plan.stops else ("score", 1)
        known = [f"{word} {sign * score:.6g}" for score in train]
        known += [f"validation {word} {sign * score:.6g}" for score in self.validation_scores[-1:]]
        return ", ".join([f"round {before + len(grown)} of {self.estimator.max_iter}", *known])

    def _losses(self, grown: list[booster.Round]) -> list[float]:
        """The negative losses of the training rows and, if there are some, of the held rows."""
        loss, train, held = self.plan.boosting.loss, self.plan.train, self.plan.validation
        mean = grown[-1].loss if grown else None
        if mean is None:
            mean = self.plan.backend.mean_loss(loss, train.y, self.raw, train.weight)
        found = [-mean]
        if held is not None:
            raw = np.ascontiguousarray(self.plan.backend.asnumpy(self.raw_val).T)
            found.append(-self.plan.backend.mean_loss(loss, held.y, raw, held.weight))
        return found

    def _scores(self) -> list[float]:
        """The same by the user's scorer, which calls the estimator's predictions."""
        train, raw, backend = self.plan.train, self.raw.T, self.plan.backend
        if self.scored is not None:
            train, raw = train.take(self.scored, backend), raw[self.scored]
        found = [self._score(train, raw)]
        if self.plan.validation is not None:
            found.append(self._score(self.plan.validation, backend.asnumpy(self.raw_val)))
        return found

    def _score(self, rows: Rows, raw: np.ndarray) -> float:
        estimator = self.estimator
        classes = self.coding.classes
        y = estimator._task.shown(rows.y) if classes is None else classes[rows.y]
        scorer = check_scoring(estimator, estimator.scoring)
        weight = {} if rows.weight is None else {"sample_weight": rows.weight}
        predicting = replace_predictions(estimator, self.coding, raw)  # no tree is walked
        return float(scorer(predicting, rows.X, y, **weight))


def replace_predictions(estimator: Any, coding: boosted.BoostedCoding, raw: np.ndarray) -> Any:
    """A copy of an estimator whose raw predictions are known, whatever rows it gets."""
    predicting = copy(estimator)
    predicting.__dict__.update(
        _raw_predict=lambda X, init_score: raw,
        classes_=coding.classes,
        forest_=SimpleNamespace(coding=coding),
    )
    return predicting


def interacting(estimator: Any, n_features: int) -> np.ndarray:
    """The sets of features that may meet on a path, bool[n, F]; bool[0, F]: all may."""
    asked = estimator.interaction_cst
    sets = () if asked is None else settings.interacting_sets(estimator, n_features)
    allowed = np.zeros((len(sets), n_features), np.bool_)
    for row, members in zip(allowed, sets, strict=True):
        row[list(members)] = True
    return allowed


def apart(matrix: bins.BinnedMatrix, data: binned.BinnedData) -> bins.BinnedMatrix:
    """The matrix whose missing codes boosting on the CPU may change: a copy if they are those of
    the data, which other fits read."""
    missing = matrix.edges.missing_code
    if not np.may_share_memory(matrix.codes, data.by_feature) or not any(
        (column == missing).any() for column in data.by_feature
    ):
        return matrix
    return replace(matrix, codes=np.array(matrix.codes, order="K"))


MANY_ROWS = 10_000  # early_stopping="auto" stops early where there are more
SCORED_ROWS = 10_000  # of training rows at most, by a scorer


def stops_early(estimator: Any, n_rows: int) -> bool:
    """Whether a fit of n_rows rows watches its scores, if no validation rows were passed."""
    if estimator.early_stopping != "auto":
        return bool(estimator.early_stopping)
    return n_rows > MANY_ROWS and not (callable(estimator.loss) and estimator.scoring == "loss")


def refuse_unknown_loss(estimator: Any, stops: bool) -> None:
    """Raise a ValueError if early stopping would judge by a loss that only has derivatives."""
    if stops and callable(estimator.loss) and estimator.scoring == "loss":
        raise ValueError(
            "a function as loss says no loss of a row, by which early stopping could judge: pass "
            "scoring, such as 'neg_mean_squared_error', or early_stopping=False"
        )


def refuse_refit(estimator: Any, X_val: Any) -> None:
    """Raise a ValueError if no rows of X would be set aside, or rounds be added to others."""
    against = {
        "X_val and y_val": X_val is not None,
        "validation_fraction=None": estimator.validation_fraction is None,
        "warm_start=True": estimator.warm_start,
    }
    if wrong := [name for name, is_so in against.items() if is_so]:
        raise ValueError(capabilities.ANEW.format(against=", ".join(wrong)))


def most_leaves(estimator: Any) -> tuple[int, int]:
    """The most levels below the root, and the most leaves."""
    limits, most = (estimator.max_depth, estimator.max_leaf_nodes), settings.UNLIMITED
    depth, leaves = (most if n is None else min(int(n), most) for n in limits)
    return depth, leaves


def validation_rows(n_rows: int, fraction: float) -> int:
    """How many rows `set_aside` gives for validation."""
    return int(fraction if isinstance(fraction, Integral) else math.ceil(fraction * n_rows))


Parts = tuple[np.ndarray, np.ndarray]  # rows to train on, and rows to validate on, both ascending


def set_aside(n_rows: int, fraction: float, labels: np.ndarray | None, seed: int) -> Parts:
    """Rows drawn by chance for both parts, which keep the shares of the class codes `labels`;
    scikit-learn sets the same rows aside where the seed, below 2**32, is its random_state."""
    refuse_all(fraction, "rows", n_rows, validation_rows(n_rows, fraction))
    drawn = np.random.RandomState(seed % 2**32).randint(np.iinfo(np.uint32).max, dtype=np.uint64)
    train, validation = train_test_split(
        np.arange(n_rows), test_size=fraction, stratify=labels, random_state=int(drawn)
    )
    return np.sort(train), np.sort(validation)


def refuse_all(fraction: float, units: str, n: int, n_held: int) -> None:
    """Raise a ValueError if all of n rows, groups or blocks would be set aside."""
    if n_held >= n:
        raise ValueError(
            f"validation_fraction={fraction} leaves no {units} to train on: there are {n}; set "
            "early_stopping=False, or pass X_val and y_val"
        )


def rows_aside(rows: Rows, fraction: float, loss: Loss, seed: int) -> Parts:
    """As `set_aside`: the last blocks of time, whole groups, or rows. Of survival both parts have
    rows whose event came, or it is a ValueError."""
    parts = parts_of(rows, fraction, strata := loss.strata(rows.y), seed)
    for part, word in zip(parts, ("train", "judge"), strict=True):
        if strata is not None and not loss.is_classes and not strata[part].any():
            raise ValueError(
                f"all rows that {word} are censored where validation_fraction={fraction}: set "
                "early_stopping=False or another validation_fraction, or pass X_val and y_val"
            )
    return parts


def parts_of(rows: Rows, fraction: float, strata: np.ndarray | None, seed: int) -> Parts:
    """See `rows_aside`."""
    if rows.blocks is not None:
        if isinstance(rows.X, binned.BinnedData) and rows.X.edges.statistics:
            raise ValueError(target_statistics.LATER)
        held = last_blocks(rows.blocks, fraction)
        n = len(np.unique(rows.blocks))
        refuse_all(fraction, "blocks", n, n if held.all() else 0)
        return np.flatnonzero(~held), np.flatnonzero(held)
    if rows.groups is not None:
        return groups_aside(rows.groups, fraction, seed)
    if strata is not None and strata.dtype == bool and np.bincount(strata, minlength=2).min() < 2:
        strata = None  # no two rows are censored
    return set_aside(rows.n_rows, fraction, strata, seed)


def groups_aside(groups: np.ndarray, fraction: float, seed: int) -> Parts:
    """As `set_aside`, for whole groups i32[N], drawn by a hash of the seed."""
    present, number = np.unique(groups, return_inverse=True)
    n_held = validation_rows(len(present), fraction)
    refuse_all(fraction, "groups", len(present), n_held)
    held = np.isin(number, draw_rows(seed, len(present), n_held))
    return np.flatnonzero(~held), np.flatnonzero(held)


def last_blocks(blocks: np.ndarray, fraction: float) -> np.ndarray:
    """Mask bool[N] of the newest blocks i32[N] that hold at least this fraction of the rows."""
    present, number, counts = np.unique(blocks, return_inverse=True, return_counts=True)
    held = np.searchsorted(np.cumsum(counts[::-1]), validation_rows(len(blocks), fraction))
    return np.asarray(number >= len(present) - 1 - held)
