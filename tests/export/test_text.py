"""Trees as text: the forest's own."""

from shown import FIT

from gpuforest import (
    export_text,
)
from gpuforest.export.text import tree_text


def test_text_is_that_of_the_forest():
    forest = FIT["forest"]
    names = ["a", "b", "c", "d"]
    assert export_text(forest, 2, feature_names=names) == tree_text(forest.forest_, 2, names)
    assert export_text(forest, 1, max_depth=2) == tree_text(forest.forest_, 1, None, 2)
