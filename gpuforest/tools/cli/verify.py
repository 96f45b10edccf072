"""`verify`: whether a model comes from its data."""

from __future__ import annotations

import argparse
from typing import Any

from gpuforest.common.progress import progress_bar
from gpuforest.proof import verify
from gpuforest.tools.cli import files, options, output

NOT_VERIFIED = 1  # the exit status
OPTIONS = """\
--sample N  grow N trees of a forest again, drawn by its digest (default: all)
--salt N  with --sample: a number of your own, so that nobody knows which trees will be drawn
--drop-missing-target  leave out rows without a target, as in training"""


def run(arguments: argparse.Namespace) -> int:
    """Compare, show, and return the exit status."""
    with progress_bar():
        model = files.load_model(arguments)
        if not hasattr(model, "proof_"):
            raise ValueError(f"{arguments.model} has no proof: gpuforest train --proof keeps one")
        arguments.target, source = None, getattr(model, "source_", {})
        rows = files.ModelRows(model, arguments)
        groups = source.get("groups", source.get("time"))
        how = {"groups": groups, "drop_missing_target": arguments.drop_missing_target}
        table = rows.table(weight=source.get("weight"), **how)
        named = {} if groups is None else {"blocks" if "time" in source else "groups": table.groups}
        runtime = options.given_parameters(arguments)
        of_rows = {"sample_weight": table.weight, **named, **runtime}
        salt = 0 if arguments.salt is None else arguments.salt
        found = verify(
            arguments.model, table.X, table.y, **of_rows, sample=arguments.sample, salt=salt
        )
    facts = {"model": arguments.model, "data": arguments.data, "rows": len(table.y), **found}
    output.print_facts(facts, arguments.json, summary)
    return 0 if found.ok else NOT_VERIFIED


def summary(facts: dict[str, Any]) -> output.Rows:
    """The result as lines for a reader."""
    n, wrong = len(facts["trees"]), facts["other_trees"]
    differs = [f"the {name}" for name in facts["differs"]]
    return {
        "data": f"{facts['data']}: {facts['rows']:,} rows",
        "compared": ", ".join(facts["compared"]),
        "trees grown": f"{n:,}, {n - len(wrong):,} of them equal to the last bit" if n else "",
        "differ": ", ".join(differs) + (f": {', '.join(map(str, wrong[:10]))}" if wrong else ""),
        "result": "verified" if facts["ok"] else "NOT VERIFIED",
    }


COMMAND = (
    "verify",
    "Check that a model comes from its data, by growing its trees again.",
    (
        *(options.MODEL, options.DATA, OPTIONS, options.JSON),
        *(options.declare_runtime, options.declare_reading),
    ),
    run,
)
