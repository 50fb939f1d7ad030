"""Packed files unpack up to a bound, and no line fills memory."""

import bz2
import gzip
import io
import lzma

import pytest

from guardrail.core import rows as reading
from guardrail.core.errors import InputError
from guardrail.core.rows import bounded_lines, is_cut, unpacked

PACKINGS = {"gz": gzip, "bz2": bz2, "xz": lzma}


def opened(packing, data):
    stream = PACKINGS[packing].open(io.BytesIO(data))
    return unpacked(stream, f"a.{packing}", len(data), InputError)


@pytest.mark.parametrize("packing", PACKINGS)
def test_what_unpacks_to_many_times_its_size_is_refused(packing, monkeypatch):
    monkeypatch.setattr(reading, "LEAST_REFUSED", 1 << 20)
    packed = PACKINGS[packing].compress(b"\n" * (32 << 20))
    with opened(packing, packed) as stream, pytest.raises(InputError, match="times its size"):
        list(iter(lambda: stream.read(1 << 16), b""))


@pytest.mark.parametrize("packing", PACKINGS)
def test_what_is_read_again_counts_once(packing, monkeypatch):
    monkeypatch.setattr(reading, "LEAST_REFUSED", 2_000)
    monkeypatch.setattr(reading, "MOST_UNPACKED", 1)
    data = bytes(range(200)) * 8
    with opened(packing, PACKINGS[packing].compress(data)) as stream:
        for _ in range(5):
            stream.seek(100)
            assert stream.read() == data[100:]


@pytest.mark.parametrize("packing", ["gz", "xz"])
def test_what_is_cut_short_is_told(packing):
    packed = PACKINGS[packing].compress(bytes(range(256)) * 1_000)[:-20]
    with opened(packing, packed) as stream, pytest.raises(InputError, match="cut short"):
        stream.read()


@pytest.mark.parametrize("kind", [str, bytes])
def test_of_a_line_that_is_too_long_the_beginning_is_read(kind, monkeypatch):
    monkeypatch.setattr(reading, "LONGEST_LINE", 10)
    text = "a\n" + "b" * 10 + "\n" + "c" * 35 + "\nd"
    reader = io.StringIO(text) if kind is str else io.BytesIO(text.encode())
    lines = list(bounded_lines(reader))
    assert [len(line) for line in lines] == [2, 11, 11, 1]
    assert [is_cut(line.rstrip()) for line in lines] == [False, False, True, False]
