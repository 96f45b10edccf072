"""Facts about models and rounds: digests, settings, curves, and what notebooks show of them."""

import json
import re

import numpy as np
import pytest
from boosted_models import FIT, class_model, data_of, number_model
from saved import reloaded
from sklearn import config_context
from sklearn.datasets import load_iris
from sklearn.utils import estimator_html_repr

import gpuforest as gf
from gpuforest import DecisionTreeClassifier, DecisionTreeRegressor, RandomForestClassifier
from gpuforest.core.nodes import is_leaf
from gpuforest.explain.model_facts import (
    best_round,
    forest_digest,
    measure_of,
    rounds_facts,
    rounds_rows,
    tree_leaves,
)

X, Y = load_iris(return_X_y=True)
BLOCK = re.compile(r'<table class="gpuforest-summary">.*?</table>')


def forest(**params):
    return gf.RandomForestClassifier(4, random_state=0, **params).fit(X, Y)


def test_digests(tmp_path):
    plain = forest(backend="numpy", max_bins=64)
    boosted = gf.HistGradientBoostingClassifier(max_iter=3).fit(X, Y)
    for model in (plain, boosted, gf.AdaBoostRegressor(n_estimators=3).fit(X, Y)):
        loaded = reloaded(model, tmp_path)
        assert forest_digest(loaded.forest_) == forest_digest(model.forest_)
    same = forest(max_bins=64, n_jobs=2)  # on another backend
    others = [forest(**other) for other in ({"max_depth": 2}, {"voting": "hard"}, {"max_bins": 16})]
    names = [forest().fit(X, labels) for labels in (Y + 1, Y.astype(str))]
    digests = [forest_digest(model.forest_) for model in (plain, same, *others, *names)]
    assert len(digests[0]) == 64
    assert len({*digests}) == len(digests) - 1 == len({*digests[1:]})


@pytest.mark.parametrize("kind", FIT)
def test_facts_are_those_of_the_model(kind):
    model = FIT[kind]
    forest, facts = model.forest_, rounds_facts(model)
    assert facts["rounds"] * facts["trees_per_round"] == len(facts["trees"]) == forest.n_trees
    assert facts["loss"] == model.loss
    assert facts["learning_rate"] == model.learning_rate
    assert facts["l2_regularization"] == model.l2_regularization
    raw = model._raw_predict(data_of(kind))
    assert facts["baseline"] == forest.baseline.tolist()
    assert len(facts["baseline"]) == raw.shape[1]
    assert dict(rounds_rows(facts)).items() <= rows(model).items()
    for t, tree in enumerate(facts["trees"]):
        begin, end = forest.tree_offsets[t : t + 2]
        assert tree["leaves"] == is_leaf(forest.nodes[begin:end]).sum() == tree_leaves(forest)[t]
        assert tree["depth"] == len(forest.levels(t, t + 1)) - 1
        K = model.n_trees_per_iteration_
        assert tree["round"] == 1 + t // K
        assert tree["class"] == (model.classes_[t % K] if K > 1 else None)
    assert json.loads(json.dumps(facts)) == facts


def test_rows_read_well():
    rows = dict(rounds_rows(rounds_facts(FIT["three classes"])))
    leaves = tree_leaves(FIT["three classes"].forest_)
    assert rows == {
        "rounds": "4, each of 3 trees, one a class",
        "leaves of a tree": f"{leaves.min()} to {leaves.max()}, on average {leaves.mean():.1f}",
        "loss": "log_loss, learning rate 0.1",
        "baseline": ", ".join(f"{v:.6g}" for v in FIT["three classes"].forest_.baseline)
        + ": the raw prediction before the first round",
    }
    model = number_model(early_stopping=True, n_iter_no_change=1, learning_rate=2.0)
    rows = dict(rounds_rows(rounds_facts(model)))
    assert rows["rounds"] == f"{model.n_iter_}, stopped early"
    losses = -model.validation_score_
    assert rows["validation loss"] == (
        f"{losses[-1]:.6g} after the last round, {losses.min():.6g} after the best, "
        f"round {losses.argmin()}"
    )
    assert rows["training loss"] == f"{-model.train_score_[-1]:.6g} after the last round"
    assert measure_of(number_model(scoring=None, early_stopping=True)) == ("score: R²", False)
    many = class_model(np.arange(300) % 9)
    assert dict(rounds_rows(rounds_facts(many)))["baseline"].count(",") == 6


