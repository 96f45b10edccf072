"""What model files and pickles keep of training rows."""

import pickle

import numpy as np
import pytest

import gpuforest
from gpuforest import (
    ExtraTreesQuantileRegressor,
    ModelFormatError,
    RandomForestClassifier,
    RandomForestQuantileRegressor,
    RandomForestRegressor,
)
from gpuforest.export import container, model_file

RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, 3))
X[RNG.random(X.shape) < 0.1] = np.nan
Y = RNG.normal(size=80)
WEIGHTS = RNG.integers(0, 3, 80)


def answers(model):
    """All that a forest says of how sure it is."""
    if hasattr(model, "classes_"):
        return [model.predict_set(X)]
    found = [model.predict_interval(X)]
    if isinstance(model, RandomForestRegressor):
        return [*found, *model.predict(X, return_std=True)]
    found += [model.predict(X, [0.1, 0.9], oob_score=o) for o in (False, True)]
    return [*found, model.quantile_ranks(X, Y)]


@pytest.mark.filterwarnings("ignore:Some inputs do not have OOB scores")
@pytest.mark.parametrize(
    "kind",
    [
        RandomForestClassifier,
        RandomForestRegressor,
        RandomForestQuantileRegressor,
        ExtraTreesQuantileRegressor,
    ],
)
@pytest.mark.parametrize("weights", [None, WEIGHTS])
def test_what_is_read_answers_the_same(kind, weights, backend, tmp_path):
    model = kind(9, oob_score=True, bootstrap=True, random_state=0, backend=backend)
    model.fit(X, Y > 0 if kind is RandomForestClassifier else Y, weights)
    expected = answers(model)
    model.save(tmp_path / "model")
    loaded = gpuforest.load(tmp_path / "model").set_params(backend=backend)
    for other in (loaded, pickle.loads(pickle.dumps(model))):
        for one, two in zip(expected, answers(other), strict=True):
            assert np.array_equal(one, two, equal_nan=True)
    loaded.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "model").read_bytes()


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("row_codes", lambda a: a[:-1]),
        ("row_codes", lambda a: np.full_like(a, 255)),
        ("row_targets", lambda a: a * np.nan),
        ("row_targets", None),
        ("draw_weights", lambda a: -a),
        ("draw_weights", lambda a: a[1:]),
        ("scores", lambda a: a[:, ::-1].copy()),
        ("score_offsets", lambda a: a - 1e9),
        ("score_offsets", None),
    ],
)
@pytest.mark.filterwarnings("ignore:Some inputs do not have OOB scores")
def test_rows_that_do_not_fit_are_refused(name, change, tmp_path):
    model = RandomForestQuantileRegressor(9, oob_score=True, random_state=0, backend="numpy")
    path = tmp_path / "model"
    model.fit(X, Y, WEIGHTS).save(path)
    text, arrays = container.read(path, model_file.ARRAYS)
    own = arrays.pop(name)
    if change is not None:
        arrays[name] = change(own)
    container.write(path, text, arrays)
    with pytest.raises(ModelFormatError):
        gpuforest.load(path)
