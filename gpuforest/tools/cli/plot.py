"""`plot` and `report`: pictures of a saved model, and a page about it for people."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sklearn.utils import Bunch

import gpuforest
from gpuforest.common.progress import progress_bar
from gpuforest.data.frames import Table, find_columns
from gpuforest.export.container import replaced
from gpuforest.tools import plot
from gpuforest.tools.cli import files, options, output
from gpuforest.tools.cli.predict import BACKGROUND, permutation_importances
from gpuforest.tools.plot.shap import labels_of
from gpuforest.tools.plot.style import DPI, SIZE, STYLE, require_matplotlib

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# what a file says of when it was made, so that the same picture is the same file
TIMELESS: dict[str, Any] = {".png": {}, ".svg": {"Date": None}, ".pdf": {"CreationDate": None}}

# the importances that can be drawn, and what finds them from the rows of --data
IMPORTANCES: dict[str, Any] = {
    "impurity": None,
    "permutation": permutation_importances,
    "oob-impurity": lambda model, rows: gpuforest.oob_impurity_importance(model, rows.X, rows.y),
    "oob-permutation": lambda model, rows: gpuforest.oob_permutation_importance(
        model, rows.X, rows.y
    ),
}
TREE = "--tree N  tree N (default: 0, the first)"
DEPTH = "--max-depth D  levels to show (default: all)"
DATA = "--data FILE{}  {}: " + options.FILE
TARGET = "--target COLUMN  the column that the model predicts (default: as in training)"
EVENT = "--event COLUMN  the column of whether the event came (default: as in training)"
CLASS = "--class CLASS  the class (default: the second of two)"
KIND = f"""\
--kind {"|".join(IMPORTANCES)}  impurity: gains of the splits (default); permutation: what \
permuting costs on the rows of --data (default with it); oob-impurity: gains for the rows out of \
bag; oob-permutation: what permuting these costs; for the last two --data is the file of training"""
GIVEN = ("tree", "max_depth", "top", "row", "feature", "color_by", "groups")  # to pass on
ROWS = (DATA.format("!", "rows"), BACKGROUND, CLASS)
POINTS = (DATA.format("!", "points"), TARGET)


def _top(function: Callable[..., Any]) -> str:
    return f"--top N  features to show (default: {options.default_of(function, 'top')})"


# what each kind of picture shows, and its options
PICTURES: dict[str, tuple[str, ...]] = {
    "tree": ("one tree: its conditions, samples, values and classes", TREE, DEPTH),
    "boundaries": (
        "what one tree and the forest predict over two features",
        *(TREE, *POINTS),
        "--features A,B  two, separated by a comma (default: the two of most importance)",
    ),
    "steps": (
        "what one tree and the forest predict along one feature: numbers",
        *(TREE, *POINTS),
        "--feature A  its name (default: the one of most importance)",
    ),
    "pruning": (
        "the errors that a tree's alpha was chosen by (train --model tree --ccp-alpha cv)",
    ),
    "oob": ("the out-of-bag error against the number of trees",),
    "importances": (
        "the features' importances: by gains, by permutation, or by rows out of bag",
        *(DATA.format("", "rows to find importances from"), TARGET),
        *(KIND, _top(plot.plot_importances)),
    ),
    "survival": (
        "the survival of groups of rows by risk, and what a survival forest says of them",
        *(DATA.format("!", "rows that were not in the training"), TARGET, EVENT),
        "--groups N  groups of equal size "
        f"(default: {options.default_of(plot.plot_survival, 'groups')})",
    ),
    "loss": (
        "the loss of a boosted model against its rounds",
        *(DATA.format("", "rows whose loss is drawn too"), TARGET),
    ),
    "shap-summary": (
        "a point for each row's SHAP value of each feature",
        *(*ROWS, _top(plot.plot_shap_summary)),
    ),
    "shap-bar": ("the mean size of each feature's SHAP values", *(*ROWS, _top(plot.plot_shap_bar))),
    "shap-waterfall": (
        "the SHAP values of one row, from the expected value to its prediction",
        *(*ROWS, _top(plot.plot_shap_waterfall), "--row N  row N (default: 0, the first)"),
    ),
    "shap-dependence": (
        "the SHAP values of one feature against its values",
        *ROWS,
        "--feature A!  its name",
        "--color-by B  the feature that gives the colour (default: the one that interacts most)",
    ),
    "impurity": ("impurities of two classes; needs no model",),
}
REPORT = (
    "--out FILE!  the .html file to write",
    DATA.format("", "rows that were not in the training, to test with"),
    TARGET,
    EVENT,
    "--drop-missing-target  leave out rows without a target",
)


def add_plot_arguments(command: argparse.ArgumentParser) -> None:
    """Declare the arguments of `plot`."""
    kinds = command.add_subparsers(dest="picture", metavar="KIND", required=True)
    out = "--out FILE!  a .png, .svg or .pdf file to write"
    for kind, (text, *tables) in PICTURES.items():
        parser = kinds.add_parser(kind, help=text, description=f"Draw {text}.")
        model = () if kind == "impurity" else (options.MODEL,)
        has_data = any(table.startswith("--data") for table in tables)
        options.declare(parser, *model, out, *tables, *[options.declare_reading] * has_data)


def run_plot(arguments: argparse.Namespace) -> None:
    """Load, draw and write."""
    inputs = options.options_of(arguments, "model", "data", "background").values()
    out = output.writable(arguments.out, *inputs, endings=tuple(TIMELESS))
    require_matplotlib()
    import matplotlib

    matplotlib.use("agg")  # no window is opened, wherever it runs
    with progress_bar():
        model = None if arguments.picture == "impurity" else files.load_model(arguments)
        write(draw(model, arguments), out)
    output.done(f"{arguments.picture} drawn to", out)


def draw(model: Any, arguments: argparse.Namespace) -> Figure:
    """The picture."""
    params = options.options_of(arguments, *GIVEN)
    kind = arguments.picture
    if kind in ("boundaries", "steps"):
        return draw_both(model, arguments)
    drawn: list[Any] = [] if kind == "impurity" else [model]
    if kind == "importances":
        shown, params["feature_names"] = importances_of(model, arguments)
        drawn = [shown]
    elif kind in ("loss", "survival") and (table := table_of(model, arguments)) is not None:
        drawn += [table.X, table.y]
    elif kind.startswith("shap"):
        params["background"] = files.background_of(model, arguments)
        if (word := vars(arguments)["class"]) is not None:
            labels = labels_of(model, model.forest_.coding.n_values)
            params["output"] = next((label for label in labels if str(label) == word), word)
        drawn.append(files.ModelRows(model, arguments).features())
    ax = getattr(plot, f"plot_{kind.replace('-', '_')}")(*drawn, **params)
    figure: Figure = ax.get_figure(root=True)
    return figure


def importances_of(model: Any, arguments: argparse.Namespace) -> tuple[Any, list[str] | None]:
    """What `plot_importances` takes, and the features' names, or None for those of the model."""
    table = table_of(model, arguments)
    kind = arguments.kind or ("impurity" if table is None else "permutation")
    if kind == "impurity":
        if table is not None:
            raise ValueError("--kind impurity is of the model alone: leave --data out")
        return model, None
    if table is not None:
        return IMPORTANCES[kind](model, table), table.names
    if kind == "oob-impurity" and hasattr(model, "unbiased_feature_importances_"):
        means = model.unbiased_feature_importances_
        names = [str(name) for name in getattr(model, "feature_names_in_", [])]
        label = "decrease of impurity out of bag"
        return Bunch(importances_mean=means, importances_std=None, measure=label), names or None
    rows = "that it was trained on" if kind.startswith("oob") else "to permute the features of"
    raise ValueError(f"--kind {kind} needs the rows {rows}: add --data FILE")


