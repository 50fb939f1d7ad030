"""The OpenAI protocol on the wire: bodies, headers, events of streams, errors, and what is judged.

Errors and headers are not judged, so only fields of the protocol are returned, and they are
bounded: some servers add what the model had written so far.
"""

from __future__ import annotations

import codecs
import io
import json
import re
from collections.abc import AsyncIterable, Iterable
from contextlib import suppress
from enum import StrEnum
from typing import Any, NamedTuple

from guardrail.core.errors import ConfigError, GuardrailError, InputError, ModelError
from guardrail.core.incoming import finite_json
from guardrail.core.secrets import redact

JSON = dict[str, Any]
"""An object of the OpenAI protocol."""

LONG_BYTES = 64 * 1024
"""JSON from here on is read in a thread, half a millisecond or more; less is read at once."""
MOST_REPLY_BYTES = 32 * 1024 * 1024
"""Bytes of one reply, whole or streamed, including reasoning and metadata."""
MAX_PARTS = 128
"""Choices of a completion (the protocol's own bound on ``n``), or parts of a response's messages;
each is judged on its own."""
DONE = "[DONE]"
"""The data of the event that ends a chat completion's stream."""
MESSAGE_CHARACTERS = 1_000
"""Most characters of an error's message."""
EVENT_STREAM = "text/event-stream"
"""The media type of a streamed reply."""


class UnreadableReplyError(ModelError):
    """The model's server sent something that does not follow the OpenAI protocol."""


class Endpoint(StrEnum):
    """The two kinds of reply that are judged."""

    CHAT = "chat"
    RESPONSES = "responses"


class Reply(NamedTuple):
    """A reply of the model's server: its status, its headers in order, and the decoded body."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes

    def with_body(self, body: bytes, kind: str = "application/json") -> Reply:
        """The reply with another body of a media type."""
        headers = [pair for pair in self.headers if pair[0].lower() != "content-type"]
        return Reply(self.status, (*headers, ("content-type", kind)), body)


def endpoint_of(method: str, path: str) -> Endpoint | None:
    """The endpoint of a request whose reply is judged; None for any other request."""
    if method == "POST" and re.search(r"/chat/completions/?$", path):
        return Endpoint.CHAT
    if method == "POST" and re.search(r"/responses/?$", path):
        return Endpoint.RESPONSES
    named = re.search(r"/responses/(?!input_tokens|compact)[^/]+(/cancel)?/?$", path)
    return Endpoint.RESPONSES if named and method in ("GET", "POST") else None


def is_unguarded(path: str) -> bool:
    """True if replies at a path hold a model's text in a form that is not judged."""
    unguarded = (
        r"/(?:chat/completions/.+|responses/compact|responses/[^/]+/input_items.*|completions|"
        r"decisions|evals/[^/]+/runs(?:/.*)?|"
        r"(?:agents|assistants|threads|conversations|realtime|live)(?:/.*)?)/?$"
    )
    return re.search(unguarded, path) is not None


# --- bodies ------------------------------------------------------------------------------


