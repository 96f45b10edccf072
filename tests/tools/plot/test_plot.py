"""Pictures: what is drawn is what the model says, and all of it can be read; of trees every node
has its box, and no box overlaps another."""

import itertools
import re
import runpy
import sys

import numpy as np
import pandas as pd
import pytest
from drawn import (
    DIABETES,
    DIGITS,
    IRIS,
    LONG,
    SPECIES,
    check_readable,
    overlaps,
    texts,
    ticks_outside,
)
from matplotlib import pyplot
from matplotlib.colors import to_rgb
from matplotlib.patches import FancyBboxPatch
from paths import ROOT
from sklearn.utils import Bunch

import gpuforest as gf
from gpuforest import impurity, plot
from gpuforest.export.graphviz import Drawing
from gpuforest.tools.plot import style

try:
    import polars as pl
except ImportError:
    pl = None
PETALS = IRIS.data[:, 2:]
DOCS = ROOT / "docs"


@pytest.fixture(scope="module")
def tree():
    return gf.DecisionTreeClassifier(max_depth=3).fit(IRIS.data, SPECIES)


@pytest.fixture(scope="module")
def forest():
    return gf.RandomForestClassifier(10, random_state=0).fit(PETALS, SPECIES)


@pytest.fixture(scope="module")
def numbers():
    return gf.RandomForestRegressor(10, random_state=0).fit(DIABETES.data, DIABETES.target)


@pytest.fixture(scope="module")
def counts():
    return gf.HistGradientBoostingRegressor("poisson", max_iter=10).fit(
        DIABETES.data, DIABETES.target
    )


def test_axes_that_are_passed_are_drawn_on(tree, forest, numbers):
    pruned = gf.DecisionTreeClassifier(ccp_alpha="cv", random_state=0).fit(PETALS, SPECIES)
    bagged = gf.RandomForestClassifier(30, oob_score=True, random_state=0).fit(PETALS, SPECIES)
    boosted = gf.HistGradientBoostingClassifier(max_iter=2, early_stopping=True).fit(
        PETALS, SPECIES
    )
    for draw, *arguments in (
        (plot.plot_boundaries, forest, PETALS),
        (plot.plot_steps, numbers, DIABETES.data, DIABETES.target, 2),
        (plot.plot_impurity,),
        (plot.plot_pruning, pruned),
        (plot.plot_oob, bagged),
        (plot.plot_importances, numbers),
        (plot.plot_loss, boosted),
        (plot.plot_tree, tree),
        (plot.plot_shap_summary, numbers, DIABETES.data[:9]),
        (plot.plot_shap_waterfall, numbers, DIABETES.data[:9]),
    ):
        _, given = pyplot.subplots()
        assert draw(*arguments, ax=given) is given


def test_boundaries_are_where_the_tree_splits_and_shades_are_leads(forest):
    tree = gf.DecisionTreeClassifier(max_depth=2).fit(PETALS, SPECIES)
    ax = plot.plot_boundaries(tree, PETALS, SPECIES)
    mesh, borders = ax.collections
    corners = mesh.get_coordinates()
    assert corners[0, 1:-1, 0].tolist() == [2.45]
    assert corners[1:-1, 0, 1].tolist() == [1.75]
    lines = {tuple(map(tuple, line)) for line in borders.get_segments()}
    right, (low, high) = ax.get_xlim()[1], ax.get_ylim()
    assert lines == {
        ((2.45, low), (2.45, 1.75)),
        ((2.45, 1.75), (2.45, high)),
        ((2.45, 1.75), (right, 1.75)),
    }
    for line, name in zip(ax.lines, IRIS.target_names, strict=True):
        assert np.array_equal(line.get_xydata(), PETALS[name == SPECIES])
    assert [t.get_text() for t in ax.get_legend().get_texts()] == [*IRIS.target_names]
    check_readable(ax)
    ax = plot.plot_boundaries(forest, PETALS)
    mesh = ax.collections[0]
    corners = mesh.get_coordinates()
    x, y = corners[0, :, 0], corners[:, 0, 1]
    middle = np.array([(x[3] + x[4]) / 2, (y[5] + y[6]) / 2])
    shares = np.sort(forest.predict_proba([middle])[0])
    depth = style.PALE * (0.35 + 0.65 * (shares[-1] - shares[-2]))
    (name,) = forest.predict([middle])
    full = np.array(to_rgb(style.PALETTE[[*forest.classes_].index(name)]))
    shades = np.asarray(mesh.get_array())
    assert shades[5, 3].tolist() == (1 - depth * (1 - full)).tolist()


