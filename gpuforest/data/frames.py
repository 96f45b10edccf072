"""Files become frames of narwhals over pyarrow, and frames become features, target and weights."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import IO, Any

import numpy as np

from gpuforest.common.progress import stage
from gpuforest.common.text import did_you_mean
from gpuforest.data import arrays, categories, labels
from gpuforest.data import files as paths
from gpuforest.data.files import PARQUET
from gpuforest.data.text import Reading, read_text, typed

PARQUET_START = b"PAR1"
UNNAMED = "Unnamed: 0"  # an index that pandas wrote
MAX_CLASSES = 20  # an integer target with more distinct values is a quantity


def read_frame(path: str | Path, reading: Reading | None = None, text: Collection[str] = ()) -> Any:
    """Read CSV or Parquet (file, folder, pattern, or "-": standard input) as a frame of narwhals.
    `text` names columns of strings that may look like numbers."""
    name, reading = str(path), reading or Reading()
    with stage("load"):
        files = paths.named_files(name)
        text = {column.strip() for column in (*text, *reading.dates)}
        frames = [_read_file(file, reading, text) for file in files]
        if files == [name] or not files[0].lower().endswith(PARQUET):
            [frame] = frames
        else:
            frame = _stacked(frames, files, name, text)
        if len(frame) == 0:
            raise ValueError(f"{name} has no rows")
        return with_date_parts(frame, reading)


def _read_file(name: str, reading: Reading, text: Collection[str]) -> Any:
    try:
        with paths.opened(name) as file:
            start = file.read(len(PARQUET_START))
            file.seek(0)
            if start == PARQUET_START or name.lower().endswith(PARQUET):
                return _read_parquet(file, name)
            names, columns = read_text(file, name)
    except (*paths.DAMAGED, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:  # not of what is in the file
            raise
        raise ValueError(f"{name} is no whole compressed file: {error}") from error
    # as pandas calls columns without a name
    names = [column.strip() or f"Unnamed: {i}" for i, column in enumerate(names)]
    require_unique(names, name)
    columns = typed(columns, reading, [column in text for column in names])
    import narwhals.stable.v2 as nw
    import pyarrow as pa

    return nw.from_native(pa.table(columns, names), eager_only=True)


def _stacked(frames: list[Any], files: list[str], path: str, text: Collection[str]) -> Any:
    """Frames of the same columns as one, with the columns that folders give."""
    import narwhals.stable.v2 as nw
    import pyarrow as pa

    for file, frame in zip(files, frames, strict=True):
        refuse_other_columns(file, frame.columns, files[0], frames[0].columns)
    try:
        table = pa.concat_tables([f.to_native() for f in frames], promote_options="permissive")
    except pa.ArrowException as error:
        raise ValueError(f"{path}: the files do not fit together: {error}") from error
    file_of_row = np.repeat(np.arange(len(files)), [len(frame) for frame in frames])
    for name, values in folder_columns([(file, path) for file in files], text).items():
        if name not in table.column_names:
            table = table.append_column(name, values.take(file_of_row))
    return nw.from_native(table, eager_only=True)


def refuse_other_columns(file: str, columns: list[str], first: str, expected: list[str]) -> None:
    if other := sorted({*columns} ^ {*expected}):
        raise ValueError(f"{file} has other columns than {first}: {listed(other)}")


def folder_columns(files: list[tuple[str, str]], text: Collection[str] = ()) -> dict[str, Any]:
    """Columns that folders such as year=2020 give, with a value for each (file, path naming it)."""
    import pyarrow as pa

    parts = [paths.partition_of(file, path) for file, path in files]
    names = list(dict.fromkeys(name for part in parts for name in part))
    texts = [pa.array([part.get(name, "") for part in parts], pa.string()) for name in names]
    columns = [pa.chunked_array([column]) for column in texts]
    return dict(zip(names, typed(columns, Reading(), [n in text for n in names]), strict=True))


def _read_parquet(file: IO[bytes], name: str) -> Any:
    paths.require_pyarrow()
    import narwhals.stable.v2 as nw
    import pyarrow as pa
    from pyarrow import parquet

    try:
        source = parquet.ParquetFile(pa.PythonFile(file, "r"))
        require_unique([column.strip() for column in source.schema_arrow.names], name)
        table = source.read()
    except (pa.ArrowInvalid, OSError) as error:
        raise ValueError(f"{name} is no Parquet file: {str(error).splitlines()[0]}") from error
    return nw.from_native(plain_table(table), eager_only=True)


def plain_table(table: Any) -> Any:
    """A table of pyarrow with stripped names, without the index column of pandas."""
    index = (table.schema.pandas_metadata or {}).get("index_columns", [])
    table = table.drop_columns([c for c in index if isinstance(c, str)])
    names = [column.strip() for column in table.column_names]
    return table.rename_columns(names).replace_schema_metadata()


def require_unique(names: list[str], path: str) -> None:
    if len(set(names)) < len(names):
        twice = [name for name, n in Counter(names).items() if n > 1]
        raise ValueError(
            f"{path} has several columns of one name: {listed(twice)}; rename or remove all but one"
        )


def listed(names: Sequence[str], most: int = 10) -> str:
    """Names in quotes, the first few of many."""
    text = ", ".join(repr(n) for n in names[:most])
    return text if len(names) <= most else f"{text} and {len(names) - most} more"


PARTS = ("year", "month", "weekday", "seconds")
EXAMPLE = "2020-12-31 or 2020-12-31T23:59:59"


def with_date_parts(frame: Any, reading: Reading) -> Any:
    """The frame of narwhals with four numbers in place of each column of dates. `when` becomes
    `when_year`, `when_month` (1 to 12), `when_weekday` (0: Monday) and `when_seconds` (since 1970,
    in UTC without a zone)."""
    import narwhals.stable.v2 as nw

    if not {*reading.dates} & {*frame.columns}:
        return frame
    columns = []
    for name in frame.columns:
        if name not in reading.dates:
            columns.append(frame[name])
            continue
        numbers = _parts(frame[name], reading.date_format)
        for part, values in zip(PARTS, numbers.T, strict=True):
            if f"{name}_{part}" in frame.columns:
                raise ValueError(f"--dates {name}: there is a column {name}_{part} already")
            backend = frame.implementation
            columns.append(nw.new_series(f"{name}_{part}", np.array(values), backend=backend))
    return columns[0].to_frame().with_columns(*columns)


def _parts(column: Any, form: str) -> np.ndarray:
    """The parts f64[N, 4] of each date."""
    parts: dict[Any, tuple[float, ...]] = {None: (np.nan,) * len(PARTS)}
    missing = column.is_null().to_list()
    values = [None if m else v for v, m in zip(column.to_list(), missing, strict=True)]
    for value in dict.fromkeys(v for v in values if v is not None):
        when = _moment(value, form, column.name)
        zoned = when if when.tzinfo else when.replace(tzinfo=UTC)
        parts[value] = when.year, when.month, when.weekday(), zoned.timestamp()
    return np.array([parts[value] for value in values])


def _moment(value: Any, form: str, name: str) -> datetime:
    if isinstance(value, datetime):
        return value
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day)
    text = str(value).strip()
    try:
        return datetime.strptime(text, form) if form else datetime.fromisoformat(text)
    except ValueError as error:
        hint = (
            f"it is not of the form {form!r}"
            if form
            else f"write it as {EXAMPLE}, or say its form: --date-format '%d/%m/%Y'"
        )
        raise ValueError(f"--dates {name}: {text!r} is no date; {hint}") from error


PARTS_OF_EFFECTS = ["y", "treatment", "instrument"]


class Treated(tuple[str, ...]):
    """Columns of the target, a treatment and perhaps an instrument: fields of `y`."""


@dataclass(frozen=True, eq=False)
class Table:
    """A file's columns by their part: host data."""

    frame: Any  # features [N, F] of narwhals, by name: numbers, truth values and strings
    y: np.ndarray  # target [N], without missing values
    weight: np.ndarray | None  # f64[N]
    groups: np.ndarray | None = None  # the labels [N] of the rows' groups, or blocks of time
    notes: tuple[str, ...] = ()  # what a user should know of how it was made

    @property
    def X(self) -> Any:
        """The features as the frame that pyarrow has."""
        return self.frame.to_native()

    @property
    def names(self) -> list[str]:
        """The features' names."""
        return list(self.frame.columns)

    def take(self, rows: np.ndarray) -> Table:
        """Some of the rows."""
        weight, groups = (None if a is None else a[rows] for a in (self.weight, self.groups))
        parts = {"y": self.y[rows], "weight": weight, "groups": groups}
        return replace(self, frame=self.frame[rows], **parts)


