"""Model files of every released format version go on being read: see golden/make.py."""

import json

import pytest
from golden import make

import gpuforest as gf

EXPECTED = json.loads((make.HERE / "expected.json").read_text())


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_golden_files_predict_what_they_did(name, backend):
    path = make.HERE / f"{name}.safetensors"
    model = gf.load(path)
    model.set_params(**{"estimator__backend" if name == "bags" else "backend": backend})
    assert make.answers(model) == EXPECTED[name]
    assert path.stat().st_size < 20_000


def test_every_golden_file_is_read():
    assert {path.stem for path in make.HERE.glob("*.safetensors")} == set(EXPECTED)
    assert set(make.models()) == set(EXPECTED)
