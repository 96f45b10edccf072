"""Bagging (Breiman 1996) draws rows and features for each tree. scikit-learn bags all estimators
that are not trees of this package."""

from dataclasses import replace
from functools import wraps
from typing import Any, Self

from sklearn.utils.metaestimators import available_if

from gpuforest.estimators import ensembles, foreign, params
from gpuforest.estimators.settings import Settings

MEMBERS = "predict estimator_ estimators_features_ estimators_samples_"


def routed(method: Any) -> Any:
    """The method with a signature that shows the parameters which are routed."""

    @wraps(method)
    def call(self: Any, X: Any, **params: Any) -> Any:
        return method(self, X, **params)

    del call.__wrapped__
    return call


def _has_decisions(bag: Any) -> bool:
    """True if scikit-learn's bag of these estimators has a `decision_function`."""
    return foreign.fits_other(bag) and hasattr(foreign.sklearn_model(bag), "decision_function")


class Bagging(ensembles.BaseForest):
    """Both bagging estimators: the tree says how each is grown, and the bag what it grows from."""

    _default_depth, _keeps_draws, _family = None, False, "bags"
    estimator: Any = None
    estimator_params: Any = ()
    estimator_ = property(foreign.estimator_)
    estimators_features_ = property(ensembles.drawn_features)

    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, groups: Any = None,
        blocks: Any = None, **fit_params: Any,
    ) -> Self:  # fmt: skip
        """Grow the trees, or fit other estimators as scikit-learn does.

        Parameters
        ----------
        sample_weight : array-like of shape (n_samples,), default=None
            As in the fit of a forest. Other estimators: the chances of a row to be drawn.
        groups, blocks : array-like of shape (n_samples,), default=None
            As in the fit of a forest. Other estimators: metadata for their fit.
        **fit_params : metadata for the fit of other estimators (metadata routing)

        Raises
        ------
        ValueError : as the fit of a forest; what other estimators and scikit-learn refuse
        TypeError : `fit_params` of trees
        """
        if not foreign.fits_other(self):
            if fit_params:
                raise TypeError(f"trees take no {', '.join(fit_params)} in fit")
            return super().fit(X, y, sample_weight, groups=groups, blocks=blocks)
        labels = {"groups": groups, "blocks": blocks}
        fit_params |= {name: passed for name, passed in labels.items() if passed is not None}
        if getattr(self, "voting", "soft") != "soft":
            raise ValueError(
                "voting='hard' is for bags of gpuforest's trees: set voting='soft', or use an "
                "estimator without predict_proba, which votes"
            )
        max_samples = self.max_samples
        with foreign.fitting(self) as model:
            if max_samples is None and None not in model._parameter_constraints["max_samples"]:
                model.max_samples = 1.0  # what None means, which scikit-learn takes from 1.9 on
            model.fit(X, y, sample_weight, **fit_params)
            model.max_samples = max_samples
        return self

    @available_if(_has_decisions)  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any, **params: Any) -> Any:
        """The mean decision function of estimators that have one, as scikit-learn gives it."""
        return foreign.sklearn_model(self).decision_function(X, **params)

    def _tree_params(self) -> dict[str, Any]:
        return dict(foreign.tree_of(self).get_params(deep=False))

    def _settings(self) -> Settings:
        drawn, params = self.max_features, {p: getattr(self, p) for p in self._get_param_names()}
        # of a bag they are drawn for a tree, of a tree tried at a split
        del params["max_features"]
        settings, once = Settings.of(self._tree_params() | params), not self.bootstrap
        return replace(settings, is_single=False, without_replacement=once, features_drawn=drawn)


@foreign.or_sklearn("_bagging", f"{MEMBERS} predict_proba predict_log_proba")
@params.parameters(params.BAGGING, params.OF_BAGS)
class BaggingClassifier(Bagging, ensembles.ForestClassifier):
    """Bagged decision trees for classes, or other classifiers, bagged by scikit-learn.

    References
    ----------
    L. Breiman, "Bagging predictors", Machine Learning 24, 1996; T. Ho, "The random subspace
    method for constructing decision forests", IEEE TPAMI 20, 1998; G. Louppe and P. Geurts,
    "Ensembles on random patches", ECML 2012.
    """

    predict = routed(ensembles.ForestClassifier.predict)
    predict_proba = routed(ensembles.ForestClassifier.predict_proba)
    predict_log_proba = routed(ensembles.ForestClassifier.predict_log_proba)


@foreign.or_sklearn("_bagging", MEMBERS)
@params.parameters(params.BAGGING, params.OF_BAGS, params.NO_CLASSES)
class BaggingRegressor(Bagging, ensembles.ForestRegressor):
    """Bagged decision trees for real numbers, or other regressors, bagged by scikit-learn."""

    predict = routed(ensembles.ForestRegressor.predict)
