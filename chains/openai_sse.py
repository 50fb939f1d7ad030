"""Server-sent events: bytes to events and back, whatever the size of the chunks."""

from __future__ import annotations

import asyncio
import codecs
import json
from collections.abc import Iterable
from typing import NamedTuple

from chains.openai_wire import JSON, UnreadableReplyError
from guardrail.core.incoming import finite_json

__all__ = ["DONE", "Event", "EventDecoder", "written"]

DONE = "[DONE]"
"""The data of the event that ends a chat completion's stream."""


class Event(NamedTuple):
    """One event."""

    data: str
    name: str | None = None

    @classmethod
    def of(cls, data: JSON, name: str | None = None) -> Event:
        """An event that carries JSON."""
        return cls(json.dumps(data, ensure_ascii=True, separators=(",", ":")), name)

    def json(self) -> object:
        """The data as JSON; None where it is none."""
        try:
            return finite_json(self.data)
        except (ValueError, RecursionError):
            return None

    def encode(self) -> bytes:
        """The event on the wire."""
        head = f"event: {self.name}\n" if self.name else ""
        lines = "".join(f"data: {line}\n" for line in self.data.split("\n"))
        return f"{head}{lines}\n".encode()


async def written(events: Iterable[Event], *, long: bool) -> list[Event]:
    """Events that are written as they are read, in a thread where they are long."""
    return await asyncio.to_thread(list, events) if long else list(events)


MOST_CHARACTERS = 16 * 1024 * 1024
"""Of one event; a server that sends more without an end is not answering."""


class EventDecoder:
    """Decodes a stream that comes in chunks of any size; comments are dropped.

    It takes time linear in what comes, and holds one event at most.
    """

    def __init__(self) -> None:
        # Decoding step by step, since a chunk may end within a character.
        self._text = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._begun: list[str] = []
        self._held = 0
        self._name: str | None = None
        self._data: list[str] = []

    def feed(self, chunk: bytes) -> list[Event]:
        """The events that a chunk completes.

        Raises:
            UnreadableReplyError: An event is longer than ``MOST_CHARACTERS``.
        """
        text = self._text.decode(chunk)
        self._held += len(text)
        if self._held > MOST_CHARACTERS:
            raise UnreadableReplyError(
                f"the model's server sends an event of over {MOST_CHARACTERS:,} characters"
            )
        ended = "\n" in text or "\r" in text or (self._begun and self._begun[-1].endswith("\r"))
        self._begun.append(text)
        if not ended:
            return []
        text = "".join(self._begun)
        carried_over = ""
        if text.endswith("\r"):
            # The line feed that belongs to it may be in the next chunk.
            text, carried_over = text[:-1], "\r"
        lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        self._begun = [lines.pop() + carried_over]
        events = [event for line in lines if (event := self._line(line)) is not None]
        if events:
            self._held = len(self._begun[0]) + sum(map(len, self._data))
        return events

    def finish(self) -> list[Event]:
        """The event left at the end of a stream that lacks its last empty line."""
        return self.feed(b"\n\n")

    def _line(self, line: str) -> Event | None:
        if not line:
            event = Event("\n".join(self._data), self._name) if self._data else None
            self._name, self._data = None, []
            return event
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "event":
            self._name = value
        elif field == "data":
            self._data.append(value)
        return None
