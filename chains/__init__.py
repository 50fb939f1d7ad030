"""The ways in: LangChain Runnables and agents, OpenAI clients, and an HTTP gateway.

>>> from chains import GuardrailRunnable, GuardrailMiddleware, guard_openai  # doctest: +SKIP
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from guardrail.core.lazy import loaded_on_use

if TYPE_CHECKING:
    from chains.chat_model import GuardedChatModel
    from chains.evidence.base import EvidenceMode, EvidenceSettings
    from chains.messages import WithheldError
    from chains.middleware import GuardrailMiddleware
    from chains.openai_client import guard_openai
    from chains.options import MarkerStyle, StreamMode
    from chains.runnable import GuardrailRunnable

__all__ = [
    "EvidenceMode", "EvidenceSettings", "GuardedChatModel", "GuardrailMiddleware",
    "GuardrailRunnable", "MarkerStyle", "StreamMode", "WithheldError", "guard_openai",
]  # fmt: skip

__getattr__, __dir__ = loaded_on_use(
    __name__,
    {
        "chains.evidence.base": "EvidenceMode EvidenceSettings",
        "chains.chat_model": "GuardedChatModel",
        "chains.messages": "WithheldError",
        "chains.middleware": "GuardrailMiddleware",
        "chains.runnable": "GuardrailRunnable",
        "chains.options": "MarkerStyle StreamMode",
        "chains.openai_client": "guard_openai",
    },
    dict.fromkeys(("langchain", "langchain_core", "langgraph"), "langchain"),
)
