"""Fitted trees that take new rows, and forests that gain and lose trees."""

from dataclasses import replace
from functools import partial
from itertools import compress
from numbers import Real
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from gpuforest.backends import registry
from gpuforest.backends.base import Backend
from gpuforest.backends.numpy import HOST
from gpuforest.common.dtypes import MAX_TOTAL_WEIGHT
from gpuforest.core import criteria
from gpuforest.core.forest import Forest, joined
from gpuforest.core.nodes import leaf_rows
from gpuforest.core.target import CheckedTarget, TargetCoding
from gpuforest.core.training import Training
from gpuforest.data import arrays, validation
from gpuforest.data.binned import FitInput
from gpuforest.estimators import base, by_ids, capabilities, fit_scope, settings, task
from gpuforest.explain import joining, leaves, node_values, pruning
from gpuforest.growing import edges, targets

# what stays of a fit; the rest is about rows and trees that are others then
KEPT = (
    "n_features_in_", "feature_names_in_", "criterion_", "backend_", "ccp_alpha_",
    "pruning_curve_", "source_", "oob_parameters_", "oob_max_features_", "oob_shrinkage_",
)  # fmt: skip
RENUMBERED = ("+", "keep_trees", "prune_trees")  # trees are no longer numbered as they grew


def refit(
    self: Any, X: Any, y: Any, sample_weight: Any = None, decay_rate: float = 0.0,
    row_ids: Any = None,
) -> Any:  # fmt: skip
    """Fill the leaves anew, from these rows: the splits stay.

    Each tree draws its bag from these rows as a fit draws it from its own. On the rows of the
    fit this gives the same model, bit for bit. A leaf that no row reaches stays as it is. What
    was known of rows out of bag is removed. An error leaves the model as it was.
    """
    if not isinstance(decay_rate, Real) or not 0 <= float(decay_rate) <= 1:
        raise ValueError(f"decay_rate={decay_rate!r} must be a number from 0 to 1")
    return _learn(self, FitInput(X, y, sample_weight, row_ids=row_ids), float(decay_rate))


def add_rows(self: Any, X: Any, y: Any, sample_weight: Any = None, row_ids: Any = None) -> Any:
    """Add these rows to the sums of the leaves that they reach, without the earlier rows.

    With bootstrap each tree draws the rows that it adds. Without it this gives the same leaves
    as `refit` with the earlier rows and these. What was known of rows out of bag is removed. An
    error leaves the model as it was.
    """
    return _learn(self, FitInput(X, y, sample_weight, row_ids=row_ids), None)


def _learn(estimator: Any, given: FitInput, decay_rate: float | None) -> Any:
    """The estimator, whose leaves take new rows; decay_rate : None adds them, see `refilled`."""
    check_is_fitted(estimator)
    model = fit_scope.snapshot(estimator)
    work = partial(_with_rows, model, given, decay_rate)
    forest = registry.run_on_backend(work, **estimator._chosen(given.X))
    method = "add_rows" if decay_rate is None else "refit"
    if vars(model).get("_altered_") in RENUMBERED:
        method = model._altered_
    estimator.__dict__ = vars(_with_forest(model, forest, method))
    return estimator


def _with_forest(estimator: Any, forest: Forest, method: str) -> Any:
    """An estimator of the same parameters that holds another forest, which a method has made."""
    made, known = fit_scope.snapshot(estimator), vars(estimator)
    made.__dict__ = fit_scope.unfitted(estimator) | {n: known[n] for n in KEPT if n in known}
    made._keep(forest)
    made._altered_ = method
    if method in RENUMBERED:
        made.n_estimators = forest.n_trees
    return made


