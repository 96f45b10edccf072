"""A tree as text in the dot language, which Graphviz draws."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from colorsys import hls_to_rgb
from typing import Any, TextIO

import numpy as np

from gpuforest.common.text import one_line
from gpuforest.core.criteria import CRITERIA
from gpuforest.export import documentation, walker

FONT = "helvetica"
ELLIPSIS = "(...)"  # instead of what lies below max_depth
# of nodes, light enough for black text on them
LIGHTNESS, SATURATION, FIRST_HUE = 0.6, 0.75, 25 / 360
RGB = tuple[float, float, float]  # each in 0 .. 1


class Drawing:
    """A fitted estimator's tree as it is drawn: its nodes, and what the text of each one shows; see
    `export_graphviz`."""

    def __init__(
        self, estimator: Any, tree: int, feature_names: Sequence[str] | None = None,
        class_names: Sequence[Any] | None = None, *, max_depth: int | None = None,
        impurity: bool = True, node_ids: bool = False, proportion: bool = False, precision: int = 3,
    ) -> None:  # fmt: skip
        walker.check_not_negative(max_depth=max_depth, precision=precision)
        model = walker.opened(estimator, tree).model
        self.nodes = walker.nodes_of(model, tree, feature_names, class_names)
        self.deepest = np.inf if max_depth is None else max_depth
        forest, classes = model.forest, walker.leaf_labels(model.forest)
        boosted = forest.baseline is not None
        self.title = walker.tree_title(forest, tree, class_names) if boosted else ""
        criterion = CRITERIA[model.facts["criterion_"]]
        self.criterion = criterion.label or criterion.name
        self.is_classes = bool(classes)
        self.n_classes = [len(labels) for labels in classes] or [1] * forest.coding.n_outputs
        self.impurity, self.node_ids = impurity, node_ids
        self.proportion, self.precision = proportion, precision

    def number(self, value: float) -> str:
        """A number as text, with at most `precision` digits after the point."""
        text = f"{round(value, self.precision) + 0.0:.{self.precision}f}"  # no -0
        return text.rstrip("0").rstrip(".") if "." in text else text

    def lines(self, node: walker.Node) -> list[str]:
        """The lines of a node's text."""
        if node.depth > self.deepest:
            return [ELLIPSIS]
        number, root = self.number, self.nodes[0]
        lines = [self.title] if self.title and node.parent is None else []
        lines += [f"node #{node.number}"] if self.node_ids else []
        if node.branches:
            first = node.branches[0]
            lines.append(first.words(number) if len(node.branches) == 2 else one_line(first.name))
        name, measured = self.criterion, node.impurity
        if node.adds_to:
            name, measured = "gain", node.gain
        if self.impurity and measured is not None:
            lines.append(f"{name} = {number(measured)}")
        share = f"{number(100 * node.n_samples / root.n_samples)}%"
        lines.append(f"samples = {share if self.proportion else node.n_samples}")
        scale = node.n_samples if self.is_classes and not self.proportion else 1
        values = [
            [number(float(v) * scale) for v in of_output[:n]]
            for of_output, n in zip(node.value, self.n_classes, strict=True)
        ]
        texts = [f"[{', '.join(shares)}]" if self.is_classes else shares[0] for shares in values]
        lines.append(f"value = {texts[0] if len(texts) == 1 else '[' + ', '.join(texts) + ']'}")
        return [*lines, f"class = {walker.written(node.prediction)}"] if self.is_classes else lines

    def drawn(self) -> dict[int, walker.Node]:
        """The nodes that are drawn; nodes below the deepest level become an ellipsis."""
        return {n: node for n, node in self.nodes.items() if node.depth <= self.deepest + 1}


