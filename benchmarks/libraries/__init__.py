"""The libraries compared, each behind the few methods of `Forest`.

Forests are as similar as each library allows: the same number of trees, depth, features tried at a
node and threads, leaves of one row, a bootstrap sample for each tree. The `note` of a library says
what it does differently.
"""

from __future__ import annotations

from benchmarks.libraries import estimators, others
from benchmarks.libraries.forest import Forest

LIBRARIES: dict[str, type[Forest]] = {
    "gpuforest": estimators.Gpuforest,
    "gpuforest-entropy": estimators.GpuforestEntropy,
    "gpuforest-extra": estimators.GpuforestExtra,
    "gpuforest-oblique": estimators.GpuforestOblique,
    "sklearn": estimators.Sklearn,
    "sklearn-extra": estimators.SklearnExtra,
    "sklearnex": estimators.Sklearnex,
    "sklearnex-extra": estimators.SklearnexExtra,
    "lightgbm": estimators.LightGBM,
    "xgboost": estimators.XGBoost,
    "xgboost-vector": estimators.XGBoostVector,
    "ydf": others.YDF,
    "ydf-binned": others.YDFBinned,
    "ydf-oblique": others.YDFOblique,
    "snapml": estimators.SnapML,
    "snapml-binned": estimators.SnapMLBinned,
    "fastforest": others.FastForest,
    "fastforest-own": others.FastForestOwn,
    "ranger": others.Ranger,
}
