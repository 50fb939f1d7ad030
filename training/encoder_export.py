"""Writes the trained encoder as ONNX files with 8-bit weights.

Weights of linear layers are stored in blocks of 8-bit integers with one scale a block, token
embeddings with one scale a token. Activations stay in 32-bit floats: the heads read inner layers,
where few large coordinates leave 8-bit activations too coarse (it cost ten points of macro-F1 of
intents). So what a text gets does not depend on the texts it is batched with either.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from torch import nn

from training.encoder_data import INTENTS
from training.encoder_fit import NEVER
from training.encoder_model import (
    HIDDEN,
    OPENING_LAYER,
    OPENING_TOKENS,
    READ_LAYER,
    DiscourseHead,
    IntentHead,
)

__all__ = ["Encoder", "export"]

INPUTS = ("input_ids", "attention_mask", "token_type_ids")

BLOCK = 128
"""Weights that share one scale; divides every width here."""

ORDER_WEIGHT = 0.1
"""Weight of the order of all pairs against picks of neighbours, chosen on texts the head was not
fitted on; more of it helps long texts and costs short ones."""

LEAST_CHOICE = 1e-6
"""The logarithm of a pick's mean probability is taken of at least this."""

OPSET = 20
MICROSOFT = "com.microsoft"

Array = NDArray[Any]


class Encoder(NamedTuple):
    """Everything the shipped encoder consists of.

    Attributes:
        trunk: The frozen BERT encoder.
        intent: The intent head.
        discourse: The discourse head.
        stretch: [768] multiplied with an answer's features, and
        shift: [768] added to them after, so that answers lie where questions do.
        offset: Subtracted from the logit of a text, so that zero means undecided.
    """

    trunk: Any
    intent: IntentHead
    discourse: DiscourseHead
    stretch: NDArray[np.float32]
    shift: NDArray[np.float32]
    offset: float = 0.0


def export(encoder: Encoder, model: Path, discourse: Path) -> None:
    """Write the two graphs.

    The model takes ``input_ids``, ``attention_mask`` and ``token_type_ids`` (int64, [n, l]) and
    gives ``embedding`` [n, 384] of unit length, ``intent`` [n, 8] logits of questions,
    ``answer_intent`` [n, 8] logits of answers after alignment, and ``sentence_state`` [n, d].
    The discourse graph takes the ``states`` [s, d] of one text's sentences in order and gives its
    ``logit`` [1].

    Args:
        encoder: Trained parts.
        model: File of the model.
        discourse: File of the discourse graph.
    """
    graph = _Graph()
    mask = graph.add("Cast", ["attention_mask"], to=TensorProto.INT32)
    states = _embed(graph, encoder.trunk.embeddings)
    heads = encoder.trunk.config.num_attention_heads
    kept = {}
    for number, layer in enumerate(encoder.trunk.encoder.layer, start=1):
        states = _layer(graph, layer, states, mask, heads)
        if number in (OPENING_LAYER, READ_LAYER):
            kept[number] = states
    pooling = _Pooling(graph)
    graph.add("LpNormalization", [pooling.mean(states)], name="embedding", axis=-1, p=2)
    read = kept[READ_LAYER]
    asked = graph.add("Concat", [pooling.mean(read), pooling.first(read)], axis=-1)
    _intent(graph, encoder, asked)
    full = graph.add("Concat", [asked, pooling.opening(kept[OPENING_LAYER])], axis=-1)
    weight, bias = _folded(encoder.discourse, encoder.discourse.project)
    graph.linear(weight, bias, full, name="sentence_state")
    graph.save(
        model,
        "encoder",
        [(name, TensorProto.INT64, ["n", "l"]) for name in INPUTS],
        [
            ("embedding", HIDDEN),
            ("intent", len(INTENTS)),
            ("answer_intent", len(INTENTS)),
            ("sentence_state", encoder.discourse.size),
        ],
    )
    _write_discourse(encoder.discourse, encoder.offset, discourse)


