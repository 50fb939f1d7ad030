"""The guarded chat model passes LangChain's own standard tests and leaks nothing."""

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_openai import ChatOpenAI
from langchain_tests.unit_tests import ChatModelUnitTests

from chains import GuardedChatModel
from tests.chains.conftest import CANARY, QUESTION
from tests.chains.test_runnable import model


class TestStandard(ChatModelUnitTests):
    """LangChain's standard unit tests, over a guarded ChatOpenAI."""

    @pytest.fixture(autouse=True)
    def _guard(self, guard):
        self._guardrail = guard

    @property
    def chat_model_class(self) -> type[BaseChatModel]:
        return GuardedChatModel

    @property
    def chat_model_params(self) -> dict:
        return {
            "guard": self._guardrail,
            "bound": ChatOpenAI(model="gpt-4o-mini", api_key="unused", max_retries=0),
        }

    @pytest.fixture
    def model(self, request) -> BaseChatModel:
        return self.chat_model_class(**self.chat_model_params)


async def test_messages_and_streams_are_judged(guard):
    guarded = GuardedChatModel(guard, model())
    assert CANARY not in str(guarded.invoke(QUESTION))
    streamed = [chunk async for chunk in GuardedChatModel(guard, model()).astream(QUESTION)]
    assert CANARY not in str(streamed)
    assert "".join(chunk.text for chunk in streamed).startswith("Mary Shelley was a writer")


async def test_events_of_the_model_itself_show_no_unjudged_text(guard):
    events = GuardedChatModel(guard, model()).astream_events(QUESTION, version="v2")
    assert CANARY not in str([event async for event in events])


@pytest.mark.parametrize("way", ["invoke", "ainvoke", "stream", "astream"])
async def test_a_run_brings_its_own_evidence_and_policy(guard, way):
    """In the config's metadata, as for a guarded Runnable."""
    field = {"evidence": ["The Kestrel has 42 rooms."], "policy": "annotate"}
    config = {"metadata": {"guardrail": field}}
    guarded = GuardedChatModel(guard, model("The Kestrel has 42 rooms. She was a writer."))
    found = getattr(guarded, way)("How many rooms has the Kestrel?", config)
    if way == "ainvoke":
        message = await found
    elif way == "invoke":
        message = found
    else:
        first, *rest = list(found) if way == "stream" else [piece async for piece in found]
        message = sum(rest, first)
    verdict = message.response_metadata["guardrail"]
    assert verdict["action"] == "annotate"
    assert verdict["evidence"] == {"from": ["caller"], "count": 1}
