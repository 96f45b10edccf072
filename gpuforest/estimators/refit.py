"""A fit replaces the model that an estimator has when it has succeeded, and not before."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

T = TypeVar("T")


def unfitted(estimator: Any) -> dict[str, Any]:
    """The attributes that do not come from a fit."""
    return {n: v for n, v in vars(estimator).items() if not n.endswith("_")}


@contextmanager
def replacing(estimator: T) -> Iterator[T]:
    """A copy of the estimator without what earlier fits set, for a fit inside; the estimator then
    gets all that the copy has, at once. Until then, and after an error or an interrupt, it keeps
    its model, with which other threads may predict meanwhile. An estimator without a model is
    fitted itself, and an error leaves it as it was."""
    before = dict(vars(estimator))
    if len(before) == len(unfitted(estimator)):
        try:
            yield estimator
        except BaseException:
            estimator.__dict__ = before
            raise
        return
    fitted = object.__new__(type(estimator))
    fitted.__dict__ = unfitted(estimator)
    yield fitted
    estimator.__dict__ = unfitted(estimator) | vars(fitted)


def as_it_is(estimator: T) -> T:
    """An estimator with the same attributes, which keeps them where a fit in another thread
    replaces the other's."""
    same = object.__new__(type(estimator))
    same.__dict__ = vars(estimator)
    return same
