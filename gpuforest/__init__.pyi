"""Written by tests/test_public_names.py: parameters and constructors, which a table has as text."""
# fmt: off

from collections.abc import Callable
from typing import Any

import numpy as np

from gpuforest import dask as dask, impurity as impurity, plot as plot
from gpuforest.backends.registry import available_backends as available_backends
from gpuforest.backends.registry import register_backend as register_backend
from gpuforest.common.errors import BackendError as BackendError
from gpuforest.common.errors import ModelFormatError as ModelFormatError
from gpuforest.data.binned import BinnedData as BinnedData
from gpuforest.data.blocks import predict_blocks as predict_blocks
from gpuforest.data.digest import data_digest as data_digest
from gpuforest.estimators.adaboost import AdaBoostClassifier as _AdaBoostClassifier
from gpuforest.estimators.adaboost import AdaBoostRegressor as _AdaBoostRegressor
from gpuforest.estimators.bagging import BaggingClassifier as _BaggingClassifier
from gpuforest.estimators.bagging import BaggingRegressor as _BaggingRegressor
from gpuforest.estimators.boosting import HistGradientBoostingClassifier as _HistGradientBoostingClassifier
from gpuforest.estimators.boosting import HistGradientBoostingRegressor as _HistGradientBoostingRegressor
from gpuforest.estimators.causal import CausalForest as _CausalForest
from gpuforest.estimators.forests import ExtraTreesClassifier as _ExtraTreesClassifier
from gpuforest.estimators.forests import ExtraTreesRegressor as _ExtraTreesRegressor
from gpuforest.estimators.forests import RandomForestClassifier as _RandomForestClassifier
from gpuforest.estimators.forests import RandomForestRegressor as _RandomForestRegressor
from gpuforest.estimators.forests import RandomTreesEmbedding as _RandomTreesEmbedding
from gpuforest.estimators.isolation import IsolationForest as _IsolationForest
from gpuforest.estimators.memory import estimate_memory as estimate_memory
from gpuforest.estimators.quantile_forests import ExtraTreesQuantileRegressor as _ExtraTreesQuantileRegressor
from gpuforest.estimators.quantile_forests import RandomForestQuantileRegressor as _RandomForestQuantileRegressor
from gpuforest.estimators.ranking import HistGradientBoostingRanker as _HistGradientBoostingRanker
from gpuforest.estimators.selection import BorutaSelector as _BorutaSelector
from gpuforest.estimators.selection import oob_impurity_importance as oob_impurity_importance
from gpuforest.estimators.selection import oob_permutation_importance as oob_permutation_importance
from gpuforest.estimators.survival import ExtraSurvivalTrees as _ExtraSurvivalTrees
from gpuforest.estimators.survival import RandomSurvivalForest as _RandomSurvivalForest
from gpuforest.estimators.survival_boosting import HistGradientBoostingSurvival as _HistGradientBoostingSurvival
from gpuforest.estimators.trees import DecisionTreeClassifier as _DecisionTreeClassifier
from gpuforest.estimators.trees import DecisionTreeRegressor as _DecisionTreeRegressor
from gpuforest.explain.bias_variance import BiasVariance as BiasVariance
from gpuforest.explain.bias_variance import bias_variance as bias_variance
from gpuforest.explain.proximities import class_prototypes as class_prototypes
from gpuforest.explain.proximities import impute_by_proximity as impute_by_proximity
from gpuforest.explain.proximities import proximity_outliers as proximity_outliers
from gpuforest.export.c import export_c as export_c
from gpuforest.export.graphviz import export_graphviz as export_graphviz
from gpuforest.export.model_tables import category_codes as category_codes
from gpuforest.export.python import export_python as export_python
from gpuforest.export.text import export_rules as export_rules
from gpuforest.export.text import export_text as export_text
from gpuforest.export.walker import tree_nodes as tree_nodes
from gpuforest.growing.memory import MemoryEstimate as MemoryEstimate
from gpuforest.loading import from_sklearn as from_sklearn
from gpuforest.loading import load as load
from gpuforest.proof import prove as prove
from gpuforest.proof import verify as verify

__version__: str

class AdaBoostClassifier(_AdaBoostClassifier):
    estimator: Any; n_estimators: int; learning_rate: float
    random_state: int | np.random.RandomState | None; n_jobs: int | None; verbose: int
    max_bins: int | str; backend: str; memory_limit: int | str | None
    def __init__(
        self, estimator: Any = None, *, n_estimators: int = 50, learning_rate: float = 1.0,
        random_state: int | np.random.RandomState | None = None, n_jobs: int | None = None,
        verbose: int = 0, max_bins: int | str = "auto", backend: str = "auto",
        memory_limit: int | str | None = None,
    ) -> None: ...

