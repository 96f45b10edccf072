"""The style of all pictures: axes, fonts, and colours that differ in black and white too."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuforest.common.text import shortened

if TYPE_CHECKING:
    from matplotlib.axes import Axes as Axes
else:
    Axes = Any  # of an extra, which is imported when something is drawn

SIZE = (6.4, 4.0)  # inches
DPI = 100
SMALL = 9  # points, as all texts but the labels of axes
STYLE: Any = {
    "font.size": 10,
    "axes.labelsize": 10,
    "axes.titlesize": 11,
    "xtick.labelsize": SMALL,
    "ytick.labelsize": SMALL,
    "legend.fontsize": SMALL,
    "legend.frameon": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "lines.linewidth": 1.5,
    "lines.markersize": 5,
    "svg.hashsalt": "gpuforest",  # the same picture is the same file
}
# distinct for the colour-blind: Okabe and Ito (2008), then three of Tol's muted colours
PALETTE = (
    *("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442"),
    *("#882255", "#999933", "#332288"),
)
MARKERS = "os^DvPX<>*"
# of lines, of points, and of points on lines
LINES, MARKS, JOINED = ("-", "--", "-.", ":"), ("o", "s", "^", "D"), ("o-", "s--", "^-.", "D:")
INK, FAINT, PALE_INK = "#222222", "#888888", "#BBBBBB"
BARS: Any = {"height": 0.7, "color": PALETTE[4], "edgecolor": INK, "linewidth": 0.5}
CHOSEN: Any = {"marker": "s", "ls": "", "color": PALETTE[5], "mec": INK, "ms": 8, "zorder": 3}
BESIDE: Any = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0)}  # of a legend
ABOVE: Any = {"loc": "lower right", "bbox_to_anchor": (1.0, 1.0)}
PALE = 0.55  # how deep a colour is that black text or points are to be read on


def require_matplotlib() -> None:
    """Raise an ImportError that names the extra if nothing can be drawn."""
    if find_spec("matplotlib") is None:
        raise ImportError("pictures need matplotlib, an extra: pip install 'gpuforest[plot]'")


@contextmanager
def drawing(ax: Axes | None, size: tuple[float, float] = SIZE) -> Iterator[Axes]:
    """The axis to draw on, in this style; for None, the axis of a new figure of `size` inches."""
    require_matplotlib()
    from matplotlib import pyplot, rc_context

    with rc_context(STYLE):
        if ax is None:
            ax = pyplot.subplots(figsize=size, layout="constrained")[1]
        ax.spines[["top", "right"]].set_visible(False)
        yield ax


def add_lines(ax: Axes, curves: Iterable[Any], looks: Sequence[str] = LINES) -> None:
    """Draw curves (name, x, y), each with a colour and a look of its own."""
    for (name, *points), look, colour in zip(curves, looks, PALETTE, strict=False):
        ax.plot(*points, look, color=colour, label=name)


def colours(n: int, depth: float = 1.0) -> np.ndarray:
    """Colours f64[n, 3] of n classes, paler for a smaller depth; they repeat after ten."""
    from matplotlib.colors import to_rgb

    full = np.array([to_rgb(PALETTE[i % len(PALETTE)]) for i in range(n)])
    return np.asarray(1 - depth * (1 - full))


def marker(i: int) -> str:
    """The marker of a class: classes of one colour have different ones."""
    return MARKERS[(i + i // len(PALETTE)) % len(MARKERS)]


def plain(text: object, most: int = 40) -> str:
    """A name as `shortened` writes it, whose dollars begin no formula."""
    return shortened(text, most).replace("$", r"\$")


def check_top(top: int | None) -> None:
    """Refuse a number of features below one."""
    if top is not None and top < 1:
        raise ValueError(f"top={top} features are none: pass 1 or more")


def label_rows(ax: Axes, names: list[str]) -> None:
    """Name rows that count from the top."""
    ax.set_yticks(range(len(names)), names)
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(len(names) - 0.4, -0.6)


def check_known(y: np.ndarray, classes: np.ndarray) -> None:
    """Refuse targets that hold a value that is no class."""
    if other := y[~np.isin(y, classes)].tolist():
        raise ValueError(f"y has a class that the estimator does not know: {other[0]!r}")
