"""Strategy "rows": codes stay on the workers that have them, and sums of integers go round.
Sums and forest are equal to the ones of one process.

    each participant, of its rows:  histograms, totals, numbers of rows
              all-reduce:           the same of all rows  -->  everyone finds the same splits
    small nodes:                    their rows go to one participant, which grows the subtrees
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from copy import copy
from dataclasses import fields, replace
from itertools import pairwise
from typing import Any
from uuid import uuid4

import numpy as np

from gpuforest.backends import base, numpy, registry
from gpuforest.common.arguments import thread_count
from gpuforest.common.errors import ClusterError
from gpuforest.core import bins, forest
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
POSITIONS = {"offsets": "nodes", "first_leaf": "leaf_sums", "set_at": "sets"}  # of `Subtrees`
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
        part, held = self._handed_over(training, slots, owned, slots.part(owned[rank]))
        mine = no_subtrees(np, slots, training.n_words > 0)
        return self._all_subtrees(super().grow_subtrees(held, part, kind) if part.n_slots else mine)

    def _handed_over(
        self, training: Training, slots: Frontier, owned: list[slice], mine: Frontier
    ) -> tuple[Frontier, Training]:
        """The slots of this participant with the rows of all, and the training of these rows."""
        exchange, matrix, target = self.communicator.exchange, training.matrix, training.target
        lengths = exchange([slots.local_rows[owner].astype(np.int64) for owner in owned])
        # rows lie by participant, and by slot there: they are brought together by slot
        slot = np.concatenate([np.repeat(np.arange(len(n)), n) for n in lengths])
        order = np.argsort(slot, kind="stable")
        at = [ranges(slots.begin[owner], slots.end[owner]) for owner in owned]
        rows = [slots.rows[part] for part in at]
        weights, codes, y = (
            np.concatenate(exchange([np.ascontiguousarray(values[part]) for part in parts]))[order]
            for values, parts in ((slots.weights, at), (matrix.codes, rows), (target.y, rows))
        )
        length, n = np.sum(lengths, axis=0), len(order)
        end, numbers = np.cumsum(length), np.arange(n, dtype=np.int32)
        part = replace(mine, begin=end - length, end=end, rows=numbers, weights=weights, max_rows=n)
        return part, of_rows(training, codes, y, self)

    def _all_subtrees(self, mine: Subtrees) -> Subtrees:
        """The subtrees of all participants, in the order of the slots."""
        own = {f.name: getattr(mine, f.name) for f in fields(mine)}
        gather = self.communicator.all_gather
        parts = {name: gather(np.ascontiguousarray(a)) for name, a in own.items() if a is not None}
        for name, places in POSITIONS.items():
            if name in parts:
                before = np.cumsum([0, *map(len, parts[places])])
                parts[name] = [part + n for part, n in zip(parts[name], before, strict=False)]
        parts["offsets"][1:] = [offsets[1:] for offsets in parts["offsets"][1:]]
        return Subtrees(**{name: np.concatenate(arrays) for name, arrays in parts.items()})


def ranges(begin: np.ndarray, end: np.ndarray) -> np.ndarray:
    """The numbers begin[0] .. end[0] - 1, begin[1] .. end[1] - 1, ..., i64[n]."""
    length = end - begin
    first = np.cumsum(length) - length
    return np.asarray(np.arange(int(length.sum())) + np.repeat(begin - first, length))


def of_rows(training: Training, codes: np.ndarray, y: np.ndarray, backend: Any) -> Training:
    """The training of the rows with these codes [n, F], copied as the backend wants them, and y."""
    copied = base.new_codes(codes.shape[0], codes.shape[1], codes.dtype, backend)
    copied[...] = codes
    matrix = bins.BinnedMatrix(copied, training.matrix.n_bins, training.matrix.edges)
    target = Target(training.target.coding, np.ascontiguousarray(y))
    return replace(training, matrix=matrix, target=target)


def grow_of_rows(
    estimator: Any, data: BinnedData, begin: int, codes: np.ndarray, rows: np.ndarray,
    communicator: Communicator,
) -> forest.Forest:  # fmt: skip
    """The forest of unfinished trees from number `begin` on, grown together by participants.
    codes : u8 or u16 [F, n] of the rows i64[n]; data : y and weights of all rows, no codes"""
    backend = registry.get_host_backend(thread_count(getattr(estimator, "n_jobs", 1)))
    plan = partitions.share_plan(estimator, without_codes(data, codes), backend)
    training = plan.training
    local = of_rows(training, codes.T, training.target.y[rows], backend)
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
    parts : futures of codes [F, n] of these ranges of rows; ClusterError: attempts lost workers"""
    for _ in range(ATTEMPTS):
        list(waiting.as_done(client, parts))  # those of a worker that died are made again
        holders = client.who_has(parts)
        held: dict[str, list[int]] = {}  # each part counts for one worker
        for i, part in enumerate(parts):
            held.setdefault(sorted(holders[part.key])[0], []).append(i)
        name, futures, workers = f"gpuforest-{uuid4().hex}", list[Any](), tuple(held)
        try:
            for rank, worker in enumerate(workers):
                on: dict[str, Any] = {"workers": [worker], "pure": False}
                futures.append(client.submit(open_links, name, rank, workers, **on))
            await_all(client, futures, workers)
            # in each attempt, because what was sent to a worker that died is not made again
            [sent] = client.scatter([data], workers=workers, broadcast=True, hash=False)
            futures = [
                client.submit(
                    participant, sent, estimator, [parts[i] for i in numbers],
                    np.concatenate([np.array(ranges[i]) for i in numbers]), begin, name,
                    workers=[worker], pure=False,
                )
                for worker, numbers in held.items()
            ]  # fmt: skip
            await_all(client, futures, workers)
            return futures[0].result()
        except ClusterError as error:
            lost = error
        finally:
            client.cancel(futures)
    raise ClusterError(
        f"each of {ATTEMPTS} attempts lost workers, most often because their memory was too small; "
        f"at last: {lost}"
    )


def await_all(client: Client, futures: list[Any], workers: Sequence[str]) -> None:
    """Wait for a result of each worker; raise a task's error, or a ClusterError if one is lost."""
    for future in waiting.as_done(client, futures):
        gone = set(workers) - waiting.addresses(client) if future is None else set()
        if not gone and (future is None or future.status == "finished"):
            continue
        until, pairs = time.monotonic() + LAST_WORDS, [*zip(futures, workers, strict=True)]
        while time.monotonic() < until:
            alive = waiting.addresses(client)
            if not any(task.status == "pending" and worker in alive for task, worker in pairs):
                break
            time.sleep(LOOK)
        failed = [task for task in futures if task.status == "error"]
        failed.sort(key=lambda task: isinstance(task.exception(), ClusterError))
        if failed:
            failed[0].result()  # raises
        raise ClusterError(f"{', '.join(gone) or 'a task'} is gone")


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
