"""Colours of nodes, by what they predict and how surely."""

from __future__ import annotations

from colorsys import hls_to_rgb

import numpy as np

from gpuforest.inspection.reading import Node

# light enough for black text on them
LIGHTNESS, SATURATION, FIRST_HUE = 0.6, 0.75, 25 / 360


def node_colours(nodes: dict[int, Node], is_classes: bool) -> dict[int, str]:
    """A colour "#rrggbb" for each node, by number.

    Of one class output the hue is the class's and the colour the paler the smaller the lead of
    the class; of one number it is the deeper the larger the number; of several outputs the
    purer the node.
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
    hues = (FIRST_HUE + best / n_hues) % 1.0
    return {n: _mixed(h, d) for n, h, d in zip(nodes, hues.tolist(), depth.tolist(), strict=True)}


def _spread(values: np.ndarray) -> np.ndarray:
    """Values moved to 0 .. 1; all 0 where they are equal."""
    half = np.nan_to_num(values) / 2  # differences of finite halves are finite
    width = half.max() - half.min()
    return np.asarray((half - half.min()) / (width or 1.0))


def _mixed(hue: float, depth: float) -> str:
    """White at depth 0, the hue's full colour at 1."""
    full = hls_to_rgb(hue, LIGHTNESS, SATURATION)
    return "#" + "".join(f"{round(255 * (1 - depth * (1 - part))):02x}" for part in full)