def load_table(
    path: str | Path, target: str | Sequence[str], *, reading: Reading | None = None,
    text: Collection[str] = (), **parts: Any,
) -> Table:  # fmt: skip
    """Read a file to train on or to test with; parameters as of `read_frame` and `split_columns`.
    Errors name the fault of the file, or the column that is absent or unfit for its part."""
    others: dict[Any, str] = dict.fromkeys(_names(target), "the target")
    others |= {parts.get("weight"): "the weight"}
    others |= {parts.get("groups"): "the group or the time"}
    others |= dict.fromkeys(parts.get("drop", ()), "dropped")
    dates = reading.dates if reading else ()
    for name, part in others.items():
        if name is not None and name.strip() in dates:
            raise ValueError(f"--dates {name.strip()}: this column is {part}")
    frame = read_frame(path, reading, text)
    with stage("load"):
        return split_columns(frame, target, **parts)


def parts_of(y: np.ndarray, task: str) -> dict[str, np.ndarray]:
    """The arguments of `fit` that a table's target holds: of effects also the treatment."""
    return {name: y[name] for name in y.dtype.names or ()} if task == "effects" else {"y": y}


def split_columns(
    frame: Any, target: str | Sequence[str], *, weight: str | None = None, drop: Sequence[str] = (),
    features: Sequence[str] | None = None, drop_missing_target: bool = False,
    groups: str | None = None,
) -> Table:  # fmt: skip
    """Features, target, weights and groups of a frame; a target of two columns is (time, event)."""
    notes, is_treated = [], isinstance(target, Treated)
    target, *more = find_columns(frame, _names(target))
    drop = find_columns(frame, drop)
    weight, groups = (n if n is None else find_columns(frame, [n])[0] for n in (weight, groups))
    if target in (weight, groups, *more, *drop):
        raise ValueError(
            f"column {target!r} is the target: it cannot be dropped, or be the weight, the "
            "group, the time, the event or the treatment"
        )
    missing = is_missing(frame[target])
    if drop_missing_target and missing.any():
        notes.append(
            f"{missing.sum():,} of {len(frame):,} rows have no {target!r} and are left out"
        )
        frame = frame.filter((~missing).tolist())
        if len(frame) == 0:
            raise ValueError(f"the target {target!r} is missing in all rows")
    y = _target(frame[target], drop_missing_target)
    if is_treated:
        parts: list[Any] = [y, *(frame[name].to_numpy() for name in more)]
        named: Any = {"names": PARTS_OF_EFFECTS[: len(parts)]}
        y = np.rec.fromarrays(parts, **named)
    elif more:
        y = _survival(frame[more[0]], y, target)
    weights = None if weight is None else _weights(frame[weight])
    if features is None:
        apart = {target, weight, groups, *more, *drop}
        if UNNAMED in frame.columns and UNNAMED not in apart:
            notes.append(f"column {UNNAMED!r}, an index that pandas wrote, is left out")
            apart.add(UNNAMED)
        features = [name for name in frame.columns if name not in apart]
    if not features:
        raise ValueError("no column is left to be a feature")
    X = select_features(frame, features)[0]
    return Table(X, y, weights, None if groups is None else _groups(frame[groups]), tuple(notes))


