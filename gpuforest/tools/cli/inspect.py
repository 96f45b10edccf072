"""`inspect` and `export`: a saved model as a summary, as text, and as files for other programs."""

from __future__ import annotations

import argparse
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gpuforest
from gpuforest.common.progress import progress_bar
from gpuforest.explain.model_facts import changed_settings, feature_names, model_facts, rounds_rows
from gpuforest.export import c, graphviz, python
from gpuforest.export.container import replaced
from gpuforest.export.text import export_rules, tree_lines
from gpuforest.tools.cli import options, output

TREE = "--tree N  tree N (default: 0, the first)"
DEPTH = "--max-depth D  levels to write (default: all)"
DTYPE = "--dtype float32|float64  of the numbers that it takes (default: {})"
# what each kind of export is, and its options
EXPORTS = {
    "onnx": (
        "an ONNX model, for ONNX Runtime and others",
        DTYPE.format("float32"),
        "--ml-version 3|5  of the operators ai.onnx.ml (default: 3; with categories 5)",
    ),
    "treelite": ("a file of treelite, for nvForest, FIL and TL2cgen",),
    "c": (
        "one C99 file without libraries or allocation",
        DTYPE.format("float64"),
        "--name NAME  of the function (default: predict)",
    ),
    "sklearn": ("a pickle of scikit-learn's estimator of the same trees",),
    "text": ("one tree as indented text", TREE, DEPTH),
    "rules": ("one tree as rules in words", TREE),
    "python": (
        "one tree as a Python function, or all trees of a boosted model",
        TREE[:-1] + "; of a boosted model all trees)",
    ),
    "dot": ("one tree as dot for Graphviz", TREE, DEPTH),
}
FORMS = ("text", "rules", "python", "dot")  # of one tree
WHOLE = ("rules", "python")  # options that leave nothing out
INSPECT_OPTIONS = f"""\
--as {"|".join(FORMS)}  with --tree: indented text (the default), rules in words, a Python \
function, or dot for Graphviz; python without --tree: all trees of a boosted model
--max-depth D  with --tree, as text or dot: levels to show (default: all)"""


def _tree_or_json(command: argparse.ArgumentParser) -> None:
    either = command.add_mutually_exclusive_group()
    options.declare(either, "--tree N  print tree N; the first one is 0", options.JSON)


def add_export_arguments(command: argparse.ArgumentParser) -> None:
    """Declare the arguments of `export`."""
    kinds = command.add_subparsers(dest="kind", metavar="KIND", required=True)
    for kind, (text, *tables) in EXPORTS.items():
        parser = kinds.add_parser(kind, help=text, description=f"Write {text}.")
        options.declare(parser, options.MODEL, "--out FILE!  a file to write", *tables)


def run_inspect(arguments: argparse.Namespace) -> None:
    """Load and show."""
    form, tree, depth = vars(arguments)["as"], arguments.tree, arguments.max_depth
    whole = form == "python" and tree is None and not arguments.json
    if tree is None and depth is not None:
        raise ValueError("--max-depth is for one tree: add --tree N")
    if tree is None and form is not None and not whole:
        raise ValueError("--as is for one tree: add --tree N")
    if depth is not None and form in WHOLE:
        raise ValueError(f"--as {form} shows all of a tree: leave out --max-depth")
    model = gpuforest.load(arguments.model)
    if whole and model.forest_.baseline is None:
        raise ValueError("--as python without --tree is for boosted models: add --tree N")
    if whole or tree is not None:
        for part in tree_text(model, form or "text", tree, depth):
            print(output.printable(part), end="")
        return
    path = Path(arguments.model)
    facts = {"file": str(path), "bytes": path.stat().st_size, **describe(model)}
    output.print_facts(facts, arguments.json, summary, "gpuforest inspect")


def describe(model: Any) -> dict[str, Any]:
    """A model as a script reads it; `settings` are the parameters that are not the defaults."""
    settings = changed_settings(model)
    # nothing to compile, no GPU to wake
    if "backend" in model.get_params(deep=False):
        model.set_params(backend="numpy")
    else:
        model.estimator = model.estimator_.set_params(backend="numpy")
    return {**model_facts(model), "settings": settings}


def summary(facts: dict[str, Any]) -> output.Rows:
    """The facts as lines for a reader."""
    settings = [f"{name}={value!r}" for name, value in facts["settings"].items()]
    depths = f"{facts['min_depth']:,} to {facts['depth']:,}, on average {facts['mean_depth']:.1f}"
    return [
        ("file", f"{facts['file']}, {facts['bytes']:,} bytes"),
        ("estimator", f"{facts['estimator']}, seed {facts['seed']}"),
        ("task", facts["task"] + output.in_brackets(facts["classes"])),
        ("features", f"{facts['features']:,}, of which {len(facts['categories']):,} categorical"),
        *output.category_rows(facts),
        ("trees", f"{facts['trees']:,}"),
        ("nodes", f"{facts['nodes']:,}, of which {facts['leaves']:,} leaves"),
        ("depth", depths),
        *(rounds_rows(facts["boosting"]) if "boosting" in facts else []),
        ("settings", ", ".join(settings) or "the defaults"),
        *output.oob_rows(facts),
        *output.importance_rows(facts),
    ]


def run_export(arguments: argparse.Namespace) -> None:
    """Load and write a file, which is whole or not there."""
    out, kind = output.writable(arguments.out, arguments.model), arguments.kind
    with progress_bar():
        model = gpuforest.load(arguments.model)
        if kind in FORMS:
            tree, depth = arguments.tree, getattr(arguments, "max_depth", None)
            if tree is None and not (kind == "python" and model.forest_.baseline is not None):
                tree = 0
            parts = tree_text(model, kind, tree, depth)
            with replaced(out) as path, path.open("w", encoding="utf-8", newline="\n") as file:
                file.writelines(parts)
        else:
            params = options.options_of(arguments, "dtype", "ml_version", "name")
            write_model(model, kind, out, **params)
    output.done(f"{kind} written to", out)


def tree_text(model: Any, form: str, tree: int | None, max_depth: int | None) -> Iterator[str]:
    """One tree in a form, part by part, or as Python all trees (None)."""
    if form == "python":
        yield python.export_python(model, tree)
        return
    assert tree is not None
    if form == "rules":
        yield export_rules(model, tree)
    elif form == "dot":
        yield str(graphviz.export_graphviz(model, tree, max_depth=max_depth))
    else:
        for line in tree_lines(model, tree, feature_names(model), max_depth):
            yield line + "\n"


def write_model(model: Any, kind: str, out: Path, **params: Any) -> None:
    """Write a whole model to a file, which is whole or not there."""
    if kind == "onnx":
        model.to_onnx(out, **params)
    elif kind == "c":
        c.export_c(model, out, **params)
    else:
        converted = model.to_treelite() if kind == "treelite" else model.to_sklearn()
        in_bytes = converted.serialize_bytes() if kind == "treelite" else pickle.dumps(converted)
        with replaced(out) as path:
            path.write_bytes(in_bytes)


COMMANDS = (  # name, help, options, function that runs
    (
        "inspect",
        "Show what a saved model is, or one of its trees.",
        (options.MODEL, _tree_or_json, INSPECT_OPTIONS),
        run_inspect,
    ),
    ("export", "Write a saved model for other programs.", (add_export_arguments,), run_export),
)
