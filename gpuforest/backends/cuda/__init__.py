"""The CUDA backend: launches, levels, forests and boosting on a device, and CuPy's device."""
