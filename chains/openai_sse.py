"""Server-sent events: bytes to events and back, whatever the size of the chunks."""

from __future__ import annotations

import asyncio
import codecs
import json
from collections.abc import Iterable
from typing import Any, NamedTuple

from chains.openai_text import JSON

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

    def json(self) -> Any:
        """The data as JSON; None where it is none."""
        try:
            return json.loads(self.data)
        except ValueError:
            return None

    def encode(self) -> bytes:
        """The event on the wire."""
        head = f"event: {self.name}\n" if self.name else ""
        lines = "".join(f"data: {line}\n" for line in self.data.split("\n"))
        return f"{head}{lines}\n".encode()


async def written(events: Iterable[Event], *, long: bool) -> list[Event]:
    """Events that are written as they are read, in a thread where they are long."""
    return await asyncio.to_thread(list, events) if long else list(events)


class EventDecoder:
    """Decodes a stream that comes in chunks of any size; comments are dropped."""

    def __init__(self) -> None:
        # Decoding step by step, since a chunk may end within a character.
        self._text = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._rest = ""
        self._name: str | None = None
        self._data: list[str] = []

    def feed(self, chunk: bytes) -> list[Event]:
        """The events that a chunk completes."""
        self._rest += self._text.decode(chunk)
        carried_over = ""
        if self._rest.endswith("\r"):
            # The line feed that belongs to it may be in the next chunk.
            self._rest, carried_over = self._rest[:-1], "\r"
        lines = self._rest.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        self._rest = lines.pop() + carried_over
        return [event for line in lines if (event := self._line(line)) is not None]

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
