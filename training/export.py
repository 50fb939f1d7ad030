"""Writes a ``WindowModel`` as one ONNX graph in 8 bits with fixed activation scales.

The graph reads one sequence and the keys and values of the evidence that it may see:

* for a window there is no evidence, and the graph gives the window's own keys and values;
* for a claim it gives logits, features, states, and how much it attends to each evidence token.

Activations are quantised with scales that were measured once, not with those of the batch, so that
a result depends only on its input. Before it is quantised, an activation is divided by a
factor per channel that its weights are multiplied by (SmoothQuant, Xiao et al. 2023, eq. 4).
Keys and values leave the graph as 8-bit integers; their scales are part of the weights. Constants
are in two files next to the graph, so that none reaches 95 MB.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx
import torch
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from torch import Tensor, nn

from judges.session import SAFE_WEIGHT
from training.window_model import LABELS, Packed, Sizes, WindowModel, bucket

__all__ = ["GRAPH", "LAYERS_FILE", "WORDS_FILE", "Ranges", "measure_ranges", "write_graph"]

Array = NDArray[Any]

GRAPH, LAYERS_FILE, WORDS_FILE = "judge.onnx", "layers.weights", "words.weights"
MICROSOFT = "com.microsoft"
OPSET = 20
INLINE = 1_024
"""Constants of fewer bytes stay in the graph's own file."""
SMOOTHING = (0.6, 0.7, 0.75, 0.8, 0.85, 0.9)
"""Exponents of the factors per channel; each layer takes the one with the least error."""
SAMPLED = 256
"""Inputs of each linear layer that this error is measured on."""
CLIPPED = 0.9999
"""Share of a key's or value's channel that fits into its 8 bits."""


class Ranges(NamedTuple):
    """What activations were met on calibration rows.

    Attributes:
        low: Least value of each channel that a linear layer reads, by the name of the layer.
        high: Greatest value.
        size: Size of each channel of keys and values of windows, by the name of their layer.
        rows: Some inputs of each linear layer, [SAMPLED, in].
    """

    low: dict[str, Array]
    high: dict[str, Array]
    size: dict[str, Array]
    rows: dict[str, Array]


