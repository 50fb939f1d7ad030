"""A guarded Runnable or chat model is a drop-in: same types, same configuration, judged text."""

import asyncio
import threading

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableGenerator, RunnableLambda
from langchain_openai import ChatOpenAI
from langchain_tests.unit_tests import ChatModelUnitTests

from chains import GuardedChatModel, GuardrailRunnable
from guardrail import BEST_OF_N, STRICT, InputError, KnowledgeGraphError
from tests.chains.conftest import ANSWER, CANARY, FACTS, QUESTION, TRUE_START, scripted_guard
from tests.chains.fake_openai import FakeOpenAI, served
from tests.chains.models import USAGE, WAYS, model, run, verdict
from tests.clock import PATIENCE_S

CLEAN = "Mary Shelley was a writer. Her mother was Mary Wollstonecraft."
PROMPT = ChatPromptTemplate.from_template("{question}")
KINDS = [GuardrailRunnable, GuardedChatModel]


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


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("way", WAYS)
async def test_a_message_keeps_its_usage_and_gets_verdict_and_citations(guard, kind, way):
    message = await run(kind(guard, model()), way=way)
    assert isinstance(message, AIMessage)
    assert CANARY not in str(message)
    assert message.text.startswith("Mary Shelley was a writer [")
    assert message.usage_metadata == USAGE or way.endswith("stream")
    assert verdict(message)["action"] == "filter"
    cited = verdict(message)["citations"][0]
    assert message.text[cited["start_index"] : cited["end_index"]] == "writer"
    assert cited["extras"]["triple"]["property"] == "occupation"


@pytest.mark.parametrize("way", ["invoke", "stream"])
@pytest.mark.parametrize("stream_mode", ["sentence", "buffer"])
async def test_a_text_stays_a_text(guard, way, stream_mode):
    options = {"style": "none", "stream_mode": stream_mode}
    around = GuardrailRunnable(guard, PROMPT | model() | StrOutputParser(), **options)
    within = PROMPT | GuardrailRunnable(guard, model(), **options) | StrOutputParser()
    for chain in (around, within):
        assert await run(chain, {"question": QUESTION}, way) == CLEAN


@pytest.mark.parametrize("way", ["invoke", "stream"])
async def test_reasoning_and_token_probabilities_carry_no_unjudged_text(guard, way):
    thought = {"type": "reasoning", "reasoning": f"Perhaps {CANARY}."}
    logprobs = {"content": [{"token": CANARY, "logprob": -0.1}]}
    said = AIMessage(
        content=[thought, {"type": "text", "text": ANSWER}],
        response_metadata={"logprobs": logprobs, "finish_reason": "stop"},
    )
    found = await run(GuardrailRunnable(guard, RunnableLambda(lambda _: said)), way=way)
    assert CANARY not in str(found)
    assert found.response_metadata["finish_reason"] == "stop"


def test_citations_of_an_openai_message_are_not_translated_twice(guard):
    blocks = [{"type": "text", "text": TRUE_START}]
    raw = AIMessage(content=blocks, response_metadata={"model_provider": "openai"})
    (block,) = GuardrailRunnable(guard, model(raw)).invoke(QUESTION).content_blocks
    (citation,) = block["annotations"]
    assert citation["type"] == "citation"
    assert citation["title"] == "Mary Shelley, occupation: writer"


CALL = {"name": "look", "args": {"at": CANARY}, "id": "1", "type": "tool_call"}
SIGNED = {"type": "thinking", "thinking": "hm", "signature": "s"}


@pytest.mark.parametrize("way", ["invoke", "batch", "stream"])
@pytest.mark.parametrize(
    ("content", "text"),
    [
        (ANSWER, CLEAN),
        ([SIGNED, {"type": "text", "text": ANSWER}], CLEAN),
        (f"She was born on 4 May 1999 in {CANARY}.", ""),
    ],
)
async def test_text_next_to_a_tool_call_is_judged(guard, way, content, text):
    said = AIMessage(content=content, tool_calls=[CALL])
    guarded = GuardrailRunnable(guard, RunnableLambda(lambda _: said), style="none")
    found = await run(guarded, way=way)
    assert found.text == text
    assert found.tool_calls == said.tool_calls
    assert verdict(found)["action"] == ("filter" if text else "refuse")
    if way != "stream" and isinstance(content, list):
        assert found.content[0] == SIGNED  # the provider needs it with the tool's result


