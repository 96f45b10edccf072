"""Show what a saved model is, or one of its trees."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import gpuforest
from gpuforest.cli.export import FORMS, WHOLE, tree_text
from gpuforest.cli.facts import (
    category_rows,
    importance_rows,
    named,
    oob_rows,
    plain,
)
from gpuforest.cli.show import print_rows, printable
from gpuforest.export.python import export_python
from gpuforest.inspection.model_facts import changed_settings, model_facts, rounds_rows


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    command.add_argument("model", metavar="MODEL", help="a file that `gpuforest train` wrote")
    form = command.add_mutually_exclusive_group()
    form.add_argument("--tree", metavar="N", type=int, help="print tree N; the first one is 0")
    form.add_argument(
        "--json", action="store_true", help="print one JSON object instead of the summary"
    )
    command.add_argument(
        "--as",
        dest="form",
        choices=FORMS,
        help="with --tree: indented text (the default), rules in words, a Python function, or "
        "dot for Graphviz; python without --tree: all trees of a boosted model",
    )
    command.add_argument(
        "--max-depth",
        metavar="D",
        type=int,
        help="with --tree, as text or dot: levels to show (default: all)",
    )


def run(arguments: argparse.Namespace) -> None:
    """Load and show."""
    whole = arguments.form == "python" and arguments.tree is None and not arguments.json
    for option, given in (("--max-depth", arguments.max_depth), ("--as", arguments.form)):
        if given is not None and arguments.tree is None and not (whole and option == "--as"):
            raise ValueError(f"{option} is for one tree: add --tree N")
    if arguments.max_depth is not None and arguments.form in WHOLE:
        raise ValueError(f"--as {arguments.form} shows all of a tree: leave out --max-depth")
    model = gpuforest.load(arguments.model)
    if whole:
        if model.forest_.baseline is None:
            raise ValueError("--as python without --tree is for boosted models: add --tree N")
        print(printable(export_python(model, None)), end="")
        return
    if arguments.tree is not None:
        form = arguments.form or "text"
        for part in tree_text(model, form, arguments.tree, arguments.max_depth):
            print(printable(part), end="")
        return
    path = Path(arguments.model)
    facts = {"file": str(path), "bytes": path.stat().st_size, **describe(model)}
    if arguments.json:
        print(json.dumps(facts, default=plain, allow_nan=False))
    else:
        print_rows(summary(facts), "gpuforest inspect")


def describe(model: Any) -> dict[str, Any]:
    """A model as a script reads it; `settings` are the parameters that are not the defaults."""
    settings = changed_settings(model)
    # nothing to compile, no GPU to wake
    if "backend" in model.get_params(deep=False):
        model.set_params(backend="numpy")
    else:
        model.estimator = model.estimator_.set_params(backend="numpy")
    return {**model_facts(model), "settings": settings}


def summary(facts: dict[str, Any]) -> list[tuple[str, str]]:
    """The facts as lines for a reader."""
    settings = [f"{name}={value!r}" for name, value in facts["settings"].items()]
    return [
        ("file", f"{facts['file']}, {facts['bytes']:,} bytes"),
        ("estimator", f"{facts['estimator']}, seed {facts['seed']}"),
        ("task", facts["task"] + named(facts["classes"])),
        ("features", f"{facts['features']:,}, of which {len(facts['categories']):,} categorical"),
        *category_rows(facts),
        ("trees", f"{facts['trees']:,}"),
        ("nodes", f"{facts['nodes']:,}, of which {facts['leaves']:,} leaves"),
        (
            "depth",
            f"{facts['min_depth']:,} to {facts['depth']:,}, on average {facts['mean_depth']:.1f}",
        ),
        *(rounds_rows(facts["boosting"]) if "boosting" in facts else []),
        ("settings", ", ".join(settings) or "the defaults"),
        *oob_rows(facts),
        *importance_rows(facts),
    ]
