"""The synchronous forms: the same coroutines, run on one private event loop in a thread.

Works in scripts, threads and notebooks alike, because the caller's own loop, running or not, is
never touched.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Coroutine
from typing import Never, TypeVar

from guardrail.core.errors import GuardrailError

__all__ = ["run_sync"]

T = TypeVar("T")

_lock = threading.Lock()
_loop: asyncio.AbstractEventLoop | None = None


def run_sync(coroutine: Coroutine[object, Never, T]) -> T:
    """Run a coroutine to its end from synchronous code, in the caller's context variables.

    Args:
        coroutine: What to run; it is cancelled when the caller is interrupted.

    Raises:
        GuardrailError: Called from a coroutine of this project, where it would wait for itself.
    """
    loop = _private_loop()
    try:
        running = asyncio.get_running_loop()
    except RuntimeError:
        running = None
    if running is loop:
        coroutine.close()
        raise GuardrailError("a synchronous call inside the guardrail's own loop; await instead")
    future = asyncio.run_coroutine_threadsafe(coroutine, loop)
    try:
        return future.result()
    except BaseException:
        future.cancel()
        raise


def _private_loop() -> asyncio.AbstractEventLoop:
    global _loop
    with _lock:
        if _loop is None or _loop.is_closed():
            _loop = asyncio.new_event_loop()
            threading.Thread(target=_loop.run_forever, name="guardrail-loop", daemon=True).start()
        return _loop


def _forget() -> None:
    """After a fork the thread is gone: the child starts a loop of its own."""
    global _loop, _lock
    _loop, _lock = None, threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
