"""What a picture shows, measured: texts within the figure, boxes apart; and data to be drawn."""

import itertools

import pytest
from sklearn.datasets import load_diabetes, load_digits, load_iris

from gpuforest.tools.plot import style

matplotlib = pytest.importorskip("matplotlib", reason="matplotlib is not installed")
matplotlib.use("Agg")
IRIS, DIGITS, DIABETES = load_iris(), load_digits(), load_diabetes()
SPECIES = IRIS.target_names[IRIS.target]
LONG = [f"a rather long name of a feature in $ and in $ again, number {i}" for i in range(64)]


def texts(ax):
    """All visible texts of an axis that are not empty."""
    found = ax.findobj(matplotlib.text.Text) if ax.axison else ax.texts
    return [t for t in found if t.get_visible() and t.get_text().strip()]


def check_readable(ax, least=style.SMALL):
    """All is within the figure, no text is small."""
    figure = ax.get_figure(root=True)
    figure.canvas.draw()
    own = list(itertools.chain.from_iterable(map(texts, figure.axes)))
    assert own
    for text in own:
        box = text.get_window_extent()
        if not text.axes or text.get_text() in ticks_outside(text.axes):
            continue
        assert box.x0 >= 0, text
        assert box.y0 >= 0, text
        assert box.x1 <= figure.bbox.x1, text
        assert box.y1 <= figure.bbox.y1, text
        assert text.get_fontsize() >= least
    return own


def ticks_outside(ax):
    """Labels of ticks beyond the limits, which are not drawn."""
    found = set()
    for axis in (ax.xaxis, ax.yaxis):
        low, high = sorted(axis.get_view_interval())
        for major in (True, False):
            ticks = axis.get_major_ticks() if major else axis.get_minor_ticks()
            found |= {t.label1.get_text() for t in ticks if not low <= t.get_loc() <= high}
    return found


def overlaps(a, b):
    """Whether two boxes have more in common than an edge."""
    return min(a.x1, b.x1) - max(a.x0, b.x0) > 1e-6 and min(a.y1, b.y1) - max(a.y0, b.y0) > 1e-6
