"""The base class of all estimators: it runs the stages of a fit and keeps their results."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from gpuforest.backends.base import Backend
from gpuforest.backends.registry import for_splits, run_on_backend
from gpuforest.common import arguments, dtypes, progress
from gpuforest.common.imports import deferred
from gpuforest.core import criteria
from gpuforest.core.bins import BinEdges, Categories, Statistics
from gpuforest.core.forest import Forest
from gpuforest.core.model import Model, is_public
from gpuforest.core.rules import Sampling
from gpuforest.core.target import CheckedTarget, TargetCoding
from gpuforest.core.training import Training
from gpuforest.data import arrays, validation
from gpuforest.data.binned import BinnedData, Passed, edges_of
from gpuforest.data.target_statistics import OrderedTarget, refuse_statistics, replace_categories
from gpuforest.estimators import bases, explaining, fits, growing, memory
from gpuforest.estimators.settings import (
    BY_ERROR,
    RowWeights,
    Settings,
    bin_weights,
    features_of_tree,
    features_tried,
    numbered,
    refuse_without_bags,
    rules_of,
    sampling_of,
    signs_of,
)
from gpuforest.explain import model_facts
from gpuforest.explain.importances import impurity_importances
from gpuforest.growing import targets
from gpuforest.growing.edges import bin_matrix, most_bins
from gpuforest.growing.grow import grow
from gpuforest.splits import kinds

Array = Any
write_model = deferred("gpuforest.export.model_file", "save")
to_onnx = deferred("gpuforest.export.onnx", "to_onnx")
to_treelite = deferred("gpuforest.export.treelite", "to_treelite")
partial_dependence = deferred("gpuforest.explain.sklearn_tree", "partial_dependence")
NOT_PICKLED = ("tree_", "estimators_", "_products_", "_converted_", "_seconds_", "_steps_")


class BaseTrees(bases.CallbackSupport, bases.BaseEstimator):
    """An estimator that runs the stages. `Classifier` and `Regressor` add the target."""

    forest_: Forest
    seed_: int
    criterion_: str
    backend_: str
    n_features_in_: int
    n_outputs_: int
    n_estimators: int | str
    criterion: str
    max_bins: int | str
    backend: str
    memory_limit: int | str | None
    random_state: Any
    verbose: int = 0
    _sampling_: Sampling
    _splitter = "best"
    _takes_outputs = False  # targets [n_samples, n_outputs]
    _to_sklearn = staticmethod(deferred("gpuforest.export.sklearn", "to_sklearn"))
    _keeps_draws = False  # whether model files keep how rows were drawn
    # the next fit's new trees, where other processes grew them: forests of consecutive numbers
    _grown: tuple[Forest, ...] = ()

    def _tree_params(self) -> dict[str, Any]:
        """The parameters that say how a tree grows."""
        return {"splitter": self._splitter, **self.get_params(deep=False)}

    def _settings(self) -> Settings:
        """The parameters as the engine takes them."""
        return Settings.of(self._tree_params())

    @fits.with_callbacks
    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, groups: Any = None,
        blocks: Any = None,
    ) -> Self:  # fmt: skip
        """Grow the trees.

        Raises
        ------
        ValueError
            A parameter out of its range; infinities, complex numbers or no numbers in
            X; a wrong length; missing values in y, groups or blocks; negative or no
            weights.
        BackendError
            The backend cannot run on this machine, or its GPU has too little memory.
        """
        self._validate_params()
        passed = Passed.of(X, y, sample_weight, groups, blocks)
        earlier = self._earlier()
        n_before = 0 if earlier is None else earlier.forest_.n_trees
        if earlier is not None and n_before == self.n_estimators:
            warnings.warn(
                "Warm-start fitting without increasing n_estimators does not fit new trees.",
                stacklevel=2,
            )
            if self._has_out_of_bag():
                return self
        seed = arguments.draw_seed(self.random_state) if earlier is None else earlier.seed_
        with fits.fitting(self, self._most_trees - n_before, passed) as fitted:
            work = partial(fitted._fit, passed, seed, earlier)
            run_on_backend(work, **self._chosen(X))
        return self

    @property
    def _most_trees(self) -> int:
        """The most trees that a fit may grow."""
        return 1

    def _earlier(self) -> Self | None:
        """This estimator as it was fitted before, where warm_start adds to its trees; a ValueError
        if there are more than wanted."""
        if not getattr(self, "warm_start", False) or not hasattr(self, "forest_"):
            return None
        n = self.forest_.n_trees
        if int(self.n_estimators) < n:
            raise ValueError(
                f"n_estimators={self.n_estimators} must be larger or equal to "
                f"len(estimators_)={n} when warm_start==True"
            )
        return fits.as_it_is(self)

    def _fit(self, data: Passed, seed: int, earlier: Self | None, backend: Backend) -> None:
        """Grow the trees from `data`; `earlier`: this estimator, to whose trees warm_start adds."""
        plan = self._prepared(data, seed, backend)
        before = None if earlier is None else earlier.forest_
        if earlier is not None:
            training = plan.training
            fits.check_same(earlier.forest_, training.matrix.edges, training.target.coding)
            fits.check_same_groups(earlier, training.sampling)
        with progress.stage("growing"):
            waves = [forest for forest in (before, *self._grown) if forest is not None]
            n_trees = growing.n_trees_of(waves) if self._grown else self._most_trees
            plan, waves, n_trees = self._first_waves(plan, waves, n_trees)
            waves += grow(
                plan.training, plan.backend, growing.n_trees_of(waves), n_trees, plan.pruning
            )
            forest = before
            if forest is None or n_trees > forest.n_trees:  # else the errors alone are asked for
                forest = plan.finish(waves, 0)
        self._keep_fit(forest, plan)

    def _prepared(self, data: Passed, seed: int, backend: Backend) -> growing.TrainingPlan:
        """What the trees grow from: the data are checked and binned, the parameters read once."""
        X, y, sample_weight, groups, blocks = data
        with progress.stage("checking"):
            settings = self._settings()
            judged = settings.oob_score or settings.unbiased_importances
            if judged and not settings.bootstrap and blocks is None:
                refuse_without_bags(settings)
            backend = for_splits(backend, criteria.CRITERIA[settings.criterion], settings.kind)
            sample_weight = arrays.to_host(sample_weight, "sample_weight")
            split = settings.categorical_split
            X, categories = validation.learn_table(self, X, backend, sample_weight, split)
            weights = validation.check_weights(sample_weight, X.shape[0])
            if groups is not None:
                groups = validation.check_groups(groups, X.shape[0])
            if blocks is not None:
                blocks = validation.check_groups(blocks, X.shape[0], "blocks")
            n_counted = X.shape[0] if weights is None else int(np.count_nonzero(weights[1]))
            settings = self._for_rows(settings, n_counted)
            X, weights = self._pooled(X, weights, settings, seed, backend)
            checked = self._check_target(y, X.shape[0], backend)
            sampling = self._sampling_for(settings, X.shape[0], weights, checked, groups)
            judges = sampling  # how the trees draw that judge rows
            if blocks is not None and not settings.is_single:
                judges = replace(sampling, blocks=numbered(blocks, sampling))
            coding, codes = self._encode_target(checked, sampling, backend)
            integers = bin_weights(sampling, weights)
            statistics: Statistics = {}
            if categories:
                make_target = partial(OrderedTarget.of, checked, integers, seed, groups)
                categories, statistics = replace_categories(X, categories, split, make_target)
            rules = rules_of(settings, X.shape[1], sampling, coding, bool(categories))
            max_bins, edges = self._bins(X, settings, integers, categories, backend)
            settings = replace(settings, max_bins=max_bins)
            fit = memory.fit_of(settings, X, judges, rules, coding, categories)
            backend = memory.fitted_to_memory(fit, backend, settings.memory_limit)
        with progress.stage("binning"):
            if edges is None:
                edges = edges_of(X, max_bins, integers, seed, backend, categories, statistics)
            matrix = bin_matrix(X, edges, backend)
            target = targets.placed(coding, codes, backend)
            if judges.blocks is not None and edges.statistics:
                refuse_statistics()
        training = Training(matrix, target, sampling, rules, seed)
        training = kinds.kind_in(training).fitted(backend, training)
        return growing.TrainingPlan(
            training, backend, settings, checked, self._combine(), judges.blocks
        )

    def _for_rows(self, settings: Settings, n_rows: int) -> Settings:
        """The parameters for trees that draw from n_rows rows."""
        return settings

    def _pooled(
        self, X: Any, weights: RowWeights, settings: Settings, seed: int, backend: Backend
    ) -> tuple[Any, RowWeights]:
        """The rows that trees draw from, and their weights."""
        return X, weights

    def _bins(
        self, X: Any, settings: Settings, integers: Any, categories: Categories, backend: Backend
    ) -> tuple[int | str, BinEdges | None]:
        """The most bins of a feature, and the edges, where these are known so early."""
        if isinstance(X, BinnedData):
            return settings.max_bins, X.edges
        return most_bins(X, settings.max_bins, integers, categories, backend), None

    def _first_waves(
        self, plan: growing.TrainingPlan, waves: list[Forest], n_trees: int
    ) -> tuple[growing.TrainingPlan, list[Forest], int]:
        """How the trees grow, those of them that have grown already, and how many there shall be;
        the trees of `waves` have grown before."""
        return plan, waves, n_trees

    def _keep_fit(self, forest: Forest, plan: growing.TrainingPlan) -> None:
        """Keep the forest, and what else a fit leaves."""
        self._keep(forest)
        self.criterion_, self.backend_ = plan.settings.criterion, plan.backend.name
        self._sampling_ = plan.training.sampling
        self._look_out_of_bag(plan)

    def _keep(self, forest: Forest) -> None:
        self.forest_, self.seed_ = forest, forest.seed
        self.n_outputs_ = forest.coding.n_outputs

    @property
    def is_categorical_(self) -> np.ndarray | None:
        """Which features are categorical, bool of shape (n_features,); None if no feature is
        categorical."""
        check_is_fitted(self)
        mask = self.forest_.edges.kinds == dtypes.CATEGORICAL
        mask[[*self.forest_.edges.statistics]] = True
        return mask if mask.any() else None

    @property
    def max_features_(self) -> int:
        """Features tried at a split."""
        check_is_fitted(self)
        settings, n = self._settings(), self.n_features_in_
        drawn = features_of_tree(settings, n)
        return features_tried(settings.max_features, n, drawn, settings.feature_combinations)

    @property
    def _criterion(self) -> criteria.Criterion:
        """The one that the trees were grown by."""
        return criteria.CRITERIA[self.criterion_].of_outputs(self.forest_.coding.n_outputs)

    def _signs(self) -> np.ndarray:
        """The signs of monotonic constraints, see `records.Rules`."""
        signs = self._settings().monotonic_cst
        return signs_of(signs, self.n_features_in_, self.forest_.coding)

    def _combine(self) -> str:
        """How the trees' predictions combine, see `Forest`."""
        return "mean"

    def _check_target(self, y: Any, n_rows: int, backend: Backend) -> CheckedTarget:
        raise NotImplementedError

    def _sampling_for(
        self, settings: Settings, n_rows: int, weights: RowWeights, checked: CheckedTarget,
        groups: np.ndarray | None,
    ) -> Sampling:  # fmt: skip
        """How bags are drawn, and which weights are added up."""
        return sampling_of(settings, n_rows, weights, self._labels(checked), groups)

    def _labels(self, checked: CheckedTarget) -> CheckedTarget | None:
        """The target on the host if class weights need it, else None."""
        return None

    def _encode_target(
        self, checked: CheckedTarget, sampling: Sampling, backend: Backend
    ) -> tuple[TargetCoding, Array]:
        raise NotImplementedError

    def _has_out_of_bag(self) -> bool:
        """Whether all that is asked for of the rows out of bag is known."""
        results = {"oob_score": "oob_score_", "unbiased_importances": "_unbiased_importances_"}
        return all(hasattr(self, kept) or not getattr(self, p, 0) for p, kept in results.items())

    def _look_out_of_bag(self, plan: growing.TrainingPlan) -> None:
        """Find what is asked for of the rows out of bag."""

    def _chosen(self, X: Any) -> dict[str, Any]:
        """The arguments that choose the backend for X, see `run_on_backend`."""
        return {
            "name": self.backend,
            "n_threads": self._n_threads(arrays.count_rows(X), arrays.count_columns(X)),
            "n_rows": arrays.count_rows(X),
            "on_device": arrays.is_on_device(X),
        }

    def _n_threads(self, n_rows: int, n_features: int) -> int:
        """The threads of a fit or a prediction of so many rows."""
        n_trees = getattr(self, "max_iter", self._most_trees)
        return arguments.thread_count(getattr(self, "n_jobs", 1), n_rows * (n_features + n_trees))

    def _walk(self, X: Any, stage: Callable[[Forest, Array, Backend], Array]) -> Any:
        """The result of a stage of `predict` for X's rows, in the kind of array that X is."""
        if not self.__sklearn_is_fitted__():
            check_is_fitted(self)  # which says so; it takes a tenth of a prediction of one row
        model = fits.as_it_is(self)  # a fit in another thread may replace the forest

        def work(backend: Backend) -> Any:
            table = validation.check_table(model, X, backend)
            with progress.stage("predicting"):
                return arrays.in_kind_of(X, stage(model.forest_, table, backend))

        return run_on_backend(work, **self._chosen(X))

    def _coded(self, X: Any) -> tuple[Array, Backend]:
        """The codes of X's rows, and the backend on whose device they are."""

        def work(backend: Backend) -> tuple[Array, Backend]:
            table = validation.check_table(self, X, backend)
            return bin_matrix(table, self.forest_.edges, backend).codes, backend

        return run_on_backend(work, **self._chosen(X))

    @cached_property
    def feature_importances_(self) -> np.ndarray:
        """Impurity importances f64[n_features], which add up to one.

        The total decrease of impurity by the splits of each feature, normalised in
        each tree, then averaged. All zero where no tree has a split that gains.
        """
        check_is_fitted(self)
        return impurity_importances(self.forest_, self._criterion)

    def _model(self) -> Model:
        """The fitted model as exporters, files and pictures take it."""
        kind, now = type(self), vars(self)
        facts = {name: value for name, value in now.items() if name.endswith("_")}
        if not self._keeps_draws:
            facts.pop("_sampling_", None)
        for name, word in BY_ERROR.items():  # what errors chose
            if now.get(name) == word:
                facts[f"{name}_"] = getattr(self, f"{name}_")
        return Model(
            facts["forest_"], kind.__name__, model_facts.task_of(self), self._criterion,
            self._signs, self.get_params(deep=False), facts, is_public(kind),
        )  # fmt: skip

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted estimator to a file that `gpuforest.load` reads.

        Parameters
        ----------
        path : str or path
            A file there is replaced as a whole, and never left half written; its mode stays. A
            pipe or a device is written into, and a symbolic link is followed.

        Raises
        ------
        ValueError
            Class labels that are neither numbers nor strings; a subclass of gpuforest's
            estimators, which `load` could not make: pickle it.
        OSError
            The file cannot be written. The estimator can be saved elsewhere.
        """
        check_is_fitted(self)
        write_model(self._model(), path)

    _estimate_memory = memory.estimate_memory
    shap_values = explaining.shap_values
    shap_interaction_values = explaining.shap_interaction_values
    to_shap = explaining.to_shap
    report = explaining.report
    expected_value_ = property(explaining.expected_value_)
    expected_value = explaining.expected_value

    def to_sklearn(self) -> Any:
        """The same model as a fitted estimator of scikit-learn, see `gpuforest.export.sklearn`."""
        return self._to_sklearn(self)

    def to_onnx(
        self, path: str | os.PathLike[str] | None = None, *, dtype: str = "float32",
        ml_version: int | None = None, feature_names: Sequence[str] | None = None,
    ) -> Any:  # fmt: skip
        """An ONNX model that predicts the same, which is also written to `path` if that is given.

        Parameters, results and errors are those of `gpuforest.export.onnx.to_onnx`.
        """
        return to_onnx(self, path, dtype=dtype, ml_version=ml_version, feature_names=feature_names)

    def to_treelite(self) -> Any:
        """A model of treelite that predicts the same, see `gpuforest.export.treelite`."""
        return to_treelite(self)

    def _html_repr(self) -> str:
        """The text that notebooks show: scikit-learn's diagram, and a summary of fitted trees."""
        diagram: str = super()._html_repr()
        return diagram + model_facts.summary_html(self) if hasattr(self, "forest_") else diagram

    def _get_fitted_attr_html(self, doc_link: str = "") -> Any:
        """The diagram's table of the attributes that are set. scikit-learn reads all attributes,
        and would draw the rows of every tree's bag again."""
        only_set = bases.BaseEstimator()
        only_set.__dict__.update({n: v for n, v in vars(self).items() if n.endswith("_")})
        table = bases.BaseEstimator._get_fitted_attr_html(only_set, doc_link)
        table.estimator_class = type(self)
        return table

    def _compute_partial_dependence_recursion(self, grid: Any, target_features: Any) -> np.ndarray:
        """Called by `sklearn.inspection.partial_dependence(method="recursion")`."""
        trees = getattr(self, "estimators_", [self])
        return np.asarray(partial_dependence(trees, grid, target_features))

    def __getstate__(self) -> Any:
        """The state without what follows from it, such as the trees that scikit-learn shows, and
        without what differs between equal fits."""
        state: dict[str, Any] = super().__getstate__()
        dropped = NOT_PICKLED if "forest_" in state else ()
        return {n: v for n, v in state.items() if n not in dropped}

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "forest_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.sparse = True
        tags.target_tags.multi_output = self._takes_outputs
        return tags
