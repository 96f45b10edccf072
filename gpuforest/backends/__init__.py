"""Backends: objects that run the kernels, chosen by name."""

from gpuforest.backends.registry import available_backends, get_backend, register_backend

__all__ = ["available_backends", "get_backend", "register_backend"]
