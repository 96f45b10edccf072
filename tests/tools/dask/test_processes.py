"""Clusters of processes: workers that die, join late or leave, and fits that are cancelled; what
listens where they have TLS, and strangers who call while a fit runs."""

import importlib
import os
import queue
import shutil
import signal
import socket
import subprocess
import threading
from contextlib import suppress
from pathlib import Path

import pytest
from engine import same_forest
from sklearn.base import clone
from sweeps import swept

import gpuforest as gf

pytest.importorskip("distributed", reason="needs pip install 'gpuforest[checks]'")
import psutil
from distributed.security import Security
from partitioned import CUTS, WEIGHTS, X, Y, Z, assert_same, cluster_of, cut, fitted

import gpuforest.dask as on_dask


@pytest.fixture
def processes(request):
    from dask import config

    quick = {"distributed.deploy.lost-worker-timeout": "1s"}
    # dask drops all copies but one of what several workers hold, and here it does so at once
    quick |= {"distributed.scheduler.active-memory-manager.interval": "20ms"}
    quick |= getattr(request, "param", {})
    with config.set(quick), cluster_of(2, processes=True) as client:
        yield client


def kill_one(after):
    """Kill the first worker that comes to this task, and do nothing elsewhere."""
    flag = Path(after)
    try:
        flag.touch(exist_ok=False)
    except FileExistsError:
        return
    os.kill(os.getpid(), signal.SIGKILL)


FOREST = gf.RandomForestClassifier(6, random_state=0), (X, Y)
EFFECTS = gf.CausalForest(4, random_state=0, model_y=0.0, model_t=0.5), (X, Z, WEIGHTS)
STEPS = [
    *((step, *FOREST) for step in ("fitted", "grown_share", "encoded", "gathered", "grow_of_rows")),
    ("encoded", *EFFECTS),
]


@pytest.mark.parametrize(("step", "model", "columns"), swept(1, STEPS))
@pytest.mark.filterwarnings("ignore:Some inputs do not have OOB")
def test_a_worker_that_dies(processes, tmp_path, step, model, columns):
    """Its tasks run again: on the other worker, or on one that the cluster starts anew."""
    home = f"gpuforest.tools.dask.{'rows' if step == 'grow_of_rows' else 'partitions'}"

    def die_at(step=step, home=home, flag=str(tmp_path / "died")):
        module = importlib.import_module(home)
        work = getattr(module, step)

        def deadly(*args):
            kill_one(flag)
            return work(*args)

        deadly.__module__, deadly.__qualname__ = work.__module__, work.__qualname__
        setattr(module, step, deadly)

    processes.run(die_at)
    done = queue.Queue()

    def fit():
        strategy = "rows" if step == "grow_of_rows" else "trees"
        there = getattr(on_dask, type(model).__name__)(**model.get_params(), client=processes)
        there.set_params(strategy=strategy)
        try:
            found = there.fit(*(cut(column, CUTS["even"]) for column in columns))
            done.put(same_forest(found.forest_, clone(model).fit(*columns).forest_))
        except Exception as error:
            done.put(error)

    threading.Thread(target=fit, daemon=True).start()
    assert done.get(timeout=60) is True
    assert (tmp_path / "died").exists()


SOON = {"distributed.scheduler.worker-ttl": "6s"}


@pytest.mark.deep
@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="processes cannot be stopped here")
@pytest.mark.parametrize("processes", [SOON], indirect=True)
def test_a_worker_that_falls_silent(processes, tmp_path):
    """Its connections stay open. The others are not kept, and the fit goes on without it."""
    stopped = tmp_path / "stopped"

    def fall_silent(path=str(stopped)):
        from gpuforest.tools.dask import links, rows

        grow, links.LOOK, links.patience = rows.grow_of_rows, 0.5, lambda: 1.0

        def silent(*args):
            with suppress(FileExistsError), open(path, "x") as file:
                file.write(str(os.getpid()))
                file.flush()
                os.kill(os.getpid(), signal.SIGSTOP)
            return grow(*args)

        rows.grow_of_rows = silent

    # in a thread first, because a loop that imports for long is taken for a silent worker
    for worker in list(processes.scheduler_info()["workers"]):
        home = "gpuforest.tools.dask.rows"
        processes.submit(importlib.import_module, home, workers=[worker], pure=False).result()
    processes.run(fall_silent)
    model = gf.RandomForestClassifier(6, random_state=0)
    try:
        found = fitted(model, X, Y, sizes=CUTS["even"], strategy="rows")
    finally:
        with suppress(ProcessLookupError):
            os.kill(int(stopped.read_text()), signal.SIGCONT)
    assert_same(found, clone(model).fit(X, Y))


