"""A tree of boosting, compiled. The specification is numpy.py beside this file.

Of the two children of a split only the smaller one's histograms are filled; the other's are the
difference to their parent's, which is exact. Threads share the columns of a search, and the rows
of a large node while it is divided.
"""

import math

import numpy as np

from gpuforest.compiler.decorators import device, kernel
from gpuforest.compiler.types import I64, F64s, I32s, I64s, I64s2
from gpuforest.kernels.boosted_tree.records import (
    BEGIN,
    BEGUN,
    CELLS_SHARED,
    DEPTH,
    DIVIDE,
    DIVIDED,
    DONE,
    END,
    FEATURE,
    FIRST,
    FIRST_SLOT,
    GAIN,
    HIGH,
    LEFT,
    LOW,
    MIN_HESSIAN,
    MOVE,
    MOVED,
    N_FREE,
    N_LEAVES,
    N_NODES,
    N_OPEN,
    N_PARTS,
    N_THREADS,
    NODE,
    OTHER_BEGIN,
    OTHER_END,
    PLANNED,
    ROWS,
    ROWS_SHARED,
    SEARCH,
    SEARCHED,
    SECOND,
    SECOND_SLOT,
    SLOT,
    STATUS,
    SUBTRACT,
    BoostColumns,
    BoostRules,
    G,
    H,
    Pool,
    Table,
    Tree,
)
from gpuforest.kernels.boosted_tree.search import sums_in
from gpuforest.kernels.boosted_tree.sharing import all_finished, help_with_parts, work_on
from gpuforest.kernels.boosted_tree.splitting import make_children
from gpuforest.kernels.boosted_tree.writing import write_tree
from gpuforest.kernels.shared.hashing.numba import U, domain, order_of, permute


@device
def may_split(numbers, rules):
    """Whether a node has enough rows and hessian, and lies not too deep."""
    hessian = np.float64(numbers[H]) * rules.h >= MIN_HESSIAN
    return numbers[ROWS] >= 2 * rules.min_rows and hessian and numbers[DEPTH] < rules.max_depth


@device
def choose_features(rules, table, pool, node, which):
    """Mark the features that a node tries, and those that have histograms."""
    tried, known, F = pool.tried[which], pool.tried[2], pool.tried.shape[1]
    n = 0
    for f in range(F):
        allowed = len(rules.groups) == 0
        for j in range(len(rules.groups)):
            allowed |= table.groups[node, j] & rules.groups[j, f]
        known[f] = tried[f] = allowed
        n += allowed
    wanted = max(1, np.int64(math.ceil(rules.share * n)))
    if wanted < n:
        order, (mask, shift), position = order_of(table.keys[node]), domain(F), 0
        tried[:] = False
        while wanted > 0:
            f = permute(order, position, F, mask, shift)
            position += 1
            if known[f]:
                tried[f] = True
                wanted -= 1


@device
def plan_search(rules, table, pool, state, node, slot, other, other_slot, subtracted):
    """The next search: a node, whose histograms are filled, and another one, whose are filled or
    subtracted; -1 for none."""
    state[FIRST], state[FIRST_SLOT] = node, slot
    state[SECOND], state[SECOND_SLOT], state[SUBTRACT] = other, other_slot, subtracted
    if node >= 0:
        choose_features(rules, table, pool, node, 0)
        if not may_split(table.numbers[node], rules):  # its histograms serve the other only
            pool.tried[0, :] = False
    if other >= 0:
        choose_features(rules, table, pool, other, 1)


@device
def take_slot(pool, state):
    """A histogram of the pool, or -1."""
    if state[N_FREE] == 0:
        return np.int64(-1)
    state[N_FREE] -= 1
    return pool.free[state[N_FREE]]


@device
def give_slot(pool, state, slot):
    if slot >= 0:
        pool.free[state[N_FREE]] = slot
        state[N_FREE] += 1


