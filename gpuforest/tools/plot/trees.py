"""A tree as boxes and edges."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Any

import numpy as np

from gpuforest.common.text import one_line, shortened
from gpuforest.export import graphviz, walker
from gpuforest.export.documentation import documented
from gpuforest.tools.plot import style
from gpuforest.tools.plot.style import Axes

# points, at full size
PAD, GAP, LABEL_GAP, LEVEL_GAP, MARGIN = 5, 10, 3, 26, 6
LINE, BASELINE = 1.3 * style.SMALL, 0.72  # the second as a share of the first
HINTED = 0.94  # small letters are drawn up to 6 % wider than in proportion
MOST_NAME, MOST_COLUMNS, MOST_LINES = 48, 28, 4  # characters and lines
Outline = list[tuple[float, float]]  # of a subtree the left and right end of each level
MOST_INCHES = 200  # a side; PNG files of more pixels are refused by most viewers


class Box:
    """A node as it is drawn: its text, and what stands above it, on the edge that leads there."""

    def __init__(self, text: str, label: str) -> None:
        (width, height), (self.label_width, self.label_height) = extent(text), extent(label)
        self.text, self.width, self.height = text, width + 2 * PAD, height + 2 * PAD
        self.label = label


@documented
def plot_tree(
    estimator: Any, tree: int = 0, *, max_depth: int | None = None,
    feature_names: Sequence[str] | None = None, class_names: Sequence[Any] | None = None,
    filled: bool = True, impurity: bool = True, node_ids: bool = False, proportion: bool = False,
    precision: int = 3, ax: Axes | None = None,
) -> Axes:  # fmt: skip
    """Draw a tree: on each split its condition, of two branches the left one is "yes".

    The boxes of a boosted model show gains in place of impurities, and the first one says what
    leaves add to. Where missing values and unseen categories go is left out; `export_text` and
    `export_rules` say it.

    Returns
    -------
    matplotlib axis

    Examples
    --------
    >>> from gpuforest import DecisionTreeClassifier
    >>> from gpuforest.plot import plot_tree
    >>> tree = DecisionTreeClassifier().fit([[0.0], [1.0], [2.0]], ["a", "a", "b"])
    >>> plot_tree(tree, feature_names=["x"]).figure.savefig("tree.png")
    """
    style.require_matplotlib()
    picture = graphviz.Drawing(
        estimator, tree, feature_names, class_names, max_depth=max_depth, impurity=impurity,
        node_ids=node_ids, proportion=proportion, precision=precision,
    )  # fmt: skip
    fills = dict.fromkeys(picture.nodes, "white")
    if filled:
        n_colours = picture.n_classes[0] if picture.is_classes else 1
        colours = style.colours(n_colours, style.PALE).tolist()
        fills = graphviz.node_colours(picture.nodes, picture.is_classes, colours)
    shown = {n: _brief(node) for n, node in picture.drawn().items()}
    if ax is None:  # before texts are measured, which takes a while
        most = max(Counter(node.depth for node in shown.values()).values())
        _check_size(most * (2 * PAD + GAP) / 72)
    boxes = {n: _box(node, shown, picture) for n, node in shown.items()}
    return _draw(shown, boxes, fills, ax)


def _brief(node: walker.Node) -> walker.Node:
    ways: list[Any] = [condition.plain() for condition in node.branches]
    briefer = (replace(way, name=shortened(way.name, MOST_NAME)) for way in ways)
    return replace(node, branches=tuple(briefer))


def _box(node: walker.Node, nodes: dict[int, walker.Node], picture: graphviz.Drawing) -> Box:
    label = ""
    if node.parent is not None:
        ways, index = nodes[node.parent].branches, nodes[node.parent].children.index(node.number)
        # the condition without the feature's name, which the parent's box shows
        text = ways[index].words(picture.number).removeprefix(f"{one_line(ways[index].name)} ")
        label = text.removeprefix("is ").removeprefix("in ")
        label = ("yes", "no")[index] if len(ways) == 2 else label
    return Box("\n".join(map(_wrapped, picture.lines(node))), _wrapped(label))


def _wrapped(line: str) -> str:
    lines = textwrap.wrap(line, MOST_COLUMNS, max_lines=MOST_LINES, placeholder=" …")
    return "\n".join(lines).replace("$", r"\$")  # dollars begin no formula


def extent(text: str) -> tuple[float, float]:
    """Width and height of lines of text, in points."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    font, measure = FontProperties(size=style.SMALL), text_to_path.get_text_width_height_descent
    lines = text.replace(r"\$", "$").split("\n") if text else []
    widths = (measure(line, font, False)[0] for line in lines if line.strip())
    return max(widths, default=0.0), LINE * len(lines)