class AdaBoostRegressor(_AdaBoostRegressor):
    estimator: Any; n_estimators: int; learning_rate: float; loss: str
    random_state: int | np.random.RandomState | None; n_jobs: int | None; verbose: int
    max_bins: int | str; backend: str; memory_limit: int | str | None
    def __init__(
        self, estimator: Any = None, *, n_estimators: int = 50, learning_rate: float = 1.0,
        loss: str = "linear", random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None, verbose: int = 0, max_bins: int | str = "auto",
        backend: str = "auto", memory_limit: int | str | None = None,
    ) -> None: ...

class BaggingClassifier(_BaggingClassifier):
    estimator: Any; n_estimators: int | str; max_samples: float | int | None
    max_features: int | float; bootstrap: bool; bootstrap_features: bool; voting: str
    oob_score: bool | Callable[..., float]; oob_tol: float; max_estimators: int; warm_start: bool
    n_jobs: int | None; random_state: int | np.random.RandomState | None; verbose: int
    def __init__(
        self, estimator: Any = None, n_estimators: int | str = 10, *,
        max_samples: float | int | None = None, max_features: int | float = 1.0,
        bootstrap: bool = True, bootstrap_features: bool = False, voting: str = "soft",
        oob_score: bool | Callable[..., float] = False, oob_tol: float = 0.005,
        max_estimators: int = 1000, warm_start: bool = False, n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None, verbose: int = 0,
    ) -> None: ...

class BaggingRegressor(_BaggingRegressor):
    estimator: Any; n_estimators: int | str; max_samples: float | int | None
    max_features: int | float; bootstrap: bool; bootstrap_features: bool
    oob_score: bool | Callable[..., float]; oob_tol: float; max_estimators: int; warm_start: bool
    n_jobs: int | None; random_state: int | np.random.RandomState | None; verbose: int
    def __init__(
        self, estimator: Any = None, n_estimators: int | str = 10, *,
        max_samples: float | int | None = None, max_features: int | float = 1.0,
        bootstrap: bool = True, bootstrap_features: bool = False,
        oob_score: bool | Callable[..., float] = False, oob_tol: float = 0.005,
        max_estimators: int = 1000, warm_start: bool = False, n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None, verbose: int = 0,
    ) -> None: ...

class BorutaSelector(_BorutaSelector):
    estimator: Any; importance: str; alpha: float; max_iter: int
    random_state: int | np.random.RandomState | None
    def __init__(
        self, estimator: Any, *, importance: str = "oob_impurity", alpha: float = 0.05,
        max_iter: int = 100, random_state: int | np.random.RandomState | None = None,
    ) -> None: ...

class CausalForest(_CausalForest):
    n_estimators: int; model_y: Any; model_t: Any; model_z: Any; discrete_treatment: bool
    honest: bool; max_depth: int | None; min_samples_split: int | float
    min_samples_leaf: int | float; min_balancedness_tol: float
    max_features: int | float | str | None; max_samples: float; categorical_features: Any
    min_category_frequency: int; categorical_split: str
    random_state: int | np.random.RandomState | None; n_jobs: int | None; verbose: int
    max_bins: int | str; backend: str; memory_limit: int | str | None
    def __init__(
        self, n_estimators: int = 2000, *, model_y: Any = None, model_t: Any = None,
        model_z: Any = None, discrete_treatment: bool = False, honest: bool = True,
        max_depth: int | None = None, min_samples_split: int | float = 10,
        min_samples_leaf: int | float = 5, min_balancedness_tol: float = 0.45,
        max_features: int | float | str | None = "auto", max_samples: float = 0.5,
        categorical_features: Any = "from_dtype", min_category_frequency: int = 5,
        categorical_split: str = "subset", random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None, verbose: int = 0, max_bins: int | str = "auto",
        backend: str = "auto", memory_limit: int | str | None = None,
    ) -> None: ...

class DecisionTreeClassifier(_DecisionTreeClassifier):
    criterion: str; splitter: str; max_depth: int | None; min_samples_split: int | float
    min_samples_leaf: int | float; min_weight_fraction_leaf: float
    max_features: int | float | str | None; max_leaf_nodes: int | None
    min_impurity_decrease: float; ccp_alpha: float | str; ccp_cv: Any; ccp_rule: str
    shrinkage: float; monotonic_cst: Any; interaction_cst: list[Any] | tuple[Any, ...] | str | None
    categorical_features: Any; min_category_frequency: int; categorical_split: str
    feature_combinations: float | None; combination_weights: str
    class_weight: str | dict[Any, Any] | list[Any] | None
    random_state: int | np.random.RandomState | None; max_bins: int | str; backend: str
    memory_limit: int | str | None
    def __init__(
        self, *, criterion: str = "gini", splitter: str = "best", max_depth: int | None = None,
        min_samples_split: int | float = 2, min_samples_leaf: int | float = 1,
        min_weight_fraction_leaf: float = 0.0, max_features: int | float | str | None = None,
        max_leaf_nodes: int | None = None, min_impurity_decrease: float = 0.0,
        ccp_alpha: float | str = 0.0, ccp_cv: Any = 10, ccp_rule: str = "min",
        shrinkage: float = 0.0, monotonic_cst: Any = None,
        interaction_cst: list[Any] | tuple[Any, ...] | str | None = None,
        categorical_features: Any = "from_dtype", min_category_frequency: int = 5,
        categorical_split: str = "subset", feature_combinations: float | None = None,
        combination_weights: str = "binary",
        class_weight: str | dict[Any, Any] | list[Any] | None = None,
        random_state: int | np.random.RandomState | None = None, max_bins: int | str = "auto",
        backend: str = "auto", memory_limit: int | str | None = None,
    ) -> None: ...

