"""What is computed from a grown forest: out-of-bag predictions, importances, tree views."""
