"""A tree of boosting, compiled. The specification is numpy.py in this folder.

Of the two children of a split only the smaller one's histograms are filled; the other's are the
difference to their parent's, which is exact.

Threads share the columns of a search, and the rows of a large node while it is divided. The thread
that grows the tree cuts this work into parts and writes a ticket:

    number of the work << 32 | number of parts << 16 | the next part

Whoever adds one to the ticket takes that part. The growing thread takes parts as well, so it never
waits for a thread that the system has not woken; and a waiting thread watches the ticket for a
short time only, so that it takes no processor from others.
"""

import math

import numpy as np

from gpuforest.compiler import intrinsics, types
from gpuforest.compiler.decorators import device, kernel, rare
from gpuforest.core.nodes import LEAF_WORD, SET_BIN
from gpuforest.kernels.boosted_tree import records, search, splitting
from gpuforest.kernels.shared.numba import U, domain, order_of, permute, split_word

STEPS = BEGUN, PLANNED, SEARCHED, DIVIDED, MOVED, DONE = range(6)  # `state.step` is what comes next
SEARCH, DIVIDE, MOVE = range(3)  # works that threads share
TICKET, FINISHED = 0, 16  # elements of `shared` i64[32], in cache lines of their own
MASK = 2**16 - 1
JOINED = 256  # rows whose sums over outputs are computed at once
PATIENCE = 2**13  # looks at the ticket, of 20 to 100 ns each
MOST_STEP = records.MOST_STEP


@device
def may_split(node, rules):
    """Whether a node has enough rows and hessian, and lies not too deep."""
    hessian = np.float64(node.h) * rules.scale[0].sum_h >= rules.min_hessian
    return node.n >= 2 * rules.min_rows and hessian and node.depth < rules.max_depth


@device
def choose_features(rules, table, node, which):
    """Mark the features that a node tries, and the features that have histograms."""
    tried, has_hist, F = table.tried[which], table.tried[2], table.tried.shape[1]
    n = 0
    for f in range(F):
        allowed = len(rules.groups) == 0
        for j in range(len(rules.groups)):
            allowed |= table.groups[node, j] & rules.groups[j, f]
        has_hist[f] = tried[f] = allowed
        n += allowed
    wanted = max(1, np.int64(math.ceil(rules.share * n)))
    if wanted < n:
        order, (mask, shift), position = order_of(table.nodes[node].key), domain(F), 0
        tried[:] = False
        while wanted > 0:
            f = permute(order, position, F, mask, shift)
            position += 1
            if has_hist[f]:
                tried[f] = True
                wanted -= 1


@device
def plan_search(rules, table, node, slot, other, other_slot, subtracted):
    """Plan the next search: fill histograms of `node`; fill or subtract `other`'s (-1: no node)."""
    state = table.states[0]
    state.first, state.first_slot = node, slot
    state.second, state.second_slot, state.subtract = other, other_slot, subtracted
    if node >= 0:
        choose_features(rules, table, node, 0)
        if not may_split(table.nodes[node], rules):  # its histograms serve the other only
            table.tried[0, :] = False
    if other >= 0:
        choose_features(rules, table, other, 1)


@device
def take_slot(state, free):
    """The number of a histogram that no node has, or -1."""
    if state.n_free == 0:
        return np.int64(-1)
    state.n_free -= 1
    return free[state.n_free]


@device
def give_slot(state, free, slot):
    if slot >= 0:
        free[state.n_free] = slot
        state.n_free += 1


@device
def plan_children(rules, table):
    """Plan the search for the splits of a split node's two children, where they may have any."""
    state, nodes, free, spare = table.states[0], table.nodes, table.free, table.P
    left, old = nodes[state.split].left, nodes[state.split].slot
    small, large = left + 1, left
    if nodes[left].n < nodes[left + 1].n:
        small, large = left, left + 1
    none = np.int64(-1)
    both = may_split(nodes[small], rules)
    if may_split(nodes[large], rules):
        slot = take_slot(state, free) if both else none
        nodes[small].slot = slot
        at = slot if slot >= 0 else spare
        if old >= 0:
            nodes[large].slot = old
            plan_search(rules, table, small, at, large, old, 1)
            return
        other = take_slot(state, free)
        nodes[large].slot = other
        first, second = small if both else none, other if other >= 0 else spare + 1
        plan_search(rules, table, first, at, large, second, 0)
    elif both:  # the smaller one has too few rows as well; but it may have more of the hessian
        slot = old if old >= 0 else take_slot(state, free)
        nodes[small].slot = slot
        plan_search(rules, table, small, slot if slot >= 0 else spare, none, spare, 0)
    else:
        give_slot(state, free, old)


