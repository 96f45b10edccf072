"""The reference's kernels for arrays that lie elsewhere."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np

from gpuforest.backends.base import Backend
from gpuforest.backends.numpy import NumpyBackend


class BehindDoors(Backend):
    """Kernels take arguments from the device by `at_home`, and results go there by `there`.

    array : the class of the device's arrays
    """

    array: type
    kernels: Any = NumpyBackend()

    def at_home(self, value: Any) -> Any:
        """An argument with NumPy's arrays; of a record, all its arrays."""
        if isinstance(value, self.array):
            return self.asnumpy(value)
        if not is_dataclass(value):
            return value
        parts = {field.name: getattr(value, field.name) for field in fields(value)}
        moved = {name: self.at_home(part) for name, part in parts.items()}
        changes = {name: part for name, part in moved.items() if part is not parts[name]}
        return replace(value, **changes) if changes else value

    def there(self, value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(map(self.there, value))
        if is_dataclass(value):
            return type(value)(*map(self.there, vars(value).values()))
        is_array = isinstance(value, np.ndarray)
        return self.asarray(np.ascontiguousarray(value)) if is_array else value


def _kernel(name: str) -> Any:
    def call(self: BehindDoors, *arguments: Any) -> Any:
        return self.there(getattr(self.kernels, name)(*map(self.at_home, arguments)))

    return call


for _name in Backend.__abstractmethods__ - {"asnumpy"}:
    setattr(BehindDoors, _name, _kernel(_name))
BehindDoors.__abstractmethods__ = frozenset({"asnumpy"})
