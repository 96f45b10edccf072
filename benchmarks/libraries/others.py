"""Libraries with an interface of their own: YDF, fastforest, ranger in R."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from benchmarks.libraries.forest import Array, Forest, bytes_written, two_columns


class YDF(Forest):
    title, module, packages = "YDF", "ydf", ("ydf",)
    binned: ClassVar[bool] = False

    def train(self, X: Array, y: Array) -> Any:
        w, ydf = self.wanted, self.library
        ydf.verbose(0)
        learner = ydf.RandomForestLearner(
            label="y",
            task=ydf.Task.CLASSIFICATION if w.classes else ydf.Task.REGRESSION,
            num_trees=w.trees,
            max_depth=-1 if w.depth is None else w.depth + 1,  # it counts the root
            num_candidate_attributes=w.tried,
            min_examples=1,
            winner_take_all=False,  # a mean of probabilities, as the others
            compute_oob_performances=False,
            discretize_numerical_columns=self.binned,
            num_threads=w.threads,
            random_seed=w.seed,
            **self.splits(),
        )
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


class YDFBinned(YDF):
    title = "YDF, 255 bins"
    binned = True


class YDFOblique(YDF):
    title, note = "YDF, sparse oblique", "sums of two features on average, 1 or -1 times each"

    def splits(self) -> dict[str, Any]:
        return {
            "split_axis": "SPARSE_OBLIQUE",
            "sparse_oblique_num_projections_exponent": 1.0,  # all features, but no more than
            "sparse_oblique_max_num_projections": self.wanted.tried,
            "sparse_oblique_projection_density_factor": 2.0,
            "sparse_oblique_normalization": "MIN_MAX",
            "sparse_oblique_weights": "BINARY",
        }


class FastForest(Forest):
    """Its threads are as many as RAYON_NUM_THREADS says."""

    title, module, packages = "fastforest", "fastforest", ("fastforest",)
    note = "no limit of depth; a sample of 320 rows at most judges a split"

    def parameters(self) -> dict[str, Any]:
        w = self.wanted
        # 2 is the least node that may be split: leaves of one row
        return {"n_trees": w.trees, "max_features": w.tried / w.features, "min_node_size": 2}

    def train(self, X: Array, y: Array) -> Any:
        kind = f"FastForest{'Classifier' if self.wanted.classes else ''}"
        return getattr(self.library, kind)(seed=self.wanted.seed, **self.parameters()).fit(X, y)

    def size(self) -> int:
        return bytes_written(self.model.save)


class FastForestOwn(FastForest):
    title = "fastforest, its defaults"
    note = f"{FastForest.note}; 32 to 64 trees, larger leaves, more features tried"

    def parameters(self) -> dict[str, Any]:
        return {}


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
