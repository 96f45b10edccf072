"""Draw the pictures of these pages: python docs/pictures.py [FOLDER]

That of a report is drawn where selenium, chromium and chromedriver are installed."""

from __future__ import annotations

import json
import shutil
import sys
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import matplotlib
import numpy as np
from PIL import Image
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.inspection import PartialDependenceDisplay

from gpuforest import (
    AdaBoostClassifier,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    RandomSurvivalForest,
)
from gpuforest.growing.reweighting import samme
from gpuforest.plot import (
    plot_boundaries,
    plot_importances,
    plot_impurity,
    plot_loss,
    plot_oob,
    plot_pruning,
    plot_shap_dependence,
    plot_shap_summary,
    plot_shap_waterfall,
    plot_steps,
    plot_survival,
    plot_tree,
)
from gpuforest.tools.plot.style import PALETTE

FOLDER = Path(__file__).parent / "images"
DPI, COLOURS = 100, 128  # few colours make small files
IRIS, CANCER = load_iris(), load_breast_cancer()
SPECIES = IRIS.target_names[IRIS.target]
PETALS, PETAL_NAMES = IRIS.data[:, 2:], IRIS.feature_names[2:]


def pair() -> Any:
    """Two axes side by side, of one scale."""
    from matplotlib import pyplot

    return pyplot.subplots(1, 2, figsize=(9, 3.6), layout="constrained", sharex=True, sharey=True)[
        1
    ]


def tree() -> Any:
    model = DecisionTreeClassifier(max_depth=3).fit(IRIS.data, SPECIES)
    return plot_tree(model, feature_names=IRIS.feature_names)


def boundaries() -> Any:
    left, right = pair()
    single = DecisionTreeClassifier(random_state=0).fit(PETALS, SPECIES)
    forest = RandomForestClassifier(100, random_state=0).fit(PETALS, SPECIES)
    plot_boundaries(single, PETALS, SPECIES, feature_names=PETAL_NAMES, legend=False, ax=left)
    plot_boundaries(forest, PETALS, SPECIES, feature_names=PETAL_NAMES, ax=right)
    left.set_title("one tree")
    right.set(title="a forest of 100", ylabel="")
    return right


def oblique() -> Any:
    rng = np.random.default_rng(1)
    X = rng.multivariate_normal([0, 0], [[1, 0.8], [0.8, 1]], 300)
    y = np.where(X[:, 1] - X[:, 0] + rng.normal(0, 0.15, 300) > 0, "a", "b")
    left, right = pair()
    for ax, more, title in (
        (left, {}, "by one feature"),
        (right, {"feature_combinations": 2, "max_features": 20}, "by sums of features"),
    ):
        model = DecisionTreeClassifier(max_leaf_nodes=4, random_state=0, **more).fit(X, y)
        plot_boundaries(model, X, y, feature_names=["x1", "x2"], legend=ax is right, ax=ax)
        ax.set_title(title)
    right.set_ylabel("")
    return right


def steps() -> Any:
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 6, (120, 1))
    y = np.sin(X[:, 0]) + rng.normal(0, 0.25, 120)
    left, right = pair()
    forest = RandomForestRegressor(100, max_depth=4, random_state=0).fit(X, y)
    plot_steps(DecisionTreeRegressor(max_depth=3).fit(X, y), X, y, feature_names=["x"], ax=left)
    plot_steps(forest, X, y, feature_names=["x"], ax=right)
    right.set_ylabel("")
    return right


def pruning() -> Any:
    model = DecisionTreeClassifier(ccp_alpha="cv", ccp_rule="one_se", random_state=0)
    return plot_pruning(model.fit(CANCER.data, CANCER.target))


def oob() -> Any:
    forest = RandomForestClassifier(500, oob_score=True, random_state=0)
    return plot_oob(forest.fit(CANCER.data, CANCER.target))


def importances() -> Any:
    forest = RandomForestClassifier(100, random_state=0).fit(CANCER.data, CANCER.target)
    return plot_importances(forest, top=10, feature_names=CANCER.feature_names)


def impurity() -> Any:
    return plot_impurity()


def weights() -> Any:
    """The rows' weights in four rounds of AdaBoost, and the cut of each round's stump."""
    from matplotlib import pyplot

    rng = np.random.default_rng(2)
    X = rng.uniform(-1, 1, (80, 2))
    y = (X**2).sum(axis=1) > 0.6
    axes = pyplot.subplots(1, 4, figsize=(9, 2.6), layout="constrained", sharex=True, sharey=True)[
        1
    ]
    model = AdaBoostClassifier(n_estimators=50, random_state=0).fit(X, y)
    shares = np.full(len(y), 1 / len(y))
    for t, ax in enumerate(axes):
        own = model[t]
        for label, colour, marker in ((False, PALETTE[0], "o"), (True, PALETTE[1], "^")):
            some = y == label
            ax.scatter(*X[some].T, s=1500 * shares[some], c=colour, marker=marker, alpha=0.7)
        cut = (ax.axvline, ax.axhline)[int(own.tree_.feature[0])]
        cut(own.tree_.threshold[0], color="black", lw=1.2)
        ax.set(title=f"round {t + 1}: error {model.estimator_errors_[t]:.2f}", xticks=[], yticks=[])
        found = samme(own.predict(X) != y, shares, 2, 1.0)
        assert found is not None
        shares = shares * found[2]
        shares /= shares.sum()
    return axes[0]


