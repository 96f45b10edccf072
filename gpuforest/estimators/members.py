"""The trees of a forest as estimators of one tree each."""

from __future__ import annotations

from typing import Any

from gpuforest.common.hashing import GOLDEN
from gpuforest.estimators.trees import DecisionTreeClassifier, DecisionTreeRegressor
from gpuforest.explain.views import one_tree

OWN = {"class_weight", "random_state"}  # class weights count in the forest's bags


def members(estimator: Any) -> list[Any]:
    """`estimators_` of a fitted forest: its trees as fitted estimators.

    They share the forest's edges, its leaf table and what follows from them. Each has a
    `random_state` by which the same tree grows again from the rows of its bag.
    """
    unfitted, forest = template(estimator), estimator.forest_.unweighted
    names = ("criterion_", "backend_", "n_features_in_", "feature_names_in_")
    shared = {name: getattr(estimator, name) for name in names if hasattr(estimator, name)}
    params, kind = unfitted.get_params(deep=False), type(unfitted)
    trees = []
    for t in range(forest.n_trees):
        # a single tree's key under this seed is that of the forest's tree t, see `hashing`
        tree = kind(**{**params, "random_state": (forest.seed + t * GOLDEN) % 2**64})
        vars(tree).update(shared)  # there are no feature names without a frame
        tree._keep(one_tree(forest, t))
        tree.seed_ = tree.random_state
        trees.append(tree)
    return trees


def shared_params(kind: Any, params: dict[str, Any]) -> dict[str, Any]:
    """Those of a forest's parameters that each of its trees is given."""
    known = set(kind._get_param_names()) - OWN
    return {name: value for name, value in params.items() if name in known}


def kind_of(is_classes: bool) -> Any:
    """The class of a forest's trees."""
    return DecisionTreeClassifier if is_classes else DecisionTreeRegressor


def template(estimator: Any) -> Any:
    """The DecisionTreeClassifier or DecisionTreeRegressor, not fitted, of a fitted forest's trees.

    It has the parameters that both know but `class_weight`, which counts in the forest's bags.
    """
    coding = estimator.forest_.coding
    kind = kind_of(bool(coding.is_classes or coding.several))
    grown_by = estimator._tree_params() | vars(estimator._settings(estimator.n_features_in_))
    return kind(**shared_params(kind, grown_by), random_state=estimator.seed_)
