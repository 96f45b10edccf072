"""Trees that take new rows after their fit, and forests that gain and lose trees.

Laws: a refit on the rows of the fit changes nothing; added rows give the leaves of all rows;
a sum of forests predicts the mean over the trees of both.
"""

import re

import numpy as np
import pandas as pd
import pytest
from commands import refused
from engine import same_forest

import gpuforest as gf
from gpuforest.core.nodes import is_leaf, leaf_rows
from gpuforest.estimators import capabilities
from gpuforest.tools.cli.main import main

pytestmark = [
    pytest.mark.filterwarnings("ignore:max_samples"),
    pytest.mark.filterwarnings("ignore:Some inputs do not have OOB scores"),
]
FORESTS = (
    gf.RandomForestClassifier, gf.RandomForestRegressor,
    gf.ExtraTreesClassifier, gf.ExtraTreesRegressor,
)  # fmt: skip
TREES = (gf.DecisionTreeClassifier, gf.DecisionTreeRegressor)
BACKENDS = ("numpy", "numba")


def rows_of(kind, seed=0, n=150, missing=False, categories=False, outputs=False):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    value = X[:, 0] + rng.normal(size=n) * 0.3
    if missing:
        X[rng.random((n, 4)) < 0.1] = np.nan
    if categories:
        town = rng.integers(0, 9, n)
        value += np.sin(town)
        X = pd.DataFrame(X, columns=[*"abcd"]).assign(town=np.array([*"qwertzuio"])[town])
    y = value
    if kind.__name__.endswith("Classifier"):
        y = np.array(["high", "low", "mid"])[np.digitize(value, [-0.5, 0.5])]
    return X, np.stack([y, y[::-1]], axis=1) if outputs else y


def made(kind, backend="numba", **params):
    params = {"random_state": 3, "backend": backend, "n_jobs": 2, "max_depth": 5} | params
    if kind in TREES:
        del params["n_jobs"]
    elif "n_estimators" not in params:
        params["n_estimators"] = 7
    return kind(**params)


def predicted(model, X):
    found = model.predict_proba(X) if hasattr(model, "predict_proba") else model.predict(X)
    return np.concatenate(found, axis=1) if isinstance(found, list) else found


def values_of_leaves(model):
    nodes = model.forest_.nodes
    return model.forest_.values[leaf_rows(nodes[is_leaf(nodes)])]


WAYS = [
    {}, {"missing": True}, {"categories": True}, {"outputs": True}, {"shrinkage": 3.0},
    {"bootstrap": True}, {"bootstrap": True, "max_samples": 0.5}, {"voting": "hard"},
    {"bootstrap": "poisson"}, {"bootstrap": "poisson", "class_weight": "balanced"},
    {"feature_combinations": 2}, {"max_leaf_nodes": 9}, {"categories": True, "multiway": True},
    {"class_weight": "balanced"}, {"bootstrap": True, "class_weight": "balanced_subsample"},
    {"bootstrap": True, "class_weight": "balanced_bootstrap"}, {"criterion": "poisson"},
    {"bootstrap": True, "priors": {"high": 0.2, "low": 0.3, "mid": 0.5}},
]  # fmt: skip


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("kind", [*FORESTS, *TREES])
def test_a_refit_on_the_rows_of_the_fit_changes_nothing(kind, way):
    way = dict(way)
    of_rows = {n: way.pop(n) for n in ("missing", "categories", "outputs") if n in way}
    if way.pop("multiway", False):
        way["categorical_split"] = "multiway"
    if not {*way} <= {*kind().get_params()}:
        return
    X, y = rows_of(kind, **of_rows)
    if way.get("criterion") == "poisson":
        if y.dtype.kind == "U":
            return
        y = np.exp(y)
    weights = None, np.arange(len(y)) % 3, np.linspace(0.1, 2, len(y))
    for backend, weight in zip(("numba", "numpy", "numba"), weights, strict=True):
        model = made(kind, backend, **way).fit(X, y, weight)
        before, forest = predicted(model, X), model.forest_
        assert model.refit(X, y, weight) is model
        assert same_forest(model.forest_, forest)
        assert np.array_equal(predicted(model, X), before)
        if forest.leaf_impurity is not None:
            assert np.array_equal(model.forest_.leaf_impurity, forest.leaf_impurity)
        assert not hasattr(model, "oob_score_")
        # a leaf that no row reaches keeps its value
        if way.get("class_weight") == "balanced":
            with pytest.raises(ValueError, match="a row of each class"):
                model.refit(X[:1], y[:1])
            continue
        first = values_of_leaves(model)
        model.refit(X[:1], y[:1])
        changed = (values_of_leaves(model) != first).any(axis=1)
        assert changed.sum() <= model.forest_.n_trees or model.forest_.shrinkage


