"""Class weights: what they equal, what they add up to, and what is refused."""

import numpy as np
import pytest
from engine import same_forest
from sklearn.datasets import load_wine
from sklearn.ensemble import RandomForestClassifier as SklearnForest
from sklearn.utils.class_weight import compute_class_weight, compute_sample_weight

from gpuforest import DecisionTreeClassifier, RandomForestClassifier

X, y = load_wine(return_X_y=True)
WEIGHTS = {0: 1, 1: 3, 2: 2}


def grown(backend, **params):
    return RandomForestClassifier(6, random_state=0, backend=backend, **params)


@pytest.mark.parametrize("class_weight", [WEIGHTS, {0: 0.3, 1: 1.7, 2: 5}, "balanced"])
def test_without_bootstrap_they_are_sample_weights(backend, class_weight):
    own = np.linspace(0.5, 2, len(y))
    for sample_weight in (None, own):
        for model in (DecisionTreeClassifier(backend=backend), grown(backend, bootstrap=False)):
            weights = compute_sample_weight(class_weight, y)
            if class_weight == "balanced" and hasattr(model, "bootstrap"):  # forests add weights
                kinds = np.unique(y)
                found = compute_class_weight(
                    "balanced", classes=kinds, y=y, sample_weight=sample_weight
                )
                weights = found[y]
            product = weights if sample_weight is None else weights * sample_weight
            model.set_params(random_state=0)
            plain = model.fit(X, y, product).forest_
            model.set_params(class_weight=class_weight)
            assert same_forest(model.fit(X, y, sample_weight).forest_, plain)


def test_with_bootstrap_the_bags_stay_and_classes_count_more(backend):
    plain, weighted = grown(backend).fit(X, y), grown(backend, class_weight=WEIGHTS).fit(X, y)
    for t in range(6):
        drawn = plain.forest_.node_sums(t, t + 1)[0]
        assert np.array_equal(weighted.forest_.node_sums(t, t + 1)[0], drawn * [1, 3, 2])


@pytest.mark.parametrize(
    ("class_weight", "message"),
    [
        ({0: 1, 1: -1, 2: 1}, ">= 0"), ({0: 1, 1: np.nan, 2: 1}, ">= 0"),
        ({0: 0, 1: 0, 2: 0}, "one above 0"), ({5: 1}, "not in class_weight"),
        ([{0: 1}], "several outputs"), ("even", "class_weight"),
    ],
)  # fmt: skip
def test_bad_ones_are_refused(class_weight, message):
    with pytest.raises(ValueError, match=message):
        grown("numpy", class_weight=class_weight).fit(X, y)


def test_a_class_of_weight_zero_is_not_drawn(backend):
    weighted = grown(backend, class_weight={0: 1, 1: 0, 2: 2}, max_samples=90)
    weighted.fit(X, y)
    assert all((y[rows] != 1).all() for rows in weighted.estimators_samples_)
    assert not weighted.predict_proba(X)[:, 1].any()
    same = grown(backend, class_weight={0: 1, 1: 1, 2: 2}, max_samples=90).fit(X, y, y != 1)
    assert same_forest(weighted.forest_, same.forest_)
    with pytest.raises(ValueError, match="leave no row any weight"):
        weighted.fit(X, y, y == 1)


@pytest.mark.parametrize("weighted", [False, True])
def test_balanced_subsample_of_several_outputs_is_scikit_learns(backend, weighted):
    both = np.stack([y, np.arange(len(y)) % 7 == 0], axis=1)
    forest = grown(backend, class_weight="balanced_subsample")
    forest.fit(X, both, 1 + y if weighted else None)
    for t, rows in enumerate(forest.estimators_samples_):
        each = compute_sample_weight("balanced", both, indices=rows)[rows]
        root = forest.forest_.node_sums(t, t + 1)[0]
        for k, c in ((1, both[rows, 0] == 0), (4, both[rows, 1] == 0)):
            # each draw's weight is rounded: by half a unit in some hundred thousand
            assert root[k] / root[0] == pytest.approx(each[c].sum() / each.sum(), rel=1e-5)


def test_sklearns_name_for_them():
    for kind in (RandomForestClassifier, SklearnForest):
        forest = kind(class_weight="balanced")
        forest.n_outputs_ = 1
        codes, weights = forest._validate_y_class_weight(y[:, None] + 5, 1 + y)
        assert np.array_equal(codes[:, 0], y)
        totals = np.bincount(y, 1 + y)
        assert np.allclose(weights, (totals.sum() / (3 * totals))[y])
        forest.set_params(class_weight="balanced_subsample")
        assert forest._validate_y_class_weight(y[:, None], None)[1] is None