@documentation.documented
def export_graphviz(
    estimator: Any, tree: int = 0, *, out_file: str | os.PathLike[str] | TextIO | None = None,
    max_depth: int | None = None, feature_names: Sequence[str] | None = None,
    class_names: Sequence[Any] | None = None, filled: bool = False, impurity: bool = True,
    node_ids: bool = False, proportion: bool = False, rounded: bool = False, precision: int = 3,
) -> str | None:  # fmt: skip
    """A tree in the dot language; Graphviz is needed to draw it, not to write it.

    A node shows the condition of its left branch (of more than two branches each edge shows
    its own), and its impurity, samples, value and prediction. A node of a boosted model shows the
    gain of its split in place of the impurity, and the first one what leaves add to.

    Returns
    -------
    str, or None where there is an out_file

    Examples
    --------
    >>> from gpuforest import DecisionTreeClassifier, export_graphviz
    >>> tree = DecisionTreeClassifier().fit([[0.0], [1.0], [2.0]], ["a", "a", "b"])
    >>> export_graphviz(tree, feature_names=["x"], impurity=False).splitlines()[4]
    '1 [label="samples = 2\\\\nvalue = [2, 0]\\\\nclass = a"] ;'
    """
    drawing = Drawing(
        estimator, tree, feature_names, class_names, max_depth=max_depth, impurity=impurity,
        node_ids=node_ids, proportion=proportion, precision=precision,
    )  # fmt: skip
    colours = node_colours(drawing.nodes, drawing.is_classes) if filled else {}
    styles = ", ".join(["filled"] * filled + ["rounded"] * rounded)
    style = f'style="{styles}", ' if styles else ""
    head = f"""digraph Tree {{
node [shape=box, {style}color="black", fontname="{FONT}"] ;
edge [fontname="{FONT}"] ;
"""
    text = head + "".join(_statements(drawing, colours)) + "}\n"
    if out_file is None:
        return text
    if isinstance(out_file, str | os.PathLike):
        with open(out_file, "w", encoding="utf-8") as file:
            file.write(text)
    else:
        out_file.write(text)
    return None


def _statements(drawing: Drawing, colours: dict[int, str]) -> Iterator[str]:
    """A line for each node and for the edge that leads to it."""
    for n, node in drawing.drawn().items():
        is_filled = colours and node.depth <= drawing.deepest
        fill = f', fillcolor="{colours[n]}"' if is_filled else ""
        yield f"{n} [label={_quoted(drawing.lines(node))}{fill}] ;\n"
        if node.parent is not None:
            yield f"{node.parent} -> {n}{_edge(drawing.nodes[node.parent], node, drawing)} ;\n"


def _edge(parent: walker.Node, child: walker.Node, drawing: Drawing) -> str:
    """The label of an edge: True or False for two edges below the root, the condition for more."""
    index = parent.children.index(child.number)
    if len(parent.branches) > 2:
        return f" [label={_quoted([parent.branches[index].words(drawing.number)])}]"
    if parent.parent is not None:
        return ""
    angle, said = ((45, "True"), (-45, "False"))[index]
    return f' [labeldistance=2.5, labelangle={angle}, headlabel="{said}"]'


def _quoted(lines: list[str]) -> str:
    """A label in quotes. Graphviz reads escapes in it, and HTML's names of characters."""
    escaped = (
        line.replace("\\", "\\\\").replace('"', '\\"').replace("&", "&amp;") for line in lines
    )
    return '"' + "\\n".join(escaped) + '"'


def node_colours(
    nodes: dict[int, walker.Node], is_classes: bool, full: Sequence[RGB] | None = None
) -> dict[int, str]:
    """A colour "#rrggbb" for each node, by number.

    Of one class output the hue is the class's and the colour the paler the smaller the lead of
    the class; of one number it is the deeper the larger the number; of several outputs the
    purer the node.

    full : the colours of the classes, or of all else the first; None: hues evenly apart
    """
    values = np.stack([node.value for node in nodes.values()])  # f64[m, n_outputs, widest]
    best, n_hues = np.zeros(len(nodes), int), 1
    if values.shape[1] > 1:
        depth = _spread(-np.array([node.impurity for node in nodes.values()]))
    elif is_classes:
        shares, n_hues = values[:, 0], values.shape[2]
        best = shares.argmax(axis=1)
        second, first = np.sort(np.pad(shares, [(0, 0), (1, 0)]), axis=1)[:, -2:].T
        depth = (first - second) / np.where(second < 1, 1 - second, 1.0)
    else:
        depth = _spread(values[:, 0, 0])
    if full is None:
        hues = ((FIRST_HUE + c / n_hues) % 1.0 for c in range(n_hues))
        full = [hls_to_rgb(hue, LIGHTNESS, SATURATION) for hue in hues]
    pairs = zip(nodes, best.tolist(), depth.tolist(), strict=True)
    return {n: faded(full[c], d) for n, c, d in pairs}


def _spread(values: np.ndarray) -> np.ndarray:
    """Values moved to 0 .. 1; all 0 where they are equal."""
    half = np.nan_to_num(values) / 2  # differences of finite halves are finite
    width = half.max() - half.min()
    return np.asarray((half - half.min()) / (width or 1.0))


def faded(colour: RGB, depth: float) -> str:
    """White at depth 0, the full colour at 1."""
    return "#" + "".join(f"{round(255 * (1 - depth * (1 - part))):02x}" for part in colour)
