"""Single decision trees, and how they are pruned."""

import warnings
from functools import cached_property, partial
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import KFold, StratifiedKFold, check_cv
from sklearn.utils import Bunch, _safe_indexing, indexable
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import check_is_fitted

from gpuforest.backends.base import Backend
from gpuforest.backends.registry import run_on_backend
from gpuforest.common.imports import deferred
from gpuforest.core import criteria, nodes
from gpuforest.core.forest import Forest
from gpuforest.core.target import CheckedTarget
from gpuforest.data import arrays, binned, validation
from gpuforest.estimators import base, learning, params, task
from gpuforest.estimators.plan import TrainingPlan
from gpuforest.explain import paths, pruning
from gpuforest.explain.pruning import Trial
from gpuforest.export.views import TreeView
from gpuforest.growing import predict as prediction

sklearn_tree = deferred("gpuforest.export.sklearn_tree", "sklearn_tree")

METHODS = ("cost_complexity", "reduced_error")


class SingleTree(base.BaseTrees):
    """The methods of a single tree besides its predictions, and the choice of a subtree."""

    _takes_outputs = True
    __metadata_request__fit: ClassVar[dict[str, str]] = {"check_input": UNUSED}
    __metadata_request__predict: ClassVar[dict[str, str]] = {"check_input": UNUSED}
    ccp_alpha_: float
    classes_: Any
    pruning_curve_: Bunch

    def cost_complexity_pruning_path(self, X: Any, y: Any, sample_weight: Any = None) -> Bunch:
        """The nested subtrees of minimal cost-complexity pruning (Breiman et al. 1984, ch. 3).

        Returns
        -------
        Bunch of ndarrays of shape (n_subtrees,)
            `ccp_alphas`, float64, ascending from zero: at each a node becomes a leaf;
            `impurities`, float64, and the number `n_leaves`, int64, of the leaves from there on.
        """
        whole = clone(self).set_params(ccp_alpha=0.0).fit(X, y, sample_weight)
        alphas, decreases, n_leaves = pruning.pruning_path(whole.forest_, whole._criterion)
        impurities = np.maximum(whole.tree_.impurity[0] - decreases, 0.0)
        return Bunch(ccp_alphas=alphas, impurities=impurities, n_leaves=n_leaves)

    def prune(
        self, X: Any, y: Any, sample_weight: Any = None, *, method: str = "cost_complexity",
        rule: str = "min",
    ) -> Self:  # fmt: skip
        """Prune the fitted tree, in place, by rows X that did not grow it."""
        check_is_fitted(self)
        for name, value, known in (("method", method, METHODS), ("rule", rule, pruning.RULES)):
            if value not in known:
                raise ValueError(f"{name}={value!r} is unknown: pass one of {', '.join(known)}")
        leaves = self._leaves(X)
        checked = run_on_backend(partial(self._checked, y, len(leaves)), **self._chosen(X))
        weights = validation.check_weights(sample_weight, len(leaves))
        trial = self._trial(leaves, self._numbers(checked), weights)
        if method == "reduced_error":
            self._cut(pruning.reduced_error(trial))
        else:
            ccp_alphas = np.unique(trial.alphas)  # from zero, which leaves have
            self._choose(trial.alphas, ccp_alphas, pruning.error_curve([trial], ccp_alphas), rule)
        return self

    def _keep(self, forest: Forest, plan: TrainingPlan | None = None) -> None:
        super()._keep(forest, plan)
        if self.ccp_alpha != "cv":
            self.ccp_alpha_ = float(self.ccp_alpha)

    def _fit(self, given: binned.FitInput, seed: int, earlier: Any, backend: Backend) -> None:
        super()._fit(given, seed, earlier, backend)
        if self.ccp_alpha == "cv":
            self._cross_validate(given, seed, backend)

    def _cross_validate(self, given: binned.FitInput, seed: int, backend: Backend) -> None:
        """Prune the whole tree at an alpha chosen by folds (Breiman et al. 1984, 3.4)."""
        X, y, sample_weight, *_ = given
        weights = validation.check_weights(sample_weight, self._sampling_.n_rows)
        alphas = pruning.collapse_alphas(self.forest_, self._criterion)
        candidates = pruning.middles(np.unique(alphas))
        # the last stands for all above it, where every fold's tree is its root
        tried = np.append(candidates[:-1], np.inf)
        checked = self._checked(y, self._sampling_.n_rows, backend)
        target = task.host_target(checked)
        y = np.asarray(arrays.to_host(y)).reshape(target.shape if target.shape[1] > 1 else -1)
        folds = self._folds(target, weights, seed)
        other, trials = {"ccp_alpha": 0.0, "random_state": seed, "backend": backend.name}, []
        tree = type(self)(**self.get_params(deep=False) | other)
        for grow, test in folds:
            w, other_w = (None if weights is None else weights[rows] for rows in (grow, test))
            with warnings.catch_warnings():  # of the column the whole tree has warned
                warnings.filterwarnings("ignore", ".* different values in ")
                tree.fit(_rows(X, grow, backend), y[grow], w)
            leaves = tree._leaves(_rows(X, test, backend))
            trials.append(tree._trial(leaves, tree._numbers(checked)[test], other_w))
        tested = np.concatenate([test for _, test in folds])
        repeats = len(tested) / len(np.unique(tested))
        self._choose(alphas, candidates, pruning.error_curve(trials, tried, repeats), self.ccp_rule)

    def _checked(self, y: Any, n_rows: int, backend: Backend) -> CheckedTarget:
        return self._task.check(y, n_rows, task.On(criteria.CRITERIA[self.criterion], backend))

    def _choose(
        self, alphas: np.ndarray, ccp_alphas: np.ndarray, curve: tuple[np.ndarray, ...], rule: str
    ) -> None:
        """Prune at one of `ccp_alphas` f64[n], chosen by their errors and standard errors. The
        tree's splits go at `alphas` f64[m]."""
        splits = np.sort(alphas[~nodes.is_leaf(self.forest_.nodes)])
        n_leaves = len(splits) - np.searchsorted(splits, ccp_alphas, side="right") + 1
        errors, std = curve
        alpha = float(ccp_alphas[pruning.choose(errors, std, rule)])
        known = Bunch(ccp_alphas=ccp_alphas, n_leaves=n_leaves, errors=errors, std_errors=std)
        self._cut(alphas > alpha, ccp_alpha_=alpha, pruning_curve_=known)

    def _cut(self, keep: np.ndarray, **learned: Any) -> None:
        """Keep some splits, bool[m], and what was learned: at once, as an interrupt may come."""
        learned["forest_"] = pruning.cut(self.forest_, keep, self._criterion, self._signs())
        followed = ("tree_", "feature_importances_", "proof_")
        self.__dict__ = {n: v for n, v in vars(self).items() if n not in followed} | learned

    def _leaves(self, X: Any) -> np.ndarray:
        """The leaf that each row reaches, i64[N], on the host."""
        return np.asarray(arrays.to_host(self.apply(X)))

    def _trial(self, leaves: np.ndarray, numbers: np.ndarray, weights: np.ndarray | None) -> Trial:
        """The losses at the tree's nodes of test rows that reach these leaves; see `_numbers`."""
        w = np.ones(len(leaves)) if weights is None else weights
        return pruning.try_rows(self.forest_, self._criterion, self._signs(), leaves, numbers, w)

    def _numbers(self, checked: CheckedTarget) -> np.ndarray:
        """The target [N, n_outputs]: numbers, or the tree's own class codes, -1 for a class that it
        does not know."""
        target = task.host_target(checked)
        if target.shape[1] != self.n_outputs_:
            raise ValueError(
                f"y has {target.shape[1]} outputs, but the tree was fitted to {self.n_outputs_}: "
                "pass as many"
            )
        for k, labels in enumerate(checked.classes or ()):
            learnt = self.forest_.coding.several[k] if self.n_outputs_ > 1 else self.classes_
            number = {label: code for code, label in enumerate(learnt.tolist())}
            codes = np.array([number.get(label, -1) for label in labels.tolist()])
            target[:, k] = codes[target[:, k]]
        return target

    def _folds(
        self, target: np.ndarray, weights: np.ndarray | None, seed: int
    ) -> list[tuple[np.ndarray, np.ndarray]]:
        """Numbers of the rows that grow the tree of each fold, and of the rows that test it."""
        is_classes, folds = self.forest_.coding.is_classes, self.ccp_cv
        rows = np.arange(len(target))
        if isinstance(folds, Integral):
            if weights is not None:  # rows of no weight are as if they were not there
                rows = np.flatnonzero(weights)
            kind = StratifiedKFold if is_classes else KFold
            folds = kind(int(folds), shuffle=True, random_state=seed % 2**32)
        y = target[rows, 0] if target.shape[1] == 1 else target[rows]
        splits = check_cv(folds, y, classifier=is_classes).split(rows[:, None], y)
        parts = [(rows[grow], rows[test]) for grow, test in splits]
        if not any(len(test) if weights is None else weights[test].any() for _, test in parts):
            raise ValueError("ccp_cv has no test rows of any weight: pass other folds")
        return parts

    @cached_property
    def tree_(self) -> Any:
        """The tree as scikit-learn has it, see `inspection.sklearn_tree`."""
        check_is_fitted(self)
        if self.forest_.coordinates is not None:
            raise ValueError(
                "tree_ has one feature a node, and this tree splits by combinations of features: "
                "use export_text or tree_nodes, or train with feature_combinations=None"
            )
        return sklearn_tree(TreeView(self._model(), 0), self.backend)

    # callers of scikit-learn's trees pass `check_input`

    def fit(  # type: ignore[override]  # there are no bags, and so no groups
        self, X: Any, y: Any = None, sample_weight: Any = None, check_input: bool = True
    ) -> Self:
        """Grow the tree."""
        return super().fit(X, y, sample_weight)

    def predict(self, X: Any, check_input: bool = True) -> Any:
        """Predict as a forest of this tree alone does."""
        return super().predict(X)  # type: ignore[misc]  # of the class beside this one

    def apply(self, X: Any, check_input: bool = True) -> Any:
        """The number of the leaf that each row reaches, int64 of shape (n_samples,)."""
        return self._walk(X, prediction.apply)[:, 0]

    def decision_path(self, X: Any, check_input: bool = True) -> Any:
        """The nodes that each row passes, from the root to its leaf."""
        return paths.decision_paths(self.forest_, arrays.to_host(self._walk(X, prediction.apply)))

    def get_depth(self) -> int:
        """Levels below the root."""
        check_is_fitted(self)
        return self.forest_.depth

    def get_n_leaves(self) -> int:
        """Leaves of the tree."""
        check_is_fitted(self)
        return int(nodes.is_leaf(self.forest_.nodes).sum())


