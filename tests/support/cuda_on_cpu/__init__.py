"""CUDA C++ kernels built by g++ and run on the CPU, for tests on machines without a GPU."""
