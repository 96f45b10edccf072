// What the deep phase does beyond cuts of numeric features.
#include "splits/sets/cuda.cuh"
#include "splits/oblique/cuda.cuh"
