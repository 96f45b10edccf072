"""AdaBoost: each tree is grown from rows that weigh more where the trees before it were wrong."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from inspect import signature
from typing import Any, ClassVar, Self

import numpy as np
from array_api_compat import array_namespace
from sklearn.base import is_classifier
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from gpuforest.backends.base import Backend
from gpuforest.common import imports, progress, sums
from gpuforest.core import nodes
from gpuforest.core.forest import Forest, joined
from gpuforest.data.arrays import in_kind_of, is_on_device, to_host
from gpuforest.data.binned import FitInput
from gpuforest.estimators import base, ensembles, fit_scope, foreign, params, task
from gpuforest.estimators.plan import TrainingPlan
from gpuforest.estimators.prepare import prepare
from gpuforest.estimators.settings import Settings, check_some_weight, row_weights_of, rules_of
from gpuforest.estimators.trees import DecisionTreeClassifier, DecisionTreeRegressor
from gpuforest.growing import grow, reweighting, targets
from gpuforest.growing import predict as prediction
from gpuforest.growing.reweighting import Round

SHARED = ("max_bins", "backend", "memory_limit")  # parameters that the tree has too
MEMBERS = "predict staged_predict estimator_ feature_importances_"


class AdaBoost(ensembles.BaseForest):
    """The rounds of both AdaBoost estimators, and their results."""

    _to_sklearn = staticmethod(imports.deferred("gpuforest.export.sklearn", "adaboost_to_sklearn"))
    _family = "AdaBoost"
    _combine: ClassVar[str]  # see `Forest`
    _draws: ClassVar[bool]  # whether the rows of a round are drawn by their weights
    estimator_weights_: np.ndarray
    estimator_errors_: np.ndarray
    estimator: Any = None
    estimator_params: Any = ()
    # what follows from a tree's errors on the targets, and from the rows' weights; see `boost`
    _judge: Callable[[Forest, TrainingPlan, np.ndarray, np.ndarray], Round | None]
    staged_predict: Callable[[Any], Iterator[Any]]
    estimator_ = property(foreign.estimator_)

    def fit(  # type: ignore[override]  # rows out of a round judge nothing, so no groups
        self, X: Any, y: Any = None, sample_weight: Any = None
    ) -> Self:
        """Grow trees one after another, each from the rows' weights after the tree before.

        X is checked and binned once for all rounds.
        """
        if not foreign.fits_other(self):
            return super().fit(X, y, sample_weight)
        if is_classifier(self) and not has_fit_parameter(self.estimator, "sample_weight"):
            raise ValueError(f"{type(self.estimator).__name__} doesn't support sample_weight.")
        with foreign.fitting(self) as model:
            model.fit(X, y, sample_weight)
        return self

    def _of_both(self, name: str) -> Any:
        """A parameter that the tree has too: the tree's value if this one is the default."""
        value = getattr(self, name)
        is_default = value == signature(type(self)).parameters[name].default
        return getattr(foreign.tree_of(self), name) if is_default else value

    def _tree_params(self) -> dict[str, Any]:
        shared = {name: self._of_both(name) for name in SHARED}
        return dict(foreign.tree_of(self).get_params(deep=False)) | shared

    def _settings(self) -> Settings:
        rounds = {"n_estimators": self.n_estimators, "class_weight": None}
        settings = Settings.of(self._tree_params() | rounds)
        return replace(settings, bootstrap=self._draws, is_single=False, reweighted=True)

    def _chosen(self, X: Any) -> dict[str, Any]:
        return super()._chosen(X) | {"name": self._of_both("backend")}

    def _fit(self, given: FitInput, seed: int, earlier: Any, backend: Backend) -> None:
        plan = prepare(self, given, seed, backend)
        with progress.stage("growing"):
            self._keep(self._grow(plan), plan)

    def _grow(self, plan: TrainingPlan) -> Forest:
        """Grow a tree a round, until there are enough, or no more can help."""
        training = grow.keeping_scratch(plan.training)
        sampling = training.sampling
        first = np.ones(sampling.n_rows) if sampling.weights is None else sampling.weights * 1.0
        factors, target = None, task.host_target(plan.checked)[:, 0]
        if self.class_weight is not None:
            factors = row_weights_of(self.class_weight, plan.checked)
            check_some_weight((factors > 0) * first)
            if factors.max() < 2.0**-512:  # beside weights that add up to one, less would be zero
                factors = sums.near_one(factors)
        coding, trees = training.target.coding, list[Forest]()

        def grow_round(t: int, weights: np.ndarray) -> Round | None:
            whole = targets.integer_weights(weights if factors is None else weights * factors)
            drawn = replace(sampling, weights=whole)
            rules = rules_of(
                plan.settings, training.n_features, drawn, coding, training.n_words > 0
            )
            of_round = replace(plan, training=replace(training, sampling=drawn, rules=rules))
            with progress.counting_on(t, self._most_trees):
                trees.append(of_round.finish(of_round.grow(t, t + 1), t))
            return self._judge(trees[-1], plan, target, weights)

        rounds = reweighting.boost(first, self._most_trees, grow_round)
        if not rounds and is_classifier(self):  # the first tree is no better than chance
            raise ValueError(
                "BaseClassifier in AdaBoostClassifier ensemble is worse than random, ensemble "
                "can not be fit."
            )
        rounds = rounds or [(0.0, 1.0)]  # the weight of the only tree does not matter
        tree_weights, errors = np.ascontiguousarray(np.transpose(rounds))
        self._keep_rounds(tree_weights, errors)
        forest = joined(trees[: len(rounds)])  # one more may have been no better than chance
        return replace(forest, combine=self._combine, tree_weights=tree_weights)

    def _keep_rounds(self, weights: np.ndarray, errors: np.ndarray) -> None:
        """Set the trees' weights and errors f64[T]; 0 and 1 for rounds that did not happen."""
        left = (0, self._most_trees - len(weights))
        self.estimator_weights_ = np.pad(weights, left)
        self.estimator_errors_ = np.pad(errors, left, constant_values=1.0)

    def _staged(self, X: Any) -> Iterator[Any]:
        """Predictions of the first tree, of the first two, and so on, or shares of their votes."""
        check_is_fitted(self)
        model = fit_scope.snapshot(self)
        codes, backend = model._coded(X)  # once for all trees
        for values in prediction.staged(model.forest_, codes, backend):
            yield in_kind_of(X, values if is_on_device(X) else backend.asnumpy(values))

    def staged_score(self, X: Any, y: Any, sample_weight: Any = None) -> Iterator[float]:
        """`score(X, y, sample_weight)` of the first tree, of the first two, and so on."""
        y, weight = to_host(y), to_host(sample_weight)
        score = accuracy_score if is_classifier(self) else r2_score
        for predicted in self.staged_predict(X):
            yield float(score(y, to_host(predicted), sample_weight=weight))