class DecisionTreeRegressor(_DecisionTreeRegressor):
    criterion: str; splitter: str; max_depth: int | None; min_samples_split: int | float
    min_samples_leaf: int | float; min_weight_fraction_leaf: float
    max_features: int | float | str | None; max_leaf_nodes: int | None
    min_impurity_decrease: float; ccp_alpha: float | str; ccp_cv: Any; ccp_rule: str
    shrinkage: float; monotonic_cst: Any; interaction_cst: list[Any] | tuple[Any, ...] | str | None
    categorical_features: Any; min_category_frequency: int; categorical_split: str
    feature_combinations: float | None; combination_weights: str
    random_state: int | np.random.RandomState | None; max_bins: int | str; backend: str
    memory_limit: int | str | None
    def __init__(
        self, *, criterion: str = "squared_error", splitter: str = "best",
        max_depth: int | None = None, min_samples_split: int | float = 2,
        min_samples_leaf: int | float = 1, min_weight_fraction_leaf: float = 0.0,
        max_features: int | float | str | None = None, max_leaf_nodes: int | None = None,
        min_impurity_decrease: float = 0.0, ccp_alpha: float | str = 0.0, ccp_cv: Any = 10,
        ccp_rule: str = "min", shrinkage: float = 0.0, monotonic_cst: Any = None,
        interaction_cst: list[Any] | tuple[Any, ...] | str | None = None,
        categorical_features: Any = "from_dtype", min_category_frequency: int = 5,
        categorical_split: str = "subset", feature_combinations: float | None = None,
        combination_weights: str = "binary",
        random_state: int | np.random.RandomState | None = None, max_bins: int | str = "auto",
        backend: str = "auto", memory_limit: int | str | None = None,
    ) -> None: ...

class ExtraSurvivalTrees(_ExtraSurvivalTrees):
    n_estimators: int | str; criterion: str; max_depth: int | None; min_samples_split: int | float
    min_samples_leaf: int | float | str; max_features: int | float | str | None
    max_leaf_nodes: int | None; shrinkage: float | str; categorical_features: Any
    min_category_frequency: int; categorical_split: str; feature_combinations: float | None
    combination_weights: str; bootstrap: bool; max_samples: float | int | None; oob_score: bool
    oob_tol: float; max_estimators: int; n_times: int; low_memory: bool
    random_state: int | np.random.RandomState | None; warm_start: bool; n_jobs: int | None
    verbose: int; max_bins: int | str; backend: str; memory_limit: int | str | None
    def __init__(
        self, n_estimators: int | str = 100, *, criterion: str = "exponential",
        max_depth: int | None = None, min_samples_split: int | float = 6,
        min_samples_leaf: int | float | str = 3, max_features: int | float | str | None = "sqrt",
        max_leaf_nodes: int | None = None, shrinkage: float | str = 0.0,
        categorical_features: Any = "from_dtype", min_category_frequency: int = 5,
        categorical_split: str = "subset", feature_combinations: float | None = None,
        combination_weights: str = "binary", bootstrap: bool = True,
        max_samples: float | int | None = None, oob_score: bool = False, oob_tol: float = 0.005,
        max_estimators: int = 1000, n_times: int = 150, low_memory: bool = False,
        random_state: int | np.random.RandomState | None = None, warm_start: bool = False,
        n_jobs: int | None = None, verbose: int = 0, max_bins: int | str = "auto",
        backend: str = "auto", memory_limit: int | str | None = None,
    ) -> None: ...