class _Graph:
    """Nodes and constants in the making; methods return the name of their result."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []

    def add(
        self, kind: str, inputs: Sequence[str], *, name: str = "", domain: str = "", **options: Any
    ) -> str:
        """Append a node with one output."""
        name = name or f"{kind}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [name], domain=domain, **options))
        return name

    def constant(self, values: Array) -> str:
        """Append a constant tensor."""
        name = f"constant_{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.array(values, order="C"), name))
        return name

    def integers(self, *values: int) -> str:
        """Append a constant vector of 64-bit integers."""
        return self.constant(np.array(values, np.int64))

    def number(self, value: float) -> str:
        """Append a constant number."""
        return self.constant(np.array(value, np.float32))

    def linear(self, weight: Array, bias: Array, source: str, *, name: str = "") -> str:
        """Append ``source @ weight.T + bias`` with 8-bit weights; ``weight`` is [out, in].

        The product with the scales is over constants, so ONNX Runtime works it out once, when the
        file is loaded.
        """
        out, width = weight.shape
        blocks = weight.T.reshape(width // BLOCK, BLOCK, out)
        scales = np.maximum(np.abs(blocks).max(1, keepdims=True) / 127, 1e-12)
        table = self.constant(np.round(blocks / scales).astype(np.int8))
        numbers = self.add("Cast", [table], to=TensorProto.FLOAT)
        scaled = self.add("Mul", [numbers, self.constant(scales.astype(np.float32))])
        matrix = self.add("Reshape", [scaled, self.integers(width, out)])
        product = self.add("MatMul", [source, matrix])
        return self.add("Add", [product, self.constant(bias.astype(np.float32))], name=name)

    def norm(self, source: str, layer: Any) -> str:
        """Append a layer normalisation in elementary operations.

        ONNX Runtime's own CPU kernel for it is scalar, and slow compared with 8-bit products.
        """
        axis = self.integers(-1)
        mean = self.add("ReduceMean", [source, axis], keepdims=1)
        centred = self.add("Sub", [source, mean])
        square = self.add("Mul", [centred, centred])
        variance = self.add("ReduceMean", [square, axis], keepdims=1)
        padded = self.add("Add", [variance, self.constant(np.array(layer.eps, np.float32))])
        scaled = self.add("Div", [centred, self.add("Sqrt", [padded])])
        weighted = self.add("Mul", [scaled, self.constant(_numbers(layer.weight))])
        return self.add("Add", [weighted, self.constant(_numbers(layer.bias))])

    def save(
        self,
        path: Path,
        name: str,
        inputs: Sequence[tuple[str, int, Sequence[str | int]]],
        outputs: Sequence[tuple[str, int]],
    ) -> None:
        """Write the graph; every output is [n, width], or [1] for width 0."""
        made = helper.make_graph(
            self.nodes,
            name,
            [helper.make_tensor_value_info(*each) for each in inputs],
            [
                helper.make_tensor_value_info(
                    output, TensorProto.FLOAT, ["n", width] if width else [1]
                )
                for output, width in outputs
            ],
            self.constants,
        )
        opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid(MICROSOFT, 1)]
        onnx.save(helper.make_model(made, opset_imports=opsets, ir_version=10), str(path))


class _Pooling:
    """Ways from token states [n, l, 384] to one vector a row [n, 384]."""

    def __init__(self, graph: _Graph) -> None:
        self._graph = graph
        mask = graph.add("Cast", ["attention_mask"], to=TensorProto.FLOAT)
        self._weights = graph.add("Unsqueeze", [mask, graph.integers(2)])
        self._tokens = graph.integers(1)
        self._count = graph.add("ReduceSum", [self._weights, self._tokens], keepdims=0)

    def mean(self, states: str) -> str:
        """Mean over the real tokens."""
        weighted = self._graph.add("Mul", [states, self._weights])
        total = self._graph.add("ReduceSum", [weighted, self._tokens], keepdims=0)
        return self._graph.add("Div", [total, self._count])

    def first(self, states: str) -> str:
        """State of [CLS]."""
        zero = self._graph.constant(np.array(0, np.int64))
        return self._graph.add("Gather", [states, zero], axis=1)

    def opening(self, states: str) -> str:
        """Mean over the first real tokens past [CLS]."""
        start, stop = (self._graph.integers(edge) for edge in OPENING_TOKENS)
        part = self._graph.add("Slice", [states, start, stop, self._tokens])
        weights = self._graph.add("Slice", [self._weights, start, stop, self._tokens])
        weighted = self._graph.add("Mul", [part, weights])
        total = self._graph.add("ReduceSum", [weighted, self._tokens], keepdims=0)
        count = self._graph.add("ReduceSum", [weights, self._tokens], keepdims=0)
        return self._graph.add("Div", [total, count])


def _embed(graph: _Graph, embeddings: Any) -> str:
    """Token, position and segment embeddings, summed and normalised: [n, l, 384]."""
    words = _numbers(embeddings.word_embeddings.weight)
    scales = np.maximum(np.abs(words).max(-1, keepdims=True) / 127, 1e-12)
    table = graph.constant(np.round(words / scales).astype(np.int8))
    rows = graph.add("Gather", [table, "input_ids"])
    rows = graph.add("Cast", [rows], to=TensorProto.FLOAT)
    scale = graph.add("Gather", [graph.constant(scales.astype(np.float32)), "input_ids"])
    rows = graph.add("Mul", [rows, scale])
    zero = graph.integers(0)
    places = graph.constant(_numbers(embeddings.position_embeddings.weight))
    length = graph.add("Shape", ["input_ids"], start=1, end=2)
    positions = graph.add("Slice", [places, zero, length, zero])
    types = graph.constant(_numbers(embeddings.token_type_embeddings.weight))
    segments = graph.add("Gather", [types, "token_type_ids"])
    total = graph.add("Add", [graph.add("Add", [rows, segments]), positions])
    return graph.norm(total, embeddings.LayerNorm)


def _layer(graph: _Graph, layer: Any, states: str, mask: str, heads: int) -> str:
    """One BERT layer: self-attention and feed-forward, each with residual and norm."""
    attention = layer.attention.self
    parts = (attention.query, attention.key, attention.value)
    joined = graph.linear(
        np.concatenate([_numbers(part.weight) for part in parts]),
        np.concatenate([_numbers(part.bias) for part in parts]),
        states,
    )
    names = [f"{joined}_{part}" for part in "qkv"]
    graph.nodes.append(helper.make_node("Split", [joined], names, axis=-1, num_outputs=3))
    mixed = graph.add("MultiHeadAttention", [*names, "", mask], domain=MICROSOFT, num_heads=heads)
    change = _dense(graph, layer.attention.output.dense, mixed)
    states = graph.norm(graph.add("Add", [change, states]), layer.attention.output.LayerNorm)
    wide = graph.add("Gelu", [_dense(graph, layer.intermediate.dense, states)])
    change = _dense(graph, layer.output.dense, wide)
    return graph.norm(graph.add("Add", [change, states]), layer.output.LayerNorm)


def _intent(graph: _Graph, encoder: Encoder, features: str) -> None:
    """The intent head, over the features of a question and over aligned ones of an answer."""
    stretched = graph.add("Mul", [features, graph.constant(encoder.stretch)])
    aligned = graph.add("Add", [stretched, graph.constant(encoder.shift)])
    weight, bias = _folded(encoder.intent, encoder.intent.first)
    for name, source in (("intent", features), ("answer_intent", aligned)):
        inner = graph.add("Gelu", [graph.linear(weight, bias, source)])
        _plain(graph, encoder.intent.last, inner, name=name)


def _write_discourse(head: DiscourseHead, offset: float, path: Path) -> None:
    """One text's states [s, d] to one logit.

    The head picks the next and the former of every sentence, and of the text's edge, among the
    others: the log of how much more likely than chance the true ones are picked, plus a little of
    the mean over all pairs of their gain in this order, less the offset.
    """
    graph = _Graph()
    zero, one = graph.integers(0), graph.integers(1)
    edge = graph.constant(np.zeros((1, head.size), np.float32))
    edged = graph.add("Concat", [edge, "states"], axis=0)
    rows, columns = (graph.add("Unsqueeze", [edged, axis]) for axis in (one, zero))
    scores = _pair_scores(graph, head, rows, columns)
    follows, later = (_column(graph, scores, column) for column in (0, 1))
    itself = graph.add("EyeLike", [follows])
    masked = graph.add("Add", [follows, graph.add("Mul", [itself, graph.number(NEVER)])])
    picked = graph.add("Add", [graph.add("Softmax", [masked], axis=axis) for axis in (0, 1)])
    many = graph.integers(np.iinfo(np.int64).max)
    others = graph.add("Slice", [picked, one, many, one])
    rolled = graph.add("Concat", [others, graph.add("Slice", [picked, zero, one, one])], axis=1)
    total = graph.add("ReduceSum", [graph.add("Mul", [rolled, itself])], keepdims=0)
    places = graph.add("ReduceSum", [itself], keepdims=0)
    choice = graph.add("Div", [total, graph.add("Mul", [places, graph.number(2)])])
    choice = graph.add("Max", [choice, graph.number(LEAST_CHOICE)])
    count = graph.add("Sub", [places, graph.number(1)])
    lift = graph.add("Log", [graph.add("Mul", [choice, count])])
    inner = graph.add("Slice", [later, graph.integers(1, 1), graph.integers(*[2**62] * 2)])
    ahead = graph.add("Sub", [inner, graph.add("Transpose", [inner], perm=[1, 0])])
    order = graph.add("ReduceSum", [graph.add("Trilu", [ahead, one], upper=1)], keepdims=0)
    fewer = graph.add("Sub", [count, graph.number(1)])
    pairs = graph.add("Mul", [graph.add("Mul", [count, fewer]), graph.number(0.5)])
    pairs = graph.add("Max", [pairs, graph.number(1)])
    mean = graph.add("Div", [graph.add("Mul", [order, graph.number(ORDER_WEIGHT)]), pairs])
    logit = graph.add("Sub", [graph.add("Add", [lift, mean]), graph.number(offset)])
    graph.add("Unsqueeze", [logit, zero], name="logit")
    states: list[str | int] = ["s", head.size]
    graph.save(path, "discourse", [("states", TensorProto.FLOAT, states)], [("logit", 0)])


def _pair_scores(graph: _Graph, head: DiscourseHead, left: str, right: str) -> str:
    """Both scores of every pair of states; left and right [..., d] are broadcast."""
    widths = graph.integers(*head.parts)
    names = {}
    for side, source in (("left", left), ("right", right)):
        names[side] = [f"{source}_{side}_{number}" for number in range(3)]
        graph.nodes.append(helper.make_node("Split", [source, widths], names[side], axis=-1))
    one, other = names["left"][2], names["right"][2]
    away = graph.add("Abs", [graph.add("Sub", [one, other])])
    joined = graph.add("Concat", [away, graph.add("Mul", [one, other])], axis=-1)
    parts = graph.add("Add", [names["left"][0], names["right"][1]])
    total = graph.add("Add", [parts, _wide(graph, head.compare, joined)])
    inner = _wide(graph, head.inner, graph.add("Gelu", [total]))
    return _wide(graph, head.last, graph.add("Gelu", [inner]))


def _column(graph: _Graph, scores: str, column: int) -> str:
    """One of the two scores of every pair."""
    return graph.add("Gather", [scores, graph.constant(np.array(column, np.int64))], axis=-1)


def _wide(graph: _Graph, layer: Any, source: str) -> str:
    """A small linear layer over the last of any number of axes, in 32-bit floats."""
    product = graph.add("MatMul", [source, graph.constant(_numbers(layer.weight).T)])
    return graph.add("Add", [product, graph.constant(_numbers(layer.bias))])


def _folded(head: Any, layer: nn.Linear) -> tuple[Array, Array]:
    """Weight and bias of a layer with the standardisation before it worked in."""
    weight = _numbers(layer.weight) / _numbers(head.scale)
    return weight, _numbers(layer.bias) - weight @ _numbers(head.mean)


def _dense(graph: _Graph, layer: nn.Linear, source: str) -> str:
    return graph.linear(_numbers(layer.weight), _numbers(layer.bias), source)


def _plain(graph: _Graph, layer: Any, source: str, name: str = "") -> str:
    """A small linear layer in 32-bit floats."""
    weight, bias = graph.constant(_numbers(layer.weight)), graph.constant(_numbers(layer.bias))
    return graph.add("Gemm", [source, weight, bias], name=name, transB=1)


def _numbers(tensor: Any) -> Array:
    values: Array = tensor.detach().to("cpu").float().numpy()
    return values
