"""Several callers, and interrupts; children are in test_robustness_callers.py."""

import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from joblib import Parallel, cpu_count, delayed, parallel_config
from sweeps import swept
from threadpoolctl import threadpool_limits

import gpuforest
from gpuforest import HistGradientBoostingClassifier, RandomForestClassifier
from gpuforest.common import arguments, parallel
from gpuforest.common.arguments import LEAST_WORK, MOST_THREADS, thread_count
from gpuforest.common.parallel import Team, cut_evenly, parallel_map


def data(n_rows: int = 1500) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, 8))
    return X, (X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=n_rows) > 0).astype(int)


def fitted(seed: int, n_threads: int = 2) -> RandomForestClassifier:
    model = RandomForestClassifier(
        10, random_state=seed, n_jobs=n_threads, backend="numba", max_features=2
    )
    return model.fit(*data())


def test_threads_end_soon_after_their_call():
    fitted(0)
    before = threading.active_count()
    fitted(1, 4).predict(data()[0])
    assert ended_soon(before)


LONG_FITS = """
import os, signal, sys, threading, time
import numpy as np
from gpuforest import RandomForestClassifier

n_threads = int(sys.argv[1])
rng = np.random.default_rng(0)
X, y = rng.normal(size=(300_000, 28)).astype(np.float32), rng.integers(0, 2, 300_000)

def fit(n_trees, rows):
    model = RandomForestClassifier(n_trees, random_state=0, n_jobs=n_threads, backend="numba")
    return model.fit(X[:rows], y[:rows])

expected = fit(3, 20_000).forest_.nodes
fit(1, len(X))  # every kernel is compiled
sent = []

def interrupt():
    sent.append(time.monotonic())
    os.kill(os.getpid(), signal.SIGINT)

for delay in (0.1, 0.5, 1.0, 1.6):  # binning, then growing
    timer = threading.Timer(delay, interrupt)
    timer.start()
    try:
        fit(500, len(X))
        print("it was no long fit", flush=True)
    except KeyboardInterrupt:
        print(time.monotonic() - sent[-1], flush=True)
    timer.join()
again = fit(3, 20_000)
print("same" if np.array_equal(again.forest_.nodes, expected) else "other", flush=True)
fit(500, len(X))
"""


@pytest.mark.skipif(os.name != "posix", reason="signals")
@pytest.mark.parametrize("n_threads", swept(1, [2, 1]))
def test_an_interrupt_ends_a_long_fit(n_threads):
    command = [sys.executable, "-c", LONG_FITS, str(n_threads)]
    pipe = subprocess.PIPE
    child = subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True)
    try:
        # 1. caught: each fit ends soon, and the next one is right
        for _ in range(4):
            line = child.stdout.readline()
            assert line, child.stderr.read()[-500:]
            assert float(line) < 2
        assert child.stdout.readline() == "same\n"
        # 2. not caught: the process ends
        time.sleep(1)
        start = time.monotonic()
        child.send_signal(signal.SIGINT)
        _, errors = child.communicate(timeout=30)
        assert time.monotonic() - start < 2
        assert errors.endswith("KeyboardInterrupt\n")
        assert child.returncode in (1, 130, -signal.SIGINT)
    finally:
        child.kill()
        child.communicate()


def test_an_error_stops_the_work_that_has_not_begun():
    begun = []

    def work(item: int) -> int:
        begun.append(item)
        if item == 3:
            raise RuntimeError("three")
        time.sleep(0.01)
        return item

    with pytest.raises(RuntimeError, match="three"):
        parallel_map(work, range(1000), 2)
    assert len(begun) < 20
    for n_threads in (1, 3, 8):
        counts = []
        squares = parallel_map(lambda i: i * i, range(50), n_threads, counts.append)
        assert squares == [i * i for i in range(50)]
        assert counts == [*range(1, 51)]
        assert parallel_map(lambda i: i, [], n_threads) == []


EXIT_OF_A_FIT = (
    LONG_FITS.split("fit(1, len(X))")[0]
    + """
threading.Thread(target=fit, args=(5000, 20_000), daemon=True).start()
time.sleep(1)
print(time.monotonic(), flush=True)
"""
)


