"""Nodes take their places in a forest on the host, when their trees have grown, or grown again.

The reference runs this text as Python, others compile it. growing/assemble.py describes the input,
core/nodes.py the order of nodes.
"""

import numpy as np

from gpuforest.compiler.decorators import device, kernel
from gpuforest.compiler.types import I64, Bools, I8s, I32s, I64s, I64s2, U64s
from gpuforest.core.nodes import CHILD_MASK, LEAF_MASK, LEAF_WORD
from gpuforest.kernels.shared.constants import DEEP, LEAF, WIDE
from gpuforest.kernels.shared.numba import TO_CHILD, U, split_word

LEAVES, ROW, CHILD = U(LEAF_WORD), U(LEAF_MASK), U(CHILD_MASK)
BUT_CHILD = ~(CHILD << TO_CHILD)


@kernel
def link_slots(
    kind: I8s, feature: I32s, bin: I32s, missing_left: Bools, n_trees: I64,
    link: I64s, word: U64s, leaf: I64s,
):  # fmt: skip
    """Link the slots of all levels, one level after another, and make their nodes.

    kind : i8[S], as in constants.py
    feature, bin, missing_left : [W], the splits of the wide slots among them; feature -1: the split
        was refused, and the slot is a leaf
    link : i64[S] of zeros; becomes the left child of a slot that is split, next to which the right
        one lies; -1 - d if the slot is the root of subtree d; 0 if it is a leaf, or no split led
        to it
    word : u64[S] of zeros; becomes the node of each slot, without the number of its child; leaves
        are numbered as they come
    leaf : i64[S]; the slots that are leaves, in their order, are written to its beginning
    """
    wide, deep, leaves = 0, 0, 0
    for s in range(len(kind)):
        ends = kind[s] == LEAF
        if kind[s] == WIDE:
            ends = feature[wide] < 0
            if not ends:
                link[s] = n_trees + 2 * wide
                word[s] = split_word(feature[wide], bin[wide], missing_left[wide], 0)
            wide += 1
        elif kind[s] == DEEP:
            deep += 1
            link[s] = -deep
        if ends:
            word[s] = LEAVES + U(leaves)
            leaf[leaves] = s
            leaves += 1


@device
def numbered(node, number):
    """A leaf with its row of the joined table: number i64[...], or i64[0] if rows stay."""
    return LEAVES + U(number[node & ROW]) if len(number) else node


@kernel
def place_nodes(
    link: I64s, word: U64s, set_at: I64s, offsets: I64s, inner: U64s, first_leaf: I64s,
    inner_set_at: I64s, number: I64s, roots: I64s, begin: I64, end: I64, stack: I64s2,
    nodes: U64s, node_set_at: I64s, sizes: I64s,
):  # fmt: skip
    """Write the nodes of the trees begin .. end - 1 in their order; or only the number of nodes of
    each to `sizes` i64[T], if it has elements.

    link, word : as `link_slots` makes them
    set_at, inner_set_at, node_set_at : where the set of each slot, of each node of a subtree and of
        each node u64[M] begins; i64[0] without sets
    first_leaf : i64[D], added to the numbers of the leaves of subtree d
    inner : u64[...], the nodes of subtree d begin at offsets[d], with the number 0 for its root
    roots : i64[T + 1], where each tree begins in `nodes`
    number : as in `numbered`
    stack : i64[levels + 2, 2]
    """
    has_sets, counts = len(node_set_at) > 0, len(sizes) > 0
    for t in range(begin, end):
        root = 0 if counts else roots[t]
        free = root + 1  # the first place below nodes that have a place
        stack[0, 0], stack[0, 1], waiting = t, root, 1
        while waiting:
            waiting -= 1
            s, at = stack[waiting, 0], stack[waiting, 1]
            if link[s] > 0:
                if not counts:
                    nodes[at] = word[s] + (U(free - root) << TO_CHILD)
                if has_sets:
                    node_set_at[at] = set_at[s]
                # all that is below the left child comes before what is below the right one
                stack[waiting, 0], stack[waiting, 1] = link[s] + 1, free + 1
                stack[waiting + 1, 0], stack[waiting + 1, 1] = link[s], free
                waiting += 2
                free += 2
            elif link[s] < 0:
                d = -1 - link[s]
                first, last = offsets[d], offsets[d + 1]
                below = free - first - 1  # the place of node i > first is i + below
                child = U(free - 1 - root) << TO_CHILD
                for i in range(first, first if counts else last):
                    to = at if i == first else i + below
                    if inner[i] < LEAVES:
                        nodes[to] = inner[i] + child
                    else:
                        nodes[to] = numbered(inner[i] + U(first_leaf[d]), number)
                    if has_sets:
                        node_set_at[to] = inner_set_at[i]
                free += last - first - 1
            elif not counts:
                nodes[at] = numbered(word[s], number)
        if counts:
            sizes[t] = free


