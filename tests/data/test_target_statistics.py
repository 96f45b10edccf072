"""Target statistics: by their definition, and the models that are made of them."""

import json
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from engine import same_forest
from sklearn.base import clone

import gpuforest as gf
from gpuforest.common import hashing
from gpuforest.data import target_statistics
from gpuforest.data.target_statistics import OrderedTarget, class_scores, prior_of
from gpuforest.export import container, model_file

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


@pytest.mark.parametrize("weighted", [False, True])
def test_the_mean_of_the_rows_before(weighted):
    """The definition, in fractions."""
    codes = np.where(RNG.random(N) < 0.05, -1, TOWN)
    weights = WEIGHTS.astype(int) if weighted else np.ones(N, int)
    values, statistic = OrderedTarget(
        Y, 2, weights.astype(np.int32) if weighted else None, seed=3
    ).statistic(codes, tuple(NAMES))
    known = codes >= 0
    w, s = (np.bincount(codes[known], (weights * f)[known], 61).astype(int) for f in (1, Y))
    squares = float((weights * Y)[known].sum())
    prior = prior_of(w, s, squares, int((weights[known] > 0).sum()))
    total_weight, total = [prior[0]] * 61, [prior[1]] * 61
    counted = np.flatnonzero(weights)  # rows of weight zero come last
    for row in [*counted[by_hash(len(counted), 3)], *np.flatnonzero(weights == 0)]:
        if (town := codes[row]) < 0:
            assert np.isnan(values[row])
            continue
        assert values[row] == np.float32(Fraction(total[town], total_weight[town]))
        total_weight[town] += int(weights[row])
        total[town] += int(weights[row] * Y[row])
    means = [np.float32(Fraction(*pair)) for pair in zip(total, total_weight, strict=True)]
    assert statistic == (tuple(NAMES), tuple(map(float, means)))


def test_groups_by_hand(monkeypatch):
    """The example of the module: rows of one category in their order, and two that do not count."""
    monkeypatch.setattr(target_statistics, "prior_of", lambda *_: (2, 1))
    order = np.array(by_hash(4, 3))
    y, groups, weights = np.zeros((3, 6), np.int32)
    y[order], groups[order], weights[order] = [0, 1, 1, 0], [5, 2, 5, 2], [1, 1, 2, 1]
    y[4:], groups[4:] = 1, (2, 9)
    codes = np.zeros(6, np.int64)
    expected = [1 / 2, 3 / 5, 1 / 2, 3 / 5, 3 / 5, 4 / 7]  # the last sees all rows
    values, statistic = OrderedTarget(y, 2, weights, 3, groups).statistic(codes, ("a",))
    assert values[[*order, 4, 5]].tolist() == np.float32(expected).tolist()
    assert statistic.values == tuple(np.float32([4 / 7, 1 / 2]).tolist())
    alone, _ = OrderedTarget(y, 2, weights, 3).statistic(codes, ("a",))
    expected = [1 / 2, 1 / 3, 2 / 4, 4 / 6, 4 / 7, 4 / 7]
    assert alone[[*order, 4, 5]].tolist() == np.float32(expected).tolist()


def by_definition(target, codes, n, prior):
    """The numbers of training rows, in fractions, row by row."""
    weights, (integers, scale) = target.weight, target.integers(codes, n)
    counted = np.flatnonzero(weights)
    place = {int(counted[i]): at for at, i in enumerate(by_hash(len(counted), target.seed))}
    groups = np.arange(len(codes)) if target.groups is None else target.groups
    of_group = {}
    for row, at in place.items():
        of_group[groups[row]] = min(at, of_group.get(groups[row], at))
    where = np.array([of_group.get(group, len(codes)) for group in groups])
    values = np.full(len(codes), np.nan, np.float32)
    for row in np.flatnonzero(codes >= 0):
        before = (codes == codes[row]) & (where < where[row])
        weight = prior[0] + int(weights[before].sum())
        total = prior[1] + int((weights * integers)[before].sum())
        values[row] = np.float32(Fraction(total, weight) / int(scale))
    return values


