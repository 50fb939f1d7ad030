"""Brings 8-bit weights within ±63: ``python -m judges.training.requantise FILE``.

A judge of an older version, or written with other tools, may hold weights up to ±127. Where the
processor multiplies bytes in pairs and adds the two products in 16 bits, those can saturate, so
that ``judges.session`` asks for a slower exact kernel. A file mended here needs none.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper

from judges.optimise import LEVELS

__all__ = ["main", "requantise", "scaled_tables"]


def requantise(path: Path) -> int:
    """Rescale every 8-bit table of a file whose products are over integers.

    A table's scales lie in one constant that broadcasts over it; each group of weights that
    shares a scale keeps its largest magnitude.

    Args:
        path: The ONNX file; written anew where a table leaves the range.

    Returns:
        Number of tables that were rescaled.

    Raises:
        ValueError: A table's scales cannot be found.
    """
    model = onnx.load(str(path))
    stored = {item.name: item for item in model.graph.initializer}
    changed = 0
    for name, scale_name in scaled_tables(model.graph).items():
        table = numpy_helper.to_array(stored[name]).astype(np.float64)
        if np.abs(table).max(initial=0) <= LEVELS:
            continue
        scales = numpy_helper.to_array(stored[scale_name])
        shape = (1,) * (table.ndim - scales.ndim) + scales.shape
        if np.broadcast_shapes(table.shape, shape) != table.shape:
            raise ValueError(f"the scales of {name!r} in {path} do not fit it")
        axes = tuple(axis for axis, size in enumerate(shape) if size == 1)
        most = np.abs(table).max(axis=axes, keepdims=True)
        steps = np.maximum(most, 1.0) / LEVELS
        smaller = np.clip(np.rint(table / steps), -LEVELS, LEVELS).astype(np.int8)
        wider = (scales * steps.reshape(scales.shape)).astype(np.float32)
        stored[name].CopyFrom(numpy_helper.from_array(smaller, name))
        stored[scale_name].CopyFrom(numpy_helper.from_array(wider, scale_name))
        changed += 1
    if changed:
        onnx.save(model, str(path))
    return changed


def scaled_tables(graph: onnx.GraphProto) -> dict[str, str]:
    """The constant that scales each 8-bit table, by the table's name."""
    made_by = {output: node for node in graph.node for output in node.output}
    constants = {item.name for item in graph.initializer}
    found = {}
    for node in graph.node:
        if node.op_type == "DynamicQuantizeMatMul":
            found[node.input[1]] = node.input[2]
        elif node.op_type == "Mul":
            pair = [_source(name, made_by) for name in node.input]
            for table, scale in (pair, pair[::-1]):
                if table in constants and scale in constants and _casts(node, table, made_by):
                    found[table] = scale
    return found


def _source(name: str, made_by: dict[str, onnx.NodeProto]) -> str:
    """The constant or input that a value is read from through casts and look-ups."""
    while name in made_by and made_by[name].op_type in ("Cast", "Gather"):
        name = made_by[name].input[0]
    return name


def _casts(node: onnx.NodeProto, table: str, made_by: dict[str, onnx.NodeProto]) -> bool:
    """Whether a product reads a table through a cast, as 8-bit tables must be."""
    return any(
        name in made_by and made_by[name].op_type == "Cast" and _source(name, made_by) == table
        for name in node.input
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Rescale the files named."""
    parser = argparse.ArgumentParser(prog="python -m judges.training.requantise")
    parser.add_argument("files", type=Path, nargs="+", help="model.onnx files, changed in place")
    for path in parser.parse_args(arguments).files:
        print(f"{path}: {requantise(path)} tables rescaled")


if __name__ == "__main__":
    main()
