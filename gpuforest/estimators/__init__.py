"""scikit-learn estimators: thin shells over the stages."""

from gpuforest.estimators.forests import RandomForestClassifier, RandomForestRegressor
from gpuforest.estimators.trees import DecisionTreeClassifier, DecisionTreeRegressor

__all__ = [
    "DecisionTreeClassifier",
    "DecisionTreeRegressor",
    "RandomForestClassifier",
    "RandomForestRegressor",
]
