"""Stand-ins for CuPy, torch and JAX on a machine without a GPU.

The arrays are those of picky.py, which neither NumPy nor array-api-compat may touch: where host and
device are mixed up, a test fails here as it would on a GPU.
"""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
from doors import BehindDoors
from picky import CUDA, TRANSFERS, Device, Namespace, wrap
from picky import Array as ndarray

from gpuforest.backends import gpu, registry


def asarray(value: Any, dtype: Any = None, **kwargs: Any) -> ndarray:
    """From the host, or from what lies on the device."""
    if hasattr(value, "__cuda_array_interface__"):
        value = value.__cuda_array_interface__["fake"]
    if isinstance(value, ndarray):
        return value if dtype is None else wrap(value.host.astype(dtype))
    host = np.array(value, dtype)
    TRANSFERS.append(("in", host.nbytes))
    return ndarray(host)


def from_dlpack(value: Any) -> ndarray:
    assert value.__dlpack_device__()[0] == CUDA
    return value.__dlpack__(stream=1)


class Cupy(Namespace):
    """array_api_compat.cupy: the standard's functions, and what CuPy adds."""

    __name__ = "array_api_compat.cupy"
    asarray = staticmethod(asarray)
    from_dlpack = staticmethod(from_dlpack)


class OutOfMemoryError(MemoryError):
    pass


OutOfMemoryError.__module__ = "cupy.cuda.memory"


def module(name: str, **members: Any) -> ModuleType:
    """A module of these members, as if it were installed."""
    made = ModuleType(name)
    made.__spec__ = ModuleSpec(name, None)
    vars(made).update(members)
    return made


def cupy_module(**runtime: Any) -> ModuleType:
    """The module `cupy`, with what CUDA's runtime says."""
    says = SimpleNamespace(
        runtimeGetVersion=lambda: 13020, memGetInfo=lambda: (1000, 2000), getDevice=lambda: 0
    )
    vars(says).update(runtime)
    return module(
        "cupy", __version__="14.2.0", ndarray=ndarray, asarray=asarray, from_dlpack=from_dlpack,
        empty=Cupy().empty, cuda=SimpleNamespace(Device=Device, runtime=says),
    )  # fmt: skip


class Tensor:
    """A tensor of torch, or an array of JAX: DLPack is the only way in and out."""

    def __init__(self, host: np.ndarray, device: int = 0, kind: int = CUDA) -> None:
        self.host, self.number, self.kind = host, device, kind
        self.device, self.dtype, self.requires_grad = f"cuda:{device}", host.dtype, True

    def __dlpack_device__(self):
        return self.kind, self.number

    def __dlpack__(self, **kwargs):
        assert not self.requires_grad, "a tensor that requires grad cannot be exported"
        return ndarray(self.host, self.number)

    def __len__(self):
        return len(self.host)

    def __getitem__(self, index):
        return type(self)(self.host[index], self.number)

    @property
    def __cuda_array_interface__(self):
        raise RuntimeError("Can't get __cuda_array_interface__ on Variable that requires grad")

    def detach(self):
        other = type(self)(self.host, self.number)
        other.requires_grad = False
        return other

    def cpu(self):
        return self

    def numpy(self):
        TRANSFERS.append(("out", self.host.nbytes))
        return self.host.copy()

    def to(self, device):
        assert device == self.device
        return self


Tensor.__module__ = "torch"


class JaxArray(Tensor):
    __module__ = "jaxlib._jax"
    __mro_entries__ = None

    def __init__(self, host, device=0):
        super().__init__(host, device)
        self.requires_grad = False

    def devices(self):
        return {f"gpu:{self.number}"}

    def __array__(self, *args, **kwargs):
        return self.numpy()


def _from_dlpack(kind: type) -> Any:
    return lambda array: kind(array.__dlpack__().host, array.device.id)


def torch_module() -> ModuleType:
    return module("torch", Tensor=Tensor, from_dlpack=_from_dlpack(Tensor), from_numpy=Tensor)


def jax_modules() -> dict[str, ModuleType]:
    dlpack = module("jax.dlpack", from_dlpack=_from_dlpack(JaxArray))
    jax = module("jax", Array=JaxArray, device_put=lambda host, device: JaxArray(host))
    return {"jax": jax, "jax.dlpack": dlpack}


class Bare:
    """An array of a library that nobody knows, with `__cuda_array_interface__` alone."""

    def __init__(self, array: Any) -> None:
        self.array, self.__cuda_array_interface__ = array, array.__cuda_array_interface__

    def __len__(self):
        return len(self.array)


class BareDlpack:
    """The same, with DLPack alone."""

    def __init__(self, array: Any) -> None:
        self.array = array


for _name in ("__len__", "__dlpack_device__", "__dlpack__"):
    setattr(BareDlpack, _name, lambda self, *a, name=_name, **k: getattr(self.array, name)(*a, **k))


class FakeCupyBackend(BehindDoors):
    """The reference's kernels behind the two doors."""

    name, xp, array = "cupy", Cupy(), ndarray

    def asarray(self, host):
        return asarray(host)

    def asnumpy(self, array):
        assert isinstance(array, ndarray)
        return array.get()

    def at_home(self, value):
        return value.host if isinstance(value, ndarray) else super().at_home(value)

    def there(self, value):
        return wrap(value) if isinstance(value, np.ndarray) else super().there(value)

    def booster(self, boosting):
        return self.kernels.booster(self.at_home(boosting))


def install(monkeypatch: Any) -> None:
    """A machine with a GPU: `cupy` can be imported, and the backend of that name runs."""
    monkeypatch.setitem(sys.modules, "cupy", cupy_module())
    monkeypatch.setitem(registry._factories, "cupy", FakeCupyBackend)
    monkeypatch.setattr(gpu, "_answers", {})
    monkeypatch.setattr(gpu, "_said", set())
    monkeypatch.setattr(gpu, "_ask", lambda: None)
    TRANSFERS.clear()
