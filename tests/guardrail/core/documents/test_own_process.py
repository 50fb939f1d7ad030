"""What reads a document is bounded in time, memory and text, and ends with its bound."""

import pytest

from guardrail import InputError
from guardrail.core.documents import reading
from guardrail.core.documents.reading import MAX_MEMORY, MAX_TEXT, in_own_process
from guardrail.core.errors import OverloadedError
from tests.clock import PATIENCE_S


def lines(data):
    return data.decode().splitlines()


def refused(data):
    raise InputError("is upside down; turn it")


def large(data):
    return [data.decode() * MAX_TEXT, data.decode()]


def greedy(data):
    return [str(len(bytearray(MAX_MEMORY + 1)))]


def read(reader, data=b"x", seconds=PATIENCE_S):
    return in_own_process(reader, data, "a.doc", seconds)


def test_pages_come_back_as_they_were_read():
    assert read(lines, "one\nzwei 🚲".encode()) == ["one", "zwei 🚲"]


@pytest.mark.parametrize(
    ("reader", "message"),
    [
        (refused, "a.doc is upside down; turn it"),
        (large, "a.doc holds more than 67,108,864 characters; split it"),
        (greedy, "a.doc cannot be read in 2 GB of memory"),
    ],
)
def test_errors_of_readers_name_the_file(reader, message):
    with pytest.raises(InputError, match=message):
        read(reader)


def test_few_documents_are_read_at_once():
    room = reading._ROOM
    taken = [room.acquire() for _ in range(reading.DOCUMENTS_AT_ONCE)]
    try:
        with pytest.raises(OverloadedError, match=r"other documents are being read; send a.doc"):
            read(lines, seconds=0.1)
    finally:
        for _ in taken:
            room.release()
    assert read(lines) == ["x"]
