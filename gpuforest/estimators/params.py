"""The parameters of all estimators: default, constraint and text of each, once.

`parameters` makes a class's constructor, its constraints and its docstring from the table.
"""

import warnings
from collections import ChainMap
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cache
from numbers import Integral, Real
from typing import Any, TypeVar

from numpy.random import RandomState
from sklearn.utils._param_validation import HasMethods, Interval, RealNotInt, StrOptions

from gpuforest.common import arguments, dtypes
from gpuforest.core import criteria, nodes
from gpuforest.estimators import documentation
from gpuforest.explain.pruning import RULES
from gpuforest.kernels.gradients.losses import LINKS, NUMBERS
from gpuforest.kernels.gradients.ranking import NAMES as RANKING_LOSSES

T = TypeVar("T", bound=type)


def current_criterion(criterion: str) -> str:
    """A regression's criterion, with scikit-learn's warning where it has another name now."""
    if not isinstance(criterion, str) or criterion != "friedman_mse":
        return criterion
    why = (
        'Value `"friedman_mse"` for `criterion` is deprecated and will be removed as in '
        'scikit-learn 1.11. It maps to `"squared_error"` as both were always equivalent. Use '
        '`criterion="squared_error"` to remove this warning.'
    )
    warnings.warn(why, FutureWarning, stacklevel=3)
    return "squared_error"


class Bytes(HasMethods):  # type: ignore[misc]
    """Text that `byte_count` understands, as a constraint of a kind that scikit-learn accepts."""

    def __init__(self) -> None:
        super().__init__("upper")

    def is_satisfied_by(self, value: Any) -> bool:
        with suppress(ValueError):
            return isinstance(value, str) and arguments.byte_count(value) is not None
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
DRAWN = [None, Interval(RealNotInt, 0.0, None, closed="neither"), at_least(1)]
CLASS_WEIGHT = [dict, list, None]
REQUIRED = object()  # in place of a default
Table = dict[str, Any]

