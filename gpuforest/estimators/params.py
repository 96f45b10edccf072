"""The parameters of all estimators: default, constraint and documentation of each, once.

`parameters` makes a class's constructor, its constraints and its documentation from the table.
"""

from __future__ import annotations

import warnings
from collections import ChainMap
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cache
from inspect import cleandoc
from numbers import Integral, Real
from textwrap import fill, indent
from typing import Any, TypeVar

from numpy.random import RandomState
from sklearn.utils._param_validation import HasMethods, Interval, RealNotInt, StrOptions

from gpuforest.boosting.losses import NUMBERS
from gpuforest.common.arguments import byte_count
from gpuforest.common.dtypes import MAX_BINS
from gpuforest.engine.criteria import CriterionNames
from gpuforest.engine.nodes import MOST_COMBINED
from gpuforest.explain.pruning import RULES

T = TypeVar("T", bound=type)


def current_criterion(criterion: str) -> str:
    """A regression's criterion, with scikit-learn's warning where it has another name now."""
    if not isinstance(criterion, str) or criterion != "friedman_mse":
        return criterion
    warnings.warn(
        'Value `"friedman_mse"` for `criterion` is deprecated and will be removed as in '
        'scikit-learn 1.11. It maps to `"squared_error"` as both were always equivalent. Use '
        '`criterion="squared_error"` to remove this warning.',
        FutureWarning,
        stacklevel=3,
    )
    return "squared_error"


class Bytes(HasMethods):  # type: ignore[misc]
    """Text that `byte_count` understands. scikit-learn takes constraints of its own kinds alone."""

    def __init__(self) -> None:
        super().__init__("upper")

    def is_satisfied_by(self, value: Any) -> bool:
        with suppress(ValueError):
            return isinstance(value, str) and byte_count(value) is not None
        return False

    def __str__(self) -> str:
        return "a str such as '500MB' or '2GiB'"


BYTES = Bytes()


def at_least(least: float, kind: Any = Integral) -> Interval:
    """Numbers from `least` on."""
    return Interval(kind, least, None, closed="left")


SHARE = Interval(RealNotInt, 0.0, 1.0, closed="right")
UNIT = Interval(Real, 0.0, 1.0, closed="both")
INSIDE = Interval(RealNotInt, 0.0, 1.0, closed="neither")
FEATURES = [at_least(1), SHARE]
CLASS_WEIGHT = [dict, list, None]
REQUIRED = object()  # in place of a default
Table = dict[str, Any]

