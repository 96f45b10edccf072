"""A training: the data and the rules that trees grow from."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from gpuforest.compiler.types import I64, Codes2, I32s, Targets2

if TYPE_CHECKING:  # kernels import the records here, and need none of these
    from gpuforest.backends.base import Backend
    from gpuforest.core.bins import BinnedMatrix
    from gpuforest.core.target import Target
    from gpuforest.core.terms import Combining
    from gpuforest.splits.base import Kind
from gpuforest.core.rules import Rules, Sampling


@dataclass(frozen=True, eq=False)
class Data:
    """The binned rows that trees grow from, as kernels on the CPU read them."""

    codes: Codes2  # [F, N], row r's bin of feature f; NumPy's kernels read them as [N, F]
    y: Targets2  # i32[N, 1] class codes, or i64[N, K] moments
    n_bins: I32s  # i32[F], bins of each feature, without the one for missing values
    n_codes: I64  # B; the last code, B - 1, is that of missing values
    n_channels: I64  # C


@dataclass(frozen=True, eq=False)
class Training:
    """What trees grow from, however many grow. It is made once, and every stage takes it."""

    matrix: BinnedMatrix  # the codes of all rows, and the bin edges
    target: Target  # the targets of all rows, as integers
    sampling: Sampling  # the rules for drawing bags
    rules: Rules  # the rules for growing trees
    seed: int  # determines every random draw
    backend: Backend  # runs the kernels

    def on(self, backend: Backend) -> Training:
        """The same training on another backend."""
        return replace(self, backend=backend)

    @property
    def n_features(self) -> int:
        """F, the number of features."""
        return self.matrix.n_features

    @property
    def n_codes(self) -> int:
        """B, the most bins of any feature, plus one for missing values."""
        return self.matrix.edges.n_codes

    @property
    def n_channels(self) -> int:
        """C, the number of channels."""
        return self.target.coding.n_channels

    @property
    def n_words(self) -> int:
        """W, the 64-bit words of a split set; 0 if no feature is categorical."""
        return self.matrix.edges.most_words

    @cached_property
    def kind(self) -> Kind:
        """The kind of split, which is chosen once."""
        from gpuforest.splits.kinds import kind_of

        return kind_of(self.rules, self.n_words > 0)

    @cached_property
    def combining(self) -> Combining:
        """What combinations of features are drawn from."""
        from gpuforest.core.terms import NO_COMBINATIONS, Combining

        rules, edges = self.rules, self.matrix.edges
        if not self.kind.combines:
            return NO_COMBINATIONS
        return Combining.of(edges, rules.combined, rules.heaviest, self.backend.asarray)

    @property
    def data(self) -> Data:
        """The rows as kernels read them that take codes [N, F]."""
        matrix = self.matrix
        return Data(matrix.codes, self.target.y, matrix.n_bins, self.n_codes, self.n_channels)

    @property
    def columns(self) -> Data:
        """The rows with codes [F, N], one feature after another; codes that lie otherwise are
        copied."""
        return replace(self.data, codes=np.ascontiguousarray(self.matrix.codes.T))

    @property
    def node_words(self) -> int:
        """The most words that a node stores, of a set or of a combination."""
        return self.kind.node_words(self)

    @property
    def hist_channels(self) -> int:
        """Channels of a histogram: C, or C + 1 if it counts rows."""
        return self.n_channels + self.rules.count_rows
