"""Models that are exported, and rows that reach every threshold from both sides."""

from functools import cache

import numpy as np
import pandas as pd
from sklearn.datasets import load_diabetes, load_iris

import gpuforest as gf

HERE = {"random_state": 0, "backend": "numpy"}
X, CODES = load_iris(return_X_y=True)
X = X.copy()
X[np.random.default_rng(0).random(X.shape) < 0.1] = np.nan
LABELS = np.array(["setosa", "it's", 'a "b"\\\n'])[CODES]
ROWS, NUMBERS = load_diabetes(return_X_y=True)
ROWS, NUMBERS = ROWS[:150], NUMBERS[:150] * 1000 / 346
TWO = np.column_stack([NUMBERS, -NUMBERS / 3])
# beyond float32 on both sides, at its ends, and too small for it
EXTREMES = np.array([1e300, 1e39, 3.4028234663852886e38, 1.0, 1e-45, 1e-320])
FAR = np.random.default_rng(1).choice(
    np.concatenate([-EXTREMES, [0.0, np.nan], EXTREMES]), (150, 3)
)
TABLES = {own.shape[1]: own for own in (X, ROWS, FAR)}

SHORT = {"max_iter": 9}
KINDS = {  # a class, its parameters, rows and targets
    "strings": (gf.RandomForestClassifier, {"n_estimators": 12, "max_depth": 4}, X, LABELS),
    "votes": (gf.RandomForestClassifier, {"n_estimators": 9, "voting": "hard"}, X, CODES - 1),
    "priors": (gf.RandomForestClassifier,
               {"n_estimators": 9, "priors": {0: 0.1, 1: 0.7, 2: 0.2}}, X, CODES),
    "truths": (gf.ExtraTreesClassifier, {"n_estimators": 12, "max_depth": 3}, X, CODES > 0),
    "tree": (gf.DecisionTreeClassifier, {"max_depth": 3}, X, CODES * 2.0),
    "root": (gf.RandomForestClassifier, {"n_estimators": 3}, X, np.zeros(150)),
    "outputs": (gf.RandomForestClassifier, {"n_estimators": 7, "max_depth": 3}, X,
                np.column_stack([LABELS, CODES == 0])),
    "numbers": (gf.RandomForestRegressor, {"n_estimators": 12, "max_depth": 6}, ROWS, NUMBERS),
    "two numbers": (gf.ExtraTreesRegressor, {"n_estimators": 7, "max_depth": 4}, ROWS, TWO),
    "medians": (gf.RandomForestRegressor,
                {"n_estimators": 5, "criterion": "absolute_error", "max_depth": 3}, ROWS, NUMBERS),
    "bag": (gf.BaggingRegressor, {"n_estimators": 5}, ROWS, NUMBERS),
    "adaboost": (gf.AdaBoostClassifier, {"n_estimators": 12}, X, CODES),
    "adaboost of two": (gf.AdaBoostClassifier, {"n_estimators": 12}, X, CODES > 1),
    "boosted classes": (gf.HistGradientBoostingClassifier, {"max_iter": 6}, X, LABELS),
    "boosted together": (
        gf.HistGradientBoostingClassifier,
        {"max_iter": 6, "multi_strategy": "multi_output_tree"}, X, LABELS,
    ),
    "boosted two": (gf.HistGradientBoostingClassifier, SHORT, X, CODES > 1),
    "boosted numbers": (gf.HistGradientBoostingRegressor, SHORT, ROWS, NUMBERS),
    "boosted gamma": (gf.HistGradientBoostingRegressor, SHORT | {"loss": "gamma"}, ROWS, NUMBERS),
    "far classes": (gf.RandomForestClassifier, {"n_estimators": 7}, FAR, CODES),
    "far numbers": (gf.HistGradientBoostingRegressor, SHORT | {"min_samples_leaf": 2},
                    FAR, NUMBERS),
    "isolation": (gf.IsolationForest, {"n_estimators": 12}, X, None),
    "isolation of one": (gf.IsolationForest, {"n_estimators": 2, "max_samples": 1}, ROWS, None),
}  # fmt: skip
SUMS = {  # which C alone has
    "sums": (gf.RandomForestClassifier, {"n_estimators": 9, "feature_combinations": 2.0},
             X, LABELS),
    "sums of weights": (
        gf.ExtraTreesRegressor,
        {"n_estimators": 7, "feature_combinations": 6.0, "combination_weights": "integer",
         "max_bins": 40}, ROWS, TWO),
    "far sums": (gf.RandomForestRegressor, {"n_estimators": 5, "feature_combinations": 3.0},
                 FAR, NUMBERS),
    "no sums": (gf.RandomForestRegressor, {"n_estimators": 2, "feature_combinations": 2.0},
                ROWS, np.zeros(150)),
}  # fmt: skip
# equal but for the rounding of exponentials: in C, and where another library has them
IN_C = ("adaboost", "adaboost of two", "isolation", "isolation of one")
BY_EXPONENTIALS = (*IN_C, "boosted classes", "boosted together", "boosted two", "boosted gamma")
NOT_TREELITE = (*IN_C, "priors")


