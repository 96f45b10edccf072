"""The rows of a node of boosting are divided between two children, compiled."""

from typing import Any, NamedTuple

import numpy as np

from gpuforest.compiler.decorators import device
from gpuforest.kernels.boosted_tree.search import value_of
from gpuforest.kernels.shared.numba import U, goes_left, hash_at
from gpuforest.kernels.shared.records import NO_BIN, Split


class Sides(NamedTuple):
    """Which rows go left, by a feature's codes in a column, see `columns_of` in boosters.py."""

    column: Any
    first: Any
    n: Any
    rest: Any
    split: Any
    missing: Any
    set: Any


@device
def sides_of(data, node, bitset):
    f = node.feature
    missing, rest = data.cells[f + 1] - data.cells[f] - 1, np.int64(data.rest[f])
    n = missing + (rest > missing)  # without the code `rest`, or all if the column is its own
    split = Split(0.0, f, node.bin, node.missing_left != 0, NO_BIN)
    column = data.codes[data.column[f]]
    return Sides(column, np.int64(data.first[f]), n, rest, split, missing, bitset)


@device
def is_left(sides, r):
    k = np.int64(sides.column[U(r)]) - sides.first
    code = k + (k >= sides.rest) if U(k) < U(sides.n) else sides.rest
    return goes_left(code, sides.split, sides.missing, sides.set, 0)


@device
def part_of(begin, end, part, parts):
    n = end - begin
    return begin + n * part // parts, begin + n * (part + 1) // parts


@device
def spread(sides, rows, spare, begin, end, part, parts):
    """Copy a part of the rows to `spare`, left rows first, right rows from the end of the part;
    returns how many go left."""
    begin, end = part_of(begin, end, part, parts)
    left, right = begin, end - 1
    for i in range(begin, end):
        r = rows[U(i)]
        goes = is_left(sides, r)
        spare[U(left)] = spare[U(right)] = r
        left += goes
        right -= not goes
    return left - begin


@device
def gather(rows, spare, begin, end, part, parts, lefts):
    """Copy a part of what was spread back to `rows`, all that go left first."""
    first, last = part_of(begin, end, part, parts)
    before, total = np.int64(0), np.int64(0)
    for p in range(parts):
        before += lefts[p] if p < part else 0
        total += lefts[p]
    to, n = begin + before, lefts[part]
    for i in range(n):
        rows[U(to + i)] = spare[U(first + i)]
    to, n = begin + total + (first - begin - before), last - first - n
    for i in range(n):
        rows[U(to + i)] = spare[U(last - 1 - i)]


@device
def divide_part(data, table, rows, part, parts):
    """Spread a part of a node's rows, and of its others."""
    at = table.states[0].split
    node, lefts, spare = table.nodes[at], table.lefts, table.spare
    sides = sides_of(data, node, table.sets[at])
    lefts[0, part] = spread(sides, rows, spare, node.begin, node.end, part, parts)
    lefts[1, part] = spread(sides, rows, spare, node.other_begin, node.other_end, part, parts)


@device
def begin_node(node, key, depth, g, h, n, low, high):
    """A node with known sums, bounds and depth alone."""
    node.key, node.depth, node.low, node.high = key, depth, low, high
    node.g, node.h, node.n = g, h, n
    node.slot = node.feature = node.left = -1
    node.gain = 0.0


@device
def make_children(rules, table):
    state, nodes = table.states[0], table.nodes
    at, left = state.split, state.n_nodes
    node, one, two = nodes[at], nodes[left], nodes[left + 1]
    node.left = left
    state.n_nodes += 2
    middle, other = node.begin, node.other_begin
    for p in range(state.n_parts):
        middle += table.lefts[0, p]
        other += table.lefts[1, p]
    depth, low, high, sign = node.depth + 1, node.low, node.high, rules.signs[node.feature]
    g, h, n = node.left_g, node.left_h, node.left_n
    begin_node(one, hash_at(node.key, 0), depth, g, h, n, low, high)
    g, h, n = node.g - g, node.h - h, node.n - n
    begin_node(two, hash_at(node.key, 1), depth, g, h, n, low, high)
    if sign != 0:  # the middle of their values bounds both
        value = value_of(one.g, one.h, rules, low, high) + value_of(g, h, rules, low, high)
        lower, upper = (one, two) if sign > 0 else (two, one)
        lower.high = upper.low = value * 0.5
    one.begin, one.end, one.other_begin, one.other_end = node.begin, middle, node.other_begin, other
    two.begin, two.end, two.other_begin, two.other_end = middle, node.end, other, node.other_end
    for j in range(len(rules.groups)):
        inside = table.groups[at, j] & rules.groups[j, node.feature]
        table.groups[left, j] = table.groups[left + 1, j] = inside
