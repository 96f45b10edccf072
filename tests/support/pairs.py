"""The pairs of what a fit can be given: the tables of docs/pairs.md, and how to fit a pair.

`python tests/support/pairs.py` writes the tables of the page.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from paths import ROOT
from sklearn.base import is_classifier

import gpuforest as gf
from gpuforest.estimators import capabilities

PAGE = ROOT / "docs" / "pairs.md"
FAMILIES: dict[str, tuple[Any, ...]] = {
    "forests": (
        gf.RandomForestClassifier, gf.RandomForestRegressor,
        gf.ExtraTreesClassifier, gf.ExtraTreesRegressor,
    ),
    "quantiles": (gf.RandomForestQuantileRegressor, gf.ExtraTreesQuantileRegressor),
    "survival": (gf.RandomSurvivalForest, gf.ExtraSurvivalTrees),
    "isolation": (gf.IsolationForest, gf.RandomTreesEmbedding),
    "trees": (gf.DecisionTreeClassifier, gf.DecisionTreeRegressor),
    "bags": (gf.BaggingClassifier, gf.BaggingRegressor),
    "AdaBoost": (gf.AdaBoostClassifier, gf.AdaBoostRegressor),
    "boosting": (gf.HistGradientBoostingClassifier, gf.HistGradientBoostingRegressor),
    "hazards": (gf.HistGradientBoostingSurvival,), "ranking": (gf.HistGradientBoostingRanker,),
    "effects": (gf.CausalForest,),
}  # fmt: skip
EMBEDDING = gf.RandomTreesEmbedding
FAMILY = {kind: family for family, kinds in FAMILIES.items() for kind in kinds}
HEADS = {
    "forests": "`RandomForest*`, `ExtraTrees*`", "quantiles": "quantile forests",
    "survival": "survival forests", "isolation": "`IsolationForest`, `RandomTreesEmbedding`",
    "trees": "`DecisionTree*`", "bags": "`Bagging*`", "AdaBoost": "`AdaBoost*`",
    "boosting": "`HistGradientBoosting*` of classes and numbers",
    "hazards": "`HistGradientBoostingSurvival`", "ranking": "`HistGradientBoostingRanker`",
    "effects": "`CausalForest`",
}  # fmt: skip

ALL, TARGETED = capabilities.ALL, capabilities.TARGETED
UNLIKE_SURVIVAL = "forests quantiles trees bags AdaBoost boosting"
BOOSTED, TIMED = "boosting hazards ranking", "survival hazards"
UNBOOSTED, BY_TREES = "trees bags AdaBoost", "forests quantiles survival isolation"
# what a fit can be given: how the page calls it, and the families that have it
CAPABILITIES: dict[str, tuple[str, str]] = {
    "groups": ("`groups`, of rankers `qid`", f"forests quantiles survival bags {BOOSTED} effects"),
    "blocks": ("`blocks`", "forests quantiles bags boosting hazards"),
    "zero weights": ("`sample_weight` with zeros", ALL),
    "weights": ("`sample_weight` of fractions", ALL),
    "outputs": ("several outputs, or causes", "forests quantiles survival trees bags boosting"),
    "missing": ("missing values", ALL),
    "subset": ('`categorical_split="subset"`', ALL),
    "multiway": ('`categorical_split="multiway"`', f"{UNBOOSTED} forests quantiles isolation"),
    "ordered": ('`categorical_split="ordered_target"`', UNLIKE_SURVIVAL),
    "auto": ('`categorical_split="auto"`', UNLIKE_SURVIVAL),
    "shrinkage": ("`shrinkage`", "forests survival trees bags"),
    "monotonic": ("`monotonic_cst`", f"forests trees bags AdaBoost {BOOSTED}"),
    "oblique": ("`feature_combinations`", f"{UNBOOSTED} {BY_TREES}"),
    "absolute error": ('`"absolute_error"`', UNLIKE_SURVIVAL),
    "logrank": ('`criterion="logrank"`', "survival"),
    "class_weight": ("`class_weight`", "forests trees bags AdaBoost boosting"),
    "by class": ("`max_samples` of each class", "forests"),
    "priors": ("`priors`", "forests"),
    "poisson": ('`bootstrap="poisson"`, `row_ids`', "forests"),
    "max_samples": ("`max_samples`, of boosting `subsample`", f"{BY_TREES} bags {BOOSTED}"),
    "warm_start": ("`warm_start`", f"{BY_TREES} bags {BOOSTED}"),
    "trees by oob": ('`n_estimators="auto"`', "forests quantiles survival bags"),
    "features by oob": ('`max_features="oob"`', "forests quantiles survival"),
    "leaves by oob": ('`min_samples_leaf="oob"`', "forests quantiles survival"),
    "shrinkage by oob": ('`shrinkage="oob"`', "forests survival"),
    "preset": ('`preset("accurate")`', f"forests {BOOSTED}"),
    "early stopping": ("`early_stopping`", BOOSTED),
    "refit": ("`refit`", BOOSTED),
    "together": ('`multi_strategy="multi_output_tree"`', "boosting"),
    "several quantiles": ("several quantiles", "boosting"),
    "intervals": ('intervals, `loss="aft_logistic"`', "hazards"),
    "interactions": ("`interaction_cst`", f"forests quantiles trees bags AdaBoost {BOOSTED}"),
    "pruning": ('`ccp_alpha="cv"`', "trees"),
    "binned": ("`BinnedData`", ALL),
    "dask": ("dask", "forests survival boosting effects"),
    "dask by rows": ('dask, `strategy="rows"`', "forests"),
}  # fmt: skip
BY_OOB = {"trees by oob", "features by oob", "leaves by oob", "shrinkage by oob", "preset"}
CATEGORIES = {
    "subset": "subset", "multiway": "multiway", "ordered": "ordered_target", "auto": "auto"
}  # fmt: skip
# of each set a fit takes one alone, because they are values of one parameter, or ways to pass X
ALTERNATIVES = [
    {*CATEGORIES}, {"absolute error", "logrank"}, {"binned", "dask", "dask by rows"},
    {"absolute error", "several quantiles"}, {"outputs", "several quantiles"},
    {"max_samples", "by class"},
    {"shrinkage", "shrinkage by oob"},
]  # fmt: skip


def text_of(refusal: capabilities.Refusal) -> str:
    """The error that these tests see."""
    words = {"criterion": "logrank" if refusal.b == "logrank" else "absolute_error"}
    return refusal.message.format(**words, shape=(144, 2), against="warm_start=True")


def has(kind: Any, name: str) -> bool:
    if FAMILY[kind] not in CAPABILITIES[name][1].split():
        return False
    if name in ("absolute error", "class_weight", "several quantiles"):
        return of_classes(kind) == (name == "class_weight")
    if name in ("by class", "priors"):
        return of_classes(kind)
    if name == "outputs" and FAMILY[kind] == "boosting":
        return not of_classes(kind)
    return (name, kind) not in (("max_samples", EMBEDDING), ("oblique", gf.IsolationForest))


@cache
def of_classes(kind: Any) -> bool:
    return bool(is_classifier(kind()))


def one_alone(a: str, b: str) -> bool:
    return any({a, b} <= names for names in ALTERNATIVES)


@cache
def pairs_of(family: str) -> list[tuple[str, str, list[Any]]]:
    """The pairs that some estimators of a family have, and these."""
    pairs = [pair for pair in combinations(CAPABILITIES, 2) if not one_alone(*pair)]
    having = [(a, b, [k for k in FAMILIES[family] if has(k, a) and has(k, b)]) for a, b in pairs]
    return [(a, b, kinds) for a, b, kinds in having if kinds]


def refusal_of(kind: Any, a: str, b: str = "") -> capabilities.Refusal | None:
    """How an estimator refuses a pair, or one capability; None: it takes it."""
    return next((r for r in capabilities.REFUSALS if {r.a, r.b} == {a, b} and is_of(r, kind)), None)


def is_of(refusal: capabilities.Refusal, kind: Any) -> bool:
    of_labels = of_classes(kind) or not refusal.of_labels
    return of_labels and FAMILY[kind] in refusal.families.split()


class Rows(NamedTuple):
    X: Any
    y: Any = None
    sample_weight: Any = None
    groups: Any = None
    blocks: Any = None
    row_ids: Any = None


def draw(kind: Any, used: set[str], seed: int = 0, first: int = 0, n: int = 36) -> Rows:
    """Four rows of each of n towns. Each is a group, or four are one where no category tells them
    apart; five are a block. What a group or block adds to the target says nothing of others.
    Queries are of three towns, whose rows follow each other."""
    rng, N, ranks = np.random.default_rng(seed), 4 * n, FAMILY[kind] == "ranking"
    town = np.repeat(np.arange(n), 4)
    town = first + (town if ranks else rng.permutation(town))
    known = bool(used & {*CATEGORIES})
    label = town // (5 if "blocks" in used else 1 if known or ranks else 4)
    value = 2 * rng.normal(size=label.max() + 1)[label] + 0.1 * rng.normal(size=N)
    X = rng.normal(size=(N, 4))
    value += 0.3 * X[:, 0]
    if not known:
        X[:, 2] = label
    if "missing" in used:
        X[:, :2][rng.random((N, 2)) < 0.15] = np.nan
    if known:
        names = np.char.add("town ", town.astype(str)).astype(object)
        names[rng.random(N) < 0.1 * ("missing" in used)] = None
        X = pd.DataFrame(X, columns=[*"abcd"]).assign(town=pd.Series(names, dtype="str"))
    weight = rng.uniform(0.3, 3.0, N) if "weights" in used else None
    of_rows = {name: label for name in ("groups", "blocks") if name in used}
    of_rows |= {"groups": town // 3} if ranks else {}
    of_rows |= {"row_ids": ids_of(N)} if "poisson" in used else {}
    return Rows(X, target(kind, used, value, rng), weight, **of_rows)


def ids_of(n: int) -> np.ndarray:
    return 7 * np.arange(n)[::-1] - 2**62


def target(kind: Any, used: set[str], value: np.ndarray, rng: Any) -> Any:
    several, N = "outputs" in used, len(value)
    if FAMILY[kind] == "isolation":
        return None
    if FAMILY[kind] == "ranking":
        grades = np.digitize(value, [-1.5, -0.5, 0.5, 1.5])
        return np.stack([grades, grades], axis=1) if several else grades
    if "intervals" in used:
        y = np.empty(N, [("lower", float), ("upper", float)])
        y["lower"] = time = np.exp(-value)
        y["upper"] = time * rng.choice([1.0, 1.5, np.inf], N)
        return y
    if FAMILY[kind] in TIMED:
        y = np.empty(N, [("event", int if several else bool), ("time", float)])
        y["event"] = rng.integers(0, 3, N) if several else rng.random(N) < 0.8
        y["time"] = np.exp(-value)
        return y
    if not of_classes(kind):
        return np.stack([value, value + rng.normal(size=N)], axis=1) if several else value
    cuts = [0.0] if "monotonic" in used else [-1.0, 1.0]
    labels = np.array(["high", "low", "mid"])[np.searchsorted(cuts, value)]
    return np.stack([labels, rng.permutation(labels)], axis=1) if several else labels


def with_junk(kind: Any, used: set[str], rows: Rows) -> Rows:
    """The rows, and others of weight zero, which would change the model if they weighed more."""
    junk = draw(kind, used - {"missing"}, seed=9, first=50, n=5)
    if FAMILY[kind] == "ranking":  # a query before all others, and rows of the first one
        junk.groups[:] = np.repeat([-1, 0], len(junk.groups) // 2)
    frame = pd.DataFrame(junk.X)
    X, y = pd.concat([frame.iloc[:, :4] * 1000, frame.iloc[:, 4:]], axis=1), junk.y
    if FAMILY[kind] in TIMED:
        for name in {"time", "lower", "upper"} & {*y.dtype.names}:
            y[name] *= 100
    elif y is not None and y.dtype.kind == "f":
        y = y * 100
    both = pd.concat([pd.DataFrame(rows.X), X], ignore_index=True)
    y, groups, blocks = (
        None if a is None else np.concatenate([a, b])
        for a, b in ((rows.y, y), (rows.groups, junk.groups), (rows.blocks, junk.blocks))
    )
    weight = np.append(weights_of(rows), np.zeros(len(X)))
    X = both if isinstance(rows.X, pd.DataFrame) else both.to_numpy()
    ids = None if rows.row_ids is None else np.append(rows.row_ids, -np.arange(len(junk.X)))
    both = Rows(X, y, weight, groups, blocks, ids)
    return taken(both, np.argsort(groups, kind="stable")) if FAMILY[kind] == "ranking" else both


def weights_of(rows: Rows) -> np.ndarray:
    return np.ones(len(rows.X)) if rows.sample_weight is None else rows.sample_weight


def taken(rows: Rows, numbers: np.ndarray) -> Rows:
    parts = (None if a is None else a[numbers] for a in rows[1:])
    return Rows(
        rows.X.iloc[numbers] if isinstance(rows.X, pd.DataFrame) else rows.X[numbers], *parts
    )


SMALL: dict[str, dict[str, Any]] = {
    **{name: {"n_estimators": 4, "max_depth": 6} for name in ("forests", "quantiles", "survival")},
    "isolation": {"n_estimators": 4}, "trees": {"max_depth": 6}, "bags": {"n_estimators": 4},
    "AdaBoost": {"n_estimators": 3},
    "effects": {"n_estimators": 8, "max_depth": 6, "model_y": 0.0, "model_t": 0.5},
    **{name: {"max_iter": 3, "max_leaf_nodes": 4, "min_samples_leaf": 2}
        for name in BOOSTED.split()},
}  # fmt: skip
STOPPING = {"early_stopping": True, "n_iter_no_change": 2, "validation_fraction": 0.2}
PARAMETERS: dict[str, dict[str, Any]] = {
    "oblique": {"feature_combinations": 2},
    "logrank": {"criterion": "logrank"},
    "warm_start": {"warm_start": True},
    "trees by oob": {"n_estimators": "auto", "max_estimators": 6, "oob_tol": 100.0},
    "features by oob": {"max_features": "oob"},
    "leaves by oob": {"min_samples_leaf": "oob"},
    "shrinkage": {"shrinkage": 5.0},
    "shrinkage by oob": {"shrinkage": "oob"},
    "early stopping": STOPPING,
    "refit": {"refit": True, **STOPPING},
    "interactions": {"interaction_cst": [[0, 1], [2, 3]]},
    "intervals": {"loss": "aft_logistic"},
    "together": {"multi_strategy": "multi_output_tree"},
    "several quantiles": {"loss": "quantile", "quantile": [0.1, 0.5, 0.9]},
    "pruning": {"ccp_alpha": "cv", "ccp_cv": 3},
    "poisson": {"bootstrap": "poisson"},
}
CLASS_WEIGHT = {"high": 1.0, "low": 2.0, "mid": 4.0}


@dataclass
class Case:
    """An estimator that is given some capabilities."""

    kind: Any
    used: set[str]

    @property
    def family(self) -> str:
        return FAMILY[self.kind]

    @property
    def rows(self) -> Rows:
        return draw(self.kind, self.used)

    @property
    def signs(self) -> list[int]:
        return [1, 0, 0, 0, 0][: self.rows.X.shape[1]]

    @property
    def number(self) -> str:
        """The parameter that says how many trees grow."""
        return "max_iter" if self.family in BOOSTED else "n_estimators"

    def asked(self, names: set[str]) -> dict[str, Any]:
        """The parameters, also those of the base tree; `names`: of the constructor."""
        used, boosts = self.used, self.family in BOOSTED
        asked: dict[str, Any] = {**SMALL[self.family]}
        if "preset" in used:
            few = {self.number: 4 if boosts else 6, "max_leaf_nodes": 4 if boosts else None}
            few |= {"monotonic_cst": self.signs} if "monotonic" in used else {}
            asked = self.kind.preset("accurate", **few).get_params()
        asked |= {"random_state": 0} | ({"n_jobs": 1} if "n_jobs" in names else {})
        if "contamination" in names:
            asked["contamination"] = 0.1
        if "oob_score" in names:
            drawn = self.kind().bootstrap or bool(
                used & {"groups", "max_samples", "by class", "poisson", *BY_OOB}
            )
            judged = drawn or "blocks" in used
            asked |= {"bootstrap": drawn, "oob_score": judged and "dask by rows" not in used}
        for name in used & {*CATEGORIES}:
            asked["categorical_split"] = CATEGORIES[name]
            asked |= {} if boosts else {"min_category_frequency": 1}
        for name in [name for name in PARAMETERS if name in used]:
            asked |= PARAMETERS[name]
        if "monotonic" in used:
            asked["monotonic_cst"] = self.signs
        if "absolute error" in used:
            asked["loss" if boosts else "criterion"] = "absolute_error"
        if "max_samples" in used:
            share = {"max_samples": 0.3 if "poisson" in used else 30}
            asked |= {"subsample": 0.7} if boosts else share
        labels = np.unique(self.rows.y).tolist() if used & {"by class", "priors"} else []
        if "by class" in used:
            asked["max_samples"] = dict(zip(labels, (20, 0.8, 30), strict=False))
        if "priors" in used:
            asked["priors"] = dict.fromkeys(labels, 1 / len(labels))
        if "class_weight" in used:
            by_name = self.family == "forests" or "outputs" in used
            asked["class_weight"] = "balanced" if by_name else CLASS_WEIGHT
        return asked

    def model(self, backend: str = "numba", **changes: Any) -> Any:
        names = {*inspect.signature(self.kind).parameters}
        asked = self.asked(names) | {"backend": backend} | changes
        if self.family not in ("bags", "AdaBoost"):
            return self.kind(**asked)
        own = {name: asked.pop(name) for name in names | {"warm_start"} if name in asked}
        if self.family == "AdaBoost":
            own["backend"] = backend
        tree = {"max_depth": 6 if self.family == "bags" else 2, "backend": backend} | asked
        return self.kind(self.kind._tree(**tree), **own)

    def fit(self, rows: Rows | None = None, backend: str = "numba", **changes: Any) -> Any:
        rows = self.rows if rows is None else rows
        model, whole = self.model(backend, **changes), isinstance(rows.X, gf.BinnedData)
        more = self.treatment(self.rows if whole else rows)
        if "binned" in self.used or (self.family == "ranking" and rows.blocks is not None):
            rows = binned(model, rows)._replace(row_ids=rows.row_ids)
        return self.grown(model, rows, **more)

    def treatment(self, rows: Rows) -> dict[str, Any]:
        """Of effects, a treatment by a feature, whatever its model says."""
        if self.family != "effects":
            return {}
        return {"treatment": (np.asarray(pd.DataFrame(rows.X).iloc[:, 1]) > 0) * 1.0}

    def grown(self, model: Any, rows: Rows, **more: Any) -> Any:
        """The fitted model; a warm start comes in two steps."""
        passed = {name: part for name, part in rows._asdict().items() if part is not None} | more
        if self.family == "ranking" and "groups" in passed:
            passed["qid"] = passed.pop("groups")
        if "warm_start" in self.used:
            most = getattr(model, self.number)
            model.set_params(**{self.number: 3}).fit(**passed)
            model.set_params(**{self.number: most})
        return model.fit(**passed)

    def fit_on(self, client: Any) -> Any:
        """The estimator for dask, fitted to parts that lie on a cluster."""
        from dask import delayed

        import gpuforest.dask as on_dask

        columns = zip(*parts_of(self.rows), strict=True)
        lists = [None if c[0] is None else [delayed(part) for part in c] for c in columns]
        more = {
            name: [delayed(values[cut]) for cut in cuts_of(len(values))]
            for name, values in self.treatment(self.rows).items()
        }
        how = {"client": client, "strategy": "rows" if "dask by rows" in self.used else "trees"}
        model = getattr(on_dask, self.kind.__name__)(**self.model().get_params(), **how)
        return self.grown(model, Rows(*lists), **more)


def cuts_of(n: int) -> list[slice]:
    return [slice(0, 10), slice(10, n // 2), slice(n // 2, n)]


def parts_of(rows: Rows) -> list[tuple[Any, ...]]:
    cuts = cuts_of(len(rows.X))
    return [tuple(None if a is None else a[cut] for a in rows[:5]) for cut in cuts]


def binned(model: Any, rows: Rows) -> Rows:
    """The rows as `BinnedData`, to which a fit is given several outputs."""
    names = ("max_bins", "categorical_features", "min_category_frequency", "categorical_split")
    wanted = {name: getattr(model, name) for name in names}
    y = rows.y if np.ndim(rows.y) == 2 else None
    rows = rows if y is None else rows._replace(y=None)
    return Rows(gf.BinnedData.from_blocks(parts_of(rows), random_state=0, **wanted), y)


def tables() -> Iterator[str]:
    number = {name: i for i, name in enumerate(CAPABILITIES, 1)}
    yield f"| | | {' | '.join(HEADS[family] for family in FAMILIES)} |"
    yield "|---:|---|" + ":---:|" * len(HEADS)
    for name, (title, _) in CAPABILITIES.items():
        cells = [cell_of(family, name) for family in FAMILIES]
        yield f"| {number[name]} | {title} | {' | '.join(cells)} |"
    yield "\n## The pairs\n"
    yield f"| | {' | '.join(map(str, number.values()))} |"
    yield "|---|" + ":---:|" * len(number)
    for a, (title, _) in CAPABILITIES.items():
        cells = ["" if number[a] >= number[b] else cell_of_pair(a, b) for b in CAPABILITIES]
        yield f"| {number[a]} {title} | {' | '.join(cells)} |"
    yield "\n## What is refused\n"
    for message, letter in LETTERS.items():
        refusals = [r for r in capabilities.REFUSALS if text_of(r) == message and r.b]
        families = " ".join(r.families for r in refusals if r.families != ALL)
        heads = ", ".join(HEADS[family] for family in FAMILIES if family in families.split())
        limits = [heads] if heads else ["labels"] if any(r.of_labels for r in refusals) else []
        yield f'- **{letter}**{"".join(f" ({limit})" for limit in limits)}: "{message}"'


ONLY = {
    "absolute error": "numbers", "class_weight": "classes", "several quantiles": "numbers",
    "by class": "classes", "priors": "classes",
}  # fmt: skip
LETTERS = {
    message: "a" * (i > 25) + chr(ord("a") + i % 26)
    for i, message in enumerate(
        dict.fromkeys(map(text_of, sorted(capabilities.REFUSALS, key=lambda r: not r.b)))
    )
}


def cell_of(family: str, name: str) -> str:
    kinds = [kind for kind in FAMILIES[family] if has(kind, name)]
    if not kinds:
        refusal = refusal_of(FAMILIES[family][0], name)
        return LETTERS[text_of(refusal)] if refusal else ""
    if len(kinds) == len(FAMILIES[family]):
        return "✓"
    return ONLY.get(name, f"`{kinds[0].__name__}`")


def cell_of_pair(a: str, b: str) -> str:
    if one_alone(a, b):
        return "or"
    of_all = [pair for family in FAMILIES for pair in pairs_of(family) if pair[:2] == (a, b)]
    refusals = [refusal_of(kind, a, b) for *_, kinds in of_all for kind in kinds]
    letters = sorted({LETTERS[text_of(refusal)] for refusal in refusals if refusal})
    return ", ".join(["✓"] * (None in refusals) + letters)


def page() -> str:
    """The page with the tables that follow from this file."""
    before, _, rest = PAGE.read_text().partition("<!-- tables -->\n")
    after = rest.partition("<!-- end of tables -->")[2]
    text = "\n".join(tables())
    return f"{before}<!-- tables -->\n\n{text}\n\n<!-- end of tables -->{after}"


if __name__ == "__main__":
    PAGE.write_text(page())
