"""The base classes of estimators: they run the stages of a fit, keep their results and predict."""

import os
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Any, Self

import numpy as np
from array_api_compat import array_namespace
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils.validation import check_is_fitted

from gpuforest.backends import base, registry
from gpuforest.common import arguments, dtypes, imports, progress
from gpuforest.core import criteria, rules
from gpuforest.core.forest import Forest
from gpuforest.core.model import Model, is_public
from gpuforest.data import arrays, binned, validation
from gpuforest.estimators import (
    bases,
    capabilities,
    fit_scope,
    forgetting,
    kept,
    memory,
    methods,
    out_of_bag,
    settings,
    task,
)
from gpuforest.estimators.out_of_bag import learned, n_trees_of, tuned
from gpuforest.estimators.plan import TrainingPlan
from gpuforest.estimators.prepare import prepare
from gpuforest.explain import importances, model_facts
from gpuforest.export.views import need_numbers
from gpuforest.growing import edges, grow
from gpuforest.growing import predict as prediction

Array = Any
write_model = imports.deferred("gpuforest.export.model_file", "save")
to_onnx = imports.deferred("gpuforest.export.onnx", "to_onnx")
to_treelite = imports.deferred("gpuforest.export.treelite", "to_treelite")
NOT_PICKLED = (
    "tree_",
    "estimators_",
    "_products_",
    "_converted_",
    "_seconds_",
    "_steps_",
    "_kept_",
)


