"""Boosted models of every loss and kind of feature, and where their trees lead rows."""

import numpy as np
from shown import LABELS, SUM, X

from gpuforest import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from gpuforest.growing.predict import apply

RNG = np.random.default_rng(4)
CITY = RNG.integers(0, 4, 300)
WITH_CITY = np.column_stack([X, CITY])
SHORT = {"max_iter": 4, "max_leaf_nodes": 7, "random_state": 0}


def number_model(loss="squared_error", y=SUM, data=X, **options):
    return HistGradientBoostingRegressor(loss, **SHORT, **options).fit(data, y)


def class_model(y=LABELS, data=X, **options):
    return HistGradientBoostingClassifier(**SHORT, **options).fit(data, y)


COUNTS = np.round(np.abs(SUM))
FIT = {
    "numbers": number_model(),
    "huber": number_model("huber", learning_rate=0.3),
    "median": number_model("absolute_error", l2_regularization=2.0),
    "quantile": number_model("quantile", quantile=0.8, subsample=0.5),
    "counts": number_model("poisson", COUNTS),
    "positive": number_model("gamma", COUNTS + 1),
    "two classes": class_model(np.where(SUM > 0, "high", "low"), max_features=0.5),
    "three classes": class_model(),
    "monotonic": number_model(monotonic_cst=[1, 0, 0, -1]),
    "categories": number_model(
        y=SUM + (CITY == 1), data=WITH_CITY, categorical_features=[4], learning_rate=0.5
    ),
    "one leaf": number_model(min_samples_leaf=200),
    "ends early": class_model(early_stopping=True, n_iter_no_change=2),
}


def data_of(kind):
    """What the model of this name was fitted to."""
    return WITH_CITY if kind == "categories" else X


def leaves(model, rows):
    """The leaf that each row reaches in each tree, i64[N, T]."""
    return model._walk(rows, apply)
