"""Writes a judge as the ONNX graph that runs fastest on a CPU, and reads it back.

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
from typing import Any, NamedTuple

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from judges.exactness import SAFE_WEIGHT

__all__ = [
    "LEVELS",
    "Sizes",
    "read_cross_encoder",
    "read_sizes",
    "write_cross_encoder",
]

Array = NDArray[Any]

MICROSOFT = "com.microsoft"
OPSET = 20
LEVELS = SAFE_WEIGHT
"""Largest magnitude of a symmetric 8-bit weight; see ``judges.exactness``."""

INPUTS = ("input_ids", "attention_mask", "token_type_ids")


def write_cross_encoder(
    state: Mapping[str, Array],
    path: Path,
    *,
    heads: Sequence[str],
    token_heads: Sequence[str] = (),
    attention_heads: int = 12,
    epsilon: float = 1e-12,
    quantise: bool = True,
) -> None:
    """Write a cross-encoder with its heads as one file.

    The graph takes ``input_ids``, ``attention_mask`` and ``token_type_ids`` (int64 [n, l]) and
    gives the raw logits of each head under the head's name, [n, labels] or, of token heads,
    [n, l, labels].

    Args:
        state: Parameters as 32-bit floats, by the names of
            ``training.model.CrossEncoder``: ``words.weight``, ``positions.weight``,
            ``segments.weight``, ``embedding_norm.*``, ``layers.0.qkv.*``,
            ``layers.0.attention_out.*``, ``layers.0.attention_norm.*``, ``layers.0.up.*``,
            ``layers.0.down.*``, ``layers.0.output_norm.*``, ``heads.NAME.0.*``,
            ``heads.NAME.3.*``. Weights of linear layers are [out, in].
        path: Where the file goes.
        heads: Names of the heads; each reads the first token's state joined with the mean over
            all tokens, through a linear layer, tanh and a linear layer.
        token_heads: Names of the heads that read each token's state through a linear layer,
            ``tokens.NAME.*``.
        attention_heads: Attention heads of each layer.
        epsilon: Added to the variance in layer normalisation.
        quantise: Store linear layers (per output channel) and word embeddings (per word) in
            8-bit integers; otherwise everything stays in 32-bit floats.

    Raises:
        KeyError: A parameter is missing from ``state``.
    """
    graph = _Graph(state, epsilon=epsilon, quantise=quantise)
    _fill(graph, heads, token_heads, attention_heads)
    inputs = [helper.make_tensor_value_info(name, TensorProto.INT64, ["n", "l"]) for name in INPUTS]
    outputs = [
        helper.make_tensor_value_info(
            head, TensorProto.FLOAT, ["n", len(state[f"heads.{head}.3.bias"])]
        )
        for head in heads
    ]
    outputs += [
        helper.make_tensor_value_info(
            head, TensorProto.FLOAT, ["n", "l", len(state[f"tokens.{head}.bias"])]
        )
        for head in token_heads
    ]
    made = helper.make_model(
        helper.make_graph(graph.nodes, "judge", inputs, outputs, graph.constants),
        opset_imports=[helper.make_opsetid("", OPSET), helper.make_opsetid(MICROSOFT, 1)],
        ir_version=10,
        producer_name="kg-guardrail",
    )
    onnx.save(made, str(path))


def read_cross_encoder(
    path: Path,
    shapes: Mapping[str, tuple[int, ...]],
    *,
    heads: Sequence[str],
    token_heads: Sequence[str] = (),
) -> dict[str, Array]:
    """Read back the parameters of a file written by ``write_cross_encoder`` in 8 bits.

    Args:
        path: The file.
        shapes: Shape of each parameter, by the names of ``write_cross_encoder``.
        heads: Names of the heads the file was written with.
        token_heads: Names of its token heads.

    Returns:
        Parameters as 32-bit floats; 8-bit ones as their integers times their scales.

    Raises:
        ValueError: The file holds other parameters than ``shapes`` names.
    """
    blank = {name: np.zeros(shape, np.float32) for name, shape in shapes.items()}
    graph = _Graph(blank, epsilon=0.0, quantise=True)
    _fill(graph, heads, token_heads, 1)
    stored = {c.name: numpy_helper.to_array(c) for c in onnx.load(str(path)).graph.initializer}
    if len(stored) != len(graph.constants):
        raise ValueError(f"{path} holds no 8-bit cross-encoder with these heads and layers")
    state: dict[str, Array] = {}
    for name, shape in shapes.items():
        place = graph.places[name]
        values = stored.get(place.values, np.empty(0)).astype(np.float32)
        if place.transposed:
            values = values.T
        if values.shape != shape:
            raise ValueError(f"{path} holds no parameter {name} of shape {shape}")
        if place.scales is not None:
            values = values * stored[place.scales].reshape(-1, 1)
        state[name] = values
    return state


class Sizes(NamedTuple):
    """Sizes of a cross-encoder, by the names of ``training.model.EncoderConfig``."""

    vocab_size: int
    hidden_size: int
    positions: int
    segments: int
    layers: int
    attention_heads: int
    intermediate_size: int


def read_sizes(path: Path) -> Sizes:
    """Read the sizes of a file written by ``write_cross_encoder`` in 8 bits.

    Raises:
        ValueError: The file is of another kind.
    """
    try:
        graph = onnx.load(str(path)).graph
        shapes = {constant.name: tuple(constant.dims) for constant in graph.initializer}
        nodes = {node.op_type: node for node in reversed(graph.node)}
        linear = {n.output[0]: n for n in graph.node if n.op_type == "DynamicQuantizeMatMul"}
        lookups = {n.input[1]: n.input[0] for n in graph.node if n.op_type == "Gather"}
        vocab_size, hidden_size = shapes[nodes["Gather"].input[0]]
        return Sizes(
            vocab_size,
            hidden_size,
            positions=shapes[nodes["Slice"].input[0]][0],
            segments=shapes[lookups["token_type_ids"]][0],
            layers=sum(node.op_type == "MultiHeadAttention" for node in graph.node),
            attention_heads=helper.get_node_attr_value(nodes["MultiHeadAttention"], "num_heads"),
            intermediate_size=shapes[linear[nodes["Gelu"].input[0]].input[1]][1],
        )
    except Exception as error:
        raise ValueError(f"{path} is no 8-bit cross-encoder of this project: {error}") from error


def _fill(
    graph: _Graph, heads: Sequence[str], token_heads: Sequence[str], attention_heads: int
) -> None:
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
    for head in token_heads:
        graph.plain_tokens(f"tokens.{head}", states, result=head)


class _Place(NamedTuple):
    """Names of the constants that hold a parameter."""

    values: str
    scales: str | None = None
    transposed: bool = False


class _Graph:
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

    def plain_tokens(self, name: str, source: str, *, result: str) -> str:
        """Append a linear layer over [n, l, in], in 32-bit floats."""
        weight = self.constant(np.ascontiguousarray(self.state[f"{name}.weight"].T, np.float32))
        self.places[f"{name}.weight"] = _Place(weight, transposed=True)
        product = self.add("MatMul", [source, weight])
        return self.add("Add", [product, self.weight(f"{name}.bias")], result=result)

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
    if graph.quantise:
        table, scales = _eight_bit(graph.state["words.weight"])
        place = _Place(graph.constant(table), graph.constant(scales))
        graph.places["words.weight"] = place
        rows = graph.add("Gather", [place.values, "input_ids"])
        rows = graph.add("Cast", [rows], to=TensorProto.FLOAT)
        scale = graph.add("Gather", [place.scales or "", "input_ids"])
        words = graph.add("Mul", [rows, scale])
    else:
        words = graph.add("Gather", [graph.weight("words.weight"), "input_ids"])
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
