"""scikit-learn's callbacks: the fit is a task, and each tree a task in it."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from gpuforest import (
    BaggingClassifier,
    DecisionTreeClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)

callback = pytest.importorskip("sklearn.callback", reason="scikit-learn before 1.9")

X, Y = load_iris(return_X_y=True)


class Recorder:
    """Records its calls."""

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


@pytest.mark.parametrize("backend", ["numpy", "numba"])
def test_a_forest(backend):
    recorder = Recorder()
    forest = RandomForestClassifier(5, n_jobs=2, random_state=0, backend=backend)
    plain = clone(forest).fit(X, Y)
    forest.set_callbacks(recorder).fit(X, Y)
    assert recorder.recorded == fit_of(5)
    assert np.array_equal(forest.forest_.nodes, plain.forest_.nodes)


def test_trees_bags_and_more_trees():
    for model, n_trees in ((DecisionTreeClassifier(), 1), (BaggingClassifier(n_estimators=3), 3)):
        recorder = Recorder()
        model.set_callbacks(recorder).fit(X, Y)
        assert recorder.recorded == fit_of(n_trees)
    forest = RandomForestClassifier(2, warm_start=True, random_state=0).fit(X, Y)
    recorder = Recorder()
    forest.set_params(n_estimators=6).set_callbacks(recorder).fit(X, Y)
    assert recorder.recorded == fit_of(4)


def test_rounds_of_gradient_boosting():
    model = HistGradientBoostingClassifier(max_iter=2, warm_start=True)
    for max_iter, n_new in ((2, 2), (5, 3)):
        recorder = Recorder()
        model.set_params(max_iter=max_iter).set_callbacks(recorder).fit(X, Y)
        assert recorder.recorded == fit_of(n_new)


def test_a_fit_that_fails_is_torn_down():
    recorder = Recorder()
    with pytest.raises(ValueError, match="NaN"):
        RandomForestClassifier().set_callbacks(recorder).fit(X, np.full(150, np.nan))
    assert recorder.recorded == ["setup", ("begin", "fit"), "teardown"]


def test_scores_and_a_progress_bar_in_a_pipeline(capsys):
    forest = RandomForestClassifier(5, random_state=0)
    monitor = callback.ScoringMonitor(scoring="accuracy")
    model = make_pipeline(StandardScaler(), forest.set_callbacks(monitor))
    model.set_callbacks(callback.ProgressBar()).fit(X, Y)
    assert model.score(X, Y) > 0.95
    (log,) = monitor.get_logs(select="all")
    assert log.data_as_pandas["accuracy"].iloc[-1] == model.score(X, Y)