def test_the_process_ends_while_a_daemon_fits():
    command = [sys.executable, "-c", EXIT_OF_A_FIT, "2"]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    assert time.monotonic() - float(done.stdout) < 10  # all trees take longer


def test_slices_of_even_sums():
    sizes = np.array([3, 1, 2, 9, 1, 1, 1])
    cuts = [(s.start, s.stop) for s in cut_evenly(sizes, 4)]
    assert cuts == [(0, 2), (2, 3), (3, 4), (4, 7)]  # 4, 2, one too large, 3
    assert [(s.start, s.stop) for s in cut_evenly(sizes, 100)] == [(0, 7)]
    assert cut_evenly(sizes[:0], 4) == []


@pytest.mark.parametrize("n_threads", [1, 2, 5])
def test_a_team_does_all_work_and_raises_an_error_of_it(n_threads):
    team, done = Team(n_threads), []
    for n in (0, 1, 7):
        done.clear()
        team.run(done.append, n)
        assert sorted(done) == list(range(n))

    def fail(i):
        done.append(i)
        if i == 3:
            raise ZeroDivisionError

    done.clear()
    with pytest.raises(ZeroDivisionError):
        team.run(fail, 1000)
    assert len(done) < 1000  # what has not begun is left out
    before = threading.active_count()
    team.close()
    while threading.active_count() > before - (n_threads - 1):
        time.sleep(0.01)


def ended_soon(before):
    patience = time.monotonic() + 5
    while threading.active_count() > before and time.monotonic() < patience:
        time.sleep(0.01)
    return threading.active_count() <= before


def starting(monkeypatch, n, error):
    """After n threads, the start of another raises the error."""
    begin, left = threading.Thread.start, [None] * n

    def start(thread):
        if not left:
            raise error
        left.pop()
        begin(thread)

    monkeypatch.setattr(threading.Thread, "start", start)
    monkeypatch.setattr(parallel, "_warned", set())


@pytest.mark.parametrize("n", [0, 3])
def test_fewer_threads_where_the_system_starts_no_more(n, monkeypatch, caplog):
    before = threading.active_count()
    starting(monkeypatch, n, RuntimeError("can't start new thread"))
    team, done = Team(200), []
    assert team.n_threads == n + 1
    team.run(done.append, 50)
    assert sorted(done) == list(range(50))
    assert parallel_map(lambda i: -i, range(50), 4) == [-i for i in range(50)]
    team.close()
    assert ended_soon(before)
    (record,) = caplog.records
    assert record.message.startswith("can't start new thread, going on with fewer threads: ")


def test_an_interrupt_while_threads_start_leaves_none(monkeypatch):
    before = threading.active_count()
    starting(monkeypatch, 3, KeyboardInterrupt)
    with pytest.raises(KeyboardInterrupt):
        Team(200)
    assert ended_soon(before)


@pytest.mark.parametrize("n", [0, 1])
def test_the_same_models_by_fewer_threads(n, monkeypatch):
    X, y = data()
    boosting = HistGradientBoostingClassifier(max_iter=5, backend="numba", n_jobs=3)
    expected = boosting.fit(X, y).predict_proba(X), fitted(0, 1).predict_proba(X)
    starting(monkeypatch, n, RuntimeError("can't start new thread"))
    found = boosting.fit(X, y).predict_proba(X), fitted(0, 3).predict_proba(X)
    assert np.array_equal(found, expected)


def test_threads_are_bounded_by_the_work_and_the_processors(monkeypatch):
    assert thread_count(10**6) == MOST_THREADS * cpu_count()
    assert [thread_count(n) for n in (1, 2, 4)] == [1, 2, 4]
    made, real = [], parallel.start
    monkeypatch.setattr(parallel, "start", lambda work, n: made.append(n) or real(work, n))
    X, y = data(300)
    HistGradientBoostingClassifier(max_iter=1, backend="numba", n_jobs=4).fit(X[:, :2], y)
    assert max(made) == 1  # and this thread: one for each feature


@pytest.fixture
def eight(monkeypatch):
    """A machine of eight processors, as OpenMP says it; nothing else limits threads."""
    for name in ("OMP_NUM_THREADS", arguments.ENVIRONMENT):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(arguments, "cpu_count", lambda: 8)
    monkeypatch.setattr(arguments, "_openmp_effective_n_threads", lambda only_physical_cores: 8)


