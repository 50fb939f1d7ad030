"""The HTTP gateway: an OpenAI-compatible endpoint whose every answer is judged.

>>> from chains.gateway import create_app, run  # doctest: +SKIP

The settings are read without the extra ``server``; the rest needs it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from chains.gateway.settings import GatewaySettings
from guardrail.core.lazy import loaded_on_use

if TYPE_CHECKING:
    from chains.gateway.app import create_app, freeze_loaded
    from chains.gateway.serving import run

__all__ = ["GatewaySettings", "create_app", "freeze_loaded", "run"]

__getattr__, __dir__ = loaded_on_use(
    __name__, {"chains.gateway.app": "create_app freeze_loaded", "chains.gateway.serving": "run"}
)