def reached(tree: Forest, plan: TrainingPlan) -> Iterator[tuple[slice, np.ndarray]]:
    """Blocks of training rows, and the row of the leaf table that each row reaches, i64[n]."""
    backend = plan.backend
    leaf = backend.asnumpy(backend.apply(tree, plan.training.matrix.codes))[:, 0]
    for rows in sums.blocks(len(leaf)):
        yield rows, np.asarray(nodes.leaf_rows(tree.nodes[leaf[rows]]))


@foreign.or_sklearn("_weight_boosting", f"{MEMBERS} decision_function staged_decision_function")
@params.parameters(params.ADABOOST, {"loss": None}, params.OF_ADABOOST)
class AdaBoostClassifier(AdaBoost, base.Classifier):
    """AdaBoost for classes: SAMME, with any number of classes.

    Each round grows a tree, a stump by default, from all rows. Rows that it misclassifies weigh
    more in the next round. The trees then vote, and better trees count more. In each round, the
    rows' weights become integers of a total below 2**31.

    References
    ----------
    J. Zhu, H. Zou, S. Rosset and T. Hastie, "Multi-class AdaBoost", Statistics and Its Interface
    2, 2009; Y. Freund and R. Schapire, "A decision-theoretic generalization of on-line learning
    and an application to boosting", Journal of Computer and System Sciences 55, 1997.
    """

    _tree, _draws = DecisionTreeClassifier, False
    _default_depth, _combine = 1, "votes"

    def _judge(
        self, tree: Forest, plan: TrainingPlan, target: np.ndarray, weights: np.ndarray
    ) -> Round | None:
        classes = plan.training.target.coding.classes
        assert classes is not None
        labels, wrong = tree.values.argmax(axis=1), np.empty(len(target), bool)
        for rows, at in reached(tree, plan):
            wrong[rows] = labels[at] != target[rows]
        return reweighting.samme(wrong, weights, len(classes), float(self.learning_rate))

    def predict(self, X: Any) -> Any:
        """The class of the most votes, where better trees count more; the first of equal
        classes."""
        return super().predict(X)

    def decision_function(self, X: Any) -> Any:
        """The trees' votes for each class.

        Returns
        -------
        float64 array of shape (n_samples, n_classes), on a GPU where X is on one
            From -1 / (n_classes - 1), without a vote for the class, to 1, with all votes. Two
            classes: the second's value minus the first's, of shape (n_samples,). One class: 0.
        """
        return self._decisions(self._walk(X, prediction.predict))

    def staged_decision_function(self, X: Any) -> Iterator[Any]:
        """`decision_function(X)` of the first tree, of the first two, and so on."""
        return map(self._decisions, self._staged(X))

    def _decisions(self, shares: Any) -> Any:
        """Decisions from shares of the votes f64[N, n_classes]."""
        n = self.n_classes_
        if n == 2:
            return 2.0 * (shares[:, 1] - shares[:, 0])
        return shares * 0.0 if n == 1 else (n * shares - 1.0) / (n - 1.0)

    def predict_proba(self, X: Any) -> Any:
        """Probabilities of the classes, from the softmax of the votes (Zhu et al. 2009, eq. 15).

        They say which class is likelier, but are all near 1 / n_classes, because the votes
        are divided by the trees' total weight, as in scikit-learn.
        """
        return self._probabilities(self.decision_function(X))

    def staged_predict_proba(self, X: Any) -> Iterator[Any]:
        """`predict_proba(X)` of the first tree, of the first two, and so on."""
        return map(self._probabilities, self.staged_decision_function(X))

    def _probabilities(self, decisions: Any) -> Any:
        xp = array_namespace(decisions)
        if self.n_classes_ == 2:
            decisions = xp.stack([-decisions, decisions], axis=1) / 2.0
        else:
            decisions = decisions / max(self.n_classes_ - 1, 1)
        powers = xp.exp(decisions - xp.max(decisions, axis=1)[:, None])
        return powers / xp.sum(powers, axis=1)[:, None]

    def staged_predict(self, X: Any) -> Iterator[Any]:
        """`predict(X)` of the first tree, of the first two, and so on."""
        for shares in self._staged(X):
            yield in_kind_of(X, self.classes_[np.argmax(to_host(shares), axis=1)])