SUBSETS = 'How a categorical feature splits. "subset": two sets of categories, the best or near it'
ORDERED = (
    '"ordered_target": by the mean target of each category, computed from earlier rows in a random '
    'order, as in CatBoost. "auto": "ordered_target" from 31 categories on, else "subset".'
)
CLASS_WEIGHTS = (
    'The weight of each row of a class: {label: weight}, or "balanced", rows / (classes * rows of '
    "the class)"
)
DRAWS = (
    "Number of rows drawn for a tree; a float is a fraction of the total weight; None: the number "
    "of rows. Needs bootstrap."
)
LISTS = "A list is for several outputs."
PRUNING = (
    "Minimal cost-complexity pruning (Breiman et al. 1984, chapter 3): the subtree of the largest "
    "cost complexity below this is kept; 0: no pruning."
)
LAMBDA = Interval(Real, 0.0, 1e12, closed="both")
SHRINKAGE = (
    "Lambda of hierarchical shrinkage (Agarwal et al., ICML 2022): a node's value differs from its "
    "parent's by what their rows say, divided by 1 + lambda / rows of the parent. 0: leaves "
    "predict what their rows say. See docs/out_of_bag.md."
)
# of each parameter: its default, its constraints, and its text; then its types as the
# documentation has them, unless they follow from the constraints
TABLE: Table = {
    "n_estimators": (100, [at_least(1), StrOptions({"auto"})],
        'Number of trees. "auto": trees are added until the out-of-bag error has converged, see '
        "`oob_tol`; this needs bootstrap."),
    "default_quantiles": (0.5, [UNIT, "array-like", StrOptions({"mean"}), None],
        "The quantiles that `predict` returns by default; None: the mean.",
        'float, list of float, "mean" or None'),
    "criterion": ("gini", [StrOptions(criteria.CriterionNames("classification"))],
        "The impurity that splits should reduce most."),
    "splitter": ("best", [StrOptions({"best", "random"})],
        '"best": a split tries all cuts of a feature; "random": one random cut of a feature.'),
    "max_depth": (None, [at_least(1), None],
        "The most splits between the root and a leaf; None: until leaves are pure or too small."),
    "min_samples_split": (2, [at_least(2), SHARE],
        "The fewest rows of a node that may be split; a float is a fraction of the rows."),
    "min_samples_leaf": (1, [at_least(1), INSIDE, StrOptions({"oob"})],
        'The fewest rows on each side of a split; a float is a fraction of the rows. "oob": the '
        "number with the least out-of-bag loss, chosen together with `max_features` if that is "
        '"oob" too; this needs bootstrap. See docs/out_of_bag.md.'),
    "max_samples_leaf": (None, [at_least(1), SHARE, None],
        "The most draws of rows that a leaf keeps, chosen by a hash; a float is a fraction of "
        "the training rows; None: all. Without bootstrap it counts rows."),
    "min_weight_fraction_leaf": (0.0, [Interval(Real, 0.0, 0.5, closed="both")],
        "The least share of the tree's total weight on each side of a split, up to 0.5."),
    "max_features": ("sqrt", [*FEATURES, StrOptions({"sqrt", "log2", "oob"}), None],
        "Number of features that a split tries; a float is a fraction; constant features do not "
        'count. None: all. "oob": the number with the least out-of-bag error, by factors of two '
        "from the default; this needs bootstrap."),
    "max_leaf_nodes": (None, [at_least(2), None],
        "The most leaves of a tree; the splits that decrease the impurity most come first. None: "
        "no limit."),
    "min_impurity_decrease": (0.0, [at_least(0.0, Real)],
        "The least decrease of impurity by a split, weighted by the node's share of the rows."),
    "ccp_alpha": (0.0, [at_least(0.0, Real)], PRUNING),
    "ccp_cv": (10, [at_least(2), HasMethods(["split", "get_n_splits"]), Iterable],
        'The folds of `ccp_alpha="cv"`: an int is their number, and they are shuffled by '
        "`random_state` and stratified for classes; anything else as "
        "`sklearn.model_selection.check_cv` takes it.",
        "int, splitter or iterable"),
    "ccp_rule": ("min", [StrOptions(set(RULES))],
        'The subtree that `ccp_alpha="cv"` takes: the smallest of the least error, or of at most '
        "one standard error more."),
    "shrinkage": (0.0, [LAMBDA, StrOptions({"oob"})],
        f'{SHRINKAGE} "oob": the number with the least out-of-bag loss; this needs bootstrap.'),
    "monotonic_cst": (None, ["array-like", None],
        "1: the prediction (of classes, the probability of the second) must not fall as the "
        "feature rises, -1: it must not rise, 0: either. For two classes, or one real output.",
        "array-like of int of shape (n_features,) or None"),
    "categorical_features": ("from_dtype", ["array-like", StrOptions({"from_dtype"}), None],
        "Features whose values are categories: a mask of shape (n_features,), indices, or names of "
        'columns. "from_dtype": the columns of a frame that hold strings or have a categorical '
        "dtype. None: no feature."),
    "min_category_frequency": (5, [at_least(1)],
        "In a feature of more than ten categories, categories with fewer rows than this are merged "
        'into "other", to which unseen values belong too. 1: nothing is merged.'),
    "categorical_split": ("subset", [StrOptions({"subset", "multiway", "ordered_target", "auto"})],
        f'{SUBSETS}. "multiway": a branch for each category, once on a path, as in ID3 and C4.5. '
        f"{ORDERED}"),
    "interaction_cst": (None, [list, tuple, StrOptions({"pairwise", "no_interactions"}), None],
        "Sets of features that may be combined on a path; all other features are one more set."),
    "feature_combinations": (None, [Interval(Real, 1, nodes.MOST_COMBINED, closed="both"), None],
        "Oblique splits, by sums of several features: the mean number of features in a sum, 1 to "
        "8; 1.5 to 3 is usual. `max_features` then counts the sums that a split tries, and may "
        "exceed the number of features. None: splits by one feature. See docs/oblique.md."),
    "combination_weights": ("binary", [StrOptions({"binary", "integer"})],
        'The weights of features in a sum. "binary": 1 or -1; "integer": whole numbers, -5 to 5.'),
    "sparse_output": (True, ["boolean"], "`transform` gives a sparse matrix; False: an array."),
    "bootstrap": (True, ["boolean"],
        "Each tree grows from rows drawn with replacement; False: from all rows."),
    "max_samples": (None, [*DRAWN, dict],
        f"{DRAWS} {{label: number}} draws rows of each class; a float is then a fraction of the "
        "class's rows."),
    "oob_score": (False, ["boolean", callable],
        "Whether the trees that did not draw a row predict it, for a score. Needs bootstrap. A "
        "callable takes the true and the predicted targets of these rows and returns the score."),
    "unbiased_importances": (False, ["boolean"],
        "Whether the fit computes `unbiased_feature_importances_`: each row walks down the trees "
        "that did not draw it. Needs bootstrap."),
    "oob_tol": (0.005, [at_least(0.0, Real)],
        'For n_estimators="auto": trees are added until the out-of-bag error (the share of wrong '
        "rows, or 1 - R^2) changes by at most this over the last half of the trees."),
    "max_estimators": (1000, [at_least(1)], 'The most trees of n_estimators="auto".'),
    "class_weight": (None,
        [StrOptions({"balanced", "balanced_subsample", "balanced_bootstrap"}), *CLASS_WEIGHT],
        f'{CLASS_WEIGHTS}; "balanced_subsample" counts the rows drawn for each tree. '
        '"balanced_bootstrap" draws as many rows of each class, with replacement, as the smallest '
        f"class has (Chen, Liaw and Breiman 2004); this needs bootstrap. {LISTS}"),
    "priors": (None, [StrOptions({"training"}), dict, None],
        "How frequent the classes are where the forest predicts: {label: share}, or "
        '"training", as in the training rows. None: as frequent as in the bags, which class_weight '
        "and max_samples change. The factors act on the mean over the trees, see "
        "docs/rare_classes.md."),
    "voting": ("soft", [StrOptions({"soft", "hard"})],
        '"soft": the mean of the trees\' class proportions; "hard": the share of their votes.'),
    "random_state": (None, [Interval(Integral, 0, 2**64 - 1, closed="both"), RandomState, None],
        "The seed: an int is used without change; None draws a seed from NumPy's global state."),
    "warm_start": (False, ["boolean"],
        "A later fit of the same data with more `n_estimators` adds trees; the forest is the same "
        "as if all had been grown at once."),
    "n_jobs": (None, [Integral, None],
        "Number of threads on the CPU; it never changes a result. -1: all processors. None: all, "
        "but fewer for little work, and in joblib's contexts and workers their share; the variable "
        "GPUFOREST_NUM_THREADS may lower it."),
    "verbose": (0, ["verbose"],
        "1: print the stages of a fit with their seconds, and for boosting once a second the "
        "round, the losses and the time left; on a terminal scikit-learn's progress bar is drawn "
        "too (from scikit-learn 1.9 on). 2: print counts too, ten times a second."),
    "max_bins": (
        "auto", [Interval(Integral, 2, dtypes.MAX_BINS, closed="both"), StrOptions({"auto"})],
        "The most bins of a feature, 2 to 65535; above 255 a value takes two bytes. "
        '"auto": 255, or a bin for each value, which gives exact trees, if no feature has more '
        "than 1,023 values."),
    "backend": ("auto", [str], "See `gpuforest.available_backends`."),
    "memory_limit": (None, [at_least(1), BYTES, None],
        'The most bytes, about, that a fit takes besides X and y, such as 2_000_000_000, "2GB" or '
        '"2GiB"; fewer trees then grow at once, and the forest is the same. See '
        "`gpuforest.estimate_memory`. None: no limit."),
}  # fmt: skip
PLAIN_LEAF: Table = {
    "min_samples_leaf": (1, [at_least(1), INSIDE],
        "The fewest rows on each side of a split; a float is a fraction of the rows."),
}  # fmt: skip
NO_CLASSES: Table = {
    "class_weight": None, "voting": None, "priors": None, "max_samples": (None, DRAWN, DRAWS),
} | documentation.OF_NUMBERS  # fmt: skip
OF_NUMBERS = NO_CLASSES | {
    "criterion": ("squared_error", [StrOptions(criteria.CriterionNames("regression"))],
        'The impurity that splits should reduce most. "absolute_error" predicts medians: it is '
        'slower, grows on the CPU alone and takes no categories. "poisson" is for counts: y >= 0, '
        "not all zero."),
}  # fmt: skip
BY_IDS: Table = {
    "bootstrap": (True, ["boolean", StrOptions({"poisson"})],
        'Each tree grows from rows drawn with replacement; False: from all rows. "poisson": a hash '
        "of its id (see `fit`) says how often a row counts in a tree, once in the mean or as often "
        "as `max_samples` says, a float. See docs/row_ids.md."),
}  # fmt: skip
NUMBERS_BY_IDS = OF_NUMBERS | BY_IDS
OF_SURVIVAL = NO_CLASSES | {
    "criterion": ("exponential", [StrOptions(criteria.CriterionNames("survival"))],
        'The score of splits. "exponential": the likelihood of a constant hazard on each side, '
        'relative to the hazard of all rows. "logrank": the events on each side compared with the '
        "events expected from the hazards of the node's rows; its trees grow on the CPU."),
    "min_samples_split": (6, *TABLE["min_samples_split"][1:]),
    "min_samples_leaf": (3, *TABLE["min_samples_leaf"][1:]),
    "categorical_split": ("subset", [StrOptions({"subset"})],
        "A split divides the categories into two sets, the best of all."),
    "oob_score": (False, ["boolean"],
        "Whether the trees that did not draw a row predict it: `oob_score_` is the concordance, "
        "and `oob_prediction_` are the risks. Needs bootstrap."),
    "n_times": (150, [at_least(2)],
        "The most times of a curve; with more times of events it has quantiles of them."),
    "low_memory": (False, ["boolean"],
        "The forest keeps no bin codes of the training rows, which curves need: it predicts risks "
        "and refuses curves."),
    "oob_score_": ("float", "Concordance over the rows that are out of some bag."),
    "oob_prediction_": ("float64 ndarray of shape (n_samples,)",
        "Risks by the trees that did not draw the row; NaN if every tree drew it."),
    "estimators_": ("list of trees", "The trees, which predict like the forest."),
    "example": None,
}  # fmt: skip
OF_A_TREE = PLAIN_LEAF | {
    "max_features": (None, [*FEATURES, StrOptions({"sqrt", "log2"}), None],
        "Number of features that a split tries; constant ones do not count. None: all."),
    "ccp_alpha": (0.0, [at_least(0.0, Real), StrOptions({"cv"})],
        f'{PRUNING} "cv": cross-validation chooses the number.'),
    "shrinkage": (0.0, [LAMBDA], SHRINKAGE),
    "class_weight": (None, [StrOptions({"balanced"}), *CLASS_WEIGHT],
        f"{CLASS_WEIGHTS}. {LISTS}"),
    "forest_": ("gpuforest.core.forest.Forest", "The tree as arrays."),
}  # fmt: skip
UNSUPERVISED = NO_CLASSES | PLAIN_LEAF | {
    "example": None,
    "n_estimators": (100, [at_least(1)], "Number of trees."),
    "categorical_split": ("subset", [StrOptions({"subset", "multiway"})],
        f'{SUBSETS}; "multiway": a branch for each category.'),
}  # fmt: skip
OF_BAGS = {
    "estimator": (None, [HasMethods(["fit", "predict"]), None],
        "A decision tree of gpuforest for the same task, whose parameters, backend and memory "
        "limit each tree takes, but not its random_state. None: a tree with its defaults. Other "
        "estimators, and subclasses, are bagged as by scikit-learn's class of the same name."),
    "n_estimators": (10, [at_least(1), StrOptions({"auto"})],
        'Number of trees. "auto": trees are added until the out-of-bag error has converged.'),
    "max_samples": (None, DRAWN,
        "Number of rows drawn for a tree; a float is a fraction of the total weight (without "
        "replacement, of the rows); None: the number of rows."),
    "max_features": (1.0, FEATURES, "Number of features drawn for a tree; a float is a fraction."),
    "bootstrap": (True, ["boolean"], "Whether rows are drawn with replacement."),
    "bootstrap_features": (False, ["boolean"], "Whether features are drawn with replacement."),
    "random_state": (None, ["random_state"], TABLE["random_state"][2]),
}  # fmt: skip
OF_ISOLATION = UNSUPERVISED | {
    "max_samples": ("auto", [StrOptions({"auto"}), *FEATURES],
        'Number of rows drawn for each tree; a float is a fraction of the rows; "auto": 256, or '
        "all if there are fewer."),
    "contamination": ("auto", [StrOptions({"auto"}), Interval(Real, 0, 0.5, closed="right")],
        "The share of anomalies in the training rows, which sets `offset_`; "
        '"auto": the offset is -0.5, as in the paper.'),
    "max_features": OF_BAGS["max_features"],
    "bootstrap": (False, ["boolean"], "Rows are drawn with replacement."),
    "max_bins": (*TABLE["max_bins"][:2],
        'The most bins of a feature, all of equal width; cuts lie between bins. "auto": 1,023, and '
        "up to 65,535 where a few values of a feature lie far beyond all others."),
    "offset_": ("float", "`decision_function` is `score_samples` minus this."),
    "max_samples_": ("int", "Number of rows drawn for each tree."),
    "estimators_": ("list of DecisionTreeRegressor", "The trees, which predict path lengths."),
    "forest_": ("gpuforest.core.forest.Forest", "The trees; they predict the mean path length."),
}  # fmt: skip
OF_ADABOOST = {
    "estimator": (*OF_BAGS["estimator"][:2],
        "A decision tree of gpuforest for the same task, whose parameters each tree takes, but not "
        "its random_state. None: a tree of max_depth=1 for classes, 3 for numbers. Other "
        "estimators (for classes, their `fit` takes sample_weight), and subclasses, are boosted by "
        "scikit-learn's class of the same name."),
    "n_estimators": (50, [at_least(1)],
        "The most rounds. Boosting ends early if a tree makes no error, or is not better than "
        "chance (for numbers: has a mean loss of 1/2 or more)."),
    # beyond these, weights of trees would become zero or infinite
    "learning_rate": (1.0, [Interval(Real, 1e-9, 1e9, closed="both")],
        "A factor of each tree's weight, from 1e-9 to 1e9. Values below 1 need more rounds."),
    "loss": ("linear", [StrOptions({"linear", "square", "exponential"})],
        "The loss of a row whose error, divided by the largest, is e: e, e^2, or 1 - exp(-e)."),
    "estimator_weights_": ("float64 ndarray of shape (n_estimators,)",
        "The weight of each tree's prediction; 0 for rounds that did not happen."),
    "estimator_errors_": ("float64 ndarray of shape (n_estimators,)",
        "The weighted share of rows that each tree misclassifies, or its weighted mean loss; 1 for "
        "rounds that did not happen."),
    "feature_importances_": ("float64 ndarray of shape (n_features_in_,)",
        "The mean of the trees' importances, by the trees' weights."),
} | {
    name: (default, allowed, f"{text} At the default, the value of `estimator` counts.")
    for name in ("max_bins", "backend", "memory_limit")
    for default, allowed, text in [TABLE[name]]
}  # fmt: skip
A_FUNCTION = (
    "A function of y, raw predictions and weights (or None) returns the gradient and the hessian "
    "of each row, with its weight; None as hessian stands for the weights."
)
OF_BOOSTING = {
    "quantile": None,
    "link": None,
    "power": None,
    "loss": ("log_loss", [StrOptions({"log_loss"}), callable],
        f"The loss that boosting minimises. {A_FUNCTION}"),
    "learning_rate": (0.1, [Interval(Real, 0, None, closed="neither")],
        "A factor of the values of leaves (shrinkage); 1: no shrinkage."),
    "max_iter": (100, [at_least(1)], "The most rounds."),
    "max_leaf_nodes": (31, [at_least(2), None],
        "The most leaves of a tree; the node whose split gains most is split next."),
    "max_depth": (*TABLE["max_depth"][:2], "The most splits from root to leaf; None: no limit."),
    "min_samples_leaf": (20, [at_least(1)], "The fewest rows on each side of a split."),
    "l2_regularization": (0.0, [at_least(0, Real)], "Added to the sum of hessians of a node."),
    "max_features": (1.0, [SHARE], "Share of the features that a node tries, drawn at random."),
    "max_bins": (255, [Interval(Integral, 2, 255, closed="both")],
        "The most bins of a feature; missing values have a bin of their own."),
    "monotonic_cst": (None, ["array-like", dict, None],
        "1: the prediction must not fall as the feature rises, -1: it must not rise, 0: either. A "
        "dict has names as keys. For two classes, or numbers.",
        "array-like of int of shape (n_features,), dict or None"),
    "warm_start": (False, ["boolean"], "Whether `fit` adds rounds to the rounds of the last fit."),
    "early_stopping": ("auto", [StrOptions({"auto"}), "boolean"],
        'Whether rounds end when scores no longer improve; "auto": from 10,001 rows on.'),
    "scoring": ("loss", [str, callable, None], "The score for early stopping."),
    "validation_fraction": (0.1, [INSIDE, at_least(1), None],
        "Rows set aside for early stopping, as a share or a number; None: training rows judge."),
    "n_iter_no_change": (10, [at_least(1)],
        "Rounds end when the last `n_iter_no_change` rounds did not improve the score."),
    "tol": (1e-7, [at_least(0, Real)], "A score that is higher by less than this is no better."),
    "categorical_split": ("subset", [StrOptions({"subset", "ordered_target", "auto"})],
        f"{SUBSETS}, of at most `max_bins` categories. {ORDERED}"),
    "class_weight": (None, [dict, StrOptions({"balanced"}), None], f"{CLASS_WEIGHTS}."),
    "subsample": (1.0, [SHARE],
        "Share of the rows that a round grows from, drawn without replacement (Friedman 2002)."),
    "min_hessian": (1e-3, [at_least(0, Real)],
        "The least sum of hessians on each side of a split."),
    "multi_strategy": ("one_output_per_tree",
        [StrOptions({"one_output_per_tree", "multi_output_tree"})],
        'Whether each of several classes, outputs or quantiles has trees of its own. '
        '"multi_output_tree": each round has one tree, whose leaves have a value for each.'),
    "refit": (False, ["boolean"],
        "After early stopping, grow the rounds up to the best validation score again, from all "
        "rows. Needs rows of X that are set aside, and no `warm_start`."),
    "memory_limit": (*TABLE["memory_limit"][:2],
        "The most bytes, about, that a fit takes besides X and y. Histograms get the rest of it, "
        "and are computed again if it is small; the model is the same. None: they get 256 MiB."),
    "do_early_stopping_": ("bool", "True if the fit used early stopping."),
    "n_iter_": ("int", "Number of rounds."),
    "n_trees_per_iteration_": ("int", "Number of trees that a round grows."),
    "train_score_": ("float64 ndarray of shape (n_iter_ + 1,)",
        "Scores before the first round and after each; empty without early stopping. With `refit` "
        "the scores of the search, which may have had more rounds than the model."),
    "validation_score_": ("float64 ndarray of shape (n_iter_ + 1,)",
        "The same for the rows on which early stopping judges."),
    "feature_importances_": ("float64 ndarray of shape (n_features_in_,)",
        "The gain of the splits by each feature as a share of all gains."),
}  # fmt: skip
BOOSTING_OF_NUMBERS: Table = NO_CLASSES | {
    "loss": ("squared_error", [StrOptions(set(NUMBERS)), callable],
        '"gamma" needs y > 0, "poisson" and "tweedie" y >= 0: they predict exp(raw prediction). '
        f'"cross_entropy" needs 0 <= y <= 1, and predicts probabilities. {A_FUNCTION}'),
    "quantile": (None, [UNIT, "array-like", None],
        'The quantile of the loss "quantile", or several that ascend: each has trees of its own, '
        'and predictions are sorted. For "huber", the quantile of the absolute residuals beyond '
        "which a row is an outlier (None: 0.9).", "float, array-like of float or None"),
    "link": ("identity", [StrOptions(set(LINKS))],
        "How raw predictions become predictions, where `loss` is a function: as they are, by the "
        "exponential, or by the logistic function."),
    "power": (1.5, [Interval(Real, 1, 2, closed="neither")],
        'For "tweedie": the variance of y is proportional to its mean to this power.'),
}  # fmt: skip
OF_RANKING: Table = NO_CLASSES | {
    "multi_strategy": None,
    "loss": ("lambdarank", [StrOptions(set(RANKING_LOSSES))],
        '"lambdarank": pairs of rows of a query, weighed by the change of NDCG if they changed '
        'places. "rank_xendcg": a cross entropy of the shares of a query\'s rows, which takes less '
        "time."),
    "scoring": ("loss", [StrOptions({"loss"})], "Early stopping judges by 1 - NDCG@10."),
    "validation_fraction": (0.1, [INSIDE, at_least(1), None],
        "Queries set aside for early stopping, as a share or a number; None: training rows judge."),
    "categorical_split": ("subset", [StrOptions({"subset"})], f"{SUBSETS}."),
    "subsample": (1.0, [SHARE],
        "Share of the queries that a round grows from, drawn without replacement."),
}  # fmt: skip
BOOSTING_OF_SURVIVAL: Table = NO_CLASSES | {
    "loss": ("coxph", [StrOptions({"coxph", "aft_logistic", "aft_extreme"})],
        '"coxph": Cox\'s partial likelihood. "aft_logistic" and "aft_extreme": accelerated failure '
        "times, whose logarithms have logistic noise, or noise of the distribution of least "
        "extreme values, as Weibull's."),
    "scale": (1.0, [Interval(Real, 0, None, closed="neither")],
        "For accelerated failure times: what the noise of ln T is multiplied by."),
    "multi_strategy": None,
    "categorical_split": ("subset", [StrOptions({"subset"})],
        "A split divides the categories, of which there are at most `max_bins`, into two sets."),
    "event_times_": ("float64 ndarray of shape (n_times,)",
        "The times of events in the training rows, or the upper ends of their intervals."),
    "unique_times_": ("float64 ndarray of shape (n_times,)", "The same times."),
    "baseline_hazard_": ("float64 ndarray of shape (n_times,)",
        "Of \"coxph\", Breslow's hazard at each of these times, of a raw prediction of 0."),
    "example": None,
}  # fmt: skip
OF_BORUTA = {
    "estimator": (REQUIRED, [HasMethods(["fit", "predict"])],
        "The forest that each round grows, with all its parameters except `random_state`: a "
        "classifier or a regressor. Its `categorical_features` and `max_bins` say how X is read.",
        "RandomForest*, ExtraTrees* or Bagging* of gpuforest"),
    "importance": ("oob_impurity", [StrOptions({"oob_impurity", "impurity", "oob_permutation"})],
        '"oob_impurity": the means of `oob_impurity_importance`. "impurity": '
        "`feature_importances_`, which need no bootstrap but favour features of many values. "
        '"oob_permutation": the means of `oob_permutation_importance`, which take longer.'),
    "alpha": (0.05, [Interval(Real, 0, 1, closed="neither")],
        "Level of the tests. Benjamini and Hochberg's procedure keeps the share of wrong features "
        "among the confirmed (and among the rejected) below it. A feature must also pass at "
        "alpha / rounds, because it is tested after each round."),
    "max_iter": (100, [at_least(1)], "The most rounds; fewer if all features are decided."),
    "random_state": (*TABLE["random_state"][:2],
        "The seed of shadows and forests; it gives the same selection on every backend."),
    "support_": ("bool ndarray of shape (n_features,)", "The confirmed features."),
    "support_weak_": ("bool ndarray of shape (n_features,)",
        "The tentative features: after `max_iter` rounds neither confirmed nor rejected."),
    "ranking_": ("int64 ndarray of shape (n_features,)",
        "1: confirmed, 2: tentative, from 3 on: rejected, by their mean importance."),
    "n_features_": ("int", "Number of confirmed features."),
    "n_iter_": ("int", "Number of rounds."),
    "importance_history_": ("float64 ndarray of shape (n_iter_, n_features)",
        "Importances in each round; NaN for features that had left."),
    "shadow_max_": ("float64 ndarray of shape (n_iter_,)", "The largest importance of a shadow."),
}  # fmt: skip

