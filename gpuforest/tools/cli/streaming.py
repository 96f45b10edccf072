"""Parquet files that are read block by block, so that they need not fit into memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpuforest.data.binned import BinnedData
from gpuforest.data.blocks import Block, Blocks, named
from gpuforest.data.columns import Table, split_columns
from gpuforest.data.dates import with_date_parts
from gpuforest.data.files import PARQUET, named_files
from gpuforest.data.libraries import has_pyarrow
from gpuforest.data.values import Reading


def streams(path: str) -> bool:
    """Whether a path names Parquet files, which can be read by blocks."""
    return has_pyarrow() and all(f.lower().endswith(PARQUET) for f in named_files(path))


def frames(path: str, reading: Reading) -> Iterator[Any]:
    """Frames of narwhals of the files' rows; errors name the rows.

    Raises
    ------
    ValueError : there are no rows
    """
    blocks = Blocks(path)
    if not blocks.n_rows:
        raise ValueError(f"{path} has no rows")
    for block in blocks:
        with named(block.name):
            yield as_read(block.X, reading)


def as_read(table: Any, reading: Reading) -> Any:
    """A table of a block as `read_frame` would have read it."""
    import narwhals.stable.v2 as nw

    frame = nw.from_native(table, eager_only=True)
    there = [column for column in reading.dates if column in frame.columns]
    return with_date_parts(frame, there, reading.date_format)


class TableBlocks(Blocks):
    """Blocks of features, target and weights; parameters as of `load_table`."""

    def __init__(
        self, path: str, target: str, weight: str | None, drop: Sequence[str], reading: Reading
    ) -> None:
        super().__init__(path)
        self._path = path
        self._names: dict[str, Any] = {"target": target, "weight": weight, "drop": drop}
        self._reading = reading
        self._first: Table | None = None
        for _ in self:
            break

    def _parts(self, name: str, block: Any) -> Block:
        table = split_columns(as_read(block, self._reading), **self._names)
        self._first = self._first or table
        return Block(name, table.X, table.y, table.weight)

    @property
    def first(self) -> Table:
        """The first block as a table.

        Raises
        ------
        ValueError : the files have no rows
        """
        if self._first is None:
            raise ValueError(f"{self._path} has no rows")
        return self._first


@dataclass(frozen=True, eq=False)
class Streamed:
    """What `train` needs of data that were binned by blocks, named as in `columns.Table`.

    frame : the first block's
    """

    X: BinnedData
    frame: Any

    @property
    def y(self) -> Any:
        return self.X.y

    @property
    def weight(self) -> Any:
        return self.X.sample_weight


def binned(
    blocks: TableBlocks, estimator: Any, given: dict[str, Any], folder: Path | None
) -> Streamed:
    """The blocks' data, binned as the estimator will need them.

    given : the parameters; gets the seed of the bins
    folder : where the codes stay, on a disk; None: in memory
    """
    names = ("max_bins", "categorical_features", "min_category_frequency", "random_state")
    data = BinnedData.from_blocks(
        blocks,
        **{name: getattr(estimator, name) for name in names},
        n_jobs=getattr(estimator, "n_jobs", -1),
        path=None if folder is None else folder / "binned",
    )
    given["random_state"] = data.seed
    return Streamed(data, blocks.first.frame)
