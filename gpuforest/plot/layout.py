"""The layout of a tree's boxes: subtrees are as near to each other as their boxes allow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

Outline = list[tuple[float, float]]  # of a subtree the left and right end of each level


def centres(
    children: Mapping[int, Sequence[int]], widths: Mapping[int, float], gap: float
) -> dict[int, float]:
    """The centre of each node's box along its level; a parent's is over those of its children.

    After Reingold and Tilford (1981): a subtree is moved to the left until one of its levels is
    at `gap` from the subtrees before it, so that no boxes of a level overlap.

    Parameters
    ----------
    children : of each node, parents before children; the root first
    widths : of each node's box
    gap : least distance between boxes of a level

    Returns
    -------
    dict, by node; the leftmost box begins at 0
    """
    outlines: dict[int, Outline] = {}  # from a node's centre
    shifts: dict[int, float] = {}  # of a node from its parent
    for node in reversed(list(children)):
        below: Outline = []
        at: list[float] = []
        for child in children[node]:
            own = outlines.pop(child)
            ends = zip(below, own, strict=False)
            at.append(max((done[1] + gap - next[0] for done, next in ends), default=0.0))
            below = _joined(below, own, at[-1])
        middle = (at[0] + at[-1]) / 2 if at else 0.0
        shifts |= {child: x - middle for child, x in zip(children[node], at, strict=True)}
        half = widths[node] / 2
        outlines[node] = [(-half, half), *((l - middle, r - middle) for l, r in below)]
    root = next(iter(children))
    found = {root: -min(left for left, _ in outlines[root])}
    for node in children:
        found |= {child: found[node] + shifts[child] for child in children[node]}
    return found


def _joined(left: Outline, right: Outline, shift: float) -> Outline:
    """The outline of both, the second moved to the right."""
    moved = [(l + shift, r + shift) for l, r in right]
    both = [(a[0], b[1]) for a, b in zip(left, moved, strict=False)]
    return both + left[len(both) :] + moved[len(both) :]