@device
def take_split(table, at, which):
    """Take the best split of a searched node, the first of equals."""
    if at < 0:
        return
    state, node = table.states[0], table.nodes[at]
    for part in range(state.n_parts):
        split = table.splits[which, part]
        if split.feature >= 0 and split.gain > node.gain:
            node.gain, node.feature, node.bin = split.gain, split.feature, split.bin
            node.missing_left = split.missing_left
            node.left_g, node.left_h, node.left_n = split.g, split.h, split.n
            for w in range(table.sets.shape[1]):
                table.sets[at, w] = table.split_sets[which, part, w]
    if node.feature >= 0:
        table.open[state.n_open] = at
        state.n_open += 1
    else:
        give_slot(state, table.free, node.slot)


@device
def finish_search(table):
    # in the order in which the nodes were made, which decides between equal gains
    state = table.states[0]
    first, second = state.first, state.second
    if second >= 0 and second < first:
        take_split(table, second, 1)
        take_split(table, first, 0)
    else:
        take_split(table, first, 0)
        take_split(table, second, 1)
    state.first = state.second = -1


@device
def next_node(table, limited):
    """Take the open node whose split gains most, the first of equals. Without a limit of leaves
    order changes nothing: then the last, which frees histograms soonest."""
    nodes, open_nodes, n = table.nodes, table.open, table.states[0].n_open
    best = n - 1
    if limited:
        best = 0
        for i in range(1, n):
            if nodes[open_nodes[i]].gain > nodes[open_nodes[best]].gain:
                best = i
    node = open_nodes[best]
    for i in range(best, n - 1):
        open_nodes[i] = open_nodes[i + 1]
    table.states[0].n_open = n - 1
    return node


@device
def begin_tree(data, rules, table, rows):
    """Make the root, and plan its search."""
    state, root = table.states[0], table.nodes[0]
    state.n_nodes, state.n_leaves, state.n_open = 1, 1, 0
    state.n_free = table.P
    for i in range(table.P):
        table.free[i] = i
    words = data.stats.shape[1]
    sums = table.ordered[0]
    sums[:words] = 0
    for i in range(rules.n_drawn):
        for w in range(words):
            sums[w] += data.stats[U(rows[U(i)]), U(w)]
    g, h, n = search.sums_in(sums, 0, words, rules.n_bits)
    most = rules.most * rules.scale[0].g * rules.scale[0].sum_g
    splitting.begin_node(root, state.key, 0, g, h, n, -most, most)
    root.begin, root.end = 0, rules.n_drawn
    root.other_begin, root.other_end = rules.n_drawn, len(rows)
    table.groups[0, :] = True
    state.first = state.second = -1
    slot = take_slot(state, table.free)
    root.slot = slot
    if may_split(root, rules):
        none = np.int64(-1)
        plan_search(rules, table, np.int64(0), slot if slot >= 0 else table.P, none, none, 0)