def centres(
    children: Mapping[int, Sequence[int]], widths: Mapping[int, float], gap: float
) -> dict[int, float]:
    """Centre of each node's box along its level, from 0 on, after Reingold and Tilford (1981). A
    subtree moves left until a level is at `gap` from the subtrees before it. Parents come first."""
    outlines: dict[int, Outline] = {}  # from a node's centre
    shifts: dict[int, float] = {}  # of a node from its parent
    for node in reversed(list(children)):
        below: Outline = []
        at: list[float] = []
        for child in children[node]:
            outline = outlines.pop(child)
            ends = zip(below, outline, strict=False)
            at.append(max((done[1] + gap - next[0] for done, next in ends), default=0.0))
            moved = [(l + at[-1], r + at[-1]) for l, r in outline]
            both = zip_longest(below, moved)  # of subtrees of other depths, levels of one alone
            below = [((a or b)[0], (b or a)[1]) for a, b in both]
        middle = (at[0] + at[-1]) / 2 if at else 0.0
        shifts |= {child: x - middle for child, x in zip(children[node], at, strict=True)}
        half = widths[node] / 2
        outlines[node] = [(-half, half), *((l - middle, r - middle) for l, r in below)]
    root = next(iter(children))
    centre = {root: -min(left for left, _ in outlines[root])}
    for node in children:
        centre |= {child: centre[node] + shifts[child] for child in children[node]}
    return centre


def _rows(nodes: dict[int, walker.Node], boxes: dict[int, Box]) -> tuple[list[float], float]:
    """Upper ends of the boxes of each level, counted down from the top; and the height of all."""
    depths = [node.depth for node in nodes.values()]
    heights, labels = np.zeros((2, 1 + max(depths)))
    np.maximum.at(heights, depths, [boxes[number].height for number in nodes])
    np.maximum.at(labels, depths, [boxes[number].label_height for number in nodes])
    labels[1:] += LABEL_GAP + LEVEL_GAP
    ends = np.cumsum(labels + heights)
    return (ends - heights).tolist(), float(ends[-1])


def _draw(
    nodes: dict[int, walker.Node], boxes: dict[int, Box], fills: dict[int, str], ax: Axes | None
) -> Axes:
    """Boxes and edges on an axis whose unit is a point at full size, from the top down."""
    children = {n: [c for c in node.children if c in nodes] for n, node in nodes.items()}
    widths = {n: max(box.width, box.label_width) for n, box in boxes.items()}
    x = centres(children, widths, GAP)
    tops, height = _rows(nodes, boxes)
    width = max(x[n] + widths[n] / 2 for n in nodes)
    size = (width + 2 * MARGIN) / 72, (height + 2 * MARGIN) / 72
    is_new = ax is None
    if is_new:
        _check_size(max(size))
    with style.drawing(ax, size) as ax:
        if is_new:
            ax.set_position((0, 0, 1, 1))  # all of the figure, without its margins
        ax.set_axis_off()
        # the unit of the axis is a point, and y is counted down
        ax.set(xlim=(-MARGIN, 72 * size[0] - MARGIN), ylim=(72 * size[1] - MARGIN, -MARGIN))
        ax.set_aspect("equal", adjustable="box")
        scale = 1.0 if is_new else _scale(ax, size)
        for number, box in boxes.items():
            node, top = nodes[number], tops[nodes[number].depth]
            fill = fills[number] if box.text != graphviz.ELLIPSIS else "white"
            _add_box(ax, box, x[number], top, fill, scale)
            if node.parent is not None:
                begin = tops[node.depth - 1] + boxes[node.parent].height
                at = [x[node.parent], x[number]], [begin, top - (box.label_height + LABEL_GAP)]
                ax.plot(*at, color=style.FAINT, lw=scale, zorder=0)
    return ax


def _check_size(inches: float) -> None:
    if inches > MOST_INCHES:
        raise ValueError(
            f"the tree takes more than {MOST_INCHES} inches: show fewer levels of it with max_depth"
        )


def _scale(ax: Axes, size: tuple[float, float]) -> float:
    """The size of text, relative to full size, at which boxes on a smaller axis hold it."""
    figure = ax.get_figure(root=True)
    assert figure is not None
    figure.draw_without_rendering()  # the layout decides how large the axis is
    box = ax.get_window_extent().transformed(figure.dpi_scale_trans.inverted())
    ratio = float(min(box.width / size[0], box.height / size[1]))
    return HINTED * ratio if ratio < 1 else 1.0


def _add_box(ax: Axes, box: Box, x: float, top: float, fill: str, scale: float) -> None:
    from matplotlib.patches import FancyBboxPatch

    look: Any = {"boxstyle": "round,pad=0,rounding_size=3", "linewidth": 0.8 * scale}
    look |= {"facecolor": fill, "edgecolor": style.INK}
    ax.add_patch(FancyBboxPatch((x - box.width / 2, top), box.width, box.height, **look))
    _add_lines(ax, box.text, x, top + PAD, scale)
    _add_lines(ax, box.label, x, top - LABEL_GAP - box.label_height, scale)


def _add_lines(ax: Axes, text: str, x: float, top: float, scale: float) -> None:
    """Lines one by one: matplotlib's own distances vary with the letters."""
    look: Any = {"ha": "center", "va": "baseline", "color": style.INK}
    for i, line in enumerate(text.split("\n") if text else []):
        ax.text(x, top + LINE * (i + BASELINE), line, fontsize=style.SMALL * scale, **look)
