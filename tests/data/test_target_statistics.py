"""Target statistics: by their definition, and the models that are made of them."""

import math
import pickle
import warnings
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from engine import same_forest
from saved import save_tampered
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import gpuforest as gf
from gpuforest.backends.numpy import HOST
from gpuforest.common import hashing
from gpuforest.core.nodes import leaf_rows
from gpuforest.core.target import CheckedTarget
from gpuforest.data import target_statistics
from gpuforest.data.target_statistics import OrderedTarget, class_scores, prior_of
from gpuforest.growing.edges import bin_matrix

RNG = np.random.default_rng(7)
N = 1500
TOWN = RNG.integers(0, 60, N)
NAMES = np.array([f"town {k}" for k in range(60)])
SIZES = RNG.normal(size=(N, 2))
LEVEL = RNG.normal(size=60)[TOWN] + SIZES[:, 0]
FRAME = pd.DataFrame({"town": NAMES[TOWN], "a": SIZES[:, 0], "b": SIZES[:, 1]})
Y, Z = (LEVEL + RNG.normal(size=N) > 0).astype(int), LEVEL + RNG.normal(size=N)
SIX = np.array(list("abcdef"))[np.digitize(Z, [-2, -1, 0, 1, 2])]
WEIGHTS = RNG.integers(0, 4, N).astype(float)
BY_TARGET = {"categorical_split": "ordered_target", "random_state": 0}
FORESTS = (
    (gf.RandomForestClassifier(5, **BY_TARGET), Y),
    (gf.RandomForestRegressor(5, criterion="absolute_error", **BY_TARGET), Z),
    (gf.ExtraTreesClassifier(5, **BY_TARGET), SIX),
    (gf.HistGradientBoostingClassifier(max_iter=5, **BY_TARGET), SIX),
    (gf.HistGradientBoostingRegressor(max_iter=5, **BY_TARGET), Z),
)


def by_hash(n, seed):
    """The rows in their order, one by one."""
    key = hashing.hash_at(np.full(1, seed, np.uint64), hashing.ORDERED)
    hashes = [int(hashing.hash_at(key, np.array([i], np.uint64))[0]) for i in range(n)]
    return sorted(range(n), key=hashes.__getitem__)


def by_definition(target, codes, n):
    """The numbers of training rows, in fractions, row by row, those that judge them, and the means
    of n categories."""
    weights, (integers, scale) = target.weight, target.integers(codes, n)
    known = codes >= 0
    w, s, squares = (
        np.bincount(codes[known], (weights * f)[known], n)
        for f in (np.ones(len(codes)), integers, integers.astype(np.float64) ** 2)
    )
    n_rows = np.count_nonzero(weights[known])
    prior = prior_of(w.astype(int), s.astype(int), squares.sum(), n_rows)

    def mean(rows):
        weight, total = (sum(map(int, of)) for of in (weights[rows], (weights * integers)[rows]))
        return np.float32(Fraction(prior[1] + total, prior[0] + weight) / int(scale))

    counted = np.flatnonzero(weights)
    place = {int(counted[i]): at for at, i in enumerate(by_hash(len(counted), target.seed))}
    groups = np.arange(len(codes)) if target.groups is None else target.groups
    of_group = {}
    for row, at in place.items():
        of_group[groups[row]] = min(at, of_group.get(groups[row], at))
    where = np.array([of_group.get(group, len(codes)) for group in groups])
    values, judged = np.full((2, len(codes)), np.nan, np.float32)
    for row in np.flatnonzero(known):
        values[row] = mean((codes == codes[row]) & (where < where[row]))
    for c in range(n):
        same = codes == c
        places = np.sort(where[same & (weights > 0)])
        part = np.searchsorted(places, where) // max(1, math.isqrt(len(places) // 2))
        for row in np.flatnonzero(same):
            others = same & (part != part[row])
            judged[row] = mean(others)
            assert groups[row] not in groups[others & (weights > 0)]
    return values, judged, tuple(float(mean(codes == c)) for c in range(n))


