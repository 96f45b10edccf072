"""Trees and boosted models as Python functions, which predict what they do."""

import re

import numpy as np
import pytest
from boosted_models import CITY, SHORT, class_model, leaves
from boosted_models import FIT as BOOSTED
from shown import FIT, OBLIQUE, SUM, SUMMED, X, grid, python_predictions, single

import gpuforest as gf
from gpuforest.export.walker import opened


@pytest.mark.parametrize("kind", [*FIT, *OBLIQUE])
def test_the_python_function_predicts_the_same(kind):
    model = OBLIQUE.get(kind) or FIT[kind]
    own, number = single(model)
    names = ["a", "it's", 'say "b"\n', "d\\"]
    source = gf.export_python(model, number, feature_names=names)
    rows = np.concatenate([SUMMED if kind in OBLIQUE else X, grid()])
    rows = rows.astype(np.float32) if kind == "float32" else rows
    expected = own.predict(rows).tolist()
    expected = [tuple(row) if isinstance(row, list) else row for row in expected]
    assert python_predictions(source, names, rows) == expected
    assert kind in OBLIQUE or gf.export_python(model, number).count("feature_") == source.count(
        "x["
    )
    rows = np.array([[None if np.isnan(v) else v for v in row] for row in rows], object)
    assert python_predictions(source, names, rows) == expected  # None is a missing value too


@pytest.mark.filterwarnings("ignore:The number of unique classes")
def test_deep_trees_are_functions_too():
    x = np.arange(250.0)[:, None]
    tree = gf.DecisionTreeClassifier().fit(x, np.arange(250))  # one row is split off after another
    assert tree.get_depth() == 249  # Python may be indented by 99 levels
    assert python_predictions(gf.export_python(tree), ["feature_0"], x) == tree.predict(x).tolist()


def rows_of(kind):
    """Rows that training saw and others, as the model takes them and as dicts."""
    rows = np.concatenate([X, grid()])
    if kind == "categories":  # also one that training did not see, and missing ones
        other = np.resize([0.0, 1.0, 2.0, 3.0, 7.0, np.nan], len(rows))
        rows = np.column_stack([rows, other])
    names = [f"feature_{i}" for i in range(rows.shape[1])]
    return rows, [dict(zip(names, row, strict=True)) for row in rows.tolist()]


def made(source):
    found = {}
    exec(source, found)
    return found


@pytest.mark.parametrize("kind", BOOSTED)
def test_boosted_models_and_their_trees_predict_what_they_do(kind):
    model = BOOSTED[kind]
    rows, dicts = rows_of(kind)
    source = gf.export_python(model, None)
    assert set(re.findall("^import (.*)$", source, re.MULTILINE)) <= {"math"}
    functions = made(source)
    assert [functions["predict"](row) for row in dicts] == model.predict(rows).tolist()
    assert [functions["raw_predict"](row) for row in dicts] == model._raw_predict(rows).tolist()
    if hasattr(model, "predict_proba"):
        shares = [functions["predict_proba"](row) for row in dicts]
        assert shares == model.predict_proba(rows).tolist()
    else:
        assert "predict_proba" not in functions
    last = model.forest_.n_trees - 1
    predict = made(gf.export_python(model, last))["predict"]
    added = opened(model, last).columns["value"][leaves(model, rows)[:, last], 0, 0]
    assert [predict(row) for row in dicts] == added.tolist()


def test_categories_of_strings():
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    city = np.array(["Aachen", "it's Bonn", "Cux\nhaven", "D"])[CITY]
    frame = pandas.DataFrame({"size": X[:, 0], "city": city})
    model = gf.HistGradientBoostingRegressor(**SHORT).fit(frame, SUM + (CITY == 1) - (CITY == 3))
    assert any("city" in node.rule for node in gf.tree_nodes(model).values())
    odd = frame.assign(city=np.resize(np.array(["Essen", None], object), 300))
    found = made(gf.export_python(model, None))
    for rows in (frame, odd):
        dicts = rows.to_dict("records")
        assert [found["predict"](row) for row in dicts] == model.predict(rows).tolist()


def test_labels_are_literals_and_names_cannot_break_out():
    for labels in ([True, False], [1.0, -2.0], [b"x", b"y"], ["it's", 'a "b"\n\\']):
        tree = gf.DecisionTreeClassifier().fit([[0.0], [1.0]], labels)
        found = python_predictions(gf.export_python(tree), ["feature_0"], np.array([[0.0], [1.0]]))
        assert found == labels
        assert [type(label) for label in found] == [type(label) for label in labels]
    days = np.array(["2020-01-01", "2020-01-02"], "datetime64[D]")
    tree = gf.DecisionTreeClassifier().fit([[0.0], [1.0]], days)
    with pytest.raises(ValueError, match="is a date, which has no Python literal"):
        gf.export_python(tree)
    labels = np.array(['"""\nimport os', "it's \\", "# b"])[np.arange(300) % 3]
    model = class_model(labels)
    names = ["a", "it's", 'say "b"\n', "d\\"]
    source = gf.export_python(model, None, feature_names=names)
    assert python_predictions(source, names, X) == model.predict(X).tolist()
    one = gf.export_python(model, 0, feature_names=names)
    first = r'# round 1 of 4: leaves add to the raw prediction of """\nimport os'
    assert one.splitlines()[0] == first
    assert len(python_predictions(one, names, X)) == 300
