"""Real data sets: those that a folder holds, and those that come with the checkout.

The folder is given by --data, or is `shared/data` beside the checkout. What is not there is
skipped with a word; nothing is downloaded.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

Array = np.ndarray

ROOT = Path(__file__).parents[1]
BESIDE = ROOT.parent / "shared" / "data"


def load(name: str, folder: Path | None = None) -> tuple[Array, Array] | None:
    """X f32[N, F] with NaN for missing and y, or None where the file is absent."""
    try:
        X, y = {**REAL, **SMALL}[name](folder or BESIDE)
    except FileNotFoundError as error:
        print(f"{name}: skipped, there is no {Path(error.filename).name} (--data DIR)")
        return None
    return np.ascontiguousarray(X, dtype=np.float32), np.asarray(y)


def covtype(folder: Path) -> tuple[Array, Array]:
    with np.load(folder / "covtype.npz") as file:
        return file["X"], file["y"]


def letter(folder: Path) -> tuple[Array, Array]:
    return _columns(pd.read_csv(folder / "letter.csv.gz"), "Letter")


def spambase(_: Path) -> tuple[Array, Array]:
    return _columns(pd.read_csv(ROOT / "data" / "spambase.csv.gz"), "class")


def digits(_: Path) -> tuple[Array, Array]:
    from sklearn.datasets import load_digits

    return load_digits(return_X_y=True)


def cancer(_: Path) -> tuple[Array, Array]:
    from sklearn.datasets import load_breast_cancer

    return load_breast_cancer(return_X_y=True)


def diabetes(_: Path) -> tuple[Array, Array]:
    from sklearn.datasets import load_diabetes

    return load_diabetes(return_X_y=True)


def adult(folder: Path) -> tuple[Array, Array]:
    """Categories become their numbers."""
    frame = pd.read_csv(folder / "adult_train.csv.gz", na_values="?")
    for name in frame.columns[frame.dtypes == frame["class"].dtype].drop("class"):
        codes = frame[name].astype("category").cat.codes
        frame[name] = codes.where(codes >= 0)
    return _columns(frame, "class")


def california(folder: Path) -> tuple[Array, Array]:
    """207 values are missing; the one column of categories becomes their numbers."""
    frame = pd.read_csv(folder / "california_housing.csv.gz")
    frame["ocean_proximity"] = frame["ocean_proximity"].astype("category").cat.codes
    return _columns(frame, "median_house_value")


def bike(folder: Path) -> tuple[Array, Array]:
    """Without the row's number and the two counts that add up to the target."""
    frame = pd.read_csv(folder / "bike_hour.csv.gz")
    return _columns(frame.drop(columns=["instant", "casual", "registered"]), "cnt")


def _columns(frame: pd.DataFrame, target: str) -> tuple[Array, Array]:
    y = frame.pop(target).to_numpy()
    if y.dtype.kind not in "biuf":
        y = np.unique(y.astype(str), return_inverse=True)[1]
    return frame.to_numpy(), y


REAL: dict[str, Callable[[Path], tuple[Array, Array]]] = {
    "covtype": covtype,
    "letter": letter,
    "spambase": spambase,
    "digits": digits,
    "california": california,
    "bike": bike,
}
# a few hundred rows, to see what a fit costs at least; and adult, for choices of parameters
SMALL: dict[str, Callable[[Path], tuple[Array, Array]]] = {
    "cancer": cancer,
    "diabetes": diabetes,
    "adult": adult,
}
REGRESSIONS = ("california", "bike", "diabetes")
