"""Forests as model files, text, rules, source code and scikit-learn's models."""
