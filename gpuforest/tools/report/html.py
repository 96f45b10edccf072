"""HTML from plain values: what is not HTML already is escaped, so that no name can become code."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

import numpy as np

from gpuforest.common.text import one_line, shortened
from gpuforest.tools.report.scores import Score


class Html(str):
    """Text that is HTML already."""


def h(element: str, *children: Any, **attributes: Any) -> Html:
    """An element; children and attributes that are no `Html` are escaped, without characters that
    cannot be seen. None is left out. Names of attributes are written with _ for -, and may end in _
    (class_)."""
    written = "".join(
        f' {name.removesuffix("_").replace("_", "-")}="{escape(one_line(value))}"'
        for name, value in attributes.items()
        if value is not None
    )
    return Html(f"<{element}{written}>{joined(children)}</{element}>")


def joined(children: Iterable[Any]) -> Html:
    """Children one after another."""
    return Html(
        "".join(
            c if isinstance(c, Html) else escape(one_line(c)) for c in children if c is not None
        )
    )


def name(text: Any, most: int = 60) -> Html:
    """A name that a user gave; its direction is its own, and an empty one is visible."""
    shown = shortened(text, most)
    if not shown.strip():
        return h("i", "(empty)" if not shown else "(blank)")
    whole = one_line(text)
    return h("bdi", shown, title=whole[:1000] if whole != shown else None)


def listed(names: Sequence[Any], most: int = 20) -> Html:
    """Names with commas between them, the first of many."""
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return Html(", ".join(name(text, 40) for text in names[:most]) + more)


def share(value: float) -> str:
    """A share in per cent."""
    if np.isnan(value):
        return "–"
    return "0%" if value == 0 else "<0.1%" if value < 0.001 else f"{100 * value:.1f}%"


def figure(value: float) -> str:
    """A number with four digits that say something."""
    if not np.isfinite(value):
        return "–"
    if value == 0 or 1000 <= abs(value) < 1e7:
        return f"{value:,.0f}"
    return f"{value:#.4g}".removesuffix(".")


def scored(value: float) -> str:
    """A score near one."""
    return f"{value:.4f}" if np.isfinite(value) and abs(value) < 100 else figure(value)


def score_value(score: Score, value: float | None = None) -> str:
    """The value of a score that is near one or has a unit; or another one with as many digits."""
    return (scored if abs(score.value) < 10 else figure)(score.value if value is None else value)


def interval(score: Score) -> str:
    """The interval of a score in words; "": it has none."""
    ends = f"{score_value(score, score.low)} to {score_value(score, score.high)}"
    return ends if score.how else ""


def table(
    header: Sequence[Any], rows: Iterable[Any], numbers: Sequence[int] = (), look: str = "wide"
) -> Html:
    """A table in a box that scrolls by itself where it is too wide. Values may be cells already.
    `numbers` are aligned to the right; `look` is its class in the style sheet."""

    def cell(i: int, value: Any, is_head: bool = False) -> Html:
        if isinstance(value, Html) and value.startswith("<td"):
            return value
        scope = "col" if is_head else None if i else "row"
        return h("th" if scope else "td", value, class_="n" if i in numbers else None, scope=scope)

    lines = (h("tr", *(cell(*pair) for pair in enumerate(row))) for row in rows)
    first = h("tr", *(cell(*pair, is_head=True) for pair in enumerate(header)))
    whole = h("table", h("thead", first) if header else None, h("tbody", *lines), class_=look)
    return h("div", whole, class_="box", tabindex="0")
