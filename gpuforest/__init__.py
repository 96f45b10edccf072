"""gpuforest: random forests that are the same, bit for bit, on every backend."""

from __future__ import annotations

from importlib import import_module
from typing import Any

# __init__.pyi shows type checkers and editors what these names are, and the constructors

# public names by the modules that have them
_homes = {
    name: module
    for module, names in {
        "backends.registry": "available_backends register_backend",
        "common.errors": "BackendError ModelFormatError",
        "data.binned": "BinnedData",
        "data.blocks": "predict_blocks",
        "data.digest": "data_digest",
        "growing.memory": "MemoryEstimate",
        "estimators.adaboost": "AdaBoostClassifier AdaBoostRegressor",
        "estimators.bagging": "BaggingClassifier BaggingRegressor",
        "estimators.boosting": "HistGradientBoostingClassifier HistGradientBoostingRegressor",
        "estimators.causal": "CausalForest",
        "estimators.forests": "ExtraTreesClassifier ExtraTreesRegressor RandomForestClassifier "
        "RandomForestRegressor RandomTreesEmbedding",
        "estimators.isolation": "IsolationForest",
        "estimators.memory": "estimate_memory",
        "estimators.quantile_forests": "ExtraTreesQuantileRegressor RandomForestQuantileRegressor",
        "estimators.selection": "BorutaSelector oob_impurity_importance oob_permutation_importance",
        "estimators.ranking": "HistGradientBoostingRanker",
        "estimators.survival": "ExtraSurvivalTrees RandomSurvivalForest",
        "estimators.survival_boosting": "HistGradientBoostingSurvival",
        "estimators.trees": "DecisionTreeClassifier DecisionTreeRegressor",
        "explain.bias_variance": "BiasVariance bias_variance",
        "explain.proximities": "class_prototypes impute_by_proximity proximity_outliers",
        "export.c": "export_c",
        "export.graphviz": "export_graphviz",
        "export.model_tables": "category_codes",
        "export.python": "export_python",
        "export.text": "export_rules export_text",
        "export.walker": "tree_nodes",
        "loading": "from_sklearn load",
        "proof": "prove verify",
    }.items()
    for name in names.split()
}
_modules = ("dask", "impurity", "plot")
__all__ = sorted([*_homes, "__version__"])


def __getattr__(name: str) -> Any:
    """Import a public name or module when it is first used: `import gpuforest` is quick."""
    if name == "__version__":
        from importlib.metadata import version

        value: Any = version("gpuforest")
    elif name in _homes:
        value = getattr(import_module(f"gpuforest.{_homes[name]}"), name)
    elif name in _modules:
        value = import_module(f"gpuforest.{name}")
    else:
        from gpuforest.common.text import did_you_mean

        hint = "" if name.startswith("_") else did_you_mean(name, __dir__())
        # its name alone, without this module: else Python would add the hint once more
        message = f"module {__name__!r} has no attribute {name!r}{hint}"
        raise AttributeError(message, name=name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_modules})
