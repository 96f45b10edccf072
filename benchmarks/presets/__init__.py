"""Presets beside defaults and other libraries.  python -m benchmarks.presets"""