# the parameters in the order of constructors, and the attributes, whose names end with _
GROWTH = "max_depth min_samples_split min_samples_leaf min_weight_fraction_leaf"
CATEGORIES = "categorical_features min_category_frequency categorical_split"
COMBINATIONS = "feature_combinations combination_weights"
MACHINE = "max_bins backend memory_limit"
RUN = f"random_state warm_start n_jobs verbose {MACHINE}"
TREE = f"{GROWTH} max_features max_leaf_nodes min_impurity_decrease ccp_alpha"
SPLITS = f"monotonic_cst interaction_cst {CATEGORIES} {COMBINATIONS}"
BAGS = "bootstrap max_samples oob_score unbiased_importances oob_tol max_estimators"
OF_DATA = "n_features_in_ feature_names_in_"
OF_FIT = f"""classes_ n_classes_ n_outputs_ {OF_DATA} is_categorical_ seed_ criterion_ backend_
forest_"""
OF_TREES = f"{OF_FIT} estimators_ estimator_ estimators_samples_ n_estimators_"
EXPLAINED = "feature_importances_ expected_value_"
SHRUNK = " oob_shrinkage_ shrinkage_"
OUT_OF_BAG = "oob_score_ oob_decision_function_ oob_prediction_ oob_curve_"
SINGLE_TREE = f"""* criterion splitter {TREE} ccp_cv ccp_rule shrinkage {SPLITS} class_weight
random_state {MACHINE} {OF_FIT} {EXPLAINED} max_features_ tree_ ccp_alpha_ pruning_curve_"""
FOREST = f"""n_estimators * criterion {TREE} shrinkage {SPLITS} {BAGS} class_weight priors
voting {RUN}
{OF_TREES} {EXPLAINED} unbiased_feature_importances_ {OUT_OF_BAG} oob_max_features_ oob_parameters_
max_features_ min_samples_leaf_"""
QUANTILE_FOREST = (
    FOREST.replace("criterion", "default_quantiles criterion", 1)
    .replace("min_samples_leaf", "min_samples_leaf max_samples_leaf", 1)
    .replace(" shrinkage", "", 1)
)
FOREST += f"{SHRUNK} row_ids_"
# no shares of the total weight, and no gains by weight: the weight of a row is its hazard
SURVIVAL = f"""n_estimators * criterion max_depth min_samples_split min_samples_leaf max_features
max_leaf_nodes shrinkage {CATEGORIES} {COMBINATIONS} bootstrap max_samples oob_score oob_tol
max_estimators n_times low_memory {RUN} unique_times_ event_times_ {OUT_OF_BAG} {OF_TREES}
{EXPLAINED} max_features_ min_samples_leaf_{SHRUNK}"""
EMBEDDING = f"""n_estimators * {GROWTH} max_leaf_nodes min_impurity_decrease {CATEGORIES}
{COMBINATIONS} sparse_output {RUN} {OF_TREES}"""
ISOLATION = f"""* n_estimators max_samples contamination max_features bootstrap n_jobs random_state
verbose warm_start {CATEGORIES} {MACHINE} offset_ max_samples_ estimators_features_ {OF_TREES}
expected_value_"""
ADABOOST = f"""estimator * n_estimators learning_rate loss random_state n_jobs verbose {MACHINE}
estimators_ estimator_weights_ estimator_errors_ estimator_ {EXPLAINED} n_estimators_ max_features_
{OF_FIT}"""
BAGGING = f"""estimator n_estimators * max_samples max_features bootstrap bootstrap_features voting
oob_score oob_tol max_estimators warm_start n_jobs random_state verbose
estimators_features_ {OF_TREES} {EXPLAINED} {OUT_OF_BAG} max_features_"""
BOOSTING = f"""loss * quantile link power learning_rate max_iter max_leaf_nodes max_depth
min_samples_leaf l2_regularization max_features max_bins categorical_features monotonic_cst
interaction_cst warm_start early_stopping scoring validation_fraction n_iter_no_change tol
verbose random_state class_weight subsample min_hessian refit multi_strategy categorical_split
backend n_jobs memory_limit classes_ do_early_stopping_ n_iter_ n_trees_per_iteration_
train_score_ validation_score_ is_categorical_ {EXPLAINED} {OF_DATA} seed_ backend_"""
RANKING = BOOSTING.replace(" classes_", "")
BOOSTING_SURVIVAL = (
    BOOSTING.replace("quantile link power", "scale")
    + " event_times_ unique_times_ baseline_hazard_"
)
BORUTA = f"""estimator * importance alpha max_iter random_state support_ support_weak_ ranking_
n_features_ n_iter_ importance_history_ shadow_max_ {OF_DATA}"""


