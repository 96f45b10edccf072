"""Model files: the same predictions after a round trip, and nothing else is believed."""

import copy
import json
import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from boosted_models import FIT, class_model
from safetensors.numpy import save_file
from saved import KINDS, change, fitted, refuses, reloaded, save_tampered
from shown import SUM
from sklearn.datasets import load_diabetes

import gpuforest as gf
from gpuforest.explain.model_facts import measure_of
from gpuforest.export import container, model_file

RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, 3))
X[RNG.random(X.shape) < 0.1] = np.nan
Y = RNG.normal(size=80)
QUANTILES = [gf.RandomForestQuantileRegressor, gf.ExtraTreesQuantileRegressor]
WEIGHTS = RNG.integers(0, 3, 80)


def test_names_scores_and_states(tmp_path):
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    state = np.random.RandomState(3)
    model = gf.RandomForestRegressor(
        30, oob_score=True, random_state=state, backend="numba", n_jobs=1
    )
    other = reloaded(model.fit(X, y), tmp_path)
    assert other.feature_names_in_.tolist() == list(X.columns)
    assert other.oob_score_ == model.oob_score_
    assert not hasattr(other, "oob_prediction_")
    assert (other.random_state, other.backend, other.n_jobs) == (model.seed_, "auto", None)
    assert np.array_equal(other.predict(X), model.predict(X))
    with pytest.raises(ValueError, match="same order"):
        other.predict(X[X.columns[::-1]])


def test_foreign_files(tmp_path):
    path = tmp_path / "file"
    for content in (b"", b"hello", b"\x80\x04K\x01.", b"\xff" * 500, b"{}" * 100):
        path.write_bytes(content)
        with pytest.raises(gf.ModelFormatError, match="file"):
            gf.load(path)
    save_file({"nodes": np.zeros(3)}, path)
    with pytest.raises(gf.ModelFormatError, match="not written by gpuforest"):
        gf.load(path)
    with pytest.raises(FileNotFoundError):
        gf.load(tmp_path / "nothing")
    with pytest.raises(IsADirectoryError):
        gf.load(tmp_path)


def test_small(tmp_path):
    """A model of classes takes little more than eight bytes a node."""
    X = np.random.default_rng(0).random((3000, 5))
    model = gf.RandomForestClassifier(10, random_state=0).fit(X, X[:, 0] + X[:, 1] > X[:, 2])
    model.save(tmp_path / "model")
    forest = model.forest_
    edges = 16 * len(forest.edges.values)
    assert (tmp_path / "model").stat().st_size < 8.1 * forest.n_nodes + edges + 4000


HEADERS = [
    {"estimator": "Exploit"}, {"estimator": "RandomForestRegressor"},
    {"estimator": "DecisionTreeClassifier"}, {"estimator": ["RandomForestClassifier"]},
    {"parameters": {"n_estimators": -1}}, {"parameters": {"unknown": 1}}, {"parameters": [1, 2]},
    {"parameters": {"backend": "numpy"}}, {"parameters": {"n_jobs": 1}},
    {"parameters": {"class_weight": {"pairs": [[0, 1], [0, 2]]}}},
    {"parameters": {"class_weight": {"pairs": ["ab"]}}},
    {"parameters": {"class_weight": {"pairs": [], "more": 1}}},
    {"criterion": "squared_error"}, {"criterion": {}}, {"unknown": 1},
    {"seed": "0"}, {"seed": -1}, {"seed": True}, {"seed": 2**64},
    {"scale": "big"}, {"scale": 1}, {"scale": float("nan")},
    {"feature_names": ["a"]}, {"feature_names": [1, 2, 3, 4]}, {"feature_names": 4},
    {"feature_names": ["a", "b", "c", "a"]},
    {"combine": "sum"}, {"combine": "product"}, {"combine": 1}, {"oob_score": "good"},
    {"classes": ["a", "b"], "classes_dtype": "str"},
    {"classes": [1, 2, 3], "classes_dtype": "object"}, {"classes": "abc", "classes_dtype": "str"},
    {"training": [1, 2]}, {"training": {"rows": 1}}, {"training": {"rows": "1", "version": "1"}},
    {"training": {"rows": -1, "version": "1"}},
    {"training": {"rows": 1, "version": "1", "seconds": 1.0}},
    {"oob_curve": [1, 2]}, {"oob_curve": {"n_estimators": [1, 2]}},
    {"oob_curve": {"n_estimators": [1, 2], "error": [0.5]}},
    {"oob_curve": {"n_estimators": [2, 1], "error": [0.5, 0.5]}},
    {"oob_curve": {"n_estimators": [1, 2], "error": [0.5, "good"]}},
    {"oob_max_features": {"n_estimators": [1], "error": [0.5]}},
    {"oob_parameters": {"max_features": [1], "error": [0.5]}},
    {"oob_parameters": {"max_features": [1], "min_samples_leaf": [-1], "error": [0.5]}},
    {"oob_parameters": {"max_features": [1], "min_samples_leaf": [1], "error": [float("inf")]}},
    {"source": ["target"]}, {"source": {"target": "y", "quotes": "'"}},
    {"source": {"target": ["a", "b"]}}, {"source": {"decimal": [","]}},
    {"source": {"dates": "when"}}, {"source": {"missing": [1]}},
]  # fmt: skip


