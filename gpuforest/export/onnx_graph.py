"""An ONNX graph in the making: nodes, constants, and names that do not meet others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

ML = "ai.onnx.ml"


def require_onnx() -> Any:
    """The package onnx.

    Raises
    ------
    ImportError : it is not installed
    """
    try:
        import onnx
    except ImportError as error:
        raise ImportError("ONNX needs the package onnx: pip install 'gpuforest[onnx]'") from error
    return onnx


@dataclass(frozen=True, eq=False)
class Tensor:
    """An attribute that is a tensor, where an array would be a list."""

    values: np.ndarray


class Graph:
    """Nodes and constants, each with a name of its own.

    prefix : what names begin with
    """

    def __init__(self, prefix: str) -> None:
        self.onnx, self.prefix = require_onnx(), prefix
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def constant(self, value: Any) -> str:
        """The name of a new constant; strings are those of an array of objects."""
        name = f"{self.prefix}constant_{len(self.constants)}"
        self.constants.append(self.onnx.numpy_helper.from_array(np.asarray(value), name))
        return name

    def node(self, kind: str, *inputs: str, domain: str = "", **attributes: Any) -> str:
        """Add a node; the name of what it gives. Attributes are numbers, lists of strings,
        `Tensor`s, or arrays for lists of numbers."""
        return self.split(1, kind, *inputs, domain=domain, **attributes)[0]

    def split(
        self, n: int, kind: str, *inputs: str, domain: str = "", **attributes: Any
    ) -> list[str]:
        """`node`, of one that gives n results."""
        name = f"{self.prefix}{kind}_{len(self.nodes)}"
        found = [f"{name}_{i}" for i in range(n)]
        made = self.onnx.NodeProto(
            op_type=kind, input=inputs, output=found, name=name, domain=domain
        )
        made.attribute.extend(self._attribute(key, value) for key, value in attributes.items())
        self.nodes.append(made)
        return found

    def _attribute(self, name: str, value: Any) -> Any:
        """onnx's own helper looks at each number of a list, which takes long for a forest."""
        kinds = self.onnx.AttributeProto
        if isinstance(value, Tensor):
            tensor = self.onnx.numpy_helper.from_array(value.values, name)
            return kinds(name=name, type=kinds.TENSOR, t=tensor)
        if not isinstance(value, np.ndarray):
            return self.onnx.helper.make_attribute(name, value)
        if value.dtype.kind == "f":
            return kinds(name=name, type=kinds.FLOATS, floats=value.tolist())
        return kinds(name=name, type=kinds.INTS, ints=value.tolist())
