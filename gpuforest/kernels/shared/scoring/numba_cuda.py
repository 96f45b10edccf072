"""The scores of numba.py beside this file, on a GPU.

libNVVM joins a product and the sum it goes into, with one rounding instead of two, and
Numba has no option against it. A product of this function is rounded by itself.
"""

from numba.core import config

from gpuforest.compiler.intrinsics import times
from gpuforest.kernels.shared.numba_cuda import cuda

if not config.ENABLE_CUDASIM:  # the simulator runs plain Python
    from numba.cuda.extending import overload

    @overload(times)
    def _times(a, b):
        return lambda a, b: cuda.libdevice.dmul_rn(a, b)