class ExtraTreesClassifier(_ExtraTreesClassifier):
    n_estimators: int | str; criterion: str; max_depth: int | None; min_samples_split: int | float
    min_samples_leaf: int | float | str; min_weight_fraction_leaf: float
    max_features: int | float | str | None; max_leaf_nodes: int | None
    min_impurity_decrease: float; ccp_alpha: float; shrinkage: float | str; monotonic_cst: Any
    interaction_cst: list[Any] | tuple[Any, ...] | str | None; categorical_features: Any
    min_category_frequency: int; categorical_split: str; feature_combinations: float | None
    combination_weights: str; bootstrap: bool | str
    max_samples: float | int | dict[Any, Any] | None; oob_score: bool | Callable[..., float]
    unbiased_importances: bool; oob_tol: float; max_estimators: int
    class_weight: str | dict[Any, Any] | list[Any] | None; priors: str | dict[Any, Any] | None
    voting: str; random_state: int | np.random.RandomState | None; warm_start: bool
    n_jobs: int | None; verbose: int; max_bins: int | str; backend: str
    memory_limit: int | str | None
    def __init__(
        self, n_estimators: int | str = 100, *, criterion: str = "gini",
        max_depth: int | None = None, min_samples_split: int | float = 2,
        min_samples_leaf: int | float | str = 1, min_weight_fraction_leaf: float = 0.0,
        max_features: int | float | str | None = "sqrt", max_leaf_nodes: int | None = None,
        min_impurity_decrease: float = 0.0, ccp_alpha: float = 0.0, shrinkage: float | str = 0.0,
        monotonic_cst: Any = None, interaction_cst: list[Any] | tuple[Any, ...] | str | None = None,
        categorical_features: Any = "from_dtype", min_category_frequency: int = 5,
        categorical_split: str = "subset", feature_combinations: float | None = None,
        combination_weights: str = "binary", bootstrap: bool | str = False,
        max_samples: float | int | dict[Any, Any] | None = None,
        oob_score: bool | Callable[..., float] = False, unbiased_importances: bool = False,
        oob_tol: float = 0.005, max_estimators: int = 1000,
        class_weight: str | dict[Any, Any] | list[Any] | None = None,
        priors: str | dict[Any, Any] | None = None, voting: str = "soft",
        random_state: int | np.random.RandomState | None = None, warm_start: bool = False,
        n_jobs: int | None = None, verbose: int = 0, max_bins: int | str = "auto",
        backend: str = "auto", memory_limit: int | str | None = None,
    ) -> None: ...

class ExtraTreesQuantileRegressor(_ExtraTreesQuantileRegressor):
    n_estimators: int | str; default_quantiles: Any; criterion: str; max_depth: int | None
    min_samples_split: int | float; min_samples_leaf: int | float | str
    max_samples_leaf: int | float | None; min_weight_fraction_leaf: float
    max_features: int | float | str | None; max_leaf_nodes: int | None
    min_impurity_decrease: float; ccp_alpha: float; monotonic_cst: Any
    interaction_cst: list[Any] | tuple[Any, ...] | str | None; categorical_features: Any
    min_category_frequency: int; categorical_split: str; feature_combinations: float | None
    combination_weights: str; bootstrap: bool; max_samples: float | int | None
    oob_score: bool | Callable[..., float]; unbiased_importances: bool; oob_tol: float
    max_estimators: int; random_state: int | np.random.RandomState | None; warm_start: bool
    n_jobs: int | None; verbose: int; max_bins: int | str; backend: str
    memory_limit: int | str | None
    def __init__(
        self, n_estimators: int | str = 100, *, default_quantiles: Any = 0.5,
        criterion: str = "squared_error", max_depth: int | None = None,
        min_samples_split: int | float = 2, min_samples_leaf: int | float | str = 1,
        max_samples_leaf: int | float | None = None, min_weight_fraction_leaf: float = 0.0,
        max_features: int | float | str | None = 1.0, max_leaf_nodes: int | None = None,
        min_impurity_decrease: float = 0.0, ccp_alpha: float = 0.0, monotonic_cst: Any = None,
        interaction_cst: list[Any] | tuple[Any, ...] | str | None = None,
        categorical_features: Any = "from_dtype", min_category_frequency: int = 5,
        categorical_split: str = "subset", feature_combinations: float | None = None,
        combination_weights: str = "binary", bootstrap: bool = False,
        max_samples: float | int | None = None, oob_score: bool | Callable[..., float] = False,
        unbiased_importances: bool = False, oob_tol: float = 0.005, max_estimators: int = 1000,
        random_state: int | np.random.RandomState | None = None, warm_start: bool = False,
        n_jobs: int | None = None, verbose: int = 0, max_bins: int | str = "auto",
        backend: str = "auto", memory_limit: int | str | None = None,
    ) -> None: ...

