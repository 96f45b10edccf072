"""What a GPU gives: parity first, then speed. python -m benchmarks.gpu"""