@foreign.or_sklearn("_weight_boosting", MEMBERS)
@params.parameters(params.ADABOOST, params.OF_ADABOOST, params.NO_CLASSES)
class AdaBoostRegressor(AdaBoost, base.Regressor):
    """AdaBoost for real numbers: AdaBoost.R2.

    Each round draws N of the N rows, by their weights and with replacement, and grows a tree from
    them, of depth 3 by default. Rows that it predicts well weigh less in the next round. The
    prediction is the weighted median of the trees' predictions.

    References
    ----------
    H. Drucker, "Improving regressors using boosting techniques", ICML 1997.
    """

    _tree, _draws = DecisionTreeRegressor, True
    _default_depth, _combine = 3, "median"
    class_weight = None  # which trees for numbers do not have

    def _judge(
        self, tree: Forest, plan: TrainingPlan, target: np.ndarray, weights: np.ndarray
    ) -> Round | None:
        residuals = np.empty(len(target))
        for rows, at in reached(tree, plan):
            residuals[rows] = np.abs(tree.values[at, 0] - target[rows])
        # trees hold targets as multiples of a unit: errors within it are none
        largest = max(target.max(), -target.min())
        residuals[residuals <= 1 / plan.training.target.coding.scale + np.spacing(largest)] = 0.0
        return reweighting.r2(residuals, weights, self.loss, float(self.learning_rate))

    def staged_predict(self, X: Any) -> Iterator[Any]:
        """`predict(X)` of the first tree, of the first two, and so on."""
        for values in self._staged(X):
            yield values[:, 0]
