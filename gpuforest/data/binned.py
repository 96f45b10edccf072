"""Binned data: a table as codes, made block by block, which every estimator's `fit` takes as X."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import BadZipFile

import numpy as np

from gpuforest.backends.base import Array, Backend, new_codes
from gpuforest.backends.registry import get_host_backend
from gpuforest.common import progress
from gpuforest.common.arguments import byte_count, draw_seed, thread_count
from gpuforest.core.bins import BinEdges, TargetStatistic
from gpuforest.core.forest import Forest
from gpuforest.data import passes
from gpuforest.data.blocks import Blocks
from gpuforest.data.labels import OF_ROWS, Labels
from gpuforest.data.passes import Reader
from gpuforest.data.target_statistics import Numbers
from gpuforest.growing.edges import DEVICE_VALUES
from gpuforest.growing.targets import integer_weights

CODES, REST = "codes.npy", "table.npz"  # the files in the folder of saved data
FORMAT = 1
PARAMETERS = ("max_bins", "min_category_frequency", "categorical_split", "seed")  # of a reader


@dataclass(frozen=True, eq=False)
class BinnedData:
    """Training data as bin codes: a byte or two for each value, in memory or in a file.

    Make it with `BinnedData.from_blocks`, which never holds the table itself, and pass it to the
    `fit` of any estimator in place of X. It brings its own y, sample_weight, groups and blocks of
    time if its blocks had them. The same rows give the same forest as in an array or a frame, with
    the same `random_state` and `max_bins`.

    Attributes
    ----------
    shape : (n_samples, n_features)
    y : array of shape (n_samples,), of survival of pairs of an event and a time, or of the ends of
        an interval, or labels, or None
    sample_weight : float64 array of shape (n_samples,), or None
    groups, blocks : int32 array of shape (n_samples,), the number of each row's group, or block of
        time, or None
    feature_names : list of str, or None
    max_bins, categorical_features, min_category_frequency, categorical_split : as passed
    seed : int, chose the rows that bin edges come from, where there are more than 200,000

    See Also
    --------
    gpuforest.estimate_memory : the memory that a fit takes besides these data.
    """

    by_feature: np.ndarray = field(repr=False)  # the codes, u8 or u16 [F, N]
    edges: BinEdges = field(repr=False)
    y: Any = field(repr=False)
    sample_weight: np.ndarray | None = field(repr=False)
    feature_names: list[str] | None
    max_bins: int | str
    categorical_features: Any
    min_category_frequency: int
    seed: int
    dtype: np.dtype[Any] = field(repr=False)  # that an array of the values would have
    categorical_split: str = "subset"
    # whether target statistics are of classes; None: there are no target statistics
    by_class: bool | None = field(default=None, repr=False)
    groups: np.ndarray | None = field(default=None, repr=False)
    blocks: np.ndarray | None = field(default=None, repr=False)
    # see `BinnedMatrix`
    judged: dict[int, np.ndarray] = field(default_factory=dict, repr=False)

    @classmethod
    def from_blocks(
        cls, blocks: Any, *, target: str | Sequence[str] | None = None,
        sample_weight: str | None = None, groups: str | None = None, time: str | None = None,
        drop: Sequence[str] = (), max_bins: int | str = "auto",
        categorical_features: Any = "from_dtype",
        min_category_frequency: int = 5, categorical_split: str = "subset",
        random_state: Any = None, path: str | os.PathLike[str] | None = None,
        n_jobs: int | None = None, memory_limit: int | str | None = None, verbose: int = 0,
    ) -> BinnedData:  # fmt: skip
        """Bin a table that need not fit into memory, in two passes over its blocks.

        Parameters
        ----------
        blocks : path, list, pyarrow.dataset.Dataset or function
            Parquet or CSV files: a path, a folder of Parquet files, a pattern such as
            `part-*.parquet`, or a list of these. Or a pyarrow Dataset. Or an iterable (no
            iterator), or a function that returns an iterator, of arrays, frames or pyarrow's
            record batches X of shape (n, n_features), or of tuples up to
            (X, y, sample_weight, groups, time), where None stands for what is not there.
        target, sample_weight, groups, time : str, default=None
            The columns of files and frames that are y, the weights, the groups and the labels of
            the rows' blocks of time, the `blocks` of `fit`. For a survival forest `target` names
            two, of events and of times.
        drop : sequence of str
            Columns of files and frames that are left out.
        max_bins, categorical_features, min_category_frequency
            As of the estimators.
        categorical_split : {"subset", "multiway", "ordered_target", "auto"}, default="subset"
            As of the estimators. "ordered_target" and "auto" need y in the blocks: floats are
            numbers to predict, and integers, booleans and strings are classes. Weights and groups
            have a part in these statistics, so `fit` takes no others then.
        random_state : int, RandomState instance or None, default=None
            As of the estimator: the same number gives the same bin edges as the estimator
            finds itself. It matters above 200,000 rows.
        path : path-like, default=None
            A folder to write to, which `BinnedData.load` opens again. The codes stay in a file
            there; memory holds only the parts in use. The folder appears when all is
            written; one that exists is refused.
        n_jobs : int or None, default=None
            Threads; None: as of the estimators.
        memory_limit : int or str, default=None
            Bytes, such as 2_000_000_000, "2GB" or "2GiB", that the codes may take in memory;
            beyond, `path` is needed.
        verbose : int, default=0
            1 prints the stages, 2 their progress.

        Returns
        -------
        BinnedData

        Raises
        ------
        ValueError, TypeError
            A block that does not fit the first one, or is wrong by itself (infinities, a missing
            target, negative weights): the message names the block or file. Blocks that can be
            passed over only once. No rows.
        OSError
            A file that cannot be read or written.

        Examples
        --------
        >>> import numpy as np
        >>> from gpuforest import BinnedData, RandomForestClassifier
        >>> X = np.random.default_rng(0).normal(size=(1000, 4))
        >>> data = BinnedData.from_blocks([(X[:700], X[:700, 0] > 0), (X[700:], X[700:, 0] > 0)])
        >>> data.shape
        (1000, 4)
        >>> RandomForestClassifier(random_state=0).fit(data).score(X, X[:, 0] > 0)
        1.0
        """
        if not isinstance(blocks, Blocks):
            blocks = Blocks(blocks, target, sample_weight, drop, groups=groups, time=time)
        seed = draw_seed(random_state)
        reader = Reader(
            max_bins, categorical_features, min_category_frequency, categorical_split, seed
        )
        return binned_blocks(blocks, reader, path, n_jobs, memory_limit, verbose)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> BinnedData:
        """Open data that `from_blocks` wrote to `path`. Codes are read when they are needed.

        Raises
        ------
        OSError : there is nothing
        ValueError : it holds something else, or is not whole
        """
        folder = Path(path)
        try:
            with (folder / REST).open("rb") as file, np.load(file, allow_pickle=False) as rest:
                # writes stay in memory: kernels are compiled for arrays that may be written
                codes = np.load(folder / CODES, mmap_mode="c", allow_pickle=False)
                data = cls(np.asarray(codes), **_unpacked(rest))
        except (KeyError, ValueError, EOFError, BadZipFile) as error:
            raise ValueError(f"{folder} holds no binned data of this version: {error}") from error
        if data.by_feature.shape[0] != data.edges.n_features:
            raise ValueError(f"{folder} holds codes and edges of different numbers of features")
        return data

    @property
    def shape(self) -> tuple[int, int]:
        return self.by_feature.shape[1], self.by_feature.shape[0]

    @property
    def ndim(self) -> int:
        return 2

    def __len__(self) -> int:
        return self.shape[0]

    def with_codes(self, by_feature: np.ndarray) -> BinnedData:
        """The same data with other codes [F, N]."""
        return replace(self, by_feature=by_feature)

    def take(self, rows: np.ndarray) -> BinnedData:
        """Some rows, in memory."""
        own = {name: getattr(self, name) for name in OF_ROWS[1:]}
        taken: dict[str, Any] = {k: None if v is None else v[rows] for k, v in own.items()}
        taken["judged"] = {f: column[rows] for f, column in self.judged.items()}
        return replace(self, by_feature=np.take(self.by_feature, rows, axis=1), y=None, **taken)

    def code_blocks(self, backend: Backend) -> Iterator[tuple[int, int, Array]]:
        """The codes as `edges.encode_blocks` gives them, in the layout of the backend."""
        codes = self.by_feature.T
        if backend.on_host:
            yield 0, len(self), codes
            return
        # a row of codes on a device is longer than F: one row says how long
        sample = backend.encode(np.zeros((1, self.shape[1]), np.float32), self.edges)
        size = max(1, DEVICE_VALUES // self.shape[1])
        for begin in range(0, len(self), size):
            end = min(begin + size, len(self))
            block = new_codes(end - begin, sample.shape[1], sample.dtype, backend)
            block[:, : self.shape[1]] = backend.asarray(np.ascontiguousarray(codes[begin:end]))
            yield begin, end, block


class FitInput(NamedTuple):
    """What a fit was called with, or what binned data bring."""

    X: Any
    y: Any = None
    sample_weight: Any = None
    groups: Any = None
    blocks: Any = None
    grown: tuple[Forest, ...] = ()  # new trees that other processes have grown, by their numbers
    init_score: Any = None  # raw predictions before the first round
    exposure: Any = None  # that counts and amounts are proportional to
    row_ids: Any = None  # whose hashes say how often rows count in Poisson bags
    kept: Any = None  # trees of an earlier fit, see estimators/forgetting.py
    keep_bytes: int = 0  # what tables for deletions may take, see estimators/kept.py

    @classmethod
    def of(
        cls, X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None,
        blocks: Any = None, row_ids: Any = None, keep_bytes: int = 0,
    ) -> FitInput:  # fmt: skip
        if isinstance(X, FitInput):
            return X
        given = dict(zip(OF_ROWS, (y, sample_weight, groups, blocks), strict=True))
        for name, values in given.items() if isinstance(X, BinnedData) else ():
            own = getattr(X, name)
            if values is None:
                given[name] = own
            elif X.edges.statistics and name != "blocks" and values is not own:
                raise ValueError(
                    "the data have target statistics of their own y, sample_weight and groups: "
                    f"pass no other {name} to fit (BinnedData.from_blocks takes them), or bin "
                    "with categorical_split='subset'"
                )
        return cls(X, **given, row_ids=row_ids, keep_bytes=keep_bytes)


def binned_blocks(
    source: Blocks, reader: Reader, path: str | os.PathLike[str] | None, n_jobs: int | None,
    memory_limit: int | str | None, verbose: int,
) -> BinnedData:  # fmt: skip
    """See `BinnedData.from_blocks`."""
    limit = byte_count(memory_limit)
    backend, rows = get_host_backend(thread_count(n_jobs)), passes.Rows()
    place = None if path is None else Path(path)
    new: AbstractContextManager[Path | None] = unfinished(place) if place else nullcontext()
    with progress.printing(verbose), new as folder:
        with progress.stage("learning bins"):
            summary = passes.summarised(source, reader, rows, backend)
            data, ordered = learned(reader, summary, rows, backend)
        shape, dtype = (data.edges.n_features, summary.n_rows), data.edges.code_dtype
        n_bytes = shape[0] * shape[1] * np.dtype(dtype).itemsize
        if folder is None and limit is not None and n_bytes > limit:
            raise ValueError(
                f"the codes of {shape[1]:,} rows take {n_bytes / 1e6:,.0f} MB, more than "
                f"memory_limit={memory_limit}: pass path, a folder on a disk"
            )
        with progress.stage("binning"):
            codes = np.empty(shape, dtype) if folder is None else codes_in(folder, shape, dtype)
            passes.write_codes(source, reader, data.edges, ordered, codes, backend)
        data = data.with_codes(codes)
        if not (folder and place):
            return data
        assert isinstance(codes, np.memmap)
        codes.flush()
        np.savez(folder / REST, allow_pickle=False, **_packed(data))
        folder.rename(place)
        return BinnedData.load(place)


def learned(
    reader: Reader, summary: passes.Summary, rows: passes.Rows, backend: Backend
) -> tuple[BinnedData, Numbers]:
    """The data of all rows without their codes, after the first pass."""
    y, weights, groups = rows.target(), rows.checked_weights(), rows.labels("groups")
    integers = None if weights is None else integer_weights(weights)
    edges, ordered, judged = reader.edges(summary, y, integers, groups, backend)
    names = getattr(reader, "feature_names_in_", None)  # of strings only
    data = BinnedData(
        by_feature=np.empty((edges.n_features, 0), edges.code_dtype),
        edges=edges,
        y=y,
        sample_weight=weights,
        feature_names=None if names is None else names.tolist(),
        dtype=np.dtype(summary.sample.values.dtype),
        by_class=reader.has_classes(y) if ordered else None,
        groups=groups,
        blocks=rows.labels("blocks"),
        judged=judged,
        **{name: getattr(reader, name) for name in ("categorical_features", *PARAMETERS)},
    )
    return data, ordered


@contextmanager
def unfinished(path: Path) -> Iterator[Path]:
    """A temporary folder, renamed to `path` at the end; an existing path is an error."""
    if path.exists():
        raise FileExistsError(f"{path} exists: remove it, or pass another path")
    folder = path.with_name(f".{path.name}.{os.getpid()}.unfinished")
    folder.mkdir(parents=True)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def codes_in(folder: Path, shape: tuple[int, int], dtype: Any) -> np.ndarray:
    """An array in a file for codes. It reserves the disk space: a full disk is an error here."""
    file = folder / CODES
    codes = np.lib.format.open_memmap(file, "w+", dtype, shape)
    with file.open("r+b") as opened:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(opened.fileno(), 0, file.stat().st_size)
    return codes


def _packed(data: BinnedData) -> dict[str, np.ndarray]:
    """All but the codes as arrays; what is no array is JSON."""
    edges, wanted = data.edges, data.categorical_features
    if wanted is not None and not isinstance(wanted, str):
        wanted = np.asarray(wanted).tolist()
    facts = {name: getattr(data, name) for name in ("feature_names", "by_class", *PARAMETERS)} | {
        "format": FORMAT,
        "categorical_features": wanted,
        "dtype": data.dtype.str,
        "categories": [[f, list(values)] for f, values in edges.categories.items()],
        "statistics": [[f, *map(list, statistic)] for f, statistic in edges.statistics.items()],
    }
    of_rows = {name: getattr(data, name) for name in OF_ROWS}
    if isinstance(data.y, Labels):
        y = of_rows.pop("y")
        facts |= {"classes": y.classes.tolist(), "classes_dtype": y.classes.dtype.str}
        of_rows["label_codes"] = y.codes
    arrays = {"values": edges.values, "offsets": edges.offsets, "kinds": edges.kinds}
    arrays |= {name: values for name, values in of_rows.items() if values is not None}
    arrays |= {f"judged_{f}": column for f, column in data.judged.items()}
    return arrays | {"facts": np.array(json.dumps(facts))}


def _unpacked(rest: Any) -> dict[str, Any]:
    """The fields of `BinnedData` but the codes."""
    facts = json.loads(str(rest["facts"]))
    if facts.pop("format") != FORMAT:
        raise ValueError("another format")
    categories = {f: tuple(values) for f, values in facts.pop("categories")}
    statistics = {
        f: TargetStatistic(tuple(known), tuple(values))
        for f, known, values in facts.pop("statistics", [])
    }
    edges = BinEdges(rest["values"], rest["offsets"], rest["kinds"], categories, statistics)
    of_rows = {name: rest.get(name) for name in OF_ROWS}
    if "label_codes" in rest:
        classes = np.array(facts.pop("classes"), facts.pop("classes_dtype"))
        of_rows["y"] = Labels(rest["label_codes"], classes)
    dtype = np.dtype(facts.pop("dtype"))
    judged = {f: rest[f"judged_{f}"] for f, known in statistics.items() if known.categories}
    return {"edges": edges, "dtype": dtype, "judged": judged, **of_rows, **facts}
