"""The part of a report about the model: what it is, its trees, and what they split on."""

from __future__ import annotations

import platform
from importlib.metadata import version
from typing import Any

import numpy as np
from sklearn.base import is_classifier, is_regressor

from gpuforest.common.errors import BackendError
from gpuforest.estimators.memory import estimate_memory
from gpuforest.export.report.charts import bar_cell
from gpuforest.export.report.html import (
    Html,
    figures,
    h,
    joined,
    listed,
    name,
    scored,
    section,
    shortened,
    table,
)
from gpuforest.export.report.pictures import error_picture, histogram_picture
from gpuforest.export.report.trees import tree_details
from gpuforest.inspection.model_facts import (
    changed_settings,
    feature_names,
    forest_digest,
    kept_curves,
    measure_of,
    n_bytes,
    rounds_facts,
    rounds_rows,
    tree_leaves,
)
from gpuforest.inspection.paths import tree_depths
from gpuforest.inspection.report.effects import PERMUTED_FEATURES, REPEATS
from gpuforest.inspection.report.results import Results
from gpuforest.nodes import is_leaf

SHOWN_FEATURES = 20


def model_section(estimator: Any) -> Html:
    """What was trained, on what, and how."""
    facts = [*_training_facts(estimator), *_forest_facts(estimator)]
    settings = changed_settings(estimator)
    shown = [(h("code", key), h("code", shortened(repr(v), 300))) for key, v in settings.items()]
    told = (
        table(["parameter", "value"], shown, class_="wide")
        if shown
        else h("p", "All parameters have their defaults.")
    )
    return section(
        "model",
        "Model",
        table([], facts, class_="facts"),
        h("h3", "Settings that are not the defaults"),
        told,
    )


def _training_facts(estimator: Any) -> list[tuple[Any, Any]]:
    """Facts about the fit; a model from a file keeps few of them."""
    known = getattr(estimator, "_training_", {})
    source, names = getattr(estimator, "source_", {}), feature_names(estimator)
    edges, F = estimator.forest_.edges, estimator.n_features_in_
    rows, seconds = known.get("rows"), getattr(estimator, "_seconds_", None)
    n_kinds = len(edges.categories)
    facts: list[tuple[str, Any]] = [
        ("training rows", None if rows is None else f"{rows:,}"),
        ("seconds of training", None if seconds is None else f"{seconds:.2f}"),
        ("memory of training", _memory(estimator, rows)),
        ("trained on the backend", getattr(estimator, "backend_", None)),
        ("trained with gpuforest", known.get("version")),
    ]
    unknown = [key for key, value in facts if value is None]
    return [
        ("estimator", type(estimator).__name__),
        ("task", _task(estimator)),
        *([("target", name(source["target"]))] if "target" in source else []),
        ("features", joined([f"{F:,}, of which {n_kinds:,} categorical: ", listed(names)])),
        *_class_facts(estimator),
        *(fact for fact in facts if fact[1] is not None),
        *([("not recorded", ", ".join(unknown))] if unknown else []),
        ("random seed", str(estimator.seed_)),
    ]


def _task(estimator: Any) -> str:
    n = f" of {estimator.n_outputs_} outputs" * (estimator.n_outputs_ > 1)
    if is_classifier(estimator):
        return f"classification{n}"
    if is_regressor(estimator):
        return f"regression{n}"
    return "anomaly detection" if hasattr(estimator, "score_samples") else "embedding"


def _class_facts(estimator: Any) -> list[tuple[Any, Any]]:
    if not is_classifier(estimator):
        return []
    several = estimator.n_outputs_ > 1
    found = []
    for i, classes in enumerate(estimator.classes_ if several else [estimator.classes_]):
        key = f"classes of output {i}" if several else "classes"
        found.append((key, joined([f"{len(classes):,}: ", listed(list(classes))])))
    return found


def _memory(estimator: Any, rows: int | None) -> str | None:
    """What training took, by `estimate_memory`; None: unknown. It depends on backend and threads,
    which model files do not keep."""
    backend = getattr(estimator, "backend_", None)
    if not rows or backend is None:
        return None
    sizes = {"n_samples": rows, "n_features": estimator.n_features_in_}
    sizes["n_outputs"] = estimator.n_outputs_
    if is_classifier(estimator):
        several = estimator.n_outputs_ > 1
        sizes["n_classes"] = max(map(len, estimator.classes_ if several else [estimator.classes_]))
    try:
        found = estimate_memory(estimator, **sizes, dtype=np.float64, backend=backend)
    except BackendError:  # it is not on this machine
        return None
    return f"about {found.total / 1e6:,.1f} MB beside the data, as estimated from the parameters"


def _forest_facts(estimator: Any) -> list[tuple[Any, Any]]:
    forest = estimator.forest_
    boosted = rounds_rows(rounds_facts(estimator)) if forest.baseline is not None else []
    written = [
        f"gpuforest {version('gpuforest')}",
        f"Python {platform.python_version()}",
        f"NumPy {np.__version__}",
        f"scikit-learn {version('scikit-learn')}",
    ]
    size = n_bytes(forest)
    leaves = int(is_leaf(forest.nodes).sum())
    return [
        ("trees", f"{forest.n_trees:,}, with {forest.n_nodes:,} nodes and {leaves:,} leaves"),
        *[(key, shortened(value, 200)) for key, value in boosted],
        ("size in memory", f"{size / 1e6:,.1f} MB" if size > 1e6 else f"{size:,} bytes"),
        ("SHA-256 of the forest", h("code", forest_digest(forest))),
        ("this report is by", ", ".join(written)),
    ]