# of each parameter: its default, its constraints, and what it does; then its types as the
# documentation has them, unless they follow from the constraints
TABLE: Table = {
    "n_estimators": (100, [at_least(1), StrOptions({"auto"})],
        'Trees; "auto": as many as it takes until the out-of-bag error has converged, see '
        "`oob_tol`. Needs bootstrap."),
    "default_quantiles": (0.5, [UNIT, "array-like", StrOptions({"mean"}), None],
        "What `predict` gives unless it is asked for other quantiles; None: the mean.",
        'float, list of float, "mean" or None'),
    "criterion": ("gini", [StrOptions(CriterionNames("classification"))],
        "What a split is chosen by."),
    "splitter": ("best", [StrOptions({"best", "random"})],
        "The best cut of each feature tried, or the best of one random cut of each."),
    "max_depth": (None, [at_least(1), None],
        "Levels below the root; None: until leaves are pure or may not be split."),
    "min_samples_split": (2, [at_least(2), SHARE],
        "Rows of a node that may be split; a float is a fraction of the rows."),
    "min_samples_leaf": (1, [at_least(1), INSIDE, StrOptions({"oob"})],
        'Rows that either side of a split must have; a float is a fraction of the rows; "oob": '
        "as many as give the least out-of-bag loss, and with max_features=\"oob\" both together; "
        "needs bootstrap. See docs/out_of_bag.md."),
    "max_samples_leaf": (None, [at_least(1), SHARE, None],
        "The most draws that a leaf keeps, chosen at random by a hash; a float is a fraction of "
        "the training rows; None: all. Without bootstrap it counts rows."),
    "min_weight_fraction_leaf": (0.0, [Interval(Real, 0.0, 0.5, closed="both")],
        "Share of a bag's total weight that either side of a split must have, up to 0.5."),
    "max_features": ("sqrt", [*FEATURES, StrOptions({"sqrt", "log2", "oob"}), None],
        'Features, among those that vary in the node, tried at a split; None: all; "oob": as many '
        "as give the least out-of-bag error, from the default on by factors of two, which needs "
        "bootstrap."),
    "max_leaf_nodes": (None, [at_least(2), None],
        "The most leaves of a tree: it has the splits that decrease the impurity most, "
        "chosen from the root down (best first); None: any number."),
    "min_impurity_decrease": (0.0, [at_least(0.0, Real)],
        "Least decrease of impurity, weighted by the node's share of the rows."),
    "ccp_alpha": (0.0, [at_least(0.0, Real)],
        "Minimal cost-complexity pruning of each tree (Breiman et al. 1984, chapter 3): the "
        "subtree of the largest cost complexity below this is kept; 0: no pruning."),
    "ccp_cv": (10, [at_least(2), HasMethods(["split", "get_n_splits"]), Iterable],
        'The folds of `ccp_alpha="cv"`: an int takes that many, shuffled by `random_state`, and '
        "stratified for classes; else as `sklearn.model_selection.check_cv` takes it.",
        "int, splitter or iterable"),
    "ccp_rule": ("min", [StrOptions(set(RULES))],
        'Which subtree `ccp_alpha="cv"` takes: the smallest of the least error, or of at most one '
        "standard error more."),
    "monotonic_cst": (None, ["array-like", None],
        "1: the prediction (of classes, the probability of the second) must not fall as the "
        "feature rises, -1: it must not rise, 0: either. For two classes, or one real output.",
        "array-like of int of shape (n_features,) or None"),
    "categorical_features": ("from_dtype", ["array-like", StrOptions({"from_dtype"}), None],
        "Features whose values are categories: a mask of shape (n_features,), indices, or names of "
        'columns. "from_dtype": columns of a frame that hold strings or are of a categorical '
        "dtype. None: no feature is."),
    "min_category_frequency": (5, [at_least(1)],
        "Rows of a category, where a feature has more than ten: those of fewer rows become one, "
        '"other", where values also go that training did not see. 1: each is a category.'),
    "categorical_split": ("subset", [StrOptions({"subset", "multiway", "ordered_target", "auto"})],
        "How a categorical feature splits: in two sets of its categories, the best of all sets or "
        "near it; or in a branch for each category, as ID3 and C4.5 do, once on a path; or by the "
        "mean target of each category, found from the rows before in an order by hashes, as "
        'CatBoost does. "auto": "ordered_target" for more than 30 categories, else "subset".'),
    "feature_combinations": (None, [Interval(Real, 1, MOST_COMBINED, closed="both"), None],
        "Splits by sums of several features (oblique splits): the mean number of features in a "
        "sum, 1 to 8; 1.5 to 3 is usual. `max_features` then counts the sums tried, of which there "
        "may be more than features. None: splits by one feature. See docs/oblique.md."),
    "combination_weights": ("binary", [StrOptions({"binary", "integer"})],
        "What features are multiplied with in a sum: 1 or -1; or a whole number from -5 to 5."),
    "sparse_output": (True, ["boolean"], "`transform` gives a sparse matrix; False: an array."),
    "bootstrap": (True, ["boolean"],
        "Each tree sees rows drawn with replacement; False: all rows."),
    "max_samples": (None, [None, Interval(RealNotInt, 0.0, None, closed="neither"), at_least(1)],
        "Rows drawn for a tree; a float is a fraction of the total weight; None: as many as there "
        "are rows. Needs bootstrap."),
    "oob_score": (False, ["boolean", callable],
        "Predict each row by the trees that did not draw it. Needs bootstrap. A callable takes the "
        "true and the predicted targets of these rows and gives the score."),
    "unbiased_importances": (False, ["boolean"],
        "Find `unbiased_feature_importances_`, by one walk of the rows down the trees that did not "
        "draw them. Needs bootstrap."),
    "oob_tol": (0.005, [at_least(0.0, Real)],
        'Of n_estimators="auto": growing ends when over the last half of the trees the out-of-bag '
        "error (of classes the share of wrong rows, of numbers 1 - R^2) lay within this."),
    "max_estimators": (1000, [at_least(1)], 'The most trees of n_estimators="auto".'),
    "class_weight": (None, [StrOptions({"balanced", "balanced_subsample"}), *CLASS_WEIGHT],
        'What each row of a class adds to the statistics: {label: weight}, or "balanced", rows / '
        '(classes * rows of the class); "balanced_subsample" counts the rows drawn for each tree. '
        "A list is for several outputs."),
    "voting": ("soft", [StrOptions({"soft", "hard"})],
        "The mean of the trees' class proportions, or the share of trees that vote for a class."),
    "random_state": (None, [Interval(Integral, 0, 2**64 - 1, closed="both"), RandomState, None],
        "An int is the seed as it is; None draws one from NumPy's global state."),
    "warm_start": (False, ["boolean"],
        "A later fit of the same data with more `n_estimators` adds trees; the forest is the same "
        "as if all had been grown at once."),
    "n_jobs": (None, [Integral, None],
        "Threads on the CPU, which never change a result. None: all processors, but fewer where "
        "there is little work, and in joblib's contexts and workers what these leave; the variable "
        "GPUFOREST_NUM_THREADS may lower it. -1: all processors."),
    "verbose": (0, ["verbose"], "1: print the stages of a fit; 2: also how far they are."),
    "max_bins": ("auto", [Interval(Integral, 2, MAX_BINS, closed="both"), StrOptions({"auto"})],
        "The most bins of a feature, 2 to 65535; above 255 codes take two bytes. "
        '"auto": a bin for each value, and so exact trees, where no feature has more than 1,023 '
        "values; else 255."),
    "backend": ("auto", [str], "See `gpuforest.available_backends`."),
    "memory_limit": (None, [at_least(1), BYTES, None],
        'The most bytes, about, that a fit takes besides X and y, such as 2_000_000_000, "2GB" or '
        '"2GiB"; fewer trees then grow at once, and the same ones. See '
        "`gpuforest.estimate_memory`. None: no limit."),
}  # fmt: skip
PLAIN_LEAF: Table = {
    "min_samples_leaf": (1, [at_least(1), INSIDE],
        "Rows that either side of a split must have; a float is a fraction of the rows."),
}  # fmt: skip
NO_CLASSES = {"class_weight": None, "voting": None}
OF_NUMBERS: Table = NO_CLASSES | {
    "criterion": ("squared_error", [StrOptions(CriterionNames("regression"))],
        '"absolute_error" predicts medians: it is slower, grows on the CPU alone and takes no '
        'categories. "poisson" is for counts: y >= 0, not all zero.'),
}  # fmt: skip
OF_SURVIVAL: Table = NO_CLASSES | {
    "criterion": ("exponential", [StrOptions(CriterionNames("survival"))],
        "What a split is chosen by: the likelihood of a constant hazard on either side, in units "
        'of the hazard of all rows. "logrank": the events of either side beside those expected by '
        "the hazards of the node's rows; it grows on the CPU alone."),
    "min_samples_split": (6, TABLE["min_samples_split"][1], TABLE["min_samples_split"][2]),
    "min_samples_leaf": (3, TABLE["min_samples_leaf"][1], TABLE["min_samples_leaf"][2]),
    "categorical_split": ("subset", [StrOptions({"subset"})],
        "In two sets of the categories: the best of all."),
    "oob_score": (False, ["boolean"],
        "Score each row by the trees that did not draw it: `oob_score_` is the concordance, and "
        "`oob_prediction_` the risks. Needs bootstrap."),
    "n_times": (150, [at_least(2)],
        "The most times of curves; where there are more times of events, quantiles of them."),
    "low_memory": (False, ["boolean"],
        "Keep no bin codes of the training rows, which curves need: the forest predicts risks, and "
        "is refused curves."),
}  # fmt: skip
OF_A_TREE = PLAIN_LEAF | {
    "max_features": (None, [*FEATURES, StrOptions({"sqrt", "log2"}), None],
        "Features, among those that vary in the node, tried at a split; None: all."),
    "ccp_alpha": (0.0, [at_least(0.0, Real), StrOptions({"cv"})],
        "Minimal cost-complexity pruning (Breiman et al. 1984, chapter 3): the subtree of the "
        'largest cost complexity below this is kept; 0: no pruning. "cv": chosen by '
        "cross-validation."),
    "class_weight": (None, [StrOptions({"balanced"}), *CLASS_WEIGHT],
        'What each row of a class adds to the statistics: {label: weight}, or "balanced", rows / '
        "(classes * rows of the class). A list is for several outputs."),
}  # fmt: skip
UNSUPERVISED = PLAIN_LEAF | {
    "n_estimators": (100, [at_least(1)], "Trees."),
    "categorical_split": ("subset", [StrOptions({"subset", "multiway"})],
        "How a categorical feature splits: in two sets of categories; or in a branch for each."),
}  # fmt: skip
OF_BAGS = {
    "estimator": (None, [HasMethods(["fit", "predict"]), None],
        "A decision tree of gpuforest for the same task says how each tree is grown, on which "
        "backend, in what memory; its random_state is ignored. None: one with its defaults. Any "
        "other, and a subclass, is fitted and asked as by scikit-learn's class of the same name."),
    "n_estimators": (10, [at_least(1), StrOptions({"auto"})],
        'Trees; "auto": as many as it takes until the out-of-bag error has converged.'),
    "max_samples": (*TABLE["max_samples"][:2],
        "Rows drawn for a tree; a float is a fraction of the total weight, or of the rows where "
        "they are drawn without replacement; None: as many as there are rows."),
    "max_features": (1.0, FEATURES, "Features drawn for a tree; a float is a fraction of them."),
    "bootstrap": (True, ["boolean"], "Rows are drawn with replacement; False: without."),
    "bootstrap_features": (False, ["boolean"], "Features are drawn with replacement."),
    "random_state": (None, ["random_state"], TABLE["random_state"][2]),
}  # fmt: skip
OF_ISOLATION = UNSUPERVISED | {
    "max_samples": ("auto", [StrOptions({"auto"}), *FEATURES],
        'Rows drawn for each tree; a float: a part of all rows; "auto": 256, or all if they are '
        "fewer."),
    "contamination": ("auto", [StrOptions({"auto"}), Interval(Real, 0, 0.5, closed="right")],
        "The share of anomalies in the training rows, which sets `offset_`; "
        '"auto": the offset is -0.5, as in the paper.'),
    "max_features": OF_BAGS["max_features"],
    "bootstrap": (False, ["boolean"], "Rows are drawn with replacement."),
    "max_bins": (*TABLE["max_bins"][:2],
        'Bins of equal width, at most, which are the resolution of the cuts; "auto": 1,023, and up '
        "to 65,535 where a few values of a feature lie far beyond all others."),
}  # fmt: skip
OF_ADABOOST = {
    "estimator": (*OF_BAGS["estimator"][:2],
        "A decision tree of gpuforest for the same task says how each tree is grown; its "
        "random_state is ignored. None: one of max_depth=1 for classes, of 3 for numbers. Any "
        "other (for classes, its `fit` takes sample_weight), and a subclass, is boosted by "
        "scikit-learn's class of the same name."),
    "n_estimators": (50, [at_least(1)],
        "Rounds, at most: boosting ends early with a tree that makes no error, or one that is no "
        "better than chance (for numbers, of a mean loss of 1/2 or more)."),
    # beyond these, weights of trees would become zero or infinite
    "learning_rate": (1.0, [Interval(Real, 1e-9, 1e9, closed="both")],
        "What each tree's weight is multiplied by, from 1e-9 to 1e9. Below 1, more rounds are "
        "needed."),
    "loss": ("linear", [StrOptions({"linear", "square", "exponential"})],
        "What a row loses by its error e, divided by the largest error: e, e^2, or 1 - exp(-e)."),
} | {
    name: (default, allowed, f"{text} Where this is the default, that of `estimator` counts.")
    for name in ("max_bins", "backend", "memory_limit")
    for default, allowed, text in [TABLE[name]]
}  # fmt: skip
OF_BOOSTING = {
    "quantile": None,
    "loss": ("log_loss", [StrOptions({"log_loss"})], "What is minimised."),
    "learning_rate": (0.1, [Interval(Real, 0, None, closed="neither")],
        "What the values of leaves are multiplied by; 1: no shrinkage."),
    "max_iter": (100, [at_least(1)], "Rounds, at most."),
    "max_leaf_nodes": (31, [at_least(2), None],
        "Leaves of a tree, at most: of all nodes the one whose split gains most is split next."),
    "max_depth": (*TABLE["max_depth"][:2], "Levels below the root."),
    "min_samples_leaf": (20, [at_least(1)], "Rows that either side of a split must have."),
    "l2_regularization": (0.0, [at_least(0, Real)], "Added to the sum of hessians of a node."),
    "max_features": (1.0, [SHARE], "The part of the features that a node tries, drawn at random."),
    "max_bins": (255, [Interval(Integral, 2, 255, closed="both")],
        "Bins of a feature, at most, without the one for missing values."),
    "monotonic_cst": (None, ["array-like", dict, None],
        "1: the prediction must not fall as the feature rises, -1: it must not rise, 0: either. A "
        "dict has them by name. For two classes, or numbers.",
        "array-like of int of shape (n_features,), dict or None"),
    "interaction_cst": (None, [list, tuple, StrOptions({"pairwise", "no_interactions"}), None],
        "Sets of features that may meet on a path; features in none of them are one more set."),
    "warm_start": (False, ["boolean"], "Whether `fit` adds rounds to those of the fit before."),
    "early_stopping": ("auto", [StrOptions({"auto"}), "boolean"],
        'Whether rounds end when scores no longer improve; "auto": from 10,001 rows on.'),
    "scoring": ("loss", [str, callable, None], "What early stopping judges by."),
    "validation_fraction": (0.1, [INSIDE, at_least(1), None],
        "Rows that are set aside for early stopping; None: the rows that trees grow from serve."),
    "n_iter_no_change": (10, [at_least(1)],
        "Rounds end when the last `n_iter_no_change` rounds did not improve the score."),
    "tol": (1e-7, [at_least(0, Real)], "By how much a score must be higher to be better."),
    "categorical_split": ("subset", [StrOptions({"subset", "ordered_target", "auto"})],
        "How a categorical feature splits: in two sets of its categories, of which there are at "
        "most `max_bins`; or by the mean target of each category, found from the rows before in an "
        'order by hashes, as CatBoost does. "auto": "ordered_target" for more than 30 categories, '
        'else "subset".'),
    "class_weight": (None, [dict, StrOptions({"balanced"}), None],
        'Weights of the classes, {label: weight}; "balanced": rows / (classes * their rows).'),
    "subsample": (1.0, [SHARE],
        "The part of the rows that a round grows from, drawn without replacement (Friedman 2002)."),
    "min_hessian": (1e-3, [at_least(0, Real)],
        "The sum of hessians that either side of a split must have."),
    "refit": (False, ["boolean"],
        "After early stopping, the rounds up to that of the best validation score are grown anew, "
        "from all rows. For rows of X that are set aside, and without `warm_start`."),
    "memory_limit": (*TABLE["memory_limit"][:2],
        "The most bytes, about, that a fit takes besides X and y: histograms have what is left, "
        "and are computed anew if that is little; the model is the same. None: they get 256 MiB."),
}  # fmt: skip
BOOSTING_OF_NUMBERS = NO_CLASSES | {
    "loss": ("squared_error", [StrOptions(set(NUMBERS))],
        '"gamma" needs y > 0, "poisson" y >= 0; both predict exp(raw prediction).'),
    "quantile": (None, [UNIT, None],
        'Of the loss "quantile"; and of the absolute residuals beyond which "huber" counts a row '
        "as an outlier (None: 0.9)."),
}  # fmt: skip
OF_BORUTA = {
    "estimator": (REQUIRED, [HasMethods(["fit", "predict"])],
        "The forest to grow in each round, with its parameters but `random_state`. For classes or "
        "numbers, as the target is. Its `categorical_features` and `max_bins` say how X is read.",
        "RandomForest*, ExtraTrees* or Bagging* of gpuforest"),
    "importance": ("oob_impurity", [StrOptions({"oob_impurity", "impurity", "oob_permutation"})],
        "The means of `oob_impurity_importance`; `feature_importances_`, which are as quick, need "
        "no bootstrap, and favour features of many values; or the means of "
        "`oob_permutation_importance`, which take longer."),
    "alpha": (0.05, [Interval(Real, 0, 1, closed="neither")],
        "Level of the tests. Among confirmed (and among rejected) features the share of wrong ones "
        "is kept below it by Benjamini and Hochberg's procedure, and a feature must also pass at "
        "alpha / rounds, because it is tested after each round."),
    "max_iter": (100, [at_least(1)], "The most rounds; fewer if all features are decided."),
    "random_state": (*TABLE["random_state"][:2],
        "Of shadows and forests: the same number gives the same selection on every backend."),
}  # fmt: skip