@pytest.mark.parametrize("kind", [gf.ExtraTreesClassifier, gf.ExtraTreesRegressor, *TREES])
def test_rows_that_are_added_give_the_leaves_of_all_rows(kind):
    (X, y), (X2, y2) = rows_of(kind), rows_of(kind, 1, 80)
    weight = np.arange(80) % 4
    for backend in BACKENDS:
        one = made(kind, backend).fit(X, y)
        other = made(kind, backend).fit(X, y)
        one.add_rows(X2[:30], y2[:30], weight[:30]).add_rows(X2[30:], y2[30:], weight[30:])
        counts = np.append(np.ones(len(y)), weight)
        other.refit(np.concatenate([X, X2]), np.concatenate([y, y2]), counts)
        assert same_forest(one.forest_, other.forest_)


def test_rows_may_be_added_for_long_and_come_from_far():
    """Sums that would overflow are held in wider steps."""
    X, y = rows_of(gf.ExtraTreesRegressor, n=2000)
    model = made(gf.ExtraTreesRegressor).fit(X, y)
    for _ in range(6):
        model.add_rows(X, y)
    whole = np.tile(X, (7, 1)), np.tile(y, 7)
    other = made(gf.ExtraTreesRegressor).fit(X, y).refit(*whole)
    np.testing.assert_allclose(model.predict(X), other.predict(X), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(model.refit(X, 1e3 * y).predict(X).mean(), 1e3 * y.mean(), rtol=1e-6)


@pytest.mark.parametrize("kind", [*FORESTS, *TREES])
def test_new_rows_change_values_by_the_decay_rate(kind):
    (X, y), (X2, y2) = rows_of(kind), rows_of(kind, 1)
    models = [made(kind).fit(X, y) for _ in range(3)]
    old = values_of_leaves(models[0])
    new = values_of_leaves(models[1].refit(X2, y2))
    mixed = values_of_leaves(models[2].refit(X2, y2, decay_rate=0.25))
    np.testing.assert_allclose(mixed, 0.25 * old + 0.75 * new, rtol=1e-12, atol=1e-12)
    assert np.array_equal(values_of_leaves(models[2].refit(X2, y2)), new)


def test_a_refit_model_is_saved_and_pickled(tmp_path):
    (X, y), (X2, y2) = rows_of(gf.RandomForestRegressor), rows_of(gf.RandomForestRegressor, 1)
    model = made(gf.RandomForestRegressor, oob_score=True).fit(X, y)
    model.refit(X2, y2, decay_rate=0.5)
    model.save(tmp_path / "model")
    same = gf.load(tmp_path / "model")
    assert np.array_equal(same.predict(X), model.predict(X))
    for one in (model, same):
        with pytest.raises(ValueError, match=r"warm_start adds trees .* refit has changed"):
            one.set_params(warm_start=True, n_estimators=9).fit(X, y)
        with pytest.raises(ValueError, match="the bags are not known"):
            gf.oob_impurity_importance(one, X2, y2)
        with pytest.raises(ValueError, match="mixed"):
            one.add_rows(X, y)


def refusals():
    """Models and calls that are refused, by the capability that the table names."""
    forest, numbers = gf.RandomForestClassifier, gf.RandomForestRegressor
    yield "groups", made(forest), {"groups": np.arange(150) // 5}, "refit", {}
    yield "ordered", made(forest, categorical_split="ordered_target"), {}, "refit", {}
    yield "absolute error", made(numbers, criterion="absolute_error"), {}, "refit", {}
    yield "monotonic", made(numbers, monotonic_cst=[1, 0, 0, 0]), {}, "refit", {}
    yield "shrinkage", made(forest, shrinkage=2.0), {}, "refit", {"decay_rate": 0.5}
    yield "class_weight", made(forest, class_weight="balanced"), {}, "add_rows", {}
    yield "by class", made(forest, max_samples={"high": 9, "low": 9, "mid": 9}), {}, "add_rows", {}
    yield "priors", made(forest, priors="training"), {}, "add_rows", {}


@pytest.mark.parametrize(("name", "model", "of_fit", "method", "passed"), list(refusals()),
    ids=lambda value: value if isinstance(value, str) else "")  # fmt: skip
def test_what_takes_no_new_rows_says_so_and_stays(name, model, of_fit, method, passed):
    X, y = rows_of(type(model), categories=name == "ordered")
    model.fit(X, y, **of_fit)
    forest, known = model.forest_, {**vars(model)}
    (message,) = {r.message for r in capabilities.NEW_ROWS if r.a == name}
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        getattr(model, method)(X, y, **passed)
    assert model.forest_ is forest
    assert vars(model).keys() == known.keys()


def test_survival_trees_take_no_new_rows():
    X, time = rows_of(gf.RandomForestRegressor)
    y = np.array([(True, t) for t in np.exp(time)], [("event", bool), ("time", float)])
    tree = gf.RandomSurvivalForest(n_estimators=2, random_state=0).fit(X, y)[0]
    with pytest.raises(ValueError, match="hold hazards"):
        tree.refit(X, y)


@pytest.mark.parametrize(("kind", "change", "message"), [
    (gf.ExtraTreesClassifier, lambda X, y: (X, np.where(y == "mid", "new", y)), "class 'new'"),
    (gf.ExtraTreesClassifier, lambda X, y: (X[:, :3], y), "3 features"),
    (gf.ExtraTreesClassifier, lambda X, y: (X, y[:9]), "inconsistent"),
    (gf.ExtraTreesClassifier, lambda X, y: (X, np.stack([y, y], axis=1)), "2 outputs"),
    (gf.ExtraTreesRegressor, lambda X, y: (X, y * 1e100), "too far away"),
    (gf.ExtraTreesRegressor, lambda X, y: (X, np.where(y > 0, y, np.nan)), "NaN"),
])  # fmt: skip
def test_bad_rows_leave_the_model_as_it_was(kind, change, message):
    model = made(kind).fit(*rows_of(kind))
    forest = model.forest_
    for method in (model.refit, model.add_rows):
        with pytest.raises(ValueError, match=message):
            method(*change(*rows_of(kind, 1)))
        assert model.forest_ is forest
    with pytest.raises(ValueError, match="decay_rate=2 must be"):
        model.refit(*rows_of(kind), decay_rate=2)


def test_weights_that_are_no_counts_are_not_added():
    X, y = rows_of(gf.ExtraTreesRegressor)
    fractions = np.linspace(0.1, 1, 150)
    with pytest.raises(ValueError, match="of these rows has others"):
        made(gf.ExtraTreesRegressor).fit(X, y).add_rows(X, y, fractions)
    with pytest.raises(ValueError, match="of the fit has others"):
        made(gf.ExtraTreesRegressor).fit(X, y, fractions).add_rows(X, y)


@pytest.mark.parametrize("kind", FORESTS)
@pytest.mark.parametrize("way", [{}, {"missing": True}, {"categories": True}, {"outputs": True}])
def test_a_sum_predicts_the_mean_over_the_trees_of_both(kind, way, tmp_path):
    X, y = rows_of(kind, **way)
    X2 = X * 1.7 + 0.1 if not way.get("categories") else X.assign(a=X.a * 2, b=X.b + 1)
    for backend in BACKENDS:
        a, b = made(kind, backend).fit(X, y), made(kind, backend, random_state=8).fit(X2, y)
        both = a + b
        assert len(both) == 14 == both.n_estimators
        for rows in (X, X2):
            trees = [predicted(tree, rows) for tree in (*a, *b)]
            assert np.array_equal(predicted(both, rows), sum(trees) / 14)
            again = predicted(both.keep_trees(slice(7)), rows)
            assert np.array_equal(again, predicted(a, rows))
            both = a + b
        both.save(tmp_path / "both")
        assert np.array_equal(predicted(gf.load(tmp_path / "both"), X), predicted(both, X))
        kept = (a + b).keep_trees([12, 3])
        assert np.array_equal(predicted(kept, X), (predicted(a[3], X) + predicted(b[5], X)) / 2)
    if a.bootstrap:
        with pytest.raises(ValueError, match="cannot draw the bags"):
            both.refit(X, y)
    with pytest.raises(ValueError, match=r"warm_start adds .* \+ has changed"):
        both.set_params(warm_start=True, n_estimators=20).fit(X, y)


def test_forests_of_other_things_are_not_added():
    X, y = rows_of(gf.RandomForestClassifier)
    a = made(gf.RandomForestClassifier).fit(X, y)
    for other, message in (
        (made(gf.RandomForestClassifier).fit(X[:, :3], y), "different features"),
        (made(gf.RandomForestClassifier).fit(X, y == "mid"), "different classes"),
        (made(gf.RandomForestClassifier, criterion="entropy").fit(X, y), "different criterion"),
        (made(gf.RandomForestClassifier, voting="hard").fit(X, y), "different voting"),
    ):
        with pytest.raises(ValueError, match=message):
            a + other
    with pytest.raises(TypeError, match="unsupported operand"):
        a + made(gf.ExtraTreesClassifier).fit(X, y)
    with pytest.raises(ValueError, match="leaves no tree"):
        a.keep_trees([])


@pytest.mark.parametrize("kind", FORESTS)
def test_fewer_trees_are_as_good_by_the_rows_that_choose_them(kind):
    X, y = rows_of(kind)
    X2, y2 = rows_of(kind, 1, 200)
    found = []
    for backend in BACKENDS:
        model = made(kind, backend, n_estimators=30).fit(X, y)
        whole = [predicted(tree, X2) for tree in model]
        wanted = y2[:, None] == model.classes_ if hasattr(model, "classes_") else y2
        loss = [np.mean((predicted(model, X2) - wanted) ** 2)]
        model.prune_trees(X2, y2)
        loss.append(np.mean((predicted(model, X2) - wanted) ** 2))
        found.append(model.forest_)
        assert 1 <= len(model) < 30
        assert loss[1] < 1.1 * loss[0]
        assert loss[1] <= min(np.mean((one - wanted) ** 2) for one in whole)
    assert same_forest(*found)


def test_commands(tmp_path, monkeypatch, capsys):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.integers(0, 9, (150, 4)), columns=[*"abcd"]).astype(float)
    frame = frame.assign(y=np.where(frame.a + frame.b > 8, "high", "low"))
    monkeypatch.chdir(tmp_path)
    frame.to_csv("rows.csv", index=False)

    def fitted(rows, ids=None):
        model = made(gf.RandomForestClassifier, bootstrap="poisson")
        return model.fit(rows[[*"abcd"]], rows.y, row_ids=ids)

    def run(*words):
        assert main([*words, "--out", "out"]) == 0
        return gf.load("out"), capsys.readouterr().out

    model, rows = fitted(frame), ("rows.csv", "--target", "y")
    model.save("model")
    again, said = run("refit", "model", *rows)
    assert "150 rows taken" in said
    assert same_forest(again.forest_, model.forest_)
    both, said = run("merge", "model", "model")
    assert "14 trees" in said
    assert len(both) == 14
    assert "cannot draw the bags" in refused(capsys, "refit", "out", *rows, "--out", "other")
    (tmp_path / "ids").write_text("9\n17\n")
    for gone, listed in ([3], "3"), ([9, 17], "ids"):
        left, said = run("delete", "model", *rows, "--rows", listed)
        assert f"{len(gone)} rows deleted" in said
        frame = frame.drop(index=gone)
        assert same_forest(left.forest_, fitted(frame, frame.index).forest_)
        frame.to_csv("rows.csv", index=False)
        left.save("model")
    command = ("delete", "model", *rows, "--out", "other", "--rows")
    assert "1 of 1 row_ids are no rows of the fit" in refused(capsys, *command, "17")
    assert "is no list of integers" in refused(capsys, *command, "rows")
    assert not (tmp_path / "other").exists()
