"""The trees of a forest as estimators of one tree each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from gpuforest.estimators.trees import DecisionTreeClassifier, DecisionTreeRegressor
from gpuforest.inspection.views import one_tree


class Members(Sequence[Any]):
    """`estimators_` of a fitted forest: each tree is made when it is first asked for.

    Parameters
    ----------
    estimator : the forest, with the attributes that its fit sets
    """

    def __init__(self, estimator: Any) -> None:
        self._estimator = estimator
        self._made: dict[int, Any] = {}

    def __len__(self) -> int:
        return int(self._estimator.forest_.n_trees)

    def __getitem__(self, index: Any) -> Any:
        places = range(len(self))[index]
        return [self._get(i) for i in places] if isinstance(places, range) else self._get(places)

    def __repr__(self) -> str:
        return f"<{len(self)} trees>"

    def _get(self, tree: int) -> Any:
        if tree not in self._made:
            self._made[tree] = member(self._estimator, tree)
        return self._made[tree]


def template(estimator: Any) -> Any:
    """The DecisionTreeClassifier or DecisionTreeRegressor, not fitted, of a fitted forest's trees.

    It has the parameters that both know but `class_weight`, which counts in the forest's bags.
    """
    coding = estimator.forest_.coding
    is_classes = coding.is_classes or coding.several
    kind = DecisionTreeClassifier if is_classes else DecisionTreeRegressor
    shared = set(kind._get_param_names()) - {"class_weight", "random_state"}
    grown_by = estimator._growing(estimator.n_features_in_)
    params = {k: v for k, v in grown_by.items() if k in shared}
    return kind(**params, random_state=estimator.seed_)


def member(estimator: Any, tree: int) -> Any:
    """A tree of a fitted forest as a fitted estimator, which shares edges and leaf table."""
    found, forest = template(estimator), one_tree(estimator.forest_, tree)
    found._keep(replace(forest, coding=replace(forest.coding, votes=False)))
    for name in ("criterion_", "backend_", "n_features_in_", "feature_names_in_"):
        if hasattr(estimator, name):  # there are no names without a frame
            setattr(found, name, getattr(estimator, name))
    return found
