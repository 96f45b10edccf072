"""scikit-learn's callbacks: the fit is a task, and each tree a task in it."""

import sys
from threading import Thread
from typing import ClassVar

import numpy as np
import pytest
from joblib import parallel_backend
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import gpuforest as gf
from gpuforest.common.progress import listening

callback = pytest.importorskip("sklearn.callback", reason="scikit-learn before 1.9")

X, Y = load_iris(return_X_y=True)


class Recorder:
    def __init__(self):
        self.recorded = []

    def setup(self, estimator, context):
        self.recorded.append("setup")

    def teardown(self, estimator, context):
        self.recorded.append("teardown")

    def on_fit_task_begin(self, estimator, context):
        self.recorded.append(("begin", context.task_name))

    def on_fit_task_end(self, estimator, context):
        self.recorded.append(("end", context.task_name))


def fit_of(n_trees):
    tree = [("begin", "tree"), ("end", "tree")]
    return ["setup", ("begin", "fit"), *tree * n_trees, ("end", "fit"), "teardown"]


@pytest.mark.parametrize(("model", "more", "n_trees"), [
    (gf.RandomForestClassifier(5, n_jobs=2), {}, 5),
    (gf.RandomForestClassifier(5, backend="numpy"), {}, 5), (gf.DecisionTreeClassifier(), {}, 1),
    (gf.BaggingClassifier(n_estimators=3), {}, 3),
    (gf.HistGradientBoostingClassifier(max_iter=2), {}, 2),
    (gf.RandomForestClassifier(2, warm_start=True), {"n_estimators": 6}, 4),
    (gf.HistGradientBoostingClassifier(max_iter=2, warm_start=True), {"max_iter": 5}, 3),
])  # fmt: skip
def test_each_tree_is_a_task(model, more, n_trees):
    recorder = Recorder()
    model = clone(model).set_params(random_state=0)
    plain = clone(model).fit(X, Y)
    if more:
        model.fit(X, Y).set_params(**more)
    model.set_callbacks(recorder).fit(X, Y)
    assert recorder.recorded == fit_of(n_trees)
    if not more:
        assert np.array_equal(model.forest_.nodes, plain.forest_.nodes)


def test_a_fit_that_fails_is_torn_down():
    recorder = Recorder()
    with pytest.raises(ValueError, match="NaN"):
        gf.RandomForestClassifier().set_callbacks(recorder).fit(X, np.full(150, np.nan))
    assert recorder.recorded == ["setup", ("begin", "fit"), "teardown"]


def test_scores_and_a_progress_bar_in_a_pipeline(capsys):
    forest = gf.RandomForestClassifier(5, random_state=0)
    monitor = callback.ScoringMonitor(scoring="accuracy")
    model = make_pipeline(StandardScaler(), forest.set_callbacks(monitor))
    model.set_callbacks(callback.ProgressBar()).fit(X, Y)
    assert model.score(X, Y) > 0.95
    (log,) = monitor.get_logs(select="all")
    assert log.data_as_pandas["accuracy"].iloc[-1] == model.score(X, Y)


class Bar(Recorder):
    """Stands for scikit-learn's progress bar."""

    made: ClassVar[list] = []

    def __init__(self):
        super().__init__()
        self.made.append(self)


@pytest.fixture
def bars(monkeypatch):
    """The bars that were drawn, on a terminal."""
    monkeypatch.setattr(callback, "ProgressBar", Bar)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setattr(Bar, "made", [])
    return Bar.made


@pytest.mark.parametrize(("model", "n_trees"), [
    (gf.RandomForestClassifier(4), 4), (gf.HistGradientBoostingClassifier(max_iter=3), 3),
    (gf.AdaBoostClassifier(n_estimators=2), 2),
])  # fmt: skip
def test_verbose_draws_the_bar_on_a_terminal(model, n_trees, bars):
    plain = clone(model).set_params(random_state=0).fit(X, Y)
    assert not bars
    shown = clone(model).set_params(random_state=0, verbose=1).fit(X, Y)
    assert [bar.recorded for bar in bars] == [fit_of(n_trees)]
    assert np.array_equal(shown.forest_.nodes, plain.forest_.nodes)
    assert not [name for name in vars(shown) if "callback" in name]
    with pytest.raises(ValueError, match="NaN"):
        shown.fit(X, np.full(150, np.nan))
    assert bars[1].recorded[-1] == "teardown"
    assert not [name for name in vars(shown) if "callback" in name]


def test_other_callbacks_stay_beside_the_bar(bars):
    recorder = Recorder()
    model = gf.RandomForestClassifier(2, verbose=1).set_callbacks(recorder).fit(X, Y)
    assert bars[0].recorded == recorder.recorded == fit_of(2)
    assert model._skl_callbacks == [recorder]


def test_no_bar_where_something_else_draws(bars, monkeypatch):
    model = gf.RandomForestClassifier(2, verbose=1)
    clone(model).set_callbacks(Bar()).fit(X, Y)
    assert len(bars) == 1  # the user's
    with listening(lambda *_: None):
        model.fit(X, Y)
    with parallel_backend("threading", n_jobs=2):
        cross_val_score(model, X, Y, cv=2)
    thread = Thread(target=model.fit, args=(X, Y))
    thread.start()
    thread.join()
    monkeypatch.setattr(sys.stdout, "isatty", lambda: False)
    model.fit(X, Y)
    assert len(bars) == 1
