"""Streams of a hostile server: linear in time, bounded in memory, never a fault of ours."""

import time

import pytest

from chains import openai_sse
from chains.openai_sse import Event, EventDecoder
from chains.openai_text import UnreadableReplyError


def decoded(text, size):
    decoder = EventDecoder()
    data = text.encode()
    found = [
        event
        for start in range(0, len(data), size)
        for event in decoder.feed(data[start : start + size])
    ]
    return found + decoder.finish()


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1_000])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_chunks_of_any_size_give_the_same_events(size, end):
    text = end.join(["data: ä", "data: b", "", ": note", "event: x", "data: c", "", ""])
    assert decoded(text, size) == [Event("ä\nb"), Event("c", "x")]


def test_a_line_in_small_chunks_takes_linear_time():
    def seconds(length):
        decoder = EventDecoder()
        begun = time.process_time()
        for _ in range(length):
            decoder.feed(b"xxxxxxxx")
        return time.process_time() - begun

    seconds(1_000)
    assert seconds(400_000) < 40 * max(seconds(40_000), 0.005)


@pytest.mark.parametrize("piece", [b"x" * 1_000, b"data: x\n" * 100], ids=["a line", "lines"])
def test_an_event_without_end_is_refused(monkeypatch, piece):
    monkeypatch.setattr(openai_sse, "MOST_CHARACTERS", 10_000)
    pieces = iter([piece] * 100)
    with pytest.raises(UnreadableReplyError, match="characters"):
        list(map(EventDecoder().feed, pieces))
    assert next(pieces, None) is not None


def test_many_short_events_are_not_one_long_one(monkeypatch):
    monkeypatch.setattr(openai_sse, "MOST_CHARACTERS", 10_000)
    decoder = EventDecoder()
    assert sum(len(decoder.feed(b"data: x\n\n")) for _ in range(10_000)) == 10_000


def test_json_without_end_is_none():
    assert Event("[" * 200_000).json() is None