@pytest.mark.parametrize("key", ["estimator", "parameters", "seed", "criterion", "scale"])
def test_a_header_key_that_is_missing_or_comes_twice(key, tmp_path):
    fitted()[0].save(tmp_path / "model")
    text, arrays = container.read(tmp_path / "model", model_file.ARRAYS)
    header = json.loads(text)
    twice = text[:-1] + f", {json.dumps(key)}: {json.dumps(header[key])}}}"
    for changed in (json.dumps({k: v for k, v in header.items() if k != key}), twice):
        container.write(tmp_path / "changed", changed, arrays)
        with pytest.raises(gf.ModelFormatError, match=f"no header key '{key}'|twice"):
            gf.load(tmp_path / "changed")


def test_votes_are_those_of_the_training_also_in_earlier_files(tmp_path):
    path, kind = tmp_path / "model", gf.RandomForestClassifier
    soft, X = fitted(kind, max_depth=2)
    hard, X = fitted(kind, max_depth=2, voting="hard")
    assert not np.array_equal(soft.predict_proba(X), hard.predict_proba(X))
    for header in ({}, {"votes": True}):
        hard.save(path)
        text, arrays = container.read(path, model_file.ARRAYS)
        header_text = {name: value for name, value in json.loads(text).items() if name != "combine"}
        container.write(path, json.dumps(header_text | header), arrays)
        assert np.array_equal(gf.load(path).predict_proba(X), hard.predict_proba(X))
    model, X = fitted(max_depth=2)
    loaded = reloaded(model.set_params(voting="hard"), tmp_path)  # of the next fit
    assert np.array_equal(loaded.predict_proba(X), model.predict_proba(X))
    assert not np.array_equal(
        loaded.fit(X, model.predict(X)).predict_proba(X), model.predict_proba(X)
    )


def test_errors_where_no_row_is_out_of_bag(tmp_path):
    forest = gf.RandomForestRegressor(3, oob_score=True, random_state=4, backend="numpy")
    with pytest.warns(UserWarning, match="out-of-bag|OOB|bag"):
        forest.fit([[0.0], [1.0], [2.0], [3.0]], [0.0, 1.0, 2.0, 3.0])
    assert np.isnan(forest.oob_curve_.error[0])
    again = reloaded(forest, tmp_path)
    assert np.array_equal(again.oob_curve_.error, forest.oob_curve_.error, equal_nan=True)


@pytest.mark.parametrize("labels", [
    ["a", "ü", "zzz"], np.array(["b", "c", "a"], dtype=object), [-1, 2**40, 7],
    np.array([1, 2, 3], dtype=">i2"), [1.0, 3.0, 5.0], [False, True, True],
])  # fmt: skip
def test_labels(labels, tmp_path):
    model, X = fitted(gf.DecisionTreeClassifier, labels=np.asarray(labels))
    other = reloaded(model, tmp_path)
    assert other.classes_.dtype.kind == model.classes_.dtype.kind
    assert np.array_equal(other.predict(X), model.predict(X))


@pytest.mark.parametrize("values", [
    ("", '"', "a", "\u00fc", "\ud800", "\U0001f332"), (-(2**70), 0, 2**53 + 1),
    (-0.5, 0.1, 1e300), (False, True), (0, 0.5, True), (),
])  # fmt: skip
def test_categories_keep_their_values_and_types(values, tmp_path):
    column = np.array([*values, None] * 3, dtype=object)[:, None]
    model = gf.DecisionTreeClassifier(categorical_features=[0], backend="numpy")
    other = reloaded(model.fit(column, np.arange(len(column)) % 2), tmp_path)
    categories = other.forest_.edges.categories
    assert categories == model.forest_.edges.categories == {0: values}
    assert [type(v) for v in categories[0]] == [type(v) for v in values]
    assert other.categorical_features == [0]
    assert np.array_equal(other.predict(column), model.predict(column))


