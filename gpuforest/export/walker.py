"""The walk over a tree's nodes that texts, rules, Python, Graphviz, pictures and reports share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any

import numpy as np

from gpuforest.common.text import one_line
from gpuforest.core.forest import Forest
from gpuforest.core.model import Model, model_of
from gpuforest.export import conditions
from gpuforest.export.conditions import Condition, Number
from gpuforest.export.documentation import documented
from gpuforest.export.views import TreeView


@dataclass(frozen=True, eq=False)
class Node:
    """A node of a tree.

    number : int, as `apply` and `decision_path` number it
    depth : int, levels below the root
    parent : int, or None: the root
    children : numbers of the nodes below it; none: a leaf
    rule : str, what leads here from the parent, in words; "": the root
    n_samples : int, the weight of its rows, which is their count where weights count rows
    value : f64[n_outputs, max_n_classes], shares of the classes, or means
    prediction : the class or the number for a row that ends here; of several outputs a tuple
    conditions : what leads here from the root, one condition a feature
    branches : the conditions that lead to the children; every row meets exactly one
    impurity : float, as of `tree_`; None: of a boosted model

    In a boosted model `value` and `prediction` are what a leaf adds to the raw prediction, with the
    learning rate; above leaves the mean of the leaves below, weighted by hessians. `n_samples`
    counts rows. Other models have None for:

    gain : float, the difference of G^2 / (H + l2_regularization) that the split makes, where G and
        H are the sums of gradients and hessians; None: a leaf
    gradients, hessians : float, their sums over the node's rows
    round : int, the round that grew the tree; the first one is 1
    adds_to : str, what leaves add to, in words, such as "the log odds of b"
    """

    number: int
    depth: int
    parent: int | None
    children: tuple[int, ...]
    rule: str
    n_samples: int
    value: np.ndarray
    prediction: Any
    conditions: tuple[Condition, ...] = field(repr=False)
    branches: tuple[Condition, ...] = field(repr=False)
    impurity: float | None = None
    gain: float | None = None
    gradients: float | None = None
    hessians: float | None = None
    round: int | None = None
    adds_to: str | None = None

    @property
    def is_leaf(self) -> bool:
        return not self.branches

    @property
    def path(self) -> str:
        """The conditions that lead here from the root, in words; "": the root."""
        return conditions.all_of(self.conditions)


@documented
def tree_nodes(
    estimator: Any, tree: int = 0, *, feature_names: Sequence[str] | None = None,
    class_names: Sequence[Any] | None = None,
) -> dict[int, Node]:  # fmt: skip
    """The nodes of a fitted estimator's tree.

    Returns
    -------
    dict, the nodes by number, each before all below it, and its first branch before the others

    Examples
    --------
    >>> from gpuforest import DecisionTreeClassifier, tree_nodes
    >>> tree = DecisionTreeClassifier().fit([[0.0], [1.0], [2.0]], ["a", "a", "b"])
    >>> nodes = tree_nodes(tree, feature_names=["x"])
    >>> nodes[1].rule, nodes[1].prediction, nodes[1].n_samples
    ('x <= 1.5 or missing', 'a', 2)
    """
    return nodes_of(estimator, tree, feature_names, class_names)


def nodes_of(
    estimator: Any, tree: int, feature_names: Sequence[str] | None = None,
    class_names: Sequence[Any] | None = None, max_depth: float = inf,
) -> dict[int, Node]:  # fmt: skip
    """`tree_nodes`, of the upper levels of a tree alone."""
    view = opened(estimator, tree, feature_names)
    forest = view.model.forest
    if forest.baseline is None and forest.combine != "mean":
        # a tree by itself has shares even where the forest counts votes
        forest = replace(forest, combine="mean", tree_weights=None)
        view = TreeView(replace(view.model, forest=forest), tree, feature_names)
    columns: dict[str, Any] = {name: column.tolist() for name, column in view.columns.items()}
    value, adding = view.columns["value"], dict[str, Any]()
    columns |= {"value": list(value), "prediction": value[:, 0, 0].tolist()}
    if forest.baseline is None:
        columns["prediction"] = _predictions(value, class_labels(forest, class_names))
    else:
        coding: Any = forest.coding
        if coding.is_vector:
            columns["prediction"] = [*map(tuple, value[:, :, 0].tolist())]
        adding = {"round": tree // coding.round_trees + 1}
        adding["adds_to"] = raw_words(forest, tree, class_names)
    nodes: dict[int, Node] = {}
    for number, depth, parent, condition, branches in view.walk(max_depth):
        path = () if parent is None else nodes[parent].conditions
        facts = {name: column[number] for name, column in columns.items()}
        if not branches:
            facts.pop("gain", None)
        nodes[number] = Node(
            number=number,
            depth=depth,
            parent=parent,
            children=tuple(child for _, child in branches),
            rule="" if condition is None else condition.words(),
            conditions=path if condition is None else conditions.narrowed(path, condition),
            branches=tuple(way for way, _ in branches),
            **facts,
            **adding,
        )
    return nodes


def opened(estimator: Any, tree: int = 0, feature_names: Sequence[str] | None = None) -> TreeView:
    """One of the trees of a fitted estimator, or of its model."""
    return TreeView(known(estimator), tree, feature_names)


def known(estimator: Any) -> Model:
    """The model of a fitted estimator."""
    return model_of(
        estimator,
        "has no trees of gpuforest's: pass one of its fitted estimators (gpuforest.from_sklearn "
        "converts scikit-learn's)",
    )


def check_not_negative(**options: int | None) -> None:
    """Raise a ValueError that names the first option below 0; options of None are skipped."""
    for name, value in options.items():
        if value is not None and value < 0:
            raise ValueError(f"{name}={value} is negative: pass 0 or more, or None")


def class_labels(forest: Forest, names: Sequence[Any] | None = None) -> list[list[Any]]:
    """The names of the classes of each output, or the classes themselves; [] for numbers."""
    classes = [c.tolist() for c in forest.coding.labels]
    if names is None:
        return classes
    if not classes:
        raise ValueError("class_names are for classes, and this tree predicts numbers: drop them")
    labels = [list(of_output) for of_output in names] if forest.coding.several else [list(names)]
    n_labels, n_classes = [*map(len, labels)], [*map(len, classes)]
    if n_labels != n_classes:
        raise ValueError(
            f"class_names has {', '.join(map(str, n_labels))} names, the tree "
            f"{', '.join(map(str, n_classes))} classes: pass a name for each"
        )
    return labels


def leaf_labels(forest: Forest) -> list[list[Any]]:
    """`class_labels`, if a leaf predicts a class; [] if leaves are numbers, as in boosting."""
    return class_labels(forest) if forest.baseline is None else []


def raw_words(forest: Forest, tree: int, class_names: Sequence[Any] | None = None) -> str:
    """What the leaves of a tree of a boosted model add to, in words."""
    coding: Any = forest.coding
    labels = class_labels(forest, class_names)
    if coding.is_vector:
        return f"the raw predictions of all {'classes' if labels else 'outputs'}"
    if not labels and coding.n_values > 1:
        return f"the raw prediction of output {tree % coding.n_values}"
    if not labels:
        return f"the {'log of the ' * coding.loss.is_log}prediction"
    if coding.n_values == 1:
        second = one_line(labels[0][1]) if len(labels[0]) > 1 else "another class"
        return f"the log odds of {second}"
    return f"the raw prediction of {one_line(labels[0][tree % coding.n_values])}"


def tree_title(forest: Forest, tree: int, class_names: Sequence[Any] | None = None) -> str:
    """The round of a tree of a boosted model, and what it adds to, on one line."""
    coding: Any = forest.coding
    n_rounds, number = forest.n_trees // coding.round_trees, tree // coding.round_trees
    adds_to = raw_words(forest, tree, class_names)
    return f"round {number + 1} of {n_rounds}: leaves add to {adds_to}"


def written(prediction: Any, number: Number = repr) -> str:
    """A prediction on one line."""
    if isinstance(prediction, tuple):
        return ", ".join(written(p, number) for p in prediction)
    return number(prediction) if isinstance(prediction, float) else one_line(prediction)


def _predictions(value: np.ndarray, labels: list[list[Any]]) -> list[Any]:
    """The prediction of each node, from shares or means f64[m, n_outputs, max_n_classes]."""
    if labels:
        best = value.argmax(axis=2).T.tolist()  # the first among equals
        pairs = zip(labels, best, strict=True)
        columns = [[names[i] for i in of_output] for names, of_output in pairs]
    else:
        columns = value[:, :, 0].T.tolist()
    return columns[0] if len(columns) == 1 else list(zip(*columns, strict=True))
