"""Weights that are no numbers, or lie at the ends of float64, through every door that makes some:
rows of docs/robustness.md. A process of their own tries them, which a crash would end."""

import subprocess
import sys
import warnings

import numpy as np

import gpuforest as gf

N = 40
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 3))
CLASSES = np.array(["a", "b", "c"])[np.arange(N) % 3]
TWO = np.stack([CLASSES, np.array(["u", "v"])[(X[:, 0] > 0) * 1]], axis=1)
NUMBERS = 5 + X[:, 0] + 0.1 * X[:, 1]
EVENTS = np.array([(i % 3 > 0, 1.0 + i) for i in range(N)], [("event", bool), ("time", float)])
GROUPS = np.arange(N) // 4
TASKS = (("Classifier", CLASSES), ("Regressor", NUMBERS))
KINDS = [
    "RandomForest", "ExtraTrees", "DecisionTree", "Bagging", "AdaBoost", "HistGradientBoosting",
]  # fmt: skip
ONES = np.ones(N)
# of rows; those that give some answer, and whether it is that of equal weights
WEIGHTS = {
    name: np.r_[values, ONES[len(values) :]]
    for name, values in {
        "NaN": [np.nan], "infinite": [np.inf], "minus infinity": [-np.inf], "negative": [-1.0],
        "one huge": [1e308], "one tiny": [5e-324],
        "both": [1e308, 5e-324], "huge": ONES * 1e308, "tiny": ONES * 5e-324, "zero": ONES * 0,
    }.items()
}  # fmt: skip
REFUSED = (  # "block 0: " may come before
    "Input sample_weight contains ", "Negative values in data passed to `sample_weight`",
    "Sample weights must contain at least one non-zero", "class_weight must be numbers >= 0",
    "the weights of the rows add up to infinity", "the class_weight of all outputs multiply to",
    "weights times targets lie beyond 1e304", "class_weight and sample_weight leave no row",
    "max_samples=0.5 draws ", "all rows of some weight are of one group",
    "all rows of y are censored", "BaseClassifier in AdaBoostClassifier ensemble is worse than",
)  # fmt: skip


def made(name, **params):
    kind = getattr(gf, name)
    few = {"n_estimators": 2, "max_iter": 2, "random_state": 0, "backend": "numba"}
    known = kind._get_param_names()
    if "estimator" in known and "estimator" not in params and "criterion" not in known:
        params["estimator"] = kind._tree(max_depth=3)
    return kind(**{k: v for k, v in few.items() if k in known}, **params)


def fit_to(y, **more):
    return lambda model, weights: model.fit(X, y, weights, **more)


def doors_of_rows():
    """What is fitted with weights of rows."""
    for name, y in ((kind + task, y) for kind in KINDS for task, y in TASKS):
        yield name, made(name), fit_to(y)
        if hasattr(made(name), "bootstrap"):
            for params in ({"bootstrap": True}, {"bootstrap": False}):
                yield f"{name} {params}, groups", made(name, **params), fit_to(y, groups=GROUPS)
                yield f"{name} {params}", made(name, **params), fit_to(y)
            half = {"bootstrap": True, "max_samples": 0.5}
            yield f"{name} {half}", made(name, **half), fit_to(y)
        if hasattr(made(name), "early_stopping"):
            yield (
                f"{name}, validation", made(name, early_stopping=True),
                lambda m, w, y=y: m.fit(X, y, X_val=X, y_val=y, sample_weight_val=w),
            )  # fmt: skip
    for name in ("RandomSurvivalForest", "ExtraSurvivalTrees"):
        for params in ({}, {"bootstrap": False}, {"criterion": "logrank"}):
            yield f"{name} {params}", made(name, **params), fit_to(EVENTS)
            yield f"{name} {params}, groups", made(name, **params), fit_to(EVENTS, groups=GROUPS)
    yield "IsolationForest", made("IsolationForest"), fit_to(None)
    yield "quantiles", made("RandomForestQuantileRegressor"), fit_to(NUMBERS)
    parts = [slice(20), slice(20, N)]
    for kind, y in (
        ("RandomForestRegressor", NUMBERS),
        ("HistGradientBoostingClassifier", CLASSES),
    ):
        yield (
            f"{kind}, blocks", made(kind, max_bins=255),
            lambda m, w, y=y: m.fit(
                gf.BinnedData.from_blocks([(X[p], y[p], w[p]) for p in parts], max_bins=255)
            ),
        )  # fmt: skip
    for name in ("balanced", "balanced_subsample"):
        for drawn in (True, False):
            model = made("RandomForestClassifier", class_weight=name, bootstrap=drawn)
            yield f"{model}", model, fit_to(CLASSES)
            yield f"{model}, two outputs", model, fit_to(TWO)


