"""The sections of a report: the model, its scores, what it splits on, its rows and its trees."""

from __future__ import annotations

import platform
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import numpy as np

from gpuforest.common.errors import BackendError
from gpuforest.common.text import shortened
from gpuforest.core.model import Model
from gpuforest.core.nodes import is_leaf
from gpuforest.explain import importances, paths
from gpuforest.explain import model_facts as facts
from gpuforest.export.walker import Node, class_labels, nodes_of, tree_title
from gpuforest.tools.plot import style, survival
from gpuforest.tools.plot.curves import error_name
from gpuforest.tools.report import html, pictures
from gpuforest.tools.report import results as computed
from gpuforest.tools.report.effects import effect_parts
from gpuforest.tools.report.html import Html, h, joined, listed, name, scored, share, table
from gpuforest.tools.report.results import Results, unlike_training
from gpuforest.tools.report.rows import MOST_ROWS
from gpuforest.tools.report.scores import DRAWS_OF_PAIRS, LESS, MOST_DRAWS, n_samples, wilson

SHOWN_DEPENDENCES = 6
SHOWN_FEATURES = 20
MOST_CELLS = 30  # classes of a confusion matrix
MOST_PAIRS, MOST_CLASSES, MOST_DRIFTING = 10, 40, 20
LEVELS, OPEN = 4, 2  # levels of a tree that are there, and that are open at first
LONGEST = 90  # letters of a condition
CUT = ", cut where it leaves the column: the number beside it is whole"


def model_parts(results: Results) -> list[Html]:
    """What was trained, on what, and how."""
    estimator, model = results.estimator, results.model
    settings = {key: repr(value) for key, value in facts.changed_settings(estimator).items()}
    rows = [(h("code", key), h("code", shortened(of, 300))) for key, of in settings.items()]
    shown = table(["parameter", "value"], rows)
    return [
        table([], [*_training_facts(estimator, model), *_forest_facts(estimator)], look="facts"),
        h("h3", "Settings that are not the defaults"),
        shown if rows else h("p", "All parameters have their defaults."),
    ]


def _training_facts(estimator: Any, model: Model) -> list[tuple[Any, Any]]:
    """Facts about the fit; a model from a file keeps few of them."""
    kept, names = model.facts, facts.feature_names(estimator)
    training, source, seconds = (kept.get(k) for k in ("_training_", "source_", "_seconds_"))
    training, source = training or {}, source or {}
    rows, task = training.get("rows"), model.task.replace("anomalies", "anomaly detection")
    if estimator.n_outputs_ > 1 and task != "survival":
        task += f" of {estimator.n_outputs_} outputs"
    n_kinds, classes = len(model.forest.edges.categories), class_labels(model.forest)
    judged = "by trees of earlier blocks of time alone" if "_judges_" in kept else None
    if getattr(kept.get("_sampling_"), "groups", None) is not None:
        judged = "by trees that drew no row of their group"
    recorded: dict[str, Any] = {
        "training rows": None if rows is None else f"{rows:,}",
        "seconds of training": None if seconds is None else f"{seconds:.2f}",
        "memory of training": _memory(estimator, rows),
        "trained on the backend": kept.get("backend_"),
        "trained with gpuforest": training.get("version"),
    }
    known: dict[str, Any] = {
        "estimator": model.kind,
        "task": task,
        "rows out of bag are judged": judged,
        "target": name(source["target"]) if "target" in source else None,
        "features": joined([f"{len(names):,}, of which {n_kinds:,} categorical: ", listed(names)]),
    }
    for i, labels in enumerate(classes):
        title = f"classes of output {i}" if len(classes) > 1 else "classes"
        known[title] = joined([f"{len(labels):,}: ", listed(labels)])
    unknown = ", ".join(key for key, value in recorded.items() if value is None)
    known |= recorded | {"not recorded": unknown or None, "random seed": str(estimator.seed_)}
    return [(key, value) for key, value in known.items() if value is not None]


def _memory(estimator: Any, rows: int | None) -> str | None:
    """What training took, by `estimate_memory`; None: a model file keeps no backend."""
    backend = getattr(estimator, "backend_", None)
    if not rows or backend is None:
        return None
    n_classes = max(map(len, class_labels(estimator.forest_)), default=2)
    sizes = rows, estimator.n_features_in_, n_classes, estimator.n_outputs_
    try:
        memory = estimator._estimate_memory(*sizes, dtype=np.float64, backend=backend)
    except BackendError:  # it is not on this machine
        return None
    return f"about {memory.total / 1e6:,.1f} MB besides the data, as estimated from the parameters"


