"""Fitted trees and forests of every kind to be shown, and what is read back from how they are."""

import re

import numpy as np
from engine import table
from sklearn.datasets import load_iris

import gpuforest as gf

IRIS = load_iris()
SPECIES = IRIS.target_names[IRIS.target]
NAMES = ["sepal_length", "sepal_width", "petal_length", "petal_width"]
RNG = np.random.default_rng(3)
X = table(RNG, 300, list("cfnN"), np.float64)  # the last two have missing values
SUM = np.where(np.isnan(X), 0.7, X).sum(axis=1) + RNG.normal(size=300)
LABELS = np.array(["low", "mid", "high"])[np.digitize(SUM, np.quantile(SUM, [0.3, 0.7]))]
TWO = np.stack([LABELS, np.where(X[:, 0] > 0, "on", "off")], axis=1)
# few enough values are missing for sums of features
SUMMED = np.where(RNG.random((500, 4)) < 0.1, np.nan, RNG.normal(size=(500, 4)))
WHICH = (np.nan_to_num(SUMMED) @ [1, 1, -1, 0.5] > 0).astype(int)
SUMS = {"feature_combinations": 2.5, "max_features": 8, "random_state": 0}
OBLIQUE = {
    weights: gf.DecisionTreeClassifier(**SUMS, combination_weights=weights).fit(SUMMED, WHICH)
    for weights in ("binary", "integer")
}
FIT = {
    "classes": gf.DecisionTreeClassifier().fit(X, LABELS),
    "whole numbers as classes": gf.DecisionTreeClassifier(max_depth=4).fit(X, SUM.astype(int)),
    "numbers": gf.DecisionTreeRegressor().fit(X, SUM),
    "float32": gf.DecisionTreeRegressor().fit(X.astype(np.float32), SUM),
    "several classes": gf.DecisionTreeClassifier(max_depth=6).fit(X, TWO),
    "several numbers": gf.DecisionTreeRegressor().fit(X, np.stack([SUM, -SUM * 2], axis=1)),
    "monotonic": gf.DecisionTreeClassifier(monotonic_cst=[1, 0, 0, 0]).fit(X, SUM > 0),
    "one leaf": gf.DecisionTreeClassifier().fit(X, ["a"] * 300),
    "forest": gf.RandomForestClassifier(3, random_state=0).fit(X, LABELS),
    "votes": gf.ExtraTreesClassifier(3, random_state=0, voting="hard").fit(X, LABELS),
    "several votes": gf.RandomForestClassifier(2, random_state=0, voting="hard").fit(X, TWO),
    "embedding": gf.RandomTreesEmbedding(2, random_state=0).fit(X),
    "counts": gf.DecisionTreeRegressor(criterion="poisson").fit(X, np.abs(SUM)),
    "boosted classes": gf.AdaBoostClassifier(n_estimators=3, random_state=0).fit(X, LABELS),
    "boosted numbers": gf.AdaBoostRegressor(n_estimators=3, random_state=0).fit(X, SUM),
    "bags": gf.BaggingRegressor(n_estimators=3, random_state=0).fit(X, SUM),
}


def single(model):
    """Its last tree as an estimator of its own, and the tree's number."""
    if not hasattr(model, "estimators_"):
        return model, 0
    return model.estimators_[-1], len(model.estimators_) - 1


def grid():
    """Values on and between all edges of the trees above, and missing ones: rows of X."""
    rng = np.random.default_rng(0)
    columns = [np.concatenate([X[:, f], X[:, f] + 1e-3, [np.nan] * 60]) for f in range(4)]
    return np.stack([rng.choice(c, 500) for c in columns], axis=1)


def python_predictions(source, names, rows):
    found = {}
    exec(source, found)
    return [found["predict"](dict(zip(names, row, strict=True))) for row in rows.tolist()]


NODE = re.compile(r'(\d+) \[label="((?:[^"\\]|\\.)*)"(, fillcolor="#[0-9a-f]{6}")?\] ;')
EDGE = re.compile(r"(\d+) -> (\d+)( \[(label=\"(?:[^\"\\]|\\.)*\"|labeldistance=.*)\])? ;")


def parsed(dot):
    """Labels of the nodes, and the edges."""
    lines = dot.splitlines()
    assert lines[0] == "digraph Tree {"
    assert re.fullmatch(r'node \[shape=box, (style="[a-z, ]+", )?color="black", .*\] ;', lines[1])
    assert lines[2] == 'edge [fontname="helvetica"] ;'
    assert lines[-1] == "}"
    labels, edges = {}, []
    for line in lines[3:-1]:
        if node := NODE.fullmatch(line):
            labels[int(node[1])] = node[2]
        else:
            edges.append(tuple(map(int, EDGE.fullmatch(line).groups()[:2])))
    return labels, edges