@pytest.mark.parametrize("target", [Y, Z, SIX], ids=["classes", "numbers", "six"])
@pytest.mark.parametrize("weights", [None, WEIGHTS.astype(np.int32)], ids=["alone", "weighted"])
@pytest.mark.parametrize("n_groups", [None, 9, 400])
def test_a_number_holds_no_target_of_its_group(target, weights, n_groups):
    codes = np.where(RNG.random(400) < 0.05, -1, TOWN[:400] % 15)
    weights = None if weights is None else weights[:400]
    groups = None if n_groups is None else RNG.integers(0, n_groups, 400)
    y, n_classes = target[:400], 0
    if target is not Z:
        classes, y = np.unique(y, return_inverse=True)
        n_classes = len(classes)
    made = OrderedTarget(y, n_classes, weights, 3, groups, judges=True)
    values, judged, statistic = made.statistic(codes, tuple(NAMES[:15]))
    expected, left_out, means = by_definition(made, codes, 16)
    assert np.array_equal(values, expected, equal_nan=True)
    assert np.array_equal(judged, left_out, equal_nan=True)
    assert statistic == (tuple(NAMES[:15]), means)
    if n_groups is None:  # groups of one row each change nothing, whatever their labels
        made = OrderedTarget(y, n_classes, weights, 3, RNG.permutation(400))
        ones = made.statistic(codes, tuple(NAMES[:15]))[0]
        assert np.array_equal(ones, values, equal_nan=True)


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("target", [Y, Z, SIX], ids=["classes", "numbers", "six"])
def test_rows_of_weight_zero_are_not_there(target, grouped):
    counted, groups = WEIGHTS > 0, RNG.integers(0, 300, N) if grouped else None
    y, n_classes = target, 0
    if target is Z:
        y = np.where(counted, Z, 1e300)
    else:
        classes, y = np.unique(target, return_inverse=True)
        y, n_classes = np.where(counted, y, len(classes)), len(classes) + 1
    integers = WEIGHTS.astype(np.int32)
    made = OrderedTarget(y, n_classes, integers, 3, groups, judges=True)
    found, judged, all_rows = made.statistic(TOWN, tuple(NAMES))
    groups, n_classes = groups[counted] if grouped else None, n_classes - (target is not Z)
    made = OrderedTarget(y[counted], n_classes, integers[counted], 3, groups, judges=True)
    expected, left_out, statistic = made.statistic(TOWN[counted], tuple(NAMES))
    assert np.array_equal(found[counted], expected)
    assert np.array_equal(judged[counted], left_out)
    assert all_rows == statistic
    assert len(np.unique(found)) > 100


@pytest.mark.parametrize(("factor", "shift"), [(2.0**900, 0), (2.0**-900, 0), (1, 2**40)])
def test_the_unit_of_the_target_does_not_matter(factor, shift):
    y, codes = np.round(Z * 64), TOWN.astype(np.int64)
    plain, *_ = OrderedTarget(y, 0, None, seed=3).statistic(codes, tuple(NAMES))
    assert len(np.unique(plain)) > 1000
    assert (np.abs(plain) <= 1).all()
    other, *_ = OrderedTarget(y * factor + shift, 0, None, seed=3).statistic(codes, tuple(NAMES))
    if shift:
        assert np.corrcoef(plain, other)[0, 1] > 1 - 1e-9
    else:
        assert np.array_equal(plain, other)


def test_the_prior_and_scores_of_classes_by_hand():
    # two categories of two rows: 0 4 | 4 8. Means 2 and 6, of all 4. Within: 4 * 2^2 / 2 = 8.
    # Between: 2 * 2 * 2^2 / 1 = 16, which chance makes
    assert prior_of(np.array([2, 2]), np.array([4, 12]), 96.0, 4) is None
    # a hundred times 4 4 and 8 8, and 5 instead of one 4
    weights, sums = np.array([200, 200]), np.array([801, 1600])
    squares = 199 * 16 + 25 + 200 * 64.0
    within = (squares - 801**2 / 200 - 1600**2 / 200) / 398
    between = 200 * ((801 / 200 - 2401 / 400) ** 2 + (8 - 2401 / 400) ** 2)
    rows = within / ((between - within) / 200)
    assert 0 < rows < 1
    assert prior_of(weights, sums, squares, 400) == (1, 6)  # one row, of the mean 6.0025
    assert prior_of(weights[:1], sums[:1], squares, 200) is None
    assert prior_of(np.ones(4, int), np.arange(4), 14.0, 4) is None  # no row repeats a category
    # the shares of "b" and "c" rise together where that of "a" falls
    table = np.array([[8.0, 1, 1], [2, 4, 4], [0, 0, 0]])
    assert class_scores(table).tolist() in ([1024, -512, -512], [-1024, 512, 512])
    assert class_scores(np.zeros((3, 2))).tolist() == [0, 0]
    assert class_scores(np.array([[1.0, 3], [2, 6]])).tolist() == [0, 0]  # equal shares