@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
async def test_a_server_that_refuses_several_choices_is_asked_for_each(guard, way):
    server = FakeOpenAI()
    policy = BEST_OF_N.changed(candidates=3, attempts=1)
    with served(server.app) as url:
        bound = ChatOpenAI(model="one-slot", base_url=f"{url}/v1", api_key="k", max_retries=0)
        await run(GuardrailRunnable(guard, bound, policy=policy), QUESTION, way)
    assert [request.get("n") for request in server.requests] == [3, None, None, None]


async def test_every_row_of_a_batch_has_its_own_error():
    """In the Runnable, in reading its evidence, or in judging if the policy says ``raise``."""

    def answer(value):
        if value.get("fails"):
            raise ValueError
        return {"answer": TRUE_START, **value}

    def retrieved(question):
        if "Nobody" in question:
            raise RuntimeError("no such index")
        return FACTS

    rows = [
        {"question": QUESTION, "context": FACTS},
        {"question": QUESTION},
        {"question": "Who was Nobody?", "context": FACTS},
        {"question": QUESTION, "context": FACTS, "fails": True},
    ]
    errors = [None, InputError, KnowledgeGraphError, ValueError]
    with scripted_guard(retriever=retrieved) as guard:
        guarded = GuardrailRunnable(
            guard, RunnableLambda(answer), evidence="context", evidence_mode="both",
            policy=STRICT.changed(unavailable="raise"), style="none",
        )  # fmt: skip
        once = guarded.batch(rows, return_exceptions=True)
        for found in (once, await guarded.abatch(rows, return_exceptions=True)):
            for item, error in zip(found, errors, strict=True):
                assert isinstance(item, error or dict)
            assert found[0]["answer"] == TRUE_START


async def test_the_evidence_of_a_batch_is_read_at_once():
    waiting = []

    async def slow(question):
        waiting.append(question)
        while len(waiting) < 3:
            await asyncio.sleep(0.01)
        return FACTS

    with scripted_guard(retriever=slow) as guard:
        chain = GuardrailRunnable(
            guard, RunnableLambda(lambda _: TRUE_START), evidence=lambda _: FACTS,
            evidence_mode="both", style="none",
        )  # fmt: skip
        questions = [f"Who was Mary Shelley in {year}?" for year in (1816, 1817, 1818)]
        assert await asyncio.wait_for(chain.abatch(questions), PATIENCE_S) == [TRUE_START] * 3


@pytest.mark.parametrize("kind", KINDS)
async def test_events_show_no_unjudged_text(guard, kind):
    async def seen(runnable):
        return str([event async for event in runnable.astream_events(QUESTION, version="v2")])

    assert CANARY in await seen(model())
    assert CANARY not in await seen(kind(guard, model()))


def test_other_callbacks_tags_and_metadata_reach_the_model(guard):
    class Recorder(BaseCallbackHandler):
        def on_chat_model_start(self, serialized, messages, *, tags, metadata, **_):
            self.tags, self.metadata = tags, metadata

        def on_llm_end(self, response, **_):
            self.text = response.generations[0][0].text

    recorder = Recorder()
    config = {"callbacks": [recorder], "tags": ["mine"], "metadata": {"user": "u1"}}
    GuardrailRunnable(guard, model()).invoke(QUESTION, config)
    assert "mine" in recorder.tags
    assert recorder.metadata["user"] == "u1"
    assert CANARY in recorder.text  # a tracer sees the model's own answer


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("way", WAYS)
async def test_a_run_brings_its_own_evidence_and_policy(guard, kind, way):
    field = {"evidence": ["The Kestrel has 42 rooms."], "policy": "annotate"}
    guarded = kind(guard, model("The Kestrel has 42 rooms. She was a writer."))
    config = {"metadata": {"guardrail": field}}
    message = await run(guarded, "How many rooms has the Kestrel?", way, config)
    assert verdict(message)["action"] == "annotate"
    assert verdict(message)["evidence"] == {"from": ["caller"], "count": 1}


