"""A cluster of processes with TLS: what listens there, and strangers who call while a fit runs."""

import os
import shutil
import socket
import subprocess
import threading
from contextlib import suppress

import pytest
from sklearn.base import clone

import gpuforest as gf

pytest.importorskip("distributed", reason="needs pip install 'gpuforest[checks]'")
import psutil
from distributed.security import Security
from partitioned import CUTS, WEIGHTS, X, Y, assert_same, cluster_of, fitted


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
    """The ports on which these processes listen."""
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
