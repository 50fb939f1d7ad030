"""Errors of a model's server, without the text that such a server may put around them.

A reply that is an error is not judged. So nothing of it leaves but what the protocol's error
object has, and that in bounds: some servers add what the model had written by then.
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
    "failed_reply",
    "told_error",
]

MESSAGE_CHARACTERS = 1_000
"""Most of an error's message."""
NAME_CHARACTERS = 200
"""Most of its type, param and code."""
FAILED_FROM = 300
"""The least status of a reply that is no success."""
NAMES = ("type", "param", "code")
ERROR_BEGINS = b'"error"'
ANSWER_FIELDS = frozenset({"choices", "output"})
"""Fields that a reply with an answer has."""
FAILED_UPSTREAM = 502
"""Status of a reply that tells of an error where it should be an answer."""
ERROR_STATUSES = range(400, 600)
"""Statuses of errors; HTTP knows none above."""


def error_body(message: str, *, kind: str, code: str | None = None) -> JSON:
    """An error as the protocol writes it."""
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


def told_error(body: object) -> object:
    """What a server's reply or event tells of an error; None where it tells of none.

    Args:
        body: The reply; servers put the error into its field ``error``, or are one themselves.
    """
    if not isinstance(body, dict):
        return None
    if body.get("error"):
        return body["error"]
    return body if isinstance(body.get("message"), str) else None


def clean_error(told: object, status: int | None = None) -> JSON:
    """The protocol's error object, from what a server says of an error.

    Args:
        told: Its error: an object with a ``message``; or that message, which counts only where
            the status is an error's as well, for elsewhere such a text may be the model's.
        status: HTTP status of the reply; None for what comes in a stream that began well.

    Returns:
        ``message``, a bounded text; ``type``, ``param`` and ``code``: bounded texts without white
        space, numbers or None.
    """
    found = told if isinstance(told, dict) else {}
    message = found.get("message")
    if isinstance(told, str) and status is not None and status >= FAILED_FROM:
        message = told
    if not isinstance(message, str) or not message.strip():
        named = "" if status is None else f" with status {status}"
        message = f"the model's server answered with an error{named}, and did not say which"
    names = {name: _scalar(found.get(name)) for name in NAMES}
    return {"message": redact(message[:MESSAGE_CHARACTERS]), **names}


def _scalar(value: object) -> str | int | float | None:
    if isinstance(value, str):
        return redact(value[:NAME_CHARACTERS]) if len(value.split()) == 1 else None
    return value if isinstance(value, int | float) else None


def failed_reply(reply: Reply) -> Reply | None:
    """A reply that is an error, or tells of one with a status of success; else None.

    Its status stays, and of its body the error. One whose status clients would not take for an
    error, or that no server may send, gets one that they do.
    """
    if reply.status >= FAILED_FROM:
        try:
            told = told_error(reply_body(reply))
        except UnreadableReplyError:
            told = None
    else:
        if ERROR_BEGINS not in reply.body:
            return None
        body = reply_body(reply)
        if not body.get("error") or ANSWER_FIELDS & body.keys():
            return None
        told = body["error"]
    status = reply.status if reply.status in ERROR_STATUSES else FAILED_UPSTREAM
    content = json.dumps({"error": clean_error(told, reply.status)}).encode()
    headers = [pair for pair in reply.headers if pair[0].lower() != "content-type"]
    return Reply(status, (*headers, ("content-type", "application/json")), content)