def select_features(frame: Any, names: Sequence[str]) -> tuple[Any, list[str]]:
    """The columns of a model in its order, and other columns' names; absent ones are errors."""
    # a reader of files leaves out blanks around names; pandas, which may have read the data of the
    # training, does not
    present = set(frame.columns)
    bare = {name.strip(): name for name in names if name not in present}
    frame = frame.rename({name: bare[name] for name in bare.keys() & present - set(names)})
    wanted, present = set(names), set(frame.columns)
    if absent := [name for name in names if name not in present]:
        raise ValueError(
            f"the model needs {_count(absent, 'column')} absent from the data: {listed(absent)}"
        )
    features = frame.select(names)
    columns = features.schema.items()
    if other := [name for name, dtype in columns if not _may_be(dtype, features, name)]:
        raise ValueError(
            f"{_count(other, 'feature column')} neither numeric nor of strings: {listed(other)}; "
            "leave such columns out with --drop, or read dates as numbers with --dates"
        )
    return features, [name for name in frame.columns if name not in wanted]


def is_class_target(y: np.ndarray | labels.Labels) -> bool:
    """True for classes: strings, booleans, or at most 20 whole numbers, each twice on average."""
    if isinstance(y, labels.Labels) or y.dtype.kind not in "iuf":
        return True
    distinct = np.unique(y)
    is_whole = y.dtype.kind != "f" or bool((distinct == np.round(distinct)).all())
    return is_whole and len(distinct) <= MAX_CLASSES and 2 * len(distinct) <= len(y)