class BaseTrees(bases.CallbackSupport, bases.BaseEstimator):
    """An estimator that runs the stages of a fit. `Classifier` and `Regressor` add the target."""

    forest_: Forest
    seed_: int
    criterion_: str
    backend_: str
    n_outputs_: int
    verbose: int = 0
    _sampling_: rules.Sampling
    _grown_by_: dict[str, str]  # digests of parameters, where rows may leave later
    _altered_: str  # the method that has changed the trees since their fit
    _splitter = "best"
    _takes_outputs = False  # targets [n_samples, n_outputs]
    _to_sklearn = staticmethod(imports.deferred("gpuforest.export.sklearn", "to_sklearn"))
    _keeps_draws = False  # whether model files keep how rows were drawn
    _task: task.Task
    _family = "trees"  # its name in the table of capabilities

    def _tree_params(self) -> dict[str, Any]:
        """The parameters that say how a tree grows."""
        return {"splitter": self._splitter, **self.get_params(deep=False)}

    def _settings(self) -> settings.Settings:
        """The parameters as the engine takes them, which no fit changes."""
        return settings.Settings.of({"criterion": self.criterion, **self._tree_params()})

    def _validate_params(self) -> None:
        super()._validate_params()
        words: dict[str, Any] = {"criterion": vars(self).get("criterion")}
        capabilities.refuse(self._family, capabilities.of_params(vars(self)), **words)

    @fit_scope.with_callbacks
    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, groups: Any = None,
        blocks: Any = None,
    ) -> Self:  # fmt: skip
        """Grow the trees."""
        self._validate_params()
        given = binned.FitInput.of(X, y, sample_weight, groups, blocks)
        before, n_trees = 0 if given.kept else self._n_before(), self._most_trees
        earlier = fit_scope.snapshot(self) if before else None
        if before == n_trees:
            why = "Warm-start fitting without increasing n_estimators does not fit new trees."
            warnings.warn(why, stacklevel=2)
            if fit_scope.has_out_of_bag(self):
                return self
        goes_on = before or given.kept
        seed = self.seed_ if goes_on else arguments.draw_seed(self.random_state)
        with fit_scope.fitting(self, n_trees - before, given) as fitted:
            work = partial(fitted._fit, given, seed, earlier)
            registry.run_on_backend(work, **self._chosen(given.X))
        return self

    @property
    def _most_trees(self) -> int:
        """The most trees that a fit may grow."""
        n: int | str = getattr(self, "n_estimators", 1)
        return int(self.max_estimators if n == "auto" else n)

    def _n_before(self) -> int:
        """The trees to which warm_start adds; a ValueError if there are more than wanted."""
        if not getattr(self, "warm_start", False) or not hasattr(self, "forest_"):
            return 0
        if hasattr(self, "_altered_"):
            raise ValueError(
                f"warm_start adds trees to those of a fit, and {self._altered_} has changed these: "
                "set warm_start=False"
            )
        n = self.forest_.n_trees
        if self._most_trees < n:
            raise ValueError(
                f"n_estimators={self.n_estimators} must be larger or equal to "
                f"len(estimators_)={n} when warm_start==True"
            )
        return n

    def _fit(self, given: binned.FitInput, seed: int, earlier: Any, backend: base.Backend) -> None:
        """Grow the trees; `earlier`: this estimator, to whose trees warm_start adds, or None."""
        plan = prepare(self, given, seed, backend)
        if given.keep_bytes:
            kept.check(plan, self._most_trees, given.keep_bytes)
        forest = upper = None
        if earlier is not None:
            forest = earlier.forest_
            fit_scope.check_same(earlier, plan.training)
        with progress.stage("growing"):
            waves = [wave for wave in (forest, *given.grown) if wave is not None]
            n_trees = n_trees_of(waves) if given.grown else self._most_trees
            if given.kept is not None:
                waves = forgetting.waves_of(plan, given.kept)
            plan, waves, n_trees, known = tuned(plan, self._task, waves, n_trees)
            begin = n_trees_of(waves) if waves else 0
            if given.keep_bytes and not begin:
                waves, upper = kept.grown(plan, n_trees, given.keep_bytes)
            else:
                waves += grow.grow(plan.training, plan.backend, begin, n_trees, plan.pruning)
            if forest is None or n_trees > forest.n_trees:  # else the errors alone are asked for
                forest = plan.finish(waves, 0)
            if plan.settings.shrinkage == "oob":
                forest, known = out_of_bag.shrink(plan, self._task, forest, known)
        self._keep(forest, plan)
        if plan.drawn.rate:
            self._grown_by_ = forgetting.parameters_of(self, earlier)
        if given.keep_bytes:
            self._kept_ = kept.tables_of(plan, forest, given, given.keep_bytes, 0, upper)
        if plan.settings.oob_score:
            self._set_oob_score_and_attributes(plan, known)
        else:
            vars(self).update(learned(plan, self._task, self.forest_, known))

    def _set_oob_score_and_attributes(self, plan: TrainingPlan, known: dict[str, Any]) -> None:
        """Set what rows out of bag tell; scikit-learn's tests call it by this name."""
        vars(self).update(learned(plan, self._task, self.forest_, known))

    def _keep(self, forest: Forest, plan: TrainingPlan | None = None) -> None:
        """Keep the forest, and what else its fit leaves; plan: None if it was not fitted here."""
        self.forest_, self.seed_ = forest, forest.seed
        self.n_outputs_ = forest.coding.n_outputs
        if plan is not None:
            self.criterion_, self.backend_ = plan.settings.criterion, plan.backend.name
            self._sampling_ = plan.drawn
            if plan.settings.even_bins is not None:
                self._pool = plan.pool

    @property
    def digest_(self) -> str:
        """SHA-256 of the forest, the same for equal forests on every backend and machine: of its
        nodes, sums, bins, classes and all else that its predictions are computed from. What
        quantile, survival and causal forests keep of training rows is no part of it."""
        check_is_fitted(self, "forest_")
        return model_facts.forest_digest(self.forest_)

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
        grown, n = grown_settings(self), self.n_features_in_
        drawn = settings.features_of_tree(grown, n)
        return settings.features_tried(grown.max_features, n, drawn, grown.feature_combinations)

    @property
    def _criterion(self) -> criteria.Criterion:
        """The criterion that the trees were grown by."""
        return criteria.CRITERIA[self.criterion_].of_outputs(self.forest_.coding.n_outputs)

    def _signs(self) -> np.ndarray:
        """The signs of monotonic constraints, see `rules.Rules`."""
        signs = self._settings().monotonic_cst
        return settings.signs_of(signs, self.n_features_in_, self.forest_.coding)

    def _chosen(self, X: Any) -> dict[str, Any]:
        """The arguments that choose the backend for X, see `run_on_backend`."""
        n_rows, on_device = arrays.count_rows(X), arrays.is_on_device(X)
        n = self._n_threads(n_rows, arrays.count_columns(X))
        return {"name": self.backend, "n_threads": n, "n_rows": n_rows, "on_device": on_device}

    def _n_threads(self, n_rows: int, n_features: int) -> int:
        """Number of threads of a fit or a prediction of n_rows rows."""
        n_trees = self.max_iter if hasattr(self, "max_iter") else self._most_trees
        return arguments.thread_count(getattr(self, "n_jobs", 1), n_rows * (n_features + n_trees))

    def _walk(self, X: Any, stage: Callable[[Forest, Array, base.Backend], Array]) -> Any:
        """The result of a stage of `predict` for X's rows, in the kind of array that X is."""
        if not self.__sklearn_is_fitted__():
            check_is_fitted(self)  # which says so; it takes a tenth of a prediction of one row
        model = fit_scope.snapshot(self)  # a fit in another thread may replace the forest

        def work(backend: base.Backend) -> Any:
            table = validation.check_table(model, X, backend)
            with progress.stage("predicting"):
                return arrays.in_kind_of(X, stage(model.forest_, table, backend))

        return registry.run_on_backend(work, **self._chosen(X))

    def _coded(self, X: Any) -> tuple[Array, base.Backend]:
        """The codes of X's rows, and the backend on whose device they are."""

        def work(backend: base.Backend) -> tuple[Array, base.Backend]:
            table = validation.check_table(self, X, backend)
            return edges.bin_matrix(table, self.forest_.edges, backend).codes, backend

        return registry.run_on_backend(work, **self._chosen(X))

    @cached_property
    def feature_importances_(self) -> np.ndarray:
        """Impurity importances f64[n_features], which add up to one.

        The total decrease of impurity by the splits of each feature, normalised in
        each tree, then averaged. All zero where no tree has a split that gains.
        """
        check_is_fitted(self)
        return importances.impurity_importances(self.forest_, self._criterion)

    def _model(self) -> Model:
        """The fitted model as exporters, files and pictures take it."""
        kind, now = type(self), vars(self)
        facts = {name: value for name, value in now.items() if name.endswith("_")}
        for name, word in settings.BY_ERROR.items():  # what errors chose
            if now.get(name) == word:
                facts[f"{name}_"] = getattr(self, f"{name}_")
        return Model(
            facts["forest_"], kind.__name__, model_facts.task_of(self), self._criterion,
            self._signs, self.get_params(deep=False), facts, is_public(kind), self._keeps_draws,
        )  # fmt: skip

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted estimator to a file that `gpuforest.load` reads."""
        check_is_fitted(self)
        if not hasattr(self, "forest_"):
            raise ValueError(
                f"an ensemble of {type(vars(self)['estimator']).__name__} is no forest, and not "
                "saved by gpuforest: use pickle or joblib"
            )
        write_model(self._model(), path)

    _estimate_memory = memory.estimate_memory
    shap_values, shap_interaction_values = methods.shap_values, methods.shap_interaction_values
    to_shap, report, expected_value = methods.to_shap, methods.report, methods.expected_value
    expected_value_ = property(methods.expected_value_)

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
        need_numbers(self.forest_, target_features)
        trees = getattr(self, "estimators_", [self])
        grid, out = np.asarray(grid, np.float32, order="C"), np.zeros(len(grid))
        features = np.asarray(target_features, np.intp, order="C")
        for tree in trees:
            tree.tree_.compute_partial_dependence(grid, features, out)
        return out / len(trees)

    def __getstate__(self) -> Any:
        """The state without what follows from it, and without what differs between equal fits."""
        state: dict[str, Any] = super().__getstate__()
        dropped = NOT_PICKLED if "forest_" in state else ()
        return {n: v for n, v in state.items() if n not in dropped}

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "forest_") or "estimators_" in vars(self)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.sparse = True
        tags.target_tags.multi_output = self._takes_outputs
        return tags


def score(self: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
    """How good `predict(X)` is: the accuracy for classes, R^2 for real numbers.

    Parameters
    ----------
    y : array-like of shape (n_samples,), the true targets
    sample_weight : array-like of shape (n_samples,), default=None
    """
    metric = accuracy_score if isinstance(self, bases.ClassifierMixin) else r2_score
    y, predicted, weight = (arrays.to_host(a) for a in (y, self.predict(X), sample_weight))
    return float(metric(y, predicted, sample_weight=weight))


class Classifier(bases.ClassifierMixin, BaseTrees):
    """Adds class targets."""

    voting: str = "soft"
    classes_: Any
    n_classes_: Any
    score = score
    _task = task.CLASSES

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = tags.target_tags.multi_output
        return tags

    def predict(self, X: Any) -> Any:
        """The class of the highest mean probability; the first among equals."""
        return self._walk(X, prediction.predict_classes)

    def predict_proba(self, X: Any) -> Any:
        """Mean over the trees of the class proportions in the leaves, or of their votes."""
        model = fit_scope.snapshot(self)
        shares, coding = model._walk(X, prediction.predict), model.forest_.coding
        return coding.split(shares) if coding.several else shares

    def predict_log_proba(self: Any, X: Any) -> Any:
        """The logarithm of `predict_proba(X)`, -inf where that is 0."""
        shares = self.predict_proba(X)
        with np.errstate(divide="ignore"):
            if isinstance(shares, list):
                return [array_namespace(f).log(f) for f in shares]
            return array_namespace(shares).log(shares)

    def _keep(self, forest: Forest, plan: TrainingPlan | None = None) -> None:
        super()._keep(forest, plan)
        coding = forest.coding
        self.classes_ = list(coding.several) if coding.several else coding.classes
        self.n_classes_ = [len(c) for c in coding.several] or len(self.classes_)


class Regressor(bases.RegressorMixin, BaseTrees):
    """Adds real targets."""

    score = score
    _task = task.NUMBERS

    def predict(self, X: Any) -> Any:
        """What the trees predict together, where X is."""
        return prediction.flat(self._walk(X, prediction.predict))


def grown_settings(estimator: Any) -> settings.Settings:
    """The settings that a fitted estimator has grown by, with the numbers that its fit chose."""
    asked: settings.Settings = estimator._settings()
    known = vars(estimator)
    tried = known.get("oob_parameters_", known.get("oob_max_features_", {}))
    names: list[str] = [name for name in asked.by_error if name in tried]
    chosen: dict[str, Any] = {n: int(tried[n][np.argmin(tried["error"])]) for n in names}
    if "oob_shrinkage_" in known:
        chosen["shrinkage"] = out_of_bag.best_shrinkage(known["oob_shrinkage_"])
    if asked.even_bins is not None:
        chosen["max_depth"] = settings.depth_of(estimator.max_samples_)
    return replace(asked, **chosen)
