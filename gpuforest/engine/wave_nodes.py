"""The nodes of a wave's trees, in the order of nodes.py, and their table of leaves.

levels.py gives each node its position. Subtrees of the deep phase are contiguous in that order
already and are moved as blocks. The CUDA backend does the same in a few kernels of its own
(kernels/wave_nodes); its results are equal to these.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gpuforest.engine.frontier import Subtrees
from gpuforest.engine.leaf_rows import distinct_rows
from gpuforest.engine.levels import Level, exclusive, positions
from gpuforest.engine.nodes import CHILD_SHIFT, LEAF_MASK, LEAF_WORD, is_leaf, pack_splits
from gpuforest.engine.slots import pairs
from gpuforest.kernels.shared.constants import DEEP, LEAF, WIDE

if TYPE_CHECKING:
    from gpuforest.backends.base import Backend
    from gpuforest.engine.target import TargetCoding

Array = Any


def wave_nodes(
    backend: Backend, levels: list[Level], parts: list[Subtrees]
) -> tuple[Array, Array, Array, Array | None, Array]:
    """The trees of a wave from its levels, of which the first holds the root of each tree.

    Parameters
    ----------
    parts : the subtrees of the deep slots of all levels. The list is emptied, so that they make
        room

    Returns
    -------
    tree_sizes : i64[T]
    nodes : u64[M], tree by tree; leaves are numbered by the rows of leaf_sums
    leaf_sums : i64[V, C]: of slots that are leaves, of splits that were refused, of subtrees
    set_at : i64[M] or None, the word of `sets` where each node's set begins
    sets : u64[...]; without `set_at` it means nothing
    """
    xp, trees = backend.xp, parts.pop()
    blocks = trees.offsets[1:] - trees.offsets[:-1]
    tree_sizes, position, below = positions(levels, blocks, xp)
    kind, tree, sums, feature, bin, missing_left, sets = (
        xp.concat([getattr(level, name) for level in levels], axis=0)
        for name in ("kind", "tree", "sums", "feature", "bin", "missing_left", "sets")
    )
    root = xp.take(xp.cumulative_sum(tree_sizes) - tree_sizes, xp.astype(tree, xp.int64))
    at = root + position
    # 1. pieces of a single node: the wide slots, then the leaves
    wide, leaf, deep = (xp.nonzero(kind == k)[0] for k in (WIDE, LEAF, DEEP))
    child = xp.astype(xp.take(below, wide), xp.uint64) << CHILD_SHIFT
    refused, n_leaves = feature < 0, leaf.shape[0]
    number = xp.astype(exclusive(xp, refused), xp.uint64) + (LEAF_WORD + n_leaves)
    words = xp.where(refused, number, pack_splits(xp, feature, bin, missing_left) + child)
    numbers = xp.arange(n_leaves, dtype=xp.uint64, device=backend.device) + LEAF_WORD
    leaf_sums = xp.take(sums, xp.concat([leaf, xp.take(wide, xp.nonzero(refused)[0])]), axis=0)
    single = xp.concat([wide, leaf])
    # 2. two pieces for each subtree: its root, which lies beside its sibling, and the rest
    below = xp.take(below, deep)
    begin = xp.concat(
        [xp.take(at, single), pairs(xp, xp.take(at, deep), xp.take(root, deep) + below)]
    )
    length = xp.concat([xp.ones_like(single), pairs(xp, xp.ones_like(blocks), blocks - 1)])
    children, leaves = below - 1, trees.first_leaf + leaf_sums.shape[0]
    nodes = xp.concat([words, numbers, trees.nodes])
    leaf_sums = xp.concat([leaf_sums, trees.leaf_sums])
    set_at = None
    if sets.shape[1]:
        at = xp.arange(wide.shape[0], dtype=xp.int64, device=backend.device) * sets.shape[1]
        sets, set_at = xp.reshape(sets, (-1,)), xp.concat([at, xp.zeros_like(leaf)])
        if trees.sets is not None:
            set_at = xp.concat([set_at, trees.set_at + sets.shape[0]])
            sets = xp.concat([sets, trees.sets])
    del trees
    # 3. all pieces in the order of nodes.py
    nodes, set_at = in_order(nodes, set_at, begin, length, children, leaves, backend)
    return tree_sizes, nodes, leaf_sums, set_at, sets


def in_order(
    nodes: Array,
    set_at: Array | None,
    begin: Array,
    length: Array,
    children: Array,
    leaves: Array,
    backend: Backend,
) -> tuple[Array, Array | None]:
    """`nodes` u64[M] and `set_at` i64[M] with their pieces sorted by `begin` i64[P].

    The pieces lie one after another and have `length` i64[P] nodes. The last 2 D of them belong
    to D subtrees: `children` and `leaves` i64[D] are added to the numbers in their nodes.
    """
    xp, n, device = backend.xp, begin.shape[0], backend.device
    order = xp.argsort(begin, stable=True)
    # 1. how far each piece moves, and what is added to its splits and to its leaves
    source = xp.take(xp.cumulative_sum(length) - length, order)
    length = xp.take(length, order)
    move = source - (xp.cumulative_sum(length) - length)
    own = xp.zeros((n - 2 * children.shape[0], 2), dtype=xp.uint64, device=device)
    added = xp.stack([children * 2**CHILD_SHIFT, leaves], axis=1)
    added = xp.concat([own, xp.repeat(xp.astype(added, xp.uint64), 2, axis=0)])
    added = xp.reshape(xp.take(added, order, axis=0), (-1,))
    # 2. node by node, and in place, because memory is scarce here
    piece = xp.repeat(xp.arange(n, dtype=xp.int64, device=device), length)
    source = xp.take(move, piece)
    source += xp.arange(nodes.shape[0], dtype=xp.int64, device=device)
    nodes = xp.take(nodes, source)
    set_at = None if set_at is None else xp.take(set_at, source)
    del source
    piece *= 2
    piece += xp.astype(is_leaf(nodes), xp.int64)
    nodes += xp.take(added, piece)
    return nodes, set_at


def leaf_table(
    backend: Backend, nodes: Array, sums: Array, coding: TargetCoding
) -> tuple[Array, Array]:
    """Nodes u64[M] and leaf sums i64[V, C] with the leaves in their canonical order.

    For classes, the table keeps every distinct row once, in the order of a hash: most leaves of a
    forest are pure and of small weight. Moments hardly repeat, so their rows are in node order.
    """
    xp, leaf = backend.xp, is_leaf(nodes)
    if coding.is_classes:
        sums, inverse = distinct_rows(xp, sums)
        number = xp.take(inverse, leaf_numbers(xp, nodes, leaf))
    else:
        sums = xp.take(sums, leaf_numbers(xp, nodes, leaf)[leaf], axis=0)
        number = exclusive(xp, leaf)
    number = xp.astype(number, xp.uint64)
    number += LEAF_WORD
    return xp.where(leaf, number, nodes), sums


def leaf_numbers(xp: Any, nodes: Array, leaf: Array) -> Array:
    """Each leaf's number, i64[M]; zero for splits."""
    return xp.astype(xp.where(leaf, nodes & LEAF_MASK, 0), xp.int64)
