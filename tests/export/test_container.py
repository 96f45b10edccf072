"""The outside of model files: what safetensors writes, and headers that it cannot have written."""

import json
import os

import numpy as np
import pytest
from safetensors.numpy import save
from saved import fitted

import gpuforest as gf
from gpuforest import ModelFormatError
from gpuforest.export import container


def test_every_dtype_is_written_as_safetensors_does(tmp_path):
    arrays = {str(i): np.ones((i, 2), dtype) for i, dtype in enumerate(container.DTYPES.values())}
    container.write(tmp_path / "model", "text", arrays)
    stamp = f"{container.VERSION} {container.checksum('text', arrays)} text"
    assert (tmp_path / "model").read_bytes() == save(arrays, {"gpuforest": stamp})


def write_raw(path, header, data):
    """A safetensors file of this header, a dict or a text."""
    text = (header if isinstance(header, str) else json.dumps(header)).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)


def raw_headers(header):
    """What safetensors' header must not be, by what is said of it."""

    def entry(name, **changes):
        return header | {name: header[name] | changes}

    def metadata(text):
        return header | {"__metadata__": {"gpuforest": text}}

    text = json.dumps(header)
    stamp = header["__metadata__"]["gpuforest"]
    last = max(header.keys() - {"__metadata__"}, key=lambda name: header[name]["data_offsets"])
    (begin, end), (size,) = header["splits"]["data_offsets"], header["splits"]["shape"]
    yield "twice", text[:-1] + ', "splits": {}}'
    yield "twice", text.replace('"dtype"', '"dtype": "U8", "dtype"', 1)
    yield "no JSON object", "[]"
    yield "RecursionError", "[" * 100_000
    yield "ValueError", "9" * 5000
    yield "JSONDecodeError", text[:-1]
    yield "unknown array", {**header, "more": header["splits"]}
    yield "not described", entry("splits", more=1)
    yield "not described", header | {"splits": {}}
    yield "another dtype", entry("splits", dtype="I64")
    yield "another dtype", entry("splits", dtype="BF16")
    yield "another shape", entry("splits", shape=[size, 1])
    yield "another shape", entry("splits", shape=[-size])
    yield "another shape", entry("splits", shape=[True])
    yield "another shape", entry("splits", shape=[10**400])
    yield "another shape", entry("leaf_sums", shape=[2**62] * 1000)
    yield "fit its place", entry("splits", shape=[2**62])
    yield "fit its place", entry("splits", data_offsets=[end, begin])
    yield "from nowhere", entry("splits", data_offsets=[begin, end, end])
    yield "from nowhere", entry("splits", data_offsets=[begin, float("inf")])
    yield "one behind another", entry("splits", data_offsets=[begin + 8, end + 8])
    yield "longer than its", {name: header[name] for name in header if name != last}
    yield "not written by gpuforest", header | {"__metadata__": {}}
    yield "not written by gpuforest", header | {"__metadata__": {"gpuforest": 1}}
    yield "not gpuforest's", header | {"__metadata__": {"gpuforest": stamp, "more": ""}}
    yield "not gpuforest's", metadata("0" + stamp[1:])
    yield "not gpuforest's", metadata("-" + stamp)
    yield "not gpuforest's", metadata("1")
    yield "newer", metadata("2 0 {}")
    yield "checksum", metadata("1 0 {}")


def test_safetensors_headers_that_cannot_have_been_written(tmp_path):
    fitted()[0].save(tmp_path / "model")
    whole = (tmp_path / "model").read_bytes()
    begin = 8 + int.from_bytes(whole[:8], "little")
    header, data = json.loads(whole[8:begin]), whole[begin:]
    for why, changed in raw_headers(header):
        write_raw(tmp_path / "raw", changed, data)
        with pytest.raises(ModelFormatError, match=why):
            gf.load(tmp_path / "raw")
    write_raw(tmp_path / "raw", header, data)  # the helper itself breaks nothing
    assert gf.load(tmp_path / "raw").n_features_in_ == 4


def test_the_longest_text(tmp_path, monkeypatch):
    model, _ = fitted(labels=["a", "ü", "z" * 1000])
    model.save(tmp_path / "model")
    whole = (tmp_path / "model").read_bytes()
    limit = int.from_bytes(whole[:8], "little")
    monkeypatch.setattr(container, "MAX_HEADER", limit)
    assert gf.load(tmp_path / "model").n_classes_ == 3
    monkeypatch.setattr(container, "MAX_HEADER", limit - 1)
    with pytest.raises(ModelFormatError, match="a header of more than"):
        gf.load(tmp_path / "model")
    with pytest.raises(ValueError, match="pickle the estimator instead"):
        model.save(tmp_path / "model")
    assert (tmp_path / "model").read_bytes() == whole


def test_the_umask_is_never_changed(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "umask", lambda mask: pytest.fail("other threads create files too"))
    fitted()[0].save(tmp_path / "model")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ModelFormatError, match="pipe"):
        gf.load(tmp_path / "pipe")
