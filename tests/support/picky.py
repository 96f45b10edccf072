"""CuPy's rules without a GPU: arrays that refuse what CuPy refuses, and count what it does.

Beneath are NumPy's arrays. Refused is, as CuPy 14 does or would better do:

- a host array among device arrays, or instead of one; a device array where a host array is
  meant (CuPy: "Implicit conversion to a NumPy array is not allowed")
- functions, and arguments of functions, that array_api_compat.cupy lacks (where it is here)
- arrays of a device that is not the current one
- iteration, which launches a copy for each element
- numbers beyond 64 bits; `searchsorted` of two dtypes, which C++ would compare its own way;
  indices out of range, which CuPy's `take` silently wraps around

Memory that is not yet written holds garbage, as in a pool that others used before.

`operations` counts by name what starts work on the device, `waits` what waits for it, `copies`
what is copied to it, `graphs` the CUDA graphs, of many launches that the host makes at once.
`TRANSFERS` lists the copies of arrays between the host and the device.
"""

from __future__ import annotations

import inspect
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import cache
from importlib.util import find_spec
from types import ModuleType
from typing import Any

import array_api_compat.numpy as compat
import numpy as np
from cuda_on_cpu.module import launches
from emulated import EmulatedBackend
from numpy.lib.mixins import NDArrayOperatorsMixin

operations: Counter[str] = Counter()
waits: Counter[str] = Counter()
copies: Counter[str] = Counter()
graphs: Counter[str] = Counter()
TRANSFERS: list[tuple[str, int]] = []  # ("in" or "out", bytes)
CUDA = 2  # DLPack's name of the device


class Current(threading.local):
    """The number of a thread's current device."""

    number = 0


AT = Current()

# views and plain memory
FREE = {"broadcast_to", "empty", "empty_like", "expand_dims", "permute_dims", "reshape"}
# how often CuPy 14 copies a number to the host, to know how much memory a result needs
WAITS = {"nonzero": 1, "unique_all": 3, "unique_counts": 2, "unique_inverse": 1, "unique_values": 1}
# what CuPy alone has, and the package uses
BESIDES = {"ascontiguousarray": np.ascontiguousarray}


class Device(nullcontext[None]):
    """A device by its number."""

    def __init__(self, id: int = 0) -> None:
        super().__init__()
        self.id = id


class Array(NDArrayOperatorsMixin):
    """An array of CuPy's."""

    __hash__ = None
    __module__ = "cupy"

    def __init__(self, host: Any, device: int | None = None) -> None:
        self.host, self.device = np.asarray(host), Device(AT.number if device is None else device)

    __cuda_array_interface__ = property(lambda self: {"fake": self})
    T = property(lambda self: Array(self.host.T))

    def __len__(self) -> int:
        return len(self.host)

    def __dlpack_device__(self) -> tuple[int, int]:
        return CUDA, self.device.id

    def __dlpack__(self, **kwargs: Any) -> Array:
        return self

    def reshape(self, *shape: int) -> Array:
        return PickyBackend.xp.reshape(self, shape)

    def any(self, axis: int | None = None) -> Array:
        return PickyBackend.xp.any(self, axis=axis)

    def all(self) -> Array:
        return PickyBackend.xp.all(self)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        operations[ufunc.__name__] += 1
        plain = {name: unwrap(value) for name, value in options.items()}
        return wrap(getattr(ufunc, method)(*map(unwrap, inputs), **plain))

    def __iter__(self) -> Any:
        raise TypeError("iteration over a device array")

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError("Implicit conversion to a NumPy array is not allowed.")

    def __getitem__(self, key: Any) -> Array:
        return Array(unwrap(self)[unwrap_key(key)])

    def __setitem__(self, key: Any, value: Any) -> None:
        operations["set"] += 1
        unwrap(self)[unwrap_key(key)] = unwrap(value)

    def get(self) -> np.ndarray:
        waits["get"] += 1
        TRANSFERS.append(("out", self.nbytes))
        return unwrap(self).copy()

    def number(self, kind: type) -> Any:
        waits[kind.__name__] += 1
        if self.size != 1:
            raise ValueError("a number of an array of many")
        return kind(self.host[()] if not self.ndim else self.host.reshape(())[()])

    def astype(self, dtype: Any, copy: bool = True) -> Array:
        operations["astype"] += 1
        return Array(unwrap(self).astype(dtype, copy=copy))


for _name in ("shape", "dtype", "ndim", "size", "itemsize", "nbytes", "flags"):
    setattr(Array, _name, property(lambda self, name=_name: getattr(self.host, name)))
for _kind, _name in ((bool, "bool"), (int, "int"), (float, "float"), (int, "index")):
    setattr(Array, f"__{_name}__", lambda self, kind=_kind: self.number(kind))


