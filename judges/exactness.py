"""Whether a processor multiplies a model's 8-bit weights exactly.

onnxruntime's kernels for x86 processors without VNNI multiply unsigned activations by signed
weights two at a time and add the two products in 16 bits. Weights beyond ±63 can then saturate:
the same pair gets other probabilities than on other processors. Weights within ±63 cannot. The
shipped encoder keeps ±127: its weights become 32-bit floats before they are multiplied.
"""

from __future__ import annotations

import platform
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import numpy as np

__all__ = ["SAFE_WEIGHT", "has_exact_kernel", "largest_weight"]

SAFE_WEIGHT = 63
"""2 · 255 · 63 = 32,130 still fits into signed 16 bits."""

_EXACT_FLAGS = frozenset({"avx_vnni", "avx512_vnni", "amx_int8"})
"""Processor flags, as Linux names them, of kernels that add up in 32 bits."""

_X86 = frozenset({"x86_64", "amd64", "i386", "i686", "x86"})

_INT8 = 3
"""``TensorProto.DataType.INT8``."""

_GRAPH, _NODE, _CONSTANT = 7, 1, 5
_NODE_INPUT, _NODE_OPERATOR = 1, 4
_TENSOR_TYPE, _TENSOR_NAME, _TENSOR_DATA, _TENSOR_EXTERNAL = 2, 8, 9, 13
_ENTRY_KEY, _ENTRY_VALUE = 1, 2
"""Numbers of the fields read of ``ModelProto``, ``GraphProto``, ``NodeProto``, ``TensorProto`` and
``StringStringEntryProto``."""

_NO_PRODUCT = frozenset({b"Gather", b"Cast", b"DequantizeLinear"})
"""Operators that read a table without multiplying it as integers."""


@lru_cache(maxsize=1)
def has_exact_kernel() -> bool:
    """Whether this processor adds 8-bit products in 32 bits; False where that is not known."""
    if platform.machine().lower() not in _X86:
        return True
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        return False
    flags = next((line for line in lines if line.startswith("flags")), "")
    return not _EXACT_FLAGS.isdisjoint(flags.split())


def largest_weight(path: Path) -> int:
    """The largest magnitude of a signed 8-bit weight that an ONNX file multiplies as an integer.

    Tables that are only looked up, or become floats first, do not count. Reads the file's protocol
    buffer itself, since the package ``onnx`` is no dependency.

    Returns:
        The magnitude; 0 where no integers are multiplied.

    Raises:
        OSError: The file cannot be read.
        ValueError: It is no ONNX file.
    """
    most = 0
    for graph in _field(memoryview(path.read_bytes()), _GRAPH):
        multiplied = {
            bytes(name)
            for node in _field(graph, _NODE)
            if bytes(next(_field(node, _NODE_OPERATOR), b"")) not in _NO_PRODUCT
            for name in _field(node, _NODE_INPUT)
        }
        for tensor in _field(graph, _CONSTANT):
            if next(_numbers(tensor, _TENSOR_TYPE), 0) != _INT8:
                continue
            if bytes(next(_field(tensor, _TENSOR_NAME), b"")) not in multiplied:
                continue
            for raw in (*_field(tensor, _TENSOR_DATA), *_external(tensor, path.parent)):
                values = np.frombuffer(raw, np.int8)
                if values.size:
                    most = max(most, -int(values.min()), int(values.max()))
    return most


def _external(tensor: memoryview, folder: Path) -> Iterator[memoryview]:
    """The data of a tensor that lies in a file of its own."""
    about = {
        bytes(next(_field(entry, _ENTRY_KEY))): bytes(next(_field(entry, _ENTRY_VALUE))).decode()
        for entry in _field(tensor, _TENSOR_EXTERNAL)
    }
    if about:
        with (folder / about[b"location"]).open("rb") as file:
            file.seek(int(about[b"offset"]))
            yield memoryview(file.read(int(about[b"length"])))


def _field(message: memoryview, number: int) -> Iterator[memoryview]:
    """The length-delimited values of one field of a message."""
    for field, value in _entries(message):
        if field == number and isinstance(value, memoryview):
            yield value


def _numbers(message: memoryview, number: int) -> Iterator[int]:
    """The integer values of one field of a message."""
    for field, value in _entries(message):
        if field == number and isinstance(value, int):
            yield value


def _entries(message: memoryview) -> Iterator[tuple[int, memoryview | int]]:
    """Field numbers and values of a protocol buffer message, in order."""
    place = 0
    while place < len(message):
        key, place = _varint(message, place)
        kind = key & 7
        if kind == 0:
            value, place = _varint(message, place)
            yield key >> 3, value
            continue
        if kind == 2:
            size, place = _varint(message, place)
        elif kind in _FIXED:
            size = _FIXED[kind]
        else:
            raise ValueError("the file is no ONNX model")
        if place + size > len(message):
            raise ValueError("the file ends before its data does")
        yield key >> 3, message[place : place + size]
        place += size


_FIXED = {1: 8, 5: 4}
"""Bytes of the wire types of fixed length."""


def _varint(message: memoryview, place: int) -> tuple[int, int]:
    """A number of seven bits a byte, and the place past it."""
    value = shift = 0
    while True:
        if place >= len(message) or shift > 63:
            raise ValueError("the file is no ONNX model")
        byte = message[place]
        value |= (byte & 0x7F) << shift
        place += 1
        if byte < 0x80:
            return value, place
        shift += 7