def find_columns(frame: Any, names: Sequence[str]) -> list[str]:
    """The columns of these names, blanks ignored; the error of an absent one suggests names."""
    present = list(frame.columns)
    columns = [name if name in present else name.strip() for name in names]
    if absent := [name for name in columns if name not in present]:
        hint = did_you_mean(absent[0], present) or f": there are {listed(present)}"
        if all(arrays.is_number(name) for name in present):
            hint += "; the first line should hold the columns' names, not numbers"
        raise ValueError(f"no column {absent[0]!r}{hint}")
    return columns


def _names(target: str | Sequence[str]) -> list[str]:
    """The columns of the target."""
    return [target] if isinstance(target, str) else [*target]


def _refuse_missing(column: Any, called: str, advice: str = "") -> None:
    if n_missing := int(is_missing(column).sum()):
        raise ValueError(f"{called} is missing in {n_missing} of {len(column)} rows{advice}")


def _target(column: Any, had_gaps: bool = False) -> np.ndarray:
    advice = "; --drop-missing-target leaves these rows out"
    _refuse_missing(column, f"the target {column.name!r}", advice)
    y = column.to_numpy()
    is_whole = y.dtype.kind == "f" and bool((np.abs(y) < 2**53).all())
    if had_gaps and is_whole and (y == np.round(y)).all():
        y = y.astype(np.int64)  # in a column with gaps, whole numbers are read as floats
    return np.asarray(y if y.dtype.kind in "biuf" else y.astype(np.str_))


def _survival(column: Any, time: np.ndarray, target: str) -> np.ndarray:
    """Event (or cause) of each row, and its time of event or censoring."""
    event = np.asarray(column.to_numpy())
    if event.dtype.kind not in "biuf" or not ((event >= 0) & (event == np.round(event))).all():
        raise ValueError(
            f"the event column {column.name!r} must hold 1 (or true) where the event came, or the "
            "number of its cause, and 0 (or false) where it had not come by the time of the row"
        )
    if (arrays.part_of(column.name), arrays.part_of(target)) == (2, 0):
        raise ValueError(f"exchange --event {column.name!r}, named a time, and --target {target!r}")
    if time.dtype.kind not in "iuf":
        raise ValueError(f"the target {target!r} must hold the times of the events: numbers")
    return np.rec.fromarrays([event, time], dtype=[("event", float), ("time", float)])


def is_missing(column: Any) -> np.ndarray:
    """Which values of a series are missing: null or NaN, bool[N]."""
    missing = column.is_null()
    missing = missing | column.is_nan() if column.dtype.is_float() else missing
    return np.asarray(missing.to_numpy())


def _may_be(dtype: Any, frame: Any, name: str) -> bool:
    """Whether a column may be a feature: of numbers, truth values, categories, or nothing."""
    import narwhals.stable.v2 as nw

    if dtype.is_numeric() or isinstance(dtype, nw.Boolean | nw.String | nw.Categorical | nw.Enum):
        return True
    return isinstance(dtype, nw.Unknown) and frame[name].null_count() == len(frame)


def string_columns(frame: Any) -> list[str]:
    """The columns of strings, which are categories by themselves."""
    return [frame.columns[i] for i in categories.columns_of_categories(frame)]


def _weights(column: Any) -> np.ndarray:
    if not column.dtype.is_numeric():
        raise ValueError(f"the weight column {column.name!r} is not numeric")
    _refuse_missing(column, f"the weight column {column.name!r}")
    weights = np.asarray(column.to_numpy(), np.float64)
    n_wrong = int(((weights < 0) | np.isinf(weights)).sum())
    if n_wrong or not weights.any():
        what = f"negative or infinite in {n_wrong} of {len(weights)}" if n_wrong else "zero in all"
        raise ValueError(f"the weight column {column.name!r} is {what} rows")
    return weights


def _groups(column: Any) -> np.ndarray:
    _refuse_missing(column, f"the column {column.name!r} of groups or times")
    codes, ordered = arrays.ordered_codes(column.to_native())
    return codes if ordered else np.asarray(column.to_numpy())


def _count(names: Sequence[str], noun: str) -> str:
    return f"a {noun} that is" if len(names) == 1 else f"{len(names)} {noun}s that are"
