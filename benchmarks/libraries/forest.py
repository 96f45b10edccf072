"""The methods of a library's forest: fit, predict, set the threads, weigh the model."""

from __future__ import annotations

import importlib
import os
import pickle
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

Array = np.ndarray


@dataclass(frozen=True)
class Wanted:
    """The forest asked of every library."""

    trees: int
    depth: int | None
    tried: int  # features at a node
    features: int
    classes: int  # 0: the target is a number
    threads: int
    seed: int


class Forest:
    """A forest with scikit-learn's interface, whose library is imported when its first is made."""

    title: ClassVar[str]
    module: ClassVar[str]
    packages: ClassVar[tuple[str, ...]]  # of the package index: any of these
    note: ClassVar[str] = ""
    script: ClassVar[Path | None] = None  # in another language: measures a fit by itself
    prefix: ClassVar[str] = "RandomForest"

    def __init__(self, wanted: Wanted) -> None:
        self.wanted = wanted
        self.library = importlib.import_module(self.module)
        self.model: Any = None

    @classmethod
    def version(cls) -> str | None:
        """None where the library is not installed."""
        for package in cls.packages:
            try:
                return version(package)
            except PackageNotFoundError:
                continue
        return None

    def parameters(self) -> dict[str, Any]:
        w = self.wanted
        return {
            "n_estimators": w.trees, "max_depth": w.depth, "max_features": w.tried,
            "n_jobs": w.threads, "random_state": w.seed,
        }  # fmt: skip

    def train(self, X: Array, y: Array) -> Any:
        """The library's model."""
        kind = "Classifier" if self.wanted.classes else "Regressor"
        return getattr(self.library, self.prefix + kind)(**self.parameters()).fit(X, y)

    def fit(self, X: Array, y: Array) -> None:
        self.model = None  # else two models at once would count as memory of the fit
        self.model = self.train(X, y)

    def predict(self, X: Array) -> Array:
        """Of classes the probabilities [n, C], else numbers [n]."""
        return self.model.predict_proba(X) if self.wanted.classes else self.model.predict(X)

    def use_threads(self, n: int) -> None:
        """From now on, for predictions."""
        self.model.set_params(n_jobs=n)

    def size(self) -> int:
        """Bytes of the model as the library writes it."""
        counter = Counter()
        pickle.dump(self.model, counter, protocol=5)
        return counter.n

    def remarks(self) -> dict[str, Any]:
        """What else the results should hold."""
        return {}


class Counter:
    """A file that only counts."""

    n = 0

    def write(self, part: Any) -> int:
        self.n += (size := memoryview(part).nbytes)
        return size


def bytes_written(write: Callable[[str], Any], name: str = "model") -> int:
    """By a function of a path, to a file or to a folder of files."""
    with tempfile.TemporaryDirectory() as folder:
        write(os.path.join(folder, name))
        return sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())


def two_columns(found: Array) -> Array:
    """Probabilities [n, 2] from those of the second class [n]; others unchanged."""
    return np.stack([1 - found, found], axis=1) if found.ndim == 1 else found
