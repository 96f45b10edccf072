"""A grown tree gives up splits, and leaves predict within bounds."""
