"""Errors of a model's server, without the text that some servers add to them.

An error is not judged, so only the fields of the protocol's error object are returned, bounded:
some servers add what the model had written so far.
"""

from __future__ import annotations

import json

from chains.openai_wire import JSON, Reply, UnreadableReplyError, reply_body
from guardrail.core.secrets import redact

__all__ = [
    "FAILED_FROM",
    "MESSAGE_CHARACTERS",
    "clean_error",
    "error_body",
    "error_in",
    "failed_reply",
]

MESSAGE_CHARACTERS = 1_000
"""Characters of an error's message."""
NAME_CHARACTERS = 200
"""Characters of its type, param and code."""
FAILED_FROM = 300
"""The first status of a reply that is not a success."""
ANSWER_FIELDS = frozenset({"choices", "output"})
FAILED_UPSTREAM = 502
"""For an error with a status of success, or with one that is not an error's."""
ERROR_STATUSES = range(400, 600)


def error_body(message: str, *, kind: str, code: str | None = None) -> JSON:
    """An error in the form of the protocol."""
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


def error_in(body: object) -> object:
    """The error in a server's reply or event: its field ``error``, or the whole object; or None."""
    if not isinstance(body, dict):
        return None
    if body.get("error"):
        return body["error"]
    return body if isinstance(body.get("message"), str) else None


def clean_error(error: object, status: int | None = None) -> JSON:
    """The protocol's error object.

    Args:
        error: The server's: an object with a ``message``; or the message itself, which counts only
            if the status is an error's as well, since it may be the model's text otherwise.
        status: HTTP status of the reply; None in a stream that began well.

    Returns:
        ``message``, bounded; ``type``, ``param`` and ``code``: bounded texts without white space,
        numbers or None.
    """
    found = error if isinstance(error, dict) else {}
    message = found.get("message")
    if isinstance(error, str) and status is not None and status >= FAILED_FROM:
        message = error
    if not isinstance(message, str) or not message.strip():
        named = "" if status is None else f" with status {status}"
        message = f"the model's server answered with an unspecified error{named}"

    def name(value: object) -> str | int | float | None:
        if isinstance(value, str):
            return redact(value[:NAME_CHARACTERS]) if len(value.split()) == 1 else None
        return value if isinstance(value, int | float) else None

    names = {field: name(found.get(field)) for field in ("type", "param", "code")}
    return {"message": redact(message[:MESSAGE_CHARACTERS]), **names}


def failed_reply(reply: Reply) -> Reply | None:
    """A reply that is an error, or contains one with a status of success, cleaned; else None."""
    if reply.status >= FAILED_FROM:
        try:
            error = error_in(reply_body(reply))
        except UnreadableReplyError:
            error = None
    else:
        if b'"error"' not in reply.body:
            return None
        body = reply_body(reply)
        if not body.get("error") or ANSWER_FIELDS & body.keys():
            return None
        error = body["error"]
    status = reply.status if reply.status in ERROR_STATUSES else FAILED_UPSTREAM
    content = json.dumps({"error": clean_error(error, reply.status)}).encode()
    headers = [pair for pair in reply.headers if pair[0].lower() != "content-type"]
    return Reply(status, (*headers, ("content-type", "application/json")), content)