def _forest_facts(estimator: Any) -> list[tuple[Any, Any]]:
    """The sizes of a forest, its rounds, and how to know it again."""
    forest = estimator.forest_
    boosted = [] if forest.baseline is None else facts.rounds_rows(facts.rounds_facts(estimator))
    libraries = {"NumPy": np.__version__, "scikit-learn": version("scikit-learn")}
    versions = {"gpuforest": version("gpuforest"), "Python": platform.python_version(), **libraries}
    size, leaves = facts.n_bytes(forest), int(is_leaf(forest.nodes).sum())
    return [
        ("trees", f"{forest.n_trees:,}, with {forest.n_nodes:,} nodes and {leaves:,} leaves"),
        *((key, shortened(value, 200)) for key, value in boosted),
        ("size in memory", f"{size / 1e6:,.1f} MB" if size > 1e6 else f"{size:,} bytes"),
        ("SHA-256 of the forest", h("code", facts.forest_digest(forest))),
        ("this report is by", ", ".join(f"{key} {value}" for key, value in versions.items())),
    ]


def importance_parts(results: Results) -> list[Html]:
    """Importances of two kinds."""
    impurity, names, estimator = results.importances, results.names, results.estimator
    if impurity is None:
        return []
    if results.task == "effects":
        text = "How often trees split on each feature in their first levels, as a share of all."
        return [h("p", text), _bars(names, results.ranked[:SHOWN_FEATURES], impurity, None)]
    spread = importances.importance_spread(estimator)
    order = results.ranked[:SHOWN_FEATURES]
    more = len(results.ranked) - len(order)
    text = (
        "How much the splits of each feature gained on the training rows, as a share of all. "
        "Features of many values look more important than they are."
    )
    if spread is not None:
        text += f" The line over a bar is the standard deviation over the trees{CUT}."
    shown = _bars(names, order, impurity, spread) if len(order) else h("p", "No split gained.")
    kind = "impurity" if estimator.forest_.baseline is None else "the gain of splits"
    parts = [h("h3", f"By {kind}"), h("p", text), shown]
    if more > 0:
        parts.append(h("p", f"{more:,} more features have an importance above 0.", class_="note"))
    parts.append(h("h3", "By permutation"))
    if results.permuted is None:
        return [*parts, h("p", "These need rows with targets that vary, which were not given.")]
    features, falls, before, n_rows = results.permuted
    text = (
        f"How much {facts.score_name(estimator)} falls from {scored(before)} when the values of a "
        f"feature are permuted among {n_rows:,} of the rows given: the mean of {computed.REPEATS} "
        f"orders, and its standard deviation as a line{CUT}. Near 0 means that the model does "
        "without the feature, perhaps because another one says the same."
    )
    mean, std = np.zeros((2, len(names)))
    mean[features], std[features] = falls.mean(axis=1), falls.std(axis=1)
    parts += [h("p", text), _bars(names, features, mean, std)]
    if more > 0:
        most = computed.PERMUTED_FEATURES
        text = f"The {most} features of most impurity importance were permuted."
        parts.append(h("p", text, class_="note"))
    return parts


def _bars(names: list[str], order: np.ndarray, values: np.ndarray, std: np.ndarray | None) -> Html:
    header = ["feature", "", "importance" + " ± std" * (std is not None)]
    most, rows = float(values[order].max(initial=1e-12)), []
    for f in order:
        value, deviation = float(values[f]), 0.0 if std is None else float(std[f])
        low, high = (92 * np.clip((value + d) / most, 0, 1.08) for d in (-deviation, deviation))
        bar = h("i", style=f"width:{92 * np.clip(value / most, 0, 1.08):.1f}%")
        line = h("b", style=f"left:{low:.1f}%;width:{high - low:.1f}%") if deviation else None
        said = f"{value:.4f}" + ("" if std is None else f" ± {deviation:.4f}")
        drawn = h("span", bar, line, class_="cellbar", aria_hidden="true")
        rows.append([name(names[f]), drawn, said])
    return table(header, rows, numbers=(2,), look="bars")


