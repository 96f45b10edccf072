"""Rules: the textbook's, one line a leaf or a class, of every kind of prediction."""

from shown import FIT, IRIS, NAMES, SPECIES

from gpuforest import (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    export_rules,
)


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
