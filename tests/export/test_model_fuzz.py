"""Damaged model files either load, and then predict, or raise ModelFormatError: nothing else.

They run in a process of its own (`python test_model_fuzz.py <folder>`), so that a crash, a hang or
a file that asks for too much memory fails one test instead of ending them all.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import gpuforest as gf
from gpuforest.export import container
from gpuforest.export.model_file import ARRAYS, HEADER

SECONDS = 240  # 8 are usual
BYTES = 4 * 2**30  # that a process may map; the interpreter and its libraries take 1 GiB
FOLDER = Path(tempfile.gettempdir() if len(sys.argv) < 2 else sys.argv[1])
X = np.array([[i * 7 % 12, i * 5 % 11] for i in range(24)], dtype=float)
X[3, 0] = np.nan

# one order of examples on every machine, and no store of them
EXAMPLES = 300 if os.environ.get("GPUFOREST_TESTS") == "deep" else 50
fuzz = settings(
    max_examples=EXAMPLES,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
numbers = st.one_of(
    st.integers(-2, 40), st.sampled_from([2**k + d for k in (31, 63, 64) for d in (-1, 0)])
)
values = st.recursive(
    st.one_of(st.none(), st.booleans(), numbers, st.floats(), st.text(max_size=5)),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)
indices = st.integers(0, 2**16)  # of whatever there is, modulo how many there are
MODELS = ("classifier", "tree", "categories", "boosting", "draws")
models = st.sampled_from(MODELS)


@cache
def whole(model):
    """The bytes of a file, its text and its arrays."""
    path, y = FOLDER / model, X[:, 1] * 2.5
    given = {"random_state": 0, "backend": "numpy"}
    fitted = {
        "tree": lambda: gf.DecisionTreeRegressor(max_depth=3, **given).fit(X, y),
        "categories": lambda: gf.DecisionTreeRegressor(
            categorical_features=[1], max_depth=3, **given
        ).fit(X, y),
        "boosting": lambda: gf.HistGradientBoostingClassifier(
            max_iter=3, max_leaf_nodes=4, min_samples_leaf=2, **given
        ).fit(X, X[:, 1] > 5),
        "draws": lambda: gf.RandomForestRegressor(3, max_depth=3, **given).fit(X, y),
        "classifier": lambda: gf.RandomForestClassifier(3, max_depth=3, **given).fit(
            X, np.array(["a", "b", "c"])[np.arange(24) % 3]
        ),
    }
    fitted[model]().save(path)
    return path.read_bytes(), *container.read(path, ARRAYS)


seen = {True: 0, False: 0}


def loads(content):
    """Whether a file of these bytes loads; then it must predict."""
    path = FOLDER / "damaged"
    path.write_bytes(content)
    try:
        model = gf.load(path)
    except gf.ModelFormatError:
        seen[False] += 1
        return False
    seen[True] += 1
    found = model.set_params(backend="numpy").predict(X[:, : model.n_features_in_])
    assert found.shape == (len(X),)
    if hasattr(model, "_sampling_") and not hasattr(model, "classes_"):
        try:
            model.set_params(memory_limit=2**28).predict(X[:, : model.n_features_in_], True)
        except ValueError as error:
            if not re.search("memory_limit|bootstrap=True", str(error)):
                raise
    return True


def written(text, arrays):
    path = FOLDER / "written"
    container.write(path, text, arrays)
    return path.read_bytes()


def cuts():
    """The file ends early, anywhere, or goes on after its end."""
    for model in MODELS[:3]:
        content = whole(model)[0]
        sizes = {*range(0, len(content), 5), *range(20), *range(len(content) - 20, len(content))}
        assert not any(loads(content[:size]) for size in sizes)
        assert not loads(content + b"\0")
        assert loads(content)


@fuzz
@given(models, indices, st.lists(st.tuples(indices, st.integers(1, 255)), min_size=1, max_size=3))
def contents(model, which, changes):
    """Bytes of one array are others, under a right checksum."""
    _, text, arrays = whole(model)
    name = sorted(arrays)[which % len(arrays)]
    raw = bytearray(arrays[name].tobytes())
    for index, bits in changes:
        if raw:
            raw[index % len(raw)] ^= bits
    array = np.frombuffer(raw, arrays[name].dtype).reshape(arrays[name].shape)
    loads(written(text, {**arrays, name: array}))


@fuzz
@given(models, indices, indices, st.sampled_from(["swap", "copy", "drop", "cast", "shape", "cut"]))
def tensors(model, first, second, how):
    """Arrays change offsets, dtypes, shapes and lengths, under a right checksum."""
    _, text, arrays = whole(model)
    names = sorted(arrays)
    one, other = names[first % len(names)], sorted(ARRAYS)[second % len(ARRAYS)]
    dtypes = [f"{kind}{size}" for kind in "iu" for size in (1, 2, 4, 8)] + ["f2", "f4", "f8", "?"]
    array = arrays[one]
    changed = dict(arrays)
    if how == "swap":
        changed[one], changed[other] = arrays.get(other, array), array
    elif how == "copy":
        changed[other] = array
    elif how == "drop":
        del changed[one]
    elif how == "cast":
        with np.errstate(all="ignore"):
            changed[one] = array.astype(dtypes[second % len(dtypes)])
    elif how == "shape":
        shapes = [(-1,), (-1, 1), (1, -1), (-1, 1, 1)]
        changed[one] = array.reshape(shapes[second % 4])
    else:
        changed[one] = array[: second % (len(array) + 1)]
    loads(written(text, changed))


@fuzz
@given(models, indices, values, st.sampled_from(["value", "parameter", "drop", "text"]))
def headers(model, which, value, what):
    """The text has other values, under a right checksum."""
    _, text, arrays = whole(model)
    header = json.loads(text)
    key = sorted(HEADER)[which % len(HEADER)].removesuffix("?")
    if what == "value":
        header[key] = value
    elif what == "parameter":
        names = [*sorted(header["parameters"]), "n_jobs", "backend", ""]
        header["parameters"][names[which % len(names)]] = value
    elif what == "drop":
        header.pop(key, None)
    else:
        header = value
    loads(written(json.dumps(header), arrays))


@fuzz
@given(models, indices, st.sampled_from(["dtype", "shape", "data_offsets", "all"]), values)
def layouts(model, which, field, value):
    """safetensors' own header has other values."""
    content = whole(model)[0]
    begin = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:begin])
    name = sorted(header)[which % len(header)]
    if field == "all":
        header[name] = value
    elif name != "__metadata__":
        header[name][field] = value
    text = json.dumps(header).encode()
    loads(len(text).to_bytes(8, "little") + text + content[begin:])


DAMAGES = cuts, contents, tensors, headers, layouts


def test_damaged_files_are_refused_or_predict(tmp_path):
    command = [sys.executable, "-X", "faulthandler", __file__, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
    assert done.returncode == 0, done.stdout + done.stderr  # the last damage named is the one


if __name__ == "__main__":
    if sys.platform == "linux":
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
    for damage in DAMAGES:
        print(damage.__name__, flush=True)
        seen.update({True: 0, False: 0})
        damage()
        assert seen[False] > EXAMPLES / 3
        assert seen[True] > 0  # so that the checks behind the first ones are reached
