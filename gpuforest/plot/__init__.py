"""Pictures of trees and forests, by matplotlib, which is imported when the first is drawn."""

from __future__ import annotations

from gpuforest.plot.curves import plot_impurity, plot_oob, plot_pruning
from gpuforest.plot.importances import plot_importances
from gpuforest.plot.losses import plot_loss
from gpuforest.plot.surfaces import plot_boundaries, plot_steps
from gpuforest.plot.trees import plot_tree

__all__ = [
    "plot_boundaries",
    "plot_importances",
    "plot_impurity",
    "plot_loss",
    "plot_oob",
    "plot_pruning",
    "plot_steps",
    "plot_tree",
]
