"""An estimator's parameters become what the engine takes: numbers, rules, bags and weights."""

import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from sklearn.utils.class_weight import compute_class_weight

from gpuforest.common.dtypes import MAX_TOTAL_WEIGHT, ROW, WEIGHT
from gpuforest.common.sums import near_one
from gpuforest.core import criteria, nodes, rules
from gpuforest.core.target import CheckedTarget, TargetCoding
from gpuforest.data.arrays import to_host
from gpuforest.growing import bags, targets
from gpuforest.splits.base import Kind
from gpuforest.splits.kinds import kind_for

RowWeights = tuple[np.ndarray, np.ndarray] | None  # weights as they are, and as integers
Weights = np.ndarray | None  # f64[N]; None: all are equal
UNLIMITED = 10**9  # levels; a packed tree has fewer nodes
AUTO_SAMPLES = 256  # rows of a tree, of the isolation paper: more make inliers hide anomalies
BALANCED = "balanced_bootstrap"
PAIR = ("max_features", "min_samples_leaf")  # of trees, which out-of-bag errors may choose
# scikit-learn's allowance for rounding, so that a decrease of just the limit passes
EPSILON = np.finfo(np.float64).eps


@dataclass(frozen=True)
class Settings:
    """An estimator's parameters as the engine takes them, under scikit-learn's names.

    A parameter that an estimator does not have keeps its default here. These are not
    scikit-learn's:

    features_drawn : features drawn for each tree, as a number or a share; None: all features
    without_replacement : the rows of a bag are drawn without replacement
    balanced_by_weight : class weights "balanced" add up sample weights instead of counting rows
    is_single : a tree by itself, not one of many
    even_bins : max_bins of isolation forests, whose bins are equally wide; None: of other trees
    by_error : the parameters of trees that out-of-bag errors choose
    reweighted : trees grow one after another, each from other weights of the rows
    trial_trees : trees of a forest that is grown to choose parameters by its error
    least_share : of effects, the part of a node's rows on each side of a split, at least
    honest : of effects, whether rows that chose no split fill the leaves of a tree; None: of others
    """

    criterion: str
    max_bins: int | str
    memory_limit: int | str | None
    categorical_split: str
    max_features: int | float | str | None = 1
    max_depth: int | None = None
    min_samples_split: int | float = 2
    min_samples_leaf: int | float = 1
    min_weight_fraction_leaf: float = 0.0
    max_leaf_nodes: int | None = None
    min_impurity_decrease: float = 0.0
    ccp_alpha: float = 0.0
    feature_combinations: float | None = None
    combination_weights: str = "binary"
    monotonic_cst: Any = None
    interaction_cst: Any = None
    splitter: str = "best"
    class_weight: Any = None
    n_estimators: int | str = 1
    max_estimators: int = 1
    oob_tol: float = 0.005
    voting: str = "soft"
    shrinkage: float | str = 0.0
    bootstrap: bool | str = False
    max_samples: Any = None
    oob_score: Any = False
    unbiased_importances: bool = False
    bootstrap_features: bool = False
    features_drawn: int | float | None = None
    without_replacement: bool = False
    balanced_by_weight: bool = False
    is_single: bool = True
    even_bins: int | str | None = None
    by_error: tuple[str, ...] = ()
    reweighted: bool = False
    trial_trees: int = 0
    honest: bool | None = None
    least_share: float = 0.0
    priors: Any = None

    @classmethod
    def of(cls, params: Mapping[str, Any]) -> Self:
        """The parameters that the engine knows, with Python's numbers instead of
        NumPy's: kernels are compiled anew for another type, and np.uint8(255) + 1 is 0."""
        known = {name: params[name] for name in cls.__dataclass_fields__ if name in params}
        values = {n: v.item() if isinstance(v, np.generic) else v for n, v in known.items()}
        values |= {n: float(v) for n, v in values.items() if isinstance(v, np.longdouble)}
        if values.get("ccp_alpha") == "cv":
            values["ccp_alpha"] = 0.0  # the whole tree is pruned by its folds
        return cls(**values)

    @property
    def n_trees(self) -> int:
        """The most trees that may grow."""
        return int(self.max_estimators if self.n_estimators == "auto" else self.n_estimators)

    @property
    def combine(self) -> str:
        """How the trees' predictions combine, see `Forest`."""
        return "votes" if self.voting == "hard" else "mean"

    @property
    def by_class(self) -> bool:
        """Whether trees draw a number of rows of each class."""
        return self.class_weight == BALANCED or isinstance(self.max_samples, Mapping)

    @property
    def weighs_classes(self) -> bool:
        """Whether classes have weights."""
        return self.class_weight is not None and self.class_weight != BALANCED

    def for_rows(self, n_rows: int) -> Self:
        """The settings of trees that draw from n_rows rows: an isolation forest gets the number of
        rows of a tree, which is as deep as a balanced one."""
        if self.even_bins is None:
            return self
        drawn: Any = AUTO_SAMPLES if self.max_samples == "auto" else self.max_samples
        if not isinstance(drawn, Integral):
            drawn = max(1, int(float(drawn) * n_rows))
        elif self.max_samples != "auto" and int(drawn) > n_rows:
            warnings.warn(
                f"max_samples ({drawn}) is greater than the total number of samples ({n_rows}). "
                "max_samples will be set to n_samples for estimation.",
                stacklevel=2,
            )
        drawn = min(int(drawn), n_rows)
        return replace(self, max_samples=drawn, max_depth=depth_of(drawn))

    @property
    def kind(self) -> Kind:
        """The kind of split, as far as parameters tell."""
        multiway = self.categorical_split == "multiway"
        criterion, interacts = criteria.CRITERIA[self.criterion], self.interaction_cst is not None
        combined = self.feature_combinations or 0
        return kind_for(criterion, multiway, combined, interacts=interacts)

    @property
    def values_from_rows(self) -> bool:
        """Whether leaves predict medians, which are looked for in the rows after growth."""
        return criteria.CRITERIA[self.criterion].medians

    @property
    def judges(self) -> bool:
        """Whether grown trees judge the rows out of their bags."""
        return bool(self.oob_score or self.unbiased_importances) or self.n_estimators == "auto"

    @property
    def prunes(self) -> bool:
        """Whether trees are cut back after growing."""
        return self.max_leaf_nodes is not None or self.ccp_alpha > 0