def importance_section(found: Results) -> Html | None:
    """Importances of two kinds."""
    impurity, spread, permuted = found.importances, found.spread, found.permuted
    if impurity is None:
        return None
    names = feature_names(found.estimator)
    boosted = found.estimator.forest_.baseline is not None
    order = np.argsort(-impurity, kind="stable")
    order = order[impurity[order] > 0][:SHOWN_FEATURES]
    more = int((impurity > 0).sum()) - len(order)
    text = (
        "How much the splits of each feature gained on the training rows, as a share of all. "
        "Features of many values look more important than they are."
    )
    text += " The line over a bar is the standard deviation over the trees." * (spread is not None)
    parts = [h("h3", "By the gain of splits" if boosted else "By impurity"), h("p", text)]
    parts.append(
        _bars(names, order, impurity, spread) if len(order) else h("p", "No split gained.")
    )
    if more > 0:
        parts.append(h("p", f"{more:,} more features have an importance above 0.", class_="note"))
    parts.append(h("h3", "By permutation"))
    if permuted is None:
        parts.append(h("p", "These need rows with targets that vary, which were not given."))
        return section("importances", "Importances", *parts)
    measure = "accuracy" if is_classifier(found.estimator) else "R²"
    text = (
        f"How much {measure} falls from {scored(permuted.score)} when the values of a feature are "
        f"permuted among {permuted.n_rows:,} of the rows given: the mean of {REPEATS} orders, and "
        "its standard deviation. Near 0 means that the model does without the feature, perhaps "
        "because another one says the same."
    )
    of_all = np.zeros((2, len(names)))
    of_all[:, permuted.features] = permuted.mean, permuted.std
    parts += [h("p", text), _bars(names, permuted.features, *of_all)]
    if more > 0:
        text = f"The {PERMUTED_FEATURES} features of most impurity importance were permuted."
        parts.append(h("p", text, class_="note"))
    return section("importances", "Importances", *parts)


def _bars(
    names: list[str], order: np.ndarray, values: np.ndarray, spread: np.ndarray | None
) -> Html:
    """A table of features with a bar for each."""
    most = float(values[order].max(initial=1e-12))
    header = ["feature", "", "importance" + " ± std" * (spread is not None)]
    rows = []
    for f in order:
        own = None if spread is None else float(spread[f])
        value = f"{values[f]:.4f}" + ("" if own is None else f" ± {own:.4f}")
        rows.append([name(names[f]), bar_cell(float(values[f]), most, own), value])
    return table(header, rows, numbers=(2,), class_="bars")


def kept_errors(estimator: Any) -> tuple[dict[str, tuple[np.ndarray, np.ndarray]], str, str]:
    """Curves that the fit kept, and what their axes are called."""
    if estimator.forest_.baseline is not None:
        kept = kept_curves(estimator)
        curves = {f"{key} rows": (np.arange(len(v)), v) for key, v in kept.items()}
        return curves, "rounds", measure_of(estimator)[0]
    y = "share of wrong rows" if is_classifier(estimator) else "1 - R²"
    curve = getattr(estimator, "oob_curve_", None)
    found = {} if curve is None else {"out of bag": (curve.n_estimators, curve.error)}
    return found, "number of trees", y


def trees_section(found: Results) -> Html:
    """How large the trees are, how errors fall with their number, and two of them."""
    forest = found.estimator.forest_
    leaves = tree_leaves(forest)
    least = int(leaves.argmin())
    shown = [tree_details(found.estimator, 0, "the first")]
    if least:
        shown.append(tree_details(found.estimator, least, "that of fewest leaves"))
    told = figures(*_error_pictures(found), *_size_pictures(tree_depths(forest), leaves))
    if forest.n_trees == 1:
        told = h("p", f"One tree, {forest.depth:,} levels deep, with {leaves[0]:,} leaves.")
    return section("trees", "Trees", told, *shown)


def _error_pictures(found: Results) -> list[Html | None]:
    """Errors by the number of trees: those that the fit kept, and those of the rows given."""
    curves, x, y = kept_errors(found.estimator)
    given = {} if found.staged is None else {"rows given": found.staged}
    if found.estimator.forest_.baseline is None:
        return [error_picture(curves | given, x, y)]
    own = "share of wrong rows" if is_classifier(found.estimator) else "1 - R²"
    return [error_picture(curves, x, y.replace(":", " of rows:")), error_picture(given, x, own)]


def _size_pictures(depths: np.ndarray, leaves: np.ndarray) -> list[Html]:
    """How many trees are how large."""
    low, high, middle = leaves.min(), leaves.max(), np.median(leaves)
    return [
        histogram_picture(
            "Depth of trees",
            depths,
            ("levels below the root", "trees"),
            f"{len(depths):,} trees, from {depths.min():,} to {depths.max():,} levels deep.",
        ),
        histogram_picture(
            "Leaves of trees",
            leaves,
            ("leaves", "trees"),
            f"From {low:,} to {high:,}, the median is {middle:,g}.",
        ),
    ]
