"""Families of kernels: the kernels that calls need together; the first call compiles all.

The name of a kernel tells its family. Twins for bins of 16 bits belong to it, but are compiled when
a call needs one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import cache
from importlib import import_module
from typing import Any

from gpuforest.compiler import objects, types

SHARED = "shared"  # all trees need them: bags, bins, walks
TITLES = {  # of each family, for messages
    SHARED: "all trees",
    "forests": "forests",
    "levels": "trees that grow level by level",
    "boosting": "boosting",
    "categories": "splits by categories",
    "oblique": "oblique splits",
    "multiway": "multiway splits",
    "absolute": "splits by absolute errors",
    "logrank": "log-rank splits",
    "interactions": "interaction constraints",
    "effects": "splits by effects of a treatment",
    "kept": "kept histograms",
    "explanations": "explanations and quantiles",
}
FOLDERS = {  # of kernels that not all trees need
    "kernels.grow_subtrees.": "forests",
    "kernels.best_split.": "levels", "kernels.partition.": "levels",
    "kernels.boosted_tree.": "boosting", "kernels.gradients.": "boosting",
    "splits.oblique.": "oblique", "kernels.traverse.oblique.": "oblique",
    "kernels.project.": "oblique",
    "splits.multiway.": "multiway",
    "splits.absolute.": "absolute", "splits.logrank.": "logrank",
    "splits.interactions.": "interactions", "splits.effects.": "effects", "splits.kept.": "kept",
    "explain.": "explanations",
}  # fmt: skip


def family_of(name: str) -> str:
    """The family of a kernel of this name."""
    if "-sets_True" in name:
        return "categories"
    return next((FOLDERS[folder] for folder in FOLDERS if name.startswith(folder)), SHARED)


def all_kernels() -> Iterator[Any]:
    """All kernels: `decorators.Kernel` of each module."""
    for name in objects.MODULES:
        module = import_module(f"gpuforest.{name}")
        yield from (
            value
            for value in vars(module).values()
            if hasattr(type(value), "name_of") and value.__module__ == module.__name__
        )


@cache
def variants() -> dict[str, tuple[Any, types.Choice]]:
    """All kernels, for all types that they take, by name."""
    return {
        kernel.name_of(choice): (kernel, choice)
        for kernel in all_kernels()
        for choice in kernel.choices
    }


def bins_in(name: str) -> str | None:
    """The type of bins in a kernel's name; None if it takes no bins, or both types as one."""
    kernel, choice = variants()[name]
    return None if "code" in kernel.given else choice.get("code")


def members(
    families: Collection[str], codes: str | None = None, target: str | None = None
) -> list[str]:
    """Names of kernels for a type of bins (None: both): `target`'s first, other types' last."""
    names = [
        name
        for name in variants()
        if family_of(name) in families and (codes is None or bins_in(name) in (None, codes))
    ]
    rank = {target: 0, None: 1}
    if target:
        names.sort(key=lambda name: rank.get(variants()[name][1].get("target"), 2))
    return names