def depth_of(n_drawn: int) -> int:
    """The levels of a balanced tree of n_drawn rows; no tree is deeper."""
    return math.ceil(math.log2(max(n_drawn, 2)))


# the words by which out-of-bag errors choose a parameter
BY_ERROR = {"n_estimators": "auto", **dict.fromkeys((*PAIR, "shrinkage"), "oob")}


def check_out_of_bag(params: Mapping[str, Any]) -> None:
    """Raise a ValueError if a fit lacks the out-of-bag errors that its parameters need."""
    for name, value in BY_ERROR.items():
        if params.get(name) == value and not params.get("bootstrap", False):
            raise ValueError(f"{name}={value!r} needs bootstrap=True: no row is out of bag without")


def check_by_class(params: Mapping[str, Any]) -> None:
    """Raise a ValueError if parameters by which rows of each class are drawn do not fit others."""
    drawn, is_balanced = params.get("max_samples"), params.get("class_weight") == BALANCED
    if (is_balanced or isinstance(drawn, Mapping)) and not params.get("bootstrap", False):
        name = f"class_weight={BALANCED!r}" if is_balanced else "max_samples={class: rows}"
        raise ValueError(f"{name} draws rows of each class with replacement: set bootstrap=True")
    if is_balanced and drawn is not None:
        raise ValueError(
            f"class_weight={BALANCED!r} draws as many rows of each class as the smallest one has: "
            "leave max_samples out, or pass max_samples={class: rows} without class_weight"
        )


def check_bags(settings: Settings) -> None:
    """Raise a ValueError if rows are to be judged that all trees have."""
    has_bags = settings.bootstrap or settings.honest is not None
    if not has_bags and (settings.oob_score or settings.unbiased_importances):
        name = "oob_score" if settings.oob_score else "unbiased_importances"
        why = "Out of bag estimation only available if bootstrap=True; set that"
        raise ValueError(f"{why}, or {name}=False")


