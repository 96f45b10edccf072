"""Looking into a forest: out-of-bag predictions, importances."""
