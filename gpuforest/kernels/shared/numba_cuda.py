"""Numba CUDA, which is taught here to call the helpers of kernels."""

from __future__ import annotations

from typing import Any

from numba import cuda
from numba.core import config

from gpuforest.compiler.decorators import Helper

__all__ = ["cuda"]

if not config.ENABLE_CUDASIM:  # the simulator runs plain Python
    from numba.cuda import types
    from numba.cuda.dispatcher import CUDADispatcher
    from numba.cuda.typing.typeof import typeof_impl

    _dispatchers: dict[Helper, CUDADispatcher] = {}

    @typeof_impl.register(Helper)
    def _type_of_helper(helper: Helper, context: Any) -> Any:
        if helper not in _dispatchers:
            options = {"device": True, "debug": False, "opt": True}
            _dispatchers[helper] = CUDADispatcher(helper.function, options)
        return types.Dispatcher(_dispatchers[helper])
