"""Trees as nodes, rules, Python and dot: all say what the tree does."""

import doctest
import io
import re
from importlib import import_module

import numpy as np
import pytest
from engine import table
from sklearn.datasets import load_iris
from sklearn.tree import DecisionTreeClassifier as Sklearns

from gpuforest import (
    BaggingRegressor,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreesClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
    RandomTreesEmbedding,
    export_graphviz,
    export_python,
    export_rules,
    export_text,
    tree_nodes,
)
from gpuforest.inspection.conditions import Branch, Categories, Splits
from gpuforest.inspection.text import tree_text

IRIS = load_iris()
SPECIES = IRIS.target_names[IRIS.target]
NAMES = ["sepal_length", "sepal_width", "petal_length", "petal_width"]
RNG = np.random.default_rng(3)
X = table(RNG, 300, list("cfnN"), np.float64)  # the last two have missing values
SUM = np.where(np.isnan(X), 0.7, X).sum(axis=1) + RNG.normal(size=300)
LABELS = np.array(["low", "mid", "high"])[np.digitize(SUM, np.quantile(SUM, [0.3, 0.7]))]
TWO = np.stack([LABELS, np.where(X[:, 0] > 0, "on", "off")], axis=1)
FIT = {
    "classes": DecisionTreeClassifier().fit(X, LABELS),
    "whole numbers as classes": DecisionTreeClassifier(max_depth=4).fit(X, SUM.astype(int)),
    "numbers": DecisionTreeRegressor().fit(X, SUM),
    "float32": DecisionTreeRegressor().fit(X.astype(np.float32), SUM),
    "several classes": DecisionTreeClassifier(max_depth=6).fit(X, TWO),
    "several numbers": DecisionTreeRegressor().fit(X, np.stack([SUM, -SUM * 2], axis=1)),
    "monotonic": DecisionTreeClassifier(monotonic_cst=[1, 0, 0, 0]).fit(X, SUM > 0),
    "one leaf": DecisionTreeClassifier().fit(X, ["a"] * 300),
    "forest": RandomForestClassifier(3, random_state=0).fit(X, LABELS),
    "votes": ExtraTreesClassifier(3, random_state=0, voting="hard").fit(X, LABELS),
    "several votes": RandomForestClassifier(2, random_state=0, voting="hard").fit(X, TWO),
    "embedding": RandomTreesEmbedding(2, random_state=0).fit(X),
    "counts": DecisionTreeRegressor(criterion="poisson").fit(X, np.abs(SUM)),
    "bags": BaggingRegressor(n_estimators=3, random_state=0).fit(X, SUM),
}


@pytest.fixture(params=FIT)
def model(request):
    return FIT[request.param]


def single(model):
    """Its last tree as an estimator of its own, and the tree's number."""
    if not hasattr(model, "estimators_"):
        return model, 0
    return model.estimators_[-1], len(model.estimators_) - 1


def grid():
    """Values on and between all edges of the trees above, and missing ones: rows of X."""
    rng = np.random.default_rng(0)
    columns = [np.concatenate([X[:, f], X[:, f] + 1e-3, [np.nan] * 60]) for f in range(4)]
    return np.stack([rng.choice(c, 500) for c in columns], axis=1)


def test_rules_of_the_textbook():
    tree = DecisionTreeClassifier(max_depth=2).fit(IRIS.data, SPECIES)
    assert export_rules(tree, feature_names=NAMES) == (
        "if petal_length <= 2.45 then setosa\n"
        "if (petal_length > 2.45 or missing) and (petal_width <= 1.75 or missing) then versicolor\n"
        "if (petal_length > 2.45 or missing) and petal_width > 1.75 then virginica\n"
    )
    tree = DecisionTreeClassifier(max_depth=3).fit(IRIS.data[:, 2:3], SPECIES)
    lines = export_rules(tree, feature_names=["x"], decimals=1, per="class").splitlines()
    assert [line.rpartition(" then ")[2] for line in lines] == list(IRIS.target_names)
    assert lines[1] == "if (2.5 < x <= 4.5) or (4.5 < x <= 4.8) then versicolor"


def test_every_row_meets_one_leaf_and_it_is_its_own(model):
    own, number = single(model)
    nodes, rows = tree_nodes(model, number), grid()
    leaves = [node for node in nodes.values() if node.is_leaf]
    meets = np.array(
        [[all(c.holds(row[c.feature]) for c in leaf.conditions) for leaf in leaves] for row in rows]
    )
    assert np.array_equal(meets.sum(axis=1), np.ones(len(rows)))
    numbers = np.array([leaf.number for leaf in leaves])
    assert np.array_equal(numbers[meets.argmax(axis=1)], own.apply(rows))


