"""Bodies of requests, read whole and unpacked: bounded in size, in time and in speed."""

from __future__ import annotations

import asyncio
import time
import zlib
from typing import NamedTuple

from starlette.types import Message, Receive

from chains.gateway.requests import RejectedError
from chains.gateway.streaming import CallerGoneError

__all__ = ["Body", "read_in_time", "replayed", "unpacked"]

GRACE_S = 5.0
"""Seconds before the least rate counts: a connection may take a moment to get going."""
CLOSE = {"connection": "close"}
"""What is left of a body that was refused is not read."""


class Body(NamedTuple):
    """What a body may be.

    Attributes:
        declared: Its ``content-length``, as the request says it.
        most_bytes: Most bytes.
        seconds: Most time that it may take as a whole.
        least_rate: Fewest bytes a second, from ``GRACE_S`` on.
    """

    declared: str
    most_bytes: int
    seconds: float
    least_rate: float


async def read_in_time(receive: Receive, allowed: Body) -> bytes:
    """Read a request's body.

    Raises:
        RejectedError: With status 413 as soon as it is larger than allowed, 408 as soon as it is
            slower.
        CallerGoneError: The caller went away.
    """
    if allowed.declared.isdigit() and int(allowed.declared[:20]) > allowed.most_bytes:
        raise _too_large(allowed.most_bytes)
    body = bytearray()
    begin = time.monotonic()
    while True:
        until = min(allowed.seconds, GRACE_S + len(body) / allowed.least_rate)
        try:
            async with asyncio.timeout(begin + until - time.monotonic()):
                message = await receive()
        except TimeoutError as error:
            raise RejectedError(
                408,
                f"the request's body came too slowly: send it within {allowed.seconds:g} s, at "
                f"{allowed.least_rate:g} bytes a second or more",
                "request_timeout",
                CLOSE,
            ) from error
        if message["type"] == "http.disconnect":
            raise CallerGoneError("the caller closed the connection")
        body += message.get("body", b"")
        if len(body) > allowed.most_bytes:
            raise _too_large(allowed.most_bytes)
        if not message.get("more_body", False):
            return bytes(body)


async def unpacked(body: bytes, encoding: str, most_bytes: int) -> bytes:
    """Undo the encoding of a body; no more than the bound is ever unpacked.

    Args:
        body: The body as it was sent.
        encoding: Its ``content-encoding``; empty for none.
        most_bytes: Most bytes unpacked.

    Raises:
        RejectedError: With status 415 for an encoding that is not read, 413 for a body that
            unpacks to more, 400 for one that is damaged.
    """
    encoding = encoding.strip().lower()
    if encoding in ("", "identity"):
        return body
    if encoding not in ("gzip", "x-gzip"):
        raise RejectedError(
            415, f"send the body as it is, or in gzip, not in {encoding[:40]!r}",
            "unsupported_encoding", {"accept-encoding": "gzip"},
        )  # fmt: skip
    try:
        return await asyncio.to_thread(_gunzipped, body, most_bytes)
    except zlib.error as error:
        raise RejectedError(400, "the body is no gzip, or damaged", "invalid_body") from error


def _gunzipped(body: bytes, most_bytes: int) -> bytes:
    found = bytearray()
    while body:  # members may follow one another
        member = zlib.decompressobj(zlib.MAX_WBITS | 16)
        found += member.decompress(body, most_bytes + 1 - len(found))
        if len(found) > most_bytes:
            raise _too_large(most_bytes)
        if not member.eof:
            raise zlib.error("cut short")
        body = member.unused_data
    return bytes(found)


def _too_large(most_bytes: int) -> RejectedError:
    message = f"the request is larger than the {most_bytes} bytes allowed"
    return RejectedError(413, message, "request_too_large", CLOSE)


def replayed(body: bytes, receive: Receive) -> Receive:
    """What gives a body that was read once more, and then what comes behind it."""
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Message:
        return waiting.pop() if waiting else await receive()

    return again