@cache
def model(kind):
    estimator, params, table, y = (KINDS | SUMS)[kind]
    given = HERE if estimator is not gf.BaggingRegressor else {"random_state": 0}
    return estimator(**given, **params).fit(table, y)


def answers(fitted, table):
    """Labels [N, n_outputs], of numbers None; and of each output its shares or numbers [N, ...]."""
    if not hasattr(fitted, "classes_"):
        ask = fitted.score_samples if hasattr(fitted, "score_samples") else fitted.predict
        return None, [ask(table).reshape(len(table), -1)]
    shares = fitted.predict_proba(table)
    labels = fitted.predict(table).reshape(len(table), -1)
    return labels, shares if isinstance(shares, list) else [shares]


def edge_rows(fitted, dtype):
    """Rows that have each edge of a feature, the numbers of the dtype just below and above, the
    largest and the least numbers and a missing value, beside values of the training rows."""
    dtype = np.dtype(dtype).type
    table, edges = TABLES[fitted.n_features_in_], fitted.forest_.edges
    most, least = np.finfo(dtype).max, np.finfo(dtype).smallest_subnormal
    parts = [np.clip(table, -most, most).astype(dtype)]
    for f in range(edges.n_features):
        own = edges.values[edges.offsets[f] : edges.offsets[f + 1]]
        own = np.clip(own, -most, most).astype(dtype)
        steps = [np.nextafter(own, -most), own, np.nextafter(own, most)]
        values = np.concatenate([*steps, [most, -most, least, -least, 0.0, np.nan]])
        rows = parts[0][np.arange(len(values)) % len(table)].copy()
        rows[:, f] = values
        parts.append(rows)
    return np.concatenate(parts)


def category_frame(n=240):
    """A frame with strings, numbers as categories and missing values, and its target."""
    rng = np.random.default_rng(1)
    colours = np.array(["red", "green", "blue", "grey", 'a "b"\\', "it's"], object)
    frame = pd.DataFrame(
        {
            "colour": rng.choice(colours, n),
            "size": rng.choice([0.1, 2.0, 3.5, -1.0], n),
            "x": rng.normal(size=n).astype(np.float32),
            "letter": rng.choice([*"abcdefghijklmnopqrstuvwxyz"], n),
        }
    )
    y = frame["x"] + frame["colour"].isin(["red", "grey"]) * 2 + (frame["letter"] < "k") * 1.0
    y += frame["size"]
    frame.loc[rng.random(n) < 0.1, "colour"] = None
    frame.loc[rng.random(n) < 0.1, "size"] = np.nan
    frame.loc[rng.random(n) < 0.1, "x"] = np.nan
    return frame, y.fillna(0.0).to_numpy()


def unseen_frame():
    """Rows of the frame, also with categories that training did not see."""
    frame = category_frame()[0]
    frame.loc[::7, "colour"] = "pink"
    frame.loc[::11, "size"] = 7.25
    frame.loc[::5, "letter"] = "A"
    frame.loc[::13, "letter"] = None
    return frame


NAMED = {"categorical_features": ["colour", "size", "letter"], **HERE}
CATEGORICAL = {
    "forest": gf.RandomForestClassifier(9, max_depth=6, **NAMED),
    "chains": gf.ExtraTreesRegressor(7, max_depth=4, categorical_split="multiway", **NAMED),
    "boosted": gf.HistGradientBoostingRegressor(max_iter=9, min_samples_leaf=5, **HERE),
}


@cache
def categorical(kind):
    frame, y = category_frame()
    return CATEGORICAL[kind].fit(frame, y > 1.5 if kind == "forest" else y)
