"""What all exports share: names, branches of more than two, what they refuse, their examples."""

import doctest
import re
from importlib import import_module

import numpy as np
import pytest
from shown import (
    FIT,
    IRIS,
    NAMES,
    parsed,
    python_predictions,
)
from sklearn.tree import DecisionTreeClassifier as Sklearns

from gpuforest import (
    DecisionTreeClassifier,
    RandomForestRegressor,
    export_graphviz,
    export_python,
    export_rules,
    export_text,
    tree_nodes,
)
from gpuforest.export.conditions import Branch, OneOf, TreeSplits


def test_names_are_those_of_the_fit():
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    frame = pandas.DataFrame(IRIS.data, columns=NAMES)
    forest = RandomForestRegressor(2, random_state=0, max_depth=2).fit(frame, IRIS.target)
    for export in (export_text, export_rules, export_python, export_graphviz):
        assert "petal_" in export(forest, 1)
        assert "feature_" not in export(forest, 1)


@pytest.fixture
def three_ways(monkeypatch):
    """A tree of two splits in a row on one feature, read as one split of three branches."""
    tree = DecisionTreeClassifier().fit([[0.0], [1.0], [2.0]], ["stay", "go", "stay"])
    assert tree_nodes(tree)[2].children == (3, 4)
    known = ("sunny", "overcast", "rainy")

    def branches(self, node):
        if node != 0:
            return ()
        kind = {"feature": 0, "name": "outlook", "known": known}
        return (
            Branch(OneOf(values=("sunny",), missing=True, **kind), 1),
            Branch(OneOf(values=("overcast",), **kind), 3),
            Branch(OneOf(values=("rainy",), others=True, **kind), 4),
        )

    monkeypatch.setattr(TreeSplits, "branches", branches)
    return tree


def test_nodes_may_have_more_than_two_branches(three_ways):
    assert export_rules(three_ways) == (
        "if outlook is sunny or missing then stay\n"
        "if outlook is overcast then go\n"
        "if outlook is rainy or other then stay\n"
    )
    assert export_rules(three_ways, per="class") == (
        "if outlook is overcast then go\n"
        "if (outlook is sunny or missing) or (outlook is rainy or other) then stay\n"
    )
    assert export_text(three_ways).splitlines()[::2] == [
        "outlook is sunny or missing",
        "outlook is overcast",
        "outlook is rainy or other",
    ]
    assert list(tree_nodes(three_ways)) == [0, 1, 3, 4]
    weather = np.array([["sunny"], [None], [np.nan], ["overcast"], ["rainy"], ["fog"]], object)
    found = python_predictions(export_python(three_ways), ["outlook"], weather)
    assert found == ["stay", "stay", "stay", "go", "stay", "stay"]
    dot = export_graphviz(three_ways)
    labels, edges = parsed(dot)
    assert labels[0].startswith(r"outlook\ngini")
    assert edges == [(0, 1), (0, 3), (0, 4)]
    assert '0 -> 3 [label="outlook is overcast"] ;' in dot


EXPORTS = [export_text, export_rules, export_python, export_graphviz, tree_nodes]


@pytest.mark.parametrize("export", EXPORTS)
def test_trees_that_cannot_be_shown(export):
    with pytest.raises(ValueError, match="tree 3 does not exist: choose one of 0 to 2"):
        export(FIT["forest"], 3)
    with pytest.raises(ValueError, match="feature_names has 1 names, the forest 4 features"):
        export(FIT["forest"], feature_names=["a"])
    with pytest.raises(ValueError, match="not fitted"):
        export(DecisionTreeClassifier())
    with pytest.raises(TypeError, match=r"a DecisionTreeClassifier has no trees of gpuforest's"):
        export(Sklearns().fit(IRIS.data, IRIS.target))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: export_rules(FIT["classes"], per="row"), "per='row' is unknown"),
        (lambda: export_rules(FIT["classes"], decimals=-1), "decimals=-1 is negative"),
        (lambda: export_rules(FIT["numbers"], per="class"), 'pass per="leaf"'),
        (lambda: export_rules(FIT["classes"], class_names=["a"]), "1 names, the tree 3 classes"),
        (
            lambda: tree_nodes(FIT["several classes"], class_names=[["a"], ["b", "c"]]),
            "1, 2 names, the tree 3, 2 classes",
        ),
        (lambda: tree_nodes(FIT["numbers"], class_names=["a"]), "class_names are for classes"),
        (lambda: export_graphviz(FIT["classes"], max_depth=-1), "max_depth=-1 is negative"),
        (lambda: export_graphviz(FIT["classes"], precision=-1), "precision=-1 is negative"),
        (
            lambda: export_python(FIT["classes"], feature_names=list("abca")),
            "two features are called 'a'",
        ),
    ],
)
def test_what_is_refused(call, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        call()


@pytest.mark.parametrize("export", EXPORTS)
def test_examples_run(export):
    found = doctest.testmod(import_module(export.__module__))
    assert (found.failed, found.attempted) == (0, len(re.findall(">>> ", export.__doc__)))
