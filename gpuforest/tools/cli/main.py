"""Arguments in, an exit status out; errors are one line, never a traceback."""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from typing import Any, NoReturn

from gpuforest.common.errors import BackendError
from gpuforest.common.text import did_you_mean
from gpuforest.tools.cli.output import say

# what a user can mend; anything else is a defect of gpuforest and keeps its traceback
# (ModelFormatError is a ValueError)
USER_ERRORS: tuple[type[Exception], ...] = (ValueError, TypeError, OSError, ImportError)
USER_ERRORS += (MemoryError, BackendError, NotImplementedError)  # the last: by low_memory
USAGE, INTERRUPTED, BROKEN_PIPE = 2, 130, 141  # 128 + the signal, as shells count


class Parser(argparse.ArgumentParser):
    """Prints errors in one line, with suggestions for misspelt words; takes no abbreviations."""

    words: Sequence[str] = ()

    def __init__(self, **how: Any) -> None:
        super().__init__(**how, allow_abbrev=False)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """As argparse does; a command, which knows its options, refuses unknown ones."""
        if self._subparsers is not None:
            return super().parse_known_args(args, namespace)
        self.words = args
        found, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return found, unknown

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError as error:
            error.message += did_you_mean(str(value), map(str, action.choices or ()))
            raise

    def error(self, message: str) -> NoReturn:
        known = self._option_string_actions
        for flag in (word.partition("=")[0] for word in self.words):
            if flag.startswith("--") and flag not in known and (hint := did_you_mean(flag, known)):
                message += f"; {flag}{hint}"
        self.exit(USAGE, f"gpuforest: {message} (see {self.prog} --help)\n")


@contextlib.contextmanager
def interrupt_after() -> Iterator[None]:
    """Hold back one interrupt during imports, in which Cython and pybind11 mishandle it."""
    held: list[int] = []

    def hold(number: int, _: object) -> None:
        held.append(number)
        if len(held) > 1:
            raise KeyboardInterrupt

    usual = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if not usual or threading.current_thread() is not threading.main_thread():
        yield  # a handler of the user, or no main thread
        return
    signal.signal(signal.SIGINT, hold)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if held:
        raise KeyboardInterrupt


def parser() -> argparse.ArgumentParser:
    """The parser of the whole command line."""
    with interrupt_after():  # slow imports, here: an interrupt of them is quiet too
        from gpuforest.compiler.families import TITLES
        from gpuforest.tools.cli import inspect, learn, plot, predict, train, verify
        from gpuforest.tools.cli.options import declare

    top = Parser(prog="gpuforest", description="Random forests from the command line.")
    top.add_argument("--version", action="version", version=f"gpuforest {version('gpuforest')}")
    commands = top.add_subparsers(dest="command", metavar="COMMAND", required=True)
    warm_up = "--n-jobs N  processes (default: one for each core)\n--family "
    warm_up += "|".join(TITLES) + "  the kernels of one family, and those that all trees need"
    for name, summary, tables, run in (
        ("train", "Train a model on a file, and save it.", (train.add_arguments,), train.run),
        *predict.COMMANDS,
        *learn.COMMANDS,
        *inspect.COMMANDS,
        verify.COMMAND,
        *plot.COMMANDS,
        ("warmup", "Compile the kernels that are not on disk yet.", (warm_up,), warm_up_kernels),
    ):
        command = commands.add_parser(name, help=summary, description=summary)
        declare(command, *tables)
        command.set_defaults(run=run)
    return top


def warm_up_kernels(arguments: argparse.Namespace) -> None:
    """Compile and say how long it took."""
    from gpuforest.common.arguments import cpu_count
    from gpuforest.compiler import code

    n_jobs = cpu_count() if arguments.n_jobs is None else arguments.n_jobs
    if n_jobs < 1:
        raise ValueError(f"--n-jobs must be at least 1, not {n_jobs}")
    begin = time.monotonic()
    n_compiled, n_all = code.warm_up(arguments.family, n_jobs)
    say(f"compiled {n_compiled} kernels in {time.monotonic() - begin:.0f} s; {n_all} are on disk")


def begin_compiling(argv: Sequence[str]) -> None:
    """Begin to compile what training needs, while the imports of `parser` take seconds."""
    if [*argv[:1]] == ["train"] and os.environ.get("GPUFOREST_BACKEND", "numba") == "numba":
        from gpuforest.compiler import code

        code.expect("boosting" if "boosting" in " ".join(argv).lower() else "forests")


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line (default: the process's own) and return its exit status."""
    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *_, **__: say(f"warning: {message}")
        try:
            begin_compiling(sys.argv[1:] if argv is None else argv)
            arguments = parser().parse_args(argv)
            status: int | None = arguments.run(arguments)
            sys.stdout.flush()
            return status or 0
        except BrokenPipeError:
            # the reader has left; Python would complain again as it flushes at exit
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return BROKEN_PIPE
        except KeyboardInterrupt:
            say("interrupted")
            return INTERRUPTED
        except USER_ERRORS as error:
            say(message_of(error))
            return USAGE


def message_of(error: BaseException) -> str:
    """The message of an exception, without the number of the system's error."""
    if isinstance(error, OSError) and error.strerror is not None:
        where = f"{os.fspath(error.filename)!s}: " if error.filename is not None else ""
        return where + error.strerror
    # what is a parameter in Python is an option here
    text = str(error).replace("list it in categorical_features at fit", "name it in --categorical")
    return text or type(error).__name__
