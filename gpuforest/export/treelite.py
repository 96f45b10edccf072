"""A fitted model as one of treelite, for nvForest, FIL and TL2cgen."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from gpuforest.export.model_tables import Tables

LINKS = {"softmax": "softmax", "logistic": "sigmoid", "exp": "exponential"}


def to_treelite(estimator: Any) -> Any:
    """A fitted estimator as a model of treelite that predicts the same.

    Thresholds and leaves are 64-bit numbers. If a runtime adds up the trees in their order and in
    64 bits, as treelite's GTIL does, probabilities, means and raw predictions of boosting are equal
    to the last bit: the first trees of a boosted model are one leaf each, its baseline, because
    treelite would add that last. GTIL rounds boosting's probabilities of many classes to 32 bits.

    The model takes numbers, for categorical features the codes of `gpuforest.category_codes`, and
    knows classes by their numbers in `classes_`.

    An ImportError: the package treelite is absent. A ValueError: not fitted; AdaBoost, whose trees
    do not count alike; splits by sums of features. A TypeError: an estimator of another kind.
    """
    try:
        from treelite.model_builder import ModelBuilder
    except ImportError as error:
        raise ImportError(
            "to_treelite needs the package treelite: pip install 'gpuforest[treelite]'"
        ) from error
    tables = Tables(estimator, "a treelite model")
    tables.forest.coding.refuse_priors("treelite's forests")
    if tables.link == "votes":
        raise ValueError(
            "the trees of AdaBoost do not count alike, and treelite's do: use to_onnx, or a forest"
        )
    builder: Any = ModelBuilder(
        threshold_type="float64", leaf_output_type="float64", **_facts(tables)
    )
    begin_with = [] if tables.baseline is None else tables.baseline.tolist()
    for value in begin_with if tables.each_adds_one or not begin_with else [begin_with]:
        builder.start_tree()
        builder.start_node(0)
        builder.leaf(value)
        builder.end_node()
        builder.end_tree()
    values = _vectors(tables)
    for begin, end in pairwise(tables.offsets.tolist()):
        _add_tree(builder, tables, values, begin, end)
    return builder.commit()


def _facts(tables: Tables) -> dict[str, Any]:
    """What treelite knows of a model besides its nodes."""
    from treelite.model_builder import Metadata, PostProcessorFunc, TreeAnnotation

    several = [len(c) for c in tables.classes]
    K, T, widest = tables.n_sums, tables.n_trees, max(several, default=1)
    if tables.each_adds_one:
        T += K
        task = {"logistic": "kBinaryClf", "softmax": "kMultiClf"}.get(tables.link, "kRegressor")
        n_classes, shape = [K], (1, 1)
        targets, classes = [0] * T, [t % K for t in range(T)]
    elif several:
        T += tables.baseline is not None
        task, n_classes, shape = "kMultiClf", several, (len(several), widest)
        targets, classes = [-1 if len(several) > 1 else 0] * T, [-1 if widest > 1 else 0] * T
    else:
        task, n_classes, shape = "kRegressor", [1] * K, (K, 1)
        targets, classes = [-1 if K > 1 else 0] * T, [0] * T
    return {
        "metadata": Metadata(
            num_feature=tables.n_features,
            task_type=task,
            average_tree_output=tables.divisor is not None,
            num_target=len(n_classes),
            num_class=n_classes,
            leaf_vector_shape=shape,
        ),
        "tree_annotation": TreeAnnotation(num_tree=T, target_id=targets, class_id=classes),
        "postprocessor": PostProcessorFunc(name=LINKS.get(tables.link, "identity")),
        "base_scores": [0.0] * len(n_classes) * max(n_classes),
    }


def _vectors(tables: Tables) -> list[Any]:
    """What each row of values is in treelite: a number, or a list with a part for each output,
    all as long as the longest."""
    values = tables.values
    if len(tables.classes) > 1:
        values = tables.forest.coding.stacked(values).reshape(len(values), -1)
    return list((values[:, 0] if values.shape[1] == 1 else values).tolist())


def _add_tree(builder: Any, tables: Tables, values: list[Any], begin: int, end: int) -> None:
    """Add the tree with the nodes begin .. end - 1."""
    parts = tables.feature, tables.threshold, tables.missing_left, tables.left - begin, tables.leaf
    nodes = zip(*(part[begin:end].tolist() for part in parts), strict=True)
    builder.start_tree()
    for number, (feature, threshold, missing_left, left, leaf) in enumerate(nodes):
        builder.start_node(number)
        codes = tables.members.get(begin + number)
        ways = {"left_child_key": left, "right_child_key": left + 1, "default_left": missing_left}
        if feature < 0:
            builder.leaf(values[leaf])
        elif codes is None:
            builder.numerical_test(feature_id=feature, threshold=threshold, opname="<=", **ways)
        else:
            builder.categorical_test(
                feature_id=feature,
                category_list=codes.tolist(),
                category_list_right_child=False,
                **ways,
            )
        builder.end_node()
    builder.end_tree()
