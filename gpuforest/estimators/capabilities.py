"""What a fit can be given, and what it cannot be given together: the one table of refusals."""

from collections.abc import Container, Mapping, Sequence
from itertools import compress
from typing import Any, NamedTuple

import numpy as np

from gpuforest.core import criteria
from gpuforest.data import passes, target_statistics
from gpuforest.estimators import by_ids

TARGETED = "forests quantiles survival trees bags AdaBoost boosting hazards ranking effects"
ALL = f"{TARGETED} isolation"
WITHOUT_LABELS = ("isolation", "AdaBoost")  # they leave groups and blocks of BinnedData unread
ONE_FEATURE = "is for splits by one feature: set feature_combinations=None, or "
NOT_BOOSTING = "forests quantiles trees bags AdaBoost"
# the parameters that errors out of bag choose, and by which word
BY_ERROR = {
    "trees by oob": ("n_estimators", "auto"), "features by oob": ("max_features", "oob"),
    "leaves by oob": ("min_samples_leaf", "oob"), "shrinkage by oob": ("shrinkage", "oob"),
}  # fmt: skip
ROWS = "strategy='rows' cannot do {}: use 'trees'"
ONE_PLACE = ROWS.format("{}, which needs all rows of a node in one place")
APART = ROWS.format("models whose trees depend on each other")
JUDGED_TWICE = (
    "groups and blocks judge rows in two ways: pass groups for rows that belong together, or "
    "blocks for rows in the order of time"
)
NUMERIC = (
    "criterion={criterion!r} is for numeric features: pass criterion='squared_error', or "
    "categorical_features=None and numbers in place of the categories (OrdinalEncoder)"
)
ANEW = (
    "refit=True grows all rounds anew, with the rows of X that early stopping had set aside, which "
    "does not go with {against}: leave that out, or set refit=False"
)


class Refusal(NamedTuple):
    """Two capabilities that a fit refuses together, or one that a family refuses.

    message : the error, a format of the words that `refuse` gets
    families : the families of estimators that refuse it
    of_labels : True if labels are refused, and numbers are taken
    """

    a: str
    b: str
    message: str
    families: str = ALL
    of_labels: bool = False


# Capabilities have the names that tests/support/pairs.py lists. gpuforest.data and tools/dask raise
# the errors of labels on dask, and of dask by rows.
REFUSALS = [
    # before the next row, because rankers always have groups
    Refusal("blocks", "",
        "a ranker sets queries aside, not blocks: bin the data without blocks", "ranking"),
    Refusal("groups", "blocks", JUDGED_TWICE),
    Refusal("blocks", "ordered", target_statistics.LATER, "forests quantiles bags"),
    Refusal("blocks", "auto", target_statistics.LATER, "forests quantiles bags"),
    Refusal("outputs", "ordered", target_statistics.ONE_OUTPUT),
    Refusal("outputs", "auto", target_statistics.ONE_OUTPUT),
    Refusal("outputs", "monotonic",
        "Monotonicity constraints are not supported with multiple outputs.",
        f"{NOT_BOOSTING} boosting"),
    Refusal("outputs", "dask", passes.LABELS, of_labels=True),
    Refusal("outputs", "dask by rows", passes.LABELS, of_labels=True),
    Refusal("groups", "poisson",
        "bags of whole groups are drawn from all groups, and with bootstrap='poisson' a row counts "
        "by its id alone: pass no groups, or bootstrap=True", "forests"),
    Refusal("poisson", "by class",
        "rows of each class are drawn from all rows of it, and with bootstrap='poisson' a row "
        "counts by its id alone: pass another class_weight and max_samples, or bootstrap=True",
        "forests"),
    *(Refusal(a, "poisson",
        "target statistics come from the order of all rows, and with bootstrap='poisson' a forest "
        "depends on no order: pass categorical_split='subset', or bootstrap=True", "forests")
        for a in ("ordered", "auto")),
    *(Refusal(a, "poisson",
        "numbers chosen by out-of-bag errors ('auto', 'oob') may change with each row, and with "
        "bootstrap='poisson' one row should change little: pass numbers, or bootstrap=True",
        "forests")
        for a in (*BY_ERROR, "preset")),
    Refusal("groups", "by class",
        "bags of whole groups have the classes of these groups: pass no groups, or another "
        "class_weight and max_samples", "forests"),
    Refusal("outputs", "by class",
        "rows of each class are drawn for one output: pass another class_weight and max_samples, "
        "or fit the outputs apart", "forests"),
    Refusal("outputs", "priors", "priors are of one output: leave them out, or fit the outputs "
        "apart", "forests"),
    Refusal("poisson", "dask by rows", ROWS.format("bootstrap='poisson'"), "forests"),
    Refusal("by class", "dask by rows", ROWS.format("draws of each class"), "forests"),
    Refusal("subset", "absolute error", NUMERIC, NOT_BOOSTING),
    Refusal("multiway", "absolute error", NUMERIC),
    Refusal("multiway", "oblique",
        f"categorical_split='multiway' {ONE_FEATURE}categorical_split='subset'"),
    Refusal("monotonic", "oblique", f"monotonic_cst {ONE_FEATURE}monotonic_cst=None"),
    Refusal("interactions", "oblique", f"interaction_cst {ONE_FEATURE}interaction_cst=None"),
    Refusal("multiway", "interactions",
        "interaction_cst is for cuts and sets of categories: pass categorical_split='subset', or "
        "interaction_cst=None"),
    Refusal("monotonic", "interactions",
        "trees of forests take monotonic_cst or interaction_cst: leave one out, or take gradient "
        "boosting, which takes both", NOT_BOOSTING),
    Refusal("absolute error", "interactions",
        "criterion={criterion!r} takes no interaction_cst: pass criterion='squared_error', or "
        "interaction_cst=None", NOT_BOOSTING),
    Refusal("oblique", "logrank",
        "criterion={criterion!r} takes no feature_combinations: pass criterion='exponential', or "
        "leave feature_combinations out"),
    *(Refusal(shrinks, "monotonic",
        "monotonic_cst bounds the means of leaves before they are shrunk: set shrinkage=0, or "
        "monotonic_cst=None", NOT_BOOSTING)
        for shrinks in ("shrinkage", "shrinkage by oob")),
    Refusal("shrinkage", "",
        "AdaBoost weighs trees by their errors and takes no shrinkage: set it to 0", "AdaBoost"),
    Refusal("warm_start", "trees by oob",
        'n_estimators="auto" adds to no earlier trees: set warm_start=False, or n_estimators to a '
        "number"),
    Refusal("warm_start", "refit", ANEW),
    Refusal("warm_start", "preset", ANEW, "boosting hazards ranking"),
    Refusal("pruning", "binned",
        "ccp_alpha='cv' grows trees of some rows, which BinnedData do not give: pass X as an array "
        "or a frame, or a number as ccp_alpha"),
    Refusal("multiway", "dask by rows", ONE_PLACE.format("categorical_split='multiway'")),
    Refusal("interactions", "dask by rows", ONE_PLACE.format("interaction_cst")),
    Refusal("oblique", "dask by rows", ONE_PLACE.format("combinations of features")),
    Refusal("absolute error", "dask by rows", ONE_PLACE.format("criterion={criterion!r}")),
    Refusal("shrinkage by oob", "dask by rows",
        ROWS.format("shrinkage='oob', which needs all rows in one place")),
    *(Refusal(a, "dask by rows", APART)
        for a in ("features by oob", "leaves by oob", "preset", "trees by oob")),
    Refusal("blocks", "",
        "survival forests weigh rows by the hazard of all rows, so no row is judged by earlier "
        "ones only: pass no blocks", "survival"),
    Refusal("blocks", "",
        "effects are not judged by blocks of time: bin the data without blocks", "effects"),
    Refusal("outputs of classes", "",
        "y should be a 1d array: boosting of classes has one output", "boosting"),
    Refusal("outputs", "",
        "y should be a 1d array, got an array of shape {shape} instead: AdaBoost has one output",
        "AdaBoost"),
    Refusal("monotonic", "",
        "monotonic_cst bounds the means of leaves and no quantiles: leave it out, or take "
        "RandomForestRegressor or ExtraTreesRegressor for monotonic means", "quantiles"),
]  # fmt: skip

