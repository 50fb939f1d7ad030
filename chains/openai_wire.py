"""The OpenAI protocol on the wire: objects, bodies, replies, and which of them are judged."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from enum import StrEnum
from typing import Any, NamedTuple

from guardrail.core.errors import InputError, ModelError
from guardrail.core.incoming import finite_json

__all__ = [
    "JSON",
    "LONG_BYTES",
    "MOST_REPLY_BYTES",
    "Endpoint",
    "Reply",
    "UnreadableReplyError",
    "endpoint_of",
    "few_enough_bytes",
    "is_json_document",
    "is_unguarded",
    "reply_body",
    "request_body",
    "safe_headers",
]

JSON = dict[str, Any]
"""An object of the OpenAI protocol."""

LONG_BYTES = 64 * 1024
"""JSON from here on is read in a thread, half a millisecond or more; less is read at once."""

MOST_REPLY_BYTES = 32 * 1024 * 1024
"""Bytes of one reply, whole or streamed, including reasoning and metadata."""

UNGUARDED = re.compile(
    r"/(?:chat/completions/.+|responses/compact|responses/[^/]+/input_items.*|completions|"
    r"decisions|evals/[^/]+/runs(?:/.*)?|"
    r"(?:agents|assistants|threads|conversations|realtime|live)(?:/.*)?)/?$"
)
"""Paths whose replies hold a model's text in a form that is not judged."""


class UnreadableReplyError(ModelError):
    """The model's server answered with something that is not of the OpenAI protocol."""


class Endpoint(StrEnum):
    """The two kinds of reply that are judged."""

    CHAT = "chat"
    RESPONSES = "responses"


class Reply(NamedTuple):
    """A reply of the model's server.

    Attributes:
        status: HTTP status.
        headers: Its headers, in order.
        body: The decoded body.
    """

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes


def endpoint_of(method: str, path: str) -> Endpoint | None:
    """Which kind of judged reply a request gets; None where it gets none."""
    if method == "POST" and re.search(r"/chat/completions/?$", path):
        return Endpoint.CHAT
    if re.search(r"/responses/?$", path) and method == "POST":
        return Endpoint.RESPONSES
    named = re.search(r"/responses/(?!input_tokens|compact)[^/]+(/cancel)?/?$", path)
    return Endpoint.RESPONSES if named and method in ("GET", "POST") else None


def is_unguarded(path: str) -> bool:
    """Whether a path's replies hold a model's text that is not judged here."""
    return bool(UNGUARDED.search(path))


def request_body(content: bytes) -> JSON:
    """Read the body of a request.

    Raises:
        InputError: It is no JSON object, or holds a text that cannot be written in UTF-8.
    """
    try:
        body = finite_json(content)
        if b"\\ud" in content.lower():  # half a character can only be written so
            json.dumps(body, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise InputError("the request's body holds half a character (a lone surrogate)") from error
    except (ValueError, RecursionError) as error:
        raise InputError("the request's body is not JSON") from error
    if not isinstance(body, dict):
        raise InputError("the request's body is not a JSON object")
    return body


def few_enough_bytes(count: int, most: int) -> None:
    """Raise ``UnreadableReplyError`` if a reply, whole or streamed, has more bytes than allowed."""
    if count > most:
        raise UnreadableReplyError(
            f"the reply of the model's server is too large: more than {most:,} bytes "
            "(max_reply_bytes)"
        )


def reply_body(reply: Reply) -> JSON:
    """The JSON object that a reply is.

    Raises:
        UnreadableReplyError: It is none.
    """
    try:
        body = finite_json(reply.body)
    except (ValueError, RecursionError) as error:
        raise UnreadableReplyError("the model's server did not answer with JSON") from error
    if not isinstance(body, dict):
        raise UnreadableReplyError("the model's server did not answer with a JSON object")
    return body


def is_json_document(text: str) -> bool:
    """Whether a text as a whole is a JSON object or array, without what is none (``NaN``)."""
    try:
        return isinstance(json.loads(text, parse_constant=_no_json), dict | list)
    except (ValueError, RecursionError):
        return False


def _no_json(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")


SAFE_HEADERS = re.compile(
    "cache-control|content-disposition|content-type|request-id|retry-after|retry-after-ms|"
    "traceparent|tracestate|x-request-id|x-should-retry|"
    "(?:openai|x-ratelimit|x-ms|apim|azureml|anthropic)-.*"
)
"""Headers of a reply that the caller gets: ids, limits and types. Others concern the server's own
connection, lead a client elsewhere, tell a browser who may read the reply, or are unjudged text."""

PLAIN = re.compile(r"[!-~]{0,200}")
"""An id, a limit or a code: no white space, so no prose."""
HEADER_FORMS = {
    "cache-control": re.compile(
        r"(?:(?:no-(?:cache|store|transform)|must-revalidate|private|public|max-age=\d{1,9})"
        r"(?:, ?|$))*"
    ),
    "content-disposition": re.compile(r"(?:inline|attachment)(?:; ?filename\*?=[!-~]{1,200})?"),
    "content-type": re.compile(
        r"[\w.+-]{1,80}/[\w.+-]{1,80}(?:; ?\w{1,20}=[!-:<-~]{1,80}){0,2}", re.A
    ),
    "retry-after": re.compile(
        r"\d{1,9}(?:\.\d{1,9})?|[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} [\d:]{8} GMT"
    ),
}
"""Headers whose values may hold white space, in these forms."""


def safe_headers(headers: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """The headers of a reply that the caller gets; their values cannot be prose."""
    return tuple(
        (name, value)
        for name, value in headers
        if SAFE_HEADERS.fullmatch(name.lower())
        and PLAIN.fullmatch(name)
        and HEADER_FORMS.get(name.lower(), PLAIN).fullmatch(value)
    )
