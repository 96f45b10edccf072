"""A training: the data and the rules that trees grow from."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from gpuforest.core.bins import BinnedMatrix
from gpuforest.core.frontier import Data
from gpuforest.core.rules import Rules, Sampling
from gpuforest.core.target import Target
from gpuforest.core.terms import NO_COMBINATIONS, Combining, combined_bins, words_for


@dataclass(frozen=True, eq=False)
class Training:
    """What trees grow from, however many grow. It is made once, and every stage takes it."""

    matrix: BinnedMatrix  # the codes of all rows, and the bin edges
    target: Target  # the targets of all rows, as integers
    sampling: Sampling  # the rules for drawing bags
    rules: Rules  # the rules for growing trees
    seed: int  # determines every random draw
    combining: Combining = NO_COMBINATIONS  # what combinations of features are drawn from

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

    @property
    def combines(self) -> bool:
        """Whether nodes may split by combinations of features."""
        return self.combining.n_bins > 0

    @property
    def data(self) -> Data:
        """The rows as kernels read them that take codes [N, F]."""
        matrix = self.matrix
        return Data(matrix.codes, self.target.y, matrix.n_bins, self.n_codes, self.n_channels)

    @property
    def columns(self) -> Data:
        """The rows with codes [F, N], by features; other layouts are copied."""
        return replace(self.data, codes=np.ascontiguousarray(self.matrix.codes.T))

    @property
    def node_words(self) -> int:
        """The most 64-bit words that a node stores, of a set or of a combination."""
        of_sets = max(self.n_words, int(self.rules.multiway))  # whose kernel always takes sets
        return max(of_sets, words_for(self.combining.most_features)) if self.combines else of_sets

    @property
    def grown_codes(self) -> int:
        """The codes of a histogram while whole subtrees grow."""
        return combined_bins(self.matrix.edges) + 1 if self.combines else self.n_codes

    @property
    def hist_channels(self) -> int:
        """Channels of a histogram: C, or C + 1 if it counts rows."""
        return self.n_channels + self.rules.count_rows