@rare
def write_tree(rules, table, tree, set_words):
    """Write the tree in the order of nodes.py."""
    nodes, stack, n_stack, n_nodes, n_leaves, n_words = table.nodes, table.open, 1, 1, 0, 0
    stack[0] = nodes[0].position = 0
    while n_stack > 0:
        n_stack -= 1
        node = nodes[stack[n_stack]]
        at = U(node.position)
        if node.left < 0:
            tree.nodes[at] = U(LEAF_WORD) + U(n_leaves)
            leaf = tree.leaves[n_leaves]
            leaf.g, leaf.h, leaf.n = node.g, node.h, node.n
            leaf.begin, leaf.end = node.begin, node.end
            leaf.other_begin, leaf.other_end, leaf.half = node.other_begin, node.other_end, 0
            value = search.value_of(node.g, node.h, rules, node.low, node.high)
            leaf.value = value * rules.scale[0].value
            leaf.added = min(max(leaf.value * rules.rate, -MOST_STEP), MOST_STEP)
            n_leaves += 1
            continue
        tree.nodes[at] = split_word(node.feature, node.bin, node.missing_left != 0, n_nodes)
        nodes[node.left].position, nodes[node.left + 1].position = n_nodes, n_nodes + 1
        n_nodes += 2
        stack[n_stack], stack[n_stack + 1] = node.left + 1, node.left
        n_stack += 2
    # sets follow in the order of the nodes
    inverse = table.open
    for i in range(n_nodes):
        inverse[nodes[i].position] = i
    for at in range(n_nodes):
        node = nodes[inverse[at]]
        if node.left >= 0 and node.bin == SET_BIN:
            for w in range(set_words[node.feature]):
                tree.sets[n_words] = table.sets[inverse[at], w]
                n_words += 1
    table.states[0].n_set_words = n_words


@rare
def do_part(data, rules, table, rows, part):
    work, parts = table.states[0].work, table.states[0].n_parts
    if work == SEARCH:
        C = len(data.codes)
        first, last = C * part // parts, C * (part + 1) // parts
        search.search_part(data, rules, table, rows, first, last, part)
    elif work == DIVIDE:
        splitting.divide_part(data, table, rows, part, parts)
    else:
        node, lefts, spare = table.nodes[table.states[0].split], table.lefts, table.spare
        splitting.gather(rows, spare, node.begin, node.end, part, parts, lefts[0])
        splitting.gather(rows, spare, node.other_begin, node.other_end, part, parts, lefts[1])


@device
def take_part(shared):
    """A part that nobody has taken, or -1."""
    ticket = intrinsics.load_shared(shared, TICKET)
    if ticket & MASK >= (ticket >> 16) & MASK:
        return np.int64(-1)
    ticket = intrinsics.add_shared(shared, TICKET, 1)
    part = ticket & MASK
    return part if part < (ticket >> 16) & MASK else np.int64(-1)


@device
def work_on(work, parts, data, rules, table, rows, shared):
    """Do a work, with the threads that help."""
    state = table.states[0]
    state.work, state.n_parts = work, parts
    if parts == 1:
        do_part(data, rules, table, rows, np.int64(0))
        return
    number = (intrinsics.load_shared(shared, TICKET) >> 32) + 1
    intrinsics.store_shared(shared, FINISHED, 0)
    intrinsics.store_shared(shared, TICKET, (number << 32) | (parts << 16))
    part = take_part(shared)
    while part >= 0:
        do_part(data, rules, table, rows, part)
        intrinsics.add_shared(shared, FINISHED, 1)
        part = take_part(shared)


@device
def all_finished(shared, parts):
    """Whether all parts are finished; waits a while for them."""
    if parts == 1:
        return True
    for _ in range(PATIENCE):
        if intrinsics.load_shared(shared, FINISHED) == parts:
            return True
        intrinsics.pause()
    return False