def test_frames_with_categories_and_missing_values():
    frame = pd.DataFrame(
        {"kind": ["a", "b", None, "a"] * 10, "x": [0.0, 1.0, np.nan, 3.0] * 10, "z": range(40)}
    )
    y = np.arange(40) % 2 == 0
    forest = gf.RandomForestClassifier(5, random_state=0).fit(frame, y)
    ax = plot.plot_boundaries(forest, frame, y, ("x", "z"))
    check_readable(ax)
    nullable = frame.convert_dtypes()
    shades = np.asarray(ax.collections[0].get_array())
    for same in (nullable, pl.from_pandas(frame)) if pl else (nullable,):
        other = plot.plot_boundaries(forest, same, y, ("x", "z"))
        assert np.array_equal(other.collections[0].get_array(), shades)
    for features, match in (
        (("kind", "z"), "holds categories: choose one of numbers"),
        (("x", "q"), "no feature 'q': choose one of kind, x, z, or its number"),
        ((1, 7), "no feature 7"),
        (("x",), "two features, but 1"),
    ):
        with pytest.raises(ValueError, match=match):
            plot.plot_boundaries(forest, frame, y, features)


@pytest.mark.parametrize(("model", "n_trees", "labels"), [
    (gf.DecisionTreeRegressor(max_depth=3), 1, ["tree"]),
    (gf.BaggingRegressor(n_estimators=3, random_state=0), 1, ["its first tree", "mean of 3 trees"]),
    (gf.HistGradientBoostingRegressor(max_iter=10), 0, ["10 rounds"]),
    (gf.HistGradientBoostingRegressor(max_iter=10), 1, ["after its first round", "10 rounds"]),
    (gf.HistGradientBoostingRegressor(max_iter=10), 3, ["after its first 3 rounds", "10 rounds"]),
])  # fmt: skip
def test_steps_are_predictions_of_first_trees_and_of_all(model, n_trees, labels):
    x, y = DIABETES.data[:, [2]], DIABETES.target
    ax = plot.plot_steps(model.fit(x, y), x, y, n_trees=n_trees)
    points, *stages, line = ax.lines
    assert np.array_equal(points.get_xydata(), np.column_stack([x, y]))
    ends, found = line.get_data()
    inside = ((ends[:-1] + ends[1:]) / 2)[:, None]
    assert found[:-1].tolist() == model.predict(inside).tolist()
    assert found[-1] == found[-2]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["data", *labels]
    if hasattr(model, "staged_predict"):
        expected = [found.tolist() for found in model.staged_predict(inside)]
    else:
        expected = [tree.predict(inside).tolist() for tree in getattr(model, "estimators_", [])]
    assert [stage.get_ydata()[:-1].tolist() for stage in stages] == expected[:n_trees]
    check_readable(ax)


