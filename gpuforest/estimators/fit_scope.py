"""What surrounds every fit: the model that it replaces, what it remembers, warm starts, and
scikit-learn's callbacks (from 1.9 on)."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from multiprocessing import parent_process
from operator import attrgetter
from threading import current_thread, main_thread
from typing import Any, TypeVar, cast

import numpy as np
from joblib.parallel import get_active_backend

from gpuforest.common import progress
from gpuforest.core import bins, forest
from gpuforest.core.target import TargetCoding
from gpuforest.core.training import Training
from gpuforest.data import arrays, binned
from gpuforest.estimators.bases import callback

T = TypeVar("T")


def unfitted(estimator: Any) -> dict[str, Any]:
    """The attributes that do not come from a fit."""
    return {n: v for n, v in vars(estimator).items() if not n.endswith("_")}


@contextmanager
def replacing(estimator: T) -> Iterator[T]:
    """A copy of the estimator without what earlier fits set, for a fit inside; the estimator then
    gets all that the copy has, at once. Until then, and after an error or an interrupt, it keeps
    its model, with which other threads may predict. An estimator without a model is fitted itself,
    so that methods which were replaced on it are called; an error leaves it as it was."""
    before, kept = dict(vars(estimator)), unfitted(estimator)
    if len(before) == len(kept):
        try:
            yield estimator
        except BaseException:
            estimator.__dict__ = before
            raise
        return
    fitted = object.__new__(type(estimator))
    fitted.__dict__ = kept
    yield fitted
    estimator.__dict__ = unfitted(estimator) | vars(fitted)


def snapshot(estimator: T) -> T:
    """An estimator with the same attributes, which no fit in another thread replaces."""
    same = object.__new__(type(estimator))
    same.__dict__ = vars(estimator)
    return same


@contextmanager
def fitting(estimator: Any, n_trees: int, given: binned.FitInput) -> Iterator[Any]:
    """The estimator for a fit inside, see `replacing`, whose stages are printed and notified.

    Facts about the fit are kept: the number of X's rows and gpuforest's version as `_training_`,
    and as `_seconds_` how long it took, unless it is one of several that grew the trees. No model
    file or pickle has the seconds, so that those of equal fits are equal.
    """
    metadata = {"sample_weight": given.sample_weight}  # callbacks give all of it to a score
    data = {"X": given.X, "y": given.y, "metadata": metadata}
    printing, notifying = progress.printing(estimator.verbose), notified(estimator, n_trees, **data)
    with printing, notifying, replacing(estimator) as fitted:
        in_part = given.grown or getattr(fitted, "warm_start", False)
        start = time.perf_counter()
        yield fitted
        fitted._training_ = {"rows": arrays.count_rows(given.X), "version": version("gpuforest")}
        if not in_part:
            fitted._seconds_ = time.perf_counter() - start


def same_edges(one: bins.BinEdges, other: bins.BinEdges) -> bool:
    """Whether the same codes mean the same values."""
    arrays_of = attrgetter("values", "offsets", "kinds")
    pairs = zip(arrays_of(one), arrays_of(other), strict=True)
    return one is other or (one.known == other.known and all(np.array_equal(*p) for p in pairs))


def same_coding(one: TargetCoding, other: TargetCoding) -> bool:
    """Whether the same integers mean the same targets."""
    both: Any = [[c.scale, c.centre, c.classes, c.priors, *c.several] for c in (one, other)]
    return len(both[0]) == len(both[1]) and all(map(np.array_equal, *both))


def check_same_model(earlier: forest.Forest, edges: bins.BinEdges, coding: TargetCoding) -> None:
    """Raise a ValueError if new trees cannot join those of an earlier fit: all trees of a forest
    share its bins, classes and fixed point."""
    if not (same_edges(earlier.edges, edges) and same_coding(earlier.coding, coding)):
        raise ValueError(
            "warm_start=True adds trees from the same data, weights and parameters: X or y has "
            "other values now. Fit anew with warm_start=False"
        )


def check_same(earlier: Any, training: Training) -> None:
    """Raise a ValueError if new trees cannot join those of an estimator that was fitted before.
    They must draw the same groups, and as many rows of each class: else rows in its bags would
    count as out of bag."""
    check_same_model(earlier.forest_, training.matrix.edges, training.target.coding)
    drawn = getattr(earlier, "_sampling_", training.sampling)  # not all model files have it
    groups: list[Any] = [drawn.groups, training.sampling.groups]
    if not np.array_equal(*groups):
        raise ValueError(
            "warm_start=True adds trees from the same groups, and they are others now. Fit anew "
            "with warm_start=False"
        )
    ids: list[Any] = [drawn.ids, training.sampling.ids]
    if drawn.rate != training.sampling.rate or not np.array_equal(*ids):
        raise ValueError(
            "warm_start=True adds trees with the same bootstrap, max_samples and row_ids, and they "
            "are others now. Fit anew with warm_start=False"
        )
    if drawn.draws != training.sampling.draws:
        raise ValueError(
            "warm_start=True adds trees that draw as many rows of each class, which are others "
            "now. Fit anew with warm_start=False"
        )


def has_out_of_bag(estimator: Any) -> bool:
    """True if the estimator has the out-of-bag results that its parameters ask for."""
    results = {"oob_score": "oob_score_", "unbiased_importances": "_unbiased_importances_"}
    known = vars(estimator)
    return all(kept in known or not known.get(name, 0) for name, kept in results.items())


F = TypeVar("F", bound=Callable[..., Any])
BAR_STEPS = 100  # of a progress bar, whose time grows with the square of its steps


def with_callbacks(method: F) -> F:
    """A fit that tears its callbacks down, also where it fails."""
    return method if callback is None else cast(F, callback.with_callbacks(method))


def shows_bar(estimator: Any) -> bool:
    """Whether `verbose` draws a progress bar: on a terminal on which nothing else draws."""
    if callback is None or not sys.stdout.isatty() or progress.is_heard():
        return False
    given = vars(estimator).get("_skl_callbacks", ())
    is_inner = hasattr(estimator, "_parent_callback_ctx") or parent_process() is not None
    if is_inner or any(isinstance(one, callback.ProgressBar) for one in given):
        return False
    return current_thread() is main_thread() and not get_active_backend()[0].nesting_level


@contextmanager
def notified(estimator: Any, n_trees: int, **data: Any) -> Iterator[None]:
    """Notify an estimator's callbacks, where it has some, of the fit inside and of its trees. Where
    `verbose` asks for it, scikit-learn's progress bar is one. `data`: their X, y and metadata."""
    given = vars(estimator).get("_skl_callbacks", ())
    bar = [callback.ProgressBar()] if estimator.verbose and shows_bar(estimator) else []
    if not (given or bar or hasattr(estimator, "_parent_callback_ctx")):
        yield
        return
    only_bars = all(isinstance(one, callback.ProgressBar) for one in (*given, *bar))
    n_tasks = min(n_trees, BAR_STEPS) if only_bars else n_trees
    estimator.set_callbacks(*given, *bar)
    fit = estimator._init_callback_context(max_subtasks=n_tasks)
    estimator.set_callbacks(*given)  # the context keeps the bar
    fit.call_on_fit_task_begin(estimator=estimator, **data)
    n_notified = 0

    def tree_grown(stage: str, done: int, total: int) -> None:
        nonlocal n_notified
        while stage == "growing" and total == n_trees and n_notified < done * n_tasks // n_trees:
            n_notified += 1
            tree = fit.subcontext(task_name="tree").call_on_fit_task_begin(estimator=estimator)
            tree.call_on_fit_task_end(estimator=estimator)

    with progress.also(tree_grown):
        yield
    fit.call_on_fit_task_end(estimator=estimator, **data, reconstruction_attributes={})
