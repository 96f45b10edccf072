"""The summary of fitted trees that notebooks show below scikit-learn's diagram."""

from __future__ import annotations

from dataclasses import fields
from html import escape
from typing import Any

import numpy as np

from gpuforest.export.conditions import one_line
from gpuforest.forest import Forest
from gpuforest.inspection.round_facts import rounds_facts, rounds_rows
from gpuforest.inspection.shape import tree_depths
from gpuforest.nodes import is_leaf

MOST_CLASSES = 6  # shown by name


def summary_html(estimator: Any) -> str:
    """A small table of what a fitted estimator is."""
    rows = "".join(
        f'<tr><th style="text-align:left">{escape(name)}</th>'
        f'<td style="text-align:left">{escape(value)}</td></tr>'
        for name, value in summary_rows(estimator)
    )
    return f'<table class="gpuforest-summary"><tbody>{rows}</tbody></table>'


def summary_rows(estimator: Any) -> list[tuple[str, str]]:
    """Names and values of the table, as plain text."""
    forest: Forest = estimator.forest_
    depths = tree_depths(forest)
    deep = f"{depths.max():,}"
    if len(depths) > 1:
        deep = f"{depths.min():,} to {deep}, on average {depths.mean():.1f}"
    score, backend = (getattr(estimator, name, None) for name in ("oob_score_", "backend_"))
    rounds = rounds_rows(rounds_facts(estimator)) if forest.baseline is not None else []
    return [
        ("trees", f"{forest.n_trees:,}"),
        ("nodes", f"{forest.n_nodes:,}, of which {int(is_leaf(forest.nodes).sum()):,} leaves"),
        ("depth", deep),
        *rounds,
        ("size", f"{n_bytes(forest):,} bytes"),
        *([] if backend is None else [("backend", backend)]),  # models from files have none
        _target(forest),
        *([] if score is None else [("out-of-bag score", f"{score:.4f}")]),
    ]


def n_bytes(forest: Forest) -> int:
    """Bytes of a forest's arrays."""
    parts = [getattr(part, f.name) for part in (forest, forest.edges) for f in fields(part)]
    return sum(part.nbytes for part in parts if isinstance(part, np.ndarray))


def _target(forest: Forest) -> tuple[str, str]:
    """Classes by name, or how many outputs there are."""
    coding = forest.coding
    if coding.classes is not None:
        names = [one_line(c) for c in coding.classes[:MOST_CLASSES]]
        more = ["..."] * (len(coding.classes) > MOST_CLASSES)
        return "classes", f"{len(coding.classes)}: {', '.join(names + more)}"
    if coding.several:
        counts = ", ".join(str(len(c)) for c in coding.several)
        return "outputs", f"{coding.n_outputs} of {counts} classes"
    return "outputs", str(coding.n_outputs)
