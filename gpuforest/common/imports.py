"""Imports that wait: for the first call of a function, or for another module."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

logger = logging.getLogger("gpuforest")


def deferred(module: str, name: str) -> Callable[..., Any]:
    """A function of a module that is imported at the first call, because it takes long."""

    def call(*args: Any, **options: Any) -> Any:
        return getattr(import_module(module), name)(*args, **options)

    return call


class AfterImport(MetaPathFinder):
    """An import hook that calls a function with a module after its import, and removes itself."""

    def __init__(self, name: str, then: Callable[[ModuleType], None]) -> None:
        self._name, self._then = name, then

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec that others find, with the call after its module's execution."""
        if name != self._name or self not in sys.meta_path:
            return None
        later = sys.meta_path[sys.meta_path.index(self) + 1 :]
        spec = next(filter(None, (finder.find_spec(name, path, target) for finder in later)), None)
        if spec is None or spec.loader is None:
            return spec
        loader = spec.loader

        def execute_and_call(module: ModuleType) -> None:
            del loader.exec_module  # that of its class is there again
            if self in sys.meta_path:  # until here the module may only have been looked for
                sys.meta_path.remove(self)
            loader.exec_module(module)
            _call(self._then, module)

        loader.exec_module = execute_and_call  # type: ignore[method-assign]
        return spec


def after_import(name: str, then: Callable[[ModuleType], None]) -> None:
    """Call `then` with a module: now if it has been imported, or else when it has been."""
    if name in sys.modules:
        _call(then, sys.modules[name])
    else:
        sys.meta_path.insert(0, AfterImport(name, then))


def _call(then: Callable[[ModuleType], None], module: ModuleType) -> None:
    try:
        then(module)
    except Exception as error:  # another release of it, which must be importable all the same
        logger.warning("%s will not know gpuforest's estimators: %s", module.__name__, error)
