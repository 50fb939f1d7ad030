"""Threads that read what callers hand over: no reading of one request keeps the others waiting."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, TypeVar, TypeVarTuple

from guardrail.core.errors import InputError, OverloadedError
from guardrail.core.workers import Workers

__all__ = ["READ_S", "in_reader_thread"]

READ_S: Final = 60.0
"""Most seconds in which the evidence of one request is read: documents, tables, many items."""
READERS: Final = Workers(concurrency=32, stuck=64)
"""Mostly they wait for documents; the few threads of the event loop are for short work."""

T = TypeVar("T")
Arguments = TypeVarTuple("Arguments")


async def in_reader_thread(work: Callable[[*Arguments], T], *args: *Arguments) -> T:
    """Run what reads a request's evidence on a thread for such work.

    Args:
        work: The function.
        args: What it takes.

    Raises:
        InputError: It takes longer than ``READ_S``.
        OverloadedError: Too many that took longer are still read.
    """
    try:
        async with asyncio.timeout(READ_S):
            return await READERS.run(work, *args)
    except TimeoutError as error:
        raise InputError(
            f"the evidence takes more than {READ_S:g} s to read; send less of it"
        ) from error
    except OverloadedError as error:
        raise OverloadedError("much evidence of others is still read; ask again later") from error
