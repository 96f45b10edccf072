"""What a report tells: scores as scikit-learn's, intervals, importances, drift, leaks."""

import numpy as np
import pytest
from scipy.stats import binomtest
from sklearn import metrics
from sklearn.inspection import partial_dependence

import gpuforest
from gpuforest.tools.report import results
from gpuforest.tools.report.rows import Rows, aligned, drift
from gpuforest.tools.report.scores import class_results, number_results, wilson

RNG = np.random.default_rng(0)
N = 300
X = RNG.normal(size=(N, 4))
CLASSES = np.array(["a", "b", "c"])[np.digitize(X[:, 0] + RNG.normal(size=N) / 2, [-0.5, 0.8])]
NUMBERS = 3 * X[:, 0] - X[:, 1] + RNG.normal(size=N)


def forest(name="RandomForestClassifier", **params):
    kind = getattr(gpuforest, name)
    return kind(10, random_state=0, backend="numpy", **params)


@pytest.mark.parametrize(("right", "n"), [(0, 5), (3, 7), (50, 50), (812, 1000)])
def test_wilson_is_that_of_scipy(right, n):
    expected = binomtest(right, n).proportion_ci(method="wilson")
    # another order of the same operations
    assert wilson(right, n) == pytest.approx((expected.low, expected.high), abs=1e-12)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_scores_of_classes_are_those_of_scikit_learn(n_classes):
    y = CLASSES if n_classes == 3 else np.where(CLASSES == "a", "a", "b")
    model = forest(max_depth=3).fit(X[::2], y[::2])
    proba, truth = model.predict_proba(X[1::2]), y[1::2]
    found = class_results(aligned(model.classes_, truth), proba)
    scores = {score.name: score for score in found.scores}
    predicted = model.predict(X[1::2])
    if n_classes == 2:
        auc = metrics.roc_auc_score(truth, proba[:, 1])
        area, brier = "ROC AUC", metrics.brier_score_loss(truth == "b", proba[:, 1])
    else:
        auc = metrics.roc_auc_score(truth, proba, multi_class="ovr")
        area = "ROC AUC, mean of one class against the others"
        brier = np.mean(((truth[:, None] == model.classes_) - proba) ** 2) * 3
    expected = {
        "accuracy": metrics.accuracy_score(truth, predicted),
        "balanced accuracy": metrics.balanced_accuracy_score(truth, predicted),
        area: auc,
        "log loss": metrics.log_loss(truth, proba),
        "Brier score": brier,
    }
    for name, value in expected.items():
        # sums in another order
        assert scores[name].value == pytest.approx(value, rel=1e-9), name
        assert scores[name].low < value < scores[name].high
    assert [s.name for s in found.scores if s.less] == ["log loss", "Brier score"]
    assert np.array_equal(found.confusion, metrics.confusion_matrix(truth, predicted))
    assert len(found.curves) == (1 if n_classes == 2 else 3)
    curve = found.curves[0]
    truth = truth == curve.name
    assert curve.auc == metrics.roc_auc_score(truth, proba[:, model.classes_ == curve.name][:, 0])
    mean, share, low, high, n = curve.calibration
    assert n.sum() == len(truth)
    assert (share * n).sum() == pytest.approx(truth.sum())  # products of quotients
    assert ((low <= share) & (share <= high)).all()
    assert (np.diff(mean) > 0).all()


def test_scores_of_numbers_are_those_of_scikit_learn():
    model = forest("RandomForestRegressor").fit(X[::2], NUMBERS[::2])
    y, predicted = NUMBERS[1::2], model.predict(X[1::2])
    found = number_results(y, predicted)
    expected = [
        metrics.r2_score(y, predicted),
        metrics.mean_absolute_error(y, predicted),
        metrics.root_mean_squared_error(y, predicted),
    ]
    for score, value in zip(found.scores, expected, strict=True):
        assert score.value == pytest.approx(value, rel=1e-9)  # sums in another order
        assert score.low < value < score.high
    assert np.array_equal(found.residuals, y - predicted)
    assert found.bands.shape == (4, 10)
    assert (np.diff(found.bands[0]) > 0).all()


@pytest.mark.parametrize(
    ("known", "y", "names", "codes"),
    [
        ([0, 1], [1.0, 0.0, 1.5], [0, 1, 1.5], [1, 0, 2]),
        ([False, True], [0, 1, 2], [0, 1, 2], [0, 1, 2]),
        (["ab", "no"], ["ab", "abc", "no"], ["ab", "abc", "no"], [0, 1, 2]),  # compared whole
    ],
)
def test_labels_beside_other_types(known, y, names, codes):
    found = aligned(np.array(known), np.array(y))
    assert found.names.tolist() == names
    assert found.names[found.known].tolist() == known
    assert found.codes.tolist() == codes
    assert found.names[found.unknown].tolist() == [label for label in names if label not in known]


def test_permutation_decreases_are_those_of_permuted_rows():
    model = forest("RandomForestRegressor").fit(X[:200], NUMBERS[:200])
    rows = Rows.read(model, X[200:], NUMBERS[200:])
    found = results.permuted(rows, model.feature_importances_)
    assert found.features[:2].tolist() == [0, 1]
    assert found.score == pytest.approx(model.score(X[200:], NUMBERS[200:]))  # another unit
    assert found.mean[0] > 4 * found.std[0] > 0
    again = results.permuted(rows, model.feature_importances_)
    assert np.array_equal(found.mean, again.mean)


def test_dependence_is_that_of_scikit_learn():
    model = forest("RandomForestRegressor").fit(X[:200], NUMBERS[:200])
    found = results.dependence(Rows.read(model, X[200:], NUMBERS[200:]), 0)
    expected = partial_dependence(
        model, X[200:], [0], custom_values={0: found.values}, method="brute"
    )
    # means of the same predictions
    assert found.means[:, 0] == pytest.approx(expected["average"][0], rel=1e-12)
    assert found.shares is None


@pytest.mark.parametrize(
    ("name", "classes"),
    [
        ("RandomForestClassifier", True),
        ("ExtraTreesRegressor", False),
        ("AdaBoostClassifier", True),
        ("HistGradientBoostingClassifier", True),
    ],
)
def test_errors_by_trees_end_at_that_of_all(name, classes):
    params = {"max_iter" if "Hist" in name else "n_estimators": 9, "random_state": 0}
    y = CLASSES if classes else NUMBERS
    model = getattr(gpuforest, name)(**params).fit(X[:200], y[:200])
    n, errors = results.staged_error(Rows.read(model, X[200:], y[200:]))
    assert n[0] == 1
    assert n[-1] == getattr(model, "n_iter_", 9)
    # R² is computed in another order
    assert errors[-1] == pytest.approx(1 - model.score(X[200:], y[200:]), abs=1e-12)
    if hasattr(model, "staged_score"):
        stages = list(model.staged_score(X[200:], y[200:]))
        assert errors.tolist() == pytest.approx([1 - stages[i - 1] for i in n])


def test_unknown_categories():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"kind": np.where(X[:, 0] > 0, "p", "q"), "x": X[:, 1]})
    model = forest().fit(frame, CLASSES)
    frame.loc[:29, "kind"] = "new"
    found = drift(Rows.read(model, frame, None))
    assert found.unknown[0] == 0.1
    assert np.isnan(found.unknown[1])
    assert np.isnan(found.beyond[0])
