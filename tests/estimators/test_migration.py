"""docs/migration.md: every parameter, attribute and method of scikit-learn's, as it says."""

import re
from inspect import signature

import numpy as np
import pandas as pd
import pytest
import sklearn.ensemble
import sklearn.tree
from paths import ROOT, TESTS
from sklearn._loss import HalfSquaredError
from sklearn.datasets import load_diabetes, load_iris
from sklearn.metrics import accuracy_score

import gpuforest as gf
from gpuforest.plot import plot_tree

ESTIMATORS = [n for n in gf.__all__ if n[0].isupper()]
NAMES = [n for n in ESTIMATORS if hasattr(sklearn.ensemble, n) or hasattr(sklearn.tree, n)]
PAGE = ROOT / "docs/migration.md"
DEFINED = re.compile(r"^def (test_\w+)", re.MULTILINE)
X, Y = load_iris(return_X_y=True)
RNG = np.random.default_rng(0)


def rows():
    """Of each table the name, kinds, text and test of every row."""
    found = {}
    for section in PAGE.read_text().split("\n## ")[1:]:
        lines = re.findall(r"^\| `(\w+)` \| (.+?) \| (.+?) \| ?(\w*) ?\|$", section, re.MULTILINE)
        found[section.split("\n")[0]] = lines
    return found


def theirs(name):
    return getattr(sklearn.ensemble, name, None) or getattr(sklearn.tree, name)


def fitted(kind, **params):
    known = kind._get_param_names()
    params |= {"n_estimators": 20} if "n_estimators" in known else {}
    params |= {"oob_score": True, "bootstrap": True} if "oob_score" in known else {}
    return kind(**params).fit(X, Y)


def public(model):
    return {n for n in dir(model) if not n.startswith("_") and hasattr(model, n)}


@pytest.fixture(scope="module")
def pairs():
    with np.errstate(all="ignore"):
        return {n: (fitted(getattr(gf, n)), fitted(theirs(n))) for n in NAMES}


def of_kinds(text, name):
    """Whether a table's column of kinds means the estimator of this name."""
    but = text.partition(" but ")[2].split(", ")
    is_excluded = any(name.startswith(b.removesuffix("*")) for b in but if b)
    if text.startswith("all classifiers"):
        return name.endswith("Classifier") and not is_excluded
    if text.startswith("all"):
        return not is_excluded
    return any(re.fullmatch(kind.replace("*", r"\w+"), name) for kind in text.split(", "))


@pytest.mark.parametrize("name", NAMES)
def test_parameters(name):
    own, other = (signature(kind).parameters for kind in (getattr(gf, name), theirs(name)))
    listed = {row[0]: row for row in rows()["Parameters"] if of_kinds(row[1], name)}
    assert listed.keys() == other.keys()
    for parameter, (_, _, text, _) in listed.items():
        if not text.startswith("different"):
            assert own[parameter].default == other[parameter].default
    new = {
        "max_bins", "backend", "memory_limit", "voting", "oob_tol", "max_estimators",
        "categorical_features", "min_category_frequency", "categorical_split",
        "unbiased_importances", "ccp_cv", "ccp_rule", "feature_combinations", "combination_weights",
        "priors", "shrinkage",
    }  # fmt: skip
    new |= set() if name.startswith("Hist") else {"interaction_cst"}
    new |= {"n_jobs", "verbose"} if name.startswith("AdaBoost") else set()
    of_boosting = {"n_jobs", "subsample", "min_hessian", "refit", "multi_strategy", "link", "power"}
    new |= of_boosting if name.startswith("Hist") else set()
    assert own.keys() - other.keys() <= new


@pytest.mark.filterwarnings("ignore:Some inputs do not have OOB scores")
@pytest.mark.parametrize("name", NAMES)
def test_attributes_and_methods(pairs, name):
    own, other = pairs[name]
    params = set(other.get_params(deep=False))
    listed = {r[0]: r for t in ("Attributes", "Methods") for r in rows()[t] if of_kinds(r[1], name)}
    listed.pop("feature_names_in_")
    assert listed.keys() == public(other) - params
    there = {n for n, row in listed.items() if not row[2].startswith("not there")}
    assert there == listed.keys() & public(own)


def test_each_difference_has_its_test():
    tests = {
        name for path in TESTS.rglob("test_*.py") for name in DEFINED.findall(path.read_text())
    }
    for name, _, text, test in (row for table in rows().values() for row in table):
        assert (test != "") != text.startswith("same"), name
        assert test == "" or test in tests, name


def test_estimator():
    a, b = (
        gf.BaggingClassifier(gf.DecisionTreeClassifier(random_state=s), 3, random_state=0)
        for s in (1, 2)
    )
    assert np.array_equal(a.fit(X, Y).forest_.nodes, b.fit(X, Y).forest_.nodes)


def test_strings():
    words = np.array(["a", "b"])[(X[:, :1] > 6).astype(int)].astype(object)
    frame = pd.DataFrame({"word": words[:, 0], "width": X[:, 1]})
    model = gf.HistGradientBoostingClassifier(max_iter=2).fit(frame, Y)
    assert model.is_categorical_.tolist() == [True, False]


def test_huber():
    model = gf.HistGradientBoostingRegressor("huber", max_iter=20).fit(X, Y.astype(float))
    assert model.score(X, Y) > 0.9
    with pytest.raises(ValueError, match="must return a gradient"):
        gf.HistGradientBoostingRegressor(HalfSquaredError()).fit(X, Y)