def tree_parts(results: Results) -> list[Html]:
    """How large the trees are, how errors fall with their number, and two of them."""
    forest = results.estimator.forest_
    leaves = facts.tree_leaves(forest)
    least = int(leaves.argmin())
    which = {least: "that of fewest leaves"} | {0: "the first"}
    which = {} if results.task == "effects" else which  # their trees predict nothing alone
    trees = [_tree_details(results.estimator, *tree) for tree in sorted(which.items())]
    if forest.n_trees == 1:
        text = f"One tree, {forest.depth:,} levels deep, with {leaves[0]:,} leaves."
        return [h("p", text), *trees]
    depths, median = paths.tree_depths(forest), np.median(leaves)
    deep = f"{len(depths):,} trees, from {depths.min():,} to {depths.max():,} levels deep."
    large = f"From {leaves.min():,} to {leaves.max():,}, the median is {median:,g}."
    draw, levels = pictures.histogram_picture, "levels below the root"
    sizes = [
        draw("Depth of trees", depths, (levels, "trees"), deep),
        draw("Leaves of trees", leaves, ("leaves", "trees"), large),
    ]
    return [h("div", *_error_pictures(results), *sizes, class_="figures"), *trees]


def _error_pictures(results: Results) -> list[Html | None]:
    """Errors by the number of trees: errors that the fit kept, and errors of the rows given."""
    estimator, of_rows = results.estimator, error_name(results.estimator)
    staged = results.judged and computed.staged_error(results.judged)
    given = [("rows given", *staged)] if staged else []
    if estimator.forest_.baseline is None:
        curve = getattr(estimator, "oob_curve_", None)
        kept = [] if curve is None else [("out of bag", curve.n_estimators, curve.error)]
        return [pictures.error_picture(kept + given, "number of trees", of_rows)]
    losses = facts.kept_curves(estimator).items()
    kept = [(f"{key} rows", np.arange(len(values)), values) for key, values in losses]
    loss = facts.measure_of(estimator)[0].replace(":", " of rows:")
    curves = {loss: kept, of_rows: given}
    return [pictures.error_picture(shown, "rounds", what) for what, shown in curves.items()]


def _tree_details(estimator: Any, tree: int, which: str) -> Html:
    forest, nodes = estimator.forest_, nodes_of(estimator, tree, max_depth=LEVELS)
    sizes, items = paths.subtree_sizes(forest, tree), dict[int, Html]()
    for number, node in reversed(nodes.items()):
        way = "all rows"
        if node.parent is not None:
            above = nodes[node.parent]
            way = above.branches[above.children.index(number)].words(html.figure)
        line = [shortened(way, LONGEST), h("small", " · ", *_node_words(estimator, node))]
        if node.depth == LEVELS and not node.is_leaf:
            line.append(h("small", f" · {sizes[number] - 1:,} nodes below"))
        if node.depth == LEVELS or node.is_leaf:
            items[number] = h("li", h("span", *line))
        else:
            below = h("ul", *(items[child] for child in node.children))
            opens = {"open": ""} if node.depth < OPEN else {}
            items[number] = h("li", h("details", h("summary", *line), below, **opens))
    title = h("summary", h("h3", f"Tree {tree}, {which}"), f" ({sizes[0]:,} nodes)")
    about = [h("p", tree_title(forest, tree), class_="note")] if forest.baseline is not None else []
    text = (
        f"The upper {LEVELS} levels. Each line says which rows come here, how many of the tree's "
        "rows these are, and what it predicts for them."
    )
    root = h("ul", items[0], class_="tree")
    return h("details", title, *about, h("p", text, class_="note"), root, class_="whole")


def _node_words(estimator: Any, node: Node) -> list[Any]:
    rows = f"{node.n_samples:,} row" + "s" * (node.n_samples != 1)
    if estimator.forest_.baseline is not None:
        return [rows, f" · adds {html.figure(float(node.value[0, 0]))}"]
    words: list[Any] = []
    if labels := class_labels(estimator.forest_):
        for shares, names in zip(node.value, labels, strict=True):
            words += [", ", name(names[int(shares.argmax())], 30), f" {share(shares.max())}"]
    elif hasattr(estimator, "score"):
        words = [text for value in node.value[:, 0] for text in (", ", html.figure(float(value)))]
    return [rows, *([" · ", *words[1:]] if words else [])]


