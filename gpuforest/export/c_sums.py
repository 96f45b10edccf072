"""The parts of a file of C for splits by sums of features.

A row's places are found once: where the bin of each feature that is added up lies between the
feature's first and last bin, a whole number (`BinEdges.coordinates`). Sums of these are exact.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from gpuforest.export.model_tables import Tables, rounded

PLACES = """\
/* Where the bins of the features that are added up lie: UINT16_MAX for a missing value. */
static void find_places(const {number} *x, uint16_t *place)
{{
    uint32_t i;
    for (i = 0; i < {n}; i++) {{
        uint32_t low = EDGES_AT[i], high = EDGES_AT[i + 1];
        const {number} value = x[SUMMED[i]];
        while (low < high) {{
            const uint32_t middle = low + (high - low) / 2;
            if (value <= EDGES[middle])
                high = middle;
            else
                low = middle + 1;
        }}
        place[i] = (uint16_t)(value != value ? UINT16_MAX : BINS[low + i]);
    }}
}}

/* Whether a row goes left at the split that begins at `sum`: the number of terms, the most that
 * goes left, and a place and its weight for each term. With one missing, it is `missing`. */
static int sum_goes_left(const int32_t *sum, const uint16_t *place, int missing)
{{
    int32_t i, total = 0;
    int hole = 0;
    for (i = 0; i < sum[0]; i++) {{
        hole |= place[sum[2 + 2 * i]] == UINT16_MAX;
        total += place[sum[2 + 2 * i]] * sum[3 + 2 * i];
    }}
    return hole ? missing : total <= sum[1];
}}

"""
OF_SUM = """\
        if (n->feature == {leaf} - 1) {{
            left = sum_goes_left(SUMS + n->cut, place, (int)(n->next >> 31));
            at = (n->next & 0x7fffffff) + (uint32_t)!left;
            continue;
        }}
"""


def sums_of(tables: Tables, dtype: Any) -> tuple[dict[str, list[Any]], dict[int, int]]:
    """The tables by name, and where in SUMS each split by a sum begins."""
    used = np.unique([f for features, _, _ in tables.sums.values() for f in features])
    position = {int(f): i for i, f in enumerate(used)}
    known = tables.edges
    # those of all features, which may be many
    coordinates = known.coordinates if len(used) else np.zeros((0, 0), np.int32)
    ends = [known.offsets[f : f + 2].tolist() for f in used]
    edges = [rounded(known.values[begin:end], dtype).tolist() for begin, end in ends]
    bins = [coordinates[f, : len(own) + 1].tolist() for f, own in zip(used, edges, strict=True)]
    begins: dict[int, int] = {}
    sums: list[int] = []
    for node, (features, weights, threshold) in tables.sums.items():
        begins[node] = len(sums)
        sums += [len(features), threshold]
        for f, weight in zip(features, weights, strict=True):
            sums += [position[f], weight]
    found = {
        "SUMMED": used.tolist(),
        "EDGES_AT": np.cumsum([0, *map(len, edges)]).tolist(),
        "EDGES": [value for own in edges for value in own] or [0.0],
        "BINS": [place for own in bins for place in own],
        "SUMS": sums,
    }
    return found, begins


def heads(summed: dict[str, list[Any]], index: str, number: str) -> Iterator[tuple[str, Any]]:
    """How the tables are declared, and their items.

    index, number : the types of a feature's number, and of the numbers of x
    """
    types = index, "uint32_t", number, "uint16_t", "int32_t"
    for kind, (name, values) in zip(types, summed.items(), strict=True):
        write = partial(constant, kind=number) if kind == number else str
        yield f"static const {kind} {name}[{len(values)}]", map(write, values)


def constant(value: float, kind: str) -> str:
    """A constant of C; those of type float are those of the number's shortest decimal form."""
    if np.isinf(value):
        return "INFINITY" if value > 0 else "-INFINITY"
    return f"{value!r}f" if kind == "float" else repr(value)
