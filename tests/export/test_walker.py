"""Nodes, text, rules and dot: each says what it is, and conditions lead every row to its leaf."""

import io
import re

import numpy as np
import pytest
from boosted_models import FIT as BOOSTED
from boosted_models import class_model, data_of, leaves, number_model
from shown import (
    FIT,
    IRIS,
    NAMES,
    OBLIQUE,
    SPECIES,
    SUMMED,
    grid,
    parsed,
    python_predictions,
    single,
)
from sklearn.tree import DecisionTreeClassifier as Sklearns

import gpuforest as gf
from gpuforest.explain import paths
from gpuforest.export.text import tree_lines
from gpuforest.export.walker import opened

MODELS = {**FIT, **{f"gradient {kind}": model for kind, model in BOOSTED.items()}, **OBLIQUE}
TEXTBOOK = gf.DecisionTreeClassifier(max_depth=2).fit(IRIS.data, SPECIES)


def reached(kind):
    """The nodes of a model's last tree, rows, and the leaf that each reaches there."""
    model = MODELS[kind]
    if kind.startswith("gradient "):
        number, rows = model.forest_.n_trees - 1, data_of(kind.removeprefix("gradient "))
        return gf.tree_nodes(model, number), rows, leaves(model, rows)[:, number]
    (own, number), rows = single(model), SUMMED[::-1] + 0.1 if kind in OBLIQUE else grid()
    return gf.tree_nodes(model, number), rows, own.apply(rows)


def met(conditions, row):
    return [c.holds(row if getattr(c, "terms", ()) else row[c.feature]) for c in conditions]


@pytest.mark.parametrize("kind", MODELS)
def test_every_row_meets_the_conditions_of_its_own_leaf_alone(kind):
    nodes, rows, numbers = reached(kind)
    ends = [node for node in nodes.values() if node.is_leaf]
    for row, number in zip(np.asarray(rows, object), numbers, strict=True):
        node = nodes[0]
        while node.branches:  # of which one is met
            ways = met(node.branches, row)
            assert sum(ways) == 1
            node = nodes[node.children[ways.index(True)]]
        assert [end.number for end in ends if all(met(end.conditions, row))] == [number]
        assert node.number == number
    if kind in OBLIQUE:
        assert sum(len(c.terms) > 1 for node in nodes.values() for c in node.branches) > 9


@pytest.mark.parametrize("kind", FIT)
def test_nodes_are_those_of_the_tree(kind):
    own, number = single(FIT[kind])
    nodes, tree = gf.tree_nodes(FIT[kind], number), own.tree_
    assert sorted(nodes) == list(range(tree.node_count))
    for n, node in nodes.items():
        children = tree.children_left[n], tree.children_right[n]
        assert (node.number, node.children) == (n, tuple(c for c in children if c >= 0))
        assert node.is_leaf == (tree.feature[n] < 0)
        assert (node.n_samples, node.impurity) == (tree.n_node_samples[n], tree.impurity[n])
        if "votes" in kind:  # votes are of the whole forest; a node has its shares
            assert np.array_equal(node.value.argmax(axis=1), tree.value[n].argmax(axis=1))
        else:
            assert np.array_equal(node.value, tree.value[n])
        for child in node.children:
            assert (nodes[child].parent, nodes[child].depth) == (n, node.depth + 1)
    assert (nodes[0].parent, nodes[0].rule, nodes[0].path) == (None, "", "")


@pytest.mark.parametrize("kind", BOOSTED)
def test_boosted_nodes_are_those_of_the_arrays(kind):
    model, number = BOOSTED[kind], BOOSTED[kind].forest_.n_trees - 1
    nodes, tree = gf.tree_nodes(model, number), opened(model, number).columns
    assert sorted(nodes) == list(range(len(tree["value"])))
    for n, node in nodes.items():
        assert node.n_samples == tree["n_samples"][n]
        assert (node.gradients, node.hessians) == (tree["gradients"][n], tree["hessians"][n])
        assert node.gain == (None if node.is_leaf else tree["gain"][n])
        assert node.prediction == tree["value"][n] == node.value
        assert (node.impurity, node.round) == (None, model.n_iter_)


