"""What is said of the rounds of a boosted model, and the same in notebooks."""

import json
import re

import numpy as np
import pytest
from boosted_models import FIT, class_model, data_of, number_model
from shown import SUM

import gpuforest
from gpuforest.common.errors import ModelFormatError
from gpuforest.export import boosted_file
from gpuforest.inspection.round_facts import (
    best_round,
    kept_curves,
    measure_of,
    rounds_facts,
    rounds_rows,
    tree_leaves,
)
from gpuforest.nodes import is_leaf


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
    for t, tree in enumerate(facts["trees"]):
        begin, end = forest.tree_offsets[t : t + 2]
        assert tree["leaves"] == is_leaf(forest.nodes[begin:end]).sum() == tree_leaves(forest)[t]
        assert tree["depth"] == len(forest.levels(t, t + 1)) - 1
        K = model.n_trees_per_iteration_
        assert tree["round"] == 1 + t // K
        assert tree["class"] == (model.classes_[t % K] if K > 1 else None)
    assert json.loads(json.dumps(facts)) == facts


def test_curves_of_losses_and_of_scores():
    stops = {"early_stopping": True, "n_iter_no_change": 3}
    model = number_model(**stops)
    assert measure_of(model) == ("loss: squared_error", True)
    curves = kept_curves(model)
    assert curves["training"].tolist() == (-model.train_score_).tolist()
    assert curves["validation"].tolist() == (-model.validation_score_).tolist()
    assert rounds_facts(model)["best_round"] == model.validation_score_.argmax()
    for scoring, word in (("roc_auc", "roc_auc"), (None, "accuracy"), (judge, "judge")):
        model = class_model(SUM > 0, scoring=scoring, **stops)
        assert measure_of(model) == (f"score: {word}", False)
        assert kept_curves(model)["validation"].tolist() == model.validation_score_.tolist()
    assert measure_of(number_model(scoring=None, **stops)) == ("score: R²", False)
    assert kept_curves(FIT["numbers"]) == {}
    assert best_round(np.array([3.0, 1.0, 1.0]), True) == 1
    assert best_round(np.array([3.0, 1.0, 3.0]), False) == 0


def judge(estimator, X, y):
    return (estimator.predict(X) == y).mean()


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
    many = class_model(np.arange(300) % 9)
    assert dict(rounds_rows(rounds_facts(many)))["baseline"].count(",") == 6


def test_notebooks_say_it_too():
    for model in (FIT["numbers"], FIT["ends early"]):
        (block,) = re.findall(r'<table class="gpuforest-summary">.*?</table>', model._repr_html_())
        shown = dict(re.findall(r"<th[^>]*>(.*?)</th><td[^>]*>(.*?)</td>", block))
        assert dict(rounds_rows(rounds_facts(model))).items() <= shown.items()
        assert shown["trees"] == str(model.forest_.n_trees)


def test_a_file_knows_that_a_function_gave_the_scores():
    model = class_model(SUM > 0, scoring=judge, early_stopping=True)
    header = {"boosting": boosted_file.header_of(model)}
    assert header["boosting"]["scored_by"] == "judge"
    arrays = boosted_file.arrays_of(model)
    # a file holds no function: the model that is read has the default
    read = class_model(SUM > 0)
    boosted_file.set_scores(read, header, arrays)
    assert measure_of(read) == measure_of(model) == ("score: judge", False)
    assert boosted_file.header_of(read) == header["boosting"]
    assert boosted_file.read_coding(header, arrays, model.classes_).loss.name == "log_loss"
    broken = {"boosting": {**header["boosting"], "scored_by": 1}}
    with pytest.raises(ModelFormatError, match="boosting of other types"):
        boosted_file.read_coding(broken, arrays, model.classes_)
    assert "scored_by" not in boosted_file.header_of(FIT["ends early"])


def test_scores_that_are_no_finite_numbers(tmp_path):
    model = number_model(early_stopping=True)
    model.train_score_ = np.array([-np.inf, np.nan, -1.0, -2.0, -3.0])
    model.validation_score_ = np.array([-np.inf, np.nan, -3.0, -2.0, -np.inf])
    model.save(tmp_path / "model")
    read = gpuforest.load(tmp_path / "model")
    facts = rounds_facts(read)
    assert facts["curves"]["validation"] == [None, None, 3.0, 2.0, None]
    assert facts["best_round"] == 3
    assert dict(rounds_rows(facts))["validation loss"] == (
        "no finite number after the last round, 2 after the best, round 3"
    )
    json.dumps(facts, allow_nan=False)
    assert best_round(np.array([np.nan, np.nan]), True) == 0
