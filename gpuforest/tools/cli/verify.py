"""`verify`: whether a model comes from its data."""

from __future__ import annotations

import argparse
from typing import Any

from gpuforest.common.progress import progress_bar
from gpuforest.proof import verify
from gpuforest.tools.cli import files, options, output

NOT_VERIFIED = 1  # the exit status
OPTIONS = f"""\
--sample N  grow N trees of a forest again, drawn by its digest (default: all)
--salt N  with --sample: a number of your own, so that nobody knows which trees will be drawn
{options.DROP_MISSING}"""


def run(arguments: argparse.Namespace) -> int:
    """Compare, show, and return the exit status."""
    with progress_bar():
        model = files.load_model(arguments)
        arguments.target, source = None, getattr(model, "source_", {})
        word = "time" if "time" in source else "groups"
        of_rows = {"weight": source.get("weight"), "groups": source.get(word)}
        dropping = arguments.drop_missing_target
        table = files.ModelRows(model, arguments).table(**of_rows, drop_missing_target=dropping)
        labels: dict[str, Any] = {"blocks" if word == "time" else "groups": table.groups}
        drawn = {"sample": arguments.sample, "salt": arguments.salt or 0}
        found = verify(model, table.X, table.y, table.weight, **labels, **drawn)
    facts = {"model": arguments.model, "data": arguments.data, "rows": len(table.y), **found}
    output.print_facts(facts, arguments.json, summary)
    return 0 if found.ok else NOT_VERIFIED


def summary(facts: dict[str, Any]) -> output.Rows:
    """The result as lines for a reader."""
    n, wrong = len(facts["trees"]), facts["other_trees"]
    return {
        "data": f"{facts['data']}: {facts['rows']:,} rows",
        "compared": ", ".join(facts["compared"]),
        "trees grown": f"{n:,}, {n - len(wrong):,} of them equal to the last bit" if n else "",
        "differ": ", ".join(f"the {name}" for name in facts["differs"]),
        "other trees": ", ".join(map(str, wrong[:10])),
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
