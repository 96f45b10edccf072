"""A node of boosting is divided between two children, compiled."""

from typing import Any, NamedTuple

import numpy as np

from gpuforest.compiler.decorators import device
from gpuforest.kernels.boosted_tree.records import (
    BEGIN,
    BIN,
    DEPTH,
    END,
    FEATURE,
    GAIN,
    HIGH,
    LEFT,
    LEFT_G,
    LEFT_H,
    LEFT_ROWS,
    LOW,
    MISSING_LEFT,
    N_NODES,
    N_PARTS,
    NODE,
    OTHER_BEGIN,
    OTHER_END,
    ROWS,
    SLOT,
    G,
    H,
)
from gpuforest.kernels.boosted_tree.search import value_of
from gpuforest.kernels.shared.goes_left.numba import goes_left
from gpuforest.kernels.shared.hashing.numba import U, hash_at
from gpuforest.kernels.shared.records import NO_BIN, Split


class Place(NamedTuple):
    """Where a feature's codes lie in a column: see boosting/columns.py."""

    column: Any
    first: Any
    n: Any
    rest: Any


@device
def code_of(place, r):
    """A row's code of a feature."""
    k = np.int64(place.column[U(r)]) - place.first
    return k + (k >= place.rest) if U(k) < U(place.n) else place.rest


@device
def divide(place, rows, spare, begin, end, split, missing, words):
    """Put the rows that go left first; returns their number. Both sides keep their order."""
    left, right = begin, np.int64(0)
    for i in range(begin, end):
        r = rows[U(i)]
        goes = goes_left(code_of(place, r), split, missing, words, 0)
        rows[U(left)], spare[U(right)] = r, r
        left += goes
        right += not goes
    for i in range(right):
        rows[U(left + i)] = spare[U(i)]
    return left - begin


@device
def part_of(begin, end, part, parts):
    """Where a part of begin .. end - 1 begins and ends."""
    n = end - begin
    return begin + n * part // parts, begin + n * (part + 1) // parts


@device
def spread(place, rows, spare, shift, begin, end, split, missing, words):
    """Copy rows to `spare`: those that go left first, from the last on those that go right."""
    left, right = begin + shift, end - 1 + shift
    for i in range(begin, end):
        r = rows[U(i)]
        goes = goes_left(code_of(place, r), split, missing, words, 0)
        spare[U(left)] = spare[U(right)] = r
        left += goes
        right -= not goes
    return left - begin - shift


@device
def gather(rows, spare, shift, begin, end, part, parts, lefts):
    """Copy a part of what was spread back to `rows`, all that go left first."""
    first, last = part_of(begin, end, part, parts)
    before, total = np.int64(0), np.int64(0)
    for p in range(parts):
        before += lefts[p] if p < part else 0
        total += lefts[p]
    to, n = begin + before, lefts[part]
    for i in range(n):
        rows[U(to + i)] = spare[U(first + shift + i)]
    to, n = begin + total + (first - begin - before), last - first - n
    for i in range(n):
        rows[U(to + i)] = spare[U(last + shift - 1 - i)]


@device
def divide_part(data, table, pool, state, rows, others, spare, part, parts):
    """Divide a part of a node's rows; if it is the only one, `rows` is in order at once."""
    own, words = table.numbers[state[NODE]], table.sets[state[NODE]]
    f = own[FEATURE]
    missing, first, rest = data.cells[f + 1] - data.cells[f] - 1, data.first[f], data.rest[f]
    n = missing + (rest > missing)  # without the code `rest`, or all if the column is its own
    place = Place(data.codes[data.column[f]], np.int64(first), n, np.int64(rest))
    split = Split(0.0, f, own[BIN], own[MISSING_LEFT] != 0, NO_BIN)
    lefts = pool.lefts
    if parts == 1:
        lefts[0, 0] = divide(place, rows, spare, own[BEGIN], own[END], split, missing, words)
        lefts[1, 0] = divide(
            place, others, spare, own[OTHER_BEGIN], own[OTHER_END], split, missing, words
        )
        return
    first, last = part_of(own[BEGIN], own[END], part, parts)
    lefts[0, part] = spread(place, rows, spare, 0, first, last, split, missing, words)
    first, last = part_of(own[OTHER_BEGIN], own[OTHER_END], part, parts)
    lefts[1, part] = spread(
        place, others, spare, len(rows), first, last, split, missing, words
    )  # fmt: skip


@device
def move_part(table, pool, state, rows, others, spare, part, parts):
    """Put a part of a node's rows in order."""
    own, lefts = table.numbers[state[NODE]], pool.lefts
    gather(rows, spare, 0, own[BEGIN], own[END], part, parts, lefts[0])
    gather(
        others, spare, len(rows), own[OTHER_BEGIN], own[OTHER_END], part, parts, lefts[1]
    )  # fmt: skip


@device
def make_child(table, state, parent, side, begin, end, other_begin, other_end, g, h, n, low, high):
    """A child of a node."""
    node = state[N_NODES]
    state[N_NODES] += 1
    numbers, floats = table.numbers[node], table.floats[node]
    numbers[BEGIN], numbers[END] = begin, end
    numbers[OTHER_BEGIN], numbers[OTHER_END] = other_begin, other_end
    numbers[DEPTH], numbers[SLOT] = table.numbers[parent, DEPTH] + 1, -1
    numbers[G], numbers[H], numbers[ROWS] = g, h, n
    numbers[FEATURE] = numbers[LEFT] = -1
    floats[LOW], floats[HIGH], floats[GAIN] = low, high, 0.0
    table.keys[node] = hash_at(table.keys[parent], side)


@device
def bounds_below(own, floats, rules):
    """The bounds of the left and the right child of a split."""
    low, high = floats[LOW], floats[HIGH]
    sign = rules.signs[own[FEATURE]]
    if sign == 0:
        return low, high, low, high
    left = value_of(own[LEFT_G], own[LEFT_H], rules, low, high)
    right = value_of(own[G] - own[LEFT_G], own[H] - own[LEFT_H], rules, low, high)
    middle = (left + right) * 0.5
    return (low, middle, middle, high) if sign > 0 else (middle, high, low, middle)


@device
def make_children(rules, table, pool, state):
    """Make the two children of the node whose rows are divided."""
    node = state[NODE]
    own, f = table.numbers[node], table.numbers[node, FEATURE]
    middle, other = own[BEGIN], own[OTHER_BEGIN]
    for p in range(state[N_PARTS]):
        middle += pool.lefts[0, p]
        other += pool.lefts[1, p]
    own[LEFT] = left = state[N_NODES]
    a, b, c, d = bounds_below(own, table.floats[node], rules)
    make_child(
        table, state, node, 0, own[BEGIN], middle, own[OTHER_BEGIN], other, own[LEFT_G],
        own[LEFT_H], own[LEFT_ROWS], a, b,
    )  # fmt: skip
    make_child(
        table, state, node, 1, middle, own[END], other, own[OTHER_END], own[G] - own[LEFT_G],
        own[H] - own[LEFT_H], own[ROWS] - own[LEFT_ROWS], c, d,
    )  # fmt: skip
    for j in range(len(rules.groups)):
        inside = table.groups[node, j] & rules.groups[j, f]
        table.groups[left, j] = table.groups[left + 1, j] = inside
