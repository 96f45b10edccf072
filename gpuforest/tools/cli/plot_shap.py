"""Draw the SHAP values of a saved model on the rows of a file."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from gpuforest.tools.cli.explain import add_background, background_of
from gpuforest.tools.cli.file_options import DATA, add_reading_options, read_for
from gpuforest.tools.cli.predict import choose
from gpuforest.tools.plot import (
    plot_shap_bar,
    plot_shap_dependence,
    plot_shap_summary,
    plot_shap_waterfall,
)
from gpuforest.tools.plot.explained import labels_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SHAP_KINDS = {
    "shap-summary": "a point for each row's SHAP value of each feature",
    "shap-bar": "the mean size of each feature's SHAP values",
    "shap-waterfall": "the SHAP values of one row, from the expected value to its prediction",
    "shap-dependence": "the SHAP values of one feature against its values",
}
TOP = {"shap-summary": 20, "shap-bar": 20, "shap-waterfall": 10}


def add_shap_arguments(command: argparse.ArgumentParser, kind: str) -> None:
    """Declare the rows, and what is drawn of them."""
    command.add_argument("--data", metavar="FILE", required=True, help=f"rows: {DATA}")
    add_background(command)
    command.add_argument(
        "--class", dest="label", metavar="CLASS", help="the class (default: the second of two)"
    )
    if kind in TOP:
        command.add_argument(
            "--top",
            metavar="N",
            type=int,
            default=TOP[kind],
            help=f"features to show (default: {TOP[kind]})",
        )
    if kind == "shap-waterfall":
        command.add_argument(
            "--row", metavar="N", type=int, default=0, help="row N (default: 0, the first)"
        )
    if kind == "shap-dependence":
        command.add_argument("--feature", metavar="A", required=True, help="its name")
        command.add_argument(
            "--color-by",
            metavar="B",
            default="auto",
            help="the feature that gives the colour (default: the one that interacts most)",
        )
    add_reading_options(command)


def draw_shap(model: Any, arguments: argparse.Namespace) -> Axes:
    """The picture."""
    background = background_of(model, arguments)
    X = choose(model, read_for(model, arguments, []))[0]
    how: dict[str, Any] = {"background": background, "output": class_of(model, arguments.label)}
    match arguments.kind:
        case "shap-summary":
            return plot_shap_summary(model, X, top=arguments.top, **how)
        case "shap-bar":
            return plot_shap_bar(model, X, top=arguments.top, **how)
        case "shap-waterfall":
            return plot_shap_waterfall(model, X, arguments.row, top=arguments.top, **how)
        case _:
            return plot_shap_dependence(
                model, X, arguments.feature, color_by=arguments.color_by, **how
            )


def class_of(model: Any, given: str | None) -> Any:
    """The class, or the number of the output, that is written so; None: none is given."""
    if given is None:
        return None
    n_outputs = model.forest_.coding.n_values
    return next((label for label in labels_of(model, n_outputs) if str(label) == given), given)