def residuals() -> Any:
    """Data, prediction and residuals after some rounds of boosting on one feature."""
    from matplotlib import pyplot

    rng = np.random.default_rng(0)
    X = rng.uniform(0, 6, (200, 1))
    y = np.sin(X[:, 0]) + rng.normal(0, 0.2, 200)
    model = HistGradientBoostingRegressor(max_leaf_nodes=4, min_samples_leaf=5, random_state=0)
    stages = list(model.fit(X, y).staged_predict(X))
    order = X[:, 0].argsort()
    x, shown = X[order, 0], (1, 2, 5, 20, 100)
    fits, rests = pyplot.subplots(
        2, len(shown), figsize=(9, 4), layout="constrained", sharex=True, sharey=True
    )[1]
    for n, fit, rest in zip(shown, fits, rests, strict=True):
        fitted = stages[n - 1][order]
        for ax, values in ((fit, y[order]), (rest, y[order] - fitted)):
            ax.plot(x, values, "o", ms=2, mec="none", mfc="#888888")
            ax.spines[["top", "right"]].set_visible(False)
        fit.plot(x, fitted, color=PALETTE[0], lw=1.6)
        fit.set_title(f"{n} round{'s' * (n > 1)}")
        rest.axhline(0, color="black", lw=0.8)
        rest.set_title(f"mean square {np.mean((y[order] - fitted) ** 2):.3f}", fontsize=9)
        rest.set_xlabel("x")
    fits[0].set_ylabel("data, prediction")
    rests[0].set_ylabel("residuals")
    return fits[0]


def loss() -> Any:
    model = HistGradientBoostingRegressor(
        early_stopping=True, n_iter_no_change=60, random_state=0, max_leaf_nodes=8
    )
    return plot_loss(model.fit(*load_diabetes(return_X_y=True)))


def explained() -> tuple[RandomForestRegressor, Any]:
    """A forest of the diabetes data, and these."""
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    return RandomForestRegressor(100, random_state=0).fit(X, y), X


def shap_summary() -> Any:
    return plot_shap_summary(*explained())


def shap_waterfall() -> Any:
    return plot_shap_waterfall(*explained(), 5, top=7)


def shap_dependence() -> Any:
    return plot_shap_dependence(*explained(), "bmi")


def dependence() -> Any:
    diabetes = load_diabetes()
    forest = RandomForestRegressor(100, min_samples_leaf=5, random_state=0)
    forest.fit(diabetes.data, diabetes.target)
    return PartialDependenceDisplay.from_estimator(
        forest,
        diabetes.data,
        ["bmi", "s5"],
        kind="both",
        subsample=60,
        random_state=0,
        feature_names=diabetes.feature_names,
        ax=pair()[0].figure.axes,
    ).axes_[0]


def survival() -> Any:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 4))
    time, end = rng.exponential(np.exp(-X[:, 0])), rng.exponential(2.0, 600)
    y = np.rec.fromarrays([time <= end, np.minimum(time, end)])
    forest = RandomSurvivalForest(random_state=0).fit(X[:400], y[:400])
    return plot_survival(forest, X[400:], y[400:])


def intervals() -> Any:
    """A forest's prediction of rows whose noise grows, and its 90 % intervals."""
    from matplotlib import pyplot

    rng = np.random.default_rng(0)
    X = np.sort(rng.uniform(0, 10, (1200, 1)), axis=0)
    y = np.sin(X[:, 0]) * 2 + rng.normal(0, 0.1 + 0.1 * X[:, 0])
    train = rng.random(1200) < 0.7
    forest = RandomForestRegressor(300, min_samples_leaf=5, oob_score=True, random_state=0)
    test, truth = X[~train], y[~train]
    low, high = forest.fit(X[train], y[train]).predict_interval(test, coverage=0.9).T
    ax = pyplot.subplots(figsize=(6.4, 4), layout="constrained")[1]
    ax.fill_between(test[:, 0], low, high, color=PALETTE[0], alpha=0.3, lw=0, label="interval")
    ax.plot(test[:, 0], forest.predict(test), color=PALETTE[0], lw=1.2, label="prediction")
    ax.plot(test[:, 0], truth, ".", color="#444444", ms=3, label="new rows")
    ax.legend(loc="lower left", frameon=False)
    ax.set(xlabel="x", ylabel="y")
    return ax


