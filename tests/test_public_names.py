"""The public names, their methods and signatures are those of the committed list.

`python tests/test_public_names.py` writes the list and the stubs anew, where a change is wanted.
"""

import inspect
import json
import re
import textwrap
from importlib import import_module
from pathlib import Path

import pytest
from sklearn.base import BaseEstimator

import gpuforest

LIST = Path(__file__).with_name("public_names.json")
MODULES = ("gpuforest", "gpuforest.plot", "gpuforest.dask", "gpuforest.impurity")


def signature_of(function):
    """The parameters as text: names, kinds and defaults, without annotations."""
    parameters = inspect.signature(function).parameters.values()
    bare = [p.replace(annotation=inspect.Parameter.empty) for p in parameters]
    return str(inspect.Signature(bare))


def members_of(kind):
    """The public members of a class that this package defines, and what each is called with."""
    members = {}
    for name in dir(kind):
        member = inspect.getattr_static(kind, name)
        if name.startswith(("_", "set_")) or hasattr(BaseEstimator, name):  # scikit-learn's
            continue
        if inspect.isfunction(member):
            if member.__module__.startswith("gpuforest"):
                members[name] = signature_of(member)
        elif any(name in vars(c) for c in kind.__mro__ if c.__module__.startswith("gpuforest")):
            members[name] = "attribute"
    return members


def public_names():
    """Every public name: a class with its constructor and members, or a function."""
    names = {}
    for module in map(import_module, MODULES):
        for name in getattr(module, "__all__", None) or vars(module):
            value = getattr(module, name)
            full = f"{module.__name__}.{name}"
            if inspect.isclass(value):
                members = members_of(value)
                if not issubclass(value, Exception):
                    members["__init__"] = signature_of(value)
                names[full] = members
            elif inspect.isfunction(value) and not name.startswith("_"):
                names[full] = signature_of(value)
    return names


def test_public_names_and_signatures_are_as_listed():
    pytest.importorskip("distributed", reason="needs pip install 'gpuforest[checks]'")
    names, listed = public_names(), json.loads(LIST.read_text())
    assert names.keys() == listed.keys()
    for name, members in listed.items():
        assert names[name] == members, name


STUBS = Path(gpuforest.__file__).with_suffix(".pyi")
HEAD = '''\
"""Written by tests/test_public_names.py: parameters and constructors, which a table has as text."""
# fmt: off

from collections.abc import Callable
from typing import Any

import numpy as np

from gpuforest import dask as dask, impurity as impurity, plot as plot
'''


def stub_of(kind):
    """A class with the constructor that `params.parameters` made, and the attributes it sets."""
    fields, arguments = [], ["self"]
    before = inspect.Parameter.POSITIONAL_OR_KEYWORD
    for p in list(inspect.signature(kind.__init__).parameters.values())[1:]:
        arguments += ["*"] if p.kind != before else []
        before = p.kind
        default = "" if p.default is p.empty else f" = {p.default!r}".replace("'", '"')
        fields.append(f"{p.name}: {p.annotation}")
        arguments.append(fields[-1] + default)
    fields, arguments = wrapped(fields, ";", 4), wrapped(arguments, ",", 8)
    constructor = f"    def __init__(\n{arguments},\n    ) -> None: ...\n"
    return f"class {kind.__name__}(_{kind.__name__}):\n{fields}\n{constructor}"


def wrapped(parts, separator, indentation):
    """Parts in lines, without a separator after the last of a line that it would only end."""
    text = f"{separator} ".join(part.replace(" ", "\0") for part in parts)
    lines = textwrap.wrap(text, 100 - indentation, break_on_hyphens=False)
    lines = [line.rstrip(";").replace("\0", " ") for line in lines]
    return textwrap.indent("\n".join(lines), " " * indentation)


def stubs():
    """What a type checker reads in place of the package's first module."""
    imports, classes = [], []
    for name in sorted(set(gpuforest.__all__) - {"__version__"}):
        value = getattr(gpuforest, name)
        made = hasattr(value, "_parameter_constraints")
        imports.append((gpuforest._homes[name], f"import {name} as {'_' if made else ''}{name}"))
        classes += [stub_of(value)] if made else []
    lines = [f"from gpuforest.{home} {line}" for home, line in sorted(imports)]
    return HEAD + "\n".join([*lines, "", "__version__: str", "", *classes])


def test_editors_see_the_constructors():
    assert STUBS.read_text() == stubs()


@pytest.mark.parametrize(
    ("old", "name"),
    [
        ("engine.binning", "BinEdges"), ("engine.forest", "Forest"), ("engine.records", "Sampling"),
        ("engine.target", "TargetCoding"), ("boosting.model", "BoostedCoding"),
        ("boosting.losses", "Loss"),
    ],
)  # fmt: skip
def test_pickles_of_the_last_release_find_the_classes_inside(old, name):
    found = getattr(import_module(f"gpuforest.{old}"), name)
    assert inspect.isclass(found)
    assert found.__module__ != f"gpuforest.{old}"


def test_docstrings_describe_all_arguments_of_methods():
    for full, members in json.loads(LIST.read_text()).items():
        kind = getattr(gpuforest, full.removeprefix("gpuforest."), None)
        for name in members if hasattr(kind, "_parameter_constraints") else ():
            method = inspect.getattr_static(kind, name)
            if inspect.isfunction(method) and name[0] != "_" and name != "to_onnx":
                described = re.findall(r"^([*\w, ]+) : ", method.__doc__, re.MULTILINE)
                arguments = {a for a in inspect.signature(method).parameters if a != "self"}
                assert arguments - {"params"} <= {
                    *", ".join(described).replace("*", "").split(", ")
                }


def test_estimators_are_at_most_six_classes_deep():
    kinds = [getattr(gpuforest, name) for name in gpuforest.__all__]
    estimators = [kind for kind in kinds if inspect.isclass(kind) and hasattr(kind, "fit")]
    assert len(estimators) > 15
    for kind in estimators:
        ours = [c.__name__ for c in kind.__mro__ if c.__module__.startswith("gpuforest.")]
        assert len(ours) <= 6, ours


if __name__ == "__main__":
    STUBS.write_text(stubs())
    LIST.write_text(json.dumps(public_names(), indent=1, sort_keys=True) + "\n")
