"""What commands tell as JSON, and how they refuse."""

import json
from typing import Any

from gpuforest.cli import main


def told(capsys: Any, *arguments: str) -> Any:
    """The JSON that the command prints as its one line."""
    capsys.readouterr()
    assert main([*arguments, "--json"]) == 0
    out = capsys.readouterr().out
    assert out.count("\n") == 1
    return json.loads(out)


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
