"""Colours of nodes, by what they predict and how surely."""

from __future__ import annotations

from collections.abc import Sequence
from colorsys import hls_to_rgb

import numpy as np

from gpuforest.export.tree_nodes import Node

# light enough for black text on them
LIGHTNESS, SATURATION, FIRST_HUE = 0.6, 0.75, 25 / 360
RGB = tuple[float, float, float]  # each in 0 .. 1


def node_colours(
    nodes: dict[int, Node], is_classes: bool, full: Sequence[RGB] | None = None
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