def _with_rows(model: Any, given: FitInput, decay_rate: float | None, backend: Backend) -> Forest:
    """The forest after it has taken new rows."""
    forest, asked, adds = model.forest_, base.grown_settings(model), decay_rate is None
    _refuse(model, asked, decay_rate, given.row_ids is not None)
    table = validation.check_table(model, given.X, backend)
    n_rows = int(table.shape[0])
    on = task.On(criteria.CRITERIA[model.criterion_], backend)
    found = model._task.check(given.y, n_rows, on)
    checked = _in_classes(found, forest.coding)
    n_classes: Any = [[*map(len, target.classes or ())] for target in (found, checked)]
    if asked.class_weight == "balanced" and n_classes[0] != n_classes[1]:
        raise ValueError(
            "class_weight='balanced' needs a row of each class: pass some, or fit anew"
        )
    weight = validation.check_weights(given.sample_weight, n_rows)
    weights = None if weight is None else (weight, targets.integer_weights(weight))
    held = leaves.most_held(forest) if adds else np.zeros(1)
    if adds and not asked.bootstrap:
        _refuse_fractions(held if forest.coding.is_classes else held[:1], weights)
    if asked.bootstrap == by_ids.BY_IDS:
        ids = validation.check_ids(given.row_ids, n_rows)
        drawn = by_ids.sampling_of(asked, n_rows, weights, checked, ids)
    else:
        drawn = settings.sampling_of(asked, n_rows, weights, checked)
    if forest.coding.labels:
        coding, moments = forest.coding, model._task.encode_target(checked, drawn, on).y
    else:
        y = task.host_target(checked)
        if drawn.weights is not None:  # rows of no weight may lie anywhere
            y = np.where(drawn.weights[:, None] > 0, y, forest.coding.centre)
        most = float(held[1:].max(initial=0))
        coding, moments = targets.on_grid(forest.coding, y, drawn.most_weight, most)
    if coding.priors is not None:
        coding = replace(coding, priors=settings.prior_factors(asked, checked, drawn, weight))
    rules = settings.rules_of(asked, table.shape[1], drawn, coding, bool(forest.edges.categories))
    matrix = edges.bin_matrix(table, forest.edges, backend)
    target = targets.placed(coding, moments, backend)
    training = Training(matrix, target, drawn, rules, forest.seed)
    new = leaves.refilled(forest, training, backend, checked.values, decay_rate)
    amount = float(asked.shrinkage) * drawn.mean_weight
    return node_values.shrink(new, forest.shrinkage if adds else amount)


def _refuse(
    model: Any, asked: settings.Settings, decay_rate: float | None, has_ids: bool
) -> None:  # fmt: skip
    """Raise a ValueError if the model takes no new rows."""
    forest, known = model.forest_, vars(model)
    drawn = known.get("_sampling_")
    uses = {
        "survival": criteria.CRITERIA[model.criterion_].task == "survival",
        "groups": drawn is not None and drawn.groups is not None,
        "ordered": forest.edges.statistics,
        "renumbered": asked.bootstrap and known.get("_altered_") in RENUMBERED,
        "class_weight": asked.class_weight is not None, "mixed": forest.leaf_values is not None,
        "add_rows": decay_rate is None, "decay_rate": decay_rate, "shrinkage": forest.shrinkage > 0,
        "row_ids": has_ids and asked.bootstrap != by_ids.BY_IDS,
    }  # fmt: skip
    asks = capabilities.of_params(known) - {"shrinkage"} | set(compress(uses, uses.values()))
    capabilities.refuse(model._family, asks, table=capabilities.NEW_ROWS)


def _refuse_fractions(held: np.ndarray, weights: settings.RowWeights) -> None:
    """Raise a ValueError if the weights of earlier or new rows are not in units of one row; held :
    f64[n], the weights of a tree's rows, by class"""
    # other weights than whole numbers are scaled to at least this total
    scaled = held.sum() >= 2 ** (MAX_TOTAL_WEIGHT.bit_length() - 2)
    if scaled or (weights is not None and not np.array_equal(*weights)):
        raise ValueError(
            "add_rows without bootstrap counts rows by whole numbers, and the sample_weight of "
            f"{'the fit' if scaled else 'these rows'} has others: pass whole numbers, or call refit"
        )


