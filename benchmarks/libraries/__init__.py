"""The libraries compared, each behind the methods of `Forest`.

Forests are as similar as each library allows: the same number of trees, depth, features tried at a
node and threads, leaves of one row, a bootstrap sample for each tree. The `note` of a library says
what it does differently.
"""

from __future__ import annotations

import logging
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.libraries.forest import Array, Forest, bytes_written, two_columns

# the mean share of distinct rows in a bootstrap sample: what libraries that draw without
# replacement are to draw
IN_BAG = 0.632
LEAST_PROJECTIONS = 5  # YDF tries no fewer combinations of features in a node, so we do not
SUMS = "sums of two features on average, 1 or -1 times each"


class Gpuforest(Forest):
    title, module, packages = "gpuforest", "gpuforest", ("gpuforest",)

    def parameters(self) -> dict[str, Any]:
        # on the CPU even where there is a GPU: the others have no choice
        return {**super().parameters(), "backend": "numba"}

    def size(self) -> int:
        return bytes_written(self.model.save)


class GpuforestOblique(Gpuforest):
    title, note = "gpuforest, oblique", SUMS

    def parameters(self) -> dict[str, Any]:
        tried = max(self.wanted.tried, min(LEAST_PROJECTIONS, self.wanted.features))
        return {**super().parameters(), "feature_combinations": 2.0, "max_features": tried}


class Sklearn(Forest):
    title, module, packages = "scikit-learn", "sklearn.ensemble", ("scikit-learn",)


class Sklearnex(Forest):
    title, module = "scikit-learn-intelex", "sklearnex.ensemble"
    packages = ("scikit-learn-intelex",)

    def train(self, X: Array, y: Array) -> Any:
        self.fallbacks = Fallbacks()
        return super().train(X, y)

    def remarks(self) -> dict[str, Any]:
        return {"fell_back": self.fallbacks.seen}


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


class LightGBM(Forest):
    title, module, packages, prefix = "LightGBM rf", "lightgbm", ("lightgbm",), "LGBM"
    note = "draws rows without replacement; 131,072 leaves at most; a tree for each class"

    def train(self, X: Array, y: Array) -> Any:
        self.rows = len(X)
        return super().train(X, y)

    def parameters(self) -> dict[str, Any]:
        w = self.wanted
        most = min(131_072, int(IN_BAG * self.rows))  # its own limit; it allots for all of them
        return {
            "boosting_type": "rf", "n_estimators": w.trees, "subsample": IN_BAG,
            "max_depth": -1 if w.depth is None else w.depth,
            "num_leaves": most if w.depth is None else min(2**w.depth, most),
            "subsample_freq": 1, "feature_fraction_bynode": w.tried / w.features,
            "min_child_samples": 1, "min_child_weight": 0, "n_jobs": w.threads,
            "histogram_pool_size": 2048,  # MB; without a limit deep trees take many GB
            "random_state": w.seed, "verbose": -1,
        }  # fmt: skip

    def predict(self, X: Array) -> Array:
        # by its booster: the estimator warns that the columns of an array have no names
        found = self.model.booster_.predict(X, num_threads=self.model.n_jobs)
        return two_columns(found) if self.wanted.classes else found

    def size(self) -> int:
        return bytes_written(self.model.booster_.save_model)


class XGBoost(Forest):
    title, module, packages = "XGBoost rf", "xgboost", ("xgboost-cpu", "xgboost")
    prefix, note = "XGBRF", "draws rows without replacement; a tree for each class"

    def parameters(self) -> dict[str, Any]:
        w = self.wanted
        return {
            "n_estimators": w.trees, "max_depth": w.depth or 0, "tree_method": "hist",
            "subsample": IN_BAG, "colsample_bynode": w.tried / w.features, "reg_lambda": 0,
            "min_child_weight": 0, "n_jobs": w.threads, "random_state": w.seed,
        }  # fmt: skip

    def size(self) -> int:
        return bytes_written(self.model.save_model, "model.ubj")


class YDF(Forest):
    title, module, packages = "YDF", "ydf", ("ydf",)

    def train(self, X: Array, y: Array) -> Any:
        w, ydf = self.wanted, self.library
        ydf.verbose(0)
        learner = ydf.RandomForestLearner(
            label="y", num_trees=w.trees, num_candidate_attributes=w.tried, min_examples=1,
            task=ydf.Task.CLASSIFICATION if w.classes else ydf.Task.REGRESSION,
            max_depth=-1 if w.depth is None else w.depth + 1,  # it counts the root
            winner_take_all=False,  # a mean of probabilities, as the others
            compute_oob_performances=False, num_threads=w.threads, random_seed=w.seed,
            **self.splits(),
        )  # fmt: skip
        self.use_threads(w.threads)
        model = learner.train({"x": X, "y": y})
        if w.classes:
            self.order = np.argsort([int(name) for name in model.label_classes()])
        return model

    def splits(self) -> dict[str, Any]:
        """Parameters of splits by other than single features."""
        return {}

    def predict(self, X: Array) -> Array:
        found = self.model.predict({"x": X}, num_threads=self.threads)
        return two_columns(found)[:, self.order] if self.wanted.classes else found

    def use_threads(self, n: int) -> None:
        self.threads = n

    def size(self) -> int:
        return bytes_written(self.model.save)


class YDFOblique(YDF):
    title, note = "YDF, sparse oblique", SUMS

    def splits(self) -> dict[str, Any]:
        return {
            "split_axis": "SPARSE_OBLIQUE",
            "sparse_oblique_num_projections_exponent": 1.0,  # all features, but no more than
            "sparse_oblique_max_num_projections": self.wanted.tried,
            "sparse_oblique_projection_density_factor": 2.0,
            "sparse_oblique_normalization": "MIN_MAX",
            "sparse_oblique_weights": "BINARY",
        }


class Ranger(Forest):
    title, packages = "ranger", ()
    script = Path(__file__).with_name("ranger.R")

    @classmethod
    def version(cls) -> str | None:
        if shutil.which("Rscript") is None:
            return None
        program = "library(jsonlite); cat(as.character(packageVersion('ranger')))"
        done = subprocess.run(["Rscript", "-e", program], capture_output=True, text=True)
        return done.stdout if done.returncode == 0 else None


LIBRARIES: dict[str, type[Forest]] = {
    "gpuforest": Gpuforest, "gpuforest-oblique": GpuforestOblique, "sklearn": Sklearn,
    "sklearnex": Sklearnex, "lightgbm": LightGBM, "xgboost": XGBoost, "ydf": YDF,
    "ydf-oblique": YDFOblique, "ranger": Ranger,
}  # fmt: skip
