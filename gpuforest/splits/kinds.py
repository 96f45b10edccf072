"""The kind of split of a fit, chosen once from its rules."""

from __future__ import annotations

from functools import cache

from gpuforest.core import criteria
from gpuforest.core.rules import Rules
from gpuforest.core.training import Training
from gpuforest.splits.absolute.kind import Absolute
from gpuforest.splits.base import NUMERIC, Kind, Sets
from gpuforest.splits.effects.kind import Effects
from gpuforest.splits.interactions.kind import Interactions
from gpuforest.splits.logrank.kind import LogRank
from gpuforest.splits.multiway.kind import Multiway
from gpuforest.splits.oblique.kind import Oblique


def kind_in(training: Training) -> Kind:
    return kind_of(training.rules, training.n_words > 0)


def kind_of(rules: Rules, has_categories: bool) -> Kind:
    """The kind of split of these rules; has_categories: some features are categorical."""
    interacts = len(rules.interactions) > 0
    return kind_for(rules.criterion, rules.multiway, rules.combined, has_categories, interacts)


@cache
def kind_for(
    criterion: criteria.Criterion, multiway: bool, combined: float, has_categories: bool = False,
    interacts: bool = False,
) -> Kind:  # fmt: skip
    """As `kind_of`, from what decides it. Combinations of features are cut as features are."""
    if multiway:
        return Multiway()
    if criterion.at_risk:
        return LogRank()
    if criterion.of_effects:
        return Effects()
    if interacts:
        return Interactions()
    kind = Absolute() if criterion.medians else Sets() if has_categories else NUMERIC
    return Oblique(kind) if combined > 1 else kind
