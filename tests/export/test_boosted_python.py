"""Boosted models as Python: the functions return what the model predicts, to the last bit."""

import re

import numpy as np
import pandas as pd
import pytest
from boosted import FIT, FRAME, class_model, leaves
from shown import X, grid, python_predictions

from gpuforest import DecisionTreeClassifier, export_python
from gpuforest.inspection.boosted_tree import BoostedTree


def rows_of(kind):
    """Rows that training saw and others, as the model takes them and as dicts."""
    if kind == "categories":
        odd = FRAME.assign(city=np.resize(["Essen", None], len(FRAME)))
        rows = pd.concat([FRAME, odd])
        return rows, rows.to_dict("records")
    rows = np.concatenate([X, grid()])
    names = [f"feature_{i}" for i in range(4)]
    return rows, [dict(zip(names, row, strict=True)) for row in rows.tolist()]


def made(source):
    found = {}
    exec(source, found)
    return found


@pytest.mark.parametrize("kind", FIT)
def test_all_trees_predict_what_the_model_does(kind):
    model = FIT[kind]
    rows, dicts = rows_of(kind)
    found = made(export_python(model, None))
    assert [found["predict"](row) for row in dicts] == model.predict(rows).tolist()
    assert [found["raw_predict"](row) for row in dicts] == model._raw_predict(rows).tolist()
    if hasattr(model, "predict_proba"):
        shares = [found["predict_proba"](row) for row in dicts]
        assert shares == model.predict_proba(rows).tolist()
    else:
        assert "predict_proba" not in found


@pytest.mark.parametrize("kind", FIT)
def test_one_tree_returns_what_it_adds(kind):
    model = FIT[kind]
    rows, dicts = rows_of(kind)
    last = model.forest_.n_trees - 1
    predict = made(export_python(model, last))["predict"]
    added = BoostedTree.of(model.forest_, last).value[leaves(model, rows)[:, last]]
    assert [predict(row) for row in dicts] == added.tolist()


def test_names_of_classes_and_features_cannot_break_out():
    labels = np.array(['"""\nimport os', "it's \\", "# b"])[np.arange(300) % 3]
    model = class_model(labels)
    names = ["a", "it's", 'say "b"\n', "d\\"]
    source = export_python(model, None, feature_names=names)
    assert python_predictions(source, names, X) == model.predict(X).tolist()
    one = export_python(model, 0, feature_names=names)
    first = r'# round 1 of 4: leaves add to the raw prediction of """\nimport os'
    assert one.splitlines()[0] == first
    assert len(python_predictions(one, names, X)) == 300


def test_only_sums_are_one_function():
    tree = DecisionTreeClassifier().fit([[0.0], [1.0]], ["a", "b"])
    with pytest.raises(ValueError, match="the trees of a DecisionTreeClassifier are not one funct"):
        export_python(tree, None)
    with pytest.raises(ValueError, match="two features are called 'a'"):
        export_python(FIT["numbers"], None, feature_names=list("abca"))


def test_nothing_is_imported_but_math():
    for model in FIT.values():
        assert set(re.findall("^import (.*)$", export_python(model, None), re.MULTILINE)) <= {
            "math"
        }