class ExtraTreesRegressor(_ExtraTreesRegressor):
    n_estimators: int | str; criterion: str; max_depth: int | None; min_samples_split: int | float
    min_samples_leaf: int | float | str; min_weight_fraction_leaf: float
    max_features: int | float | str | None; max_leaf_nodes: int | None
    min_impurity_decrease: float; ccp_alpha: float; shrinkage: float | str; monotonic_cst: Any
    interaction_cst: list[Any] | tuple[Any, ...] | str | None; categorical_features: Any
    min_category_frequency: int; categorical_split: str; feature_combinations: float | None
    combination_weights: str; bootstrap: bool | str; max_samples: float | int | None
    oob_score: bool | Callable[..., float]; unbiased_importances: bool; oob_tol: float
    max_estimators: int; random_state: int | np.random.RandomState | None; warm_start: bool
    n_jobs: int | None; verbose: int; max_bins: int | str; backend: str
    memory_limit: int | str | None
    def __init__(
        self, n_estimators: int | str = 100, *, criterion: str = "squared_error",
        max_depth: int | None = None, min_samples_split: int | float = 2,
        min_samples_leaf: int | float | str = 1, min_weight_fraction_leaf: float = 0.0,
        max_features: int | float | str | None = 1.0, max_leaf_nodes: int | None = None,
        min_impurity_decrease: float = 0.0, ccp_alpha: float = 0.0, shrinkage: float | str = 0.0,
        monotonic_cst: Any = None, interaction_cst: list[Any] | tuple[Any, ...] | str | None = None,
        categorical_features: Any = "from_dtype", min_category_frequency: int = 5,
        categorical_split: str = "subset", feature_combinations: float | None = None,
        combination_weights: str = "binary", bootstrap: bool | str = False,
        max_samples: float | int | None = None, oob_score: bool | Callable[..., float] = False,
        unbiased_importances: bool = False, oob_tol: float = 0.005, max_estimators: int = 1000,
        random_state: int | np.random.RandomState | None = None, warm_start: bool = False,
        n_jobs: int | None = None, verbose: int = 0, max_bins: int | str = "auto",
        backend: str = "auto", memory_limit: int | str | None = None,
    ) -> None: ...

class HistGradientBoostingClassifier(_HistGradientBoostingClassifier):
    loss: str | Callable[..., float]; learning_rate: float; max_iter: int
    max_leaf_nodes: int | None; max_depth: int | None; min_samples_leaf: int
    l2_regularization: float; max_features: float; max_bins: int; categorical_features: Any
    monotonic_cst: Any; interaction_cst: list[Any] | tuple[Any, ...] | str | None; warm_start: bool
    early_stopping: str | bool; scoring: str | Callable[..., float] | None
    validation_fraction: float | int | None; n_iter_no_change: int; tol: float; verbose: int
    random_state: int | np.random.RandomState | None; class_weight: dict[Any, Any] | str | None
    subsample: float; min_hessian: float; refit: bool; multi_strategy: str; categorical_split: str
    backend: str; n_jobs: int | None; memory_limit: int | str | None
    def __init__(
        self, loss: str | Callable[..., float] = "log_loss", *, learning_rate: float = 0.1,
        max_iter: int = 100, max_leaf_nodes: int | None = 31, max_depth: int | None = None,
        min_samples_leaf: int = 20, l2_regularization: float = 0.0, max_features: float = 1.0,
        max_bins: int = 255, categorical_features: Any = "from_dtype", monotonic_cst: Any = None,
        interaction_cst: list[Any] | tuple[Any, ...] | str | None = None, warm_start: bool = False,
        early_stopping: str | bool = "auto", scoring: str | Callable[..., float] | None = "loss",
        validation_fraction: float | int | None = 0.1, n_iter_no_change: int = 10,
        tol: float = 1e-07, verbose: int = 0,
        random_state: int | np.random.RandomState | None = None,
        class_weight: dict[Any, Any] | str | None = None, subsample: float = 1.0,
        min_hessian: float = 0.001, refit: bool = False,
        multi_strategy: str = "one_output_per_tree", categorical_split: str = "subset",
        backend: str = "auto", n_jobs: int | None = None, memory_limit: int | str | None = None,
    ) -> None: ...

class HistGradientBoostingRanker(_HistGradientBoostingRanker):
    loss: str; learning_rate: float; max_iter: int; max_leaf_nodes: int | None
    max_depth: int | None; min_samples_leaf: int; l2_regularization: float; max_features: float
    max_bins: int; categorical_features: Any; monotonic_cst: Any
    interaction_cst: list[Any] | tuple[Any, ...] | str | None; warm_start: bool
    early_stopping: str | bool; scoring: str; validation_fraction: float | int | None
    n_iter_no_change: int; tol: float; verbose: int
    random_state: int | np.random.RandomState | None; subsample: float; min_hessian: float
    refit: bool; categorical_split: str; backend: str; n_jobs: int | None
    memory_limit: int | str | None
    def __init__(
        self, loss: str = "lambdarank", *, learning_rate: float = 0.1, max_iter: int = 100,
        max_leaf_nodes: int | None = 31, max_depth: int | None = None, min_samples_leaf: int = 20,
        l2_regularization: float = 0.0, max_features: float = 1.0, max_bins: int = 255,
        categorical_features: Any = "from_dtype", monotonic_cst: Any = None,
        interaction_cst: list[Any] | tuple[Any, ...] | str | None = None, warm_start: bool = False,
        early_stopping: str | bool = "auto", scoring: str = "loss",
        validation_fraction: float | int | None = 0.1, n_iter_no_change: int = 10,
        tol: float = 1e-07, verbose: int = 0,
        random_state: int | np.random.RandomState | None = None, subsample: float = 1.0,
        min_hessian: float = 0.001, refit: bool = False, categorical_split: str = "subset",
        backend: str = "auto", n_jobs: int | None = None, memory_limit: int | str | None = None,
    ) -> None: ...

