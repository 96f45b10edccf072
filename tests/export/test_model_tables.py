"""Codes of categories, as exported models take them."""

import numpy as np
import pytest
from exported import X, categorical, model, unseen_frame

import gpuforest as gf


@pytest.mark.parametrize("kind", ["forest", "chains", "boosted"])
def test_codes_are_places_among_the_categories(kind):
    fitted, frame = categorical(kind), unseen_frame()
    codes = gf.category_codes(fitted, frame)
    known = fitted.forest_.edges.categories
    for f, categories in known.items():
        lookup = {category: i for i, category in enumerate(categories)}
        for value, code in zip(frame.iloc[:, f], codes[:, f], strict=True):
            is_missing = value is None or value != value
            assert np.isnan(code) if is_missing else code == lookup.get(value, len(categories))


def test_codes_of_what_has_none():
    rows = gf.category_codes(model("strings"), X)
    assert np.array_equal(rows, X, equal_nan=True)
    with pytest.raises(TypeError, match="a dict has no categories of gpuforest's"):
        gf.category_codes({}, X)
    with pytest.raises(ValueError, match="X has 2 features, but RandomForestClassifier"):
        gf.category_codes(model("strings"), X[:, :2])
