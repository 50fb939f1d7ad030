"""Guardrail protocols of other gateways, switched on by name; ``PROTOCOLS`` registers them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module

from chains.gateway.protocols.base import Protocol, ProtocolReply

__all__ = ["PROTOCOLS", "Protocol", "ProtocolReply"]


def _load(module: str, name: str) -> Protocol:
    """A handler by its module here and its class, which is loaded only if it is used."""
    handler: Protocol = getattr(import_module(module, __name__), name)()
    return handler


PROTOCOLS: dict[str, tuple[str, Callable[[], Protocol]]] = {
    "litellm": (
        "/beta/litellm_basic_guardrail_api",
        partial(_load, ".litellm", "LiteLLMGuardrail"),
    ),
    "portkey": ("/portkey/webhook", partial(_load, ".hosts", "PortkeyWebhook")),
    "truefoundry": ("/truefoundry/guardrail", partial(_load, ".hosts", "TrueFoundryGuardrail")),
    "fms": ("/api/v1/text/context/doc", partial(_load, ".hosts", "FMSDetector")),
}
"""Path and handler of each protocol, by name."""
