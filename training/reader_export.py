"""Writes a judge that reads evidence once as the ONNX graph that runs fastest on a CPU.

One graph serves both readings, so that the weights lie in one file: a window of evidence is read
with no past, and its keys and values are kept; a sentence is read with those of its windows as
past. Attention over past and own tokens is two products whose scores share one softmax, so that
what is kept is never copied. The rest is as ``training.graph`` says.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from training.graph import MICROSOFT, OPSET, Graph
from training.reader import ALIKE

__all__ = ["read_config", "read_reader", "write_reader"]

Array = NDArray[Any]


def write_reader(
    state: Mapping[str, Array],
    path: Path,
    *,
    heads: Sequence[str],
    config: Mapping[str, int | float],
    quantise: bool = True,
) -> None:
    """Write a judge with its heads as one file.

    Inputs, of one sequence of l tokens upon p tokens read before, with a attention heads of width
    w: ``input_ids``, ``token_type_ids``, ``position_ids`` (int64 [1, l]); ``marks`` and ``ends``
    (int64 [m], places of statements' marks in the sequence and past their last words; of a
    sentence its first token and the place past its own words); ``past_marks`` (float32 [n, 3 c],
    of statements read before); for each layer i ``past_key_i`` (float32 [a, w, p]) and
    ``past_value_i`` (float32 [a, p, w]).

    Outputs: raw logits of each head, [1, labels]; ``words`` [1, l, labels]; ``statements``
    [n, labels], one row for each of ``past_marks``; ``own_marks`` [m, 3 c]; for each layer
    ``own_key_i`` [a, w, l] and ``own_value_i`` [a, l, w].

    Args:
        state: Parameters as 32-bit floats, by the names of ``training.reader.EvidenceReader``.
        path: Where the file goes.
        heads: Names of the heads that read a whole sentence.
        config: Sizes, by the names of ``training.model.EncoderConfig``; kept in the file.
        quantise: Store linear layers and word embeddings in 8-bit integers.

    Raises:
        KeyError: A parameter is missing from ``state``.
    """
    attention_heads = int(config["attention_heads"])
    graph = Graph(state, epsilon=float(config["layer_norm_eps"]), quantise=quantise)
    layers = _fill(graph, heads, attention_heads)
    width = len(state["positions.weight"][0]) // attention_heads
    compared = len(state["statements.statement.bias"]) + len(state["statements.words.weight"])
    info = helper.make_tensor_value_info
    ids = ("input_ids", "token_type_ids", "position_ids")
    inputs = [info(name, TensorProto.INT64, [1, "l"]) for name in ids]
    inputs += [info(name, TensorProto.INT64, ["m"]) for name in ("marks", "ends")]
    inputs += [info("past_marks", TensorProto.FLOAT, ["n", compared])]
    outputs = [
        info(head, TensorProto.FLOAT, [1, len(state[f"heads.{head}.3.bias"])]) for head in heads
    ]
    outputs += [
        info("words", TensorProto.FLOAT, [1, "l", len(state["tokens.words.bias"])]),
        info("statements", TensorProto.FLOAT, ["n", len(state["statements.out.bias"])]),
        info("own_marks", TensorProto.FLOAT, ["m", compared]),
    ]
    for layer in range(layers):
        inputs += [
            info(f"past_key_{layer}", TensorProto.FLOAT, [attention_heads, width, "p"]),
            info(f"past_value_{layer}", TensorProto.FLOAT, [attention_heads, "p", width]),
        ]
        outputs += [
            info(f"own_key_{layer}", TensorProto.FLOAT, [attention_heads, width, "l"]),
            info(f"own_value_{layer}", TensorProto.FLOAT, [attention_heads, "l", width]),
        ]
    made = helper.make_model(
        helper.make_graph(graph.nodes, "judge", inputs, outputs, graph.constants),
        opset_imports=[helper.make_opsetid("", OPSET), helper.make_opsetid(MICROSOFT, 1)],
        ir_version=10,
        producer_name="kg-guardrail",
    )
    helper.set_model_props(made, {"config": json.dumps(config)})
    onnx.save(made, str(path))


def read_config(path: Path) -> dict[str, Any]:
    """Sizes of a judge that ``write_reader`` wrote.

    Raises:
        ValueError: The file holds no judge of this recipe.
    """
    try:
        held = {item.key: item.value for item in onnx.load(str(path)).metadata_props}
    except Exception as error:
        raise ValueError(f"{path} holds no judge of this recipe: {error}") from error
    if "config" not in held:
        raise ValueError(f"{path} holds no judge of this recipe")
    sizes: dict[str, Any] = json.loads(held["config"])
    return sizes


def read_reader(
    path: Path, shapes: Mapping[str, tuple[int, ...]], *, heads: Sequence[str]
) -> dict[str, Array]:
    """Read back the parameters of a file written by ``write_reader`` in 8 bits.

    Args:
        path: The file.
        shapes: Shape of each parameter.
        heads: Names of the heads the file was written with.

    Returns:
        Parameters as 32-bit floats; 8-bit ones as their integers times their scales.

    Raises:
        ValueError: The file holds other parameters than ``shapes`` names.
    """
    blank = {name: np.zeros(shape, np.float32) for name, shape in shapes.items()}
    graph = Graph(blank, epsilon=0.0, quantise=True)
    _fill(graph, heads, 1)
    stored = {c.name: numpy_helper.to_array(c) for c in onnx.load(str(path)).graph.initializer}
    return graph.stored(stored, shapes, path)


def _fill(graph: Graph, heads: Sequence[str], attention_heads: int) -> int:
    """Add every node in one fixed order; gives the number of layers."""
    hidden = graph.state["positions.weight"].shape[1]
    words = graph.words("input_ids")
    states = _embed(graph, words)
    layer = 0
    while f"layers.{layer}.qkv.weight" in graph.state:
        states = _layer(graph, layer, states, attention_heads, hidden // attention_heads)
        layer += 1
    axis = graph.constant(np.array([1], np.int64))
    mean = graph.add("ReduceMean", [states, axis], keepdims=0)
    first = graph.add("Gather", [states, graph.constant(np.array(0, np.int64))], axis=1)
    features = graph.add("Concat", [first, mean], axis=-1)
    for head in heads:
        inner = graph.add("Tanh", [graph.linear(f"heads.{head}.0", features)])
        graph.plain(f"heads.{head}.3", inner, result=head)
    graph.plain_tokens("tokens.words", states, result="words")
    flat = graph.add("Squeeze", [states, graph.constant(np.array([0], np.int64))])
    marked = graph.add("Gather", [flat, "marks"], axis=0)
    direction = _direction(graph, words)
    compared = graph.plain("statements.statement", marked)
    graph.add("Concat", [compared, direction], axis=-1, result="own_marks")
    added, times, stated = _split(graph, "past_marks", 3)
    more, by = _split(graph, graph.plain("statements.sentence", first), 2)
    product = graph.add("Mul", [times, by])
    inner = graph.add("Gelu", [graph.add("Add", [graph.add("Add", [added, more]), product])])
    # A sentence has one direction; of a window, whose statements have many, nothing is asked here.
    first_axis = graph.constant(np.array([0], np.int64))
    said = graph.add("ReduceSum", [direction, first_axis], keepdims=1)
    alike = graph.add("MatMul", [stated, graph.add("Transpose", [said], perm=[1, 0])])
    alike = graph.add("Mul", [alike, graph.constant(ALIKE)])
    graph.plain("statements.out", graph.add("Concat", [inner, alike], axis=-1), result="statements")
    return layer


def _direction(graph: Graph, words: str) -> str:
    """Unit vectors [m, c] of the words between marks and ends."""
    flat = graph.add("Squeeze", [words, graph.constant(np.array([0], np.int64))])
    total = graph.add("CumSum", [flat, graph.constant(np.array(0, np.int64))])
    last = graph.add("Sub", ["ends", graph.constant(np.array(1, np.int64))])
    until, before = (graph.add("Gather", [total, place], axis=0) for place in (last, "marks"))
    found = graph.matrix("statements.words", graph.add("Sub", [until, before]))
    axis = graph.constant(np.array([-1], np.int64))
    length = graph.add("ReduceL2", [found, axis], keepdims=1)
    return graph.add("Div", [found, graph.add("Max", [length, graph.constant(1e-12)])])


def _split(graph: Graph, source: str, parts: int) -> list[str]:
    names = [f"{source}_{part}" for part in range(parts)]
    graph.nodes.append(helper.make_node("Split", [source], names, axis=-1, num_outputs=parts))
    return names


def _embed(graph: Graph, words: str) -> str:
    places = graph.add("Gather", [graph.weight("positions.weight"), "position_ids"])
    segments = graph.add("Gather", [graph.weight("segments.weight"), "token_type_ids"])
    total = graph.add("Add", [graph.add("Add", [words, segments]), places])
    return graph.norm("embedding_norm", total)


def _layer(graph: Graph, number: int, states: str, heads: int, width: int) -> str:
    """One BERT layer whose tokens attend to those read before and to each other."""
    name = f"layers.{number}"
    joined = graph.linear(f"{name}.qkv", states)
    parts = [f"{joined}_{part}" for part in "qkv"]
    graph.nodes.append(helper.make_node("Split", [joined], parts, axis=-1, num_outputs=3))
    shape = graph.constant(np.array([-1, heads, width], np.int64))
    query, key, value = (graph.add("Reshape", [part, shape]) for part in parts)
    query = graph.add("Transpose", [query], perm=[1, 0, 2])
    query = graph.add("Mul", [query, graph.constant(float(width) ** -0.5)])
    key = graph.add("Transpose", [key], result=f"own_key_{number}", perm=[1, 2, 0])
    value = graph.add("Transpose", [value], result=f"own_value_{number}", perm=[1, 0, 2])
    before = graph.add("MatMul", [query, f"past_key_{number}"])
    here = graph.add("MatMul", [query, key])
    shares = graph.add("Softmax", [graph.add("Concat", [before, here], axis=-1)], axis=-1)
    past = graph.add("Shape", [f"past_key_{number}"], start=2, end=3)
    own = graph.add("Shape", [key], start=2, end=3)
    sizes = graph.add("Concat", [past, own], axis=0)
    cut = [f"{shares}_before", f"{shares}_here"]
    graph.nodes.append(helper.make_node("Split", [shares, sizes], cut, axis=-1))
    mixed = graph.add(
        "Add",
        [
            graph.add("MatMul", [cut[0], f"past_value_{number}"]),
            graph.add("MatMul", [cut[1], value]),
        ],
    )
    mixed = graph.add("Transpose", [mixed], perm=[1, 0, 2])
    flat = graph.constant(np.array([1, -1, heads * width], np.int64))
    change = graph.linear(f"{name}.attention_out", graph.add("Reshape", [mixed, flat]))
    states = graph.norm(f"{name}.attention_norm", graph.add("Add", [change, states]))
    wide = graph.add("Gelu", [graph.linear(f"{name}.up", states)])
    change = graph.linear(f"{name}.down", wide)
    return graph.norm(f"{name}.output_norm", graph.add("Add", [change, states]))
