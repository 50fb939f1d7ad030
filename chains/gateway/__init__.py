"""The HTTP gateway: an OpenAI-compatible endpoint whose every answer is judged.

>>> from chains.gateway import create_app, run  # doctest: +SKIP

The settings are read without the extra ``server``; the rest needs it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from chains.gateway.settings import GatewaySettings

if TYPE_CHECKING:
    from chains.gateway.app import create_app
    from chains.gateway.serving import run

__all__ = ["GatewaySettings", "create_app", "run"]

_HOMES = {"create_app": "chains.gateway.app", "run": "chains.gateway.serving"}


def __getattr__(name: str) -> Any:
    """Load what needs a server when it is asked for."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