@pytest.mark.parametrize("strategy", swept(1, ["rows", "trees"]))
def test_no_workers_are_left(processes, monkeypatch, strategy):
    from gpuforest.tools.dask import training, waiting

    monkeypatch.setattr(waiting, "PATIENCE", 1.0)
    share = training.done_all
    calls = []

    def closing(client, futures):
        calls.append(1)
        if len(calls) == 4:
            processes.cluster.scale(0)
        return share(client, futures)

    monkeypatch.setattr(training, "done_all", closing)
    with pytest.raises((RuntimeError, ValueError), match="no workers"):
        fitted(gf.RandomForestClassifier(6), X, Y, sizes=CUTS["even"], strategy=strategy)


@pytest.mark.deep
def test_a_worker_that_joins_late_and_a_cancelled_fit(processes, monkeypatch):
    from gpuforest.tools.dask import training

    share = training.done_all
    calls = []

    def interrupted(client, futures):
        calls.append(1)
        if len(calls) == 4:
            processes.cluster.scale(3)
        if len(calls) == 6:
            raise KeyboardInterrupt
        return share(client, futures)

    monkeypatch.setattr(training, "done_all", interrupted)
    sizes = CUTS["even"]
    model = gf.RandomForestClassifier(6, random_state=0)
    with pytest.raises(KeyboardInterrupt):
        fitted(model, X, Y, sizes=sizes)
    assert_same(fitted(model, X, Y, sizes=sizes), clone(model).fit(X, Y))


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    if not (openssl := shutil.which("openssl")):
        pytest.skip("openssl, which makes the certificate, is not installed")
    cert, key = (str(tmp_path_factory.mktemp("tls") / name) for name in ("cert.pem", "key.pem"))
    made = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=here"]
    subprocess.run([openssl, *made, "-keyout", key, "-out", cert], check=True, capture_output=True)
    roles = ("scheduler", "worker", "client")
    files = {
        f"tls_{role}_{what}": f for role in roles for what, f in (("cert", cert), ("key", key))
    }
    security = Security(tls_ca_file=cert, require_encryption=True, **files)
    with cluster_of(2, processes=True, protocol="tls://", security=security) as client:
        yield client


def listening(pids):
    every = (c for pid in pids for c in psutil.Process(pid).net_connections("tcp"))
    return {c.laddr.port for c in every if c.status == psutil.CONN_LISTEN}


@pytest.fixture
def scanner(client):
    """Calls all ports of the workers while a test runs, and says something, or nothing; the ports
    that it has found."""
    pids, done, found, silent = client.run(os.getpid).values(), threading.Event(), set(), []

    def scan():
        while not done.wait(0.01):
            for port in listening(pids):
                with suppress(OSError):
                    said = socket.create_connection(("127.0.0.1", port), 1)
                    said.sendall(b"GET / HTTP/1.1\r\n\r\n")
                    said.close()
                    if port not in found:
                        silent.append(socket.create_connection(("127.0.0.1", port), 1))
                        found.add(port)

    thread = threading.Thread(target=scan)
    before = listening(pids)
    thread.start()
    yield before, found
    done.set()
    thread.join()
    for connection in silent:
        connection.close()


def come_late():
    """The participants come one after another, so that strangers have time to be there first."""
    import time

    from gpuforest.tools.dask import rows
    from gpuforest.tools.dask.links import links_of

    take_part = rows.participant

    def participant(data, estimator, parts, own, begin, name):
        time.sleep(links_of(name).rank)
        return take_part(data, estimator, parts, own, begin, name)

    participant.__module__ = rows.__name__
    rows.participant = participant


@pytest.mark.deep
def test_the_same_forest_while_strangers_call(client, scanner):
    assert all(w.startswith("tls://") for w in client.scheduler_info(-1)["workers"])
    client.run(come_late)
    model = gf.RandomForestClassifier(9, random_state=3)
    found = fitted(model, X, Y, WEIGHTS, CUTS["even"], "rows")
    assert_same(found, clone(model).fit(X, Y, WEIGHTS))
    before, called = scanner
    assert before == called != set()  # a fit opens no port