@pytest.mark.parametrize(("model", "y"), FORESTS, ids=lambda case: type(case).__name__)
def test_models(model, y, tmp_path):
    """One model on two backends, in a file and in a pickle; categories matter, and unknown ones
    have the mean."""
    train, test = slice(1000), slice(1000, N)
    with_towns, without = (
        clone(model).fit(frame[train], y[train]).score(frame[test], y[test])
        for frame in (FRAME, FRAME[["a", "b"]])
    )
    assert with_towns > without + 0.05
    found = clone(model).fit(FRAME, y)
    assert found.is_categorical_.tolist() == [True, False, False]
    if getattr(model, "criterion", "") != "absolute_error":
        other = clone(model).set_params(backend="numpy").fit(FRAME, y)
        assert same_forest(found.forest_, other.forest_)
        assert found.forest_.edges.statistics == other.forest_.edges.statistics
    found.save(tmp_path / "model")
    loaded = gf.load(tmp_path / "model")
    rows = pd.concat([FRAME.head(50), FRAME.head(2).assign(town=["nowhere", None])])
    assert np.array_equal(loaded.predict(rows), found.predict(rows))
    assert "town" in str(found.report(rows.head(50), y[:50]))
    shap = found.shap_values(rows)
    total = shap.sum(axis=1) + found.expected_value_
    if hasattr(found, "predict_proba") and not hasattr(found, "max_iter"):
        assert np.allclose(total.reshape(len(rows), -1)[:, -1], found.predict_proba(rows)[:, -1])
    _, statistic = next(iter(found.forest_.edges.statistics.items()))
    numbers = gf.category_codes(found, rows)[:, 0]
    assert numbers[50] == statistic.values[-1]
    assert np.isnan(numbers[51])


def test_importances_out_of_bag_from_binned_data_are_those_of_the_fit(tmp_path):
    blocks = [(FRAME[a:b], Z[a:b]) for a, b in ((0, 10), (10, 700), (700, N))]
    gf.BinnedData.from_blocks(blocks, path=tmp_path / "data", **BY_TARGET)
    data = gf.BinnedData.load(tmp_path / "data")
    forest = gf.RandomForestRegressor(20, unbiased_importances=True, **BY_TARGET).fit(FRAME, Z)
    assert same_forest(clone(forest).fit(data).forest_, forest.forest_)
    found = gf.oob_impurity_importance(forest, data, data.y).importances_mean
    assert np.array_equal(found, forest.unbiased_feature_importances_)
    for table in (FRAME, FRAME.assign(town=FRAME.town.astype("category"))):
        from_frame = gf.oob_impurity_importance(forest, table, Z).importances_mean
        assert np.array_equal(from_frame, found)
    pairs = (FRAME, Z), (data, data.y)
    by_frame, by_data = (gf.oob_permutation_importance(forest, *pair) for pair in pairs)
    assert np.array_equal(by_frame.importances, by_data.importances)
    with pytest.raises(ValueError, match="statistics of X and y are not those of the forest"):
        gf.oob_impurity_importance(forest, FRAME, RNG.permutation(Z))


def hand_worked(groups):
    """The four rows of the table in data/target_statistics.py, put where the hashes order them, and
    their target; a prior of 1 of weight 2."""
    rows = np.argsort(np.array(by_hash(4, 3)))
    weights, y = np.array([1, 1, 2, 1], np.int32)[rows], np.array([0, 1, 1, 0])[rows]
    of_rows = np.array([0, 1, 0, 1])[rows] if groups else None
    return rows, OrderedTarget(y, 2, weights, 3, of_rows, judges=True)