def doors_of_classes():
    """What is made with weights of the classes, and the weights of rows beside them."""
    for kind in KINDS:
        for drawn in (True, False) if kind in ("RandomForest", "Bagging") else (None,):

            def make(weights, kind=kind, drawn=drawn):
                params = {} if drawn is None else {"bootstrap": drawn}
                if kind in ("Bagging", "AdaBoost"):
                    tree = made("DecisionTreeClassifier", class_weight=weights, max_depth=3)
                    return made(kind + "Classifier", estimator=tree, **params)
                return made(kind + "Classifier", class_weight=weights, **params)

            yield f"{kind} {drawn}", make, CLASSES
            if kind in ("RandomForest", "DecisionTree"):
                several = lambda w, make=make: make([w, {"u": w["a"], "v": w["b"]}])  # noqa: E731
                yield f"{kind} {drawn}, two outputs", several, TWO


def outcome(work):
    """What a fitted model predicts; or the words of its error."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", RuntimeWarning)  # NumPy's, of what overflows
        try:
            model = work()
        except ValueError as error:
            text = str(error)
            assert any(words in text for words in REFUSED), text
            return text
        values = getattr(model, "predict_proba", model.predict)(X)
        values = np.concatenate(values, axis=1) if isinstance(values, list) else values
        assert np.isfinite(values).all()
        return values


def try_all():
    n_refused = n_answers = 0
    for door, model, fit in doors_of_rows():
        equal = outcome(lambda model=model, fit=fit: fit(model, ONES))
        for name, weights in WEIGHTS.items():
            print(door, name, flush=True)
            found = outcome(lambda model=model, fit=fit, weights=weights: fit(model, weights))
            is_refused = isinstance(found, str)
            n_refused, n_answers = n_refused + is_refused, n_answers + (not is_refused)
            assert is_refused or np.isfinite(weights).all()
            by_total = ("min_hessian", "'max_samples': 0.5", "Survival")  # or rounded by them
            if name == "tiny" and not any(
                word in f"{door} {model.get_params()}" for word in by_total
            ):
                assert is_refused or np.allclose(found, equal)
    for door, make, y in doors_of_classes():
        equal = outcome(lambda make=make, y=y: make(dict.fromkeys("abc", 1.0)).fit(X, y))
        for value in (np.nan, np.inf, -np.inf, -1.0, 1e308, 5e-324, 0.0):
            for others, weights in (
                (1.0, None),
                (value, None),
                (1.0, "one huge"),
                (5e-324, "tiny"),
            ):
                print(door, value, others, weights, flush=True)
                of_classes = {"a": value, "b": others, "c": others}
                model, w = make(of_classes), None if weights is None else WEIGHTS[weights]
                found = outcome(lambda model=model, y=y, w=w: model.fit(X, y, w))
                is_refused = isinstance(found, str)
                assert is_refused or (np.isfinite(value) and value >= 0)
                if value == others > 0 and weights is None and "Boosting" not in door:
                    assert is_refused or np.allclose(found, equal)
    assert min(n_refused, n_answers) > 100


def test_weights_through_every_door():
    ran = subprocess.run([sys.executable, __file__], capture_output=True, text=True, timeout=600)
    assert ran.returncode == 0, (ran.stdout.splitlines()[-1:], ran.stderr[-2000:])


if __name__ == "__main__":
    try_all()