def features_tried(max_features: Any, n_features: int, drawn: int = 0, combined: Any = None) -> int:
    """k: features tried at a split, as in scikit-learn. `drawn`: features drawn for a tree; 0: all.
    `combined`: mean number of features in a combination, a float; None: one."""
    if max_features is None:
        return n_features
    n_features = drawn or n_features
    if max_features == "auto":  # of effects, as in R's grf
        return min(math.ceil(math.sqrt(n_features)) + 20, n_features)
    if max_features == "sqrt":
        return max(1, math.isqrt(n_features))
    if max_features == "log2":
        return max(1, n_features.bit_length() - 1)
    if isinstance(max_features, Integral):
        return int(max_features) if (combined or 1) > 1 else min(int(max_features), n_features)
    return max(1, int(max_features * n_features))


def features_of_tree(settings: Settings, n_features: int) -> int:
    """Features drawn for each tree; 0: it has all."""
    share = settings.features_drawn
    if share is None:
        return 0
    drawn = int(share) if isinstance(share, Integral) else max(1, int(share * n_features))
    if drawn > n_features:
        raise ValueError(f"max_features={share} must be <= n_features={n_features}")
    return 0 if drawn == n_features and not settings.bootstrap_features else drawn


def rows_drawn(max_samples: Any, n_rows: int, weights: Weights, units: str = "rows") -> int:
    """The number of rows, or groups, drawn for a bag from `n_rows` of some weight; a fraction is a
    part of the total weight, as in scikit-learn 1.9."""
    drawn = n_rows if max_samples is None else int(max_samples)
    if max_samples is not None and not isinstance(max_samples, Integral):
        total = n_rows if weights is None else math.fsum(weights)
        drawn = max(1, int(max_samples * total))
        if drawn < max(10, n_rows ** (1 / 3)):
            warnings.warn(
                f"max_samples={max_samples} of a total weight of {total} draws only "
                f"{drawn} {units} a tree; pass max_samples as an integer if that is meant",
                stacklevel=2,
            )
    if drawn > MAX_TOTAL_WEIGHT:
        raise ValueError(
            f"max_samples={max_samples} draws {drawn} {units} a tree; at most "
            f"{MAX_TOTAL_WEIGHT} are supported"
        )
    return drawn


def bin_weights(sampling: rules.Sampling, weights: RowWeights) -> np.ndarray | None:
    """The rows' weights i32[N] where bins are chosen: not those of classes, because bins describe
    X, and may be chosen before y is known; but rows of no weight are not there."""
    integers = None if weights is None else weights[1]
    if sampling.weights is None or sampling.weights.all():
        return integers
    return np.where(sampling.weights > 0, 1 if integers is None else integers, 0).astype(WEIGHT)


def sampling_of(
    settings: Settings, n_rows: int, weights: RowWeights, labels: CheckedTarget | None = None,
    groups: np.ndarray | None = None,
) -> rules.Sampling:  # fmt: skip
    """How bags are drawn, and which weights are added up. `labels`: the classes of the rows, None
    if they are not known or not needed; `groups`: i32[N], the numbers of the rows' groups."""
    user, integers = (None, None) if weights is None else weights
    once, max_samples = settings.without_replacement, settings.max_samples
    if settings.honest is not None:
        return bags.pairs_of_trees(max_samples, settings.honest, n_rows, integers, groups)
    known, labels = labels, labels if settings.weighs_classes else None
    if groups is not None and (settings.bootstrap or once):
        return groups_of_bags(settings, groups, user, labels)
    by_bag = settings.class_weight == "balanced_subsample" and settings.bootstrap
    factors = None if labels is None or by_bag else class_factors(settings, labels, user)
    if settings.bootstrap:
        if factors is not None and not factors.all():  # these rows are not drawn
            user = (factors > 0) * (1.0 if user is None else user)
            integers = targets.integer_weights(check_some_weight(user))
        n_counted = rules.Sampling(n_rows, 0, integers).n_counted
        n_draws = rows_drawn(None if settings.by_class else max_samples, n_counted, user)
        sampling = rules.Sampling(n_rows, n_draws, integers)
        if settings.by_class and known is not None:
            sampling = classes_of_bags(settings, sampling, known)
            user = sampling.chances
        return sampling if labels is None else weigh_draws(sampling, labels, factors, user)
    if max_samples is not None and not once:
        raise ValueError(
            "`max_sample` cannot be set if `bootstrap=False`. Either switch to "
            "`bootstrap=True` or set `max_sample=None`. (The parameter is max_samples.)"
        )
    if factors is not None:
        integers = targets.integer_weights(check_some_weight(factors, user))
    sampling = rules.Sampling(n_rows, 0, integers)
    if not once:
        return sampling
    n_draws = rows_drawn(max_samples, sampling.n_counted, None)
    refuse_draws(max_samples, n_draws, n_rows, "rows")
    return rules.Sampling(n_rows, n_draws % n_rows, integers, distinct=n_draws < n_rows)