COLOURS = ["blue", "green", "red"]


def with_categories():
    X = np.array([[COLOURS[i % 3], i] for i in range(12)], dtype=object)
    model = gf.DecisionTreeClassifier(categorical_features=[0], random_state=0, backend="numpy")
    return model.fit(X, np.arange(12) % 3)


CATEGORIES = [
    {}, [], None, {"0": COLOURS[:2]}, {"0": [*COLOURS, "violet"]}, {"1": COLOURS},
    {"0": COLOURS, "1": list(range(11))}, {"0": COLOURS, "2": []}, {"00": COLOURS}, {"-0": COLOURS},
    {"": COLOURS}, {"9" * 5000: COLOURS}, {"0": "red"}, {"0": {"blue": 0, "green": 1, "red": 2}},
    {"0": ["red", "green", "red"]}, {"0": ["blue", "green", 3]}, {"0": ["blue", "green", None]},
    {"0": ["blue", "green", ["red"]]}, {"0": [0, 1, 1.0]}, {"0": [0, 1, True]},
    {"0": [0.0, 1.0, float("nan")]}, {"0": [0.0, 1.0, float("inf")]},
]  # fmt: skip


def test_headers_that_cannot_have_been_written(tmp_path):
    path, categorical = tmp_path / "model", with_categories()
    assert reloaded(categorical, tmp_path).forest_.edges.categories == {0: tuple(COLOURS)}
    of_categories = [{"categories": categories} for categories in CATEGORIES]
    for model, headers in ((fitted()[0], HEADERS), (categorical, of_categories)):
        for header in headers:
            model.save(path)
            save_tampered(model, path, **header)
            with pytest.raises(gf.ModelFormatError, match="model"):
                gf.load(path)


@pytest.mark.parametrize("wrong", [
    {"kinds": np.array([0, 0], np.uint8)},
    {"kinds": np.array([1, 1], np.uint8)},
    {"kinds": np.array([2, 0], np.uint8)},
    {"categories": {0: COLOURS}},
    {"categories": {0: ("blue", "green")}},
    {"categories": {0: ("blue", "green", np.str_("red"))}},
    {"categories": [tuple(COLOURS)]},
    {"values": change(with_categories().forest_.edges.values, 2, 2.5)},  # not their codes
])  # fmt: skip
def test_pickled_categories_that_cannot_have_been_learned(wrong):
    forest = with_categories().forest_
    assert pickle.loads(pickle.dumps(forest)).edges.categories == {0: tuple(COLOURS)}
    bad = replace(forest, edges=replace(forest.edges, **wrong))
    assert refuses(pickle.loads, pickle.dumps(bad))


@pytest.mark.parametrize("chosen", [["a"], np.array([0]), (True, False), pd.Index(["a"])])
def test_choices_of_categories_are_kept(chosen, tmp_path):
    X = pd.DataFrame({"a": np.arange(6) % 3, "b": np.arange(6)})
    model = gf.DecisionTreeRegressor(categorical_features=chosen).fit(X, X["b"])
    assert reloaded(model, tmp_path).categorical_features == list(chosen)


def answers(model):
    found = [model.predict(X), model.apply(X), model.feature_importances_]
    if hasattr(model, "classes_"):
        found.append(model.predict_proba(X))
    if type(model) in KINDS[:2]:
        return found
    if hasattr(model, "classes_"):
        return [*found, model.predict_set(X)]
    found.append(model.predict_interval(X))
    if isinstance(model, gf.RandomForestRegressor):
        return [*found, *model.predict(X, return_std=True)]
    found += [model.predict(X, [0.1, 0.9], oob_score=o) for o in (False, True)]
    return [*found, model.quantile_ranks(X, Y)]