class HistGradientBoostingRegressor(_HistGradientBoostingRegressor):
    loss: str | Callable[..., float]; quantile: Any; link: str; power: float; learning_rate: float
    max_iter: int; max_leaf_nodes: int | None; max_depth: int | None; min_samples_leaf: int
    l2_regularization: float; max_features: float; max_bins: int; categorical_features: Any
    monotonic_cst: Any; interaction_cst: list[Any] | tuple[Any, ...] | str | None; warm_start: bool
    early_stopping: str | bool; scoring: str | Callable[..., float] | None
    validation_fraction: float | int | None; n_iter_no_change: int; tol: float; verbose: int
    random_state: int | np.random.RandomState | None; subsample: float; min_hessian: float
    refit: bool; multi_strategy: str; categorical_split: str; backend: str; n_jobs: int | None
    memory_limit: int | str | None
    def __init__(
        self, loss: str | Callable[..., float] = "squared_error", *, quantile: Any = None,
        link: str = "identity", power: float = 1.5, learning_rate: float = 0.1, max_iter: int = 100,
        max_leaf_nodes: int | None = 31, max_depth: int | None = None, min_samples_leaf: int = 20,
        l2_regularization: float = 0.0, max_features: float = 1.0, max_bins: int = 255,
        categorical_features: Any = "from_dtype", monotonic_cst: Any = None,
        interaction_cst: list[Any] | tuple[Any, ...] | str | None = None, warm_start: bool = False,
        early_stopping: str | bool = "auto", scoring: str | Callable[..., float] | None = "loss",
        validation_fraction: float | int | None = 0.1, n_iter_no_change: int = 10,
        tol: float = 1e-07, verbose: int = 0,
        random_state: int | np.random.RandomState | None = None, subsample: float = 1.0,
        min_hessian: float = 0.001, refit: bool = False,
        multi_strategy: str = "one_output_per_tree", categorical_split: str = "subset",
        backend: str = "auto", n_jobs: int | None = None, memory_limit: int | str | None = None,
    ) -> None: ...

class HistGradientBoostingSurvival(_HistGradientBoostingSurvival):
    loss: str; scale: float; learning_rate: float; max_iter: int; max_leaf_nodes: int | None
    max_depth: int | None; min_samples_leaf: int; l2_regularization: float; max_features: float
    max_bins: int; categorical_features: Any; monotonic_cst: Any
    interaction_cst: list[Any] | tuple[Any, ...] | str | None; warm_start: bool
    early_stopping: str | bool; scoring: str | Callable[..., float] | None
    validation_fraction: float | int | None; n_iter_no_change: int; tol: float; verbose: int
    random_state: int | np.random.RandomState | None; subsample: float; min_hessian: float
    refit: bool; categorical_split: str; backend: str; n_jobs: int | None
    memory_limit: int | str | None
    def __init__(
        self, loss: str = "coxph", *, scale: float = 1.0, learning_rate: float = 0.1,
        max_iter: int = 100, max_leaf_nodes: int | None = 31, max_depth: int | None = None,
        min_samples_leaf: int = 20, l2_regularization: float = 0.0, max_features: float = 1.0,
        max_bins: int = 255, categorical_features: Any = "from_dtype", monotonic_cst: Any = None,
        interaction_cst: list[Any] | tuple[Any, ...] | str | None = None, warm_start: bool = False,
        early_stopping: str | bool = "auto", scoring: str | Callable[..., float] | None = "loss",
        validation_fraction: float | int | None = 0.1, n_iter_no_change: int = 10,
        tol: float = 1e-07, verbose: int = 0,
        random_state: int | np.random.RandomState | None = None, subsample: float = 1.0,
        min_hessian: float = 0.001, refit: bool = False, categorical_split: str = "subset",
        backend: str = "auto", n_jobs: int | None = None, memory_limit: int | str | None = None,
    ) -> None: ...

class IsolationForest(_IsolationForest):
    n_estimators: int; max_samples: str | int | float; contamination: str | float
    max_features: int | float; bootstrap: bool; n_jobs: int | None
    random_state: int | np.random.RandomState | None; verbose: int; warm_start: bool
    categorical_features: Any; min_category_frequency: int; categorical_split: str
    max_bins: int | str; backend: str; memory_limit: int | str | None
    def __init__(
        self, *, n_estimators: int = 100, max_samples: str | int | float = "auto",
        contamination: str | float = "auto", max_features: int | float = 1.0,
        bootstrap: bool = False, n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None, verbose: int = 0,
        warm_start: bool = False, categorical_features: Any = "from_dtype",
        min_category_frequency: int = 5, categorical_split: str = "subset",
        max_bins: int | str = "auto", backend: str = "auto", memory_limit: int | str | None = None,
    ) -> None: ...

