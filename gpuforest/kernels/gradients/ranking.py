"""Losses of rows that queries rank: a row's y is its relevance, and the number of its query.

A query's rows are relevant by grades y, and gain 2^y - 1 each, discounted by 1 / log2(1 + rank) of
the order by raw predictions (DCG); NDCG divides this by that of the best order.

===========  =====================================================================================
loss         gradients of the rows of a query
===========  =====================================================================================
lambdarank   of pairs of rows that differ in y, where one row is among the first 30: expit of minus
             the distance by which the better row leads, times the change of NDCG@30 if the two
             changed places, over 0.01 + the size of that distance. Then all gradients of a query
             are multiplied by log2(1 + s) / s, where s is the sum of their sizes
rank_xendcg  of the cross entropy of a softmax of raw predictions, and of shares 2^y - u, where each
             round draws all u between 0 and 1
===========  =====================================================================================

Both are as in LightGBM. Rounds are judged by 1 - NDCG@10, in which rows of equal predictions share
their places. All sums run over a query in a fixed order.

Sources: Burges, "From RankNet to LambdaRank to LambdaMART: an overview", MSR-TR-2010-82, 2010;
Bruch, "An alternative cross entropy loss for learning-to-rank", 2020 (arXiv:1911.09798); Järvelin
and Kekäläinen, "Cumulated gain-based evaluation of IR techniques", ACM TOIS 20, 2002.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from gpuforest.common import elementary, hashing
from gpuforest.compiler.decorators import device, kernel
from gpuforest.compiler.types import I64, F64s, F64s2, I32s, I64s
from gpuforest.kernels.gradients import losses
from gpuforest.kernels.gradients.host_losses import Derivatives, HostLoss
from gpuforest.kernels.gradients.numba import exp_of

MOST_GRADE = 31
TRUNCATION, JUDGED = 30, 10  # ranks that count: of lambdarank, and for early stopping
NEAR = 0.01  # added to distances, as in LightGBM
LEAST = 1e-15  # of what remains beside a row's share
NAMES = ("lambdarank", "rank_xendcg")


class Queries:
    """The queries of rows, their gains, and the DCG of their best orders.

    starts : i64[Q + 1], where the rows of each begin
    gains : f64[N]
    order : i32[N], rows by query and raw prediction, of the last round: the next is near it
    """

    def __init__(self, y: np.ndarray) -> None:
        """y : f64[N, 2], relevance and the number of the query"""
        changes = np.flatnonzero(y[1:, 1] != y[:-1, 1]) + 1
        self.starts = np.concatenate([[0], changes, [len(y)]]).astype(np.int64)
        self.sizes = np.diff(self.starts)
        self.number = np.repeat(np.arange(len(self.sizes)), self.sizes)
        self.gains = np.exp2(y[:, 0]) - 1.0
        self.order = np.arange(len(y), dtype=np.int32)
        ranks = np.arange(2.0, 2.0 + max(TRUNCATION + 1, self.sizes.max()))
        self.discount = elementary.log(np.full(1, 2.0)) / elementary.log(ranks)
        best = self.gains[np.lexsort((-self.gains, self.number))]
        self.best = {most: self.dcg(best, most) for most in (TRUNCATION, JUDGED)}
        self.inverse = np.where(self.best[TRUNCATION] > 0, self.best[TRUNCATION], np.inf) ** -1.0
        self.judged = (self.sizes > 1) & (self.best[JUDGED] > 0)

    def dcg(self, ranked: np.ndarray, most: int) -> np.ndarray:
        """The DCG f64[Q] at rank `most` of gains f64[N] in the order of ranks."""
        total = np.zeros(len(self.sizes))
        for rank in range(most):
            has = self.sizes > rank
            total[has] += ranked[self.starts[:-1][has] + rank] * self.discount[rank]
        return total

    def ndcg(self, raw: np.ndarray) -> np.ndarray:
        """NDCG@10 of raw predictions f64[N], of each query that is judged."""
        order = np.lexsort((-raw, self.number))
        ranked, number = raw[order], self.number[order]
        new = np.concatenate([[True], (np.diff(ranked) != 0) | (np.diff(number) != 0)])
        # sums of whole numbers, which are exact
        share = np.add.reduceat(self.gains[order], np.flatnonzero(new))
        tied = np.cumsum(new) - 1
        found = self.dcg((share / np.bincount(tied))[tied], JUDGED)
        return np.asarray(found[self.judged] / self.best[JUDGED][self.judged])

    def sums(self, values: np.ndarray) -> np.ndarray:
        """Sums f64[Q] over the rows of each query, one after another."""
        return np.bincount(self.number, values, len(self.sizes))


@dataclass(frozen=True)
class RankingLoss(HostLoss):
    """A loss of queries; y is f64[N, 2].

    seed : of the draws of rank_xendcg"""

    seed: int = 0
    known: list[tuple[np.ndarray, Queries]] = field(default_factory=list, compare=False)
    facts = ""

    def queries_of(self, y: np.ndarray) -> Queries:
        """The queries of targets, which the loss keeps: rounds come back with the same ones."""
        for own, queries in self.known:
            if own is y:
                return queries
        self.known.append((y, Queries(y)))
        return self.known[-1][1]

    def check(self, y: np.ndarray) -> None:
        if not (y[1:, 1] == y[:-1, 1]).any():
            raise ValueError("every query of y has one row: there is nothing to rank")

    def baseline(self, y: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
        return np.zeros(1)

    def derivatives(self, y: np.ndarray, raw: np.ndarray, weight: np.ndarray | None) -> Derivatives:
        queries = self.queries_of(y)
        if self.name == "lambdarank":
            both = lambdas_of(queries, np.ascontiguousarray(raw[0]))
        else:
            both = entropies_of(queries, y[:, 0], raw[0], self.seed)
        if weight is not None:
            both = both * weight
        return both[:1], both[1:]

    def mean(self, y: np.ndarray, raw: np.ndarray, weight: np.ndarray | None) -> float:
        """1 - NDCG@10 as the mean over queries, which weigh as the mean of their rows."""
        queries = self.queries_of(y)
        if not queries.judged.any():
            raise ValueError(
                "no query of the rows that judge has two rows and some relevance: set "
                "early_stopping=False, pass other X_val, or raise validation_fraction"
            )
        of_query = None
        if weight is not None:
            of_query = (queries.sums(weight) / queries.sizes)[queries.judged]
        return losses.exact_mean(1.0 - queries.ndcg(raw[0]), of_query)


def lambdas_of(queries: Queries, raw: np.ndarray) -> np.ndarray:
    """Gradients and hessians f64[2, N] of lambdarank."""
    found, total = np.zeros((2, len(raw))), np.zeros(len(queries.sizes))
    scratch = np.empty((7, queries.sizes.max()))
    lambdas(
        raw, queries.gains, queries.starts, queries.discount, queries.inverse, TRUNCATION,
        queries.order, found, total, scratch,
    )  # fmt: skip
    some = np.where(total > 0, total, 1.0)
    factor = elementary.log(1.0 + some) / (some * elementary.log(np.full(1, 2.0)))
    return found * np.where(total > 0, factor, 1.0)[queries.number]


def entropies_of(queries: Queries, grades: np.ndarray, raw: np.ndarray, seed: int) -> np.ndarray:
    """Gradients and hessians f64[2, N] of rank_xendcg: the gradient is the first three terms of
    the expansion that LightGBM has."""
    # a draw is a hash of the raw prediction, which each round changes, and of the row
    key = np.full(1, seed % 2**64, np.uint64)
    key = hashing.hash_at(hashing.hash_at(key, hashing.OF_LOSS), (raw + 0.0).view(np.uint64))
    drawn = hashing.hash_at(key, np.arange(len(raw), dtype=np.uint64)) >> np.uint64(11)
    gamma = np.exp2(grades) - drawn * 2.0**-53

    def shares(values: np.ndarray, least: float) -> np.ndarray:
        return np.asarray(values / np.maximum(queries.sums(values), least)[queries.number])

    top = np.maximum.reduceat(raw, queries.starts[:-1])
    rho = shares(elementary.exp(raw - top[queries.number]), 0.0)
    rest = np.maximum(1.0 - rho, LEAST)
    term = rho - shares(gamma, LEAST)
    g = term
    for _ in range(2):
        share = term / rest
        term = rho * (queries.sums(share)[queries.number] - share)
        g = g + term
    alone = (queries.sizes < 2)[queries.number]
    return np.where(alone, 0.0, np.stack([g, rho * (1.0 - rho)]))


@device
def rank(raw: F64s, order: I32s, first: I64, n: I64) -> None:
    """Sort the rows order[first : first + n] by raw predictions, the highest first, and rows of
    equal ones by their numbers (Shell's method: little work where they are nearly sorted)."""
    gap = 1
    while 3 * gap + 1 < n:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, n):
            row, j = order[first + i], i
            while j >= gap:
                other = order[first + j - gap]
                if raw[other] > raw[row] or (raw[other] == raw[row] and other < row):
                    break
                order[first + j] = other
                j -= gap
            order[first + j] = row
        gap //= 3


