"""The HTTP gateway: an OpenAI-compatible endpoint whose every answer is judged.

>>> from chains.gateway import create_app, run  # doctest: +SKIP
"""

from __future__ import annotations

from chains.gateway.app import create_app
from chains.gateway.serving import run
from chains.gateway.settings import GatewaySettings

__all__ = ["GatewaySettings", "create_app", "run"]
