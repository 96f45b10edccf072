"""scikit-learn's own checks, the legacy ones too: all estimators on one backend."""

import pytest
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
    return dict.fromkeys(
        (
            "check_sample_weight_equivalence_on_dense_data",
            "check_sample_weight_equivalence_on_sparse_data",
        ),
        why,
    )


@parametrize_with_checks(list(estimators()), legacy=True, expected_failed_checks=expected)
@pytest.mark.filterwarnings("ignore")  # the checks warn on purpose
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)