class RandomForestClassifier(_RandomForestClassifier):
    n_estimators: int | str; criterion: str; max_depth: int | None; min_samples_split: int | float
    min_samples_leaf: int | float | str; min_weight_fraction_leaf: float
    max_features: int | float | str | None; max_leaf_nodes: int | None
    min_impurity_decrease: float; ccp_alpha: float; shrinkage: float | str; monotonic_cst: Any
    interaction_cst: list[Any] | tuple[Any, ...] | str | None; categorical_features: Any
    min_category_frequency: int; categorical_split: str; feature_combinations: float | None
    combination_weights: str; bootstrap: bool | str
    max_samples: float | int | dict[Any, Any] | None; oob_score: bool | Callable[..., float]
    unbiased_importances: bool; oob_tol: float; max_estimators: int
    class_weight: str | dict[Any, Any] | list[Any] | None; priors: str | dict[Any, Any] | None
    voting: str; random_state: int | np.random.RandomState | None; warm_start: bool
    n_jobs: int | None; verbose: int; max_bins: int | str; backend: str
    memory_limit: int | str | None
    def __init__(
        self, n_estimators: int | str = 100, *, criterion: str = "gini",
        max_depth: int | None = None, min_samples_split: int | float = 2,
        min_samples_leaf: int | float | str = 1, min_weight_fraction_leaf: float = 0.0,
        max_features: int | float | str | None = "sqrt", max_leaf_nodes: int | None = None,
        min_impurity_decrease: float = 0.0, ccp_alpha: float = 0.0, shrinkage: float | str = 0.0,
        monotonic_cst: Any = None, interaction_cst: list[Any] | tuple[Any, ...] | str | None = None,
        categorical_features: Any = "from_dtype", min_category_frequency: int = 5,
        categorical_split: str = "subset", feature_combinations: float | None = None,
        combination_weights: str = "binary", bootstrap: bool | str = True,
        max_samples: float | int | dict[Any, Any] | None = None,
        oob_score: bool | Callable[..., float] = False, unbiased_importances: bool = False,
        oob_tol: float = 0.005, max_estimators: int = 1000,
        class_weight: str | dict[Any, Any] | list[Any] | None = None,
        priors: str | dict[Any, Any] | None = None, voting: str = "soft",
        random_state: int | np.random.RandomState | None = None, warm_start: bool = False,
        n_jobs: int | None = None, verbose: int = 0, max_bins: int | str = "auto",
        backend: str = "auto", memory_limit: int | str | None = None,
    ) -> None: ...

class RandomForestQuantileRegressor(_RandomForestQuantileRegressor):
    n_estimators: int | str; default_quantiles: Any; criterion: str; max_depth: int | None
    min_samples_split: int | float; min_samples_leaf: int | float | str
    max_samples_leaf: int | float | None; min_weight_fraction_leaf: float
    max_features: int | float | str | None; max_leaf_nodes: int | None
    min_impurity_decrease: float; ccp_alpha: float; monotonic_cst: Any
    interaction_cst: list[Any] | tuple[Any, ...] | str | None; categorical_features: Any
    min_category_frequency: int; categorical_split: str; feature_combinations: float | None
    combination_weights: str; bootstrap: bool; max_samples: float | int | None
    oob_score: bool | Callable[..., float]; unbiased_importances: bool; oob_tol: float
    max_estimators: int; random_state: int | np.random.RandomState | None; warm_start: bool
    n_jobs: int | None; verbose: int; max_bins: int | str; backend: str
    memory_limit: int | str | None
    def __init__(
        self, n_estimators: int | str = 100, *, default_quantiles: Any = 0.5,
        criterion: str = "squared_error", max_depth: int | None = None,
        min_samples_split: int | float = 2, min_samples_leaf: int | float | str = 1,
        max_samples_leaf: int | float | None = None, min_weight_fraction_leaf: float = 0.0,
        max_features: int | float | str | None = 0.3333333333333333,
        max_leaf_nodes: int | None = None, min_impurity_decrease: float = 0.0,
        ccp_alpha: float = 0.0, monotonic_cst: Any = None,
        interaction_cst: list[Any] | tuple[Any, ...] | str | None = None,
        categorical_features: Any = "from_dtype", min_category_frequency: int = 5,
        categorical_split: str = "subset", feature_combinations: float | None = None,
        combination_weights: str = "binary", bootstrap: bool = True,
        max_samples: float | int | None = None, oob_score: bool | Callable[..., float] = False,
        unbiased_importances: bool = False, oob_tol: float = 0.005, max_estimators: int = 1000,
        random_state: int | np.random.RandomState | None = None, warm_start: bool = False,
        n_jobs: int | None = None, verbose: int = 0, max_bins: int | str = "auto",
        backend: str = "auto", memory_limit: int | str | None = None,
    ) -> None: ...