def _in_classes(checked: CheckedTarget, coding: TargetCoding) -> CheckedTarget:
    """A target in the class codes of a coding; a ValueError for other classes or outputs."""
    if (n := task.n_outputs(checked)) != coding.n_outputs:
        raise ValueError(
            f"y has {n} outputs, but the model was fitted to {coding.n_outputs}: pass as many"
        )
    if checked.classes is None:
        return checked
    codes = []
    for values, labels, known in zip(checked.values, checked.classes, coding.labels, strict=True):
        number = {label: code for code, label in enumerate(known.tolist())}
        if new := [label for label in labels.tolist() if label not in number]:
            raise ValueError(
                f"y has the class {new[0]!r}, which the model was not fitted to: leave its rows "
                "out, or fit anew"
            )
        of_labels = np.array([number[label] for label in labels.tolist()])
        codes.append(of_labels[arrays.to_host(values)])
    return CheckedTarget(codes, [*coding.labels])


def add(self: Any, other: Any) -> Any:
    """A new forest of the trees of both, first those of the first one: it predicts the mean
    over all of them. Its features have the bins of both."""
    if type(other) is not type(self):
        return NotImplemented
    for one in (self, other):
        check_is_fitted(one)
    a, b = self.forest_, other.forest_
    names: list[Any] = [getattr(one, "feature_names_in_", None) for one in (self, other)]
    target = "classes" if a.coding.labels else "ranges of the target"
    same_bins = fit_scope.same_edges(a.edges, b.edges)
    same = {
        "features": np.array_equal(*names) and a.edges.n_features == b.edges.n_features,
        "categories": a.edges.known == b.edges.known,
        target: fit_scope.same_coding(a.coding, b.coding),
        "criterion": self.criterion_ == other.criterion_,
        "voting": a.combine == b.combine, "shrinkage": a.shrinkage == b.shrinkage,
        "categorical_split": self.categorical_split == other.categorical_split,
        "bins of combined features": same_bins or a.coordinates is b.coordinates is None,
    }  # fmt: skip
    if others := [name for name, is_same in same.items() if not is_same]:
        raise ValueError(
            f"forests of different {', '.join(others)} have no common trees: add forests that were "
            "fitted with the same parameters to the same kind of rows"
        )
    if not same_bins:
        union = joining.union(a.edges, b.edges)
        a, b = (joining.on_edges(one, union) for one in (a, b))
    forest = joined([a, b])
    return _with_forest(self, forest, "+")


def keep_trees(self: Any, index: Any) -> Any:
    """Give up all trees but some, which stay in their order.

    The forest predicts as if only these had grown. What was known of rows out of bag is
    removed.
    """
    check_is_fitted(self)
    return _keep_trees(self, np.arange(self.forest_.n_trees)[index], "keep_trees")


def _keep_trees(self: Any, trees: np.ndarray, method: str) -> Any:
    if not len(trees):
        raise ValueError("index leaves no tree: name one or more")
    forest = joining.picked(self.forest_, np.unique(trees))
    self.__dict__ = vars(_with_forest(self, forest, method))
    return self


def prune_trees(self: Any, X: Any, y: Any, sample_weight: Any = None) -> Any:
    """Give up the trees that other trees make superfluous, by rows X that grew no tree.

    Trees are taken one by one, each time the tree that lowers the loss of these rows most. The
    fewest trees stay whose loss is within a standard error of the least. The loss is the mean
    squared error; of classes that of the probabilities (Brier's score).

    References
    ----------
    R. Caruana, A. Niculescu-Mizil, G. Crew and A. Ksikes, "Ensemble selection from libraries
    of models", ICML 2004.
    """
    check_is_fitted(self)
    forest, reached = self.forest_, np.asarray(arrays.to_host(self.apply(X)))
    on = task.On(criteria.CRITERIA[self.criterion_], HOST)
    checked = _in_classes(self._task.check(y, len(reached), on), forest.coding)
    weight = validation.check_weights(sample_weight, len(reached))
    wanted = task.host_target(checked)
    if labels := forest.coding.labels:
        wanted = np.hstack([
            codes[:, None] == np.arange(len(known))
            for codes, known in zip(wanted.T, labels, strict=True)
        ])  # fmt: skip
    nodes = forest.nodes[reached + forest.tree_offsets[:-1]]
    trees = pruning.fewest_trees(forest, leaf_rows(nodes), wanted * 1.0, weight)
    return _keep_trees(self, trees, "prune_trees")
