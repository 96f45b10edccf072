// What the deep phase does beyond cuts of numeric features.
#include "sets/cuda.cuh"
#include "project/oblique.cuh"
