"""Threads share the work on a node of boosting, compiled.

The thread that grows the tree cuts the work into parts and writes a ticket:

    number of the work << 32 | number of parts << 16 | the next part

Whoever adds one to the ticket takes that part. The growing thread takes parts as well, so it never
waits for a thread that the system has not woken; and a waiting thread watches the ticket for a
short time only, so that it takes no processor from others.
"""

import numpy as np

from gpuforest.compiler import atomics
from gpuforest.compiler.decorators import device, rare
from gpuforest.kernels.boosted_tree.records import (
    DIVIDE,
    N_PARTS,
    SEARCH,
    WORK,
    BoostRules,
)
from gpuforest.kernels.boosted_tree.search import search_part
from gpuforest.kernels.boosted_tree.splitting import divide_part, move_part

TICKET, FINISHED = 0, 16  # elements of `shared` i64[32], in cache lines of their own
MASK = 2**16 - 1
PATIENCE = 2**13  # looks at the ticket, of 20 to 100 ns each


@rare
def do_part(data, rules, table, pool, state, rows, others, spare, part):
    """Do a part of the work."""
    work, parts = state[WORK], state[N_PARTS]
    if work == SEARCH:
        C = len(data.codes)
        first, last = C * part // parts, C * (part + 1) // parts
        search_part(data, rules, table, pool, state, rows, first, last, part)
    elif work == DIVIDE:
        divide_part(data, table, pool, state, rows, others, spare, part, parts)
    else:
        move_part(table, pool, state, rows, others, spare, part, parts)


@device
def take_part(shared):
    """A part that nobody has taken, or -1."""
    ticket = atomics.load(shared, TICKET)
    if ticket & MASK >= (ticket >> 16) & MASK:
        return np.int64(-1)
    ticket = atomics.add(shared, TICKET, 1)
    part = ticket & MASK
    return part if part < (ticket >> 16) & MASK else np.int64(-1)


@device
def work_on(work, parts, data, rules, table, pool, state, rows, others, spare, shared):
    """Do a work, with the threads that help."""
    state[WORK], state[N_PARTS] = work, parts
    if parts == 1:
        do_part(data, rules, table, pool, state, rows, others, spare, np.int64(0))
        return
    number = (atomics.load(shared, TICKET) >> 32) + 1
    atomics.store(shared, FINISHED, 0)
    atomics.store(shared, TICKET, (number << 32) | (parts << 16))
    part = take_part(shared)
    while part >= 0:
        do_part(data, rules, table, pool, state, rows, others, spare, part)
        atomics.add(shared, FINISHED, 1)
        part = take_part(shared)


@device
def all_finished(shared, parts):
    """Whether all parts are finished; waits a while for them."""
    if parts == 1:
        return True
    for _ in range(PATIENCE):
        if atomics.load(shared, FINISHED) == parts:
            return True
        atomics.pause()
    return False


@device
def help_with_parts(data, rules, table, pool, state, rows, others, spare, shared):
    """Take parts until there has been none for a while."""
    idle = 0
    while idle < PATIENCE:
        part = take_part(shared)
        if part < 0:
            atomics.pause()
            idle += 1
            continue
        # the units are those of the round
        own = BoostRules(
            pool.units[0], pool.units[1], rules.n_bits, rules.l2, rules.most, rules.min_rows,
            rules.max_depth, rules.max_leaves, rules.share, rules.key, rules.signs, rules.groups,
        )  # fmt: skip
        do_part(data, own, table, pool, state, rows, others, spare, part)
        atomics.add(shared, FINISHED, 1)
        idle = 0
