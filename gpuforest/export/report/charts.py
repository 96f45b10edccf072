"""Pictures in SVG: axes, lines, points, bars. Colours and line styles are those of style.css.

Pictures are as wide as a phone, so that their text is as large as the page's; they stand side by
side on larger screens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpuforest.export.report.html import Html, h, name, shortened

WIDTH, HEIGHT = 330, 236
TOP, BOTTOM, RIGHT = 26, 40, 14
LETTER = 6.7  # the width of a digit
SERIES = 4  # styles of lines
TICKS = 5


@dataclass(frozen=True)
class Axis:
    """An axis from one number to another.

    names : of the places 0, 1, ..., on an axis of categories
    whole : whether it counts something
    """

    label: str
    low: float
    high: float
    names: Sequence[Any] = ()
    whole: bool = False

    @property
    def ends(self) -> tuple[float, float]:
        """The two numbers, which differ."""
        if not self.high > self.low:
            pad = abs(self.low) / 2 or 0.5
            return self.low - pad, self.low + pad
        return float(self.low), float(self.high)


class Plot:
    """A picture with two axes.

    title, text : what it is, and what is to be seen in it, for those who cannot see it
    """

    def __init__(self, title: str, text: str, x: Axis, y: Axis) -> None:
        self._title, self._text = title, text
        self._x, self._y, self._labels = x.ends, y.ends, (x.label, y.label)
        self._names = [shortened(each, 14) if str(each).strip() else "(empty)" for each in x.names]
        self._y_ticks = ticks(*self._y, whole=y.whole)
        self._left = 12 + LETTER * max(len(t) for _, t in self._y_ticks)
        self._left = max(self._left, 44) if x.names else self._left  # slanted words begin before
        slanted = max((len(n) for n in self._names), default=0) * 4.2
        self._height = HEIGHT + (slanted - 14 if x.names else 0)
        self._bottom = HEIGHT - BOTTOM
        self._drawn: list[Html] = []

    def at(self, x: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
        """Where points of the data are in the picture."""
        (x0, x1), (y0, y1) = self._x, self._y
        right = self._left + (np.asarray(x, float) - x0) / (x1 - x0) * self._width
        return right, self._bottom - (np.asarray(y, float) - y0) / (y1 - y0) * (self._bottom - TOP)

    @property
    def _width(self) -> float:
        return WIDTH - RIGHT - self._left

    def line(self, x: Any, y: Any, series: int = 0, style: str | None = None) -> Plot:
        """A line through points."""
        self._add("path", d=_path(*self.at(x, y)), class_=style or f"l s{series % SERIES}")
        return self

    def steps(self, x: Any, y: Any, series: int = 0) -> Plot:
        """A line that keeps its height until the next point."""
        return self.line(np.repeat(x, 2)[1:], np.repeat(y, 2)[:-1], series)

    def band(self, x: Any, low: Any, high: Any, series: int = 0) -> Plot:
        """An area between two lines."""
        there, back = self.at(x, low), self.at(x, high)
        both = [np.concatenate([a, b[::-1]]) for a, b in zip(there, back, strict=True)]
        self._add("path", d=_path(*both) + "Z", class_=f"b s{series % SERIES}")
        return self

    def points(self, x: Any, y: Any, series: int = 0, small: bool = False) -> Plot:
        """Points: their forms differ, too."""
        for right, down in zip(*self.at(x, y), strict=True):
            self._drawn.append(mark(right, down, series, 1.7 if small else 3.2))
        return self

    def whiskers(self, x: Any, low: Any, high: Any, series: int = 0) -> Plot:
        """Vertical lines between two heights."""
        right, down = self.at(x, low)
        up = self.at(x, high)[1]
        path = "".join(f"M{_r(a)} {_r(b)}V{_r(c)}" for a, b, c in zip(right, down, up, strict=True))
        self._add("path", d=path, class_=f"w s{series % SERIES}")
        return self

    def bars(self, begin: Any, end: Any, heights: Any, series: int = 0) -> Plot:
        """Bars from zero, each from a place to the next."""
        left, top = self.at(begin, heights)
        right, low = self.at(end, np.zeros(len(heights)))
        for a, b, c, d in zip(left, right, top, low, strict=True):
            size = {"width": _r(max(b - a - 1, 0.5)), "height": _r(max(d - c, 0))}
            self._add("rect", x=_r(a + 0.5), y=_r(c), **size, class_=f"bar s{series % SERIES}")
        return self

    def rule(self, x: float | None = None, y: float | None = None, text: str = "") -> Plot:
        """A dashed line across, with a word beside it."""
        (x0, x1), (y0, y1) = self._x, self._y
        if x is not None:
            self.line([x, x], [y0, y1], style="rule")
            place, anchor = self.at(x, y1), "start" if x < (x0 + x1) / 2 else "end"
        else:
            self.line([x0, x1], [y, y], style="rule")
            place, anchor = self.at(x1, y), "end"
        if text:
            shift = (4 if anchor == "start" else -4) if x is not None else 0
            down = 10 if x is not None else -4
            self.text(float(place[0]) + shift, float(place[1]) + down, text, anchor)
        return self

    def rug(self, x: Any) -> Plot:
        """Short lines on the axis."""
        right = self.at(x, np.zeros(len(x)))[0]
        path = "".join(f"M{_r(a)} {_r(self._bottom)}v-6" for a in right)
        self._add("path", d=path, class_="rug")
        return self

    def text(self, x: float, y: float, text: str, anchor: str = "start") -> Plot:
        """Words at a place of the picture."""
        self._add("text", text, x=_r(x), y=_r(y), text_anchor=anchor)
        return self

    def _add(self, element: str, *children: Any, **attributes: Any) -> None:
        self._drawn.append(h(element, *children, **attributes))

    def svg(self) -> Html:
        """The picture."""
        above = [h("title", self._title), h("desc", self._text)]
        box = f"0 0 {WIDTH} {_r(self._height)}"
        return h("svg", *above, *self._axes(), *self._drawn, viewBox=box, role="img", class_="plot")

    def _axes(self) -> list[Html]:
        found = [h("text", self._labels[1], x="0", y="12", class_="label")]
        for value, word in self._y_ticks:
            down = float(self.at(0, value)[1])
            grid = f"M{_r(self._left)} {_r(down)}H{WIDTH - RIGHT}"
            found.append(h("path", d=grid, class_="grid"))
            at = {"x": _r(self._left - 6), "y": _r(down + 4)}
            found.append(h("text", word, **at, text_anchor="end"))
        axis = f"M{_r(self._left)} {_r(self._bottom)}H{WIDTH - RIGHT}"
        found += [h("path", d=axis, class_="axis"), *self._x_axis()]
        end = {"x": str(WIDTH - RIGHT), "y": str(HEIGHT - 6), "text_anchor": "end"}
        return [*found, h("text", self._labels[0], **end, class_="label")]

    def _x_axis(self) -> list[Html]:
        if self._names:
            found = []
            for i, word in enumerate(self._names):
                right = float(self.at(i, 0)[0])
                turn = f"translate({_r(right + 3)} {_r(self._bottom + 12)}) rotate(-38)"
                found.append(h("text", word, transform=turn, text_anchor="end"))
            return found
        most = max(2, int(self._width // 55))
        return [
            h(
                "text",
                word,
                x=_r(float(self.at(value, 0)[0])),
                y=_r(self._bottom + 15),
                text_anchor="middle",
            )
            for value, word in ticks(*self._x, most)
        ]


def legend(names: Sequence[Any], points: bool = False) -> Html:
    """The names of lines, each beside a piece of its line; long names break."""
    items = []
    for i, each in enumerate(names):
        sample = [h("line", x1="1", y1="6", x2="31", y2="6", class_=f"l s{i % SERIES}")]
        if points:
            sample.append(mark(16, 6, i))
        swatch = h("svg", *sample, viewBox="0 0 32 12", class_="swatch", aria_hidden="true")
        items.append(h("li", swatch, h("span", each if isinstance(each, Html) else name(each))))
    return h("ul", *items, class_="legend")


def mark(x: float, y: float, series: int, size: float = 3.2) -> Html:
    """A point: a circle, a square, a triangle or a diamond."""
    kind, a = f"p s{series % SERIES}", 0.95 * size
    match series % SERIES:
        case 0:
            return h("circle", cx=_r(x), cy=_r(y), r=_r(size), class_=kind)
        case 1:
            path = f"M{_r(x - a)} {_r(y - a)}h{_r(2 * a)}v{_r(2 * a)}h{_r(-2 * a)}Z"
        case 2:
            path = f"M{_r(x)} {_r(y - 1.3 * a)}l{_r(1.3 * a)} {_r(2.3 * a)}h{_r(-2.6 * a)}Z"
        case _:
            b = 1.4 * a
            path = f"M{_r(x)} {_r(y - b)}l{_r(b)} {_r(b)}l{_r(-b)} {_r(b)}l{_r(-b)} {_r(-b)}Z"
    return h("path", d=path, class_=kind)


def bar_cell(value: float, most: float, spread: float | None = None) -> Html:
    """A bar for a cell of a table, which has the number too."""
    length = 92 * max(value, 0) / most if most > 0 else 0
    drawn = [h("rect", x="0", y="2", width=_r(length), height="8", class_="bar s0")]
    if spread is not None and most > 0:
        low, high = (np.clip(92 * (value + d) / most, 0, 100) for d in (-spread, spread))
        drawn.append(h("line", x1=_r(low), x2=_r(high), y1="6", y2="6", class_="w"))
    box = {"viewBox": "0 0 100 12", "preserveAspectRatio": "none"}
    return h("svg", *drawn, **box, class_="cellbar", aria_hidden="true")


def ticks(
    low: float, high: float, most: int = TICKS, whole: bool = False
) -> list[tuple[float, str]]:
    """Round numbers between two ends, and how they are written."""
    step = (high - low) / most
    unit = 10.0 ** np.floor(np.log10(step))
    step = next(m * unit for m in (1, 2, 2.5, 5, 10) if m * unit >= step * (1 - 1e-9))
    step = max(1.0, np.ceil(step)) if whole else step
    first, last = np.ceil(low / step - 1e-9), np.floor(high / step + 1e-9)
    values = np.arange(first, last + 1) * step
    digits = max(0, int(-np.floor(np.log10(step) + 1e-9)) + (step / unit == 2.5))
    return [(float(v), written(float(v), digits)) for v in values]


def written(value: float, digits: int) -> str:
    """A number at an axis."""
    if value == 0:
        return "0"
    if abs(value) >= 1e6 or digits > 4:
        return f"{value:.3g}".replace("e+0", "e").replace("e-0", "e-").replace("e+", "e")
    return f"{value:,.{digits}f}"


def _path(x: np.ndarray, y: np.ndarray) -> str:
    return "M" + "L".join(f"{_r(a)} {_r(b)}" for a, b in zip(x, y, strict=True))


def _r(value: float) -> str:
    """A coordinate, to a tenth."""
    return f"{float(value):.1f}".removesuffix(".0")
