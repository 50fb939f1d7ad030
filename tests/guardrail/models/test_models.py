"""Models by name, and structured output of LangChain models."""

from __future__ import annotations

import asyncio

import pytest

from guardrail.core.errors import ConfigError, ModelError
from guardrail.core.types import Triple
from guardrail.models import LangChainModel, Prompt, SampleRequest, default_model, open_model
from guardrail.models.constraints import constraint_for

PAINTER = Triple(subject="Ann", subject_id="Q1", property="occupation", value="painter, poet")


def test_models_open_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    assert open_model("openai:gpt", api_key="k").name == "gpt"
    with pytest.raises(ConfigError, match="unknown model"):
        open_model("opnai:gpt")
    with pytest.raises(ConfigError, match="no LangChain model"):
        open_model(3)
    ready = open_model("openai:gpt", api_key="k")
    assert open_model(ready) is ready


def test_without_an_endpoint_there_is_no_default_model(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY", "OPENAI_MODEL"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ConfigError):
        default_model()
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("OPENAI_MODEL", "tiny")
    assert default_model().name == "tiny"


def test_a_langchain_model_may_be_held_to_structured_output() -> None:
    from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
    from langchain_core.messages import AIMessage

    call = {
        "name": "cited_answer",
        "id": "1",
        "args": {
            "sentences": [
                {"text": "Ann.", "na": False, "citations": ["Q1, occupation: painter, poet"]}
            ]
        },
    }

    class ToolModel(GenericFakeChatModel):
        def bind_tools(self, tools: object, **kwargs: object) -> ToolModel:
            return self

    fake = ToolModel(messages=iter([AIMessage(content="", tool_calls=[call])]))
    model = LangChainModel(fake, structured=True)
    request = SampleRequest(
        prompt=Prompt.from_text("Who was Ann?"), constraint=constraint_for([PAINTER])
    )
    (sample,) = asyncio.run(model.sample(request))
    assert sample.text == "Ann [Q1, occupation: painter, poet]."
    with pytest.raises(ModelError, match="failed"):
        asyncio.run(model.sample(request))  # the fake has nothing more to say
