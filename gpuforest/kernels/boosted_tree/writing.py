"""A tree of boosting is written, compiled."""

from gpuforest.compiler.decorators import rare
from gpuforest.engine.nodes import CHILD_SHIFT, FEATURE_SHIFT, LEAF_WORD, MISSING_SHIFT, SET_BIN
from gpuforest.kernels.boosted_tree.records import (
    BEGIN,
    BIN,
    FEATURE,
    HIGH,
    LEFT,
    LOW,
    MISSING_LEFT,
    N_WORDS,
    ROWS,
    SLOT,
    G,
    H,
)
from gpuforest.kernels.boosted_tree.search import value_of
from gpuforest.kernels.shared.hashing.numba import U


@rare
def write_tree(data, rules, table, state, tree, set_words):
    """Write the tree in the order of nodes.py."""
    stack, n_stack, n_nodes, n_leaves, n_words = table.open, 1, 1, 0, 0
    stack[0] = 0
    places = table.numbers[:, SLOT]  # each node's position
    places[0] = 0
    while n_stack > 0:
        n_stack -= 1
        node = stack[n_stack]
        own, at = table.numbers[node], U(table.numbers[node, SLOT])
        if own[LEFT] < 0:
            tree.nodes[at] = U(LEAF_WORD) + U(n_leaves)
            tree.sums[n_leaves, 0], tree.sums[n_leaves, 1] = own[G], own[H]
            tree.sums[n_leaves, 2] = own[ROWS]
            low, high = table.floats[node, LOW], table.floats[node, HIGH]
            tree.values[n_leaves] = value_of(own[G], own[H], rules, low, high)
            for i in range(4):
                tree.ranges[n_leaves, i] = own[BEGIN + i]
            n_leaves += 1
            continue
        word = (U(own[FEATURE]) << U(FEATURE_SHIFT)) | U(own[BIN])
        word |= U(own[MISSING_LEFT] != 0) << U(MISSING_SHIFT)
        tree.nodes[at] = word | (U(n_nodes) << U(CHILD_SHIFT))
        places[own[LEFT]], places[own[LEFT] + 1] = n_nodes, n_nodes + 1
        n_nodes += 2
        stack[n_stack], stack[n_stack + 1] = own[LEFT] + 1, own[LEFT]
        n_stack += 2
    # sets follow in the order of the nodes
    inverse = table.open
    for node in range(n_nodes):
        inverse[places[node]] = node
    for at in range(n_nodes):
        own = table.numbers[inverse[at]]
        if own[LEFT] >= 0 and own[BIN] == SET_BIN:
            for w in range(set_words[own[FEATURE]]):
                tree.sets[n_words] = table.sets[inverse[at], w]
                n_words += 1
    state[N_WORDS] = n_words