def unwrap(value: Any) -> Any:
    """What NumPy takes in place of an argument."""
    if isinstance(value, Array):
        if value.device.id != AT.number:
            raise ValueError(f"an array of device {value.device.id} on device {AT.number}")
        return value.host
    if isinstance(value, list | tuple):
        return type(value)(unwrap(v) for v in value)
    if isinstance(value, np.ndarray) and value.dtype.kind != "V":  # but for structs by value
        raise TypeError("Unsupported type <class 'numpy.ndarray'>")
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        raise OverflowError(f"{value} does not fit 64 bits")
    return value


def unwrap_key(key: Any) -> Any:
    """An index; one by a mask waits, for its count."""
    parts = key if isinstance(key, tuple) else (key,)
    for part in parts:
        if isinstance(part, Array):
            operations["take" if part.dtype != bool else "mask"] += 1
            waits["mask"] += part.dtype == bool
        elif not (part is None or part is Ellipsis or isinstance(part, int | slice)):
            raise TypeError(f"an index of {type(part)}")
    return tuple(map(unwrap, parts)) if isinstance(key, tuple) else unwrap(key)


def wrap(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return Array(value)
    if isinstance(value, tuple):
        parts = [wrap(v) for v in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    return value


@cache
def cupy_namespace() -> ModuleType | None:
    """CuPy can be imported without a GPU."""
    if find_spec("cupy") is None:
        return None
    import array_api_compat.cupy

    return array_api_compat.cupy


class Namespace:
    """array_api_compat.cupy."""

    __name__ = "picky"

    def __getattr__(self, name: str) -> Any:
        theirs = None if cupy_namespace() is None else getattr(cupy_namespace(), name)
        ours = BESIDES.get(name) or getattr(compat, name)
        if not callable(ours) or isinstance(ours, type):
            return ours
        return _function(name, ours, theirs)


@cache
def _function(name: str, ours: Any, theirs: Any) -> Any:
    try:
        signature = inspect.signature(theirs)
    except (TypeError, ValueError):  # a ufunc has none
        signature = None

    def call(*args: Any, **kwargs: Any) -> Any:
        if signature is not None:
            signature.bind(*args, **kwargs)
        device = kwargs.pop("device", None)
        if device is not None and (type(device) is not Device or device.id != AT.number):
            raise ValueError("another device")
        if name not in FREE:
            operations[name] += 1
        waits[name] += WAITS.get(name, 0)
        if name == "repeat" and isinstance(args[1], Array):
            waits[name] += 2
        if name == "searchsorted" and args[0].dtype != args[1].dtype:
            raise TypeError(f"searchsorted: {args[1].dtype} among {args[0].dtype}")
        plain = tuple(map(unwrap, args)), {k: unwrap(v) for k, v in kwargs.items()}
        found = ours(*plain[0], **plain[1])
        if name in ("empty", "empty_like"):
            found = np.frombuffer(b"\xa5" * found.nbytes, np.uint8).view(found.dtype)
            found = found.reshape(ours(*map(unwrap, args), **kwargs).shape).copy()
        return wrap(found)

    return call


class PickyBackend(EmulatedBackend):
    """The emulated device, whose arrays keep CuPy's rules."""

    name = "picky"
    cache_bytes = 2**30  # all codes; beyond it, a level takes a launch and a sort more
    xp: Any = Namespace()

    def asarray(self, host: Any) -> Array:
        if isinstance(host, Array):
            unwrap(host)
            return host
        copies["asarray"] += 1
        return Array(np.array(host))

    def asnumpy(self, array: Any) -> np.ndarray:
        assert isinstance(array, Array)
        return array.get()

    def address(self, array: Array) -> int:
        assert array.device.id == self.device_number
        return super().address(array.host)

    @contextmanager
    def active(self) -> Iterator[None]:
        before, AT.number = AT.number, self.device_number
        try:
            yield
        finally:
            AT.number = before

    def copied(self, array: Array) -> Array:
        assert AT.number == self.device_number
        copies["peer"] += 1
        return Array(array.host.copy())

    def together(self, prepared: Sequence[Callable[[], None]]) -> Callable[[], None]:
        made = super().together(prepared)

        def graph() -> None:
            made()
            graphs["launch"] += 1
            launches["in graphs"] -= len(prepared)

        return graph

    def kernel(self, operation: str, name: str, macros: dict[str, str], shared: int) -> Any:
        found = super().kernel(operation, name, macros, shared)

        def launch(grid: Any, block: Any, arguments: Any, shared_mem: int = 0) -> None:
            found(grid, block, tuple(map(unwrap, arguments)), shared_mem=shared_mem)

        return launch
