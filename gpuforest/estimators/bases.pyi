"""What scikit-learn's base classes have, which has no types itself."""

from typing import Any, Self

import numpy as np

callback: Any

class CallbackSupport:
    def set_callbacks(self, *callbacks: Any) -> Self: ...
    def _init_callback_context(self, *, max_subtasks: int) -> Any: ...

class BaseEstimator:
    n_features_in_: int
    feature_names_in_: np.ndarray
    # parameters: params.py says which estimator has which, and gpuforest/__init__.pyi their types
    alpha: Any
    backend: Any
    bootstrap: Any
    categorical_features: Any
    categorical_split: Any
    ccp_alpha: Any
    ccp_cv: Any
    ccp_rule: Any
    class_weight: Any
    contamination: Any
    criterion: Any
    default_quantiles: Any
    discrete_treatment: Any
    early_stopping: Any
    honest: Any
    importance: Any
    learning_rate: Any
    loss: Any
    low_memory: Any
    max_bins: Any
    max_estimators: Any
    max_features: Any
    max_iter: Any
    max_samples: Any
    max_samples_leaf: Any
    memory_limit: Any
    min_balancedness_tol: Any
    min_category_frequency: Any
    model_t: Any
    model_y: Any
    model_z: Any
    monotonic_cst: Any
    n_estimators: Any
    n_jobs: Any
    n_times: Any
    priors: Any
    random_state: Any
    refit: Any
    shrinkage: Any
    sparse_output: Any
    splitter: Any
    warm_start: Any
    def __init__(self, *args: Any, **params: Any) -> None: ...
    def get_params(self, deep: bool = True) -> dict[str, Any]: ...
    def set_params(self, **params: Any) -> Self: ...
    def get_metadata_routing(self) -> Any: ...
    def set_fit_request(self, **requests: bool | str | None) -> Self: ...
    def set_predict_request(self, **requests: bool | str | None) -> Self: ...
    def set_score_request(self, **requests: bool | str | None) -> Self: ...
    def _validate_params(self) -> None: ...
    @classmethod
    def _get_param_names(cls) -> list[str]: ...
    def _html_repr(self) -> str: ...
    def _get_fitted_attr_html(self, doc_link: str = "") -> Any: ...
    def __getstate__(self) -> Any: ...
    def __sklearn_tags__(self) -> Any: ...

class ClassifierMixin:
    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float: ...

class RegressorMixin(ClassifierMixin): ...

class MetaEstimatorMixin:
    estimator: Any

class OutlierMixin:
    def fit_predict(self, X: Any, y: Any = None, **fit_params: Any) -> np.ndarray: ...

class TransformerMixin:
    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any: ...
    def set_output(self, *, transform: str | None = None) -> Self: ...

class SelectorMixin(TransformerMixin):
    def transform(self, X: Any) -> Any: ...
    def inverse_transform(self, X: Any) -> Any: ...
    def get_support(self, indices: bool = False) -> np.ndarray: ...
    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray: ...
