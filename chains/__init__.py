"""The ways in: LangChain Runnables and agents, OpenAI clients, and an HTTP gateway.

>>> from chains import GuardrailRunnable, GuardrailMiddleware, guard_openai  # doctest: +SKIP
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from guardrail.core.errors import MissingExtraError

if TYPE_CHECKING:
    from chains.chat_model import GuardedChatModel
    from chains.evidence import EvidenceMode, EvidenceSettings
    from chains.middleware import GuardrailMiddleware
    from chains.openai_client import guard_openai
    from chains.rendition import MarkerStyle
    from chains.runnable import GuardrailRunnable, guard_runnable
    from chains.streaming import StreamMode

__all__ = [
    "EvidenceMode",
    "EvidenceSettings",
    "GuardedChatModel",
    "GuardrailMiddleware",
    "GuardrailRunnable",
    "MarkerStyle",
    "StreamMode",
    "guard_openai",
    "guard_runnable",
]

_HOME = {
    "EvidenceMode": "chains.evidence.base",
    "EvidenceSettings": "chains.evidence.base",
    "GuardedChatModel": "chains.chat_model",
    "GuardrailMiddleware": "chains.middleware",
    "GuardrailRunnable": "chains.runnable",
    "MarkerStyle": "chains.rendition",
    "StreamMode": "chains.streaming",
    "guard_openai": "chains.openai_client",
    "guard_runnable": "chains.runnable",
}
_EXTRAS = {"langchain": "langchain", "langchain_core": "langchain", "langgraph": "langchain"}


def __getattr__(name: str) -> object:
    """Load a public name from its module on first use (PEP 562)."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        value = getattr(import_module(_HOME[name]), name)
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in _EXTRAS:
            raise
        raise MissingExtraError(package, _EXTRAS[package]) from error
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
