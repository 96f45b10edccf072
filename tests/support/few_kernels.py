"""The package with a family of a few small kernels, for tests of who compiles them.

A process that imports it calls one of them; run as a module, it is what compiles. Each kernel that
is compiled adds a line to the file COMPILED.
"""

import os
import sys

import numpy as np

from gpuforest.compiler import build, code, families

families.FOLDERS = {"kernels.bag.": "forests", "kernels.totals.": "forests"}
families.FOLDERS |= dict.fromkeys(("kernels.", "splits.", "explain."), "levels")
code.BUILD = "few_kernels"
really_compile = build.compile_one


def compile_one(name, *arguments):
    with open(os.environ["COMPILED"], "a") as file:
        file.write(f"{name} {os.getpid()}\n")
    return really_compile(name, *arguments)


build.compile_one = compile_one


def call():
    from gpuforest.kernels.bag.numba import in_bag

    rows, weights = np.empty((2, 2), np.int32)
    in_bag(np.array([0, 2, 0, 1], np.int32), rows, weights)
    print(rows.tolist(), weights.tolist(), flush=True)


if __name__ == "__main__":
    sys.exit(build.main())
