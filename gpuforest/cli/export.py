"""Write a saved model for other programs."""

from __future__ import annotations

import argparse
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gpuforest
from gpuforest.cli.output import is_stdout, writable
from gpuforest.cli.show import printable, progress_bar
from gpuforest.export.c import export_c
from gpuforest.export.container import replaced
from gpuforest.export.graphviz import export_graphviz
from gpuforest.export.python import export_python
from gpuforest.export.rules import export_rules
from gpuforest.export.text import tree_lines
from gpuforest.inspection.model_facts import feature_names

KINDS = {
    "onnx": "an ONNX model, for ONNX Runtime and others",
    "treelite": "a file of treelite, for nvForest, FIL and TL2cgen",
    "c": "one C99 file without libraries or allocation",
    "sklearn": "a pickle of scikit-learn's estimator of the same trees",
    "text": "one tree as indented text",
    "rules": "one tree as rules in words",
    "python": "one tree as a Python function, or all trees of a boosted model",
    "dot": "one tree as dot for Graphviz",
}
FORMS = ("text", "rules", "python", "dot")  # of one tree
WHOLE = ("rules", "python")  # those that leave nothing out
DTYPES = ("float32", "float64")


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    kinds = command.add_subparsers(dest="kind", metavar="KIND", required=True)
    for kind, text in KINDS.items():
        own = kinds.add_parser(kind, help=text, description=f"Write {text}.")
        own.add_argument("model", metavar="MODEL", help="a file that `gpuforest train` wrote")
        own.add_argument("--out", metavar="FILE", required=True, help="a file to write")
        if kind in ("onnx", "c"):
            default = "float32" if kind == "onnx" else "float64"
            own.add_argument(
                "--dtype",
                choices=DTYPES,
                default=default,
                help=f"of the numbers that it takes (default: {default})",
            )
        if kind == "onnx":
            own.add_argument(
                "--ml-version",
                type=int,
                choices=(3, 5),
                help="of the operators ai.onnx.ml (default: 3; with categories 5)",
            )
        if kind == "c":
            own.add_argument("--name", default="predict", help="of the function (default: predict)")
        if kind in FORMS:
            add_tree(own, kind)


def add_tree(command: argparse.ArgumentParser, kind: str) -> None:
    """Declare which tree is written, and how much of it."""
    whole = "; of a boosted model all trees" if kind == "python" else ""
    command.add_argument(
        "--tree", metavar="N", type=int, help=f"tree N (default: 0, the first{whole})"
    )
    if kind not in WHOLE:
        command.add_argument(
            "--max-depth", metavar="D", type=int, help="levels to write (default: all)"
        )


def run(arguments: argparse.Namespace) -> None:
    """Load and write."""
    out, kind = writable(arguments.out, arguments.model), arguments.kind
    with progress_bar():
        model = gpuforest.load(arguments.model)
        if kind in FORMS:
            tree, depth = arguments.tree, getattr(arguments, "max_depth", None)
            if kind == "python" and tree is None and model.forest_.baseline is not None:
                parts = iter([export_python(model, None)])
            else:
                parts = tree_text(model, kind, tree or 0, depth)
            write_text(parts, out)
        else:
            write_model(model, arguments, out)
    if not is_stdout(out):
        print(printable(f"{kind} written to {out}"))


def tree_text(model: Any, form: str, tree: int, max_depth: int | None = None) -> Iterator[str]:
    """One tree in a form, part by part; an error comes before the first."""
    match form:
        case "rules":
            return iter([export_rules(model, tree)])
        case "python":
            return iter([export_python(model, tree)])
        case "dot":
            return iter([str(export_graphviz(model, tree, max_depth=max_depth))])
    lines = tree_lines(model.forest_, tree, feature_names(model), max_depth)
    return (line + "\n" for line in lines)


def write_text(parts: Iterator[str], out: Path) -> None:
    """Write text to a file, which is whole or not there."""
    with replaced(out) as path, path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(parts)


def write_model(model: Any, arguments: argparse.Namespace, out: Path) -> None:
    """Write a whole model to a file, which is whole or not there."""
    match arguments.kind:
        case "onnx":
            model.to_onnx(out, dtype=arguments.dtype, ml_version=arguments.ml_version)
        case "c":
            export_c(model, out, dtype=arguments.dtype, name=arguments.name)
        case "treelite":
            converted = model.to_treelite()
            with replaced(out) as path:
                converted.serialize(str(path))
        case _:
            data = pickle.dumps(model.to_sklearn())
            with replaced(out) as path:
                path.write_bytes(data)
