"""Draw a picture of a saved model."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sklearn.utils import Bunch

import gpuforest
from gpuforest.cli.file_options import DATA, add_reading_options, names_of, target_of
from gpuforest.cli.output import writable
from gpuforest.cli.permutation import permutation_importances
from gpuforest.cli.plot_shap import SHAP_KINDS, add_shap_arguments, draw_shap
from gpuforest.cli.predict import load_for, set_runtime, used
from gpuforest.cli.show import printable, progress_bar
from gpuforest.data.columns import Table, require_column
from gpuforest.data.values import Reading
from gpuforest.export.container import replaced
from gpuforest.plot import (
    plot_boundaries,
    plot_importances,
    plot_impurity,
    plot_loss,
    plot_oob,
    plot_pruning,
    plot_steps,
    plot_tree,
)
from gpuforest.plot.style import DPI, SIZE, STYLE, require_matplotlib

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# what a file says of when it was made, so that the same picture is the same file
TIMELESS: dict[str, Any] = {".png": {}, ".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
KINDS = {
    "tree": "one tree: its conditions, samples, values and classes",
    "boundaries": "what one tree and the forest predict over two features",
    "steps": "what one tree and the forest predict along one feature: numbers",
    "pruning": "the errors that a tree's alpha was chosen by (train --model tree --ccp-alpha cv)",
    "oob": "the out-of-bag error against the number of trees",
    "importances": "the features' importances: by gains, by permutation, or by rows out of bag",
    "loss": "the loss of a boosted model against its rounds",
    **SHAP_KINDS,
    "impurity": "impurities of two classes; needs no model",
}
# what --data is to a picture, and the option that names the features that some are drawn over
DATA_OF = {
    "boundaries": "points",
    "steps": "points",
    "importances": "rows to find importances from",
    "loss": "rows whose loss is drawn too",
}
OVER = {
    "boundaries": (
        "--features",
        "A,B",
        "two, separated by a comma (default: the two of most importance)",
    ),
    "steps": ("--feature", "A", "its name (default: the one of most importance)"),
}

# the importances that can be drawn, and what finds them from the rows of --data
IMPORTANCES: dict[str, Any] = {
    "impurity": None,
    "permutation": permutation_importances,
    "oob-impurity": lambda model, rows: gpuforest.oob_impurity_importance(model, rows.X, rows.y),
    "oob-permutation": lambda model, rows: gpuforest.oob_permutation_importance(
        model, rows.X, rows.y
    ),
}
KIND_HELP = (
    "impurity: gains of the splits (default); permutation: what permuting costs on the rows of "
    "--data (default with it); oob-impurity: gains for the rows out of bag; oob-permutation: what "
    "permuting these costs; for the last two --data is the file of training"
)


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    kinds = command.add_subparsers(dest="kind", metavar="KIND", required=True)
    for kind, text in KINDS.items():
        own = kinds.add_parser(kind, help=text, description=f"Draw {text}.")
        if kind != "impurity":
            own.add_argument("model", metavar="MODEL", help="a file that `gpuforest train` wrote")
        own.add_argument(
            "--out", metavar="FILE", required=True, help="a .png, .svg or .pdf file to write"
        )
        if kind in ("tree", "boundaries", "steps"):
            own.add_argument("--tree", metavar="N", type=int, help="tree N (default: 0, the first)")
        if kind == "tree":
            own.add_argument(
                "--max-depth", metavar="D", type=int, help="levels to show (default: all)"
            )
        if kind in DATA_OF:
            add_data(own, kind)
        if kind in SHAP_KINDS:
            add_shap_arguments(own, kind)
        if kind == "importances":
            own.add_argument("--kind", dest="of", choices=IMPORTANCES, help=KIND_HELP)
            own.add_argument(
                "--top", metavar="N", type=int, default=20, help="features to show (default: 20)"
            )


def add_data(command: argparse.ArgumentParser, kind: str) -> None:
    """Declare the rows, and the features to draw over."""
    needed, text = kind in OVER, DATA_OF[kind]
    command.add_argument("--data", metavar="FILE", required=needed, help=f"{text}: {DATA}")
    command.add_argument(
        "--target",
        metavar="COLUMN",
        help="the column that the model predicts (default: as in training)",
    )
    if needed:
        option, metavar, text = OVER[kind]
        command.add_argument(option, dest="features", metavar=metavar, help=text)
    add_reading_options(command)


def run(arguments: argparse.Namespace) -> None:
    """Load, draw and write."""
    inputs = (getattr(arguments, name, None) for name in ("model", "data", "background"))
    out = writable(arguments.out, *inputs)
    if out.suffix.lower() not in TIMELESS:
        raise ValueError(f"--out {out}: a name that ends in .png, .svg or .pdf")
    require_matplotlib()
    import matplotlib

    matplotlib.use("agg")  # no window is opened, wherever it runs
    with progress_bar():
        model = None
        if arguments.kind != "impurity":
            model = gpuforest.load(arguments.model)
            set_runtime(model, {})
        write(draw(model, arguments), out)
    print(printable(f"{arguments.kind} drawn to {out}"))


def draw(model: Any, arguments: argparse.Namespace) -> Figure:
    """The picture."""
    match arguments.kind:
        case "tree":
            ax = plot_tree(model, arguments.tree or 0, max_depth=arguments.max_depth)
        case "boundaries" | "steps":
            return draw_both(model, arguments)
        case "pruning":
            ax = plot_pruning(model)
        case "oob":
            ax = plot_oob(model)
        case "importances":
            shown, names = importances_of(model, arguments)
            ax = plot_importances(shown, top=arguments.top, feature_names=names)
        case "loss":
            table = rows_of(model, arguments)
            ax = plot_loss(model, *([] if table is None else [table.X, table.y]))
        case kind if kind in SHAP_KINDS:
            ax = draw_shap(model, arguments)
        case _:
            ax = plot_impurity()
    figure = ax.get_figure(root=True)
    assert figure is not None
    return figure


def importances_of(model: Any, arguments: argparse.Namespace) -> tuple[Any, list[str] | None]:
    """What `plot_importances` takes, and the names of the features; None: as the model has them."""
    table = rows_of(model, arguments)
    kind = arguments.of or ("impurity" if table is None else "permutation")
    if kind == "impurity":
        if table is not None:
            raise ValueError("--kind impurity is of the model alone: leave --data out")
        return model, None
    if table is not None:
        found: Any = IMPORTANCES[kind](model, table)
        return found, table.names
    if kind == "oob-impurity" and hasattr(model, "unbiased_feature_importances_"):
        means, names = model.unbiased_feature_importances_, used(model)
        label = "decrease of impurity out of bag"
        return Bunch(importances_mean=means, importances_std=None, measure=label), names or None
    rows = "that it was trained on" if kind.startswith("oob") else "to permute the features of"
    raise ValueError(f"--kind {kind} needs the rows {rows}: add --data FILE")


def rows_of(model: Any, arguments: argparse.Namespace) -> Table | None:
    """The rows of --data; None: it is not given."""
    if arguments.data is None:
        for name in ("target", *Reading.__dataclass_fields__):
            if getattr(arguments, name) is not None:
                option = name.replace("_", "-")
                raise ValueError(f"--{option} is about the rows of a file: add --data FILE")
        return None
    return load_for(model, arguments, target_of(model, arguments))


def draw_both(model: Any, arguments: argparse.Namespace) -> Figure:
    """Draw one tree of a forest and, beside it, the forest; a model of one tree, or a boosted one,
    by itself."""
    from matplotlib import pyplot

    table = load_for(model, arguments, target_of(model, arguments))
    features = chosen(model, table, arguments)
    models = shown_of(model, arguments.tree)
    size = SIZE[0] * (1.5 if len(models) > 1 else 1.0), SIZE[1]
    figure, axes = pyplot.subplots(
        1, len(models), figsize=size, layout="constrained", sharex=True, sharey=True, squeeze=False
    )
    for ax, (name, shown) in zip(axes[0], models.items(), strict=True):
        if len(features) == 2:
            is_last = ax is axes[0, -1]
            plot_boundaries(shown, table.X, table.y, features, legend=is_last, ax=ax)
        else:
            plot_steps(shown, table.X, table.y, features[0], n_trees=0, ax=ax)
        ax.set_title(name)
        ax.label_outer()
    return figure


def shown_of(model: Any, tree: int | None) -> dict[str, Any]:
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
    found = {f"tree {number}": trees[number]}
    if hasattr(model, "estimators_"):
        found[f"forest of {model.forest_.n_trees} trees"] = model
    return found


def chosen(model: Any, table: Table, arguments: argparse.Namespace) -> list[str]:
    """The names of the features to draw over, one or two."""
    n = 2 if arguments.kind == "boundaries" else 1
    if arguments.features is None:
        order = (-model.feature_importances_).argsort(kind="stable")
        numeric = [i for i in order if i not in model.forest_.edges.categories]
        found = [str(model.feature_names_in_[i]) for i in numeric[:n]]
    else:
        found = [arguments.features] if n == 1 else names_of([arguments.features])
    for name in found:
        require_column(table.frame, name)
    if len(found) != n:
        raise ValueError(f"{n} features of numbers are needed, not {len(found)}")
    return found


def write(figure: Figure, out: Path) -> None:
    """Write the picture whole or not at all."""
    from matplotlib import pyplot, rc_context

    suffix = out.suffix.lower()
    with rc_context(STYLE), replaced(out) as path:
        figure.savefig(path, format=suffix[1:], dpi=DPI, metadata=TIMELESS[suffix])
    pyplot.close(figure)