def measured(task: str, bars: dict[str, str]) -> Any:
    """Medians of a task's scores on record, as bars; `bars` has their names and their columns."""
    from matplotlib import pyplot

    record = f"{'groups' if task == 'patients' else 'blocks'}.jsonl"
    lines = (FOLDER.parents[1] / "benchmarks" / "results" / record).read_text().splitlines()
    rows = [row for row in map(json.loads, lines) if row["task"] == task]
    heights = [float(np.median([row[column] for row in rows])) for column in bars.values()]
    ax = pyplot.subplots(figsize=(6.4, 4), layout="constrained")[1]
    drawn = ax.barh(list(bars), heights, 0.6, color=[*PALETTE[1::-1], "#777777"])
    ax.bar_label(drawn, fmt="%.2f", padding=4)
    ax.spines[["top", "right"]].set_visible(False)
    ax.invert_yaxis()
    ax.margins(x=0.15)
    ax.set_xlabel("R²")
    return ax


def groups() -> Any:
    names = ("out of bag\nby rows", "out of bag\nby patients", "on new patients")
    return measured("patients", dict(zip(names, ("by_rows", "by_groups", "folds"), strict=True)))


def blocks() -> Any:
    names = ("out of bag\nby rows", "out of bag\nby blocks", "next period")
    return measured("turning", dict(zip(names, ("by_rows", "by_blocks", "next"), strict=True)))


def categories() -> Any:
    """A tree whose splits are sets of cities."""
    rng = np.random.default_rng(0)
    cities = np.array(["Bergen", "Cadiz", "Dublin", "Malaga", "Oslo", "Palermo"])
    city, month = rng.integers(0, 6, 600), rng.integers(1, 13, 600)
    y = 8 + 9 * (city % 2) - 8 * np.cos((month - 1) / 6 * np.pi) + rng.normal(0, 1, 600)
    X = np.column_stack([cities[city].astype(object), month])
    model = DecisionTreeRegressor(max_depth=2, categorical_features=[0], random_state=0)
    return plot_tree(model.fit(X, y), feature_names=["city", "month"], precision=1)


PICTURES = (
    tree,
    boundaries,
    oblique,
    steps,
    pruning,
    oob,
    importances,
    impurity,
    weights,
    residuals,
    loss,
    shap_summary,
    shap_waterfall,
    shap_dependence,
    dependence,
    survival,
    intervals,
    groups,
    blocks,
    categories,
)


def report() -> bytes | None:
    """Parts of a report as a browser shows them; None: there is no browser."""
    try:
        from selenium import webdriver
    except ImportError:
        return None
    if shutil.which("chromedriver") is None:
        return None
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    kind = CANCER.target_names[y]
    forest = RandomForestClassifier(oob_score=True, random_state=0).fit(X[::2], kind[::2])
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for flag in ("headless", "no-sandbox", "hide-scrollbars", "window-size=1160,4000"):
        options.add_argument(f"--{flag}")
    with TemporaryDirectory() as made:
        options.add_argument(f"--user-data-dir={made}/browser")
        page = Path(made, "report.html")
        forest.report(X[1::2], kind[1::2], path=page)
        browser = webdriver.Chrome(options, webdriver.ChromeService(shutil.which("chromedriver")))
        browser.get(page.as_uri())
        parts = ("header", ".tiles", "#confusions .box", "#curves")
        shots = [browser.find_element("css selector", part).screenshot_as_png for part in parts]
        browser.quit()
    images = [Image.open(BytesIO(shot)).convert("RGB") for shot in shots]
    width, space = max(image.width for image in images) + 40, 20
    height = sum(image.height + space for image in images) + space
    whole, down = Image.new("RGB", (width, height), "white"), space
    for image in images:
        whole.paste(image, (space, down))
        down += image.height + space
    drawn = BytesIO()
    whole.save(drawn, "png")
    return drawn.getvalue()


SCREENSHOTS = (report,)


def main(folder: Path = FOLDER) -> None:
    """Draw them all."""
    matplotlib.use("agg")
    for draw in PICTURES:
        drawn = BytesIO()
        draw().figure.savefig(drawn, dpi=DPI)
        picture = Image.open(drawn).convert("RGB").quantize(COLOURS)
        picture.save(folder / f"{draw.__name__}.png", optimize=True)
    for shoot in SCREENSHOTS:
        if (shot := shoot()) is not None:
            picture = Image.open(BytesIO(shot)).quantize(COLOURS)
            picture.save(folder / f"{shoot.__name__}.png", optimize=True)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
