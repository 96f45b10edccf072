"""Functions of tests that Numba compiles, and that call helpers of kernels."""

import numba

import gpuforest.compiler.compile  # noqa: F401  it teaches Numba what a helper is

kernel = numba.njit(error_model="numpy")
