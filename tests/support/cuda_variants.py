"""What the CUDA backend can ask a compiler for: every kernel's text with every value of its
macros."""

from __future__ import annotations

import ast
import re
from functools import cache
from itertools import product
from pathlib import Path

import gpuforest
from gpuforest.backends.cuda.source import CONSTANTS, cuda_source
from gpuforest.core.criteria import CRITERIA, INFORMATION, SQUARED_ERROR

PACKAGE = Path(gpuforest.__file__).parent

# the CPU grows trees by the others, on every backend
ON_DEVICES = {str(c.number) for c in CRITERIA.values() if not (c.medians or c.at_risk)}
VALUES = {
    "BLOCKS": ("2", "4"), "CODE": ("u8", "u16"), "KEPT": ("0", "1"), "LABELS": ("0", "1"),
    "SETS": ("0", "1"), "SUMS": ("0", "1"), "VALUE": ("float", "double"), "WORDS": ("1", "2"),
    "CRITERION": tuple(sorted(ON_DEVICES | {str(INFORMATION)})),
    "SPECIAL": ("0", "1", "2"),  # 2: of the deep phase alone
    "TARGET": ("u8", "u16", "i32", "i64"),
}  # fmt: skip
SWITCHES = ("ALL_FENCE", "PAD", "TURNED")  # benchmarks set them, to compare
MACROS = {
    "bag": (), "gradients": (), "leaf_rows": (), "slots": (),
    "best_split": ("CRITERION", "SPECIAL"), "boosted_tree": ("CODE", "WORDS"),
    "edges": ("VALUE",), "encode": ("VALUE", "CODE"), "level": ("CODE", "LABELS"),
    "grow_subtrees": ("CODE", "CRITERION", "TARGET", "SPECIAL", "BLOCKS", "SETS", "SUMS"),
    "histogram": ("CODE", "LABELS", "TARGET", "KEPT"), "partition": ("CODE", "SETS", "KEPT"),
    "project": ("CODE",), "totals": ("LABELS", "TARGET"), "traverse": ("CODE", "SETS", "SUMS"),
}  # fmt: skip


@cache
def variants(operation: str) -> list[dict[str, str]]:
    """Macros and their values, in all combinations that occur."""
    names = MACROS[operation]
    found = [dict(zip(names, v, strict=True)) for v in product(*(VALUES[n] for n in names))]
    if operation != "grow_subtrees":
        found = [macros for macros in found if macros.get("SPECIAL") != "2"]
    found = [macros for macros in found if macros.get("SUMS", "0") <= macros.get("SETS", "1")]
    # codes are kept where they have a byte, targets are classes, and no split has a set
    rare = {"CODE": "u16", "LABELS": "0", "SETS": "1"}.items()
    found = [
        macros for macros in found if macros.get("KEPT") != "1" or not rare & macros.items()
    ]  # fmt: skip
    return [macros for macros in found if types_of_targets(operation, macros)]


def types_of_targets(operation: str, macros: dict[str, str]) -> bool:
    """Whether TARGET, if there is one, suits the other macros."""
    target, is_classes = macros.get("TARGET"), macros.get("LABELS") == "1"
    if operation == "grow_subtrees":
        is_classes = int(macros["CRITERION"]) < SQUARED_ERROR
        if target == "i32":  # sums of so many classes leave no room
            return False
    return target is None or (target == "i64") != is_classes


@cache
def most_threads(operation: str) -> dict[str, int]:
    """Threads of a block that each kernel's __launch_bounds__ allows."""
    found = re.findall(r"__launch_bounds__\(([^(),]+)[^()]*\)\s+(\w+)\(", cuda_source(operation))
    return {name: eval(threads, {**CONSTANTS, "BLOCKS": 2}) for threads, name in found}


LAUNCHES = "launch", "launch_each", "prepare", "_launch"  # functions and methods


@cache
def launches() -> dict[tuple[str, str], bool]:
    """Operation and kernel of each launch in the backends; has it dynamic shared memory?"""
    found = {}
    for path in sorted((PACKAGE / "backends").rglob("*.py")):
        for call in ast.walk(ast.parse(path.read_text())):
            if not isinstance(call, ast.Call):
                continue
            called = getattr(call.func, "attr", getattr(call.func, "id", None))
            words = [arg.value for arg in call.args[:2] if isinstance(arg, ast.Constant)]
            words = [word for word in words if isinstance(word, str)]
            if called not in LAUNCHES or not words:
                continue
            operation, name = words if len(words) == 2 else ("boosted_tree", *words)
            shared = any(keyword.arg == "shared" for keyword in call.keywords)
            found[operation, name] = shared or found.get((operation, name), False)
    return found
