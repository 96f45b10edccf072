"""scikit-learn estimators: parameters, the preparation of fits, and methods over the stages."""

from gpuforest.estimators.adaboost import AdaBoostClassifier, AdaBoostRegressor
from gpuforest.estimators.bagging import BaggingClassifier, BaggingRegressor
from gpuforest.estimators.boosting import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)
from gpuforest.estimators.forests import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    RandomTreesEmbedding,
)
from gpuforest.estimators.isolation import IsolationForest
from gpuforest.estimators.quantile_forests import (
    ExtraTreesQuantileRegressor,
    RandomForestQuantileRegressor,
)
from gpuforest.estimators.registration import stand_in
from gpuforest.estimators.survival import ExtraSurvivalTrees, RandomSurvivalForest
from gpuforest.estimators.trees import DecisionTreeClassifier, DecisionTreeRegressor

__all__ = [
    "AdaBoostClassifier", "AdaBoostRegressor", "BaggingClassifier", "BaggingRegressor",
    "DecisionTreeClassifier", "DecisionTreeRegressor", "ExtraSurvivalTrees", "ExtraTreesClassifier",
    "ExtraTreesQuantileRegressor", "ExtraTreesRegressor", "HistGradientBoostingClassifier",
    "HistGradientBoostingRegressor", "IsolationForest", "RandomForestClassifier",
    "RandomForestQuantileRegressor", "RandomForestRegressor", "RandomSurvivalForest",
    "RandomTreesEmbedding",
]  # fmt: skip

for name in __all__:
    globals()[name]._is_public = True
stand_in()