@pytest.mark.parametrize(("groups", "numbers", "left_out"), [
    (True, [1 / 2, 3 / 5, 1 / 2, 3 / 5], [2 / 4, 3 / 5, 2 / 4, 3 / 5]),
    (False, [1 / 2, 1 / 3, 2 / 4, 4 / 6], [4 / 6, 3 / 6, 2 / 5, 4 / 6]),
])  # fmt: skip
def test_the_table_by_hand(groups, numbers, left_out, monkeypatch):
    monkeypatch.setattr(target_statistics, "prior_of", lambda *_: (2, 1))
    rows, target = hand_worked(groups)
    found, judged, statistic = target.statistic(np.zeros(4, np.int64), ("a",))
    assert found.tolist() == np.float32(numbers)[rows].tolist()
    assert judged.tolist() == np.float32(left_out)[rows].tolist()
    assert statistic.values == tuple(np.float32([4 / 7, 1 / 2]).tolist())


def predictions_one_by_one(forest, X, y, seed):
    """Out-of-bag predictions, row by row, from tables in which the number of a row is its own."""
    target = OrderedTarget.of(CheckedTarget(y), None, seed, None, judges=True)
    known = forest.forest_.edges.statistics[0].categories
    codes = pd.Categorical(X.town, known).codes.astype(np.int64)
    table = np.column_stack([target.statistic(codes, known)[1], X[["a", "b"]]])
    matrix = bin_matrix(table, forest.forest_.edges, HOST)
    drawn = np.stack([np.bincount(s, minlength=len(y)) > 0 for s in forest.estimators_samples_], 1)
    leaves = HOST.apply(forest.forest_, matrix.codes) + forest.forest_.tree_offsets[:-1]
    values = forest.forest_.values[leaf_rows(forest.forest_.nodes[leaves]), 0]
    return np.ma.array(values, mask=drawn).mean(axis=1)


@pytest.mark.parametrize("block", [None, 400])
def test_rows_out_of_bag_are_judged_without_themselves(block, monkeypatch):
    """On two backends, by blocks of rows or not, from a table or from binned data; missing values
    too, and after a warm start."""
    if block:
        monkeypatch.setattr("gpuforest.explain.oob.block_rows", lambda *_: block)
    X = FRAME.assign(town=FRAME.town.where(RNG.random(N) > 0.05))
    asked = {"oob_score": True, "unbiased_importances": True, **BY_TARGET}
    forest = gf.RandomForestRegressor(20, **asked).fit(X, Z)
    expected = predictions_one_by_one(forest, X, Z, 0)
    assert np.allclose(forest.oob_prediction_, expected, rtol=1e-12)
    data = gf.BinnedData.from_blocks([(X, Z)], **BY_TARGET)
    more = gf.RandomForestRegressor(5, warm_start=True, **BY_TARGET).fit(X, Z)
    more.set_params(n_estimators=20, oob_score=True, unbiased_importances=True).fit(X, Z)
    on_numpy = clone(forest).set_params(backend="numpy").fit(X, Z)
    for other in (on_numpy, clone(forest).fit(data), more):
        assert other.oob_score_ == forest.oob_score_
        assert np.array_equal(other.oob_prediction_, forest.oob_prediction_)
        assert np.array_equal(
            other.unbiased_feature_importances_, forest.unbiased_feature_importances_
        )
    plain = clone(forest).set_params(oob_score=False, unbiased_importances=False).fit(X, Z)
    assert same_forest(plain.forest_, forest.forest_)
    curve = forest.oob_curve_
    assert curve.error[-1] == 1 - forest.oob_score_


@pytest.mark.parametrize("how", [{"n_estimators": "auto", "max_estimators": 60},
                                 {"max_features": "oob", "min_samples_leaf": "oob"}])  # fmt: skip
