"""What notebooks show of estimators: scikit-learn's diagram, and what fitted trees are."""

import re

import numpy as np
import pytest
from sklearn import config_context
from sklearn.datasets import load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import estimator_html_repr

import gpuforest
from gpuforest import (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    RandomForestClassifier,
    RandomTreesEmbedding,
)
from gpuforest.export.notebook import n_bytes
from gpuforest.nodes import is_leaf

X, Y = load_iris(return_X_y=True)
BLOCK = re.compile(r'<table class="gpuforest-summary">.*?</table>')


def rows(model):
    """Names and values in the block below the diagram."""
    (block,) = BLOCK.findall(model._repr_html_())
    return dict(re.findall(r"<th[^>]*>(.*?)</th><td[^>]*>(.*?)</td>", block))


def without_numbers(html):
    """Diagrams count themselves."""
    return re.sub(r"sk-(container|estimator)-id-\d+", "", html)


def test_a_fitted_forest_says_what_it_is():
    model = RandomForestClassifier(20, oob_score=True, random_state=0, backend="numpy").fit(X, Y)
    forest = model.forest_
    depths = [len(forest.levels(t, t + 1)) - 1 for t in range(20)]
    assert rows(model) == {
        "trees": "20",
        "nodes": f"{forest.n_nodes}, of which {is_leaf(forest.nodes).sum()} leaves",
        "depth": f"{min(depths)} to {max(depths)}, on average {np.mean(depths):.1f}",
        "size": f"{n_bytes(forest):,} bytes",
        "backend": "numpy",
        "classes": "3: 0, 1, 2",
        "out-of-bag score": f"{model.oob_score_:.4f}",
    }


def test_the_size_is_that_of_the_arrays():
    forest = DecisionTreeRegressor().fit(X, Y).forest_
    arrays = [forest.nodes, forest.tree_offsets, forest.leaf_sums, forest.leaf_impurity]
    arrays += [forest.edges.values, forest.edges.offsets, forest.edges.kinds]
    assert n_bytes(forest) == sum(a.nbytes for a in arrays)


def test_one_tree_and_its_target():
    tree = DecisionTreeRegressor(max_depth=2).fit(X, np.stack([Y, -Y], axis=1))
    assert (rows(tree)["depth"], rows(tree)["outputs"]) == ("2", "2")
    tree = DecisionTreeClassifier().fit(X, np.stack([Y, Y > 0], axis=1))
    assert rows(tree)["outputs"] == "2 of 3, 2 classes"
    tree = DecisionTreeClassifier().fit(X, np.arange(150) % 8)
    assert rows(tree)["classes"] == "8: 0, 1, 2, 3, 4, 5, ..."
    assert rows(RandomTreesEmbedding(2).fit(X))["trees"] == "2"


def test_names_are_escaped():
    tree = DecisionTreeClassifier().fit(X, np.array(["<script>", 'a&"b"', "c\nd"])[Y])
    classes = "3: &lt;script&gt;, a&amp;&quot;b&quot;, c\\nd"
    assert rows(tree)["classes"] == classes


def test_models_from_elsewhere(tmp_path):
    model = RandomForestClassifier(3, random_state=0).fit(X, Y)
    model.save(tmp_path / "model")
    assert rows(gpuforest.load(tmp_path / "model"))["trees"] == "3"
    assert rows(gpuforest.from_sklearn(model.to_sklearn()))["trees"] == "3"
    assert rows(model.estimators_[1])["trees"] == "1"


def test_the_diagram_is_scikit_learns():
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


def test_pipelines_show_their_own_diagram():
    pipe = make_pipeline(StandardScaler(), RandomForestClassifier(3, random_state=0)).fit(X, Y)
    html = pipe._repr_html_()
    assert "RandomForestClassifier" in html
    assert not BLOCK.search(html)


def test_no_bag_is_drawn_again_for_a_look(monkeypatch):
    def refused(self):
        raise AssertionError

    monkeypatch.setattr(RandomForestClassifier, "estimators_samples_", property(refused))
    model = RandomForestClassifier(3, random_state=0).fit(X, Y)
    html = model._repr_html_()
    if "Fitted attributes" not in html:
        pytest.skip("this scikit-learn shows no attributes")
    assert ">seed_<" in html
    assert "_sampling_" not in html