@device
def threads_for_search(data, table):
    """The number of threads that share a search, each with enough to do."""
    state, n, sums = table.states[0], np.int64(0), table.hist.shape[1]
    if state.first >= 0:
        n += table.nodes[state.first].end - table.nodes[state.first].begin
    if state.second >= 0 and not state.subtract:
        n += table.nodes[state.second].end - table.nodes[state.second].begin
    return max(1, min(state.n_threads, (n * len(data.codes) + sums) // state.least_cells))


@device
def help_grow(data, rules, rows, table, shared):
    """Take parts until there has been none for a while."""
    idle = 0
    while idle < PATIENCE:
        part = take_part(shared)
        if part < 0:
            intrinsics.pause()
            idle += 1
            continue
        do_part(data, rules, table, rows, part)
        intrinsics.add_shared(shared, FINISHED, 1)
        idle = 0


# checked, because threads write each other's arrays
@kernel(checked={})
def grow_tree(
    data: records.BoostColumns, rules: records.TreeRules, rows: types.I32s,
    table: records.TreeTable, shared: types.I64s, set_words: types.I64s, tree: records.GrownTree,
    helps: types.Bool,
):  # fmt: skip
    """Grow until the tree is done, or another thread is late with its part; see the state's `step`.

    helps : True for a thread that takes parts of the work
    rows : i32[N], put into the order of the leaves"""
    if helps:  # in the same kernel, because `do_part` is most of it
        help_grow(data, rules, rows, table, shared)
        return
    state = table.states[0]
    step = state.step
    if step == BEGUN:
        begin_tree(data, rules, table, rows)
        step = PLANNED
    while step != DONE:
        if step != PLANNED and not all_finished(shared, state.n_parts):
            break
        work, parts = np.int64(SEARCH), np.int64(1)
        if step == PLANNED:
            step = SEARCHED
            if state.first < 0 and state.second < 0:
                state.n_parts = 1
                continue
            parts = threads_for_search(data, table)
        elif step == SEARCHED:
            finish_search(table)
            if state.n_open == 0 or state.n_leaves >= rules.max_leaves:
                write_tree(rules, table, tree, set_words)
                step = DONE
                break
            state.split = next_node(table, rules.limited)
            work, step = np.int64(DIVIDE), DIVIDED
            node = table.nodes[state.split]
            n_rows = node.end - node.begin + node.other_end - node.other_begin
            parts = max(parts, min(state.n_threads, n_rows // state.least_rows))
        elif step == DIVIDED:
            work, parts, step = np.int64(MOVE), state.n_parts, MOVED
        else:
            splitting.make_children(rules, table)
            state.n_leaves += 1
            plan_children(rules, table)
            step = PLANNED
            continue
        work_on(work, parts, data, rules, table, rows, shared)
    state.step = step


@kernel(plain={})
def draw_rows(key: types.U64, count: types.I64, is_few: types.U8s, rows: types.I32s):
    """The rows that a round draws and then the others, each part ascending, as `ordered_rows` of
    backends/boosters.py. Only the smaller part is drawn; is_few u8[N] must hold zeros."""
    N = len(rows)
    order, (mask, shift), few_drawn = order_of(key), domain(N), 2 * count <= N
    for position in range(0 if few_drawn else count, count if few_drawn else N):
        is_few[permute(order, position, N, mask, shift)] = 1
    first, second = 0, count
    for i in range(N):
        if (is_few[U(i)] == 1) == few_drawn:
            rows[U(first)] = i
            first += 1
        else:
            rows[U(second)] = i
            second += 1


@kernel
def join(
    stats: types.I64s3, factors: types.I64s2, n_bits: types.I64, begin: types.I64, end: types.I64,
    joint: types.I64s2,
):  # fmt: skip
    """As vector.py's, of the rows begin .. end - 1, in blocks that stay in L1."""
    R, K = factors.shape
    for first in range(begin, end, JOINED):
        last = min(first + JOINED, end)
        joint[first:last] = 0
        for k in range(K):
            for j in range(R):
                factor = factors[j, k]
                if factor != 0:
                    for i in range(first, last):
                        joint[U(i), U(j)] += factor * stats[U(k), U(i), 0]
            for i in range(first, last):
                joint[U(i), U(R)] += stats[U(k), U(i), 1] >> n_bits
        for i in range(first, last):
            joint[U(i), U(R)] = (joint[U(i), U(R)] << n_bits) + 1


@kernel
def leaf_sums(
    stats: types.I64s2, numbers: types.I32s, n_bits: types.I64, sums: types.I64s2
):  # fmt: skip
    """As vector.py's."""
    for i in range(len(numbers)):
        at = U(numbers[U(i)])
        sums[at, 0] += stats[U(i), 0]
        sums[at, 1] += stats[U(i), 1] >> n_bits


@kernel
def add_values(raw: types.F64s, rows: types.I32s, leaves: records.Leaves):
    """Add what leaves add to raw f64[N] at their rows and their others."""
    for number in range(len(leaves)):
        leaf = leaves[number]
        for i in range(leaf.begin, leaf.end):
            raw[U(rows[U(i)])] += leaf.added
        for i in range(leaf.other_begin, leaf.other_end):
            raw[U(rows[U(i)])] += leaf.added


@kernel
def add_to_rows(raw: types.F64s, numbers: types.I32s, added: types.F64s):
    """Add to raw f64[N] what is added to rows of a number."""
    for i in range(len(raw)):
        raw[U(i)] += added[U(numbers[U(i)])]