# the names in the order of constructors
GROWTH = "max_depth min_samples_split min_samples_leaf min_weight_fraction_leaf"
CATEGORIES = "categorical_features min_category_frequency categorical_split"
COMBINATIONS = "feature_combinations combination_weights"
MACHINE = "max_bins backend memory_limit"
RUN = f"random_state warm_start n_jobs verbose {MACHINE}"
TREE = f"{GROWTH} max_features max_leaf_nodes min_impurity_decrease ccp_alpha"
SPLITS = f"monotonic_cst {CATEGORIES} {COMBINATIONS}"
BAGS = "bootstrap max_samples oob_score unbiased_importances oob_tol max_estimators"
SINGLE_TREE = f"""* criterion splitter {TREE} ccp_cv ccp_rule {SPLITS} class_weight random_state
{MACHINE}"""
FOREST = f"n_estimators * criterion {TREE} {SPLITS} {BAGS} class_weight voting {RUN}"
QUANTILE_FOREST = FOREST.replace("criterion", "default_quantiles criterion").replace(
    "min_samples_leaf", "min_samples_leaf max_samples_leaf"
)
# no shares of the total weight, and no gains by weight: the weight of a row is its hazard
SURVIVAL = f"""n_estimators * criterion max_depth min_samples_split min_samples_leaf max_features
max_leaf_nodes {CATEGORIES} {COMBINATIONS} bootstrap max_samples oob_score oob_tol max_estimators
n_times low_memory {RUN}"""
EMBEDDING = f"""n_estimators * {GROWTH} max_leaf_nodes min_impurity_decrease {CATEGORIES}
{COMBINATIONS} sparse_output {RUN}"""
ISOLATION = f"""* n_estimators max_samples contamination max_features bootstrap n_jobs random_state
verbose warm_start {CATEGORIES} {MACHINE}"""
ADABOOST = f"estimator * n_estimators learning_rate loss random_state n_jobs verbose {MACHINE}"
BAGGING = """estimator n_estimators * max_samples max_features bootstrap bootstrap_features voting
oob_score oob_tol max_estimators warm_start n_jobs random_state verbose"""
BOOSTING = """loss * quantile learning_rate max_iter max_leaf_nodes max_depth min_samples_leaf
l2_regularization max_features max_bins categorical_features monotonic_cst interaction_cst
warm_start early_stopping scoring validation_fraction n_iter_no_change tol verbose random_state
class_weight subsample min_hessian refit categorical_split backend n_jobs memory_limit"""
BORUTA = "estimator * importance alpha max_iter random_state"


