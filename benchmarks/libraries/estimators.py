"""Libraries with scikit-learn's interface: ours, its own, and four more."""

from __future__ import annotations

import logging
import pickle
from typing import Any, ClassVar

from benchmarks.libraries.forest import Array, Forest, bytes_written, two_columns

# the mean share of distinct rows in a bootstrap sample: what libraries that draw without
# replacement are to draw
IN_BAG = 0.632
LEAST_PROJECTIONS = 5  # YDF tries no fewer combinations of features in a node, so we do not


class Estimator(Forest):
    """With n_jobs, and written as a pickle."""

    prefix: ClassVar[str] = "RandomForest"

    def parameters(self) -> dict[str, Any]:
        w = self.wanted
        return {
            "n_estimators": w.trees,
            "max_depth": w.depth,
            "max_features": w.tried,
            "n_jobs": w.threads,
            "random_state": w.seed,
        }

    def train(self, X: Array, y: Array) -> Any:
        kind = "Classifier" if self.wanted.classes else "Regressor"
        estimator = getattr(self.library, self.prefix + kind)(**self.parameters())
        return estimator.fit(X, y)

    def use_threads(self, n: int) -> None:
        self.model.set_params(n_jobs=n)

    def size(self) -> int:
        counter = Counter()
        pickle.dump(self.model, counter, protocol=5)
        return counter.n


class Counter:
    """A file that only counts."""

    n = 0

    def write(self, part: Any) -> int:
        self.n += (size := memoryview(part).nbytes)
        return size


class Gpuforest(Estimator):
    title, module, packages = "gpuforest", "gpuforest", ("gpuforest",)

    def parameters(self) -> dict[str, Any]:
        # on the CPU even where there is a GPU: the others have no choice
        return {**super().parameters(), "backend": "numba"}

    def size(self) -> int:
        return bytes_written(self.model.save)


class GpuforestEntropy(Gpuforest):
    title, note = "gpuforest, entropy", "ours by the other criterion of classes"

    def parameters(self) -> dict[str, Any]:
        return {**super().parameters(), **({"criterion": "entropy"} if self.wanted.classes else {})}


class GpuforestExtra(Gpuforest):
    prefix = "ExtraTrees"
    title, note = "gpuforest, extra trees", "one random cut a feature, all rows for each tree"


class GpuforestOblique(Gpuforest):
    title, note = "gpuforest, oblique", "sums of two features on average, 1 or -1 times each"

    def parameters(self) -> dict[str, Any]:
        tried = max(self.wanted.tried, min(LEAST_PROJECTIONS, self.wanted.features))
        return {**super().parameters(), "feature_combinations": 2.0, "max_features": tried}


class Sklearn(Estimator):
    title, module, packages = "scikit-learn", "sklearn.ensemble", ("scikit-learn",)


class SklearnExtra(Sklearn):
    prefix = "ExtraTrees"
    title, note = "scikit-learn, extra trees", "one random cut a feature, all rows for each tree"


class Sklearnex(Estimator):
    title, module = "scikit-learn-intelex", "sklearnex.ensemble"
    packages = ("scikit-learn-intelex",)

    def train(self, X: Array, y: Array) -> Any:
        self.fallbacks = Fallbacks()
        return super().train(X, y)

    def remarks(self) -> dict[str, Any]:
        return {"fell_back": self.fallbacks.seen}


class SklearnexExtra(Sklearnex):
    prefix = "ExtraTrees"
    title = "scikit-learn-intelex, extra trees"
    note = "one random cut a feature, all rows for each tree"


class Fallbacks(logging.Handler):
    """Whether scikit-learn-intelex says that it left the work to scikit-learn."""

    def __init__(self) -> None:
        super().__init__()
        self.seen = False
        logger = logging.getLogger("sklearnex")
        logger.setLevel(logging.INFO)
        logger.propagate = False
        logger.handlers = [self]

    def emit(self, record: logging.LogRecord) -> None:
        self.seen |= "fallback" in record.getMessage()


class LightGBM(Estimator):
    title, module, packages = "LightGBM rf", "lightgbm", ("lightgbm",)
    prefix = "LGBM"
    note = "draws rows without replacement; 131,072 leaves at most; a tree for each class"

    def train(self, X: Array, y: Array) -> Any:
        self.rows = len(X)
        return super().train(X, y)

    def parameters(self) -> dict[str, Any]:
        w = self.wanted
        most = min(131_072, int(IN_BAG * self.rows))  # its own limit; it allots for all of them
        return {
            "boosting_type": "rf",
            "n_estimators": w.trees,
            "max_depth": -1 if w.depth is None else w.depth,
            "num_leaves": most if w.depth is None else min(2**w.depth, most),
            "subsample": IN_BAG,
            "subsample_freq": 1,
            "feature_fraction_bynode": w.tried / w.features,
            "min_child_samples": 1,
            "min_child_weight": 0,
            "histogram_pool_size": 2048,  # MB; without a limit deep trees take many GB
            "n_jobs": w.threads,
            "random_state": w.seed,
            "verbose": -1,
        }

    def predict(self, X: Array) -> Array:
        # by its booster: the estimator warns that the columns of an array have no names
        found = self.model.booster_.predict(X, num_threads=self.model.n_jobs)
        return two_columns(found) if self.wanted.classes else found

    def size(self) -> int:
        return bytes_written(self.model.booster_.save_model)


class XGBoost(Estimator):
    title, module, packages = "XGBoost rf", "xgboost", ("xgboost-cpu", "xgboost")
    prefix = "XGBRF"
    note = "draws rows without replacement; a tree for each class"

    def parameters(self) -> dict[str, Any]:
        w = self.wanted
        return {
            "n_estimators": w.trees,
            "max_depth": w.depth or 0,
            "tree_method": "hist",
            "subsample": IN_BAG,
            "colsample_bynode": w.tried / w.features,
            "reg_lambda": 0,
            "min_child_weight": 0,
            "n_jobs": w.threads,
            "random_state": w.seed,
        }

    def size(self) -> int:
        return bytes_written(self.model.save_model, "model.ubj")


class XGBoostVector(XGBoost):
    title = "XGBoost rf, vector leaves"
    note = "draws rows without replacement"

    def parameters(self) -> dict[str, Any]:
        return {**super().parameters(), "multi_strategy": "multi_output_tree"}


class SnapML(Estimator):
    title, module, packages = "Snap ML", "snapml", ("snapml",)


class SnapMLBinned(SnapML):
    title = "Snap ML, 256 bins"

    def parameters(self) -> dict[str, Any]:
        return {**super().parameters(), "use_histograms": True}
