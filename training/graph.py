"""Parts of an ONNX graph of an encoder that runs fast on a CPU.

Graphs are written node by node rather than traced, because three choices decide their speed:

* linear layers are one fused kernel each (quantise, multiply 8-bit integers, scale, add bias);
* query, key and value share one multiplication;
* layer normalisation is spelled out in vectorised elementary operations: ONNX Runtime's own CPU
  kernel for it is scalar and took a third of the time of an 8-bit model.

Activations are quantised with one scale per tensor. So that a result cannot depend on the texts
it is batched with, ``judges.reading`` gives every sequence a forward pass of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from judges.exactness import SAFE_WEIGHT

__all__ = ["LEVELS", "MICROSOFT", "OPSET", "Graph"]

Array = NDArray[Any]

MICROSOFT = "com.microsoft"
OPSET = 20
LEVELS = SAFE_WEIGHT
"""Largest magnitude of a symmetric 8-bit weight; see ``judges.exactness``."""


class _Place(NamedTuple):
    """Names of the constants that hold a parameter."""

    values: str
    scales: str | None = None
    transposed: bool = False


class Graph:
    """Nodes and constants in the making; methods return the name of their result."""

    def __init__(self, state: Mapping[str, Array], *, epsilon: float, quantise: bool) -> None:
        self.state = state
        self.epsilon = epsilon
        self.quantise = quantise
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self.places: dict[str, _Place] = {}

    def add(
        self,
        kind: str,
        inputs: Sequence[str],
        *,
        result: str = "",
        domain: str = "",
        **options: Any,
    ) -> str:
        """Append a node with one output."""
        result = result or f"{kind}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [result], domain=domain, **options))
        return result

    def constant(self, values: Array | float) -> str:
        """Append a constant; plain numbers become 32-bit float scalars."""
        array = np.asarray(values, np.float32) if isinstance(values, float) else values
        name = f"constant_{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(array, name))
        return name

    def weight(self, name: str) -> str:
        """Append a parameter as it is."""
        constant = self.constant(np.ascontiguousarray(self.state[name], np.float32))
        self.places[name] = _Place(constant)
        return constant

    def linear(self, name: str, source: str) -> str:
        """Append a linear layer over [n, l, in] or [n, in]."""
        if not self.quantise:
            weight = self.constant(np.ascontiguousarray(self.state[f"{name}.weight"].T))
            self.places[f"{name}.weight"] = _Place(weight, transposed=True)
            product = self.add("MatMul", [source, weight])
            return self.add("Add", [product, self.weight(f"{name}.bias")])
        table, scales = _eight_bit(self.state[f"{name}.weight"])
        place = _Place(
            self.constant(np.ascontiguousarray(table.T)),
            self.constant(scales[:, 0].copy()),
            transposed=True,
        )
        self.places[f"{name}.weight"] = place
        inputs = [
            source,
            place.values,
            place.scales or "",
            self.constant(np.zeros(len(table), np.int8)),
            self.weight(f"{name}.bias"),
        ]
        return self.add("DynamicQuantizeMatMul", inputs, domain=MICROSOFT)

    def plain(self, name: str, source: str, *, result: str = "") -> str:
        """Append the last layer of a head over [n, in], in 32-bit floats."""
        inputs = [source, self.weight(f"{name}.weight"), self.weight(f"{name}.bias")]
        return self.add("Gemm", inputs, result=result, transB=1)

    def matrix(self, name: str, source: str) -> str:
        """Append a product of [n, in] with a matrix alone, in 32-bit floats."""
        return self.add("Gemm", [source, self.weight(f"{name}.weight")], transB=1)

    def plain_tokens(self, name: str, source: str, *, result: str) -> str:
        """Append a linear layer over [n, l, in], in 32-bit floats."""
        weight = self.constant(np.ascontiguousarray(self.state[f"{name}.weight"].T, np.float32))
        self.places[f"{name}.weight"] = _Place(weight, transposed=True)
        product = self.add("MatMul", [source, weight])
        return self.add("Add", [product, self.weight(f"{name}.bias")], result=result)

    def words(self, ids: str) -> str:
        """Append the look-up of word embeddings: [n, l, hidden]."""
        if not self.quantise:
            return self.add("Gather", [self.weight("words.weight"), ids])
        table, scales = _eight_bit(self.state["words.weight"])
        place = _Place(self.constant(table), self.constant(scales))
        self.places["words.weight"] = place
        rows = self.add("Cast", [self.add("Gather", [place.values, ids])], to=TensorProto.FLOAT)
        return self.add("Mul", [rows, self.add("Gather", [place.scales or "", ids])])

    def stored(
        self, constants: Mapping[str, Array], shapes: Mapping[str, tuple[int, ...]], path: Path
    ) -> dict[str, Array]:
        """Parameters that a file with the same nodes holds, as 32-bit floats.

        Raises:
            ValueError: The file holds other parameters than ``shapes`` names.
        """
        if len(constants) != len(self.constants):
            raise ValueError(f"{path} holds no 8-bit judge with these heads and layers")
        state: dict[str, Array] = {}
        for name, shape in shapes.items():
            place = self.places[name]
            values = constants.get(place.values, np.empty(0)).astype(np.float32)
            if place.transposed:
                values = values.T
            if values.shape != shape:
                raise ValueError(f"{path} holds no parameter {name} of shape {shape}")
            if place.scales is not None:
                values = values * constants[place.scales].reshape(-1, 1)
            state[name] = values
        return state

    def norm(self, name: str, source: str) -> str:
        """Append a layer normalisation over the last axis, in vectorised operations."""
        width = len(self.state[f"{name}.weight"])
        last = self.constant(np.array([-1], np.int64))
        mean = self.add("ReduceMean", [source, last], keepdims=1)
        centred = self.add("Sub", [source, mean])
        squares = self.add("ReduceSumSquare", [centred, last], keepdims=1)
        squares = self.add("Add", [squares, self.constant(self.epsilon * width)])
        deviation = self.add("Sqrt", [self.add("Mul", [squares, self.constant(1.0 / width)])])
        scaled = self.add(
            "Mul", [self.add("Div", [centred, deviation]), self.weight(f"{name}.weight")]
        )
        return self.add("Add", [scaled, self.weight(f"{name}.bias")])


def _eight_bit(weight: Array) -> tuple[Array, Array]:
    """Quantise each row to signed 8-bit integers: int8 [rows, width], float32 [rows, 1]."""
    scales = np.maximum(np.abs(weight).max(axis=1, keepdims=True), 1e-12) / LEVELS
    table = np.clip(np.rint(weight / scales), -LEVELS, LEVELS)
    return table.astype(np.int8), scales.astype(np.float32)