def test_branches_are_exhaustive_and_exclude_each_other(model):
    for node in tree_nodes(model, single(model)[1]).values():
        for value in (*grid()[:50, 0], None):
            held = sum(b.condition.holds(value) for b in node.branches)
            assert held == (not node.is_leaf)


def test_nodes_are_those_of_the_tree(request, model):
    own, number = single(model)
    nodes, tree = tree_nodes(model, number), own.tree_
    assert sorted(nodes) == list(range(tree.node_count))
    for n, node in nodes.items():
        assert node.number == n
        assert node.children == tuple(
            c for c in (tree.children_left[n], tree.children_right[n]) if c >= 0
        )
        assert node.is_leaf == (tree.feature[n] < 0)
        assert node.n_samples == tree.n_node_samples[n]
        assert node.impurity == tree.impurity[n]
        if "votes" in request.node.name:  # of the whole forest; a node tells its shares
            assert np.array_equal(node.value.argmax(axis=1), tree.value[n].argmax(axis=1))
        else:
            assert np.array_equal(node.value, tree.value[n])
        for child in node.children:
            assert (nodes[child].parent, nodes[child].depth) == (n, node.depth + 1)
    assert nodes[0].parent is None
    assert (nodes[0].rule, nodes[0].path) == ("", "")


def test_a_node_says_what_it_is():
    tree = DecisionTreeClassifier(max_depth=2).fit(IRIS.data, SPECIES)
    node = tree_nodes(tree, feature_names=NAMES, class_names=["a", "b", "c"])[3]
    assert node.rule == "petal_width <= 1.75 or missing"
    assert node.path == "(petal_length > 2.45 or missing) and (petal_width <= 1.75 or missing)"
    assert (node.prediction, node.depth, node.parent, node.n_samples) == ("b", 2, 2, 54)
    assert repr(node).startswith("Node(number=3, depth=2, parent=2, children=(), rule='petal_wi")


def python_predictions(source, names, rows):
    found = {}
    exec(source, found)
    return [found["predict"](dict(zip(names, row, strict=True))) for row in rows.tolist()]


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


NODE = re.compile(r'(\d+) \[label="((?:[^"\\]|\\.)*)"(, fillcolor="#[0-9a-f]{6}")?\] ;')
EDGE = re.compile(r"(\d+) -> (\d+)( \[(label=\"(?:[^\"\\]|\\.)*\"|labeldistance=.*)\])? ;")


def parsed(dot):
    """Labels of the nodes, and the edges."""
    lines = dot.splitlines()
    assert lines[0] == "digraph Tree {"
    assert re.fullmatch(r'node \[shape=box, (style="[a-z, ]+", )?color="black", .*\] ;', lines[1])
    assert lines[2] == 'edge [fontname="helvetica"] ;'
    assert lines[-1] == "}"
    labels, edges = {}, []
    for line in lines[3:-1]:
        if node := NODE.fullmatch(line):
            labels[int(node[1])] = node[2]
        else:
            edges.append(tuple(map(int, EDGE.fullmatch(line).groups()[:2])))
    return labels, edges


@pytest.mark.parametrize("filled", [False, True])
def test_dot_has_all_nodes_and_edges(model, filled):
    number = single(model)[1]
    nodes = tree_nodes(model, number)
    labels, edges = parsed(export_graphviz(model, number, filled=filled, rounded=True))
    assert labels.keys() == nodes.keys()
    assert sorted(edges) == sorted((n, c) for n, node in nodes.items() for c in node.children)


def test_dot_of_the_textbook():
    tree = DecisionTreeClassifier(max_depth=2).fit(IRIS.data, SPECIES)
    names = {"feature_names": NAMES}
    labels, _ = parsed(export_graphviz(tree, **names))
    assert labels[0] == (
        r"petal_length <= 2.45\ngini = 0.667\nsamples = 150\nvalue = [50, 50, 50]\nclass = setosa"
    )
    labels, _ = parsed(export_graphviz(tree, proportion=True, node_ids=True, precision=1, **names))
    assert labels[3] == (
        r"node #3\ngini = 0.2\nsamples = 36%\nvalue = [0, 0.9, 0.1]\nclass = versicolor"
    )
    labels, edges = parsed(export_graphviz(tree, impurity=False, max_depth=1, **names))
    assert labels[3] == labels[4] == "(...)"
    assert labels[1] == r"samples = 50\nvalue = [50, 0, 0]\nclass = setosa"
    assert edges == [(0, 1), (0, 2), (2, 3), (2, 4)]
    named = export_graphviz(tree, class_names=["a", "b", "c"])
    assert r"\nclass = b" in named


