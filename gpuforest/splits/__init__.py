"""Kinds of split: a folder for each, and kinds.py, which chooses the one of a fit."""
