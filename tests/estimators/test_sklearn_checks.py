"""scikit-learn's own checks, the legacy ones too: all estimators on one backend."""

from dataclasses import asdict

import pytest
import sklearn.ensemble
import sklearn.tree
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks

import gpuforest as gf

FORESTS = [
    gf.RandomForestClassifier, gf.RandomForestRegressor, gf.ExtraTreesClassifier,
    gf.ExtraTreesRegressor, gf.RandomTreesEmbedding, gf.RandomForestQuantileRegressor,
    gf.ExtraTreesQuantileRegressor,
]  # fmt: skip


def estimators():
    for tree, bag, boost in (
        (gf.DecisionTreeClassifier, gf.BaggingClassifier, gf.AdaBoostClassifier),
        (gf.DecisionTreeRegressor, gf.BaggingRegressor, gf.AdaBoostRegressor),
    ):
        yield tree(backend="numba")
        yield bag(tree(backend="numba"), 5)
        yield boost(n_estimators=5, backend="numba")
    for boost in (gf.HistGradientBoostingClassifier, gf.HistGradientBoostingRegressor):
        yield boost(max_iter=5, min_samples_leaf=5, backend="numba")
    for forest in FORESTS:
        yield forest(5, backend="numba")
    yield gf.IsolationForest(n_estimators=5, backend="numba")
    yield gf.RandomForestClassifier(5, bootstrap=False, backend="numba")
    yield gf.RandomForestRegressor(5, bootstrap=False, backend="numba")


def expected(estimator):
    """scikit-learn declares the same of its own: as many rows are drawn as X has, by their
    weight, so that weights and repeated rows are equal in the mean only."""
    draws = getattr(estimator, "bootstrap", False) or isinstance(
        estimator, (gf.AdaBoostRegressor, gf.IsolationForest)
    )
    counts = hasattr(estimator, "max_iter")
    if not draws and not counts:
        return {}
    why = "rows are drawn by their weight, as many as X has rows: equal in the mean only"
    if counts:
        why = "min_samples_leaf counts rows, whatever they weigh"
    rows = ("dense", "sparse")
    return {f"check_sample_weight_equivalence_on_{kind}_data": why for kind in rows}


@parametrize_with_checks(list(estimators()), legacy=True, expected_failed_checks=expected)
@pytest.mark.filterwarnings("ignore")  # the checks warn on purpose
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


# what our estimators take besides
MORE = {
    "Bagging": {"multi_output": True, "multi_label": True},
    "AdaBoost": {"allow_nan": True},
    "HistGradientBoosting": {"sparse": True},
}


@pytest.mark.parametrize("estimator", list(estimators()), ids=lambda e: type(e).__name__)
def test_tags_are_those_of_scikit_learn(estimator):
    name = type(estimator).__name__
    theirs = getattr(sklearn.ensemble, name, getattr(sklearn.tree, name, None))
    if theirs is None or name == "RandomTreesEmbedding":  # which has no target
        return
    more = next((tags for start, tags in MORE.items() if name.startswith(start)), {})
    expected = asdict(get_tags(theirs()))
    for group in ("target_tags", "classifier_tags", "input_tags"):
        known = expected[group] or {}
        expected[group] = known | {n: v for n, v in more.items() if n in known} or None
    assert asdict(get_tags(estimator)) == expected
