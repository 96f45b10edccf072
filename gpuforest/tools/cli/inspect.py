"""`inspect` and `export`: a saved model as a summary, as text, and as files for other programs."""

from __future__ import annotations

import argparse
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gpuforest
from gpuforest.common.progress import progress_bar
from gpuforest.estimators.base import BaseTrees
from gpuforest.explain.model_facts import changed_settings, model_facts, rounds_rows
from gpuforest.export import c, graphviz, python
from gpuforest.export.container import replaced
from gpuforest.export.text import export_rules, tree_lines
from gpuforest.tools.cli import options, output

# what each kind of export is, and the function whose parameters are its options
EXPORTS: dict[str, tuple[str, Any]] = {
    "onnx": ("an ONNX model, for ONNX Runtime and others", BaseTrees.to_onnx),
    "treelite": ("a file of treelite, for nvForest, FIL and TL2cgen", BaseTrees.to_treelite),
    "c": ("one C99 file without libraries or allocation", c.export_c),
    "sklearn": ("a pickle of scikit-learn's estimator of the same trees", BaseTrees.to_sklearn),
    "text": ("one tree as indented text", tree_lines),
    "rules": ("one tree as rules in words", export_rules),
    "python": ("one tree as a Python function; of a boosted model all", python.export_python),
    "dot": ("one tree as dot for Graphviz", graphviz.export_graphviz),
}
FORMS = ("text", "rules", "python", "dot")  # of one tree
SHOWN_CATEGORIES = 20
SHOWN_IMPORTANCES = 10  # in a summary; --json gives all
INSPECT_OPTIONS = f"""\
--as {"|".join(FORMS)}  with --tree: indented text (the default), rules in words, a Python \
function, or dot for Graphviz; python without --tree: all trees of a boosted model
--max-depth D  with --tree, as text or dot: levels to show (default: all)"""


def _tree_or_json(command: argparse.ArgumentParser) -> None:
    either = command.add_mutually_exclusive_group()
    options.declare(either, "--tree N  print tree N; the first one is 0", options.JSON)


def add_export_arguments(command: argparse.ArgumentParser) -> None:
    """Declare the arguments of `export`, which follow from the functions that write."""
    kinds = command.add_subparsers(dest="kind", metavar="KIND", required=True)
    for kind, (text, function) in EXPORTS.items():
        parser = kinds.add_parser(kind, help=text, description=f"Write {text}.")
        options.declare(parser, options.MODEL, "--out FILE!  a file to write")
        options.declare_function(parser, function)


def run_inspect(arguments: argparse.Namespace) -> None:
    """Load and show."""
    form, tree, depth = vars(arguments)["as"], arguments.tree, arguments.max_depth
    whole = form == "python" and tree is None and not arguments.json
    if tree is None and depth is not None:
        raise ValueError("--max-depth is for one tree: add --tree N")
    if tree is None and form is not None and not whole:
        raise ValueError("--as is for one tree: add --tree N")
    if depth is not None and form in ("rules", "python"):
        raise ValueError(f"--as {form} shows all of a tree: leave out --max-depth")
    model = gpuforest.load(arguments.model)
    if whole and model.forest_.baseline is None:
        raise ValueError("--as python without --tree is for boosted models: add --tree N")
    if whole or tree is not None:
        params = options.options_of(arguments, "max_depth")
        shown = EXPORTS[form or "text"][1](model, tree, **params)
        for part in [shown] if isinstance(shown, str) else (f"{line}\n" for line in shown):
            print(output.printable(part), end="")
        return
    path = Path(arguments.model)
    facts = {"file": str(path), "bytes": path.stat().st_size, **describe(model)}
    output.print_facts(facts, arguments.json, summary)


def summary(facts: dict[str, Any]) -> output.Rows:
    """The facts as lines for a reader."""
    return {"file": f"{facts['file']}, {facts['bytes']:,} bytes", **model_rows(facts)}


def model_rows(facts: dict[str, Any]) -> output.Rows:
    """The lines of a summary that say what a model is."""
    settings = [f"{name}={value!r}" for name, value in facts["settings"].items()]
    categories = [f"{n:,} {name}" for name, n in facts["categories"].items()]
    more, score = len(categories) - SHOWN_CATEGORIES, facts["oob_score"]
    gains = [f"{gain:.3f} {name}" for name, gain in facts["importances"].items() if gain > 0]
    depths = f"{facts['min_depth']:,} to {facts['depth']:,}, on average {facts['mean_depth']:.1f}"
    return {
        "estimator": f"{facts['estimator']}, seed {facts['seed']}",
        "task": facts["task"] + in_brackets(facts["classes"]),
        "features": f"{facts['features']:,}, of which {len(categories):,} categorical",
        "categories": ", ".join(categories[:SHOWN_CATEGORIES]) + f" and {more:,} more" * (more > 0),
        "trees": f"{facts['trees']:,}",
        "nodes": f"{facts['nodes']:,}, of which {facts['leaves']:,} leaves",
        "depth": depths,
        **dict(rounds_rows(facts["boosting"]) if "boosting" in facts else ()),
        "settings": ", ".join(settings) or "the defaults",
        f"out-of-bag {facts['score']}": "" if score is None else f"{score:.4f}",
        "importance": gains[:SHOWN_IMPORTANCES],
    }


def in_brackets(classes: list[Any] | None, most: int = 6) -> str:
    """Classes in brackets, the first few by name."""
    if classes is None:
        return ""
    if isinstance(classes[0], list):
        return f" ({len(classes)} outputs of {', '.join(str(len(c)) for c in classes)} classes)"
    names = ", ".join(str(c) for c in classes[:most])
    return f" ({len(classes)} classes: {names}{', ...' if len(classes) > most else ''})"


def describe(model: Any) -> dict[str, Any]:
    """A model as a script reads it; `settings` are the parameters that are not the defaults."""
    settings = changed_settings(model)
    # nothing to compile, no GPU to wake
    if "backend" in model.get_params(deep=False):
        model.set_params(backend="numpy")
    else:
        model.estimator = model.estimator_.set_params(backend="numpy")
    return {**model_facts(model), "settings": settings}


def run_export(arguments: argparse.Namespace) -> None:
    """Load and write a file, which is whole or not there."""
    out, kind = output.writable(arguments.out, arguments.model), arguments.kind
    params = options.options_of(arguments, *options.PARAMETERS)
    with progress_bar():
        model = gpuforest.load(arguments.model)
        if kind == "python" and model.forest_.baseline is not None:
            params.setdefault("tree", None)  # all trees
        written = EXPORTS[kind][1](model, **params)
        with replaced(out) as path, path.open("wb") as file:
            file.writelines(parts_of(written))
    output.done(f"{kind} written to", out)


def parts_of(written: Any) -> Iterator[bytes]:
    """A file of text, of lines, of a model of ONNX or treelite, or of scikit-learn's estimator."""
    if isinstance(written, Iterator):  # a deep tree's lines would fill the memory
        return (f"{line}\n".encode() for line in written)
    if isinstance(written, str):
        return iter([written.encode()])
    for name in ("SerializeToString", "serialize_bytes"):  # of ONNX, of treelite
        if hasattr(written, name):
            return iter([bytes(getattr(written, name)())])
    return iter([pickle.dumps(written)])


COMMANDS = (  # name, help, options, function that runs
    (
        "inspect",
        "Show what a saved model is, or one of its trees.",
        (options.MODEL, _tree_or_json, INSPECT_OPTIONS),
        run_inspect,
    ),
    ("export", "Write a saved model for other programs.", (add_export_arguments,), run_export),
)