@device
def plan_children(rules, table, pool, state, parent):
    """Plan the search for the splits of a split node's two children, where they may have any."""
    left = table.numbers[parent, LEFT]
    small, large, old = left + 1, left, table.numbers[parent, SLOT]
    if table.numbers[left, ROWS] < table.numbers[left + 1, ROWS]:
        small, large = left, left + 1
    spare = np.int64(len(pool.hist) - 2)
    table.numbers[small, SLOT] = table.numbers[large, SLOT] = -1
    if may_split(table.numbers[large, :], rules):
        both = may_split(table.numbers[small, :], rules)
        slot = take_slot(pool, state) if both else np.int64(-1)
        table.numbers[small, SLOT] = slot
        if old >= 0:
            table.numbers[large, SLOT] = old
            at = slot if slot >= 0 else spare
            plan_search(rules, table, pool, state, small, at, large, old, 1)
            return
        own = take_slot(pool, state)
        table.numbers[large, SLOT] = own
        small = small if both else np.int64(-1)
        at, own = slot if slot >= 0 else spare, own if own >= 0 else spare + 1
        plan_search(rules, table, pool, state, small, at, large, own, 0)
        return
    # the smaller one has too few rows as well; but it may have more of the hessian
    if may_split(table.numbers[small, :], rules):
        slot = old if old >= 0 else take_slot(pool, state)
        table.numbers[small, SLOT] = slot
        at = slot if slot >= 0 else spare
        plan_search(rules, table, pool, state, small, at, np.int64(-1), spare, 0)
        return
    give_slot(pool, state, old)


@device
def take_found(table, pool, state, node, which):
    """Take the best split of all parts; the first of equals."""
    if node < 0:
        return
    numbers, best = table.numbers[node], 0.0
    for part in range(state[N_PARTS]):
        found = pool.found[part, which]
        if found[0] >= 0 and pool.gains[part, which] > best:
            best = pool.gains[part, which]
            for i in range(6):
                numbers[FEATURE + i] = found[i]
            for w in range(table.sets.shape[1]):
                table.sets[node, w] = pool.sets[part, which, w]
    table.floats[node, GAIN] = best
    if numbers[FEATURE] >= 0:
        table.open[state[N_OPEN]] = node
        state[N_OPEN] += 1
    else:
        give_slot(pool, state, numbers[SLOT])


@device
def finish_search(table, pool, state):
    # in the order in which the nodes were made, which decides between equal gains
    a, b = state[FIRST], state[SECOND]
    if b >= 0 and b < a:
        take_found(table, pool, state, b, 1)
        take_found(table, pool, state, a, 0)
    else:
        take_found(table, pool, state, a, 0)
        take_found(table, pool, state, b, 1)
    state[FIRST] = state[SECOND] = -1


@device
def next_node(table, state, limited):
    """Take the open node whose split gains most, the first of equals. Without a limit of leaves
    their order changes nothing: then the last, which frees histograms soonest."""
    n, best = state[N_OPEN], state[N_OPEN] - 1
    if limited:
        best = 0
        for i in range(1, n):
            if table.floats[table.open[i], GAIN] > table.floats[table.open[best], GAIN]:
                best = i
    node = table.open[best]
    for i in range(best, n - 1):
        table.open[i] = table.open[i + 1]
    state[N_OPEN] = n - 1
    return node


@device
def begin_tree(data, rules, table, pool, state, rows, others):
    """Make the root, and plan its search."""
    state[N_NODES], state[N_LEAVES], state[N_OPEN] = 1, 1, 0
    state[N_FREE] = len(pool.free)
    for i in range(len(pool.free)):
        pool.free[i] = i
    numbers = table.numbers[0]
    numbers[BEGIN], numbers[END] = 0, len(rows)
    numbers[OTHER_BEGIN], numbers[OTHER_END] = 0, len(others)
    numbers[DEPTH], numbers[FEATURE], numbers[LEFT] = 0, -1, -1
    words = data.stats.shape[1]
    whole = pool.ordered[0]
    whole[:words] = 0
    for i in range(len(rows)):
        for w in range(words):
            whole[w] += data.stats[U(rows[U(i)]), U(w)]
    numbers[G], numbers[H], numbers[ROWS] = sums_in(whole, 0, words, rules.n_bits)
    table.floats[0, LOW], table.floats[0, HIGH] = -rules.most, rules.most
    table.floats[0, GAIN] = 0.0
    table.keys[0] = U(rules.key)
    table.groups[0, :] = True
    state[FIRST] = state[SECOND] = -1
    pool.units[0], pool.units[1] = rules.g, rules.h
    slot = take_slot(pool, state)
    numbers[SLOT] = slot
    if may_split(numbers, rules):
        at = slot if slot >= 0 else np.int64(len(pool.hist) - 2)
        none = np.int64(-1)
        plan_search(rules, table, pool, state, np.int64(0), at, none, none, 0)