def parameters(names: str, *tables: Table, **defaults: Any) -> Callable[[T], T]:
    """A decorator that gives a class its constructor, constraints and documentation. `names` are
    in the order of the constructor, after "*" by keyword alone; those of attributes end with _.
    Rows of `tables` replace those of `TABLE` (None: the class has no such name), and `defaults`
    replace the table's."""
    table = ChainMap(*tables, TABLE, documentation.ATTRIBUTES)
    known = [name for name in names.split() if name == "*" or table[name] is not None]
    order = [name for name in known if name[-1] != "_"]
    rows = {name: table[name] for name in order if name != "*"}
    rows |= {name: (value, *rows[name][1:]) for name, value in defaults.items()}

    def decorate(cls: Any) -> Any:
        cls.__init__ = _constructor(cls, order, rows)
        cls._parameter_constraints = {name: row[1] for name, row in rows.items()}
        cls._parameter_texts = {name: row[2] for name, row in rows.items()}
        documented = [(name, _type(*row), row[2]) for name, row in rows.items()]
        attributes = [(name, *table[name]) for name in known if name[-1] == "_"]
        documentation.describe(cls, documented, attributes, table["example"])
        return cls

    return decorate


def _constructor(cls: type, names: list[str], rows: Table) -> Any:
    """A function that sets the parameters as attributes, with a signature as if it was written."""
    known = {name for name, row in rows.items() if row[0] is not REQUIRED}
    given = [f"{name}=rows[{name!r}][0]" if name in known else name for name in names]
    lines = [f"def __init__(self, {', '.join(given)}):"]
    for name, row in rows.items():
        renamed = row[1] is OF_NUMBERS["criterion"][1]  # an older name is known
        lines.append(f"    self.{name} = {f'current_criterion({name})' if renamed else name}")
    namespace: dict[str, Any] = {"current_criterion": current_criterion, "rows": rows}
    exec("\n".join(lines), namespace)
    function, kinds = namespace["__init__"], {n: _annotation(row[1]) for n, row in rows.items()}
    function.__annotations__ = kinds | {"return": "None"}
    function.__module__ = cls.__module__
    function.__qualname__ = f"{cls.__qualname__}.__init__"
    return function