def test_colours_are_by_class_and_by_value():
    tree = DecisionTreeClassifier(max_depth=2).fit(IRIS.data, SPECIES)
    colours = re.findall(r'fillcolor="(.*)"', export_graphviz(tree, filled=True))
    assert colours[0] == colours[2] == "#ffffff"  # no class leads
    assert len(set(colours)) == 4
    tree = DecisionTreeRegressor(max_depth=2).fit(IRIS.data, IRIS.target)
    colours = re.findall(r'fillcolor="(.*)"', export_graphviz(tree, filled=True))
    assert colours[1] == "#ffffff"  # the smallest
    assert min(colours) == colours[-1]  # the largest


def test_colours_of_huge_numbers():
    huge = DecisionTreeRegressor().fit([[0.0], [1.0]], [[-1e300, 1e299], [1e300, 2e299]])
    colours = re.findall(r'fillcolor="(.*)"', export_graphviz(huge, filled=True))
    assert colours[0] == "#ffffff"
    assert colours[1] == colours[2] != "#ffffff"  # pure


def test_dot_goes_to_files(tmp_path):
    tree = DecisionTreeClassifier(max_depth=2).fit(IRIS.data, SPECIES)
    text, file = export_graphviz(tree, class_names=["ä", "b", "c"]), io.StringIO()
    assert export_graphviz(tree, class_names=["ä", "b", "c"], out_file=tmp_path / "dot") is None
    assert export_graphviz(tree, class_names=["ä", "b", "c"], out_file=file) is None
    assert (tmp_path / "dot").read_text(encoding="utf-8") == file.getvalue() == text


def test_names_cannot_break_out():
    names = ['a "b"', "\\", "c\nd", "<b>&lt;</b>"]
    labels = np.array(['x"];\n0 -> 9', "y\\", "z&amp;"])[IRIS.target]
    tree = DecisionTreeClassifier(max_depth=3).fit(IRIS.data, labels)
    dot = export_graphviz(tree, feature_names=names)
    assert parsed(dot)[0].keys() == tree_nodes(tree).keys()
    assert r"class = x\"];\\n0 -> 9" in dot
    assert "class = z&amp;amp;" in dot
    assert r"c\\nd <= 2.45" in dot
    assert "<b>&amp;lt;</b> <= 1.75" in dot
    rules = export_rules(tree, feature_names=names)
    assert rules.count("\n") == tree.get_n_leaves()
    assert rules.splitlines()[0] == r'if c\nd <= 2.45 then x"];\n0 -> 9'
    assert export_text(tree, feature_names=names).splitlines()[0] == r"c\nd <= 2.45"


def test_rules_of_a_class_are_those_of_its_leaves():
    tree = FIT["classes"]
    leaves = [line.removeprefix("if ") for line in export_rules(tree).splitlines()]
    for line in export_rules(tree, per="class").splitlines():
        ways, label = line.removeprefix("if ").rsplit(" then ", 1)
        own = [w.rpartition(" then ")[0] for w in leaves if w.endswith(f" then {label}")]
        assert ways == " or ".join(f"({way})" for way in own)
    assert len(export_rules(tree, per="class").splitlines()) == 3


def test_rules_of_numbers_and_of_several_outputs():
    x = [[0.0], [1.0]]
    assert export_rules(DecisionTreeRegressor().fit(x, [24.6, 1 / 3]), decimals=2) == (
        "if feature_0 <= 0.50 then 24.60\nif feature_0 > 0.50 or missing then 0.33\n"
    )
    assert export_rules(DecisionTreeClassifier().fit(x, [["a", "c"], ["b", "c"]])) == (
        "if feature_0 <= 0.5 then a, c\nif feature_0 > 0.5 or missing then b, c\n"
    )
    assert export_rules(DecisionTreeRegressor().fit(x, [[1, 2], [3, 4]])).splitlines()[1] == (
        "if feature_0 > 0.5 or missing then 3.0, 4.0"
    )
    assert export_rules(FIT["one leaf"]) == export_rules(FIT["one leaf"], per="class")
    assert export_rules(FIT["one leaf"]) == "always a\n"


def test_text_is_that_of_the_forest():
    forest = FIT["forest"]
    names = ["a", "b", "c", "d"]
    assert export_text(forest, 2, feature_names=names) == tree_text(forest.forest_, 2, names)
    assert export_text(forest, 1, max_depth=2) == tree_text(forest.forest_, 1, None, 2)


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
            Branch(Categories(values=("sunny",), missing=True, **kind), 1),
            Branch(Categories(values=("overcast",), **kind), 3),
            Branch(Categories(values=("rainy",), others=True, **kind), 4),
        )

    monkeypatch.setattr(Splits, "branches", branches)
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


@pytest.mark.parametrize("export", EXPORTS[1:])
def test_examples_run(export):
    found = doctest.testmod(import_module(export.__module__))
    assert (found.failed, found.attempted) == (0, len(re.findall(">>> ", export.__doc__)))