def _rows(X: Any, rows: np.ndarray, backend: Backend) -> Any:
    """Some rows of X, in its kind."""
    if arrays.is_frame(X):
        return arrays.open_frame(X)[rows].to_native()
    X = arrays.bring(X, backend, "X")
    if arrays.is_on_device(X):
        return backend.xp.take(X, backend.asarray(rows), axis=0)
    return _safe_indexing(*indexable(X), rows)


@params.parameters(params.SINGLE_TREE, params.OF_A_TREE)
class DecisionTreeClassifier(SingleTree, base.Classifier):
    """A decision tree (CART) for classes.

    Where every feature has at most 1,023 distinct values (or `max_bins`) this is the exact
    tree; otherwise thresholds are chosen among 254 (or `max_bins` - 1) edges a feature.
    """

    __metadata_request__predict_proba: ClassVar[dict[str, str]] = {"check_input": UNUSED}
    refit, add_rows = learning.refit, learning.add_rows

    def predict_proba(self, X: Any, check_input: bool = True) -> Any:
        """Class proportions in the leaf that each row reaches."""
        return super().predict_proba(X)


@params.parameters(params.SINGLE_TREE, params.OF_NUMBERS, params.OF_A_TREE)
class DecisionTreeRegressor(SingleTree, base.Regressor):
    """A decision tree (CART) for real numbers, as exact as `DecisionTreeClassifier`."""

    refit, add_rows = learning.refit, learning.add_rows