class RandomForestRegressor(_RandomForestRegressor):
    n_estimators: int | str; criterion: str; max_depth: int | None; min_samples_split: int | float
    min_samples_leaf: int | float | str; min_weight_fraction_leaf: float
    max_features: int | float | str | None; max_leaf_nodes: int | None
    min_impurity_decrease: float; ccp_alpha: float; shrinkage: float | str; monotonic_cst: Any
    interaction_cst: list[Any] | tuple[Any, ...] | str | None; categorical_features: Any
    min_category_frequency: int; categorical_split: str; feature_combinations: float | None
    combination_weights: str; bootstrap: bool | str; max_samples: float | int | None
    oob_score: bool | Callable[..., float]; unbiased_importances: bool; oob_tol: float
    max_estimators: int; random_state: int | np.random.RandomState | None; warm_start: bool
    n_jobs: int | None; verbose: int; max_bins: int | str; backend: str
    memory_limit: int | str | None
    def __init__(
        self, n_estimators: int | str = 100, *, criterion: str = "squared_error",
        max_depth: int | None = None, min_samples_split: int | float = 2,
        min_samples_leaf: int | float | str = 1, min_weight_fraction_leaf: float = 0.0,
        max_features: int | float | str | None = 0.3333333333333333,
        max_leaf_nodes: int | None = None, min_impurity_decrease: float = 0.0,
        ccp_alpha: float = 0.0, shrinkage: float | str = 0.0, monotonic_cst: Any = None,
        interaction_cst: list[Any] | tuple[Any, ...] | str | None = None,
        categorical_features: Any = "from_dtype", min_category_frequency: int = 5,
        categorical_split: str = "subset", feature_combinations: float | None = None,
        combination_weights: str = "binary", bootstrap: bool | str = True,
        max_samples: float | int | None = None, oob_score: bool | Callable[..., float] = False,
        unbiased_importances: bool = False, oob_tol: float = 0.005, max_estimators: int = 1000,
        random_state: int | np.random.RandomState | None = None, warm_start: bool = False,
        n_jobs: int | None = None, verbose: int = 0, max_bins: int | str = "auto",
        backend: str = "auto", memory_limit: int | str | None = None,
    ) -> None: ...

class RandomSurvivalForest(_RandomSurvivalForest):
    n_estimators: int | str; criterion: str; max_depth: int | None; min_samples_split: int | float
    min_samples_leaf: int | float | str; max_features: int | float | str | None
    max_leaf_nodes: int | None; shrinkage: float | str; categorical_features: Any
    min_category_frequency: int; categorical_split: str; feature_combinations: float | None
    combination_weights: str; bootstrap: bool; max_samples: float | int | None; oob_score: bool
    oob_tol: float; max_estimators: int; n_times: int; low_memory: bool
    random_state: int | np.random.RandomState | None; warm_start: bool; n_jobs: int | None
    verbose: int; max_bins: int | str; backend: str; memory_limit: int | str | None
    def __init__(
        self, n_estimators: int | str = 100, *, criterion: str = "exponential",
        max_depth: int | None = None, min_samples_split: int | float = 6,
        min_samples_leaf: int | float | str = 3, max_features: int | float | str | None = "sqrt",
        max_leaf_nodes: int | None = None, shrinkage: float | str = 0.0,
        categorical_features: Any = "from_dtype", min_category_frequency: int = 5,
        categorical_split: str = "subset", feature_combinations: float | None = None,
        combination_weights: str = "binary", bootstrap: bool = True,
        max_samples: float | int | None = None, oob_score: bool = False, oob_tol: float = 0.005,
        max_estimators: int = 1000, n_times: int = 150, low_memory: bool = False,
        random_state: int | np.random.RandomState | None = None, warm_start: bool = False,
        n_jobs: int | None = None, verbose: int = 0, max_bins: int | str = "auto",
        backend: str = "auto", memory_limit: int | str | None = None,
    ) -> None: ...

class RandomTreesEmbedding(_RandomTreesEmbedding):
    n_estimators: int; max_depth: int | None; min_samples_split: int | float
    min_samples_leaf: int | float; min_weight_fraction_leaf: float; max_leaf_nodes: int | None
    min_impurity_decrease: float; categorical_features: Any; min_category_frequency: int
    categorical_split: str; feature_combinations: float | None; combination_weights: str
    sparse_output: bool; random_state: int | np.random.RandomState | None; warm_start: bool
    n_jobs: int | None; verbose: int; max_bins: int | str; backend: str
    memory_limit: int | str | None
    def __init__(
        self, n_estimators: int = 100, *, max_depth: int | None = 5,
        min_samples_split: int | float = 2, min_samples_leaf: int | float = 1,
        min_weight_fraction_leaf: float = 0.0, max_leaf_nodes: int | None = None,
        min_impurity_decrease: float = 0.0, categorical_features: Any = "from_dtype",
        min_category_frequency: int = 5, categorical_split: str = "subset",
        feature_combinations: float | None = None, combination_weights: str = "binary",
        sparse_output: bool = True, random_state: int | np.random.RandomState | None = None,
        warm_start: bool = False, n_jobs: int | None = None, verbose: int = 0,
        max_bins: int | str = "auto", backend: str = "auto", memory_limit: int | str | None = None,
    ) -> None: ...
