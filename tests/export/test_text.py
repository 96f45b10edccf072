"""Trees as text: the forest's own."""

from shown import FIT

from gpuforest import export_text
from gpuforest.export.text import tree_lines


def test_text_is_that_of_the_forest():
    forest = FIT["forest"]
    names = ["a", "b", "c", "d"]
    for tree, max_depth, given in ((2, None, names), (1, 2, None)):
        lines = tree_lines(forest.forest_, tree, given, max_depth)
        text = export_text(forest, tree, feature_names=given, max_depth=max_depth)
        assert text.splitlines() == list(lines)
