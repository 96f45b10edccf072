"""Strategy "rows": codes stay on the workers that have them, and sums of integers go round.
Sums and forest are equal to the ones of one process.

    each participant, of its rows:  histograms, totals, numbers of rows
              all-reduce:           the same of all rows  -->  everyone finds the same splits
    small nodes:                    their rows go to one participant, which grows the subtrees
"""

from __future__ import annotations

import time
from copy import copy
from dataclasses import replace
from itertools import pairwise
from typing import Any
from uuid import uuid4

import numpy as np

from gpuforest.backends import base, numpy, registry
from gpuforest.backends.base import new_codes
from gpuforest.common.arguments import thread_count
from gpuforest.common.errors import ClusterError
from gpuforest.core import forest
from gpuforest.core.bins import BinnedMatrix
from gpuforest.core.frontier import Frontier, Splits, Subtrees
from gpuforest.core.rules import Sampling
from gpuforest.core.target import Target
from gpuforest.core.training import Training
from gpuforest.data.binned import BinnedData
from gpuforest.growing.assemble import merged, no_subtrees
from gpuforest.growing.grow import grow
from gpuforest.tools.dask import partitions, waiting
from gpuforest.tools.dask.links import Communicator, links_of, open_links

Array = Any
Client = Any

TASKS = 4  # nodes are handed over that have at most 1 / TASKS of a participant's share of the rows
ATTEMPTS = 3  # with the workers that are there, after others died
LAST_WORDS = 5.0  # seconds for the others to say what happened, when one has failed
LOOK = 0.1  # seconds between looks whether they have


class SharedNodes(base.Nodes):
    """Slots whose `n_rows` are of all parts."""

    def in_bag(self, backend: Any, bags: Array) -> tuple[Array, Array, Array]:
        return super().in_bag(backend, np.ascontiguousarray(bags[:, backend.row_numbers]))

    def roots(self, backend: Any, *arguments: Any) -> Frontier:
        return self._of_all(backend, super().roots(backend, *arguments))

    def children(self, backend: Any, *arguments: Any) -> Frontier:
        return self._of_all(backend, super().children(backend, *arguments))

    def _of_all(self, backend: Any, slots: Frontier) -> Frontier:
        return replace(slots, n_rows=backend.summed(slots.n_rows))


