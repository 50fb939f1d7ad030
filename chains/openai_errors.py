"""Errors of a model's server, without the text that such a server may put around them.

A reply that is an error is not judged. So nothing of it leaves but what the protocol's error
object has, and that in bounds: some servers add what the model had written by then.
"""

from __future__ import annotations

from chains.openai_text import JSON

__all__ = ["clean_error", "error_body", "told_error"]

MESSAGE_CHARACTERS = 1_000
"""Most of an error's message."""
NAME_CHARACTERS = 200
"""Most of its type, param and code."""
NAMES = ("type", "param", "code")


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
        told: Its error: an object with a ``message``, or that message; anything else tells
            nothing.
        status: HTTP status of the reply, for the message where the server has none.

    Returns:
        ``message``, ``type``, ``param`` and ``code``: bounded texts, numbers or None.
    """
    found = told if isinstance(told, dict) else {"message": told}
    message = found.get("message")
    if not isinstance(message, str) or not message.strip():
        named = "" if status is None else f" with status {status}"
        message = f"the model's server answered with an error{named}, and did not say which"
    names = {name: _scalar(found.get(name)) for name in NAMES}
    return {"message": message[:MESSAGE_CHARACTERS], **names}


def _scalar(value: object) -> str | int | float | None:
    if isinstance(value, str):
        return value[:NAME_CHARACTERS]
    return value if isinstance(value, int | float) else None
