"""Growth where each participant holds some of the rows: sums of integers over all of them are those
that one process would have, and so is the forest.

    each participant, of its rows:  histograms, totals, numbers of rows
              all-reduce:           the same of all rows  -->  everyone finds the same splits
    small nodes:                    their rows go to one participant, which grows the subtrees
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any, cast

import numpy as np

from gpuforest.backends.base import Backend
from gpuforest.cluster.communicator import Communicator
from gpuforest.engine.assembly import WaveTrees, no_subtrees
from gpuforest.engine.binning import BinEdges, BinnedMatrix, new_codes
from gpuforest.engine.forest import Forest
from gpuforest.engine.grow import Prune, grow
from gpuforest.engine.records import Frontier, Splits, Subtrees, Training
from gpuforest.engine.sampling import WaveRequest
from gpuforest.engine.slots import Nodes
from gpuforest.engine.target import Target

Array = Any

TASKS = 4  # nodes are handed over that have at most 1 / TASKS of a participant's share of the rows


def grow_rows(
    training: Training,
    begin: int,
    n_trees: int,
    communicator: Communicator,
    own: np.ndarray,
    prune: Prune | None = None,
) -> list[WaveTrees]:
    """`grow` by several participants, which all return the same waves.

    Parameters
    ----------
    training : `matrix` and `target` are of the participant's own rows; edges, coding, sampling,
        rules and seed are those of all rows, and the same for all participants. The backend works
        on the host, and has the same memory budget everywhere
    own : i64[n], the numbers of the own rows among all
    prune : see `grow`

    Raises
    ------
    ValueError : a criterion by medians, or class weights of each bag: these need all rows
    ClusterError : another participant failed
    """
    if training.kind.whole_rows:
        raise ValueError(
            f"{training.kind.title} needs all rows of a node in one place: use strategy='trees'"
        )
    if training.sampling.balance:
        raise ValueError(
            "class_weight='balanced_subsample' needs all labels of a bag in one place: use "
            "strategy='trees'"
        )
    shared = SharedRows(training.backend, communicator, own)
    return grow(training.on(shared), begin, n_trees, prune)


class SharedNodes(Nodes):
    """Slots whose `n_rows` are of all parts."""

    def in_bag(self, backend: Any, bags: Array) -> tuple[Array, Array, Array]:
        bags = np.ascontiguousarray(bags[:, backend.own])
        return cast(Nodes, backend.inner.nodes).in_bag(backend.inner, bags)

    def roots(self, training: Training, *arguments: Any) -> Frontier:
        return self._of_all(training, super().roots(training, *arguments))

    def children(self, training: Training, *arguments: Any) -> Frontier:
        return self._of_all(training, super().children(training, *arguments))

    def _of_all(self, training: Any, slots: Frontier) -> Frontier:
        return replace(slots, n_rows=training.backend.summed(slots.n_rows))


class SharedRows(Backend):
    """A backend of the host whose rows are a part of all: what it sums, it sums over all parts.

    Only the numbers of rows that are held (`begin`, `end`, `n_held`) are of the own part; sums,
    `n_rows` and what follows from them are of all rows.
    """

    on_host = True
    nodes = SharedNodes()

    def __init__(self, inner: Backend, communicator: Communicator, own: np.ndarray) -> None:
        super().__init__(inner.n_threads, inner.memory_budget)
        self.inner, self.communicator, self.own = inner, communicator, own
        self.name, self.xp, self.sampling = inner.name, inner.xp, inner.sampling

    def summed(self, array: Array) -> Array:
        """The sum of all participants' arrays."""
        return self.communicator.all_reduce(np.ascontiguousarray(array))

    def _lowest(self, number: int) -> int:
        return min(int(a[0]) for a in self.communicator.all_gather(np.array([number])))

    # sums over all rows

    def totals(
        self,
        training: Training,
        rows: Array,
        weights: Array,
        begin: Array,
        end: Array,
        sums: Array | None = None,
    ) -> tuple[Array, Array]:
        slots = training, rows, weights, begin, end
        if sums is None:
            sums = self.summed(self.inner.totals(*slots)[0])
        constant = self.inner.totals(*slots, sums)[1]
        if training.target.coding.is_classes:  # the sums show it
            return sums, constant
        return sums, self.summed((~constant).astype(np.int64)) == 0

    def histogram(self, training: Training, slots: Frontier, features: Array) -> Array:
        return self.summed(self.inner.histogram(self._alone(training), slots, features))

    # the own rows

    def waves(self, wanted: WaveRequest) -> tuple[int, Backend, int]:
        """One wave after another, because all participants make the same calls."""
        _, _, size = super().waves(wanted)
        return 1, self, self._lowest(size)

    def partition(
        self, training: Training, slots: Frontier, splits: Splits
    ) -> tuple[Array, Array, Array]:
        return self.inner.partition(self._alone(training), slots, splits)

    # the same for all participants

    def best_split(
        self, training: Training, slots: Frontier, hist: Array, features: Array, need: Array
    ) -> Splits:
        return self.inner.best_split(self._alone(training), slots, hist, features, need)

    def asnumpy(self, array: Array) -> np.ndarray:
        return self.inner.asnumpy(array)

    def encode(self, X: Array, edges: BinEdges) -> Array:
        return self.inner.encode(X, edges)

    def apply(self, forest: Forest, codes: Array) -> Array:
        return self.inner.apply(forest, codes)

    def accumulate(
        self, forest: Forest, codes: Array, trees: range, skip: Array | None, total: Array
    ) -> Array:
        return self.inner.accumulate(forest, codes, trees, skip, total)

    def _alone(self, training: Training) -> Training:
        return training.on(self.inner)

    # small nodes

    def deep_rows(self, training: Training, n_rows: int) -> int:
        """Nodes are handed over that are so small that all participants have work to the end."""
        held = int(self.summed(np.array([n_rows]))[0])
        most = self._lowest(self.inner.deep_rows(self._alone(training), n_rows))
        if self.communicator.size == 1 or not most:
            return most
        shared_out = held // (TASKS * self.communicator.size)
        return min(most, max(shared_out, training.matrix.edges.n_codes))

    def grow_subtrees(self, training: Training, slots: Frontier) -> Subtrees:
        """Each participant grows the subtrees of some of the slots, of about as many rows, from
        the rows that all of them hold."""
        size, rank = self.communicator.size, self.communicator.rank
        upto = np.cumsum(slots.n_rows)
        cuts = np.searchsorted(upto, upto[-1] * np.arange(1, size) // size, side="left")
        ends = [0, *(cuts + 1).tolist(), slots.n_slots]
        owned = [slice(min(a, slots.n_slots), min(b, slots.n_slots)) for a, b in pairwise(ends)]
        own = slots.part(owned[rank])
        here, training = self._handed_over(training, slots, owned, own)
        found = self.inner.grow_subtrees(training, here) if here.n_slots else None
        return self._all_subtrees(found, slots, training.n_words)

    def _handed_over(
        self, training: Training, slots: Frontier, owned: list[slice], own: Frontier
    ) -> tuple[Frontier, Training]:
        """The own slots with the rows of all participants, and the training of these rows."""
        sent: dict[str, list[Array]] = {name: [] for name in ("length", "weight", "code", "y")}
        y = training.target.y
        for some in owned:
            begin, end = slots.begin[some], slots.end[some]
            at = ranges(begin, end)
            rows = slots.rows[at]
            sent["length"].append((end - begin).astype(np.int64))
            sent["weight"].append(slots.weights[at])
            sent["code"].append(np.ascontiguousarray(training.matrix.codes[rows]))
            sent["y"].append(np.ascontiguousarray(y[rows]))
        got = {name: self.communicator.exchange(parts) for name, parts in sent.items()}
        # rows lie by participant, and by slot there: they are brought together by slot
        lengths = np.stack(got["length"])  # [size, own slots]
        slot = np.concatenate([np.repeat(np.arange(len(n)), n) for n in got["length"]])
        order = np.argsort(slot, kind="stable")
        weights, codes, y = (np.concatenate(got[name])[order] for name in ("weight", "code", "y"))
        ends = np.cumsum(lengths.sum(axis=0))
        n = len(order)
        here = replace(
            own,
            begin=ends - lengths.sum(axis=0),
            end=ends,
            rows=np.arange(n, dtype=np.int32),
            weights=weights,
            n_held=n,
        )
        matrix = training.matrix
        inside = new_codes(n, matrix.n_features, codes.dtype, self.inner)
        inside[...] = codes
        local = replace(
            training,
            matrix=BinnedMatrix(inside, matrix.n_bins, matrix.edges),
            target=Target(training.target.coding, y),
            backend=self.inner,
        )
        return here, local

    def _all_subtrees(self, found: Subtrees | None, slots: Frontier, n_words: int) -> Subtrees:
        """The subtrees of all participants, in the order of the slots."""
        if found is None:
            found = no_subtrees(np, slots, n_words > 0)
        gather = self.communicator.all_gather
        lengths = gather(np.diff(found.offsets))
        nodes, sums = gather(found.nodes), gather(np.ascontiguousarray(found.leaf_sums))
        firsts = _shifted(gather(found.first_leaf), [len(s) for s in sums])
        set_at: Array = None
        sets: Array = None
        if found.sets is not None and found.set_at is not None:
            words = gather(np.ascontiguousarray(found.sets))
            set_at = _shifted(gather(found.set_at), [w.size for w in words])
            sets = np.concatenate(words)
        offsets = np.concatenate([[0], np.cumsum(np.concatenate(lengths))]).astype(np.int64)
        return Subtrees(offsets, np.concatenate(nodes), firsts, np.concatenate(sums), set_at, sets)


def ranges(begin: np.ndarray, end: np.ndarray) -> np.ndarray:
    """The numbers begin[0] .. end[0] - 1, begin[1] .. end[1] - 1, ..., i64[n]."""
    length = end - begin
    first = np.cumsum(length) - length
    found: np.ndarray = np.arange(int(length.sum())) + np.repeat(begin - first, length)
    return found


def _shifted(parts: list[np.ndarray], sizes: list[int]) -> np.ndarray:
    """Positions in arrays of these sizes, as positions in all of them one after another."""
    before = np.cumsum([0, *sizes[:-1]])
    moved = [part + n for part, n in zip(parts, before.tolist(), strict=True)]
    found: np.ndarray = np.concatenate(moved)
    return found