def test_learning_rate():
    """A class of 5 in 5000 rows, which one feature tells: a Newton step is 1000 long."""
    rows = np.zeros((5000, 1))
    rows[:5] = 1.0
    given = {"max_iter": 1, "min_samples_leaf": 5, "early_stopping": False}
    both = gf.HistGradientBoostingClassifier, sklearn.ensemble.HistGradientBoostingClassifier
    ours, theirs = (kind(learning_rate=0.2, **given).fit(rows, rows[:, 0]) for kind in both)
    start = np.log(5 / 4995)
    assert np.isclose(ours.decision_function([[1.0]]), start + 0.2 * 30)
    assert np.isclose(theirs.decision_function([[1.0]]), start + 0.2 * 1000)


def test_oob_score():
    seen = []

    def score(y, found):
        seen.append((y, found))
        return accuracy_score(y, found)

    labels = np.array(["a", "b", "c"])[Y]
    with pytest.warns(UserWarning, match="OOB"):
        gf.RandomForestClassifier(2, random_state=0, oob_score=score).fit(X, labels)
    ((y, found),) = seen
    assert {*y, *found} == {"a", "b", "c"}
    assert len(y) < len(X)


def test_verbose(capsys):
    gf.RandomForestClassifier(3, verbose=1).fit(X, Y)
    assert re.fullmatch(r"gpuforest: growing, \d\.\d\d s", capsys.readouterr().out.splitlines()[-1])
    gf.RandomForestClassifier(3, verbose=2).fit(X, Y)
    assert "gpuforest: growing, 3 of 3" in capsys.readouterr().out
    gf.RandomForestClassifier(3).fit(X, Y)
    assert capsys.readouterr().out == ""


@pytest.mark.filterwarnings("ignore:Some inputs do not have OOB scores")
def test_leftovers(pairs):
    missing = [r for t in ("Attributes", "Methods") for r in rows()[t] if "not there" in r[2]]
    assert len(missing) == 8
    for name, kinds, _, _ in missing:
        assert not any(hasattr(pairs[n][0], name) for n in NAMES if of_kinds(kinds, n)), name


def test_estimator_():
    trees = gf.ExtraTreesClassifier(2, max_depth=3).fit(X, Y)
    assert type(trees.estimator_) is gf.DecisionTreeClassifier
    assert trees.estimator_.get_params()["splitter"] == "random"
    assert trees.estimator_.max_depth == 3
    assert gf.ExtraTreesClassifier().estimator.get_params() == (
        gf.DecisionTreeClassifier(splitter="random").get_params()
    )
    theirs = set(sklearn.ensemble.ExtraTreesClassifier().estimator_params)
    assert theirs <= set(trees.estimator_params) <= set(gf.DecisionTreeClassifier().get_params())


def test_estimators_():
    labels = np.array(["a", "b", "c"])[Y]
    bags = gf.BaggingClassifier(max_features=2, n_estimators=3, random_state=0).fit(X, labels)
    assert set(bags.estimators_[0].predict(X)) <= {"a", "b", "c"}
    mean = np.mean([tree.predict_proba(X) for tree in bags.estimators_], axis=0)
    assert np.allclose(mean, bags.predict_proba(X), rtol=1e-15)  # np.mean adds in another order


def test_tree_():
    data, y = load_diabetes(return_X_y=True)
    tree = gf.DecisionTreeRegressor(max_depth=3).fit(data, y)
    nodes, leaves = tree.tree_, tree.apply(data)
    assert (nodes.children_left[leaves] == -1).all()
    assert np.array_equal(nodes.value[leaves, 0, 0], tree.predict(data))
    split = nodes.children_left > 0
    assert np.array_equal(nodes.children_right[split], nodes.children_left[split] + 1)
    assert (tree.decision_path(data).tocsr()[np.arange(len(data)), leaves] == 1).all()


def test_fit():
    tree = gf.DecisionTreeClassifier().fit(X, Y, check_input=False)
    for method in (tree.predict, tree.predict_proba, tree.apply, tree.decision_path):
        with pytest.raises(ValueError, match="infinity"):
            method(np.where(X > 1, np.inf, X), check_input=False)
    two = np.stack([Y, Y == 1], axis=1)
    assert gf.BaggingClassifier(random_state=0).fit(X, two).predict(X).shape == (150, 2)


def test_export_graphviz():
    own = signature(gf.export_graphviz).parameters
    other = signature(sklearn.tree.export_graphviz).parameters
    left_out = {"label", "leaves_parallel", "rotate", "special_characters", "fontname"}
    assert other.keys() - own.keys() == {"decision_tree", *left_out}
    assert own.keys() - other.keys() == {"estimator", "tree"}
    for name in own.keys() & other.keys():
        assert own[name].default == other[name].default
    labels = np.array(["a", "b", "c"])[Y]
    forest = gf.RandomForestClassifier(2, random_state=0).fit(X, labels)
    assert "class = b" in gf.export_graphviz(forest, 1)


def test_export_text():
    labels = np.array(["a", "b", "c"])[Y]
    text = gf.export_text(gf.DecisionTreeClassifier(max_depth=1).fit(X, labels))
    assert text.splitlines()[:2] == ["feature_2 <= 2.45", "|   class: a (a: 50)"]


def test_plot_tree():
    matplotlib = pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    matplotlib.use("Agg")
    own = signature(plot_tree).parameters
    other = signature(sklearn.tree.plot_tree).parameters
    assert other.keys() - own.keys() == {"decision_tree", "label", "rounded", "fontsize"}
    assert own.keys() - other.keys() == {"estimator", "tree"}
    differing = {n for n in own.keys() & other.keys() if own[n].default != other[n].default}
    assert differing == {"filled"}
    tree = gf.DecisionTreeClassifier(max_depth=1).fit(X, Y)
    assert len(plot_tree(tree).patches) == tree.tree_.node_count
    assert len(sklearn.tree.plot_tree(tree.to_sklearn())) >= tree.tree_.node_count