@torch.no_grad()
def measure_ranges(model: WindowModel, batches: Iterable[Packed]) -> Ranges:
    """Measure activations over calibration rows.

    Args:
        model: The network in 32 bits.
        batches: Packed evidence sets; a few dozen evidence sets are enough.
    """
    low: dict[str, Array] = {}
    high: dict[str, Array] = {}
    sizes: dict[str, list[Array]] = {}
    rows: dict[str, list[Array]] = {}
    windows: list[NDArray[np.bool_]] = []

    def watch(name: str) -> Callable[[nn.Module, tuple[Tensor, ...], Tensor], None]:
        def see(module: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
            values = inputs[0].numpy()
            low[name] = np.minimum(low.get(name, np.inf), values.min(0))
            high[name] = np.maximum(high.get(name, -np.inf), values.max(0))
            rows.setdefault(name, []).append(values[:: max(1, len(values) // 16)].copy())
            if name.endswith((".k", ".v")):
                sizes.setdefault(name, []).append(
                    np.abs(output.numpy()[windows[-1]]).astype(np.float16)
                )

        return see

    hooks = [
        module.register_forward_hook(watch(name))
        for name, module in model.named_modules()
        if isinstance(module, nn.Linear) and name != "output"
    ]
    model.eval()
    for packed in batches:
        windows.append(packed.evidence.numpy())
        model(packed)
    for hook in hooks:
        hook.remove()
    size = {
        name: np.quantile(np.concatenate(found), CLIPPED, axis=0).astype(np.float32)
        for name, found in sizes.items()
    }
    return Ranges(low, high, size, {name: _sample(found) for name, found in rows.items()})


def _sample(found: Sequence[Array]) -> Array:
    rows = np.concatenate(found)
    return rows[:: max(1, len(rows) // SAMPLED)][:SAMPLED]


def write_graph(model: WindowModel, folder: Path, ranges: Ranges | None) -> None:
    """Write the graph and its constants.

    Inputs: ``ids`` int64 [n], ``first`` int64 [1] (position of the first token), ``start`` int64
    [1] (first token of the sentence), ``places`` int64 [p] (positions of the evidence tokens),
    ``keys`` int8 [layers, heads, d, p], ``values`` int8 [layers, heads, p, d]. Outputs:
    ``own_keys`` and ``own_values`` likewise, ``labels`` [4], ``features`` [2 · width],
    ``states`` [n, width] and ``attention`` [layers · heads, p], the mean over the sentence.

    Args:
        model: The network.
        folder: Where the files go; made if missing.
        ranges: From ``measure_ranges``; None keeps 32 bits throughout, to compare with.
    """
    folder.mkdir(parents=True, exist_ok=True)
    graph = _Graph(model, ranges)
    graph.build()
    inputs: dict[str, tuple[int, list[str | int]]] = {
        "ids": (TensorProto.INT64, ["n"]),
        "first": (TensorProto.INT64, [1]),
        "start": (TensorProto.INT64, [1]),
        "places": (TensorProto.INT64, ["p"]),
        "keys": (graph.stored, [graph.layers, graph.heads, graph.depth, "p"]),
        "values": (graph.stored, [graph.layers, graph.heads, "p", graph.depth]),
    }
    outputs: dict[str, tuple[int, list[str | int]]] = {
        "own_keys": (graph.stored, [graph.layers, graph.heads, graph.depth, "n"]),
        "own_values": (graph.stored, [graph.layers, graph.heads, "n", graph.depth]),
        "labels": (TensorProto.FLOAT, [len(LABELS)]),
        "features": (TensorProto.FLOAT, [2 * graph.sizes.hidden_size]),
        "states": (TensorProto.FLOAT, ["n", graph.sizes.hidden_size]),
        "attention": (TensorProto.FLOAT, [graph.layers * graph.heads, "p"]),
    }
    _store(graph.constants, folder)
    made = helper.make_model(
        helper.make_graph(
            graph.nodes,
            "judge",
            [helper.make_tensor_value_info(name, *kind) for name, kind in inputs.items()],
            [helper.make_tensor_value_info(name, *kind) for name, kind in outputs.items()],
            graph.constants,
        ),
        opset_imports=[helper.make_opsetid("", OPSET), helper.make_opsetid(MICROSOFT, 1)],
        ir_version=10,
        producer_name="kg-guardrail",
    )
    (folder / GRAPH).write_bytes(made.SerializeToString())


def _store(constants: Sequence[onnx.TensorProto], folder: Path) -> None:
    """Move large constants into files next to the graph: word embeddings, and all others."""
    places = {LAYERS_FILE: 0, WORDS_FILE: 0}
    with (folder / LAYERS_FILE).open("wb") as layers, (folder / WORDS_FILE).open("wb") as words:
        for constant in constants:
            data = constant.raw_data
            if len(data) < INLINE:
                continue
            name = WORDS_FILE if constant.name.startswith("words") else LAYERS_FILE
            file = words if name == WORDS_FILE else layers
            padding = -places[name] % 64
            file.write(bytes(padding) + data)
            constant.ClearField("raw_data")
            constant.data_location = TensorProto.EXTERNAL
            entries = {"location": name, "offset": places[name] + padding, "length": len(data)}
            for key, value in entries.items():
                constant.external_data.add(key=key, value=str(value))
            places[name] += padding + len(data)


class _Graph:
    """Nodes and constants in the making; methods return the name of their result."""

    def __init__(self, model: WindowModel, ranges: Ranges | None) -> None:
        self.sizes: Sizes = model.sizes
        self.layers, self.heads = self.sizes.num_hidden_layers, self.sizes.num_attention_heads
        self.depth = self.sizes.hidden_size // self.heads
        self.ranges = ranges
        self.stored = TensorProto.FLOAT if ranges is None else TensorProto.INT8
        self.state = {k: v.detach().float().cpu().numpy() for k, v in model.state_dict().items()}
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []

    def add(
        self, kind: str, inputs: Sequence[str], *, result: str = "", domain: str = "", **more: Any
    ) -> str:
        """Append a node with one output."""
        result = result or f"{kind}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [result], domain=domain, **more))
        return result

    def constant(self, values: Array | float | Sequence[int], name: str = "constant") -> str:
        """Append a constant: a float, integers, or an array as it is."""
        if isinstance(values, float):
            array = np.asarray(values, np.float32)
        elif isinstance(values, np.ndarray):
            array = np.asarray(values, order="C")
        else:
            array = np.asarray(values, np.int64)
        name = f"{name}_{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(array, name))
        return name

    def build(self) -> None:
        """Append the whole network."""
        zero, one = self.constant([0]), self.constant([1])
        length = self.add("Shape", ["ids"])
        steps = self.add("Range", [self.scalar(zero), self.scalar(length), self.scalar(one)])
        own = self.add("Add", [steps, "first"])
        bias = self._bias(own)
        states = self._embed(own)
        rest = {
            "keys": self._per_layer("keys"),
            "values": self._per_layer("values"),
        }
        collected: dict[str, list[str]] = {"own_keys": [], "own_values": [], "attention": []}
        for number in range(self.layers):
            states = self._layer(
                f"encoder.encoder.layer.{number}",
                states,
                bias,
                rest["keys"][number],
                rest["values"][number],
                collected,
            )
        for name in ("own_keys", "own_values"):
            lifted = [self.add("Unsqueeze", [part, zero]) for part in collected[name]]
            self.add("Concat", lifted, result=name, axis=0)
        self.add("Concat", collected["attention"], result="attention", axis=0)
        self._head(self.add("Identity", [states], result="states"), length)

    def scalar(self, name: str) -> str:
        """A tensor of one element as a scalar."""
        return self.add("Squeeze", [name])

    def _per_layer(self, name: str) -> list[str]:
        """The evidence's keys or values of each layer, as floats."""
        parts = [f"{name}_{number}" for number in range(self.layers)]
        self.nodes.append(helper.make_node("Split", [name], parts, axis=0, num_outputs=self.layers))
        zero = self.constant([0])
        return [
            self.add("Cast", [self.add("Squeeze", [part, zero])], to=TensorProto.FLOAT)
            for part in parts
        ]

    def _bias(self, own: str) -> str:
        """Bias of attention by distance, [heads, n, p + n]."""
        most = self.sizes.max_position_embeddings
        distances = torch.arange(-most, most + 1)
        table = self.state["encoder.encoder.relative_attention_bias.weight"]
        rows = table[bucket(distances, self.sizes.relative_attention_num_buckets).numpy()]
        keys = self.add("Concat", ["places", own], axis=0)
        queries = self.add("Unsqueeze", [own, self.constant([1])])
        distance = self.add("Sub", [self.add("Unsqueeze", [keys, self.constant([0])]), queries])
        index = self.add("Add", [distance, self.constant([most])])
        return self.add("Gather", [self.constant(rows.T.copy()), index], axis=1)

    def _embed(self, own: str) -> str:
        """Word and position embeddings, summed and normalised: [n, width]."""
        words = self.state["encoder.embeddings.word_embeddings.weight"]
        if self.ranges is None:
            rows = self.add("Gather", [self.constant(words, "words"), "ids"])
        else:
            scales = np.maximum(np.abs(words).max(1, keepdims=True), 1e-12) / 127
            table = np.rint(words / scales).astype(np.int8)
            rows = self.add("Gather", [self.constant(table, "words"), "ids"])
            rows = self.add("Cast", [rows], to=TensorProto.FLOAT)
            scale = self.add("Gather", [self.constant(scales.astype(np.float32)), "ids"])
            rows = self.add("Mul", [rows, scale])
        positions = self.state["encoder.embeddings.position_embeddings.weight"][2:]
        places = self.add("Gather", [self.constant(positions, "words"), own])
        return self.norm("encoder.embeddings.LayerNorm", self.add("Add", [rows, places]))

    def _layer(
        self,
        name: str,
        states: str,
        bias: str,
        keys: str,
        values: str,
        collected: dict[str, list[str]],
    ) -> str:
        attention = f"{name}.attention.attn"
        key_size, value_size = self._stored_sizes(attention)
        depth = float(self.depth) ** -0.5
        parts = [
            (f"{attention}.q", key_size * depth),
            (f"{attention}.k", 1 / key_size),
            (f"{attention}.v", 1 / value_size),
        ]
        weight = np.concatenate([self.state[f"{n}.weight"] * s[:, None] for n, s in parts])
        shift = np.concatenate([self.state[f"{n}.bias"] * s for n, s in parts])
        joined = self.linear(f"{attention}.q", states, weight, shift)
        split = [f"{joined}_{part}" for part in "qkv"]
        self.nodes.append(helper.make_node("Split", [joined], split, axis=-1, num_outputs=3))
        shape = self.constant([-1, self.heads, self.depth])
        query, key, value = (
            self.add("Transpose", [self.add("Reshape", [part, shape])], perm=order)
            for part, order in zip(split, ([1, 0, 2], [1, 2, 0], [1, 0, 2]), strict=True)
        )
        collected["own_keys"].append(self._eight_bits(key))
        collected["own_values"].append(self._eight_bits(value))
        scores = self.add(
            "Concat",
            [self.add("MatMul", [query, keys]), self.add("MatMul", [query, key])],
            axis=-1,
        )
        chances = self.add("Softmax", [self.add("Add", [scores, bias])], axis=-1)
        count = self.add("Shape", ["places"])
        ends = self.constant([2**31])
        last = self.constant([2])
        far = self.add("Slice", [chances, self.constant([0]), count, last])
        near = self.add("Slice", [chances, count, ends, last])
        tail = self.add("Slice", [far, "start", ends, self.constant([1])])
        collected["attention"].append(
            self.add("ReduceMean", [tail, self.constant([1])], keepdims=0)
        )
        mixed = self.add(
            "Add", [self.add("MatMul", [far, values]), self.add("MatMul", [near, value])]
        )
        mixed = self.add("Transpose", [mixed], perm=[1, 0, 2])
        mixed = self.add("Reshape", [mixed, self.constant([-1, self.heads * self.depth])])
        out = f"{attention}.o"
        weight = self.state[f"{out}.weight"] * value_size[None]
        change = self.linear(out, mixed, weight, self.state[f"{out}.bias"], by=1 / value_size)
        states = self.norm(f"{name}.attention.LayerNorm", self.add("Add", [change, states]))
        wide = self.add("Gelu", [self.plain_linear(f"{name}.intermediate.dense", states)])
        change = self.plain_linear(f"{name}.output.dense", wide)
        return self.norm(f"{name}.output.LayerNorm", self.add("Add", [change, states]))

    def _stored_sizes(self, attention: str) -> tuple[Array, Array]:
        """What one step of a stored key and value stands for, by channel."""
        if self.ranges is None:
            ones = np.ones(self.sizes.hidden_size, np.float32)
            return ones, ones
        key, value = (np.maximum(self.ranges.size[f"{attention}.{p}"], 1e-6) / 127 for p in "kv")
        return key, value

    def _eight_bits(self, source: str) -> str:
        if self.ranges is None:
            return self.add("Identity", [source])
        step, zero = self.constant(1.0), self.constant(np.zeros((), np.int8))
        return self.add("QuantizeLinear", [source, step, zero])

    def plain_linear(self, name: str, source: str) -> str:
        """A linear layer with its own weights."""
        return self.linear(name, source, self.state[f"{name}.weight"], self.state[f"{name}.bias"])

    def linear(
        self, name: str, source: str, weight: Array, shift: Array, by: Array | None = None
    ) -> str:
        """Append a linear layer over [n, in].

        Args:
            name: The layer whose input was measured.
            source: Its input.
            weight: Weights, [out, in].
            shift: Bias, [out].
            by: What the input was multiplied by since it was measured, [in].
        """
        if self.ranges is None:
            product = self.add("MatMul", [source, self.constant(weight.T.astype(np.float32))])
            return self.add("Add", [product, self.constant(shift.astype(np.float32))])
        by = np.ones(weight.shape[1], np.float32) if by is None else by
        low, high = (side[name] * by for side in (self.ranges.low, self.ranges.high))
        layer = _best_eight_bit(weight, low, high, self.ranges.rows[name] * by)
        source = self.add("Mul", [source, self.constant(1 / layer.factor)])
        step, zero = self.constant(layer.step), self.constant(np.array(layer.zero, np.uint8))
        inputs = [
            self.add("QuantizeLinear", [source, step, zero]),
            self.constant(layer.table.T),
            step,
            self.constant(layer.scales),
            zero,
            self.constant(np.zeros(len(layer.scales), np.int8)),
            self.constant(shift.astype(np.float32)),
        ]
        return self.add("MatMulIntegerToFloat", inputs, domain=MICROSOFT)

    def norm(self, name: str, source: str) -> str:
        """Append a layer normalisation over the last axis, in vectorised operations."""
        width = self.sizes.hidden_size
        last = self.constant([-1])
        centred = self.add("Sub", [source, self.add("ReduceMean", [source, last], keepdims=1)])
        squares = self.add("ReduceSumSquare", [centred, last], keepdims=1)
        squares = self.add("Add", [squares, self.constant(self.sizes.layer_norm_eps * width)])
        deviation = self.add("Sqrt", [self.add("Mul", [squares, self.constant(1.0 / width)])])
        normed = self.add("Div", [centred, deviation])
        scaled = self.add("Mul", [normed, self.constant(self.state[f"{name}.weight"])])
        return self.add("Add", [scaled, self.constant(self.state[f"{name}.bias"])])

    def _head(self, states: str, length: str) -> None:
        first = self.add("Gather", [states, self.constant(np.array(0, np.int64))], axis=0)
        axes = self.constant([0])
        sentence = self.add("Slice", [states, "start", length, axes])
        mean = self.add("ReduceMean", [sentence, axes], keepdims=0)
        features = self.add("Concat", [first, mean], result="features", axis=-1)
        row = self.add("Unsqueeze", [features, axes])
        hidden = self.add(
            "Gemm",
            [
                row,
                self.constant(self.state["hidden.weight"]),
                self.constant(self.state["hidden.bias"]),
            ],
            transB=1,
        )
        logits = self.add(
            "Gemm",
            [
                self.add("Tanh", [hidden]),
                self.constant(self.state["output.weight"]),
                self.constant(self.state["output.bias"]),
            ],
            transB=1,
        )
        self.add("Squeeze", [logits, axes], result="labels")


class _EightBit(NamedTuple):
    """A linear layer in 8 bits.

    Attributes:
        factor: What each input channel is divided by, [in].
        step: What one step of an activation stands for.
        zero: The activation that stands for 0.
        table: Weights, int8 [out, in].
        scales: What one step of a weight stands for, [out].
    """

    factor: Array
    step: float
    zero: int
    table: Array
    scales: Array

    def error(self, rows: Array, wanted: Array) -> float:
        """Squared error over some inputs."""
        eight = np.clip(np.rint(rows / self.factor / self.step) + self.zero, 0, 255) - self.zero
        found = (eight * self.step) @ (self.table.T * self.scales)
        return float(np.square(found - wanted).sum())


def _best_eight_bit(weight: Array, low: Array, high: Array, rows: Array) -> _EightBit:
    """The 8-bit form of a layer with the least error on some inputs."""
    wanted = rows @ weight.T
    tried = [_eight_bit(weight, low, high, smoothing) for smoothing in SMOOTHING]
    return min(tried, key=lambda layer: layer.error(rows, wanted))


def _eight_bit(weight: Array, low: Array, high: Array, smoothing: float) -> _EightBit:
    size = np.maximum(np.maximum(np.abs(low), np.abs(high)), 1e-6)
    columns = np.maximum(np.abs(weight).max(0), 1e-6)
    factor = (size**smoothing / columns ** (1 - smoothing)).astype(np.float32)
    least, most = min(0.0, float((low / factor).min())), max(0.0, float((high / factor).max()))
    step = (most - least) / 255
    weight = weight * factor
    scales = (np.maximum(np.abs(weight).max(1), 1e-12) / SAFE_WEIGHT).astype(np.float32)
    table = np.rint(weight / scales[:, None]).astype(np.int8)
    return _EightBit(factor, step, round(-least / step), table, scales)
