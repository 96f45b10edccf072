"""The lengths of loops in a kernel's machine instructions (SASS).

An event is an instruction that accesses memory, or in which the lanes of a warp meet: a load, a
store, an atomic, a shuffle, a vote. The tests' runner counts how often they happen; here is how
many instructions come with each.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

EVENT = re.compile(
    r"\b(?:LDG|LDS|LD|STG|STS|ST|ATOMS|ATOMG|ATOM|RED|REDG|SHFL|VOTEU?|MATCH|REDUX|WARPSYNC)\b"
)
DOUBLE = re.compile(r"\b(?:DADD|DMUL|DFMA|DSETP|DMNMX|MUFU\.\w+64H?)\b")
LABEL = re.compile(r"^\s*(\.L\w+):")
INSTRUCTION = re.compile(r"^\s*/\*[0-9a-f]{4,}\*/\s+(.*?);")
BRANCH = re.compile(r"\bBRA\S*\s.*`\((\.L\w+)\)")


@dataclass(frozen=True)
class Spacing:
    """Instructions for each event, and of these such of double precision."""

    instructions: float
    doubles: float


def in_loops(sass: str) -> list[str]:
    """The instructions of a kernel between a label and a branch back to it."""
    found: list[str] = []
    labels: dict[str, int] = {}
    inside: set[int] = set()
    for line in sass.splitlines():
        if label := LABEL.match(line):
            labels[label[1]] = len(found)
        elif instruction := INSTRUCTION.match(line):
            found.append(instruction[1])
            branch = BRANCH.search(instruction[1])
            first = labels.get(branch[1], len(found)) if branch else len(found)
            if first < len(found) - 1:  # the end of a text branches to itself
                inside.update(range(first, len(found)))
    return [found[i] for i in sorted(inside)] or found


def spacing(sass: str) -> Spacing:
    """Of all loops; of the whole kernel if it has none."""
    text = in_loops(sass)
    n_events = max(1, sum(bool(EVENT.search(instruction)) for instruction in text))
    n_doubles = sum(bool(DOUBLE.search(instruction)) for instruction in text)
    return Spacing(len(text) / n_events, n_doubles / n_events)