def classes_of_bags(
    settings: Settings, sampling: rules.Sampling, labels: CheckedTarget
) -> rules.Sampling:
    """How bags of a number of rows of each class are drawn (Chen, Liaw and Breiman 2004). Classes
    without a row of some weight are not drawn."""
    codes, classes = known_classes(labels)
    counted = np.ones(len(codes)) if sampling.weights is None else sampling.weights > 0
    counts = np.bincount(codes, counted, len(classes)).astype(np.int64).tolist()
    if settings.class_weight == BALANCED:
        draws = [min(n for n in counts if n) if n else 0 for n in counts]
    else:
        numbers = of_classes("max_samples", settings.max_samples, classes)
        if not all(isinstance(n, Real) and 0 < float(n) < math.inf for n in numbers):
            raise ValueError(
                "max_samples of a class must be an int above 0, or a float above 0, the share of "
                f"its rows: {settings.max_samples}"
            )
        draws = [
            rows_drawn(drawn, n, None) if n else 0 for drawn, n in zip(numbers, counts, strict=True)
        ]
    n_draws = rows_drawn(sum(draws), 0, None)
    return replace(sampling, n_draws=n_draws, classes=codes.astype(ROW), draws=tuple(draws))


def known_classes(labels: CheckedTarget) -> tuple[np.ndarray, np.ndarray]:
    """The codes of the rows of one output, on the host, and the labels of the classes."""
    assert labels.classes is not None
    return to_host(labels.values[0]), labels.classes[0]


def of_classes(name: str, given: Mapping[Any, Any], classes: np.ndarray) -> list[Any]:
    """The values of a parameter in the order of the classes; a ValueError for other labels."""
    if {*given} != {*classes.tolist()}:
        raise ValueError(
            f"{name} names the classes {[*given]}, and y has {classes.tolist()}: name each of these"
        )
    return [given[label] for label in classes.tolist()]


def prior_factors(
    settings: Settings, labels: CheckedTarget, sampling: rules.Sampling, user: Weights
) -> np.ndarray | None:
    """What the mean shares of classes are multiplied by, f64[C], for the parameter `priors`:
    a class's prior over its share of the bags. None: nothing."""
    if settings.priors is None:
        return None
    codes, classes = known_classes(labels)
    counts = np.bincount(codes, user, len(classes))
    priors = np.asarray(counts / counts.sum(), np.float64)
    if settings.priors != "training":
        priors = np.asarray(of_classes("priors", settings.priors, classes), np.float64)
        if not ((priors > 0).all() and abs(priors.sum() - 1) < 1e-6):
            raise ValueError(f"priors must be above 0 and add up to 1: {settings.priors}")
    shares = bag_shares(sampling, codes, len(classes))
    return np.where(shares > 0, priors / np.where(shares > 0, shares, 1), 0)


