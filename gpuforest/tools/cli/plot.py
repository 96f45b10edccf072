"""`plot` and `report`: pictures of a saved model, and a page about it for people."""

from __future__ import annotations

import argparse
import inspect
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sklearn.utils import Bunch

import gpuforest
from gpuforest.common.progress import progress_bar
from gpuforest.data.frames import Table, find_columns
from gpuforest.export.container import replaced
from gpuforest.tools.cli import files, options, output
from gpuforest.tools.cli.predict import permutation_importances
from gpuforest.tools.plot import shap, style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# what a file says of when it was made, so that the same picture is the same file
TIMELESS: dict[str, Any] = {".png": {}, ".svg": {"Date": None}, ".pdf": {"CreationDate": None}}

KINDS = ("impurity", "permutation", "oob-impurity", "oob-permutation")  # of importances
ROWS = (options.PARAMETERS["X"], options.PARAMETERS["y"])
KIND = f"""\
--kind {"|".join(KINDS)}  impurity: gains of the splits (default); permutation: what \
permuting costs on the rows of --data (default with it); oob-impurity: gains for the rows out of \
bag; oob-permutation: what permuting these costs; for the last two --data is the file of training"""
BESIDE = "--tree N  the tree that is drawn beside its forest (default: 0, the first)"
# pictures by their words, and options that are no parameters of their functions
PICTURES = {name.removeprefix("plot_").replace("_", "-"): name for name in gpuforest.plot.__all__}
MORE: dict[str, tuple[Any, ...]] = {
    "boundaries": (BESIDE,),
    "steps": (BESIDE,),
    "importances": (KIND, *ROWS, options.declare_reading),
    "survival": (options.EVENT,),
}
TEST = f"--data FILE  rows that were not in the training, to test with: {options.FILE}"
REPORT = "--out FILE!  the .html file to write", TEST, ROWS[1], options.EVENT, options.DROP_MISSING


def add_plot_arguments(command: argparse.ArgumentParser) -> None:
    """Declare the arguments of `plot`, which follow from the functions that draw."""
    kinds = command.add_subparsers(dest="picture", metavar="KIND", required=True)
    for kind, name in PICTURES.items():
        function = getattr(gpuforest.plot, name)
        text = (inspect.getdoc(function) or "").partition("\n\nParameters")[0].replace("%", "%%")
        parser = kinds.add_parser(kind, help=text.partition("\n\n")[0], description=text)
        model = () if kind == "impurity" else (options.MODEL,)
        options.declare(parser, *model, "--out FILE!  a .png, .svg or .pdf file to write")
        options.declare_function(parser, function)
        options.declare(parser, *MORE.get(kind, ()))


def run_plot(arguments: argparse.Namespace) -> None:
    """Load, draw and write."""
    inputs = options.options_of(arguments, "model", "data", "background").values()
    out = output.writable(arguments.out, *inputs, endings=tuple(TIMELESS))
    style.require_matplotlib()
    import matplotlib

    matplotlib.use("agg")  # no window is opened, wherever it runs
    with progress_bar():
        model = None if arguments.picture == "impurity" else files.load_model(arguments)
        write(draw(model, arguments), out)
    output.done(f"{arguments.picture} drawn to", out)


def draw(model: Any, arguments: argparse.Namespace) -> Figure:
    """The picture."""
    kind = arguments.picture
    if kind in ("boundaries", "steps"):
        return draw_both(model, arguments)
    function, drawn = getattr(gpuforest.plot, PICTURES[kind]), [] if model is None else [model]
    taken = inspect.signature(function).parameters
    params = options.options_of(arguments, *taken)
    if kind == "importances":
        drawn[0], params["feature_names"] = importances_of(model, arguments)
    elif "output" in taken:  # SHAP values
        params["background"] = files.background_of(model, arguments)
        if (word := vars(arguments)["class"]) is not None:
            labels = shap.labels_of(model)
            params["output"] = next((label for label in labels if str(label) == word), word)
        drawn.append(files.ModelRows(model, arguments).features())
    elif kind == "effects":
        drawn.append(files.ModelRows(model, arguments).features())
    elif "X" in taken and (table := table_of(model, arguments)) is not None:
        drawn += [table.X, table.y]
    figure: Figure = function(*drawn, **params).get_figure(root=True)
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
        if kind == "permutation":
            return permutation_importances(model, table), table.names
        find = getattr(gpuforest, f"{kind.replace('-', '_')}_importance")
        return find(model, table.X, table.y), table.names
    if kind == "oob-impurity" and hasattr(model, "unbiased_feature_importances_"):
        means = model.unbiased_feature_importances_
        names = [str(name) for name in getattr(model, "feature_names_in_", [])]
        label = "decrease of impurity out of bag"
        return Bunch(importances_mean=means, importances_std=None, measure=label), names or None
    rows = "that it was trained on" if kind.startswith("oob") else "to permute the features of"
    raise ValueError(f"--kind {kind} needs the rows {rows}: add --data FILE")


def table_of(model: Any, arguments: argparse.Namespace) -> Table | None:
    """The rows of --data, or None if it is not given."""
    return files.ModelRows(model, arguments).table() if files.has_data(arguments) else None


def draw_both(model: Any, arguments: argparse.Namespace) -> Figure:
    """Draw one tree beside its forest; a single tree or a boosted model alone."""
    from matplotlib import pyplot

    table = files.ModelRows(model, arguments).table()
    features = features_of(model, table, arguments)
    models = models_of(model, arguments.tree)
    size = style.SIZE[0] * (1.5 if len(models) > 1 else 1.0), style.SIZE[1]
    figure, axes = pyplot.subplots(
        1, len(models), figsize=size, layout="constrained", sharex=True, sharey=True, squeeze=False
    )
    for ax, (name, shown) in zip(axes[0], models.items(), strict=True):
        if len(features) == 2:
            is_last = ax is axes[0, -1]
            gpuforest.plot.plot_boundaries(shown, table.X, table.y, features, legend=is_last, ax=ax)
        else:
            gpuforest.plot.plot_steps(shown, table.X, table.y, features[0], n_trees=0, ax=ax)
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
    if trees[0] is not model:
        models[f"forest of {len(trees)} trees"] = model
    return models


def features_of(model: Any, table: Table, arguments: argparse.Namespace) -> list[str]:
    """The names of the features to draw over: two for boundaries, one for steps."""
    n, given = (2, "features") if arguments.picture == "boundaries" else (1, "feature")
    if (named := getattr(arguments, given)) is None:
        order = (-model.feature_importances_).argsort(kind="stable")
        numeric = [i for i in order if i not in model.forest_.edges.categories]
        names = [str(model.feature_names_in_[i]) for i in numeric[:n]]
    else:
        names = [named] if n == 1 else files.names_of([named])
    names = find_columns(table.frame, names)
    if len(names) != n:
        raise ValueError(f"{n} features of numbers are needed, not {len(names)}")
    return names


def write(figure: Figure, out: Path) -> None:
    """Write the picture whole or not at all."""
    from matplotlib import pyplot, rc_context

    suffix = out.suffix.lower()
    try:
        with rc_context(style.STYLE), replaced(out) as path:
            figure.savefig(path, format=suffix[1:], dpi=style.DPI, metadata=TIMELESS[suffix])
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
