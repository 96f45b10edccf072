"""Fitted estimators from model files, and from fitted models of scikit-learn."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from sklearn.utils.validation import check_is_fitted

import gpuforest
from gpuforest.backends.registry import get_host_backend
from gpuforest.common.dtypes import MAX_ROWS, MAX_TOTAL_WEIGHT
from gpuforest.common.errors import ModelFormatError, damaged, need
from gpuforest.core import criteria
from gpuforest.core.bins import BinEdges
from gpuforest.core.forest import Forest
from gpuforest.core.rules import Sampling
from gpuforest.data.survival import are_survival
from gpuforest.estimators import forgetting
from gpuforest.estimators.adaboost import AdaBoost
from gpuforest.estimators.base import BaseTrees
from gpuforest.estimators.by_ids import MOST_RATE
from gpuforest.estimators.causal import CausalForest
from gpuforest.estimators.ensembles import ForestClassifier, ForestRegressor
from gpuforest.estimators.learning import RENUMBERED
from gpuforest.estimators.quantile_forests import QuantileForest
from gpuforest.estimators.survival import SurvivalForest
from gpuforest.estimators.survival_boosting import HistGradientBoostingSurvival
from gpuforest.explain import paths, quantile_forest, survival, uncertainty
from gpuforest.explain.effects import COLUMNS, EffectRows
from gpuforest.explain.model_facts import WHERE_IT_RUNS
from gpuforest.export import model_file, sklearn, sklearn_boosting
from gpuforest.export.container import Arrays
from gpuforest.export.model_file import (
    CURVES,
    DRAWN_BY,
    KEPT,
    NUMBERS_KEPT,
    OF_EVENTS,
    SCORES,
    Header,
)
from gpuforest.kernels.gradients.host_losses import AFT

ALTERED = ("refit", "add_rows", *RENUMBERED)
NESTED = ("DecisionTreeClassifier", "DecisionTreeRegressor")  # as parameters of others
CHECKED = 2**19  # training rows and trees of a survival forest whose risks are checked at once


def load(path: str | os.PathLike[str]) -> Any:
    """Read an estimator that `save` wrote to a path; it predicts the same, to the last bit.

    Returns
    -------
    The fitted estimator, with the default `backend`, `n_jobs` and `memory_limit`.

    Raises
    ------
    ModelFormatError
        A cut, damaged or foreign file, or one of a newer format version.
    OSError
        The file cannot be read.
    MemoryError
        The model does not fit into memory.
    """
    path = Path(path)
    try:
        header, arrays, forest = model_file.read_model(path)
        estimator = _estimator(header, arrays, forest)
        _set_rows(estimator, header, arrays, forest)
        return estimator
    except (OSError, MemoryError):
        raise
    except ModelFormatError as error:
        raise ModelFormatError(f"{path}: {error}") from error
    except Exception as error:  # whatever damage does to code that trusts its data
        raise ModelFormatError(f"{path}: {damaged(f'{error!r:.200}')}") from error


def _parameter(value: Any) -> Any:
    """A parameter from a file; the inverse of `model_file._plain`."""
    if isinstance(value, list):
        return [_parameter(item) for item in value]
    if not isinstance(value, dict):
        return value
    if "tree" in value:
        need(value.keys() == {"tree", "parameters"} and value["tree"] in NESTED, "no tree")
        return _made(value["tree"], value["parameters"])
    pairs: list[Any] = value["pairs"]
    need(len(value) == 1 and all(type(pair) is list for pair in pairs), "pairs that are none")
    parameter = dict(pairs)
    need(len(parameter) == len(pairs), "a key that comes twice in a parameter")
    return parameter


def _made(name: str, parameters: Any) -> Any:
    """An estimator that is not fitted."""
    need(type(parameters) is dict, "parameters that are none")
    kind = getattr(gpuforest, name)
    names = set(kind._get_param_names()).difference(WHERE_IT_RUNS)
    need(parameters.keys() <= names, "an unknown parameter")
    estimator = kind(**{name: _parameter(value) for name, value in parameters.items()})
    estimator._validate_params()
    return estimator


def _estimator(header: Header, arrays: Arrays, forest: Forest) -> Any:
    """A fitted estimator of a checked forest."""
    name, coding = header["estimator"], forest.coding
    kind = getattr(gpuforest, str(name), None)
    is_estimator = isinstance(kind, type) and issubclass(kind, BaseTrees)
    need(is_estimator, f"an unknown estimator {name!r:.80}")
    estimator = _made(name, header["parameters"])
    is_classes = coding.classes is not None or len(coding.several) > 0
    need(is_classes == name.endswith("Classifier"), "classes and estimator disagree")
    need(("boosting" in header) == hasattr(estimator, "max_iter"), "boosting amiss")
    need(("offset" in header) == (name == "IsolationForest"), "an offset amiss")
    if "boosting" not in header:
        split = estimator._settings().categorical_split
        forest = replace(forest, multiway=split == "multiway" and len(forest.sets) > 0)
    chosen_for = "classification" if is_classes else "regression"
    chosen_for = "survival" if isinstance(estimator, SurvivalForest) else chosen_for
    chosen_for = "effects" if isinstance(estimator, CausalForest) else chosen_for
    need(header["criterion"] in criteria.CriterionNames(chosen_for), "an unknown criterion")
    criterion = criteria.CRITERIA[header["criterion"]]
    need(criterion.medians == (forest.node_values is not None), "medians of nodes amiss")
    single = name.startswith("DecisionTree")
    need(forest.n_trees == 1 or not single, "a tree of many trees")
    estimator.n_features_in_ = forest.edges.n_features
    for attribute, value in _facts(header, arrays, forest).items():
        setattr(estimator, attribute, value)
    need(_events_fit(estimator, arrays, coding), "times of events amiss")
    estimator._keep(forest)
    estimator.criterion_ = criterion.name
    need(("pruning_curve" in header) == ("ccp_alpha" in header), "an alpha without its curve")
    if "ccp_alpha" in header:
        need(single, "a pruning curve of many trees")
        alphas = estimator.pruning_curve_.ccp_alphas
        need(header["ccp_alpha"] in alphas, "an alpha not on its curve")
    weights, errors = forest.tree_weights, arrays.get("tree_errors")
    boosted = isinstance(estimator, AdaBoost)
    need(boosted == (weights is not None) == (errors is not None), "weights of trees amiss")
    if boosted:
        need(forest.combine == estimator._combine, "trees that combine in another way")
        need(forest.n_trees <= estimator.n_estimators, "more trees than rounds")
        estimator._keep_rounds(weights, errors)
    return estimator


def _events_fit(estimator: Any, arrays: Arrays, coding: Any) -> bool:
    """Whether a file has the times and hazards that the estimator needs, and no others."""
    times, hazards = map(arrays.get, OF_EVENTS)
    if not isinstance(estimator, HistGradientBoostingSurvival):
        return times is None and hazards is None and not is_of_events(coding)
    if times is None or coding.loss.name != estimator.loss:
        return False
    if estimator.loss == "coxph":
        return hazards is not None and len(hazards) == len(times)
    return hazards is None and bool(times[0] > 0) and coding.loss.spread == estimator.scale


def is_of_events(coding: Any) -> bool:
    """Whether the loss of a coding, if it has one, is of survival."""
    return hasattr(coding, "loss") and coding.loss.name in ("coxph", *AFT)


def _facts(header: Header, arrays: Arrays, forest: Forest) -> dict[str, Any]:
    """The attributes that a file holds as they are."""
    found: dict[str, Any] = {f"{n}_": header[n] for n in header.keys() & NUMBERS_KEPT}
    for kept in header.keys() & KEPT.keys():
        facts = header[kept]
        found[KEPT[kept]] = model_file.read_curve(kept, facts) if kept in CURVES else facts
    if (boosting := header.get("boosting")) is not None:
        found |= {f"{score}_": arrays.get(score, np.zeros(0)) for score in SCORES}
        found |= {"scored_by_": boosting["scored_by"]} if "scored_by" in boosting else {}
        found["do_early_stopping_"] = boosting["stops"]
        found |= {f"{name}_": arrays[name] for name in {*OF_EVENTS} & arrays.keys()}
    if (names := header.get("feature_names")) is not None:
        need(len(names) == forest.edges.n_features, "feature names that do not fit")
        need(len({*names}) == len(names), "a feature name that comes twice")
        found["feature_names_in_"] = np.array(names, dtype=object)
    if (importances := arrays.get("unbiased_importances")) is not None:
        need("unbiased_importances" in header["parameters"], "importances of no forest")
        found["_unbiased_importances_"] = importances
    need(0 <= header.get("training", {"rows": 0})["rows"] < 2**63, "a number out of range")
    if "proof" in header:
        same = header["proof"]["content"] == model_file.content_digest(header, arrays)
        need(same, "its content is not that of its proof")
    if "altered" in header:
        need(header["altered"] in ALTERED, "trees that something unknown has changed")
        found["_altered_"] = header["altered"]
    return found


def _set_rows(estimator: Any, header: Header, arrays: Arrays, forest: Forest) -> None:
    """Give an estimator what a file keeps of training rows, which must fit the forest."""
    of_draws = {*DRAWN_BY} & arrays.keys()
    need(estimator._keeps_draws or not ("draws" in header or of_draws), "draws amiss")
    need("draws" in header or not of_draws, "weights or groups without draws")
    if "draws" in header:
        estimator._sampling_ = _sampling(header["draws"], *map(arrays.get, DRAWN_BY))
        if estimator._sampling_.rate:
            grown_by = forgetting.parameters_of(estimator)
            estimator._grown_by_ = grown_by | {"n_estimators": str(joblib.hash(forest.n_trees))}
    if header.get("by_blocks", False):
        need(isinstance(estimator, ForestClassifier | ForestRegressor), "blocks amiss")
        estimator._judges_ = None
    if isinstance(estimator, CausalForest):
        _set_effects(estimator, header, arrays, forest.coding.n_channels)
        return
    need("parts" not in header.get("draws", {}), "parts of bags of no effects")
    n_kept = len({"row_codes", "row_targets"} & arrays.keys())
    keeps_rows = isinstance(estimator, QuantileForest | SurvivalForest)
    need(n_kept == 2 * keeps_rows, "training rows amiss")
    need(keeps_rows or "row_judged" not in arrays, "row_judged amiss")
    if keeps_rows:
        need("draws" in header, "training rows without draws")
        codes, edges = arrays["row_codes"], forest.edges
        need(codes.dtype == edges.code_dtype, "codes of another type")
        need((codes <= edges.missing_code).all(), "a code out of range")
        targets, is_survival = arrays["row_targets"], isinstance(estimator, SurvivalForest)
        is_low = is_survival and not codes.shape[1]  # without codes there are risks, but no curves
        need(is_low or codes.shape[1] == edges.n_features, "row_codes that do not fit")
        n_targets = 2 if is_survival else forest.coding.n_outputs
        need(targets.shape[1] == n_targets, "row_targets that do not fit")
        fit = not is_survival or are_survival(targets, forest.coding.n_outputs)
        need(fit, "row_targets out of range")
        judged = _judged(arrays["row_judged"], edges, codes) if "row_judged" in arrays else None
        of_rows = codes, targets, estimator._sampling_, judged
        estimator._rows_ = quantile_forest.TrainingRows(*of_rows)
        if is_survival and not is_low:
            # more trees would take seconds; they are checked before the first curves
            part = paths.some_trees(forest, 0, max(1, min(forest.n_trees, CHECKED // len(codes))))
            found = survival.steps_of(part, estimator._rows_, get_host_backend())
            need(found.fit(part), "leaf_values that do not follow from the training rows")
    need(("scores" in arrays) == ("score_offsets" in arrays), "scores amiss")
    if "scores" in arrays:
        estimator._calibration_ = uncertainty.Calibration(arrays["scores"], arrays["score_offsets"])


def _set_effects(estimator: CausalForest, header: Header, arrays: Arrays, C: int) -> None:
    """Give a causal forest its training rows; C : channels of its sums"""
    need(
        "parts" in header.get("draws", {}) and "row_targets" in arrays, "effects without their rows"
    )
    need(not {"row_codes", "scores"} & arrays.keys(), "arrays of no effects")
    columns = arrays["row_targets"]
    need(columns.shape[1] == len(COLUMNS), "row_targets that do not fit")
    rows = EffectRows(columns)
    need(all(r.any() for r in rows.residuals), "residuals that do not vary")
    need(rows.has_instrument == C - 5, "sums of other moments than those of the rows")
    estimator._rows_ = rows


def _judged(columns: np.ndarray, edges: BinEdges, codes: np.ndarray) -> dict[int, np.ndarray]:
    """The codes by which training rows are judged, see `BinnedMatrix`."""
    features = [f for f, known in edges.statistics.items() if known.categories]
    need(columns.dtype == codes.dtype, "row_judged of another type")
    need(columns.shape == (len(features), len(codes)), "row_judged that do not fit")
    need((columns <= edges.missing_code).all(), "row_judged out of range")
    return dict(zip(features, columns, strict=True))


def _sampling(
    draws: dict[str, Any], weights: np.ndarray | None, groups: np.ndarray | None,
    classes: np.ndarray | None, ids: np.ndarray | None,
) -> Sampling:  # fmt: skip
    need(0 < draws["n_rows"] <= MAX_ROWS, "a number of rows out of range")
    need(0 <= draws["n_draws"] <= MAX_TOTAL_WEIGHT, "a number of draws out of range")
    if weights is not None:
        need(0 < weights.sum(dtype=np.int64) <= MAX_TOTAL_WEIGHT, "weights out of range")
    sampling = Sampling(draws["n_rows"], draws["n_draws"], weights, groups=groups)
    if "parts" in draws:
        parts = tuple(draws["parts"])
        need(len(parts) == 2 and 0 < parts[0] <= parts[1] <= 2**32, "parts of bags out of range")
        sampling = replace(sampling, distinct=True, parts=parts)
    if (rate := draws.get("rate", 0.0)) != 0:
        need(0 < rate <= MOST_RATE and groups is classes is None, "a rate of draws amiss")
        sampling = replace(sampling, rate=rate, ids=ids)
        need(sampling.n_draws > 0 and sampling.most_weight <= MAX_TOTAL_WEIGHT, "draws amiss")
    need(rate or ids is None, "ids without a rate of draws")
    each = draws.get("of_classes", [])
    need(bool(each) == (classes is not None) and not (each and groups is not None), "draws amiss")
    if classes is not None:
        need(min(each) >= 0 and sum(each) == sampling.n_draws > 0, "draws of classes amiss")
        need(classes.max() < len(each), "classes of draws out of range")
        sampling = replace(sampling, classes=classes.astype(np.int32), draws=tuple(each))
        need((sampling.by_class.total >= np.minimum(each, 1)).all(), "a class without rows")
    if groups is not None:
        need(sampling.n_draws > 0 and groups.max() < sampling.n_rows, "groups out of range")
        need(np.bincount(groups).all(), "a group without rows")
        need(sampling.most_weight <= MAX_TOTAL_WEIGHT, "groups too heavy")
    return sampling


def from_sklearn(model: Any) -> Any:
    """A fitted model of scikit-learn as the fitted estimator of ours of the same name.

    It predicts float32 data as the model does: class shares are equal to the last bit where
    the rows' weights are whole numbers, and else, as means of a regression, are rounded to the
    integers that leaves hold here. Raw predictions of gradient boosting are equal to the last bit.

    Parameters
    ----------
    model : sklearn.tree.DecisionTree*, or sklearn.ensemble.RandomForest*, ExtraTrees* or
        HistGradientBoosting*; fitted

    Returns
    -------
    The estimator, with the parameters that both know and the default `backend`.

    Raises
    ------
    TypeError
        Another kind of model.
    ValueError
        A model that is not fitted, of a criterion that gpuforest lacks, with more than 65,534
        thresholds of a feature, or with leaves of no weight.
    """
    name = type(model).__name__
    is_known = type(model).__module__.startswith("sklearn.")
    boosted = is_known and name in sklearn.BOOSTING
    if not boosted and not (is_known and name in sklearn.HOMES):
        known = ", ".join((*sklearn.HOMES, *sklearn.BOOSTING))
        raise TypeError(f"from_sklearn takes a fitted {known} of scikit-learn, not {name}")
    check_is_fitted(model)
    if not boosted and model.criterion not in criteria.CRITERIA:
        raise ValueError(
            f"criterion={model.criterion!r} is none of gpuforest's: train the model with one of "
            + ", ".join(criteria.CRITERIA)
        )
    kind = getattr(gpuforest, name)
    converted = sklearn.with_known(kind, model.get_params(deep=False))
    sklearn.copy_to(converted, vars(model), "n_features_in_", "n_outputs_", "feature_names_in_")
    converted._keep((sklearn_boosting if boosted else sklearn).forest_of(model))
    if not boosted:
        converted.criterion_ = model.criterion
        return converted
    converted.do_early_stopping_ = model.do_early_stopping_
    for score in SCORES:
        setattr(converted, f"{score}_", np.asarray(getattr(model, f"{score}_"), np.float64))
    return converted