def test_no_number_is_all_processors_where_there_is_work(eight, monkeypatch):
    assert (thread_count(None), thread_count(-1), thread_count(-3)) == (8, 8, 6)
    amounts = [0, 2 * LEAST_WORK - 1, 2 * LEAST_WORK, 5 * LEAST_WORK, 10**12]
    assert [thread_count(None, work) for work in amounts] == [1, 1, 2, 5, 8]
    assert thread_count(4, 1) == 4  # what is asked for is done
    monkeypatch.setenv(arguments.ENVIRONMENT, "3")
    assert (thread_count(None), thread_count(5)) == (3, 5)
    for wrong in ("0", "-1", "many"):
        monkeypatch.setenv(arguments.ENVIRONMENT, wrong)
        with pytest.raises(ValueError, match="must be a whole number from 1 on"):
            thread_count(None)


def test_contexts_and_workers_of_joblib(eight, monkeypatch):
    for n_jobs, count in ((3, 3), (1, 1), (-1, 8)):
        with parallel_config(n_jobs=n_jobs):
            assert thread_count(None) == count
    one = delayed(thread_count)(None)
    assert Parallel(2, backend="threading")([one] * 2) == [1, 1]
    monkeypatch.setenv("OMP_NUM_THREADS", "8")  # of the process, and not of each of its threads
    assert Parallel(2, backend="threading")([one] * 2) == [1, 1]
    assert Parallel(1)([one] * 2) == [8, 8]  # no worker


SHARES = """
from joblib import Parallel, cpu_count, delayed, parallel_config
from gpuforest.common.arguments import thread_count

calls = [delayed(thread_count)(None)] * 2
assert Parallel(2)(calls) == [max(1, cpu_count() // 2)] * 2
with parallel_config("loky", inner_max_num_threads=2):
    assert Parallel(2)(calls) == [2] * 2
"""


@pytest.mark.deep
def test_a_process_of_joblib_has_its_share(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    subprocess.run([sys.executable, "-c", SHARES], check=True, timeout=120)


def test_limits_of_threadpoolctl_count():
    with threadpool_limits(1):
        assert thread_count(None) == 1


def test_threads_of_fits_and_predictions_follow_their_work(eight, monkeypatch):
    X, _ = data(2000)
    kinds = [getattr(gpuforest, name) for name in gpuforest.__all__ if name.endswith("Classifier")]
    models = [kind() for kind in kinds if hasattr(kind(), "n_jobs")]
    assert len(models) >= 5
    assert {model.n_jobs for model in models} == {None}
    forest = RandomForestClassifier(100)
    used = [forest._chosen(part)["n_threads"] for part in (X, X[:200], X[:1], X[:1].tolist())]
    assert used == [2000 * 108 // LEAST_WORK, 1, 1, 1]
    expected = fitted(0, 1).predict_proba(X)
    monkeypatch.setattr(arguments, "LEAST_WORK", 1)
    assert np.array_equal(fitted(0, None).predict_proba(X), expected)


@pytest.mark.skipif(not parallel.CAN_MOVE, reason="this system does not move threads")
def test_a_thread_leaves_the_processor_of_the_one_that_it_helps(monkeypatch):
    allowed, real = os.sched_getaffinity(0), os.sched_setaffinity
    if len(allowed) < 2:
        pytest.skip("there is one processor")
    busy, seen = min(allowed), []

    def watched(thread, wanted):
        real(thread, wanted)
        seen.append((wanted, parallel.processor()))

    def move():
        real(0, {busy})  # this thread alone
        monkeypatch.setattr(os, "sched_getaffinity", lambda thread: allowed)
        monkeypatch.setattr(os, "sched_setaffinity", watched)
        parallel.leave(busy, 0)
        parallel.leave(-1, 0)  # the system did not say where the other thread is

    thread = threading.Thread(target=move)
    thread.start()
    thread.join()
    (one, there), (everywhere, _) = seen
    assert one == {there}
    assert there != busy
    assert everywhere == allowed  # it may be moved again