def parameters(names: str, *tables: Table, **defaults: Any) -> Callable[[T], T]:
    """A decorator that gives a class the constructor, constraints and documentation of parameters.

    names : of the parameters, in the order of the constructor; those after "*" by keyword alone
    tables : where they stand, if not in `TABLE`; None: the class does not have it
    defaults : those that differ from the table's
    """
    table = ChainMap(*tables, TABLE)
    order = [name for name in names.split() if name == "*" or table[name] is not None]
    rows = {name: table[name] for name in order if name != "*"}
    rows |= {name: (value, *rows[name][1:]) for name, value in defaults.items()}

    def decorate(cls: Any) -> Any:
        cls.__init__ = _constructor(cls, order, rows)
        cls._parameter_constraints = {name: row[1] for name, row in rows.items()}
        cls._parameter_texts = {name: row[2] for name, row in rows.items()}
        if cls.__doc__:  # python -OO has none
            section = "\n".join(_documentation(name, *row) for name, row in rows.items())
            above, below = cleandoc(cls.__doc__).split("\n\nAttributes\n")
            cls.__doc__ = f"{above}\n\nParameters\n----------\n{section}\n\nAttributes\n{below}"
        return cls

    return decorate


def _constructor(cls: type, names: list[str], rows: Table) -> Any:
    """A function that sets the parameters as attributes, with a signature as if it was written."""
    lines = [f"def __init__(self, {', '.join(names)}):"]
    for name, row in rows.items():
        renamed = row[1] is OF_NUMBERS["criterion"][1]  # an older name is known
        lines.append(f"    self.{name} = {f'current_criterion({name})' if renamed else name}")
    namespace: dict[str, Any] = {"current_criterion": current_criterion}
    exec("\n".join(lines), namespace)
    function, star = namespace["__init__"], names.index("*")
    defaults = {name: row[0] for name, row in rows.items() if row[0] is not REQUIRED}
    function.__defaults__ = tuple(defaults[name] for name in names[:star] if name in defaults)
    function.__kwdefaults__ = {name: defaults[name] for name in names[star + 1 :]}
    function.__annotations__ = {name: _annotation(row[1]) for name, row in rows.items()}
    function.__annotations__["return"] = "None"
    function.__module__ = cls.__module__
    function.__qualname__ = f"{cls.__qualname__}.__init__"
    return function