@kernel
def lambdas(
    raw: F64s, gains: F64s, starts: I64s, discount: F64s, inverse: F64s, most: I64, order: I32s,
    out: F64s2, total: F64s, scratch: F64s2,
) -> None:  # fmt: skip
    """Gradients and hessians f64[2, N] of lambdarank, and the sum of their sizes f64[Q].

    order : i32[N], in the order of queries; it becomes that of ranks
    scratch : f64[7, rows of the longest query]"""
    scores, gain, g, h, sizes = scratch[0], scratch[1], scratch[2], scratch[3], scratch[4]
    pair_g, pair_h = scratch[5], scratch[6]
    for q in range(len(inverse)):
        first, n = starts[q], starts[q + 1] - starts[q]
        if inverse[q] == 0.0:  # no row is relevant
            continue
        rank(raw, order, first, n)
        for i in range(n):
            scores[i], gain[i] = raw[order[first + i]], gains[order[first + i]]
            g[i] = h[i] = sizes[i] = 0.0
        differ = scores[0] != scores[n - 1]
        near, size = (NEAR, 1.0) if differ else (1.0, 0.0)
        for i in range(min(n - 1, most)):
            own, own_gain, own_discount = scores[i], gain[i], discount[i]
            # pairs with all later rows by vectors, which need indices from 0; then their sums
            scores_j, gain_j, discount_j = scores[i + 1 :], gain[i + 1 :], discount[i + 1 :]
            g_j, h_j, sizes_j = g[i + 1 :], h[i + 1 :], sizes[i + 1 :]
            for j in range(n - i - 1):
                gap, lead = own_gain - gain_j[j], own - scores_j[j]
                change = gap * (own_discount - discount_j[j]) * inverse[q]
                regular = near + size * lead
                e = exp_of(lead if gap > 0.0 else -lead)
                both = 1.0 / (regular * (1.0 + e))
                value, wrong = change * both, regular * both
                pair_g[j] = value
                pair_h[j] = abs(value) * (1.0 - wrong)
            for j in range(n - i - 1):
                g_j[j] += pair_g[j]
                h_j[j] += pair_h[j]
                sizes_j[j] += abs(pair_g[j])
            sum_g = sum_h = 0.0
            for j in range(n - i - 1):
                sum_g += pair_g[j]
                sum_h += pair_h[j]
            g[i] -= sum_g
            h[i] += sum_h
        for i in range(n):
            total[q] += 2.0 * sizes[i]
            out[0, order[first + i]], out[1, order[first + i]] = g[i], h[i]