# --- the answer in an output -------------------------------------------------------------

TURNS = [
    HumanMessage(QUESTION),
    AIMessage("", tool_calls=[{"name": "look", "args": {}, "id": "1"}]),
    ToolMessage("She was a writer.", tool_call_id="1"),
    AIMessage(ANSWER, id="last"),
]


def returning(guard, output, key=None):
    return GuardrailRunnable(guard, RunnableLambda(lambda _: output), answer_key=key, style="none")


@pytest.mark.parametrize("way", ["invoke", "batch", "stream"])
@pytest.mark.parametrize(
    ("output", "key"),
    [
        ({"answer": ANSWER}, "answer"),
        ({"out": {"answer": ANSWER}}, "out.answer"),
        ({"out.answer": ANSWER}, "out.answer"),
        ({"out": {"answer": AIMessage(ANSWER)}}, "out.answer"),
        ({"messages": TURNS}, "messages"),
        ({"messages": TURNS}, None),
        ({"model": {"messages": TURNS[-1:]}}, None),
        ({"messages": [{"role": "assistant", "content": ANSWER}]}, None),
        ({"messages": [*TURNS[:3], {"role": "assistant", "content": ANSWER}]}, "messages"),
        (TURNS, None),
        (TURNS, "answer"),
        (AIMessage(ANSWER), "answer"),
        (ANSWER, "answer"),
    ],
)
async def test_the_answer_is_judged_where_it_stands(guard, output, key, way):
    found = await run(returning(guard, output, key), {"question": QUESTION}, way)
    assert CANARY not in str(found)
    assert "Mary Shelley was a writer." in str(found)


@pytest.mark.parametrize("way", ["invoke", "batch", "stream"])
@pytest.mark.parametrize(
    ("output", "key"),
    [
        ({"answer": ANSWER}, "answr"),
        ({"out": {"answer": ANSWER}}, "out.text"),
        ({"out": {"answer": ANSWER}}, "out"),
        ({"answer": [ANSWER]}, "answer"),
        ({"answer": None}, "answer"),
        ({"answer": {"text": ANSWER}}, "answer"),
        ({"messages": [HumanMessage(QUESTION)]}, "messages"),
        ([1, 2], "answer"),
    ],
)
async def test_a_key_without_an_answer_is_an_error(guard, output, key, way):
    with pytest.raises(InputError):
        await run(returning(guard, output, key), {"question": QUESTION}, way)


def test_the_other_messages_of_an_agent_stay(guard):
    found = returning(guard, {"messages": TURNS, "steps": 2}).invoke({"question": QUESTION})
    assert found["messages"][:-1] == TURNS[:-1]
    assert found["messages"][-1].id == "last"
    assert verdict(found["messages"][-1])["action"] == "filter"
    assert found["steps"] == 2


def test_the_key_of_a_streamed_mapping(guard):
    def pieces(_):
        yield {"context": "notes"}
        yield {"answer": ANSWER[:20]}
        yield {"answer": ANSWER[20:]}

    chain = GuardrailRunnable(guard, RunnableGenerator(pieces), answer_key="answer")
    assert CANARY not in str(list(chain.stream({"question": QUESTION})))


def test_a_model_that_hangs_does_not_keep_the_process_alive(guard):
    """The first call is made in the caller's thread, further ones in threads of their own."""
    daemons = []

    def answer(_):
        daemons.append(threading.current_thread().daemon)
        return AIMessage(CLEAN)

    policy = STRICT.model_copy(update={"candidates": 3})
    GuardrailRunnable(guard, RunnableLambda(answer), policy=policy).invoke(QUESTION)
    assert daemons == [False, True, True]
