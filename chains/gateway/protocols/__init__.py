"""Guardrail protocols that other gateways speak, switched on by name.

``PROTOCOLS`` is where they are registered; each is described in its module.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module

from chains.gateway.protocols.base import Protocol, ProtocolReply

__all__ = ["PROTOCOLS", "Protocol", "ProtocolReply"]


def _made(place: str) -> Protocol:
    """The handler of a protocol, by its module here and its class; only what is used is loaded."""
    module, _, name = place.partition(":")
    made: Protocol = getattr(import_module(module, __name__), name)()
    return made


PROTOCOLS: dict[str, tuple[str, Callable[[], Protocol]]] = {
    "litellm": ("/beta/litellm_basic_guardrail_api", partial(_made, ".litellm:LiteLLMGuardrail")),
    "portkey": ("/portkey/webhook", partial(_made, ".portkey:PortkeyWebhook")),
    "truefoundry": ("/truefoundry/guardrail", partial(_made, ".truefoundry:TrueFoundryGuardrail")),
    "fms": ("/api/v1/text/context/doc", partial(_made, ".fms:FMSDetector")),
}
"""Path and handler of each protocol, by name."""
