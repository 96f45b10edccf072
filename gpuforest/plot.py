"""Pictures of trees and forests; see gpuforest.tools.plot."""

import sys

from gpuforest.tools.plot import style
from gpuforest.tools.plot.curves import (
    plot_importances,
    plot_impurity,
    plot_loss,
    plot_oob,
    plot_pruning,
)
from gpuforest.tools.plot.effects import plot_effect_calibration, plot_effects
from gpuforest.tools.plot.shap import (
    plot_shap_bar,
    plot_shap_dependence,
    plot_shap_summary,
    plot_shap_waterfall,
)
from gpuforest.tools.plot.surfaces import plot_boundaries, plot_steps
from gpuforest.tools.plot.survival import plot_survival
from gpuforest.tools.plot.trees import plot_tree

__all__ = [
    "plot_boundaries", "plot_effect_calibration", "plot_effects", "plot_importances",
    "plot_impurity", "plot_loss", "plot_oob", "plot_pruning", "plot_shap_bar",
    "plot_shap_dependence", "plot_shap_summary", "plot_shap_waterfall", "plot_steps",
    "plot_survival", "plot_tree",
]  # fmt: skip
sys.modules[f"{__name__}.style"] = style  # so that gpuforest.plot.style can be imported too