class SharedRows(numpy.NumpyBackend):
    """A host backend that holds a part of the rows and sums over all parts; `of` wraps a backend.
    `begin`, `end` and `max_rows` count the rows held here; sums and `n_rows` count all rows."""

    communicator: Communicator
    row_numbers: np.ndarray

    @classmethod
    def of(cls, backend: base.Backend, communicator: Communicator, rows: np.ndarray) -> SharedRows:
        """The backend as that of one participant, who has the rows of these numbers i64[n]."""
        shared: Any = copy(backend)
        shared.__class__ = type(cls.__name__, (cls, type(backend)), {})
        shared.nodes = type("SharedNodes", (SharedNodes, type(backend.nodes)), {})()
        shared.communicator, shared.row_numbers = communicator, rows
        return shared  # type: ignore[no-any-return]

    def summed(self, array: Array) -> Array:
        """The sum of all participants' arrays."""
        return self.communicator.all_reduce(np.ascontiguousarray(array))

    def _lowest(self, number: int) -> int:
        return min(int(a[0]) for a in self.communicator.all_gather(np.array([number])))

    def totals(
        self, training: Training, rows: Array, weights: Array, begin: Array, end: Array,
        sums: Array | None = None,
    ) -> tuple[Array, Array]:  # fmt: skip
        slots = training, rows, weights, begin, end
        if sums is None:
            sums = self.summed(super().totals(*slots)[0])
        constant = super().totals(*slots, sums)[1]
        if training.target.coding.is_classes:  # the sums show it
            return sums, constant
        return sums, self.summed((~constant).astype(np.int64)) == 0

    def histogram(self, training: Training, slots: Frontier, features: Array) -> Array:
        return self.summed(super().histogram(training, slots, features))

    def level(self, training: Training, slots: Frontier) -> Splits | None:
        """None: a level's histograms are to be summed before its splits are found."""
        return None

    def waves(
        self, sampling: Sampling, C: int, n_trees: int, n_words: int = 0, bounded: bool = False
    ) -> tuple[int, base.Backend, int]:
        """One wave after another, because all participants make the same calls."""
        _, _, size = base.Backend.waves(self, sampling, C, n_trees)
        return 1, self, self._lowest(size)

    def deep_rows(self, training: Training, n_rows: int) -> int:
        """Nodes are handed over that are so small that all participants have work to the end."""
        held = int(self.summed(np.array([n_rows]))[0])
        most = self._lowest(super().deep_rows(training, n_rows))
        if self.communicator.size == 1 or not most:
            return most
        shared_out = held // (TASKS * self.communicator.size)
        return min(most, max(shared_out, training.matrix.edges.n_codes))

    def grow_subtrees(self, training: Training, slots: Frontier, kind: Any) -> Subtrees:
        """Grow a share of the slots' subtrees from the rows of all participants."""
        size, rank = self.communicator.size, self.communicator.rank
        upto = np.cumsum(slots.n_rows)
        cuts = np.searchsorted(upto, upto[-1] * np.arange(1, size) // size, side="left")
        ends = [0, *(cuts + 1).tolist(), slots.n_slots]
        owned = [slice(min(a, slots.n_slots), min(b, slots.n_slots)) for a, b in pairwise(ends)]
        part, local = self._handed_over(training, slots, owned, slots.part(owned[rank]))
        subtrees = super().grow_subtrees(local, part, kind) if part.n_slots else None
        return self._all_subtrees(subtrees, slots, training.n_words)

    def _handed_over(
        self, training: Training, slots: Frontier, owned: list[slice], mine: Frontier
    ) -> tuple[Frontier, Training]:
        """The slots of this participant with the rows of all, and the training of these rows."""
        sent: dict[str, list[Array]] = {name: [] for name in ("length", "weight", "code", "y")}
        matrix, target = training.matrix, training.target
        for owner in owned:
            begin, end = slots.begin[owner], slots.end[owner]
            at = ranges(begin, end)
            rows = slots.rows[at]
            sent["length"].append((end - begin).astype(np.int64))
            sent["weight"].append(slots.weights[at])
            sent["code"].append(np.ascontiguousarray(matrix.codes[rows]))
            sent["y"].append(np.ascontiguousarray(target.y[rows]))
        got = {name: self.communicator.exchange(parts) for name, parts in sent.items()}
        # rows lie by participant, and by slot there: they are brought together by slot
        length = np.stack(got["length"]).sum(axis=0)
        slot = np.concatenate([np.repeat(np.arange(len(n)), n) for n in got["length"]])
        order = np.argsort(slot, kind="stable")
        weights, codes, y = (np.concatenate(got[name])[order] for name in ("weight", "code", "y"))
        n, ends = len(order), np.cumsum(length)
        numbers = np.arange(n, dtype=np.int32)
        part = replace(
            mine, begin=ends - length, end=ends, rows=numbers, weights=weights, max_rows=n
        )
        return part, replace(
            training,
            matrix=BinnedMatrix(laid_out(codes, self), matrix.n_bins, matrix.edges),
            target=Target(target.coding, y),
        )

    def _all_subtrees(self, mine: Subtrees | None, slots: Frontier, n_words: int) -> Subtrees:
        """The subtrees of all participants, in the order of the slots."""
        if mine is None:
            mine = no_subtrees(np, slots, n_words > 0)
        gather = self.communicator.all_gather
        lengths = gather(np.diff(mine.offsets))
        nodes, sums = gather(mine.nodes), gather(np.ascontiguousarray(mine.leaf_sums))
        firsts = _shifted(gather(mine.first_leaf), [len(s) for s in sums])
        set_at: Array = None
        sets: Array = None
        if mine.sets is not None and mine.set_at is not None:
            parts = gather(np.ascontiguousarray(mine.sets))
            set_at = _shifted(gather(mine.set_at), [part.size for part in parts])
            sets = np.concatenate(parts)
        offsets = np.concatenate([[0], np.cumsum(np.concatenate(lengths))]).astype(np.int64)
        return Subtrees(offsets, np.concatenate(nodes), firsts, np.concatenate(sums), set_at, sets)


def ranges(begin: np.ndarray, end: np.ndarray) -> np.ndarray:
    """The numbers begin[0] .. end[0] - 1, begin[1] .. end[1] - 1, ..., i64[n]."""
    length = end - begin
    first = np.cumsum(length) - length
    return np.asarray(np.arange(int(length.sum())) + np.repeat(begin - first, length))


def _shifted(parts: list[np.ndarray], sizes: list[int]) -> np.ndarray:
    """Positions in arrays of these sizes, as positions in all of them one after another."""
    before = np.cumsum([0, *sizes[:-1]]).tolist()
    return np.concatenate([part + n for part, n in zip(parts, before, strict=True)])


def laid_out(codes: np.ndarray, backend: base.Backend) -> Array:
    """A copy of codes [N, F] that lies as the backend wants it."""
    copied = new_codes(codes.shape[0], codes.shape[1], codes.dtype, backend)
    copied[...] = codes
    return copied


def grow_of_rows(
    estimator: Any, data: BinnedData, begin: int, codes: np.ndarray, rows: np.ndarray,
    communicator: Communicator,
) -> forest.Forest:  # fmt: skip
    """Unfinished trees from number `begin` on, grown together by participants; all return the
    forest.

    codes : u8 or u16 [F, n] of the rows i64[n]; data : y and weights of all rows, no codes"""
    backend = registry.get_host_backend(thread_count(getattr(estimator, "n_jobs", 1)))
    plan = partitions.share_plan(estimator, without_codes(data, codes), backend)
    training, target = plan.training, plan.training.target
    local = replace(
        training,
        matrix=replace(training.matrix, codes=laid_out(codes.T, backend)),
        target=Target(target.coding, np.ascontiguousarray(target.y[rows])),
    )
    shared, n_trees = SharedRows.of(backend, communicator, rows), plan.settings.n_trees
    waves = grow(local, shared, begin, n_trees, plan.pruning)
    return merged(waves, training, backend.n_threads)


def without_codes(data: BinnedData, like: np.ndarray) -> BinnedData:
    """Data whose codes have a shape but no memory: the fit of grown trees reads the shape only."""
    none = np.broadcast_to(np.zeros((), like.dtype), (len(like), len(data.y)))
    return data.with_codes(none)


def fit_rows(
    client: Client, estimator: Any, data: BinnedData, parts: list[Any], ranges: list[range],
    begin: int,
) -> Any:  # fmt: skip
    """The estimator with new trees from number `begin` on, fitted by the workers that hold codes.

    parts : futures of codes [F, n] of these ranges of rows. ClusterError: `ATTEMPTS` attempts lost
    workers"""
    why = ""
    for _ in range(ATTEMPTS):
        list(waiting.as_done(client, parts))  # those of a worker that died are made again
        holders = client.who_has(parts)
        held: dict[str, list[int]] = {}  # each part counts for one worker
        for i, part in enumerate(parts):
            held.setdefault(sorted(holders[part.key])[0], []).append(i)
        name, futures = f"gpuforest-{uuid4().hex}", []
        try:
            for rank, worker in enumerate(held):
                on = {"workers": [worker], "pure": False}
                futures.append(client.submit(open_links, name, rank, tuple(held), **on))
            if why := failure(client, futures, list(held)):
                continue
            # in each attempt, because what was sent to a worker that died is not made again
            [sent] = client.scatter([data], workers=list(held), broadcast=True, hash=False)
            futures = [
                client.submit(
                    participant, sent, estimator, [parts[i] for i in numbers],
                    np.concatenate([np.array(ranges[i]) for i in numbers]), begin, name,
                    workers=[worker], pure=False,
                )
                for worker, numbers in held.items()
            ]  # fmt: skip
            if why := failure(client, futures, list(held)):
                continue
            return futures[0].result()
        finally:
            client.cancel(futures)
    raise ClusterError(
        f"each of {ATTEMPTS} attempts lost workers, most often because their memory was too small; "
        f"at last: {why}"
    )


def failure(client: Client, futures: list[Any], workers: list[str]) -> str:
    """Why some futures have no result: a lost worker; "": all have one. Other errors are raised."""
    for future in waiting.as_done(client, futures):
        gone = set(workers) - waiting.addresses(client) if future is None else set()
        if not gone and (future is None or future.status == "finished"):
            continue
        failed = last_words(client, futures, workers)
        for task in failed:
            if not isinstance(task.exception(), ClusterError):
                task.result()  # raises
        return str(failed[0].exception()) if failed else f"{', '.join(gone) or 'a task'} is gone"
    return ""


def last_words(client: Client, futures: list[Any], workers: list[str]) -> list[Any]:
    """The futures that have failed, when those of the workers that are left have had their time."""
    until = time.monotonic() + LAST_WORDS
    while time.monotonic() < until:
        alive = waiting.addresses(client)
        pairs = zip(futures, workers, strict=True)
        if not any(future.status == "pending" and worker in alive for future, worker in pairs):
            break
        time.sleep(LOOK)
    return [future for future in futures if future.status == "error"]


def participant(
    data: BinnedData, estimator: Any, parts: list[np.ndarray], rows: np.ndarray, begin: int,
    name: str,
) -> Any:  # fmt: skip
    """Run a worker, which others call by `name`; rank 0 returns the estimator, others None."""
    on_host = partitions.local_copy(estimator, backend=registry.get_host_backend().name)
    codes = np.concatenate(parts, axis=1)
    with links_of(name) as links:
        grown = grow_of_rows(on_host, data, begin, codes, rows, links)
    return None if links.rank else partitions.fitted(without_codes(data, codes), on_host, [grown])
