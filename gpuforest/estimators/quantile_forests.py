"""Quantile regression forests (Meinshausen 2006)."""

from __future__ import annotations

from gpuforest.estimators import params
from gpuforest.estimators.quantile_methods import QuantileForest


@params.parameters(params.QUANTILE_FOREST, params.OF_NUMBERS, max_features=1 / 3)
class RandomForestQuantileRegressor(QuantileForest):
    """A random forest that predicts quantiles of real targets.

    Each tree grows as in `RandomForestRegressor`. A row is predicted by the distribution of the
    targets of the training rows that share its leaves; see `predict`, and docs/uncertainty.md.

    Attributes
    ----------
    As of `RandomForestRegressor`.

    Notes
    -----
    The estimator keeps the bin codes and the targets of its training rows, also in pickles and
    model files: about n_samples * (n_features + 8 * n_outputs) bytes. The training rows of
    each leaf are found from these when they are first asked for, as 12 bytes a row and tree.

    With bootstrap, sample weights are the chances of rows to be drawn, and the draws are counted;
    without it, the weights themselves take the place of numbers of draws.

    References
    ----------
    N. Meinshausen, "Quantile regression forests", JMLR 7, 2006.
    """


@params.parameters(params.QUANTILE_FOREST, params.OF_NUMBERS, max_features=1.0, bootstrap=False)
class ExtraTreesQuantileRegressor(QuantileForest):
    """Extremely randomized trees that predict quantiles of real targets.

    Each tree grows as in `ExtraTreesRegressor`; predictions are those of
    `RandomForestQuantileRegressor`.

    Attributes
    ----------
    As of `RandomForestRegressor`.
    """

    _splitter = "random"
