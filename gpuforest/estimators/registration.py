"""Tools that look for scikit-learn's estimators find ours of the same names.

Tools choose what they do by a model's class: shap, treelite, dtreeviz and scikit-learn's own
inspection by `isinstance`, skl2onnx by a table. So ours are registered as virtual subclasses of
scikit-learn's, and in that table: as soon as the tool, or that part of scikit-learn, has been
imported. Nothing is imported for it.
"""

from importlib import import_module
from types import ModuleType

import gpuforest
from gpuforest.common.imports import after_import, deferred
from gpuforest.export.sklearn import BOOSTING, HOMES

convert_in_pipeline = deferred("gpuforest.export.onnx", "convert_in_pipeline")
NAMES = (*HOMES, *BOOSTING)
CONVERTED = (*NAMES, "AdaBoostClassifier", "BaggingClassifier", "BaggingRegressor")


def stand_in() -> None:
    """Register our estimators with scikit-learn's classes, and with skl2onnx's converters."""
    after_import("sklearn.tree", _register)
    after_import("sklearn.ensemble", _register)
    after_import("skl2onnx", _register_converters)


def _register(module: ModuleType) -> None:
    for name in NAMES:
        if hasattr(module, name):
            getattr(module, name).register(getattr(gpuforest, name))


def _register_converters(skl2onnx: ModuleType) -> None:
    """Register converters whose results have the shapes and options of scikit-learn's."""
    known = import_module("skl2onnx.common._registration")
    for name in CONVERTED:
        kind, theirs, ours = getattr(gpuforest, name), f"Sklearn{name}", f"Gpuforest{name}"
        shape, options = known.get_shape_calculator(theirs), known.get_converter(theirs)
        options = options.get_allowed_options()
        how = {"options": options if isinstance(options, dict) else None}
        skl2onnx.update_registered_converter(kind, ours, shape, convert_in_pipeline, **how)