@pytest.mark.parametrize("target", [Y, Z, SIX], ids=["classes", "numbers", "six"])
@pytest.mark.parametrize("weights", [None, WEIGHTS.astype(np.int32)], ids=["alone", "weighted"])
@pytest.mark.parametrize("n_groups", [None, 9, 400])
def test_a_number_holds_no_target_of_its_group(target, weights, n_groups, monkeypatch):
    monkeypatch.setattr(target_statistics, "prior_of", lambda *_: (3, 2))
    codes = np.where(RNG.random(400) < 0.05, -1, TOWN[:400] // 4)
    weights = None if weights is None else weights[:400]
    groups = None if n_groups is None else RNG.integers(0, n_groups, 400)
    y, n_classes = target[:400], 0
    if target is not Z:
        classes, y = np.unique(y, return_inverse=True)
        n_classes = len(classes)
    made = OrderedTarget(y, n_classes, weights, 3, groups)
    values, statistic = made.statistic(codes, tuple(NAMES[:15]))
    assert np.array_equal(values, by_definition(made, codes, 16, (3, 2)), equal_nan=True)
    without = OrderedTarget(y, n_classes, weights, 3)
    assert statistic == without.statistic(codes, tuple(NAMES[:15]))[1]
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
    found, all_rows = OrderedTarget(y, n_classes, integers, 3, groups).statistic(TOWN, tuple(NAMES))
    groups = groups[counted] if grouped else None
    made = OrderedTarget(y[counted], n_classes - (target is not Z), integers[counted], 3, groups)
    expected, statistic = made.statistic(TOWN[counted], tuple(NAMES))
    assert np.array_equal(found[counted], expected)
    assert all_rows == statistic
    assert len(np.unique(found)) > 100


@pytest.mark.parametrize(("factor", "shift"), [(2.0**900, 0), (2.0**-900, 0), (1, 2**40)])
def test_the_unit_of_the_target_does_not_matter(factor, shift):
    y, codes = np.round(Z * 64), TOWN.astype(np.int64)
    plain, _ = OrderedTarget(y, 0, None, seed=3).statistic(codes, tuple(NAMES))
    assert len(np.unique(plain)) > 1000
    assert (np.abs(plain) <= 1).all()
    other, _ = OrderedTarget(y * factor + shift, 0, None, seed=3).statistic(codes, tuple(NAMES))
    if shift:
        assert np.corrcoef(plain, other)[0, 1] > 1 - 1e-9
    else:
        assert np.array_equal(plain, other)


def test_the_prior_by_hand():
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


def test_scores_of_classes_by_hand():
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


def test_auto_takes_statistics_of_many_categories():
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


def test_importances_out_of_bag_from_binned_data_are_those_of_the_fit():
    data = gf.BinnedData.from_blocks([(FRAME, Z)], **BY_TARGET)
    forest = gf.RandomForestRegressor(20, unbiased_importances=True, **BY_TARGET).fit(FRAME, Z)
    found = gf.oob_impurity_importance(forest, data, data.y).importances_mean
    assert np.array_equal(found, forest.unbiased_feature_importances_)
    from_frame = gf.oob_impurity_importance(forest, FRAME, Z).importances_mean
    assert from_frame[0] > found[0]  # as docs/categories.md says


def test_identifiers_and_noise_say_nothing():
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


@pytest.mark.parametrize("weights", [None, WEIGHTS])
@pytest.mark.parametrize(("model", "y"), FORESTS[:3], ids=lambda case: type(case).__name__)
def test_the_same_forest_from_blocks(model, y, weights, tmp_path):
    cuts = [(0, 10), (10, 700), (700, N)]
    blocks = [
        (FRAME[a:b], y[a:b]) if weights is None else (FRAME[a:b], y[a:b], weights[a:b])
        for a, b in cuts
    ]
    data = gf.BinnedData.from_blocks(blocks, path=tmp_path / "data", **BY_TARGET)
    whole = clone(model).fit(FRAME, y, weights)
    for source in (data, gf.BinnedData.load(tmp_path / "data")):
        found = clone(model).fit(source)
        assert same_forest(found.forest_, whole.forest_)
        assert found.forest_.edges.statistics == whole.forest_.edges.statistics


def test_refusals(monkeypatch):
    forest = gf.RandomForestClassifier(2, **BY_TARGET)
    with pytest.raises(ValueError, match="of one output: pass categorical_split='subset'"):
        forest.fit(FRAME, np.stack([Y, Y], axis=1))
    with pytest.raises(ValueError, match="needs y: pass it with the blocks"):
        gf.BinnedData.from_blocks([FRAME], **BY_TARGET)
    data = gf.BinnedData.from_blocks([(FRAME, Y)], **BY_TARGET)
    with pytest.raises(ValueError, match="categorical_split='subset' of the estimator, but"):
        gf.RandomForestClassifier(2, random_state=0).fit(data)
    with pytest.raises(ValueError, match="pass no other y to fit"):
        forest.fit(data, 1 - Y)
    with pytest.raises(ValueError, match="pass no other sample_weight to fit"):
        forest.fit(data, sample_weight=WEIGHTS)
    with pytest.raises(ValueError, match="pass no other groups to fit"):
        gf.HistGradientBoostingClassifier(**BY_TARGET).fit(data, groups=TOWN)
    with pytest.raises(ValueError, match="are of classes, and the estimator predicts numbers"):
        gf.RandomForestRegressor(2, **BY_TARGET).fit(data)
    forest.fit(data)
    with pytest.raises(ValueError, match="not written as Python"):
        gf.export_python(forest)
    with pytest.raises(ValueError, match="categorical features"):
        forest.to_sklearn()
    with pytest.raises(ValueError, match="categorical_split"):
        gf.IsolationForest(categorical_split="ordered_target").fit(FRAME)
    monkeypatch.setattr("gpuforest.data.categories.MOST_NUMBERED", 20)
    with pytest.raises(ValueError, match="has 60 categories; at most 20 are supported"):
        forest.fit(FRAME, Y)
    assert target_statistics.FROM == 30  # what the documentation says


def test_an_exported_model_takes_the_categories():
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
    path = tmp_path / "model"
    gf.DecisionTreeClassifier(**BY_TARGET).fit(FRAME, Y).save(path)
    text, arrays = container.read(path, model_file.ARRAYS)
    header = json.loads(text)
    container.write(path, json.dumps(header | {"statistics": {"0": statistic}}), arrays)
    with pytest.raises(gf.ModelFormatError):
        gf.load(path)
    container.write(
        path, json.dumps(header | {"statistics": {"3": header["statistics"]["0"]}}), arrays
    )
    with pytest.raises(gf.ModelFormatError):
        gf.load(path)


def test_an_exported_model_takes_the_numbers_of_categories():
    treelite = pytest.importorskip("treelite", reason="needs pip install 'gpuforest[checks]'")
    model = gf.RandomForestRegressor(5, **BY_TARGET).fit(FRAME, Z)
    table = gf.category_codes(model, FRAME)
    found = treelite.gtil.predict(model.to_treelite(), table)
    assert np.allclose(found.ravel(), model.predict(FRAME), rtol=1e-12)
    assert "the mean target of its category" in gf.export_c(model)


@pytest.mark.parametrize("name", ["Bagging", "AdaBoost"])
def test_ensembles_of_trees_take_the_word_of_their_tree(name):
    tree = gf.DecisionTreeClassifier(max_depth=3, categorical_split="ordered_target")
    model = getattr(gf, f"{name}Classifier")(tree, random_state=0).fit(FRAME, Y)
    assert [*model.forest_.edges.statistics] == [0]
    assert model.score(FRAME, Y) > 0.6
