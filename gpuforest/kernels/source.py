"""The text of CUDA kernels: package data, with its own includes put in place.

One text without includes is what a compiler's cache can take for the key of what it
compiled, and needs no files beside it.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

# no contraction: a * b + c rounded once would differ from the other backends' bits
OPTIONS = ("--std=c++17", "--fmad=false")

_INCLUDE = re.compile(r'^#include "(.+)"\n', re.MULTILINE)


@cache
def cuda_source(operation: str) -> str:
    """The whole text of kernels/<operation>/cuda.cu; errors name the original lines."""
    seen: set[str] = set()

    def whole(name: str) -> str:
        if name in seen:
            return ""
        seen.add(name)
        text, parts, begin, line = _read(name), [f'#line 1 "{name}"\n'], 0, 1
        for found in _INCLUDE.finditer(text):
            parts.append(text[begin : found.start()])
            line += text.count("\n", begin, found.end())
            begin = found.end()
            parts += [whole(found[1]), f'#line {line} "{name}"\n']
        return "".join([*parts, text[begin:]])

    return whole(f"{operation}/cuda.cu")


def _read(name: str) -> str:
    return files("gpuforest.kernels").joinpath(name).read_text()
