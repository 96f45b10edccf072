"""Measurements of gpuforest beside other libraries: see README.md."""