def table_of(model: Any, arguments: argparse.Namespace) -> Table | None:
    """The rows of --data, or None if it is not given."""
    if not files.has_data(arguments):
        return None
    return files.ModelRows(model, arguments).table()


def draw_both(model: Any, arguments: argparse.Namespace) -> Figure:
    """Draw one tree beside its forest; a single tree or a boosted model alone."""
    from matplotlib import pyplot

    table = files.ModelRows(model, arguments).table()
    features = features_of(model, table, arguments)
    models = models_of(model, arguments.tree)
    size = SIZE[0] * (1.5 if len(models) > 1 else 1.0), SIZE[1]
    figure, axes = pyplot.subplots(
        1, len(models), figsize=size, layout="constrained", sharex=True, sharey=True, squeeze=False
    )
    for ax, (name, shown) in zip(axes[0], models.items(), strict=True):
        if len(features) == 2:
            is_last = ax is axes[0, -1]
            plot.plot_boundaries(shown, table.X, table.y, features, legend=is_last, ax=ax)
        else:
            plot.plot_steps(shown, table.X, table.y, features[0], n_trees=0, ax=ax)
        ax.set_title(name)
        ax.label_outer()
    return figure


def models_of(model: Any, tree: int | None) -> dict[str, Any]:
    """What is drawn side by side: a tree and its forest, a single tree, or a boosted model."""
    if model.forest_.baseline is not None:
        if tree is not None:
            raise ValueError(
                "--tree: a tree of a boosted model predicts nothing by itself: leave it out"
            )
        return {f"{model.n_iter_} rounds": model}
    number, trees = tree or 0, getattr(model, "estimators_", [model])
    if not 0 <= number < len(trees):
        raise ValueError(f"tree {number} does not exist: choose one of 0 to {len(trees) - 1}")
    models = {f"tree {number}": trees[number]}
    if hasattr(model, "estimators_"):
        models[f"forest of {model.forest_.n_trees} trees"] = model
    return models