@kernel
def add_values(raw: F64s, rows: I32s, ranges: I64s2, begin: I64, values: F64s):
    """Add each leaf's value to raw f64[N] at its rows; begin : the column of `ranges` where theirs
    begin."""
    for leaf in range(len(values)):
        for i in range(ranges[leaf, begin], ranges[leaf, begin + 1]):
            raw[U(rows[U(i)])] += values[leaf]


@device
def threads_for_search(data, pool, state, table):
    """How many threads share a search: those that get enough to do."""
    n, sums = np.int64(0), pool.hist.shape[1]
    if state[FIRST] >= 0:
        n += table.numbers[state[FIRST], END] - table.numbers[state[FIRST], BEGIN]
    if state[SECOND] >= 0 and not state[SUBTRACT]:
        n += table.numbers[state[SECOND], END] - table.numbers[state[SECOND], BEGIN]
    return max(1, min(state[N_THREADS], (n * len(data.codes) + sums) // state[CELLS_SHARED]))


@device
def threads_for_rows(state, own):
    n = own[END] - own[BEGIN] + own[OTHER_END] - own[OTHER_BEGIN]
    return max(1, min(state[N_THREADS], n // state[ROWS_SHARED]))


# checked, because threads write each other's arrays
@kernel(checked={})
def help_grow(
    data: BoostColumns, rules: BoostRules, rows: I32s, others: I32s, table: Table, pool: Pool,
    state: I64s, spare: I32s, shared: I64s,
):  # fmt: skip
    """Help `grow_tree`, until there has been nothing to do for a while."""
    help_with_parts(data, rules, table, pool, state, rows, others, spare, shared)


@kernel(checked={})
def grow_tree(
    data: BoostColumns, rules: BoostRules, rows: I32s, others: I32s, set_words: I64s, table: Table,
    pool: Pool, state: I64s, spare: I32s, tree: Tree, shared: I64s,
):  # fmt: skip
    """Grow until the tree is done, or for some time another thread has not finished its part;
    `state[STATUS]` says which.

    rows, others : i32, put into the order of the leaves
    spare : i32[the sum of their lengths]
    """
    step = state[STATUS]
    if step == BEGUN:
        begin_tree(data, rules, table, pool, state, rows, others)
        step = PLANNED
    while step != DONE:
        if step != PLANNED and not all_finished(shared, state[N_PARTS]):
            break
        work, parts = np.int64(SEARCH), np.int64(1)
        if step == PLANNED:
            step = SEARCHED
            if state[FIRST] < 0 and state[SECOND] < 0:
                state[N_PARTS] = 1
                continue
            parts = threads_for_search(data, pool, state, table)
        elif step == SEARCHED:
            finish_search(table, pool, state)
            if state[N_OPEN] == 0 or state[N_LEAVES] >= rules.max_leaves:
                write_tree(data, rules, table, state, tree, set_words)
                step = DONE
                break
            state[NODE] = next_node(table, state, rules.max_leaves < len(rows))
            work, step = np.int64(DIVIDE), DIVIDED
            parts = threads_for_rows(state, table.numbers[state[NODE]])
        elif step == DIVIDED and state[N_PARTS] > 1:
            work, parts, step = np.int64(MOVE), state[N_PARTS], MOVED
        else:
            make_children(rules, table, pool, state)
            state[N_LEAVES] += 1
            plan_children(rules, table, pool, state, state[NODE])
            step = PLANNED
            continue
        work_on(work, parts, data, rules, table, pool, state, rows, others, spare, shared)
    state[STATUS] = step
