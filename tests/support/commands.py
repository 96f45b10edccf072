"""Commands that are refused."""

from typing import Any

from gpuforest.cli import main


def refused(capsys: Any, *arguments: str) -> str:
    """The one line that the command prints as it ends with status 2."""
    capsys.readouterr()
    try:
        status: Any = main(arguments)
    except SystemExit as exit:  # of the parser
        status = exit.code
    out, err = capsys.readouterr()
    assert (status, out) == (2, "")
    assert err.startswith("gpuforest: ")
    assert err.count("\n") == 1
    return str(err)