def bag_shares(sampling: rules.Sampling, codes: np.ndarray, n_classes: int) -> np.ndarray:
    """The share f64[C] of each class of the expected weight of a bag."""
    weights = sampling.chances
    if sampling.factors is not None:
        weights = weights * sampling.factors
    held = np.bincount(codes, weights, n_classes)
    if sampling.balance:
        held = np.asarray(held > 0, held.dtype)
    return np.asarray(held / held.sum())


def groups_of_bags(
    settings: Settings, groups: np.ndarray, user: Weights, labels: CheckedTarget | None
) -> rules.Sampling:
    """How bags of whole groups i32[N] are drawn. The rows' weights f64[N] `user` and class weights
    of all rows multiply the statistics; class weights of each bag do not."""
    by_bag = settings.class_weight == "balanced_subsample" and bool(settings.bootstrap)
    if labels is not None and not by_bag:
        user = check_some_weight(class_factors(settings, labels, user), user)
    n_rows, integers = len(groups), None if user is None else (user > 0).astype(WEIGHT)
    n_groups = rules.Sampling(n_rows, 1, integers, groups=groups).units.n_counted
    if n_groups < 2:
        raise ValueError(
            "all rows of some weight are of one group, which every bag would hold: bags need two "
            "groups, or none"
        )
    max_samples, once = settings.max_samples, settings.without_replacement
    n_draws = rows_drawn(max_samples, n_groups, None, "groups")
    if once and n_draws >= n_groups:
        refuse_draws(max_samples, n_draws, n_groups, "groups")
        return rules.Sampling(n_rows, 0, None if user is None else targets.integer_weights(user))
    sampling = rules.Sampling(n_rows, n_draws, integers, distinct=once, groups=groups)
    if user is not None:  # class weights of each bag need room
        most = (MAX_TOTAL_WEIGHT >> (6 * by_bag)) // sampling.most_drawn
        sampling = replace(sampling, weights=targets.integer_weights(user, most))
    if sampling.most_weight > MAX_TOTAL_WEIGHT:
        raise ValueError(
            f"bags of {n_draws} groups may weigh up to {sampling.most_weight}; at most "
            f"{MAX_TOTAL_WEIGHT} are supported: lower max_samples, or pass fewer rows"
        )
    return weigh_draws(sampling, labels, None, user) if labels is not None and by_bag else sampling


def refuse_draws(max_samples: Any, n_draws: int, n: int, units: str) -> None:
    """Raise a ValueError if more of n units are drawn without replacement than there are."""
    if n_draws > n:
        raise ValueError(
            f"max_samples={max_samples} draws {n_draws} of {n} {units} without replacement"
        )


def numbered(blocks: np.ndarray, sampling: rules.Sampling) -> np.ndarray:
    """How many blocks of time that have a row of some weight lie before each row's, i32[N]."""
    present = np.unique(blocks if sampling.weights is None else blocks[sampling.weights > 0])
    if len(present) < 2:
        raise ValueError(
            "all rows of some weight are of one block, which no earlier one can judge: pass labels "
            "of two blocks or more, or none"
        )
    return np.minimum(np.searchsorted(present, blocks), len(present) - 1).astype(ROW)


def signs_of(monotonic_cst: Any, n_features: int, coding: TargetCoding) -> np.ndarray:
    """Signs i8[F] of monotonic constraints; i8[0]: there are none."""
    none = np.zeros(0, np.int8)
    if monotonic_cst is None:
        return none
    signs = np.asarray(monotonic_cst)
    if signs.shape != (n_features,):
        shape = signs.shape[0] if signs.ndim == 1 else signs.shape
        raise ValueError(
            f"monotonic_cst has shape {shape} but the input data X has {n_features} features."
        )
    if not np.isin(signs, [-1, 0, 1]).all():
        values = np.unique(signs) if signs.dtype.kind in "biuf" else signs
        raise ValueError(
            f"monotonic_cst must be None or an array-like of -1, 0 or 1, but got {values}"
        )
    if coding.n_channels > 2:
        raise ValueError(
            "Monotonicity constraints are not supported with multiclass classification"
        )
    rises = signs.any() and coding.n_channels > 1  # of one class alone nothing rises
    return signs.astype(np.int8) if rises else none


