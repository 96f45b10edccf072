"""Models of treelite: the same numbers as ours, on every side of every threshold."""

import exported
import numpy as np
import pytest

import gpuforest as gf

treelite = pytest.importorskip("treelite", reason="needs pip install 'gpuforest[checks]'")


def check(fitted, table, rows):
    """Predictions of numbers as treelite takes them, beside ours of the table."""
    converted = fitted.to_treelite()
    assert converted.num_feature == fitted.n_features_in_
    found = treelite.gtil.predict(converted, rows)
    boosted = fitted.forest_.baseline is not None
    if boosted:
        raw = treelite.gtil.predict(converted, rows, pred_margin=True)
        ours = np.asarray(fitted._raw_predict(table))
        assert np.array_equal(raw.reshape(ours.shape), ours)
    _, (wanted, *others) = exported.answers(fitted, table)
    if others:
        for i, own in enumerate([wanted, *others]):
            assert np.array_equal(found[:, i, : own.shape[1]], own)
    elif boosted:
        wanted = wanted[:, -found.shape[-1] :]  # one number: the probability of the second class
        # exponentials of two libraries differ in the last bits; the softmax of GTIL has 32
        bound = 1e-6 if wanted.shape[1] > 1 else 1e-12
        assert np.allclose(found.reshape(wanted.shape), wanted, rtol=bound, atol=bound)
    else:
        assert np.array_equal(found.reshape(wanted.shape), wanted)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kind", [k for k in exported.KINDS if k not in exported.NOT_TREELITE])
def test_predictions_are_equal_at_every_edge(kind, dtype):
    fitted, rows = exported.model(kind), exported.edge_rows(exported.model(kind), dtype)
    check(fitted, rows, rows.astype(np.float64))


@pytest.mark.parametrize("kind", ["forest", "chains", "boosted"])
def test_categories_are_codes(kind):
    fitted = exported.categorical(kind)
    for frame in (exported.category_frame()[0], exported.unseen_frame()):
        check(fitted, frame, gf.category_codes(fitted, frame).astype(np.float64))
