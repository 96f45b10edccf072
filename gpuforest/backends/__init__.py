"""Backends: objects that run the kernels, chosen by name."""