def features_of(model: Any, table: Table, arguments: argparse.Namespace) -> list[str]:
    """The names of the features to draw over: two for boundaries, one for steps."""
    n = 2 if arguments.picture == "boundaries" else 1
    option = arguments.features if n == 2 else arguments.feature
    if option is None:
        order = (-model.feature_importances_).argsort(kind="stable")
        numeric = [i for i in order if i not in model.forest_.edges.categories]
        names = [str(model.feature_names_in_[i]) for i in numeric[:n]]
    else:
        names = [option] if n == 1 else files.names_of([option])
    names = find_columns(table.frame, names)
    if len(names) != n:
        raise ValueError(f"{n} features of numbers are needed, not {len(names)}")
    return names


def write(figure: Figure, out: Path) -> None:
    """Write the picture whole or not at all."""
    from matplotlib import pyplot, rc_context

    suffix = out.suffix.lower()
    try:
        with rc_context(STYLE), replaced(out) as path:
            figure.savefig(path, format=suffix[1:], dpi=DPI, metadata=TIMELESS[suffix])
    finally:
        pyplot.close(figure)


def run_report(arguments: argparse.Namespace) -> None:
    """Load, compute and write."""
    out = output.writable(arguments.out, arguments.model, arguments.data, endings=(".html", ".htm"))
    notes: tuple[str, ...] = ()
    with progress_bar():
        model, X, y = files.load_model(arguments), None, None
        if files.has_data(arguments):
            rows = files.ModelRows(model, arguments)
            if hasattr(model, "score"):
                table = rows.table(drop_missing_target=arguments.drop_missing_target)
                X, y, notes = table.X, table.y, table.notes
            else:  # it has no target
                X = rows.features()
        model.report(X, y, path=out)
    for note in notes:
        output.say(note)
    output.done("report written to", out)


COMMANDS = (  # name, help, options, function that runs
    ("plot", "Draw a picture of a saved model.", (add_plot_arguments,), run_plot),
    (
        "report",
        "Write a report on a saved model for people: one HTML file, which loads nothing.",
        (options.MODEL, *REPORT, options.declare_runtime, options.declare_reading),
        run_report,
    ),
)