def score_parts(results: Results) -> list[Html]:
    """Scores with their intervals, and how these were made."""
    if results.task not in computed.SCORES:
        return []
    oob, parts = results.oob, list[Html]()
    scores = [*([] if oob is None else [oob]), *results.scores]
    if not scores:
        text = "There are none: the model keeps none, and no rows with targets were given."
        return [h("p", text)]
    if oob is not None:
        text = (
            "Out of bag: each training row is predicted by the trees that did not draw it, which "
            "estimates the score for new rows of the same origin without a test set."
        )
        if not oob.how:
            text += " There is no interval of it: that needs facts of the training not kept."
        parts.append(h("p", text))
    header = ["score", "value", "95% interval"]
    less = h("small", "less is better")
    rows = []
    for s in scores:
        ends = joined([html.interval(s), h("small", f"by {s.how}")]) if s.how else "–"
        rows.append([joined([s.name, less if s.name in LESS else None]), html.score_value(s), ends])
    shown = table(header, rows, numbers=(1, 2))
    if (quantiles := getattr(results.estimator, "default_quantiles", None)) is not None:
        which = "medians" if np.ndim(quantiles) else f"quantiles {quantiles:g}"
        parts.append(h("p", f"The model predicts quantiles; these are results of its {which}."))
    if (rows_given := results.judged) is None:
        return [*parts, shown]
    n, others = rows_given.n, "The scores" if oob is None else "The other scores"
    parts.append(h("p", f"{others} are those of the {n:,} rows given."))
    draws = DRAWS_OF_PAIRS if results.task == "survival" else MOST_DRAWS
    text = (
        "Intervals hold the score of other rows of the same origin in about 95 of 100 cases. "
        + "Wilson: from the number of right rows. " * any(s.how == "Wilson" for s in scores)
        + f"Bootstrap: the middle 95% of {n_samples(n, draws)} samples of the rows with "
        "replacement, drawn by a hash, so that the same rows give the same interval."
    )
    return [*parts, shown, h("p", text, class_="note")]


def residual_parts(results: Results) -> list[Html]:
    """What the scores of numbers are made of."""
    return [h("div", *pictures.residual_pictures(*results.single("regression")), class_="figures")]


def survival_parts(results: Results) -> list[Html]:
    """Events, curves, and how many rows are at risk when."""
    rows, estimator = results.rows, results.estimator
    assert rows is not None
    known, K, y = estimator._rows_.y, estimator.n_outputs_, np.asarray(rows.numbers)
    kinds = {f"events by cause {k}" if K > 1 else "events": k for k in range(1, K + 1)}
    lines = [
        [word, *(f"{(of[:, 1] == k).sum():,} of {len(of):,}" for of in (known, y))]
        for word, k in (kinds | {"censored": 0}).items()
    ]
    counts = table(["", "training rows", "rows given"], lines, numbers=(1, 2))
    if not estimator._rows_.codes.shape[1]:
        return [counts, h("p", "A forest with low_memory=True has no curves.", class_="note")]
    most = max(1, computed.MOST_VALUES // max(1, len(estimator.unique_times_)))
    rows = rows.sample(min(most, computed.STAGED_ROWS))
    model, y = rows.predictor(), np.asarray(rows.numbers)
    names, number = survival.risk_groups(model, rows.table, min(3, rows.n), rows.n)
    times = np.linspace(0.0, y[:, 0].max(), 6)[:-1]
    header = ["rows at risk at the time", *map(html.figure, times)]
    lines = [[k, *(y[number == i, :1] >= times).sum(axis=0)] for i, k in enumerate(names)]
    shown = h("div", *pictures.survival_pictures(model, rows.table, y, known), class_="figures")
    return [counts, shown, table(header, lines, numbers=range(1, 6))]


def output_parts(results: Results) -> list[Html]:
    """Scores of several outputs, a line for each."""
    if len(results.outputs) < 2:
        return []
    most = 2 if results.task == "classification" else None
    outputs = [scores[:most] for scores in results.outputs]
    header = ["output", *(score.name for score in outputs[0])]
    lines = []
    for i, scores in enumerate(outputs):
        said = ([html.score_value(s), h("small", html.interval(s) or None)] for s in scores)
        lines.append([str(i), *map(joined, said)])
    text = (
        f"The model has {len(lines):,} outputs, each a line here. Confusions, curves, residuals "
        "and partial dependence are shown only of models of one output. Below a score stands its "
        "95% interval."
    )
    return [h("p", text), table(header, lines, numbers=range(1, len(header)))]


def curve_parts(results: Results) -> list[Html]:
    """Curves of the classes of most rows."""
    curves = pictures.class_curves(*results.single("classification"))
    if not curves:
        return []
    more = len(results.estimator.classes_) > len(curves) + 1
    text = [h("p", f"Those of the {pictures.MOST_CURVES} classes of most rows.")] * more
    shown = [*text, h("div", *pictures.curve_pictures(curves), class_="figures")]
    if len(results.estimator.classes_) > 2:
        return shown
    [(label, truth, probability)], lines = curves, []
    for threshold in np.arange(1, 10) / 10:
        taken = probability >= threshold
        found, n = np.sum(taken & truth), taken.sum()
        scores = found / truth.sum(), found / n, 2 * found / (n + truth.sum())
        lines.append([f"{threshold:.1f}", f"{n:,}", *map(scored, scores)])
    header = ["rows are taken from the probability", "rows taken", "recall", "precision", "F1"]
    title = h("h3", "Thresholds of the probability of ", name(label, 40))
    return [*shown, title, table(header, lines, numbers=range(1, 5))]


def confusion_parts(results: Results) -> list[Html]:
    """Which classes are taken for which."""
    labels, proba = results.single("classification")
    names, counts = labels.names, labels.confusion(proba)
    pairs, per_class = _pairs(names, counts), _class_table(names, counts)
    if len(names) > MOST_CELLS:
        text = f"{len(names):,} classes are too many for a matrix; these are mistaken most often."
        return [h("p", text), pairs, per_class]
    shares, rows = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1), []
    for i, label in enumerate(names):
        row: list[Any] = [name(label, 40)]
        for j, part in enumerate(shares[i].tolist()):
            said = [f"{counts[i, j]:,}", h("small", share(part)) if part else None]
            look = "n right" if i == j else "n"
            row.append(h("td", *said, class_=look, style=f"--v:{part:.2f}"))
        rows.append(row)
    header = ["true ↓ predicted →", *(name(label, 24) for label in names)]
    whole = table(header, rows, range(1, len(header)), "confusion")
    text = (
        "Each line is a true class, and each column a predicted one; shares are of the line. "
        "Framed cells are right; the deeper its colour, the more of its line a cell holds."
    )
    return [h("p", text), whole, per_class, *([pairs] if len(names) > 3 else [])]


