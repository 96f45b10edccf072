"""Tools that look for scikit-learn's estimators find ours of the same names.

Tools choose what they do by a model's class: shap, treelite, dtreeviz and scikit-learn's own
inspection by `isinstance`, skl2onnx by a table. So ours are registered as virtual subclasses of
scikit-learn's, and in that table: as soon as the tool, or that part of scikit-learn, has been
imported. Nothing is imported for it.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from gpuforest.estimators import adaboost, bagging, boosting, forests, trees

logger = logging.getLogger("gpuforest")

TREES: list[Any] = [trees.DecisionTreeClassifier, trees.DecisionTreeRegressor]
ENSEMBLES: list[Any] = [
    forests.ExtraTreesClassifier, forests.ExtraTreesRegressor,
    forests.RandomForestClassifier, forests.RandomForestRegressor,
    boosting.HistGradientBoostingClassifier, boosting.HistGradientBoostingRegressor,
]  # fmt: skip
# which only converters know
OTHERS: list[Any] = [
    adaboost.AdaBoostClassifier, bagging.BaggingClassifier, bagging.BaggingRegressor
]  # fmt: skip


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
        specs = (finder.find_spec(name, path, target) for finder in later)
        spec = next(filter(None, specs), None)
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


def stand_in() -> None:
    """Register our estimators with scikit-learn's classes, and with skl2onnx's converters."""
    after_import("sklearn.tree", lambda module: _register(module, TREES))
    after_import("sklearn.ensemble", lambda module: _register(module, ENSEMBLES))
    after_import("skl2onnx", _register_converters)


def _register(module: ModuleType, kinds: list[Any]) -> None:
    for kind in kinds:
        getattr(module, kind.__name__).register(kind)


def _register_converters(skl2onnx: ModuleType) -> None:
    """Ours, which say of their results what scikit-learn's estimators do."""
    known = import_module("skl2onnx.common._registration")
    converters = import_module("gpuforest.export.onnx")
    for kind in TREES + ENSEMBLES + OTHERS:
        alias = "Sklearn" + kind.__name__
        options = known.get_converter(alias).get_allowed_options()
        skl2onnx.update_registered_converter(
            kind,
            alias.replace("Sklearn", "Gpuforest"),
            known.get_shape_calculator(alias),
            converters.convert_in_pipeline,
            options=options if isinstance(options, dict) else None,
        )