# what `refit` and `add_rows` of fitted trees refuse; "add_rows": that alone does
NEW_ROWS = [
    *(Refusal(name, "", f"{why}: fit anew") for name, why in {
        "survival": "leaves of survival trees hold hazards of all rows",
        "groups": "new rows have no groups, and the trees drew whole groups",
        "ordered": "new rows are of no target statistics, which the trees were grown from",
        "absolute error": "leaves of medians do not follow from sums of rows",
        "monotonic": "new rows may break the order that monotonic_cst asks for",
        "renumbered": "after +, keep_trees or prune_trees a forest cannot draw the bags of its "
            "trees again",
    }.items()),
    Refusal("row_ids", "", "row_ids are for forests of bootstrap='poisson': pass none"),
    Refusal("shrinkage", "decay_rate",
        "decay_rate mixes values that are not shrunk: set decay_rate=0, or shrinkage=0 and fit"),
    Refusal("mixed", "add_rows",
        "leaves hold values that refit with a decay_rate has mixed, and no sums: call refit"),
    *(Refusal(name, "add_rows",
        "the weights of classes depend on all rows: call refit with all rows, or fit anew without "
        "class_weight, max_samples of classes and priors")
        for name in ("class_weight", "by class", "priors")),
]  # fmt: skip


def of_params(params: Mapping[str, Any]) -> set[str]:
    """The capabilities that parameters ask for, as far as the table has them."""
    criterion = criteria.CRITERIA.get(params.get("criterion", ""))
    asked = {
        "warm_start": params.get("warm_start", False),
        "poisson": params.get("bootstrap") == by_ids.BY_IDS,
        **{name: params.get(of) == word for name, (of, word) in BY_ERROR.items()},
        "pruning": params.get("ccp_alpha") == "cv",
        "shrinkage": params.get("shrinkage", 0) != 0,
        "monotonic": params.get("monotonic_cst") is not None and np.any(params["monotonic_cst"]),
        "interactions": params.get("interaction_cst") is not None,
        "by class": isinstance(params.get("max_samples"), Mapping)
        or params.get("class_weight") == "balanced_bootstrap",
        "priors": params.get("priors") is not None,
        "oblique": (params.get("feature_combinations") or 0) > 1,
        "absolute error": criterion is not None and criterion.medians,
        "logrank": criterion is not None and criterion.at_risk,
    }
    return set(compress(asked, asked.values()))


def refuse(
    family: str, uses: Container[str], *, table: Sequence[Refusal] = REFUSALS, **words: Any
) -> None:
    """Raise a ValueError if a family of estimators refuses some of these capabilities."""
    for refusal in table:
        both = refusal.a in uses and (not refusal.b or refusal.b in uses)
        if both and family in refusal.families.split():
            raise ValueError(refusal.message.format(**words))
