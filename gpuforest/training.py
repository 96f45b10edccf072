"""The record of one training: what trees grow from. It is made once, and every stage takes it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpuforest.backends.base import Backend
    from gpuforest.binning import BinnedMatrix
    from gpuforest.frontier import Rules
    from gpuforest.sampling import Sampling
    from gpuforest.target import Target


@dataclass(frozen=True, eq=False)
class Training:
    """What trees grow from, however many of them grow.

    matrix : the codes of all rows, and where their bins end
    target : the target of all rows as integers
    sampling : how the bags of rows are drawn
    rules : what a tree may do
    seed : from which every random draw follows
    backend : who runs the kernels
    """

    matrix: BinnedMatrix
    target: Target
    sampling: Sampling
    rules: Rules
    seed: int
    backend: Backend

    def on(self, backend: Backend) -> Training:
        """The same training on another backend."""
        return replace(self, backend=backend)

    @property
    def n_features(self) -> int:
        """F."""
        return self.matrix.n_features

    @property
    def n_codes(self) -> int:
        """B, the bins of the feature that has most, and the code of missing values."""
        return self.matrix.edges.n_codes

    @property
    def n_channels(self) -> int:
        """C."""
        return self.target.coding.n_channels

    @property
    def n_words(self) -> int:
        """W, the 64-bit words of a set of categories; 0: no feature is categorical."""
        return self.matrix.edges.most_words

    @property
    def hist_channels(self) -> int:
        """Channels of a histogram: C, and one more where rows are counted."""
        return self.n_channels + self.rules.count_rows