# the annotation and the word of the documentation for what a constraint allows
TYPES: dict[Any, tuple[str, str]] = {
    Integral: ("int", "int"), Real: ("float", "float"), RealNotInt: ("float", "float"),
    str: ("str", "str"), dict: ("dict[Any, Any]", "dict"), list: ("list[Any]", "list"),
    tuple: ("tuple[Any, ...]", "tuple"), RandomState: ("np.random.RandomState", "RandomState"),
    callable: ("Callable[..., float]", "callable"), "boolean": ("bool", "bool"),
    "random_state": ("int | np.random.RandomState | None", "int, RandomState or None"),
    "verbose": ("int", "int"), BYTES: ("str", "str"),
    "array-like": ("Any", "array-like"), None: ("None", "None"),
}  # fmt: skip


@cache
def _types(constraint: Any) -> tuple[str, str]:
    """The annotation and the documentation of what a constraint allows."""
    if isinstance(constraint, StrOptions):
        words = ", ".join(f'"{word}"' for word in sorted(constraint.options))
        return "str", f"{{{words}}}" if len(constraint.options) > 1 else words
    kind = constraint.type if isinstance(constraint, Interval) else constraint
    return TYPES.get(kind, ("Any", "estimator"))


def _annotation(allowed: list[Any]) -> str:
    kinds = dict.fromkeys(_types(constraint)[0] for constraint in allowed)
    return "Any" if "Any" in kinds else " | ".join(sorted(kinds, key="None".__eq__))


def _documentation(
    name: str, default: Any, allowed: list[Any], text: str, types: str | None = None
) -> str:
    """The lines of a parameter in a docstring."""
    if types is None:
        kinds = dict.fromkeys(_types(constraint)[1] for constraint in allowed)
        *others, last = sorted(kinds, key="None".__eq__)
        types = f"{', '.join(others)} or {last}" if others else last
    shown = "1/3" if default == 1 / 3 else repr(default).replace("'", '"')
    shown = "" if default is REQUIRED else f", default={shown}"
    return f"{name} : {types}{shown}\n{_wrapped(text)}"


@cache  # because many classes have the same text, and wrapping takes long
def _wrapped(text: str) -> str:
    return indent(fill(text, 92), 4 * " ")
