"""The tables that exports are made from: walked by hand, they predict what the model does."""

import numpy as np
import pytest
from exported import KINDS, NOT_TREELITE, X, categorical, edge_rows, model, unseen_frame

import gpuforest as gf
from gpuforest.export.model_tables import Tables


def walked(tables, rows):
    """The sums of the tables' leaves for rows of codes and numbers, f64[N, K]."""
    found = []
    for row in rows:
        sums = np.zeros(tables.n_sums) if tables.baseline is None else tables.baseline.copy()
        for t, at in enumerate(tables.offsets[:-1].tolist()):
            while (f := tables.feature[at]) >= 0:
                goes_left = row[f] <= tables.threshold[at]
                if at in tables.sets:
                    goes_left = row[f] in tables.sets[at]
                if np.isnan(row[f]):
                    goes_left = tables.missing_left[at]
                at = tables.left[at] + (not goes_left)
            if tables.each_adds_one:
                sums[t % tables.n_sums] += tables.values[tables.leaf[at], 0]
            else:
                sums += tables.values[tables.leaf[at]]
        found.append(sums)
    sums = np.array(found)
    return sums if tables.divisor is None else sums / tables.divisor


def sums_of(fitted, rows):
    """The same by the model itself."""
    if fitted.forest_.baseline is not None:
        return np.asarray(fitted._raw_predict(rows))
    if not hasattr(fitted, "classes_"):
        return fitted.predict(rows).reshape(len(rows), -1)
    shares = fitted.predict_proba(rows)
    return np.hstack(shares) if isinstance(shares, list) else shares


@pytest.mark.parametrize("kind", [k for k in KINDS if k not in NOT_TREELITE])
def test_walks_end_at_the_models_sums(kind):
    fitted = model(kind)
    rows = edge_rows(fitted, np.float64)[::9]
    assert np.array_equal(walked(Tables(fitted, "this"), rows), sums_of(fitted, rows))


@pytest.mark.parametrize("kind", ["forest", "chains", "boosted"])
def test_walks_by_category_codes(kind):
    fitted, frame = categorical(kind), unseen_frame()
    codes = gf.category_codes(fitted, frame)
    known = fitted.forest_.edges.categories
    for f, categories in known.items():
        lookup = {category: i for i, category in enumerate(categories)}
        for value, code in zip(frame.iloc[:, f], codes[:, f], strict=True):
            is_missing = value is None or value != value
            assert np.isnan(code) if is_missing else code == lookup.get(value, len(categories))
    assert np.array_equal(walked(Tables(fitted, "this"), codes), sums_of(fitted, frame))


def test_codes_of_what_has_none():
    rows = gf.category_codes(model("strings"), X)
    assert np.array_equal(rows, X, equal_nan=True)
    with pytest.raises(TypeError, match="a dict has no categories of gpuforest's"):
        gf.category_codes({}, X)
    with pytest.raises(ValueError, match="X has 2 features, but RandomForestClassifier"):
        gf.category_codes(model("strings"), X[:, :2])
