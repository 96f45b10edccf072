"""The fits that record.py holds the package to, and their data."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

N, F = 700, 7
FEW = 150  # rows of "few", which every backend grows
N_CLASSES = {"binary": 2, "many": 40}
WORDS = {"weights", "fractions", "outputs", "categories", "few", "again", "causes", *N_CLASSES}
CPU = ("numba", "numpy")
# the CUDA kernels on the CPU: as a GPU would run them, and with every level grown wide
EMULATED = ("emulated", "emulated wide")
EVERY = (*CPU, *EMULATED)

TREES = ("RandomForest", "ExtraTrees", "DecisionTree")
LIMITS: tuple[dict[str, Any], ...] = (
    {},
    {"max_depth": 5},
    {"min_samples_leaf": 5, "max_features": 2},
    {"min_samples_split": 0.05, "min_impurity_decrease": 0.001},
    {"min_weight_fraction_leaf": 0.02},
    {"max_leaf_nodes": 20},
    {"ccp_alpha": 0.003},
    {"monotonic_cst": [1, -1, 0, 0, 0, 0, 0]},
)
RISES: dict[str, Any] = {"monotonic_cst": [1, 1, 0, 0, -1, 0, 0]}
SETS: dict[str, Any] = {"categorical_features": [4, 5, 6]}
BRANCHES = SETS | {"categorical_split": "multiway"}


@dataclass(frozen=True)
class Case:
    estimator: str
    params: dict[str, Any]  # "estimator" are those of a bag's trees
    words: str = ""  # what the data are, of WORDS, see `data`
    asks: tuple[str, ...] = ()  # hashed beside the forest and its predictions
    backends: tuple[str, ...] = ("numba",)  # where the fit must give the same

    @property
    def title(self) -> str:
        words = [self.estimator, json.dumps(self.params), self.words, *self.asks]
        return " ".join(filter(None, words))


def data(case: Case) -> tuple[np.ndarray, Any, np.ndarray | None]:
    """X f64[N, F] with few and many values, one column with missing values, y f64[N] or
    classes i64[N], and weights f64[N] or None. Whole numbers, which are the same everywhere.

    The words of the case add whole "weights", or "fractions" and zeros; two "outputs"; columns
    of 6, 90 and up to 200 "categories", some rare; a number of classes; only a "few" rows.
    """
    words = set(case.words.split())
    assert words <= WORDS, case.words
    rng = np.random.default_rng(14)
    X = rng.integers(-(2**20), 2**20, (N, F)) / 1024.0
    X[:, 1] = np.round(X[:, 1] / 256)
    X[:, 2] = X[:, 2] > 0
    y: Any = np.round(X[:, 0] + X[:, 1] * 100 + rng.integers(-400, 400, N) + 300 * X[:, 2])
    X[rng.random(N) < 0.2, 3] = np.nan
    weights = rng.integers(1, 5, N).astype(np.float64)
    if "categories" in words:
        rng = np.random.default_rng(15)
        X[:, 4], X[:, 5] = rng.integers(0, 6, N), rng.integers(0, 90, N)
        X[:, 6] = rng.integers(0, 200, (3, N)).min(axis=0)
        y += 90 * (X[:, 4] * 7 % 6) + 40 * (X[:, 5] * 7 % 11) + 40 * (X[:, 6] * 5 % 7)
        X[rng.random(N) < 0.1, 4] = np.nan
    if "fractions" in words:
        weights = (weights - 1) * 0.37
    if {"poisson", "tweedie"} & {case.params.get("criterion"), case.params.get("loss")}:
        y = y - y.min()
    if case.params.get("loss") == "gamma":
        y = y - y.min() + 1
    if case.estimator.endswith("Ranker"):  # grades of relevance
        y = np.digitize(y, np.quantile(y, [0.5, 0.8, 0.95]))
    if case.estimator.endswith("Classifier"):
        n_classes = [n for word, n in N_CLASSES.items() if word in words]
        shares = np.arange(1, n_classes[0]) / n_classes[0] if n_classes else [0.3, 0.8]
        y = np.digitize(y, np.quantile(y, shares))
    if "Survival" in case.estimator:  # times in whole numbers, and a third of them censored
        event = np.random.default_rng(16).integers(0, 3, N)
        event = event if "causes" in words else event > 0
        y = np.rec.fromarrays([event, np.floor(y - y.min()) + 1], names="event, time")
    if "outputs" in words:
        y = np.stack([y, np.roll(y, 1)], axis=1)
    n = FEW if "few" in words else N
    weighs = bool(words & {"weights", "fractions"})
    return X[:n], y[:n], weights[:n] if weighs else None


def case(
    kind: str, /, words: str = "", asks: str = "", on: tuple[str, ...] = ("numba",), **params: Any
) -> Case:
    """With a seed, a number of bins (a bag's trees have it) and a few trees."""
    common: dict[str, Any] = {"random_state": 3}
    if not kind.startswith("Bagging"):
        common |= {"max_bins": 255}
    if kind.startswith("Hist"):
        common |= {"max_iter": 4}
    elif not kind.startswith("DecisionTree"):
        common |= {"n_estimators": 4}
    return Case(kind, common | params, words, tuple(asks.split()), on)


def cases() -> Iterator[Case]:
    for kind in TREES:
        yield from of_kind(kind)
    for task in ("Classifier", "Regressor"):
        params = {"n_estimators": 4, "random_state": 3, "max_samples": 0.5}
        yield Case(f"Bagging{task}", params)
    yield case("RandomForestClassifier", class_weight="balanced")
    for kind in TREES:
        yield from more_of_kind(kind)
    for part in (of_trees, of_boosting, of_tools):
        yield from part()


def of_kind(kind: str) -> Iterator[Case]:
    """Limits, weights, outputs and criteria."""
    C, R = kind + "Classifier", kind + "Regressor"
    for limits in LIMITS:
        yield case(R, **limits)
        if "monotonic_cst" not in limits:  # which is for two classes
            yield case(C, **limits)
    for name in (C, R):
        yield case(name, "weights")
        yield case(name, "weights", max_bins=1000)
    yield case(R, "outputs")
    yield case(C, "outputs")
    for criterion in ("entropy", "misclassification"):
        yield case(C, criterion=criterion)
    yield case(R, criterion="poisson")


def more_of_kind(kind: str) -> Iterator[Case]:
    """Categories, medians, monotonic signs and kinds of classes."""
    C, R = kind + "Classifier", kind + "Regressor"
    yield case(C, "categories", **SETS)
    yield case(R, "categories", **SETS)
    yield case(C, "binary categories", **BRANCHES)
    yield case(C, "categories", criterion="gain_ratio", **BRANCHES)
    yield case(R, "few categories", on=EVERY, **BRANCHES)
    yield case(C, "few categories", on=EVERY, criterion="entropy", **SETS)
    yield case(R, criterion="absolute_error")
    yield case(R, criterion="absolute_error", **RISES)
    yield case(C, "binary", **RISES)
    yield case(R, "few", on=EVERY, **RISES)
    yield case(C, "many")
    yield case(C, "few outputs", on=EVERY, criterion="entropy")


def of_trees() -> Iterator[Case]:
    """Criteria, sums of features, weights, and bags of rows and of features."""
    C, R, T = "RandomForestClassifier", "RandomForestRegressor", "DecisionTreeClassifier"
    yield case(T, criterion="log_loss", ccp_alpha=0.003)
    yield case(C, "few", on=EVERY, criterion="log_loss")
    yield case(C, "few", on=EVERY, criterion="misclassification")
    yield case(C, "few categories", on=EVERY, criterion="gain_ratio", **BRANCHES)
    yield case(R, "few weights", on=EVERY, criterion="poisson")
    yield case(R, criterion="friedman_mse")
    yield case(R, "outputs", criterion="poisson")
    yield case(R, "few outputs weights", on=CPU, criterion="absolute_error")
    yield case(R, "weights", criterion="absolute_error", max_leaf_nodes=15)
    yield case("ExtraTreesRegressor", "few fractions", on=CPU, criterion="absolute_error")
    yield case("DecisionTreeRegressor", "fractions", criterion="absolute_error", ccp_alpha=8.0)
    yield case(C, "many categories", criterion="misclassification", **SETS)
    yield case(R, "categories", criterion="poisson", **SETS)
    yield case(R, "outputs categories", **SETS)
    yield case(R, "categories", min_category_frequency=1, max_bins=1000, **SETS)
    whole: dict[str, Any] = {"feature_combinations": 3, "combination_weights": "integer"}
    yield case(C, "", "apply feature_importances_", CPU, feature_combinations=2)
    yield case(R, "few categories", "apply", EVERY, **whole, **SETS)
    yield case("ExtraTreesClassifier", "few", "", EVERY, **whole, max_features=9)
    yield case("DecisionTreeRegressor", "weights", "apply", feature_combinations=6, max_bins=1000)
    for name in (C, "ExtraTreesRegressor", "DecisionTreeRegressor"):
        yield case(name, "fractions")
    yield case(T, "few fractions", on=EVERY, max_bins=1000)
    yield case(C, class_weight={0: 1, 1: 3, 2: 2})
    yield case(C, "few", on=EVERY, class_weight="balanced_subsample")
    yield case(C, "weights outputs", class_weight="balanced_subsample")
    yield case(C, "few weights", on=EVERY, class_weight="balanced_bootstrap", priors="training")
    yield case("ExtraTreesClassifier", bootstrap=True, max_samples={0: 60, 1: 0.5, 2: 20})
    yield case("ExtraTreesClassifier", "fractions", class_weight="balanced")
    yield case(T, "weights", class_weight={0: 0.5, 1: 1.7, 2: 0.0})
    yield case(T, "outputs", class_weight=[{0: 1, 1: 2, 2: 3}, "balanced"])
    B, BR = "BaggingClassifier", "BaggingRegressor"
    yield case(B, "many", max_features=3, voting="hard")
    yield case(BR, "outputs", max_features=0.6, bootstrap_features=True)
    yield case(BR, max_samples=100, bootstrap=False, estimator={"criterion": "absolute_error"})
    yield case(B, "few", on=EVERY, max_samples=0.5, bootstrap=False, max_features=4)
    yield case(B, "binary", estimator={"max_features": 0.5, **RISES})
    yield case(B, "categories", estimator={"splitter": "random", "criterion": "log_loss", **SETS})
    yield case(
        BR, "few weights", on=EVERY, estimator={"max_leaf_nodes": 9}, bootstrap_features=True
    )
    yield case(B, "weights", estimator={"class_weight": "balanced", "ccp_alpha": 0.002})
    yield case(C, "many", voting="hard")
    yield case(C, bootstrap=False, max_features=None)
    yield case(R, max_samples=90, max_features="log2")
    yield case("ExtraTreesClassifier", "few", on=EVERY, bootstrap=True, max_samples=0.4)
    yield case("DecisionTreeRegressor", splitter="random", max_features="sqrt")
    yield case(R, "again", warm_start=True)
    yield case("ExtraTreesClassifier", "again", warm_start=True, max_leaf_nodes=12)
    yield case(B, "again", warm_start=True, max_features=4)


def of_boosting() -> Iterator[Case]:
    """Rounds of AdaBoost and of gradient boosting: their trees, errors and importances."""
    C, R, asks = "AdaBoostClassifier", "AdaBoostRegressor", "estimator_errors_ feature_importances_"
    yield case(C, "few", asks, EVERY, n_estimators=9)
    yield case(C, "many weights", asks, estimator={"max_depth": 3, "class_weight": "balanced"})
    yield case(C, "categories", asks, n_jobs=2, estimator={"max_depth": 2, **SETS})
    yield case(R, "few", asks, EVERY)
    yield case(R, "weights", asks, loss="square", estimator={"max_depth": 2, "max_features": 3})
    yield case(R, "", asks, loss="exponential", estimator={"criterion": "absolute_error"})
    C, R = "HistGradientBoostingClassifier", "HistGradientBoostingRegressor"
    asks = "decision_function validation_score_ feature_importances_"
    yield case(C, "binary few", asks, CPU, min_samples_leaf=5)
    yield case(C, "", asks, CPU, subsample=0.5, max_features=0.5)
    yield case(C, "many fractions", asks, n_jobs=2)
    yield case(C, "categories", asks, CPU, early_stopping=True, **SETS)
    yield case(C, "weights binary", asks, class_weight="balanced", max_depth=3)
    for loss in ("squared_error", "absolute_error", "huber", "poisson", "gamma", "quantile"):
        share = {"quantile": 0.7} if loss == "quantile" else {}
        yield case(R, "fractions", "feature_importances_", CPU, loss=loss, **share)
    yield case(R, "", "feature_importances_", n_jobs=3, max_leaf_nodes=None, memory_limit=2_000_000)
    yield case(R, "", "feature_importances_", CPU, interaction_cst=[[0, 1], [2, 3]], **RISES)
    yield case(
        R, "categories", "validation_score_", early_stopping=True, l2_regularization=2, **SETS
    )
    together: dict[str, Any] = {"multi_strategy": "multi_output_tree"}
    yield case(C, "many", **together, subsample=0.7)
    yield case(C, "few categories", on=CPU, **together, **SETS)
    yield case(R, "few outputs", on=CPU, **together)
    yield case(R, "few", on=CPU, loss="quantile", quantile=[0.1, 0.5, 0.9])
    yield case(R, "few weights", on=EVERY, loss="tweedie")
    for loss in ("coxph", "aft_logistic", "aft_extreme"):
        yield case("HistGradientBoostingSurvival", "few weights", on=CPU, loss=loss)
    for loss in ("lambdarank", "rank_xendcg"):
        yield case("HistGradientBoostingRanker", "few", on=CPU, loss=loss)


def of_tools() -> Iterator[Case]:
    """What trees answer beside their predictions; threads and memory, which change nothing."""
    C, R, T = "RandomForestClassifier", "RandomForestRegressor", "RandomTreesEmbedding"
    walks = "apply decision_path feature_importances_"
    yield case(C, "few", walks, EVERY)
    yield case("DecisionTreeRegressor", "weights", walks, min_samples_leaf=3)
    yield case("ExtraTreesRegressor", "outputs categories", walks, **SETS)
    yield case(R, "few", "feature_importances_", CPU, criterion="absolute_error")
    yield case(C, "weights", "digest_", CPU, bootstrap="poisson")
    scored: dict[str, Any] = {"oob_score": True, "n_estimators": 9}
    yield case(C, "few", "oob_decision_function_ oob_curve_ permutation", EVERY, **scored)
    yield case(C, "outputs weights", "oob_decision_function_ permutation", **scored)
    yield case(R, "few outputs", "oob_prediction_ oob_curve_ permutation", CPU, **scored)
    yield case(R, "", "oob_prediction_", criterion="absolute_error", **scored)
    yield case("BaggingRegressor", "", "oob_prediction_ permutation", max_features=4, **scored)
    yield case("RandomForestQuantileRegressor", "", min_samples_leaf=3)
    yield case("ExtraTreesQuantileRegressor", "outputs weights", min_samples_leaf=3)
    yield case("RandomSurvivalForest", "few", "oob_prediction_", EVERY, **scored)
    yield case("ExtraSurvivalTrees", "categories fractions", "unique_times_", **SETS)
    by_ranks: dict[str, Any] = scored | SETS | {"criterion": "logrank"}
    yield case("RandomSurvivalForest", "categories few", "oob_prediction_", CPU, **by_ranks)
    yield case("ExtraSurvivalTrees", "weights causes", criterion="logrank")
    yield case("RandomSurvivalForest", "few causes", "oob_prediction_", EVERY, **scored)
    grows: dict[str, Any] = {"n_estimators": "auto", "max_estimators": 100, "oob_tol": 0.02}
    yield case(C, "", "oob_curve_", max_depth=4, **grows)
    yield case("ExtraTreesRegressor", "", "oob_curve_", bootstrap=True, max_depth=4, **grows)
    shrinks: dict[str, Any] = {"shrinkage": "oob", "n_estimators": 9}
    yield case(C, "few", "oob_shrinkage_", EVERY, **shrinks)
    yield case(R, "few outputs", "oob_shrinkage_", CPU, **shrinks)
    yield case("RandomSurvivalForest", "few", "oob_shrinkage_", EVERY, **shrinks)
    tries: dict[str, Any] = {"max_features": "oob", "max_depth": 4}
    yield case(R, "", "oob_max_features_", **tries)
    yield case(C, "", "oob_max_features_ oob_curve_", **(tries | grows))
    chosen: dict[str, Any] = {"ccp_alpha": "cv", "ccp_cv": 3}
    yield case("DecisionTreeClassifier", "", "pruning_curve_", **chosen)
    yield case("DecisionTreeRegressor", "weights", "pruning_curve_", ccp_rule="one_se", **chosen)
    yield case(T, "few", "transform", EVERY)
    yield case(T, "categories", "transform apply", max_leaf_nodes=12, **SETS)
    yield case(T, "fractions again", "transform", warm_start=True, max_depth=None)
    yield case("IsolationForest", "few", "apply", EVERY, max_samples=40, contamination=0.1)
    known: dict[str, Any] = {"n_estimators": 6, "model_y": 0.0, "model_t": 0.5}
    yield case("CausalForest", "few", "oob_effect_ effect_and_std", EVERY, **known)
    yield case("CausalForest", "fractions", "feature_importances_", n_jobs=2, n_estimators=6)
    yield case("CausalForest", "categories", "oob_effect_", CPU, **known, categorical_features=[4])
    for n_jobs in (1, 2, 3):
        yield case("RandomForestClassifier", n_jobs=n_jobs, n_estimators=7)
        yield case("ExtraTreesRegressor", "weights outputs", n_jobs=n_jobs, criterion="poisson")
    # so little that a wave has one tree; the least that a fit takes is another on each backend
    yield case(R, n_jobs=2, n_estimators=9, memory_limit=2_500_000)
    yield case(R, "few", on=("numpy",), n_estimators=9, memory_limit=1_230_000)
    yield case(R, "few", on=EVERY, n_estimators=9, memory_limit=2_200_000)