def test_boosted_nodes_say_what_leaves_add_to():
    log = "the log of the prediction"
    for kind, said in {
        "numbers": "the prediction", "counts": log, "positive": log,
        "two classes": "the log odds of low",
    }.items():  # fmt: skip
        assert {node.adds_to for node in gf.tree_nodes(BOOSTED[kind]).values()} == {said}
    model = BOOSTED["three classes"]
    for tree, label in enumerate([*model.classes_] * 2):
        node = gf.tree_nodes(model, tree)[0]
        assert (node.round, node.adds_to) == (1 + tree // 3, f"the raw prediction of {label}")
        for line in gf.export_rules(model, tree, decimals=3).splitlines():
            assert re.fullmatch(rf".* then add -?\d\.\d{{3}} to {node.adds_to}", line)
    assert gf.tree_nodes(model, 1, class_names=["a", "b", "c"])[0].adds_to.endswith(" of b")
    alone = class_model(np.repeat("a", 300))  # which no row contradicts
    assert gf.tree_nodes(alone)[0].adds_to == "the log odds of another class"
    assert gf.export_rules(BOOSTED["one leaf"]).startswith("always add ")


def test_text_is_that_of_the_forest_and_may_end_above_the_leaves():
    forest, names = FIT["forest"], list("abcd")
    lines = tree_lines(forest, 2, names)
    assert gf.export_text(forest, 2, feature_names=names).splitlines() == list(lines)
    for model, head in (
        (forest, []),
        (BOOSTED["numbers"], ["round 1 of 4: leaves add to the prediction"]),
    ):
        more = f"... {paths.subtree_sizes(model.forest_, 0)[0] - 1} more nodes"
        assert gf.export_text(model, max_depth=0).splitlines() == [*head, more]


def test_one_round_reads_well():
    x = np.repeat([0.0, 1.0], 20)[:, None]
    model = number_model(y=np.repeat([1.0, 3.0], 20), data=x, learning_rate=0.5)
    assert gf.export_text(model, feature_names=["x"]) == (
        "round 1 of 4: leaves add to the prediction\n"
        "x <= 0.5\n"
        "|   value: -0.5 (rows: 20, gradients: 20, hessians: 20)\n"
        "x > 0.5 or missing\n"
        "|   value: 0.5 (rows: 20, gradients: -20, hessians: 20)\n"
    )
    assert gf.export_rules(model, 1, feature_names=["x"]) == (
        "if x <= 0.5 then add -0.25 to the prediction\n"
        "if x > 0.5 or missing then add 0.25 to the prediction\n"
    )
    labels, edges = parsed(gf.export_graphviz(model, feature_names=["x"], filled=True))
    assert edges == [(0, 1), (0, 2)]
    assert labels[0] == (
        r"round 1 of 4: leaves add to the prediction\nx <= 0.5\ngain = 40\nsamples = 40\nvalue = 0"
    )
    assert labels[1] == r"samples = 20\nvalue = -0.5"
    labels, _ = parsed(gf.export_graphviz(model, impurity=False, proportion=True, node_ids=True))
    assert labels[0].endswith(r"\nnode #0\nfeature_0 <= 0.5\nsamples = 100%\nvalue = 0")
    assert labels[2] == r"node #2\nsamples = 50%\nvalue = 0.5"


def test_rules_of_the_textbook():
    assert gf.export_rules(TEXTBOOK, feature_names=NAMES) == (
        "if petal_length <= 2.45 then setosa\n"
        "if (petal_length > 2.45 or missing) and (petal_width <= 1.75 or missing) then versicolor\n"
        "if (petal_length > 2.45 or missing) and petal_width > 1.75 then virginica\n"
    )
    tree = gf.DecisionTreeClassifier(max_depth=3).fit(IRIS.data[:, 2:3], SPECIES)
    lines = gf.export_rules(tree, feature_names=["x"], decimals=1, per="class").splitlines()
    assert [line.rpartition(" then ")[2] for line in lines] == list(IRIS.target_names)
    assert lines[1] == "if (2.5 < x <= 4.5) or (4.5 < x <= 4.8) then versicolor"
    leaves = [line.removeprefix("if ") for line in gf.export_rules(FIT["classes"]).splitlines()]
    lines = gf.export_rules(FIT["classes"], per="class").splitlines()
    assert len(lines) == 3
    for line in lines:  # of a class, the rules of its leaves
        ways, label = line.removeprefix("if ").rsplit(" then ", 1)
        own = [w.rpartition(" then ")[0] for w in leaves if w.endswith(f" then {label}")]
        assert ways == " or ".join(f"({way})" for way in own)


@pytest.mark.parametrize(("kind", "y", "options", "rules"), [
    (gf.DecisionTreeRegressor, [24.6, 1 / 3], {"decimals": 2},
     "if x <= 0.50 then 24.60\nif x > 0.50 or missing then 0.33\n"),
    (gf.DecisionTreeClassifier, [["a", "c"], ["b", "c"]], {},
     "if x <= 0.5 then a, c\nif x > 0.5 or missing then b, c\n"),
    (gf.DecisionTreeRegressor, [[1, 2], [3, 4]], {},
     "if x <= 0.5 then 1.0, 2.0\nif x > 0.5 or missing then 3.0, 4.0\n"),
    (gf.DecisionTreeClassifier, ["a", "a"], {}, "always a\n"),
    (gf.DecisionTreeClassifier, ["a", "a"], {"per": "class"}, "always a\n"),
])  # fmt: skip
def test_rules_of_numbers_and_of_several_outputs(kind, y, options, rules):
    tree = kind().fit([[0.0], [1.0]], y)
    assert gf.export_rules(tree, feature_names=["x"], **options) == rules


def test_a_node_says_what_it_is_by_the_names_of_the_fit():
    node = gf.tree_nodes(TEXTBOOK, feature_names=NAMES, class_names=["a", "b", "c"])[3]
    assert node.rule == "petal_width <= 1.75 or missing"
    assert node.path == "(petal_length > 2.45 or missing) and (petal_width <= 1.75 or missing)"
    assert (node.prediction, node.depth, node.parent, node.n_samples) == ("b", 2, 2, 54)
    assert repr(node).startswith("Node(number=3, depth=2, parent=2, children=(), rule='petal_wi")
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    frame = pandas.DataFrame(IRIS.data, columns=NAMES)
    forest = gf.RandomForestRegressor(2, random_state=0, max_depth=2).fit(frame, IRIS.target)
    for export in (gf.export_text, gf.export_rules, gf.export_python, gf.export_graphviz):
        assert "petal_" in export(forest, 1)
        assert "feature_" not in export(forest, 1)


def test_nodes_may_have_more_than_two_branches():
    days = np.array([["sunny"], ["overcast"], ["rainy"]] * 4 + [[None]], object)
    tree = gf.DecisionTreeClassifier(categorical_split="multiway", categorical_features=[0])
    tree.fit(days, ["stay", "go", "maybe"] * 4 + ["stay"])
    words = ["x is overcast or other", "x is rainy", "x is sunny", "x is missing"]
    names, labels = {"feature_names": ["x"]}, ["go", "maybe", "stay", "stay"]
    assert gf.export_rules(tree, **names).splitlines() == [
        f"if {way} then {label}" for way, label in zip(words, labels, strict=True)
    ]
    assert gf.export_rules(tree, per="class", **names).splitlines() == [
        f"if {words[0]} then go", f"if {words[1]} then maybe",
        f"if ({words[2]}) or ({words[3]}) then stay",
    ]  # fmt: skip
    assert gf.export_text(tree, **names).splitlines()[::2] == words
    assert list(gf.tree_nodes(tree)) == [0, 1, 3, 5, 6]
    asked = np.array([["fog"], ["rainy"], ["sunny"], [np.nan], [None]], object)
    found = python_predictions(gf.export_python(tree, **names), ["x"], asked)
    assert found == [*labels, "stay"] == tree.predict(asked).tolist()
    dot = gf.export_graphviz(tree, **names)
    assert parsed(dot)[1] == [(0, 1), (0, 3), (0, 5), (0, 6)]
    assert '0 -> 3 [label="x is rainy"] ;' in dot


def test_words_of_mean_targets_and_of_sums():
    rows = np.array([["red"], ["blue"]] * 20, object)
    tree = gf.DecisionTreeClassifier(
        categorical_features=[0], categorical_split="ordered_target", random_state=0
    ).fit(rows, [0, 1] * 20)
    first, *_ = gf.export_text(tree, feature_names=["x"]).splitlines()
    assert first == gf.tree_nodes(tree, feature_names=["x"])[1].rule
    assert first == "mean target of x <= 0.25 or missing"
    data = np.random.default_rng(0).normal(size=(3000, 2))
    tree = gf.DecisionTreeClassifier(
        max_depth=1, feature_combinations=2, max_features=10, random_state=0
    ).fit(data, data.sum(axis=1) > 0.5)
    words = gf.export_text(tree, feature_names=["a", "b"]).splitlines()[0]
    number = r"-?\d+(\.\d+)?"
    assert re.fullmatch(rf"[ab] [+-] {number} [ab] <= {number}( or missing)?", words)
    total = words.partition(" <= ")[0]
    assert total in gf.export_graphviz(tree, feature_names=["a", "b"])
    assert total in gf.export_rules(tree, feature_names=["a", "b"])


EXPORTS = [gf.export_text, gf.export_rules, gf.export_python, gf.export_graphviz, gf.tree_nodes]
CLASSES, THREE = FIT["classes"], BOOSTED["three classes"]


@pytest.mark.parametrize("export", EXPORTS)
def test_trees_that_cannot_be_shown(export):
    for call, error, message in (
        (lambda: export(FIT["forest"], 3), ValueError, "tree 3 does not exist: choose one of 0"),
        (lambda: export(THREE, 12), ValueError, "tree 12 does not exist: choose one of 0 to 11"),
        (lambda: export(FIT["forest"], feature_names=["a"]), ValueError,
         "feature_names has 1 names, the forest 4 features"),
        (lambda: export(gf.DecisionTreeClassifier()), ValueError, "not fitted"),
        (lambda: export(Sklearns().fit(IRIS.data, IRIS.target)), TypeError,
         "a DecisionTreeClassifier has no trees of gpuforest's"),
    ):  # fmt: skip
        with pytest.raises(error, match=message):
            call()


@pytest.mark.parametrize(("export", "model", "options", "message"), [
    (gf.export_rules, CLASSES, {"per": "row"}, "per='row' is unknown"),
    (gf.export_rules, CLASSES, {"decimals": -1}, "decimals=-1 is negative"),
    (gf.export_rules, FIT["numbers"], {"per": "class"}, 'pass per="leaf"'),
    (gf.export_rules, THREE, {"per": "class"}, 'per="class" is for classes, and this tree'),
    (gf.export_rules, CLASSES, {"class_names": ["a"]}, "1 names, the tree 3 classes"),
    (gf.tree_nodes, THREE, {"class_names": ["a"]}, "class_names has 1 names, the tree 3"),
    (gf.tree_nodes, FIT["several classes"], {"class_names": [["a"], ["b", "c"]]},
     "1, 2 names, the tree 3, 2 classes"),
    (gf.tree_nodes, FIT["numbers"], {"class_names": ["a"]}, "class_names are for classes"),
    (gf.export_graphviz, CLASSES, {"max_depth": -1}, "max_depth=-1 is negative"),
    (gf.export_graphviz, CLASSES, {"precision": -1}, "precision=-1 is negative"),
    (gf.export_python, CLASSES, {"feature_names": list("abca")}, "two features are called 'a'"),
    (gf.export_python, CLASSES, {"tree": None},
     "the trees of a DecisionTreeClassifier are not one function"),
])  # fmt: skip
def test_what_is_refused(export, model, options, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        export(model, **options)


@pytest.mark.parametrize("kind", FIT)
@pytest.mark.parametrize("filled", [False, True])
def test_dot_has_all_nodes_and_edges(kind, filled):
    model, number = FIT[kind], single(FIT[kind])[1]
    nodes = gf.tree_nodes(model, number)
    labels, edges = parsed(gf.export_graphviz(model, number, filled=filled, rounded=True))
    assert labels.keys() == nodes.keys()
    assert sorted(edges) == sorted((n, c) for n, node in nodes.items() for c in node.children)


def test_dot_of_the_textbook_and_in_files(tmp_path):
    names = {"feature_names": NAMES}
    labels, _ = parsed(gf.export_graphviz(TEXTBOOK, **names))
    assert labels[0] == (
        r"petal_length <= 2.45\ngini = 0.667\nsamples = 150\nvalue = [50, 50, 50]\nclass = setosa"
    )
    labels, _ = parsed(
        gf.export_graphviz(TEXTBOOK, proportion=True, node_ids=True, precision=1, **names)
    )
    assert labels[3] == (
        r"node #3\ngini = 0.2\nsamples = 36%\nvalue = [0, 0.9, 0.1]\nclass = versicolor"
    )
    labels, edges = parsed(gf.export_graphviz(TEXTBOOK, impurity=False, max_depth=1, **names))
    assert labels[3] == labels[4] == "(...)"
    assert labels[1] == r"samples = 50\nvalue = [50, 0, 0]\nclass = setosa"
    assert edges == [(0, 1), (0, 2), (2, 3), (2, 4)]
    named = gf.export_graphviz(TEXTBOOK, class_names=["a", "b", "c"])
    assert r"\nclass = b" in named
    file = io.StringIO()
    for out in (tmp_path / "dot", file):
        assert gf.export_graphviz(TEXTBOOK, class_names=["ä", "b", "c"], out_file=out) is None
    text = gf.export_graphviz(TEXTBOOK, class_names=["ä", "b", "c"])
    assert (tmp_path / "dot").read_text(encoding="utf-8") == file.getvalue() == text


def test_names_cannot_break_out():
    names = ['a "b"', "\\", "c\nd", "<b>&lt;</b>"]
    labels = np.array(['x"];\n0 -> 9', "y\\", "z&amp;"])[IRIS.target]
    tree = gf.DecisionTreeClassifier(max_depth=3).fit(IRIS.data, labels)
    dot = gf.export_graphviz(tree, feature_names=names)
    assert parsed(dot)[0].keys() == gf.tree_nodes(tree).keys()
    assert r"class = x\"];\\n0 -> 9" in dot
    assert "class = z&amp;amp;" in dot
    assert r"c\\nd <= 2.45" in dot
    assert "<b>&amp;lt;</b> <= 1.75" in dot
    rules = gf.export_rules(tree, feature_names=names)
    assert rules.count("\n") == tree.get_n_leaves()
    assert rules.splitlines()[0] == r'if c\nd <= 2.45 then x"];\n0 -> 9'
    assert gf.export_text(tree, feature_names=names).splitlines()[0] == r"c\nd <= 2.45"
    boosted = class_model(labels, IRIS.data)
    dot = gf.export_graphviz(boosted)
    assert parsed(dot)[0].keys() == gf.tree_nodes(boosted).keys()
    assert r"raw prediction of x\"];\\n0 -> 9\n" in dot


def test_colours_are_by_class_and_by_value():
    colours = re.findall(r'fillcolor="(.*)"', gf.export_graphviz(TEXTBOOK, filled=True))
    assert colours[0] == colours[2] == "#ffffff"  # no class leads
    assert len(set(colours)) == 4
    tree = gf.DecisionTreeRegressor(max_depth=2).fit(IRIS.data, IRIS.target)
    colours = re.findall(r'fillcolor="(.*)"', gf.export_graphviz(tree, filled=True))
    assert colours[1] == "#ffffff"  # the smallest
    assert min(colours) == colours[-1]  # the largest
    huge = gf.DecisionTreeRegressor().fit([[0.0], [1.0]], [[-1e300, 1e299], [1e300, 2e299]])
    colours = re.findall(r'fillcolor="(.*)"', gf.export_graphviz(huge, filled=True))
    assert colours[0] == "#ffffff"
    assert colours[1] == colours[2] != "#ffffff"  # pure