def request_body(content: bytes) -> JSON:
    """Read the body of a request, a JSON object; else InputError."""
    try:
        body = finite_json(content)
        if b"\\ud" in content.lower():  # lone surrogates can only be written as escapes
            json.dumps(body, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise InputError("the request's body holds half a character (a lone surrogate)") from error
    except (ValueError, RecursionError) as error:
        raise InputError("the request's body is not JSON") from error
    if not isinstance(body, dict):
        raise InputError("the request's body is not a JSON object")
    return body


def reply_body(reply: Reply) -> JSON:
    """Read the body of a reply, a JSON object; else UnreadableReplyError."""
    try:
        body = finite_json(reply.body)
    except (ValueError, RecursionError) as error:
        raise UnreadableReplyError("the model's server did not answer with JSON") from error
    if not isinstance(body, dict):
        raise UnreadableReplyError("the model's server did not answer with a JSON object")
    return body


async def read_body(chunks: AsyncIterable[bytes], most: int) -> bytes:
    """Read the body of a reply of at most so many bytes; else UnreadableReplyError."""
    body = bytearray()
    async for chunk in chunks:
        body += chunk
        few_enough_bytes(len(body), most)
    return bytes(body)


def object_at(body: object, *path: str) -> JSON | None:
    """The object at a path of a body; None if there is none."""
    for name in path:
        body = body.get(name) if isinstance(body, dict) else None
    return body if isinstance(body, dict) else None


def few_enough_bytes(count: int, most: int) -> None:
    """Raise ``UnreadableReplyError`` if a reply, whole or streamed, has more bytes than allowed."""
    if count > most:
        raise UnreadableReplyError(
            f"the reply of the model's server is too large: more than {most:,} bytes "
            "(max_reply_bytes)"
        )


def is_json_document(text: str) -> bool:
    """True if a text as a whole is a JSON object or array (``NaN`` is not JSON)."""
    try:
        # int raises ValueError for such a constant.
        return isinstance(json.loads(text, parse_constant=int), dict | list)
    except (ValueError, RecursionError):
        return False


# --- headers -----------------------------------------------------------------------------


def safe_headers(headers: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """The headers of a reply that the caller gets: types, and ids, limits and codes.

    Their values have no white space, so no prose. Others concern the server's own connection, lead
    a client elsewhere, tell a browser who may read the reply, or are unjudged text.
    """
    safe = (
        r"(?i:cache-control):(?:(?:no-(?:cache|store|transform)|must-revalidate|private|public|"
        r"max-age=\d{1,9})(?:, ?|$))*|"
        r"(?i:content-disposition):(?:inline|attachment)(?:; ?filename\*?=[!-~]{1,200})?|"
        r"(?i:content-type):[\w.+-]{1,80}/[\w.+-]{1,80}(?:; ?\w{1,20}=[!-:<-~]{1,80}){0,2}|"
        r"(?i:retry-after):(?:\d{1,9}(?:\.\d{1,9})?|"
        r"[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} [\d:]{8} GMT)|"
        r"(?i:request-id|retry-after-ms|traceparent|tracestate|x-request-id|x-should-retry|"
        r"(?:openai|x-ratelimit|x-ms|apim|azureml|anthropic)-[!-9;-~]{0,180}):[!-~]{0,200}"
    )
    return tuple(pair for pair in headers if re.fullmatch(safe, ":".join(pair), re.ASCII))


# --- server-sent events ------------------------------------------------------------------


class Event(NamedTuple):
    """A server-sent event: its data, as text or as the object to write, and its name."""

    data: str | JSON
    name: str | None = None

    def json(self) -> object:
        """The data as JSON; None if it is not JSON."""
        try:
            return finite_json(self.data) if isinstance(self.data, str) else self.data
        except (ValueError, RecursionError):
            return None

    def encode(self) -> bytes:
        """The event on the wire."""
        data = self.data
        text = data if isinstance(data, str) else json.dumps(data, separators=(",", ":"))
        head = f"event: {self.name}\n" if self.name else ""
        lines = "".join(f"data: {line}\n" for line in text.split("\n"))
        return f"{head}{lines}\n".encode()


class EventDecoder:
    """Decodes a stream that comes in chunks of any size, in linear time; comments are dropped."""

    def __init__(self) -> None:
        utf8 = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._text = io.IncrementalNewlineDecoder(utf8, translate=True)
        self._begun: list[str] = []  # pieces of the line that has not ended
        self._name: str | None = None
        self._data: list[str] = []

    def feed(self, chunk: bytes) -> list[Event]:
        """Return the events that a chunk completes."""
        return self._events(self._text.decode(chunk))

    def finish(self) -> list[Event]:
        """Return the event left at the end of a stream that lacks its last empty line."""
        return self._events(self._text.decode(b"", final=True) + "\n\n")

    def _events(self, text: str) -> list[Event]:
        self._begun.append(text)
        if "\n" not in text:
            return []
        *lines, rest = "".join(self._begun).split("\n")
        self._begun = [rest]
        return [event for line in lines if (event := self._line(line)) is not None]

    def _line(self, line: str) -> Event | None:
        field, _, value = line.partition(":")
        if field == "event":
            self._name = value.removeprefix(" ")
        elif field == "data":
            self._data.append(value.removeprefix(" "))
        if line:
            return None
        event = Event("\n".join(self._data), self._name) if self._data else None
        self._name, self._data = None, []
        return event


# --- errors ------------------------------------------------------------------------------


def error_body(message: str, *, kind: str, code: str) -> JSON:
    """An error in the form of the protocol."""
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


def status_of(error: GuardrailError) -> tuple[int, str]:
    """The HTTP status and the protocol's code of an error."""
    match error:
        case UnreadableReplyError():
            return 502, "bad_upstream_reply"
        case InputError() | ConfigError():
            return 400, "invalid_request"
        case _:
            return 503, "guardrail_unavailable"


def error_in(body: JSON) -> object:
    """The error in a server's reply or event: its field ``error``, or the whole object; or None."""
    return body.get("error") or (body if isinstance(body.get("message"), str) else None)


def clean_error(error: object, status: int | None = None) -> JSON:
    """The protocol's error object, bounded and without the text that some servers add.

    A bare text is the message only with the status of an error: it may be the model's otherwise.
    """
    found = error if isinstance(error, dict) else {}
    message = found.get("message")
    if isinstance(error, str) and status is not None and status >= 300:
        message = error
    if not isinstance(message, str) or not message.strip():
        named = "" if status is None else f" with status {status}"
        message = f"the model's server answered with an unspecified error{named}"

    def name(value: object) -> str | int | float | None:
        if isinstance(value, str):
            return redact(value[:200]) if len(value.split()) == 1 else None
        return value if isinstance(value, int | float) else None

    names = {field: name(found.get(field)) for field in ("type", "param", "code")}
    return {"message": redact(message[:MESSAGE_CHARACTERS]), **names}


def failed_reply(reply: Reply) -> Reply | None:
    """A reply that is an error, or contains one with a status of success, cleaned; else None."""
    error: object = None
    if reply.status >= 300:
        with suppress(UnreadableReplyError):
            error = error_in(reply_body(reply))
    else:
        body = reply_body(reply) if b'"error"' in reply.body else {}
        error = body.get("error")
        if not error or {"choices", "output"} & body.keys():
            return None
    status = reply.status if 400 <= reply.status < 600 else 502
    content = json.dumps({"error": clean_error(error, reply.status)}).encode()
    return reply._replace(status=status).with_body(content)
