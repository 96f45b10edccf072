"""AdaBoost: each tree is grown from rows that weigh more where the trees before it were wrong."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from array_api_compat import array_namespace
from sklearn.utils.validation import has_fit_parameter

from gpuforest.data.arrays import in_kind_of, to_host
from gpuforest.engine import predict as prediction
from gpuforest.engine.forest import Forest
from gpuforest.engine.reweighting import Round, r2, samme
from gpuforest.engine.target import CheckedTarget
from gpuforest.engine.training import Training
from gpuforest.estimators import params
from gpuforest.estimators.class_weights import check_some_weight, row_weights_of
from gpuforest.estimators.reweighted import AdaBoost, Judge, reached
from gpuforest.estimators.tasks import Classifier, Regressor
from gpuforest.estimators.trees import DecisionTreeClassifier, DecisionTreeRegressor


@params.parameters(params.ADABOOST, {"loss": None}, params.OF_ADABOOST)
class AdaBoostClassifier(AdaBoost, Classifier):
    """AdaBoost for classes: SAMME, with any number of classes.

    Each round grows a tree, a stump by default, from all rows. Rows that it misclassifies weigh
    more in the next round. The trees then vote, and the better ones count more. The same data
    and `random_state` give the same model, bit for bit, on every backend and with any number of
    threads: in each round, the rows' weights become integers of a total below 2**31.

    Attributes
    ----------
    estimators_ : list of the trees, as DecisionTreeClassifier
    estimator_weights_ : float64 ndarray of shape (n_estimators,)
        How much each tree counts; 0 for rounds that did not happen.
    estimator_errors_ : float64 ndarray of shape (n_estimators,)
        The weighted share of rows that each tree misclassifies; 1 for rounds that did not happen.
    estimator_ : the tree, not fitted, that each is grown as
    classes_ : ndarray of shape (n_classes,)
    n_classes_ : int
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,), of frames with string names
    is_categorical_ : bool ndarray of shape (n_features_in_,), or None: no feature is
    feature_importances_ : float64 ndarray of shape (n_features_in_,)
        The mean of the trees' importances, by the trees' weights.
    seed_, criterion_, backend_, forest_
        As of `RandomForestClassifier`.

    References
    ----------
    J. Zhu, H. Zou, S. Rosset and T. Hastie, "Multi-class AdaBoost", Statistics and Its Interface
    2, 2009; Y. Freund and R. Schapire, "A decision-theoretic generalization of on-line learning
    and an application to boosting", Journal of Computer and System Sciences 55, 1997.

    Examples
    --------
    >>> from gpuforest import AdaBoostClassifier
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], ["a", "b", "b", "a"]
    >>> model = AdaBoostClassifier(n_estimators=3).fit(X, y)
    >>> model.predict(X).tolist()
    ['a', 'b', 'b', 'a']
    """

    _tree, _kind, _draws = DecisionTreeClassifier, "AdaBoostClassifier", False

    def _default_tree(self) -> Any:
        return DecisionTreeClassifier(max_depth=1)

    def _combine(self) -> str:
        return "votes"

    def _check_other(self) -> None:
        if not has_fit_parameter(self.estimator, "sample_weight"):
            raise ValueError(f"{type(self.estimator).__name__} doesn't support sample_weight.")

    def _class_factors(self, checked: CheckedTarget, weights: np.ndarray) -> np.ndarray | None:
        if self.class_weight is None:
            return None
        labels = replace(checked, values=[to_host(codes) for codes in checked.values])
        factors = row_weights_of(self.class_weight, labels)
        check_some_weight(factors * weights)
        return factors

    def _judge(self, training: Training, checked: CheckedTarget) -> Judge:
        assert checked.classes is not None
        codes, n_classes = to_host(checked.values[0]), len(checked.classes[0])

        def judge(tree: Forest, weights: np.ndarray) -> Round | None:
            labels, wrong = tree.values.argmax(axis=1), np.empty(len(codes), bool)
            for rows, at in reached(tree, training):
                wrong[rows] = labels[at] != codes[rows]
            return samme(wrong, weights, n_classes, float(self.learning_rate))

        return judge

    def _only_round(self) -> Round:
        raise ValueError(
            "BaseClassifier in AdaBoostClassifier ensemble is worse than random, ensemble can not "
            "be fit."
        )

    def predict(self, X: Any) -> Any:
        """The class of the most votes, where better trees count more; the first among equals.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)

        Returns
        -------
        Array of shape (n_samples,), as of `RandomForestClassifier.predict`
        """
        return self._theirs().predict(X) if self._is_theirs else super().predict(X)

    def decision_function(self, X: Any) -> Any:
        """How far the votes are for each class.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)

        Returns
        -------
        float64 array of shape (n_samples, n_classes), on a GPU where X is on one
            From -1 / (n_classes - 1), if no tree votes for the class, to 1, if all do. Of two
            classes the second's less the first's, of shape (n_samples,), from -2 to 2, as
            scikit-learn gives it. Of one class zeros.
        """
        if self._is_theirs:
            return self._theirs().decision_function(X)
        return self._decisions(self._walk(X, prediction.predict))

    def staged_decision_function(self, X: Any) -> Iterator[Any]:
        """The decision function of the first tree, of the first two, and so on.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)

        Yields
        ------
        as `decision_function`
        """
        if self._is_theirs:
            yield from self._theirs().staged_decision_function(X)
            return
        yield from map(self._decisions, self._staged(X))

    def _decisions(self, shares: Any) -> Any:
        """Decisions from shares of the votes f64[N, n_classes]."""
        n = self.n_classes_
        if n == 1:
            return shares * 0.0
        if n == 2:
            return 2.0 * (shares[:, 1] - shares[:, 0])
        return (n * shares - 1.0) / (n - 1.0)

    def predict_proba(self, X: Any) -> Any:
        """Probabilities of the classes, from the softmax of the votes (Zhu et al. 2009, eq. 15).

        They tell which class is likelier, but are all near 1 / n_classes, because the votes
        are divided by the trees' total weight, as in scikit-learn.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)

        Returns
        -------
        float64 array of shape (n_samples, n_classes), in the order of `classes_`
        """
        return self._probabilities(self.decision_function(X))

    def staged_predict_proba(self, X: Any) -> Iterator[Any]:
        """Probabilities by the first tree, by the first two, and so on.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)

        Yields
        ------
        as `predict_proba`
        """
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
        """The classes that the first tree predicts, the first two, and so on.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)

        Yields
        ------
        as `predict`
        """
        if self._is_theirs:
            yield from self._theirs().staged_predict(X)
            return
        for shares in self._staged(X):
            yield in_kind_of(X, self.classes_[np.argmax(to_host(shares), axis=1)])


@params.parameters(params.ADABOOST, params.OF_ADABOOST)
class AdaBoostRegressor(AdaBoost, Regressor):
    """AdaBoost for real numbers: AdaBoost.R2.

    Each round draws as many rows as there are, by their weights and with replacement, and grows
    a tree from them, of depth 3 by default. Rows that it predicts well weigh less in the next
    round. The prediction is the weighted median of the trees'. The same data and `random_state`
    give the same model, bit for bit, on every backend and with any number of threads.

    Attributes
    ----------
    estimators_ : list of the trees, as DecisionTreeRegressor
    estimator_errors_ : float64 ndarray of shape (n_estimators,)
        The weighted mean loss of each tree; 1 for rounds that did not happen.
    others : as of `AdaBoostClassifier`, without classes

    References
    ----------
    H. Drucker, "Improving regressors using boosting techniques", ICML 1997.

    Examples
    --------
    >>> from gpuforest import AdaBoostRegressor
    >>> X = [[float(i)] for i in range(20)]
    >>> y = [x[0] ** 2 for x in X]
    >>> model = AdaBoostRegressor(random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.98
    True
    """

    _tree, _kind, _draws = DecisionTreeRegressor, "AdaBoostRegressor", True
    class_weight = None  # which trees for numbers do not have

    def _default_tree(self) -> Any:
        return DecisionTreeRegressor(max_depth=3)

    def _combine(self) -> str:
        return "median"

    def _judge(self, training: Training, checked: CheckedTarget) -> Judge:
        y = np.asarray(to_host(checked.values), np.float64)
        # trees hold targets as multiples of a unit: errors within it are none
        unit = 1 / training.target.coding.scale + float(np.spacing(max(y.max(), -y.min())))

        def judge(tree: Forest, weights: np.ndarray) -> Round | None:
            residuals = np.empty(len(y))
            for rows, at in reached(tree, training):
                residuals[rows] = np.abs(tree.values[at, 0] - y[rows])
            residuals[residuals <= unit] = 0.0
            return r2(residuals, weights, self.loss, float(self.learning_rate))

        return judge

    def _only_round(self) -> Round:
        """Of no weight, which does not matter where there is no other tree."""
        return Round(0.0, 1.0, np.ones(0))

    def predict(self, X: Any) -> Any:
        """The weighted median of the trees' predictions.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)

        Returns
        -------
        float64 array of shape (n_samples,); on a GPU where X is on one
        """
        return self._theirs().predict(X) if self._is_theirs else super().predict(X)

    def staged_predict(self, X: Any) -> Iterator[Any]:
        """What the first tree predicts, the first two, and so on.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)

        Yields
        ------
        as `predict`
        """
        if self._is_theirs:
            yield from self._theirs().staged_predict(X)
            return
        for found in self._staged(X):
            yield found[:, 0]