def interacting_sets(params: Any, n_features: int) -> tuple[tuple[int, ...], ...]:
    """The sets of features that may meet on a path, by the parameter `interaction_cst`, which is
    not None, as scikit-learn reads it."""
    from sklearn.ensemble._hist_gradient_boosting import gradient_boosting  # slow to import

    kind = gradient_boosting.BaseHistGradientBoosting
    sets = kind._check_interaction_cst(params, n_features)
    return tuple(tuple(sorted(int(x) for x in members)) for members in sets)


def rules_of(
    settings: Settings, n_features: int, sampling: rules.Sampling, coding: TargetCoding,
    has_categories: bool = False,
) -> rules.Rules:  # fmt: skip
    """The rules for growing trees; `has_categories`: some features are categorical."""
    criterion = criteria.CRITERIA[settings.criterion].of_outputs(coding.n_outputs)
    split, leaf = settings.min_samples_split, settings.min_samples_leaf
    if not isinstance(split, Integral):
        split = max(2, math.ceil(split * sampling.n_counted))
    if not isinstance(leaf, Integral):
        leaf = math.ceil(leaf * sampling.n_counted)
    min_gain = -math.inf
    if settings.min_impurity_decrease > 0:
        decrease = float(settings.min_impurity_decrease - EPSILON) * sampling.bag_weight
        min_gain = coding.score_gain(decrease, criterion)
    drawn, depth = features_of_tree(settings, n_features), settings.max_depth
    multiway, ratio = settings.categorical_split == "multiway", criterion.by_ratio
    if ratio and not multiway:
        raise ValueError(
            f"criterion={criterion.name!r} is for categorical_split='multiway': pass both"
        )
    combined = float(settings.feature_combinations or 0)
    interactions: tuple[tuple[int, ...], ...] = ()
    if settings.interaction_cst is not None:
        if settings.min_weight_fraction_leaf > 0:
            raise ValueError(
                "interaction_cst takes no min_weight_fraction_leaf: pass min_samples_leaf instead"
            )
        interactions = interacting_sets(settings, n_features)
    n_tried = features_tried(settings.max_features, n_features, drawn, combined)
    return rules.Rules(
        criterion=criterion,
        n_tried=n_tried,
        max_depth=UNLIMITED if depth is None else min(depth, UNLIMITED),
        min_rows_split=min(int(split), MAX_TOTAL_WEIGHT),
        min_rows_leaf=min(int(leaf), MAX_TOTAL_WEIGHT // 2),
        min_gain=float(min_gain),
        min_weight_leaf=max(1, math.ceil(settings.min_weight_fraction_leaf * sampling.bag_weight)),
        random=settings.splitter == "random",
        signs=signs_of(settings.monotonic_cst, n_features, coding),
        interactions=interactions,
        n_features_tree=drawn,
        features_again=settings.bootstrap_features,
        multiway=ratio or (multiway and has_categories),
        combined=combined if combined > 1 else 0.0,
        least_share=settings.least_share,
        heaviest=nodes.MOST_WEIGHT if settings.combination_weights == "integer" else 1,
    )


# "balanced_subsample" of several outputs multiplies weights; in a bag they may be this many times
# larger than among all rows before they are cut off
HEADROOM = 8


def class_factors(settings: Settings, labels: CheckedTarget, user: Weights) -> np.ndarray:
    """The weight f64[N] that the parameter class_weight gives each row, in all bags."""
    summed = user if settings.balanced_by_weight else None
    return row_weights_of(settings.class_weight, labels, summed)


def class_weights_of(
    class_weight: Any, codes: np.ndarray, classes: np.ndarray, summed: Weights = None
) -> np.ndarray:
    """Weights f64[C] of the classes, as scikit-learn gives them. "balanced" adds up `summed`
    f64[N], or counts rows; a class without any weight weighs zero."""
    if isinstance(class_weight, list | tuple):
        raise ValueError("a list as class_weight is for several outputs: pass a dict")
    if summed is not None and class_weight == "balanced":
        totals = np.bincount(codes, summed, len(classes))
        near = near_one(totals)
        with np.errstate(divide="ignore", over="ignore"):  # infinite weights are refused later
            share = near.sum() / (len(classes) * np.where(totals > 0, near, 1))
        return np.where(totals > 0, share, 0)
    plain = compute_class_weight(class_weight, classes=classes, y=classes[codes])
    weights = np.asarray(plain, np.float64)
    if not np.isfinite(weights).all() or (weights < 0).any() or not weights.any():
        raise ValueError(f"class_weight must be numbers >= 0, and one above 0: {class_weight}")
    return weights


def row_weights_of(class_weight: Any, labels: CheckedTarget, summed: Weights = None) -> np.ndarray:
    """The weight f64[N] that class_weight gives each row: with several outputs, their product.
    "balanced_subsample" is as "balanced"; `summed`: see `class_weights_of`."""
    codes, classes = [to_host(column) for column in labels.values], labels.classes
    assert classes is not None
    class_weight = "balanced" if isinstance(class_weight, str) else class_weight
    if len(classes) == 1:
        return np.asarray(class_weights_of(class_weight, codes[0], classes[0], summed)[codes[0]])
    if class_weight == "balanced":
        class_weight = ["balanced"] * len(classes)
    else:
        summed = None  # "balanced" in a list counts rows, as in scikit-learn
    if not isinstance(class_weight, list | tuple):
        raise ValueError(
            "For multi-output, class_weight should be a list of dicts, or the string 'balanced'."
        )
    if len(class_weight) != len(classes):
        raise ValueError(
            "For multi-output, number of elements in class_weight should match number of "
            f"outputs. Got {len(class_weight)} element(s) while having {len(classes)} outputs."
        )
    factors = [
        class_weights_of(weight, of_output, kinds, summed)[of_output]
        for weight, of_output, kinds in zip(class_weight, codes, classes, strict=True)
    ]
    with np.errstate(over="ignore"):
        product = np.asarray(np.prod(factors, axis=0))
    if np.isinf(product).any() or ((product == 0) & np.all(factors, axis=0)).any():
        raise ValueError(
            "the class_weight of all outputs multiply to numbers beyond float64: divide those of "
            "each output by the largest"
        )
    return product


def check_some_weight(weights: np.ndarray, user: Weights = None) -> np.ndarray:
    """The weights of rows times the user's weights; a ValueError if no weight is above zero."""
    with np.errstate(over="ignore", invalid="ignore"):  # infinite ones are refused later
        weights = weights if user is None else weights * user
    if not weights.any():
        raise ValueError("class_weight and sample_weight leave no row any weight")
    return weights


def weigh_draws(
    sampling: rules.Sampling, labels: CheckedTarget, factors: Weights, user: Weights
) -> rules.Sampling:
    """The sampling with class weights: each draw weighs an integer, and no sum overflows. The class
    of each row multiplies `factors`; None: "balanced_subsample". `user`: chances to be drawn."""
    room = bags.most_draw_weight(sampling)
    if room == 0:
        raise ValueError(f"class_weight with {sampling.n_draws} draws a tree: lower max_samples")
    chances = None if user is None else near_one(user)
    if factors is not None:
        factors = np.where(factors > 0, factors, factors.max())  # rows of 0 are never drawn
        if not (np.array_equal(factors, np.round(factors)) and factors.max() <= room):
            shift = room.bit_length() - 1 - math.frexp(factors.max())[1]
            factors = np.maximum(np.round(np.ldexp(factors, shift)), 1)
        mean = np.average(factors, weights=chances)
        return replace(sampling, factors=factors.astype(WEIGHT), draw_weight=float(mean))
    balance = 2 ** (room.bit_length() - 1)
    if len(labels.values) == 1:
        return replace(sampling, balance=balance, draw_weight=balance)
    factors = row_weights_of("balanced", labels, user)
    balance = max(1, balance >> math.ceil(factors.max() * HEADROOM).bit_length())
    mean = np.average(factors, weights=chances)
    return replace(sampling, balance=balance, draw_weight=float(balance * mean))