@pytest.mark.filterwarnings("ignore:Some inputs do not have OOB scores")
@pytest.mark.parametrize("kind", [*KINDS, *QUANTILES])
@pytest.mark.parametrize("weights", [None, WEIGHTS])
def test_what_is_read_answers_the_same(kind, weights, tmp_path):
    forest = {"n_estimators": 9, "oob_score": True, "bootstrap": True}
    given = {"max_depth": 4, "min_samples_leaf": 0.01} if kind in KINDS[:2] else forest
    model = kind(random_state=0, backend="numba", **given)
    model.fit(X, np.digitize(Y, [0, 1]) if "Classifier" in kind.__name__ else Y, weights)
    expected = answers(model)
    loaded = reloaded(model, tmp_path).set_params(backend="numba")
    copies = copy.copy(model), copy.deepcopy(model), pickle.loads(pickle.dumps(model))
    for other in (loaded, *copies):
        assert type(other) is kind
        assert other.get_params() == model.get_params()
        assert getattr(other, "n_classes_", 3) == 3
        assert (other.seed_, other.criterion_, other.n_features_in_) == (0, model.criterion_, 3)
        assert not hasattr(other, "feature_names_in_")
        for one, two in zip(expected, answers(other), strict=True):
            assert np.array_equal(one, two, equal_nan=True)
    loaded.save(str(tmp_path / "again"))
    assert (tmp_path / "again").read_bytes() == (tmp_path / "model").read_bytes()


def test_labels_that_cannot_be_saved_and_blocks_of_others_are_refused(tmp_path):
    days = np.array(["2020-01-01", "2020-01-02", "2020-01-03"], "M8[D]")
    model, _ = fitted(gf.DecisionTreeClassifier, labels=days)
    with pytest.raises(ValueError, match="pickle"):
        model.save(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []
    path, model = tmp_path / "model", gf.DecisionTreeRegressor(max_depth=2).fit(X, Y)
    model.save(path)
    save_tampered(model, path, by_blocks=True)
    with pytest.raises(gf.ModelFormatError, match="blocks amiss"):
        gf.load(path)


@pytest.mark.filterwarnings("ignore:Some inputs do not have OOB scores")
def test_rows_that_do_not_fit_are_refused(tmp_path):
    model = gf.RandomForestQuantileRegressor(9, oob_score=True, random_state=0, backend="numpy")
    path = tmp_path / "model"
    model.fit(X, Y, WEIGHTS, groups=np.arange(len(X)) // 2).save(path)
    text, arrays = container.read(path, model_file.ARRAYS)
    for name, damage in (
        ("draw_groups", lambda a: a[:-1]),
        ("draw_groups", lambda a: -a),
        ("draw_groups", lambda a: a + 1),  # none has the number 0
        ("draw_groups", lambda a: a * 10**6),
        ("draw_weights", lambda a: a * (2 * 10**7)),  # of a group that may be all draws
        ("row_codes", lambda a: a[:-1]),
        ("row_codes", lambda a: np.full_like(a, 255)),
        ("row_codes", lambda a: a.astype(np.uint16)),
        ("row_targets", lambda a: a * np.nan),
        ("row_targets", None),
        ("draw_weights", lambda a: -a),
        ("draw_weights", lambda a: a[1:]),
        ("scores", lambda a: a[:, ::-1].copy()),
        ("score_offsets", lambda a: a - 1e9),
        ("score_offsets", None),
    ):
        changed = {key: array for key, array in arrays.items() if key != name}
        changed |= {} if damage is None else {name: damage(arrays[name])}
        container.write(path, text, changed)
        with pytest.raises(gf.ModelFormatError):
            gf.load(path)
    container.write(path, text, arrays)
    gf.load(path)


def judge(estimator, X, y):
    return (estimator.predict(X) == y).mean()


def test_a_file_knows_that_a_function_gave_the_scores(tmp_path):
    model = class_model(SUM > 0, scoring=judge, early_stopping=True)
    model.save(tmp_path / "model")
    text, arrays = container.read(tmp_path / "model", model_file.ARRAYS)
    header = json.loads(text)
    assert header["boosting"]["scored_by"] == "judge"
    read = gf.load(tmp_path / "model")  # no file holds a function: it has the default
    assert measure_of(read) == measure_of(model) == ("score: judge", False)
    read.save(tmp_path / "again")
    again = json.loads(container.read(tmp_path / "again", model_file.ARRAYS)[0])
    assert again["boosting"] == header["boosting"]
    header["boosting"]["scored_by"] = 1
    container.write(tmp_path / "broken", json.dumps(header), arrays)
    with pytest.raises(gf.ModelFormatError, match="scored_by of another type"):
        gf.load(tmp_path / "broken")
    FIT["ends early"].save(tmp_path / "model")
    assert "scored_by" not in container.read(tmp_path / "model", model_file.ARRAYS)[0]
