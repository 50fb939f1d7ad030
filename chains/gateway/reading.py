"""Bodies of requests, read whole: bounded in size, in time, and from below in speed."""

from __future__ import annotations

import asyncio
import time
from typing import NamedTuple

from starlette.types import Message, Receive

from chains.gateway.requests import RejectedError
from chains.gateway.streaming import CallerGoneError

__all__ = ["Body", "read_in_time", "replayed"]

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
    too_large = RejectedError(
        413,
        f"the request is larger than the {allowed.most_bytes} bytes allowed",
        "request_too_large",
        CLOSE,
    )
    if allowed.declared.isdigit() and int(allowed.declared[:20]) > allowed.most_bytes:
        raise too_large
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
            raise too_large
        if not message.get("more_body", False):
            return bytes(body)


def replayed(body: bytes, receive: Receive) -> Receive:
    """What gives a body that was read once more, and then what comes behind it."""
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Message:
        return waiting.pop() if waiting else await receive()

    return again
