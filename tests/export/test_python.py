"""Trees as Python functions: they predict what the tree does, whatever its names and labels."""

import numpy as np
import pytest
from shown import FIT, X, grid, python_predictions, single

from gpuforest import (
    DecisionTreeClassifier,
    export_python,
)


@pytest.mark.parametrize("kind", FIT)
def test_the_python_function_predicts_the_same(kind):
    model = FIT[kind]
    own, number = single(model)
    names = ["a", "it's", 'say "b"\n', "d\\"]
    source = export_python(model, number, feature_names=names)
    rows = np.concatenate([X, grid()])
    rows = rows.astype(np.float32) if kind == "float32" else rows
    expected = own.predict(rows).tolist()
    found = python_predictions(source, names, rows)
    assert found == [tuple(row) if isinstance(row, list) else row for row in expected]
    assert export_python(model, number).count("feature_") == source.count("x[")


def test_the_python_function_takes_none_for_missing():
    source = export_python(FIT["numbers"])
    names = [f"feature_{i}" for i in range(4)]
    rows = np.array([[None if np.isnan(v) else v for v in row] for row in X], object)
    assert python_predictions(source, names, rows) == FIT["numbers"].predict(X).tolist()


@pytest.mark.filterwarnings("ignore:The number of unique classes")
def test_deep_trees_are_functions_too():
    x = np.arange(250.0)[:, None]
    tree = DecisionTreeClassifier().fit(x, np.arange(250))  # one row is split off after another
    assert tree.get_depth() == 249  # Python may be indented by 99 levels
    assert python_predictions(export_python(tree), ["feature_0"], x) == tree.predict(x).tolist()


def test_labels_are_literals():
    for labels in ([True, False], [1.0, -2.0], [b"x", b"y"], ["it's", 'a "b"\n\\']):
        tree = DecisionTreeClassifier().fit([[0.0], [1.0]], labels)
        found = python_predictions(export_python(tree), ["feature_0"], np.array([[0.0], [1.0]]))
        assert found == labels
        assert [type(label) for label in found] == [type(label) for label in labels]
    days = np.array(["2020-01-01", "2020-01-02"], "datetime64[D]")
    tree = DecisionTreeClassifier().fit([[0.0], [1.0]], days)
    with pytest.raises(ValueError, match="is a date, which has no Python literal"):
        export_python(tree)
