"""scikit-learn's callbacks (from 1.9 on): the fit is a task, and each tree a task in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar, cast

from gpuforest.common import progress

F = TypeVar("F", bound=Callable[..., Any])

try:
    from sklearn import callback
except ImportError:  # scikit-learn before 1.9
    callback = None


class NoCallbacks:
    """A base class instead of the mixin: `object` itself cannot be a base before another."""


CallbackSupport: Any = NoCallbacks if callback is None else callback.CallbackSupportMixin


def with_callbacks(method: F) -> F:
    """A fit that tears its callbacks down, also where it fails."""
    return method if callback is None else cast(F, callback.with_callbacks(method))


GROWING = "growing"  # the stage that reports trees


@contextmanager
def notified(estimator: Any, n_trees: int, **data: Any) -> Iterator[None]:
    """Notify an estimator's callbacks, where it has some, of the fit inside and of its trees.

    data : X, y and metadata, as the callbacks get them
    """
    has_some = hasattr(estimator, "_skl_callbacks") or hasattr(estimator, "_parent_callback_ctx")
    if not has_some:
        yield
        return
    fit = estimator._init_callback_context(max_subtasks=n_trees)
    fit.call_on_fit_task_begin(estimator=estimator, **data)
    n_notified = 0

    def tree_grown(stage: str, done: int, total: int) -> None:
        nonlocal n_notified
        while stage == GROWING and total == n_trees and n_notified < done:
            n_notified += 1
            tree = fit.subcontext(task_name="tree").call_on_fit_task_begin(estimator=estimator)
            tree.call_on_fit_task_end(estimator=estimator)

    with progress.also(tree_grown):
        yield
    fit.call_on_fit_task_end(estimator=estimator, **data, reconstruction_attributes={})
