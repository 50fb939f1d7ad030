"""Language models: one protocol, and the back ends behind it, loaded when first used."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, cast

from guardrail.core.errors import ConfigError
from guardrail.core.lazy import loaded_on_use
from guardrail.models.base import Completion, LanguageModel, Message, Prompt, SampleRequest

if TYPE_CHECKING:
    from guardrail.models.langchain import LangChainModel
    from guardrail.models.openai import OpenAIModel

__all__ = [
    "Completion", "LangChainModel", "LanguageModel", "Message", "OpenAIModel", "Prompt",
    "SampleRequest", "default_model", "open_model",
]  # fmt: skip

DEFAULT_OPENAI_MODEL = "gpt-4o-mini"

__getattr__, __dir__ = loaded_on_use(
    __name__,
    {
        "guardrail.models.langchain": "LangChainModel",
        "guardrail.models.openai": "OpenAIModel",
    },
)


def open_model(
    spec: object,
    *,
    base_url: str | None = None,
    api_key: str | None = None,
    structured: bool | None = None,
    timeout_s: float = 60.0,
) -> LanguageModel:
    """Open a model by its name, or wrap one.

    Args:
        spec: ``openai:NAME`` or ``completion:NAME`` (an OpenAI-compatible endpoint, prompted by
            chat or by completion), a LangChain chat model, or a ``LanguageModel``.
        base_url: The endpoint; None takes ``OPENAI_BASE_URL`` or OpenAI's own.
        api_key: The key; None takes ``OPENAI_API_KEY``.
        structured: Constrain citations with structured outputs; None for yes at OpenAI's own
            endpoint and no at any other.
        timeout_s: Limit of one call to an endpoint, seconds.

    Raises:
        ConfigError: The name is none of these.
    """
    if not isinstance(spec, str):
        if callable(getattr(spec, "sample", None)):
            return cast("LanguageModel", spec)
        from guardrail.models.langchain import LangChainModel

        return LangChainModel(spec)
    kind, _, name = spec.partition(":")
    if kind in ("openai", "completion") and name:
        from guardrail.models.openai import OpenAIModel

        if structured is None:
            own = not (base_url or os.environ.get("OPENAI_BASE_URL"))
            structured = own and kind == "openai"
        return OpenAIModel(
            name,
            base_url=base_url,
            api_key=api_key,
            api="chat" if kind == "openai" else "completion",
            structured=structured,
            timeout_s=timeout_s,
        )
    raise ConfigError(f"unknown model {spec!r}; use 'openai:NAME' or 'completion:NAME'")


def default_model() -> LanguageModel:
    """The endpoint that ``OPENAI_API_KEY`` or ``OPENAI_BASE_URL`` names.

    ``OPENAI_MODEL`` names the endpoint's model.

    Raises:
        ConfigError: Neither variable is set.
    """
    if not (os.environ.get("OPENAI_API_KEY") or os.environ.get("OPENAI_BASE_URL")):
        raise ConfigError(
            "no language model is configured; set OPENAI_BASE_URL (any OpenAI-compatible server) "
            "or OPENAI_API_KEY, or name one as model = 'openai:NAME'"
        )
    name = os.environ.get("OPENAI_MODEL", DEFAULT_OPENAI_MODEL)
    key = os.environ.get("OPENAI_API_KEY") or "none"  # local servers need no key
    return open_model(f"openai:{name}", api_key=key)