# the annotation and the word in docstrings of each constraint
TYPES: dict[Any, tuple[str, str]] = {
    Integral: ("int", "int"), Real: ("float", "float"), RealNotInt: ("float", "float"),
    str: ("str", "str"), dict: ("dict[Any, Any]", "dict"), list: ("list[Any]", "list"),
    tuple: ("tuple[Any, ...]", "tuple"), RandomState: ("np.random.RandomState", "RandomState"),
    callable: ("Callable[..., float]", "callable"), "boolean": ("bool", "bool"),
    "random_state": ("int | np.random.RandomState | None", "int, RandomState or None"),
    "verbose": ("int", "int"), BYTES: ("str", "str"), "array-like": ("Any", "array-like"),
    None: ("None", "None"),
}  # fmt: skip


@cache
def _types(constraint: Any) -> tuple[str, str]:
    """The annotation and the words in docstrings of a constraint."""
    if isinstance(constraint, StrOptions):
        words = ", ".join(f'"{word}"' for word in sorted(constraint.options))
        return "str", f"{{{words}}}" if len(constraint.options) > 1 else words
    kind = constraint.type if isinstance(constraint, Interval) else constraint
    return TYPES.get(kind, ("Any", "estimator"))


def _annotation(allowed: list[Any]) -> str:
    kinds = dict.fromkeys(_types(constraint)[0] for constraint in allowed)
    return "Any" if "Any" in kinds else " | ".join(sorted(kinds, key="None".__eq__))


def _type(default: Any, allowed: list[Any], _: str, types: str | None = None) -> str:
    """The type of a parameter in a docstring, and its default."""
    if types is None:
        kinds = dict.fromkeys(_types(constraint)[1] for constraint in allowed)
        *others, last = sorted(kinds, key="None".__eq__)
        types = f"{', '.join(others)} or {last}" if others else last
    shown = "1/3" if default == 1 / 3 else repr(default).replace("'", '"')
    return types if default is REQUIRED else f"{types}, default={shown}"
