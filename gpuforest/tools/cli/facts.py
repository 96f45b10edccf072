"""Facts about a model as lines for a reader; see `inspection.model_facts`."""

from __future__ import annotations

from typing import Any

import numpy as np

SHOWN_CATEGORIES = 20
SHOWN_IMPORTANCES = 10  # in a summary; --json gives all


def category_rows(facts: dict[str, Any]) -> list[tuple[str, str]]:
    """The categorical features and how many categories each has, if there are some."""
    found = [f"{n:,} {name}" for name, n in facts["categories"].items()]
    shown = ", ".join(found[:SHOWN_CATEGORIES])
    more = len(found) - SHOWN_CATEGORIES
    return [("categories", shown + f" and {more:,} more" * (more > 0))] if found else []


def oob_rows(facts: dict[str, Any]) -> list[tuple[str, str]]:
    """The out-of-bag score, if there is one."""
    if facts["oob_score"] is None:
        return []
    return [(f"out-of-bag {facts['score']}", f"{facts['oob_score']:.4f}")]


def importance_rows(facts: dict[str, Any]) -> list[tuple[str, str]]:
    """The most important features, those of no importance left out."""
    largest = list(facts["importances"].items())[:SHOWN_IMPORTANCES]
    shown = [f"{value:.3f} {name}" for name, value in largest if value > 0]
    return [("importance" if i == 0 else "", line) for i, line in enumerate(shown)]


def named(classes: list[Any] | None, most: int = 6) -> str:
    """Classes in brackets, the first few by name."""
    if classes is None:
        return ""
    if isinstance(classes[0], list):
        return f" ({len(classes)} outputs of {', '.join(str(len(c)) for c in classes)} classes)"
    names = ", ".join(str(c) for c in classes[:most])
    return f" ({len(classes)} classes: {names}{', ...' if len(classes) > most else ''})"


def plain(value: Any) -> Any:
    """A NumPy value as a Python one, for JSON."""
    return value.item() if isinstance(value, np.generic) else str(value)