def test_choices_are_made_by_rows_without_themselves(how):
    """The last error is that of a forest of the same trees; binned data choose the same."""
    how = {"n_estimators": 48, "random_state": 0, **how, "categorical_split": "ordered_target"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = gf.RandomForestClassifier(**how, oob_score=True).fit(FRAME, Y)
        data = gf.BinnedData.from_blocks([(FRAME, Y)], **BY_TARGET)
        binned = gf.RandomForestClassifier(**how).fit(data)
    assert same_forest(found.forest_, binned.forest_)
    if how["n_estimators"] == "auto":
        assert found.oob_curve_.error[-1] == 1 - found.oob_score_
        assert found.oob_curve_.error.tolist() == binned.oob_curve_.error.tolist()
    else:
        assert found.oob_parameters_.error.tolist() == binned.oob_parameters_.error.tolist()


def test_quantile_forests_judge_rows_without_themselves(tmp_path):
    forest = gf.RandomForestQuantileRegressor(20, oob_score=True, **BY_TARGET).fit(FRAME, Z)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        means = forest.predict(FRAME, "mean", oob_score=True)
    weighted = {"weighted_quantile": False, "aggregate_leaves_first": False}
    means = forest.predict(FRAME, "mean", oob_score=True, **weighted)
    assert np.allclose(means, forest.oob_prediction_)
    forest.save(tmp_path / "model")
    rows = RNG.permutation(N)[:50]
    for same in (gf.load(tmp_path / "model"), pickle.loads(pickle.dumps(forest))):
        some = same.predict(FRAME.iloc[rows], "mean", oob_score=True, indices=rows, **weighted)
        assert np.array_equal(some, means[rows])
    with pytest.warns(UserWarning, match="not identical to training samples"):
        forest.predict(FRAME.assign(a=0.0), oob_score=True)
    vars(forest)["_rows_"] = replace(forest._rows_, judged=None)
    with pytest.raises(ValueError, match="this file does not hold how training rows"):
        forest.predict(FRAME, oob_score=True)


def test_boruta_judges_by_the_same_rows_from_tables_and_binned_data():
    noise = FRAME.assign(noise=RNG.normal(size=N))
    forest = gf.RandomForestRegressor(20, max_depth=5, **BY_TARGET)
    data = gf.BinnedData.from_blocks([(noise, Z)], **BY_TARGET)
    found, binned = (
        gf.BorutaSelector(forest, max_iter=5, random_state=0).fit(*given)
        for given in ((noise, Z), (data,))
    )
    assert np.array_equal(found.importance_history_, binned.importance_history_)
    plain = gf.BorutaSelector(forest, max_iter=5, random_state=0).fit(replace(data, judged={}))
    assert found.importance_history_[0][0] > plain.importance_history_[0][0]


def test_auto_takes_statistics_of_many_categories_and_identifiers_say_nothing():
    frame = FRAME.assign(few=NAMES[TOWN % 5])
    forest = gf.RandomForestClassifier(3, categorical_split="auto", random_state=0).fit(frame, Y)
    assert [*forest.forest_.edges.statistics] == [0]
    assert [*forest.forest_.edges.categories] == [3]
    assert "mean target of town <=" in gf.export_text(forest, 0)
    few = frame[["few", "a"]]
    plain = gf.RandomForestClassifier(3, random_state=0).fit(few, Y)
    auto = gf.RandomForestClassifier(3, categorical_split="auto", random_state=0).fit(few, Y)
    assert same_forest(plain.forest_, auto.forest_)
    boosted = gf.HistGradientBoostingClassifier(categorical_split="auto").fit(frame, Y)
    assert [*boosted.forest_.edges.statistics] == [0]
    noise = FRAME.assign(id=[f"row {i}" for i in range(N)], noise=RNG.permutation(NAMES[TOWN]))
    forest = gf.RandomForestClassifier(5, **BY_TARGET).fit(noise, Y)
    assert forest.feature_importances_[3:].tolist() == [0, 0]
    assert forest.forest_.edges.statistics[3].categories == ()


def test_boosting_judges_by_categories_that_it_knows_from_the_training_rows():
    model = gf.HistGradientBoostingRegressor(early_stopping=True, max_iter=5, **BY_TARGET)
    train, validation = FRAME[:1000], FRAME[1000:]
    found = clone(model).fit(train, Z[:1000], X_val=validation, y_val=Z[1000:])
    alone = clone(model).set_params(early_stopping=False).fit(train, Z[:1000])
    assert same_forest(found.forest_, alone.forest_)
    error = ((alone.predict(validation) - Z[1000:]) ** 2).mean() / 2
    assert found.validation_score_[-1] == pytest.approx(-error)
    inside = clone(model).fit(FRAME, Z)
    assert inside.forest_.edges.statistics != found.forest_.edges.statistics
    noise = FRAME.assign(town=[f"row {i}" for i in range(N)])
    without = clone(model).fit(noise[["a", "b"]], Z)
    assert np.array_equal(clone(model).fit(noise, Z).validation_score_, without.validation_score_)


def test_refusals(monkeypatch):
    forest, two = gf.RandomForestClassifier(2, **BY_TARGET), np.stack([Y, Y], axis=1)
    data = gf.BinnedData.from_blocks([(FRAME, Y)], **BY_TARGET)
    boosted, numbers = gf.HistGradientBoostingClassifier, gf.RandomForestRegressor
    fitted = clone(forest).fit(data)
    for call, message in (
        (lambda: forest.fit(FRAME, two), "of one output: pass categorical_split='subset'"),
        (lambda: gf.BinnedData.from_blocks([FRAME], **BY_TARGET), "needs y: pass it with the bl"),
        (lambda: gf.RandomForestClassifier(random_state=0).fit(data), "t='subset' of the estimat"),
        (lambda: forest.fit(data, 1 - Y), "pass no other y to fit"),
        (lambda: forest.fit(data, sample_weight=WEIGHTS), "pass no other sample_weight to fit"),
        (lambda: boosted(**BY_TARGET).fit(data, groups=TOWN), "pass no other groups to fit"),
        (lambda: numbers(2, **BY_TARGET).fit(data), "classes, and the estimator predicts numbers"),
        (lambda: gf.export_python(fitted), "not written as Python"),
        (fitted.to_sklearn, "categorical features"),
        (lambda: gf.IsolationForest(categorical_split="ordered_target").fit(FRAME), "cal_split"),
    ):
        with pytest.raises(ValueError, match=message):
            call()
    monkeypatch.setattr("gpuforest.data.categories.MOST_NUMBERED", 20)
    with pytest.raises(ValueError, match="has 60 categories; at most 20 are supported"):
        forest.fit(FRAME, Y)
    assert target_statistics.FROM == 30  # what the documentation says


def test_an_exported_model_takes_the_categories_or_their_numbers():
    treelite = pytest.importorskip("treelite", reason="needs pip install 'gpuforest[checks]'")
    model = gf.RandomForestRegressor(5, **BY_TARGET).fit(FRAME, Z)
    table = gf.category_codes(model, FRAME)
    found = treelite.gtil.predict(model.to_treelite(), table)
    assert np.allclose(found.ravel(), model.predict(FRAME), rtol=1e-12)
    assert "the mean target of its category" in gf.export_c(model)
    onnxruntime = pytest.importorskip("onnxruntime", reason="needs pip install 'gpuforest[checks]'")
    frame = FRAME.assign(few=NAMES[TOWN % 5])
    for names in (["town", "a"], ["town", "few", "a"]):
        model = gf.RandomForestClassifier(5, categorical_split="auto", random_state=0)
        model.fit(frame[names], Y)
        session = onnxruntime.InferenceSession(model.to_onnx().SerializeToString())
        columns = {n: frame[[n]].to_numpy(object if n != "a" else np.float32) for n in names}
        shares = session.run(None, columns)[1]
        assert np.allclose(shares, model.predict_proba(frame[names]), atol=1e-6)


@pytest.mark.parametrize(
    "statistic",
    [[["a"], [0.5]], [["a", "a"], [0.1, 0.2, 0.3]], [["a", 1], [0.1, 0.2, 0.3]],
     [["a"], [0.1, float("nan")]], [["a"], [1, 2]], [["a"]], "a", [["a"], [0.1, float("inf")]],
     [["a"], [0.1, -1e39]]],
    ids=range(9),
)  # fmt: skip
def test_files_that_no_model_wrote(statistic, tmp_path):
    path, model = tmp_path / "model", gf.DecisionTreeClassifier(**BY_TARGET).fit(FRAME, Y)
    known = [list(part) for part in model.forest_.edges.statistics[0]]
    for statistics in ({"0": statistic}, {"3": known}):
        model.save(path)
        save_tampered(model, path, statistics=statistics)
        with pytest.raises(gf.ModelFormatError):
            gf.load(path)


@pytest.mark.parametrize("name", ["Bagging", "AdaBoost"])
def test_ensembles_of_trees_take_the_word_of_their_tree(name):
    tree = gf.DecisionTreeClassifier(max_depth=3, categorical_split="ordered_target")
    model = getattr(gf, f"{name}Classifier")(tree, random_state=0).fit(FRAME, Y)
    assert [*model.forest_.edges.statistics] == [0]
    assert model.score(FRAME, Y) > 0.6
