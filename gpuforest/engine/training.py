"""The record of one training: what trees grow from. It is made once, and every stage takes it."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuforest.engine.frontier import Data, Rules
from gpuforest.splits.base import Kind
from gpuforest.splits.kinds import kind_of
from gpuforest.splits.oblique.terms import Combining

if TYPE_CHECKING:
    from gpuforest.backends.base import Backend
    from gpuforest.engine.binning import BinnedMatrix
    from gpuforest.engine.sampling import Sampling
    from gpuforest.engine.target import Target


@dataclass(frozen=True, eq=False)
class Training:
    """What trees grow from, however many of them grow.

    matrix : the codes of all rows, and the bin edges
    target : the targets of all rows, as integers
    sampling : the rules by which bags are drawn
    rules : the rules by which trees grow
    seed : determines every random draw
    backend : runs the kernels
    scratch : memory that subtrees grew in, to be used again; None: it is not kept
    """

    matrix: BinnedMatrix
    target: Target
    sampling: Sampling
    rules: Rules
    seed: int
    backend: Backend
    scratch: deque[Any] | None = None

    def on(self, backend: Backend) -> Training:
        """The same training on another backend."""
        return replace(self, backend=backend)

    def with_scratch(self) -> Training:
        """The same training, which keeps its scratch from one call to the next."""
        return self if self.scratch is not None else replace(self, scratch=deque())

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
        return kind_of(self.rules, self.n_words > 0)

    @cached_property
    def combining(self) -> Combining:
        """What combinations of features are drawn from."""
        rules, edges = self.rules, self.matrix.edges
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
