"""Forests of many callers at once, held against those of one: `python callers.py WAY`.

A process of its own, so that test_robustness_callers.py can end it where it hangs.
"""

import hashlib
import multiprocessing
import sys
import threading
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.feature_selection import SelectFromModel
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from gpuforest import RandomForestClassifier, RandomForestRegressor

Job = tuple[Any, np.ndarray, np.ndarray]

rng = np.random.default_rng(0)
X = rng.normal(size=(120, 8))
Y = (X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=120) > 0).astype(int)


def forests(n_jobs: int) -> list[Any]:
    """Of both kinds, on both CPU backends."""
    return [
        kind(4, random_state=0, n_jobs=n_jobs, backend=backend)
        for kind in (RandomForestClassifier, RandomForestRegressor)
        for backend in ("numba", "numpy")
    ]


def jobs(n_jobs: int) -> list[Job]:
    return [(forest, X, Y) for forest in forests(n_jobs)]


def digest(model: Any, X: np.ndarray) -> str:
    found = model.predict(X)
    return hashlib.sha256(model.forest_.nodes.tobytes() + found.tobytes()).hexdigest()


def fit_and_predict(job: Job) -> str:
    model, X, y = job
    return digest(model.fit(X, y), X)


def predict(job: Job) -> str:
    return digest(job[0], job[1])


def with_joblib(backend: str, function: Callable[[Job], str], items: list[Job]) -> list[str]:
    # beyond a few bytes, loky's children read X from a file that they may not write to
    parallel = Parallel(n_jobs=2, backend=backend, max_nbytes=100)
    return list(parallel(delayed(function)(item) for item in items))


def in_children(method: str, function: Callable[[Job], str], items: list[Job]) -> list[str]:
    with multiprocessing.get_context(method).Pool(2) as pool:
        return pool.map(function, items, 1)


def in_children_forked_while_threads_fit(
    function: Callable[[Job], str], items: list[Job]
) -> list[str]:
    stopped = threading.Event()

    def fit_on() -> None:
        while not stopped.is_set():
            for job in jobs(2):
                fit_and_predict(job)

    threads = [threading.Thread(target=fit_on) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        found = [in_children("fork", function, items) for _ in range(3)]
    finally:
        stopped.set()
        for thread in threads:
            thread.join()
    assert found == found[:1] * len(found)
    return found[0]


def search(n_jobs: int) -> list[float]:
    grid = {"max_depth": [2, None], "min_samples_leaf": [1, 5]}
    found = GridSearchCV(forests(n_jobs)[0], grid, cv=3, n_jobs=n_jobs).fit(X, Y)
    return [*found.cv_results_["mean_test_score"], found.score(X, Y)]


def pipelines(n_jobs: int) -> list[str]:
    """Whose steps are parallel, in parallel, around forests that are."""
    scaled = ColumnTransformer(
        [("a", StandardScaler(), [0, 1, 2]), ("b", StandardScaler(), [3, 4, 5])],
        remainder="passthrough",
        n_jobs=n_jobs,
    )
    steps = [
        make_pipeline(clone(scaled), SelectFromModel(clone(forest), threshold="mean"), forest)
        for forest in forests(n_jobs)[:4]
    ]
    fitted = Parallel(n_jobs=n_jobs)(delayed(pipe.fit)(X, Y) for pipe in steps)
    return [digest(pipe[-1], pipe[:-1].transform(X)) for pipe in fitted]


CALLS: dict[str, Callable[..., list[str]]] = {
    **{name: partial(with_joblib, name) for name in ("threading", "loky", "multiprocessing")},
    **{name: partial(in_children, name) for name in ("fork", "spawn", "forkserver")},
    "fork-while-threads-fit": in_children_forked_while_threads_fit,
}
TOOLS: dict[str, Callable[[int], list[Any]]] = {"search": search, "pipelines": pipelines}


def main(way: str) -> None:
    warnings.simplefilter("error")
    # Python's own, of a fork beside threads, which is the point here
    warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)
    if way in TOOLS:
        assert TOOLS[way](2) == TOOLS[way](1)
        return
    call, expected = CALLS[way], [fit_and_predict(job) for job in jobs(1)]
    models = jobs(2)
    assert [fit_and_predict(job) for job in models] == expected
    assert call(fit_and_predict, jobs(2)) == expected
    assert call(predict, models) == expected  # of forests grown in the parent
    assert [fit_and_predict(job) for job in jobs(2)] == expected


if __name__ == "__main__":
    main(sys.argv[1])
