"""Guardrail protocols that other gateways speak, switched on by name.

``litellm``: LiteLLM's ``generic_guardrail_api``; ``portkey``: Portkey's webhook check; ``fms``:
the detector API of the FMS guardrails orchestrator.
"""

from __future__ import annotations

from collections.abc import Callable

from chains.gateway.protocols.base import Protocol, ProtocolReply
from chains.gateway.protocols.fms import FMSDetector
from chains.gateway.protocols.litellm import LiteLLMGuardrail
from chains.gateway.protocols.portkey import PortkeyWebhook

__all__ = ["PROTOCOLS", "Protocol", "ProtocolReply"]

PROTOCOLS: dict[str, tuple[str, Callable[[], Protocol]]] = {
    "litellm": ("/beta/litellm_basic_guardrail_api", LiteLLMGuardrail),
    "portkey": ("/portkey/webhook", PortkeyWebhook),
    "fms": ("/api/v1/text/context/doc", FMSDetector),
}
"""Path and handler of each protocol, by name."""
