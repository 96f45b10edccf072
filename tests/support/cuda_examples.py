"""The examples of CUDA C++ that are run on the CPU."""

import functools
from pathlib import Path

import pytest
from cuda_on_cpu import build
from cuda_on_cpu.module import EmulatedModule
from cuda_on_cpu.sanitizers import default_kind

EXAMPLES = (Path(build.__file__).parent / "examples.cu").read_text()
unless_sanitized = pytest.mark.skipif(default_kind() != "plain", reason="starts other programs")


@functools.cache
def module() -> EmulatedModule:
    return EmulatedModule(EXAMPLES)


def run(name, grid, block, args, shared_mem=0):
    module().get_function(name)(grid, block, args, shared_mem=shared_mem)
