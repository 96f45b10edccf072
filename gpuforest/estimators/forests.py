"""Random forests (Breiman 2001)."""

from __future__ import annotations

from gpuforest.estimators import params
from gpuforest.estimators.ensembles import ForestClassifier, ForestRegressor


@params.parameters(params.FOREST)
class RandomForestClassifier(ForestClassifier):
    """A random forest for classes.

    The same data and `random_state` give the same forest, bit for bit, on every backend
    and with any number of threads.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,), or a list of them, one an output
    n_classes_ : int, or list of int
    n_outputs_ : int
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,), of frames with string names
    is_categorical_ : bool ndarray of shape (n_features_in_,), or None: no feature is
    feature_importances_ : float64 ndarray of shape (n_features_in_,)
    unbiased_feature_importances_ : float64 ndarray of shape (n_features_in_,)
        With unbiased_importances, the means of `gpuforest.oob_impurity_importance`: 0 on average
        for features that say nothing, however many values they have.
    oob_score_ : float, accuracy (or `oob_score`) over the rows that are out of some bag
    oob_decision_function_ : float64 ndarray of shape (n_samples, n_classes[, n_outputs])
        NaN where a row was never out of bag.
    oob_curve_ : Bunch of `n_estimators`, int64, and `error`, float64 of the same shape
        Out-of-bag errors of growing numbers of trees, of many rows on a sample; with oob_score or
        n_estimators="auto".
    oob_max_features_ : Bunch of `max_features` and `error`
        Of max_features="oob", what was tried.
    n_estimators_ : int, trees
    max_features_ : int, features tried at a split
    seed_ : int, what random draws came from
    criterion_ : str, what the trees were grown with
    backend_ : str, the name of the backend that grew them
    estimators_samples_ : list of int32 ndarray, the rows of each tree's bag
    forest_ : gpuforest.engine.forest.Forest
    estimators_ : list of the trees, as DecisionTreeClassifier

    Examples
    --------
    >>> from gpuforest import RandomForestClassifier
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]] * 5, ["a", "a", "b", "b"] * 5
    >>> forest = RandomForestClassifier(random_state=0).fit(X, y)
    >>> forest.predict([[0.5], [2.5]]).tolist()
    ['a', 'b']
    """


@params.parameters(params.FOREST, params.OF_NUMBERS, max_features=1 / 3)
class RandomForestRegressor(ForestRegressor):
    """A random forest for real numbers.

    The same data and `random_state` give the same forest, bit for bit, on every backend
    and with any number of threads.

    Attributes
    ----------
    oob_score_ : float, R^2 (or `oob_score`) over the rows that are out of some bag
    oob_prediction_ : float64 ndarray of shape (n_samples[, n_outputs])
        NaN where a row was never out of bag.
    estimators_ : list of the trees, as DecisionTreeRegressor
    others : as of `RandomForestClassifier`, without classes and `oob_decision_function_`
    """