def _class_table(names: np.ndarray, counts: np.ndarray) -> Html:
    total, taken, right = counts.sum(axis=1), counts.sum(axis=0), counts.diagonal()
    recall, precision, f1 = right / total, right / taken, 2 * right / (total + taken)
    order, rows = np.argsort(-total, kind="stable")[:MOST_CLASSES], []
    for k in order:
        ends = "{:.3f} to {:.3f}".format(*wilson(right[k], total[k])) if total[k] else None
        found = joined([scored(recall[k]), h("small", ends)])
        rows.append([name(names[k]), f"{total[k]:,}", found, scored(precision[k]), scored(f1[k])])
    header = ["class", "rows", "recall", "precision", "F1"]
    text = (
        "Recall: the share of the class's rows that are found. Precision: the share of the rows "
        "taken for the class that are of it. F1: their harmonic mean. Below a recall stands its "
        "95% interval by Wilson."
    )
    more = len(names) - len(order)
    rest = [h("p", f"{more:,} classes of fewer rows are left out.", class_="note")] if more else []
    shown = table(header, rows, numbers=(1, 2, 3, 4))
    return h("div", h("h3", "Each class"), h("p", text), shown, *rest)


def _pairs(names: np.ndarray, counts: np.ndarray) -> Html:
    total, wrong = counts.sum(axis=1), counts * ~np.eye(len(counts), dtype=bool)
    order = np.argsort(-wrong, axis=None, kind="stable")[:MOST_PAIRS]
    rows = [
        [name(names[i]), name(names[j]), f"{wrong[i, j]:,}", share(wrong[i, j] / total[i])]
        for i, j in zip(*np.unravel_index(order, wrong.shape), strict=True)
        if wrong[i, j]
    ]
    if not rows:
        return h("p", "No row is predicted wrong.")
    header = ["true class", "predicted as", "rows", "share of the class"]
    return h("div", h("h3", "The most frequent errors"), table(header, rows, numbers=(2, 3)))