@kernel
def leaves_in_order(
    roots: I64s, begin: I64, end: I64, first: I64, leaf_sums: I64s2, nodes: U64s, table: I64s2
):
    """Copy leaf_sums i64[V, C] of leaves of the trees begin .. end - 1 to `table` from row `first`
    on, in the order of the nodes, which get the new numbers."""
    row = first
    for p in range(roots[begin], roots[end]):
        if nodes[p] >= LEAVES:
            old = np.int64(nodes[p] & ROW)
            for c in range(table.shape[1]):
                table[row, c] = leaf_sums[old, c]
            nodes[p] = LEAVES + U(row)
            row += 1


@device
def parts_before(end, first, last, k, place):
    """The number of the first of the parts first .. last - 1 that does not end before a place, from
    that of a place nearby, k."""
    while k < last and end[k] <= place:
        k += 1
    while k > first and end[k - 1] > place:
        k -= 1
    return k


@kernel
def splice_nodes(
    old: U64s, new: U64s, offsets: I64s, first: I64s, at: I64s, begin: I64s, end: I64s, upto: I64s,
    roots: I64s, sizes: I64s, n_rows: I64, nodes: U64s,
):  # fmt: skip
    """Write the nodes of a forest, where new trees take the places of P nodes and what is below.

    old, offsets : the forest as it was; first : i64[T + 1], the first of the P in each tree
    at, begin, end : i64[P], nodes that are replaced, and where the nodes below these lie
    upto : i64[P], by how much old nodes of the tree move from there on
    new, roots, sizes : the new trees, in the order of `at`; n_rows : added to their leaves
    """
    to = 0
    for t in range(len(offsets) - 1):
        low, root, last, k = offsets[t], to, first[t + 1], first[t]
        i = low
        for p in range(first[t], last + 1):
            # 1. old nodes up to a replaced part; parts before k end before their children
            while i < (begin[p] if p < last else offsets[t + 1]):
                node = old[i]
                if node < LEAVES:
                    child = low + np.int64(node >> TO_CHILD & CHILD)
                    k = parts_before(end, first[t], last, k, child)
                    if k > first[t]:
                        child += upto[k - 1]
                    node = node & BUT_CHILD | U(child - low) << TO_CHILD
                nodes[to] = node
                to, i = to + 1, i + 1
            # 2. and what is new there
            if p < last:
                child = U(to - 1 - root) << TO_CHILD
                for j in range(roots[p] + 1, roots[p] + sizes[p]):
                    nodes[to] = new[j] + (child if new[j] < LEAVES else U(n_rows))
                    to += 1
                i = end[p]
        # 3. nodes above
        for p in range(first[t], last):
            k, node = parts_before(end, first[t], last, k, at[p]), new[roots[p]]
            moved = upto[k - 1] if k > first[t] else np.int64(0)
            below = np.int64(0) if p == first[t] else upto[p - 1]
            child = U(begin[p] - low + below - 1) << TO_CHILD
            nodes[root + at[p] - low + moved] = node + (child if node < LEAVES else U(n_rows))


@kernel
def number_leaves(nodes: U64s, used: Bools, number: I64s):
    """Give leaves the numbers i64[V] of their rows; or mark in bool[V] which rows they use."""
    for i in range(len(nodes)):
        if nodes[i] >= LEAVES:
            if len(used):
                used[nodes[i] & ROW] = True
            else:
                nodes[i] = numbered(nodes[i], number)
