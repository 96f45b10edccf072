"""Compile the kernels that are not on disk yet."""

from __future__ import annotations

import argparse
import os
import time

from gpuforest.tools.cli.show import say


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    command.add_argument(
        "--n-jobs",
        metavar="N",
        type=int,
        default=os.cpu_count() or 1,
        help="processes (default: one for each core)",
    )


def run(arguments: argparse.Namespace) -> None:
    """Compile and say how long it took."""
    from gpuforest.compiler.build import warm_up

    if arguments.n_jobs < 1:
        raise ValueError(f"--n-jobs must be at least 1, not {arguments.n_jobs}")
    begin = time.monotonic()
    n_compiled, n_all = warm_up(arguments.n_jobs)
    seconds = time.monotonic() - begin
    say(f"compiled {n_compiled} kernels in {seconds:.0f} s; {n_all} are on disk")