def test_scores_that_are_no_finite_numbers(tmp_path):
    model = number_model(early_stopping=True)
    model.train_score_ = np.array([-np.inf, np.nan, -1.0, -2.0, -3.0])
    model.validation_score_ = np.array([-np.inf, np.nan, -3.0, -2.0, -np.inf])
    read = reloaded(model, tmp_path)
    facts = rounds_facts(read)
    assert facts["curves"]["validation"] == [None, None, 3.0, 2.0, None]
    assert facts["best_round"] == 3
    assert dict(rounds_rows(facts))["validation loss"] == (
        "no finite number after the last round, 2 after the best, round 3"
    )
    json.dumps(facts, allow_nan=False)
    assert best_round(np.array([np.nan, np.nan]), True) == 0
    assert best_round(np.array([3.0, 1.0, 1.0]), True) == 1
    assert best_round(np.array([3.0, 1.0, 3.0]), False) == 0


def rows(model):
    """Names and values in the block below the diagram."""
    (block,) = BLOCK.findall(model._repr_html_())
    return dict(re.findall(r"<th[^>]*>(.*?)</th><td[^>]*>(.*?)</td>", block))


def without_numbers(html):
    """Diagrams count themselves."""
    return re.sub(r"sk-(container|estimator)-id-\d+", "", html)


def test_a_fitted_forest_says_what_it_is():
    model = RandomForestClassifier(20, oob_score=True, random_state=0, backend="numpy").fit(X, Y)
    forest, edges = model.forest_, model.forest_.edges
    arrays = [forest.nodes, forest.tree_offsets, forest.leaf_sums]
    size = sum(a.nbytes for a in (*arrays, edges.values, edges.offsets, edges.kinds))
    depths = [len(forest.levels(t, t + 1)) - 1 for t in range(20)]
    assert rows(model) == {
        "trees": "20",
        "nodes": f"{forest.n_nodes}, of which {is_leaf(forest.nodes).sum()} leaves",
        "depth": f"{min(depths)} to {max(depths)}, on average {np.mean(depths):.1f}",
        "size": f"{size:,} bytes",
        "backend": "numpy",
        "classes": "3: 0, 1, 2",
        "out-of-bag score": f"{model.oob_score_:.4f}",
    }


def test_one_tree_and_its_target_whose_names_are_escaped():
    tree = DecisionTreeRegressor(max_depth=2).fit(X, np.stack([Y, -Y], axis=1))
    assert (rows(tree)["depth"], rows(tree)["outputs"]) == ("2", "2")
    tree = DecisionTreeClassifier().fit(X, np.stack([Y, Y > 0], axis=1))
    assert rows(tree)["outputs"] == "2 of 3, 2 classes"
    tree = DecisionTreeClassifier().fit(X, np.arange(150) % 8)
    assert rows(tree)["classes"] == "8: 0, 1, 2, 3, 4, 5, ..."
    assert rows(gf.RandomTreesEmbedding(2).fit(X))["trees"] == "2"
    tree = DecisionTreeClassifier().fit(X, np.array(["<script>", 'a&"b"', "c\nd"])[Y])
    classes = "3: &lt;script&gt;, a&amp;&quot;b&quot;, c\\nd"
    assert rows(tree)["classes"] == classes


def test_the_diagram_is_scikit_learns_and_no_bag_is_drawn_again_for_it(monkeypatch):
    model = RandomForestClassifier(3, random_state=0)
    assert without_numbers(model._repr_html_()) == without_numbers(estimator_html_repr(model))
    model.fit(X, Y)
    diagram, block = estimator_html_repr(model), BLOCK.findall(model._repr_html_())[0]
    assert without_numbers(model._repr_html_()) == without_numbers(diagram) + block
    assert model._repr_mimebundle_()["text/html"].endswith(block)
    assert model._repr_mimebundle_()["text/plain"] == repr(model)
    with config_context(display="text"):
        assert not hasattr(model, "_repr_html_")
        assert list(model._repr_mimebundle_()) == ["text/plain"]

    def refused(self):
        raise AssertionError

    monkeypatch.setattr(RandomForestClassifier, "estimators_samples_", property(refused))
    model = RandomForestClassifier(3, random_state=0).fit(X, Y)
    html = model._repr_html_()
    if "Fitted attributes" not in html:
        pytest.skip("this scikit-learn shows no attributes")
    assert ">seed_<" in html
    assert "_sampling_" not in html
