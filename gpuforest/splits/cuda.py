"""What the text of CUDA kernels takes from the kinds of split: structs, and modules' constants."""

from gpuforest.splits.oblique import terms
from gpuforest.splits.sets import order

STRUCTS = {"Combining": terms.Combining}
CONSTANTS = {
    order: "MOST_TRIED ITERATIONS",
    terms: "WEIGHT_BITS WEIGHT_ZERO DRAWS ROUNDS STRIDE OBLIQUE_BIN",
}
