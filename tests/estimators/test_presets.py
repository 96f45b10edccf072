"""Presets: ordinary estimators by a word."""

import numpy as np
import pytest
from commands import refused
from sklearn.base import clone

import gpuforest as gf
from gpuforest.tools.cli import main

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 4))
KINDS = ("RandomForest", "ExtraTrees", "HistGradientBoosting")
ESTIMATORS = [getattr(gf, kind + task) for kind in KINDS for task in ("Classifier", "Regressor")]


@pytest.mark.parametrize("kind", ESTIMATORS)
@pytest.mark.parametrize("name", ["accurate", "fast", "scikit-learn"])
def test_a_preset_is_an_estimator_of_explicit_parameters(kind, name, tmp_path):
    small = {"max_iter": 3} if "Boosting" in kind.__name__ else {"n_estimators": 3}
    made = kind.preset(name, random_state=1, **small)
    assert type(made) is kind
    params = made.get_params()
    assert params["random_state"] == 1
    assert params | small == params
    assert clone(made).get_params() == params
    default = kind(random_state=1, **small).get_params()
    assert (params == default) == (name == "scikit-learn")
    made.fit(X, (X[:, 0] > 0).astype(int))
    made.save(tmp_path / "model")
    kept = gf.load(tmp_path / "model").get_params()
    assert {n: kept[n] for n in params if n not in ("n_jobs", "backend")} == {
        n: v for n, v in params.items() if n not in ("n_jobs", "backend")
    }


def test_words_that_are_no_presets():
    with pytest.raises(ValueError, match="preset 'best' is unknown: pass one of accurate, fast"):
        gf.RandomForestClassifier.preset("best")
    with pytest.raises(TypeError, match="n_trees"):
        gf.RandomForestClassifier.preset("fast", n_trees=3)
    pytest.importorskip("distributed", reason="needs pip install 'gpuforest[checks]'")
    on_dask = gf.dask.ExtraTreesRegressor
    assert type(on_dask.preset("fast")) is on_dask


def test_the_command_line(tmp_path, capsys):
    rows = "\n".join(f"{a:.3f},shop {i % 40},{a > 0}" for i, a in enumerate(X[:, 0]))
    data, out = tmp_path / "data.csv", tmp_path / "model"
    data.write_text(f"a,shop,y\n{rows}\n")
    train = ["train", str(data), "--target", "y", "--out", str(out)]
    few = ["--random-state", "1", "--max-iter", "3"]
    assert main([*train, "--model", "boosting", "--preset", "accurate", *few]) == 0
    kept = gf.load(out).get_params()
    wanted = gf.HistGradientBoostingClassifier.preset("accurate", random_state=1, max_iter=3)
    assert {n: kept[n] for n in ("learning_rate", "refit", "max_iter", "random_state")} == {
        n: wanted.get_params()[n] for n in ("learning_rate", "refit", "max_iter", "random_state")
    }
    assert [*gf.load(out).forest_.edges.statistics] == [1]
    capsys.readouterr()
    assert "--preset is for forest, extra_trees and boosting, not for tree" in refused(
        capsys, *train, "--model", "tree", "--preset", "fast"
    )
