"""Presets beside defaults, a search and other libraries.  python -m benchmarks.presets"""
