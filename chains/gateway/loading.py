"""Whether the gateway can answer: its guardrail is loaded, and it is not about to stop."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable
from typing import TYPE_CHECKING

from guardrail.core.errors import GuardrailError
from guardrail.core.secrets import get_logger

if TYPE_CHECKING:
    from guardrail import Guardrail

__all__ = ["Loading", "freeze_loaded"]

log = get_logger("chains.gateway")


class Loading:
    """Loads the guardrail once, whoever asks first.

    Args:
        guard: The guardrail.
        tried: Whether its judges are tried before it counts as loaded.
        on_loaded: Called once, when it is loaded.

    Attributes:
        unready: Why the gateway cannot answer; None where it can.
    """

    def __init__(
        self, guard: Guardrail, *, tried: bool, on_loaded: Callable[[], object] | None
    ) -> None:
        self.unready: str | None = "the guardrail is loading"
        self._guard = guard
        self._tried = tried
        self._on_loaded = on_loaded
        self._work: asyncio.Future[None] | None = None

    async def done(self) -> None:
        """Wait until the guardrail is loaded, so that no answer's time is spent on it.

        What cannot be loaded stands in ``unready``, and is told by the calls that need it.
        """
        if self._work is None:
            self._work = asyncio.ensure_future(self._load())
        await asyncio.shield(self._work)

    async def _load(self) -> None:
        try:
            await asyncio.to_thread(self._guard.warm_up)
            if self._tried:
                await asyncio.to_thread(self._guard.self_test)
        except GuardrailError as error:
            self.unready = f"the guardrail cannot be loaded: {error}"
            log.error("%s", self.unready)
        else:
            if self._on_loaded is not None:
                self._on_loaded()
            self.unready = None


def freeze_loaded() -> None:
    """Take what is loaded by now out of garbage collection, for good.

    It stays as long as the process. To search all of it, as Python does from time to time, would
    hold up the requests in work for a quarter of a second. For ``create_app(…, on_loaded=…)``.
    """
    gc.collect()
    gc.freeze()
