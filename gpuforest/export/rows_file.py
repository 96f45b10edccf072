"""What model files keep of training rows: how they were drawn, the distribution of out-of-bag
errors, and of quantile forests the codes and targets.

    draw_weights  i32[N]      the weights by which rows were drawn, if they had any
    row_codes     u8/u16[N, F]   row_targets f64[N, K]   of quantile forests
    scores        f64[K, n]   score_offsets f64[K]   see `conformal.Calibration`
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpuforest.common.dtypes import MAX_ROWS, MAX_TOTAL_WEIGHT
from gpuforest.common.errors import need
from gpuforest.estimators.bagging import Bagging
from gpuforest.estimators.ensembles import ForestClassifier, ForestRegressor
from gpuforest.estimators.quantile_methods import QuantileForest
from gpuforest.export.container import Layout
from gpuforest.forest import Forest
from gpuforest.inspection.conformal import Calibration
from gpuforest.inspection.quantile_forest import TrainingRows
from gpuforest.sampling import Sampling

ARRAYS: Layout = {
    "draw_weights": (("I32",), 1),
    "row_codes": (("U8", "U16"), 2),
    "row_targets": (("F64",), 2),
    "scores": (("F64",), 2),
    "score_offsets": (("F64",), 1),
}
HEADER = {"draws": dict}  # {"n_rows": ..., "n_draws": ...}, of numbers


def _keeps_draws(estimator: Any) -> bool:
    """Whether the file keeps how rows were drawn, which standard errors, quantiles and importances
    by rows out of bag need. Files of bags do not keep it."""
    forests = ForestClassifier | ForestRegressor
    return isinstance(estimator, forests) and not isinstance(estimator, Bagging)


def kept_rows(estimator: Any) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The part of the header and the arrays of a fitted estimator."""
    header: dict[str, Any] = {}
    arrays: dict[str, np.ndarray] = {}
    sampling = getattr(estimator, "_sampling_", None)
    if _keeps_draws(estimator) and sampling is not None and not sampling.distinct:
        header["draws"] = {"n_rows": sampling.n_rows, "n_draws": sampling.n_draws}
        if sampling.weights is not None:
            arrays["draw_weights"] = sampling.weights
    if isinstance(estimator, QuantileForest):
        rows = estimator._rows_
        arrays |= {"row_codes": np.ascontiguousarray(rows.codes), "row_targets": rows.y}
    if (known := getattr(estimator, "_calibration_", None)) is not None:
        arrays |= {"scores": known.scores, "score_offsets": known.offset}
    return header, arrays


def set_rows(
    estimator: Any, header: dict[str, Any], arrays: dict[str, np.ndarray], forest: Forest
) -> None:
    """Give an estimator what a file keeps, which is checked.

    Raises
    ------
    ModelFormatError : it does not fit the forest
    """
    wants_rows, draws = isinstance(estimator, QuantileForest), {"draws", "draw_weights"}
    need(_keeps_draws(estimator) or not draws & {*header, *arrays}, "draws amiss")
    need("draws" in header or "draw_weights" not in arrays, "weights without draws")
    if "draws" in header:
        estimator._sampling_ = _sampling(header["draws"], arrays.get("draw_weights"))
    need({"row_codes", "row_targets"} <= arrays.keys() or not wants_rows, "training rows amiss")
    need(wants_rows or not {"row_codes", "row_targets"} & arrays.keys(), "rows of another model")
    if wants_rows:
        need("draws" in header, "training rows without draws")
        estimator._rows_ = _rows(arrays, estimator._sampling_, forest)
    need(("scores" in arrays) == ("score_offsets" in arrays), "scores amiss")
    if "scores" in arrays:
        estimator._calibration_ = _calibration(arrays, forest)


def _sampling(draws: dict[str, Any], weights: np.ndarray | None) -> Sampling:
    need(draws.keys() == {"n_rows", "n_draws"}, "draws of something else")
    need(all(type(n) is int for n in draws.values()), "draws that are no numbers")
    need(0 < draws["n_rows"] <= MAX_ROWS, "a number of rows out of range")
    need(0 <= draws["n_draws"] <= MAX_TOTAL_WEIGHT, "a number of draws out of range")
    if weights is not None:
        need(weights.shape == (draws["n_rows"],), "weights that do not fit")
        need(bool((weights >= 0).all()), "a negative weight")
        need(0 < weights.sum(dtype=np.int64) <= MAX_TOTAL_WEIGHT, "weights out of range")
    return Sampling(draws["n_rows"], draws["n_draws"], weights)


def _rows(arrays: dict[str, np.ndarray], sampling: Sampling, forest: Forest) -> TrainingRows:
    codes, y, edges = arrays["row_codes"], arrays["row_targets"], forest.edges
    need(codes.shape == (sampling.n_rows, edges.n_features), "codes that do not fit")
    need(codes.dtype == edges.code_dtype, "codes of another type")
    need(bool((codes <= edges.missing_code).all()), "a code out of range")
    need(y.shape == (sampling.n_rows, forest.coding.n_outputs), "targets that do not fit")
    need(bool(np.isfinite(y).all()), "a target that is no finite number")
    return TrainingRows(codes, y, sampling)


def _calibration(arrays: dict[str, np.ndarray], forest: Forest) -> Calibration:
    scores, offset = arrays["scores"], arrays["score_offsets"]
    need(len(scores) == forest.coding.n_outputs and scores.shape[1] > 0, "scores that do not fit")
    need(offset.shape == (len(scores),), "offsets that do not fit")
    need(bool((scores >= 0).all() and (scores[:, 1:] >= scores[:, :-1]).all()), "scores amiss")
    need(bool((offset >= 0).all() and np.isfinite(offset).all()), "an offset amiss")
    return Calibration(scores, offset)
