"""gpuforest: random forests that are the same, bit for bit, on every backend."""

from __future__ import annotations

from importlib import import_module
from typing import Any

# __init__.pyi shows type checkers and editors what these names are, and the constructors

__all__ = [
    "AdaBoostClassifier",
    "AdaBoostRegressor",
    "BackendError",
    "BaggingClassifier",
    "BaggingRegressor",
    "BiasVariance",
    "BinnedData",
    "BorutaSelector",
    "DecisionTreeClassifier",
    "DecisionTreeRegressor",
    "ExtraTreesClassifier",
    "ExtraTreesQuantileRegressor",
    "ExtraTreesRegressor",
    "HistGradientBoostingClassifier",
    "HistGradientBoostingRegressor",
    "IsolationForest",
    "MemoryEstimate",
    "ModelFormatError",
    "RandomForestClassifier",
    "RandomForestQuantileRegressor",
    "RandomForestRegressor",
    "RandomTreesEmbedding",
    "__version__",
    "available_backends",
    "bias_variance",
    "category_codes",
    "class_prototypes",
    "estimate_memory",
    "export_c",
    "export_graphviz",
    "export_python",
    "export_rules",
    "export_text",
    "from_sklearn",
    "impute_by_proximity",
    "load",
    "oob_impurity_importance",
    "oob_permutation_importance",
    "predict_blocks",
    "proximity_outliers",
    "register_backend",
    "tree_nodes",
]

_homes = {
    "BackendError": "common.errors",
    "ModelFormatError": "common.errors",
    "available_backends": "backends.registry",
    "register_backend": "backends.registry",
    "BinnedData": "data.binned",
    "BiasVariance": "explain.bias_variance",
    "bias_variance": "explain.bias_variance",
    "BorutaSelector": "estimators.selection",
    "MemoryEstimate": "engine.memory",
    "estimate_memory": "estimators.memory",
    "category_codes": "export.model_tables",
    "export_c": "export.c",
    "export_graphviz": "export.graphviz",
    "export_python": "export.python",
    "export_rules": "export.text",
    "export_text": "export.text",
    "tree_nodes": "export.walker",
    "from_sklearn": "export.sklearn",
    "load": "export.model_file",
    "class_prototypes": "explain.proximities",
    "proximity_outliers": "explain.proximities",
    "impute_by_proximity": "estimators.bagged",
    "predict_blocks": "data.blocks",
    "oob_impurity_importance": "estimators.selection",
    "oob_permutation_importance": "estimators.selection",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, so that `import gpuforest` is quick."""
    if name == "__version__":
        from importlib.metadata import version

        value: Any = version("gpuforest")
    elif name in __all__:
        value = getattr(import_module(f"gpuforest.{_homes.get(name, 'estimators')}"), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