def test_steps_are_at_thresholds_and_hold_other_features(numbers):
    x = DIABETES.data[:, [2]]
    tree = gf.DecisionTreeRegressor(max_depth=3).fit(x, DIABETES.target)
    cuts = np.unique(tree.tree_.threshold[tree.tree_.feature >= 0])
    assert plot.plot_steps(tree, x).lines[0].get_xdata()[1:-1].tolist() == cuts.tolist()
    ax = plot.plot_steps(numbers, DIABETES.data, DIABETES.target, 2, n_trees=2)
    labels = [t.get_text() for t in ax.get_legend().get_texts()]
    assert labels == ["data", "its first 2 trees", "mean of 10 trees"]
    _, first, _, mean = ax.lines
    held = np.tile(np.median(DIABETES.data, axis=0), (len(mean.get_xdata()) - 1, 1))
    ends = mean.get_xdata()
    held[:, 2] = (ends[:-1] + ends[1:]) / 2
    assert first.get_ydata()[:-1].tolist() == numbers.estimators_[0].predict(held).tolist()


def test_what_cannot_be_drawn_as_a_surface(forest, numbers):
    two = gf.DecisionTreeRegressor(max_depth=1).fit(PETALS, PETALS)
    for draw, match in (
        (lambda: plot.plot_steps(forest, PETALS), "for classes draw boundaries"),
        (lambda: plot.plot_steps(two, PETALS), "one output can be drawn, the estimator has 2"),
        (lambda: plot.plot_boundaries(two, PETALS), "one output can be drawn"),
        (lambda: plot.plot_boundaries(forest, IRIS.data), "X has 4 features, but .* expecting 2"),
        (lambda: plot.plot_boundaries(forest, PETALS, IRIS.target), "does not know"),
        (lambda: plot.plot_boundaries(forest, PETALS, feature_names=["a"]), "feature_names has 1"),
        (lambda: plot.plot_boundaries(numbers, DIABETES.data, class_names=["a"]),
         "class_names are for classes"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=match):
            draw()
    embedding = gf.RandomTreesEmbedding(2).fit(PETALS)
    with pytest.raises(TypeError, match="RandomTreesEmbedding predicts neither classes nor"):
        plot.plot_boundaries(embedding, PETALS)
    with pytest.raises(TypeError, match="no trees of gpuforest's"):
        plot.plot_steps(object(), PETALS)
    check_readable(plot.plot_tree(embedding, max_depth=2))
    check_readable(plot.plot_importances(embedding))


def test_impurities():
    ax = plot.plot_impurity()
    p = ax.lines[0].get_xdata()
    both = np.stack([p, 1 - p], axis=1)
    expected = [
        impurity.entropy(both),
        impurity.entropy(both) / 2,
        impurity.gini(both),
        impurity.misclassification(both),
    ]
    assert [line.get_ydata().tolist() for line in ax.lines] == [e.tolist() for e in expected]
    assert len({line.get_linestyle() for line in ax.lines}) == 4
    check_readable(plot.plot_impurity())


@pytest.mark.parametrize("rule", ["min", "one_se"])
@pytest.mark.parametrize("data", [IRIS, DIABETES], ids=["classes", "numbers"])
def test_pruning(data, rule):
    kind = gf.DecisionTreeClassifier if data is IRIS else gf.DecisionTreeRegressor
    tree = kind(ccp_alpha="cv", ccp_rule=rule, random_state=0).fit(data.data, data.target)
    curve = tree.pruning_curve_
    ax = plot.plot_pruning(tree)
    (bars,) = ax.containers
    assert bars.lines[0].get_xdata().tolist() == curve.ccp_alphas.tolist()
    assert bars.lines[0].get_ydata().tolist() == curve.errors.tolist()
    (whiskers,) = bars.lines[2]
    ends = np.array([s[:, 1] for s in whiskers.get_segments()])
    assert ends[:, 1].tolist() == (curve.errors + curve.std_errors).tolist()
    chosen = next(line for line in ax.lines if line.get_label().startswith("chosen"))
    assert chosen.get_xdata().tolist() == [tree.ccp_alpha_]
    assert chosen.get_label().startswith(f"chosen: {tree.get_n_leaves()} leaves")
    level = next(line for line in ax.lines if line.get_label().startswith("least"))
    best = np.flatnonzero(curve.errors == curve.errors.min())[-1]
    assert set(level.get_ydata()) == {curve.errors[best] + curve.std_errors[best]}
    top = ax.figure.axes[1]
    assert top.get_xlim() == ax.get_xlim()
    leaves = dict(zip(curve.ccp_alphas.tolist(), curve.n_leaves.tolist(), strict=True))
    shown = zip(top.get_xticks().tolist(), top.get_xticklabels(), strict=True)
    assert all(label.get_text() == str(leaves[alpha]) for alpha, label in shown)
    check_readable(ax)
    for axis in (ax, top):
        inside = [t for t in axis.get_xticklabels() if t.get_text() not in ticks_outside(axis)]
        extents = [t.get_window_extent() for t in inside]
        assert not any(overlaps(a, b) for a, b in itertools.combinations(extents, 2))


TIMES = np.rec.fromarrays([SPECIES == "setosa", IRIS.data[:, 0]], names="event, time")


@pytest.mark.parametrize(("name", "X", "y", "error"), [
    ("RandomForestClassifier", IRIS.data, SPECIES, "share of wrong rows"),
    ("RandomForestRegressor", DIABETES.data, DIABETES.target, "1 - R²"),
    ("RandomSurvivalForest", IRIS.data, TIMES, "1 - concordance"),
])  # fmt: skip
def test_out_of_bag(name, X, y, error):
    model = getattr(gf, name)(30, oob_score=True, random_state=0).fit(X, y)
    ax = plot.plot_oob(model)
    assert ax.lines[0].get_xdata().tolist() == model.oob_curve_.n_estimators.tolist()
    assert ax.lines[0].get_ydata().tolist() == model.oob_curve_.error.tolist()
    assert ax.lines[0].get_ydata()[-1] == 1 - model.oob_score_
    assert ax.texts[0].get_text() == f"{1 - model.oob_score_:.3g}"
    assert ax.get_ylabel() == f"out-of-bag error: {error}"
    check_readable(ax)


def test_trees_without_a_split():
    X, y = np.zeros((6, 1)), [0, 1] * 3
    tree = gf.DecisionTreeClassifier(ccp_alpha="cv", ccp_cv=2, random_state=0).fit(X, y)
    assert "samples = 6" in [t.get_text() for t in plot.plot_tree(tree).texts]
    for ax in (plot.plot_pruning(tree), plot.plot_importances(tree)):
        check_readable(ax)
    constant = gf.DecisionTreeRegressor().fit(X, np.ones(6))
    assert plot.plot_steps(constant, X).lines[0].get_ydata().tolist() == [1.0, 1.0]
    X, y = np.arange(12.0).reshape(6, 2), np.ones(6)
    leaf = gf.DecisionTreeRegressor().fit(X, y)
    check_readable(plot.plot_boundaries(leaf, np.zeros((6, 2)), y))
    for draw in (plot.plot_shap_summary, plot.plot_shap_bar, plot.plot_shap_waterfall):
        check_readable(draw(leaf, X))
    ax = plot.plot_shap_dependence(leaf, X, 1)
    assert ax.collections[0].get_array() is None  # no feature interacts with it
    check_readable(ax)


def test_without_a_curve_or_matplotlib(tree, monkeypatch):
    plain = gf.RandomForestClassifier(2, random_state=0).fit(PETALS, SPECIES)
    with pytest.raises(ValueError, match=r"no pruning_curve_: fit a DecisionTree\* with ccp_alpha"):
        plot.plot_pruning(tree)
    with pytest.raises(ValueError, match="no oob_curve_: fit a forest with oob_score=True"):
        plot.plot_oob(plain)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for draw in (
        plot.plot_impurity,
        lambda: plot.plot_tree(tree),
        lambda: plot.plot_importances(tree),
    ):
        with pytest.raises(ImportError, match=r"pip install 'gpuforest\[plot\]'"):
            draw()


def test_the_pictures_of_the_pages_are_small_and_used():
    script = runpy.run_path(str(DOCS / "pictures.py"))
    made = {f"{draw.__name__}.png" for draw in (*script["PICTURES"], *script["SCREENSHOTS"])}
    pages = "".join(page.read_text() for page in DOCS.glob("*.md"))
    assert {path.name for path in (DOCS / "images").iterdir()} == made
    assert {*re.findall(r"\(images/(\w+\.png)\)", pages)} == made
    for path in (DOCS / "images").iterdir():
        assert path.stat().st_size < 60_000


def test_boundaries_of_ten_classes_of_numbers_by_name_and_of_counts(numbers, counts):
    forest = gf.RandomForestClassifier(5, random_state=0).fit(DIGITS.data, DIGITS.target)
    names = [f"the digit that is called {i} and its friends" for i in range(10)]
    ax = plot.plot_boundaries(forest, DIGITS.data, DIGITS.target, (21, 42), class_names=names)
    check_readable(ax)
    marks = {(line.get_marker(), tuple(line.get_color())) for line in ax.lines}
    assert len(marks) == 10
    assert ax.get_xlabel() == "feature_21\n(other features held)"
    ax = plot.plot_boundaries(numbers, DIABETES.data, DIABETES.target, ("feature_2", 8))
    mesh, points = ax.collections
    assert np.array_equal(points.get_offsets(), DIABETES.data[:, [2, 8]])
    assert mesh.get_clim() == points.get_clim()
    held = np.median(DIABETES.data, axis=0)
    corners = mesh.get_coordinates()
    held[2] = (corners[0, 0, 0] + corners[0, 1, 0]) / 2
    held[8] = (corners[0, 0, 1] + corners[1, 0, 1]) / 2
    assert mesh.get_array()[0, 0] == pytest.approx(numbers.predict([held])[0])
    check_readable(ax)
    shades = plot.plot_boundaries(counts, DIABETES.data, DIABETES.target, (2, 8)).collections[0]
    assert shades.get_array().min() > 0


def bars_of(ax):
    names = [text.get_text() for text in ax.get_yticklabels()]
    return dict(zip(names, [bar.get_width() for bar in ax.patches], strict=True))


def test_importances_of_forests_trees_permutations_and_boosting(numbers, tree, counts):
    ax = plot.plot_importances(numbers, top=4)
    means = numbers.feature_importances_
    order = np.argsort(-means)[:4]
    spread = np.std([t.feature_importances_ for t in numbers.estimators_], axis=0)
    assert [*bars_of(ax).items()] == [(f"feature_{i}", means[i]) for i in order]
    bars, _ = ax.containers
    (whiskers,) = bars.lines[2] if hasattr(bars, "lines") else ax.containers[1].lines[2]
    ends = [float(s[1, 0]) for s in whiskers.get_segments()]
    assert ends == pytest.approx((means + spread)[order], rel=1e-12)  # normalised once, not twice
    ax = plot.plot_importances(numbers, feature_names=LONG[:10], top=None)
    check_readable(ax)
    labels = [t.get_window_extent() for t in ax.get_yticklabels()]
    assert not any(overlaps(a, b) for a, b in itertools.combinations(labels, 2))
    assert len(bars_of(ax)) == 10
    ax = plot.plot_importances(tree, feature_names=IRIS.feature_names)
    assert len(ax.containers) == 1  # bars without deviations
    model = gf.RandomForestClassifier(5, random_state=0).fit(IRIS.data, IRIS.target)
    own = gf.oob_impurity_importance(model, IRIS.data, IRIS.target)
    ax = plot.plot_importances(own)
    assert [*bars_of(ax).values()] == sorted(own.importances_mean, reverse=True)
    assert ax.get_xlabel().startswith("decrease of impurity out of bag")
    found = Bunch(importances_mean=np.array([0.1, -0.2, 0.3]), importances_std=np.full(3, 0.01))
    ax = plot.plot_importances(found, feature_names=["a", "b", "c"], top=None)
    assert [*bars_of(ax).items()] == [("c", 0.3), ("a", 0.1), ("b", -0.2)]
    assert ax.get_xlim()[0] < -0.2
    for options, match in (({"top": 0}, "top=0"), ({"feature_names": ["a"]}, "1 names")):
        with pytest.raises(ValueError, match=match):
            plot.plot_importances(found, **options)
    ax = plot.plot_importances(counts, top=4)
    gains = np.sort(counts.feature_importances_)[::-1]
    assert [*bars_of(ax).values()] == gains[:4].tolist()
    assert ax.get_xlabel() == "gain of splits, as a share of all"
    assert len(ax.containers) == 1  # there is no tree whose importances stand by themselves
    found = Bunch(importances_mean=np.ones(2), importances_std=np.ones(2))  # of scikit-learn
    label = plot.plot_importances(found).get_xlabel()
    assert label.startswith("decrease of the score when permuted")
    isolating = gf.IsolationForest(n_estimators=2, backend="numpy").fit(DIABETES.data)
    with pytest.raises(ValueError, match="IsolationForest has no importances: its cuts are random"):
        plot.plot_importances(isolating)


def boxes_of(ax):
    return [p for p in ax.patches if isinstance(p, FancyBboxPatch)]


def check_tree(ax, least=style.SMALL):
    """No boxes overlap, each text is in a box or is a label outside all."""
    check_readable(ax, least)
    boxes = [p.get_window_extent() for p in boxes_of(ax)]
    assert not any(overlaps(a, b) for a, b in itertools.combinations(boxes, 2))
    extents = [t.get_window_extent() for t in texts(ax)]
    assert not any(
        overlaps(a.shrunk(0.9, 0.9), b.shrunk(0.9, 0.9))
        for a, b in itertools.combinations(extents, 2)
    )
    for e in extents:
        holders = [b for b in boxes if overlaps(e, b)]
        assert len(holders) <= 1
        for b in holders:
            assert b.x0 <= e.x0 <= e.x1 <= b.x1
            assert b.y0 <= e.y0 <= e.y1 <= b.y1


def test_a_tree_has_a_box_a_node_says_what_dot_says_and_edges_lead_to_children(tree):
    names = ["sl", "sw", "pl", "pw"]
    ax = plot.plot_tree(tree, feature_names=names)
    nodes = gf.tree_nodes(tree, feature_names=names)
    assert len(boxes_of(ax)) == len(nodes) == 9
    assert len(ax.lines) == len(nodes) - 1
    said = [t.get_text() for t in ax.texts]
    for node in nodes.values():
        assert f"samples = {node.n_samples}" in said
        assert f"class = {node.prediction}" in said
        if node.branches:
            assert node.branches[0].plain().words() in said
    assert said.count("yes") == said.count("no") == 4
    assert said.count("gini = 0") == 2
    ax = plot.plot_tree(tree)
    boxes = dict(zip(gf.tree_nodes(tree).values(), boxes_of(ax), strict=True))
    by_number = {node.number: box for node, box in boxes.items()}
    children = [n for n in boxes if n.parent is not None]
    for node, line in zip(children, ax.lines, strict=True):
        (x0, x1), (y0, y1) = line.get_data()
        above, below = by_number[node.parent], by_number[node.number]
        assert x0 == pytest.approx(above.get_x() + above.get_width() / 2)
        assert y0 == pytest.approx(above.get_y() + above.get_height())
        assert x1 == pytest.approx(below.get_x() + below.get_width() / 2)
        assert y0 < y1 < below.get_y()


def test_what_is_shown_of_a_tree(tree):
    def said(**options):
        return [t.get_text() for t in plot.plot_tree(tree, **options).texts]

    top = said(max_depth=1, node_ids=True, impurity=False, proportion=True, precision=1)
    assert top.count("(...)") == 2
    assert "node #2" in top
    assert "samples = 33.3%" in top
    assert "value = [0, 0.5, 0.5]" in top
    assert not any("gini" in line for line in top)
    assert "class = b" in said(class_names=["a", "b", "c"])
    fills = {p.get_facecolor() for p in boxes_of(plot.plot_tree(tree, filled=False))}
    assert fills == {(1.0, 1.0, 1.0, 1.0)}


@pytest.mark.parametrize("depth", [1, 6])
def test_no_box_of_a_tree_overlaps_another(depth):
    tree = gf.DecisionTreeClassifier(max_depth=depth).fit(DIGITS.data, DIGITS.target)
    check_tree(plot.plot_tree(tree, feature_names=LONG))


@pytest.mark.parametrize("data", [IRIS, DIABETES], ids=["classes", "numbers"])
def test_trees_of_boosting(data):
    kind = gf.HistGradientBoostingClassifier if data is IRIS else gf.HistGradientBoostingRegressor
    y = SPECIES if data is IRIS else data.target
    model = kind(max_iter=3, max_leaf_nodes=6).fit(data.data, y)
    ax = plot.plot_tree(model, 2, max_depth=2)
    check_tree(ax)
    nodes = gf.tree_nodes(model, 2)
    number, said = "1" if data is IRIS else "3", [t.get_text() for t in ax.texts]
    assert " ".join(said).startswith(f"round {number} of 3: leaves add to the ")
    number_of = Drawing(model, 2).number
    for node in nodes.values():
        if node.depth <= 2:
            assert f"value = {number_of(node.prediction)}" in said
            assert node.is_leaf or f"gain = {number_of(node.gain)}" in said
    without = plot.plot_tree(model, 2, impurity=False).texts
    assert not any("gain" in t.get_text() for t in without)
    check_tree(plot.plot_tree(model, 0))


def test_trees_of_numbers_of_several_outputs_and_of_many_branches():
    both = np.column_stack([DIABETES.target, DIABETES.target**2])
    for y in (DIABETES.target, both):
        tree = gf.DecisionTreeRegressor(max_depth=3).fit(DIABETES.data, y)
        check_tree(plot.plot_tree(tree, feature_names=LONG[:10]))
    classes = np.column_stack([IRIS.target, IRIS.target == 1])
    check_tree(plot.plot_tree(gf.DecisionTreeClassifier(max_depth=3).fit(IRIS.data, classes)))
    frame = pd.DataFrame({"shop": list("abcdefgh") * 20, "$ a day, $": np.arange(160) % 9})
    tree = gf.DecisionTreeClassifier(categorical_split="multiway").fit(frame, frame.shop)
    ax = plot.plot_tree(tree)
    check_tree(ax)
    assert len(boxes_of(ax)) == 9
    said = [t.get_text() for t in ax.texts]
    assert said[0] == "shop"
    assert {*"abcdefgh"} <= {*said}


def test_two_trees_side_by_side_are_made_small_enough(tree):
    _, axes = pyplot.subplots(1, 2, figsize=(8, 4), layout="constrained")
    for ax in axes:
        plot.plot_tree(tree, feature_names=IRIS.feature_names, ax=ax)
    for ax in axes:
        check_tree(ax, least=2)


def test_a_tree_too_large_to_draw_or_not_there(tree):
    rows = DIGITS.data[:600], np.arange(600)
    large = "200 inches: show fewer levels of it with max_depth"
    for model, options, message in (
        (gf.RandomForestRegressor(1, random_state=0).fit(*rows), {}, large),
        (gf.DecisionTreeRegressor(max_depth=9).fit(*rows), {}, large),
        (tree, {"max_depth": -1}, "max_depth=-1 is negative"),
        (tree, {"tree": 1}, "tree 1 does not exist"),
        (object(), {}, "no trees of gpuforest's"),
    ):
        with pytest.raises((ValueError, TypeError), match=message):
            plot.plot_tree(model, **options)
