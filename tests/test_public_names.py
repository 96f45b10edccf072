"""The public names, their methods and signatures are those of the committed list.

`python tests/test_public_names.py` writes the list anew, where a change of it is wanted.
"""

import inspect
import json
from importlib import import_module
from pathlib import Path

from sklearn.base import BaseEstimator

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
    names, listed = public_names(), json.loads(LIST.read_text())
    assert names.keys() == listed.keys()
    for name, members in listed.items():
        assert names[name] == members, name


def test_estimators_are_at_most_six_classes_deep():
    import gpuforest

    kinds = [getattr(gpuforest, name) for name in gpuforest.__all__]
    estimators = [kind for kind in kinds if inspect.isclass(kind) and hasattr(kind, "fit")]
    assert len(estimators) > 15
    for kind in estimators:
        ours = [c.__name__ for c in kind.__mro__ if c.__module__.startswith("gpuforest.")]
        assert len(ours) <= 6, ours


if __name__ == "__main__":
    LIST.write_text(json.dumps(public_names(), indent=1, sort_keys=True) + "\n")