def dependence_parts(results: Results) -> list[Html]:
    """What predictions are on average at each value of the features of most importance."""
    rows, estimator = results.rows, results.estimator
    if rows is None or not hasattr(estimator, "predict") or estimator.n_outputs_ > 1:
        return []
    order = results.ranked if results.permuted is None else results.permuted[0]
    found = ((f, computed.dependence(rows, f)) for f in order[:SHOWN_DEPENDENCES].tolist())
    dependences = {f: arrays for f, arrays in found if arrays is not None}
    if not dependences:
        return []
    target = shortened(getattr(estimator, "source_", {}).get("target", "the target"), 30)
    keep, outputs, y = [0], [], f"mean prediction of {style.plain(target)}"
    what: list[Any] = ["the mean prediction, in units of ", name(target)]
    if results.task == "survival":
        y, what = "mean risk", ["the mean risk, the sum of the cumulative hazard over event times,"]
    if results.task == "effects":
        y, what = "mean effect", ["the mean effect of the treatment"]
    if results.task == "classification":
        means, y = next(iter(dependences.values()))[1], "mean probability"
        most = np.argsort(-means.mean(axis=0), kind="stable")[: pictures.MOST_CURVES]
        keep = [1] if means.shape[1] == 2 else sorted(most.tolist())
        outputs = [estimator.classes_[k] for k in keep]
        several = "the mean probability of the classes that are most probable on average"
        first: list[Any] = ["the mean probability of ", name(outputs[0], 40)]
        what = first if len(keep) == 1 else [several]
    means = np.concatenate([means[:, keep].ravel() for _, means, _ in dependences.values()])
    scale, kinds = (y, float(means.min()), float(means.max())), estimator.forest_.edges.categories
    draw, shown = pictures.dependence_picture, list[Html]()
    for f, (values, means, deciles) in dependences.items():
        arrays = values, means[:, keep], deciles
        shown.append(draw(results.names[f], kinds.get(f), arrays, outputs, scale))
    text = (
        f" of {computed.dependence_rows(rows).n:,} of the rows given, if all of them had this "
        "value of the feature. All pictures have the same scale, so the steepest lines matter "
        "most. Ticks on the axis are the deciles of the feature: where they lie apart, few rows "
        "support the line. Effects of features that depend on one another are mixed."
    )
    return [h("p", "Up: ", *what, text), h("div", *shown, class_="figures")]


def drift_parts(results: Results) -> list[Html]:
    """How the rows differ from what the model learned."""
    if results.rows is None or results.drift is None:
        return []
    names, order = results.names, np.argsort(-unlike_training(results.drift), kind="stable")
    differs = np.nan_to_num(results.drift).any(axis=0)
    features = order[differs[order]][:MOST_DRIFTING]
    text = (
        "How the rows given differ from those of the training. Beyond the bins: numbers that lie "
        "further out than the outermost bins of the training data are wide. Unknown: categories "
        "that training did not see, or that were too rare to be learned. The model does not keep "
        "how many values were missing in training."
    )
    if not len(features):
        return [h("p", "No value is missing, beyond the bins, or of an unknown category.")]
    rows = [[name(names[f]), *map(share, results.drift[:, f])] for f in features]
    header = ["feature", "beyond the bins", "unknown", "missing"]
    shares = f"Shares of {min(results.rows.n, MOST_ROWS):,} rows."
    if rest := len(names) - len(features):
        shares += f" {rest:,} other features have none of the three, or smaller shares."
    return [h("p", text), table(header, rows, numbers=(1, 2, 3)), h("p", shares, class_="note")]


def anomaly_parts(results: Results) -> list[Html]:
    """The scores of an isolation forest."""
    if results.rows is None or not hasattr(results.estimator, "score_samples"):
        return []
    scores = np.asarray(results.rows.predictor().score_samples(results.rows.table))
    offset, axes = results.estimator.offset_, ("score: from -1, an anomaly, to 0", "rows")
    below = f"{share(float((scores < offset).mean()))} of {len(scores):,} rows are below"
    caption = f"{below} {html.figure(offset)}: anomalies."
    shown = pictures.histogram_picture("Scores", scores, axes, caption, offset)
    return [h("div", shown, class_="figures")]


# the id and the title of each section, its parts, and a task, whose targets it needs; a section
# without parts is not shown
SECTIONS: tuple[tuple[str, str, Callable[[Results], list[Html]], str | None], ...] = (
    ("model", "Model", model_parts, None),
    ("scores", "Scores", score_parts, None),
    ("confusions", "Confusions", confusion_parts, "classification"),
    ("curves", "Curves", curve_parts, "classification"),
    ("residuals", "Residuals", residual_parts, "regression"),
    ("survival", "Survival", survival_parts, "survival"),
    ("outputs", "Outputs", output_parts, None),
    ("effects", "Effects", effect_parts, None),
    ("anomalies", "Anomalies", anomaly_parts, None),
    ("importances", "Importances", importance_parts, None),
    ("dependence", "Partial dependence", dependence_parts, None),
    ("data", "Data", drift_parts, None),
    ("trees", "Trees", tree_parts, None),
)
