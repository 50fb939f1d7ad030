"""Writes a cross-encoder as the ONNX graph that runs fastest on a CPU.

The graph is written node by node rather than traced, because three choices decide its speed:

* linear layers are one fused kernel each (quantise, multiply 8-bit integers, scale, add bias);
* query, key and value share one multiplication, and attention is one kernel;
* layer normalisation is spelled out in vectorised elementary operations: ONNX Runtime's own CPU
  kernel for it is scalar and took a third of the time of an 8-bit model.

Activations are quantised with one scale per tensor. So that a result cannot depend on the texts
it is batched with, ``judges.session`` gives every sequence a forward pass of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from judges.session import SAFE_WEIGHT

__all__ = ["write_cross_encoder"]

Array = NDArray[Any]

MICROSOFT = "com.microsoft"
OPSET = 20
LEVELS = SAFE_WEIGHT
"""Largest magnitude of a symmetric 8-bit weight; see ``judges.session``."""

INPUTS = ("input_ids", "attention_mask", "token_type_ids")


def write_cross_encoder(
    state: Mapping[str, Array],
    path: Path,
    *,
    heads: Sequence[str],
    attention_heads: int = 12,
    epsilon: float = 1e-12,
) -> None:
    """Write a cross-encoder with its heads as one file.

    Linear layers (per output channel) and word embeddings (per word) are 8-bit integers.

    The graph takes ``input_ids``, ``attention_mask`` and ``token_type_ids`` (int64 [n, l]) and
    gives the raw logits of each head under the head's name, [n, labels] or, of token heads,
    [n, l, labels].

    Args:
        state: Parameters as 32-bit floats: ``words.weight``, ``positions.weight``,
            ``segments.weight``, ``embedding_norm.*``, ``layers.0.qkv.*``,
            ``layers.0.attention_out.*``, ``layers.0.attention_norm.*``, ``layers.0.up.*``,
            ``layers.0.down.*``, ``layers.0.output_norm.*``, ``heads.NAME.0.*``,
            ``heads.NAME.3.*``. Weights of linear layers are [out, in].
        path: Where the file goes.
        heads: Names of the heads; each reads the first token's state joined with the mean over
            all tokens, through a linear layer, tanh and a linear layer.
        attention_heads: Attention heads of each layer.
        epsilon: Added to the variance in layer normalisation.

    Raises:
        KeyError: A parameter is missing from ``state``.
    """
    graph = _Graph(state, epsilon)
    _fill(graph, heads, attention_heads)
    inputs = [helper.make_tensor_value_info(name, TensorProto.INT64, ["n", "l"]) for name in INPUTS]
    outputs = [
        helper.make_tensor_value_info(
            head, TensorProto.FLOAT, ["n", len(state[f"heads.{head}.3.bias"])]
        )
        for head in heads
    ]
    made = helper.make_model(
        helper.make_graph(graph.nodes, "judge", inputs, outputs, graph.constants),
        opset_imports=[helper.make_opsetid("", OPSET), helper.make_opsetid(MICROSOFT, 1)],
        ir_version=10,
        producer_name="kg-guardrail",
    )
    onnx.save(made, str(path))


def _fill(graph: _Graph, heads: Sequence[str], attention_heads: int) -> None:
    """Add every node of a cross-encoder, in one fixed order."""
    mask = graph.add("Cast", ["attention_mask"], to=TensorProto.INT32)
    states = _embed(graph)
    layer = 0
    while f"layers.{layer}.qkv.weight" in graph.state:
        states = _layer(graph, f"layers.{layer}", states, mask, attention_heads)
        layer += 1
    features = _pool(graph, states)
    for head in heads:
        inner = graph.add("Tanh", [graph.linear(f"heads.{head}.0", features)])
        graph.plain(f"heads.{head}.3", inner, result=head)


class _Graph:
    """Nodes and constants in the making; methods return the name of their result."""

    def __init__(self, state: Mapping[str, Array], epsilon: float) -> None:
        self.state = state
        self.epsilon = epsilon
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []

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
        return self.constant(np.ascontiguousarray(self.state[name], np.float32))

    def linear(self, name: str, source: str) -> str:
        """Append a linear layer over [n, l, in] or [n, in]."""
        table, scales = _eight_bit(self.state[f"{name}.weight"])
        inputs = [
            source,
            self.constant(np.ascontiguousarray(table.T)),
            self.constant(scales[:, 0].copy()),
            self.constant(np.zeros(len(table), np.int8)),
            self.weight(f"{name}.bias"),
        ]
        return self.add("DynamicQuantizeMatMul", inputs, domain=MICROSOFT)

    def plain(self, name: str, source: str, *, result: str = "") -> str:
        """Append the last layer of a head over [n, in], in 32-bit floats."""
        inputs = [source, self.weight(f"{name}.weight"), self.weight(f"{name}.bias")]
        return self.add("Gemm", inputs, result=result, transB=1)

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


def _embed(graph: _Graph) -> str:
    """Word, position and segment embeddings, summed and normalised: [n, l, hidden]."""
    table, scales = _eight_bit(graph.state["words.weight"])
    rows = graph.add("Gather", [graph.constant(table), "input_ids"])
    rows = graph.add("Cast", [rows], to=TensorProto.FLOAT)
    words = graph.add("Mul", [rows, graph.add("Gather", [graph.constant(scales), "input_ids"])])
    length = graph.add("Shape", ["input_ids"], start=1, end=2)
    zero = graph.constant(np.array([0], np.int64))
    places = graph.add("Slice", [graph.weight("positions.weight"), zero, length, zero])
    segments = graph.add("Gather", [graph.weight("segments.weight"), "token_type_ids"])
    total = graph.add("Add", [graph.add("Add", [words, segments]), places])
    return graph.norm("embedding_norm", total)


def _layer(graph: _Graph, name: str, states: str, mask: str, attention_heads: int) -> str:
    """One BERT layer: self-attention and feed-forward, each with residual and norm."""
    joined = graph.linear(f"{name}.qkv", states)
    parts = [f"{joined}_{part}" for part in "qkv"]
    graph.nodes.append(helper.make_node("Split", [joined], parts, axis=-1, num_outputs=3))
    mixed = graph.add(
        "MultiHeadAttention", [*parts, "", mask], domain=MICROSOFT, num_heads=attention_heads
    )
    change = graph.linear(f"{name}.attention_out", mixed)
    states = graph.norm(f"{name}.attention_norm", graph.add("Add", [change, states]))
    wide = graph.add("Gelu", [graph.linear(f"{name}.up", states)])
    change = graph.linear(f"{name}.down", wide)
    return graph.norm(f"{name}.output_norm", graph.add("Add", [change, states]))


def _pool(graph: _Graph, states: str) -> str:
    """The first token's state, joined with the mean over the tokens without padding."""
    tokens = graph.constant(np.array([1], np.int64))
    keep = graph.add("Cast", ["attention_mask"], to=TensorProto.FLOAT)
    keep = graph.add("Unsqueeze", [keep, graph.constant(np.array([2], np.int64))])
    total = graph.add("ReduceSum", [graph.add("Mul", [states, keep]), tokens], keepdims=0)
    mean = graph.add("Div", [total, graph.add("ReduceSum", [keep, tokens], keepdims=0)])
    first = graph.add("Gather", [states, graph.constant(np.array(0, np.int64))], axis=1)
    return graph.add("Concat", [first, mean], axis=-1)
