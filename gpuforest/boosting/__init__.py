"""Gradient boosting: trees of a round grow from the gradients of the rounds before it."""
