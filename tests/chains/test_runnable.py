"""A guarded Runnable is a drop-in: same types, same configuration, judged text only."""

import asyncio

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda

from chains import GuardrailRunnable
from guardrail import STRICT, InputError, KnowledgeGraphError
from tests.chains.conftest import ANSWER, CANARY, FACTS, QUESTION, TRUE_START, scripted_guard
from tests.clock import PATIENCE_S

USAGE = {"input_tokens": 3, "output_tokens": 5, "total_tokens": 8}


def model(*answers):
    """A chat model that gives the answers in turn, word by word when streamed."""
    messages = [
        answer if isinstance(answer, AIMessage) else AIMessage(content=answer, usage_metadata=USAGE)
        for answer in answers or [ANSWER]
    ]
    return GenericFakeChatModel(messages=iter(messages))


def test_a_message_comes_back_as_a_message(guard):
    message = GuardrailRunnable(guard, model()).invoke(QUESTION)
    assert isinstance(message, AIMessage)
    assert CANARY not in str(message)
    assert message.usage_metadata == USAGE
    assert message.response_metadata["guardrail"]["action"] == "filter"
    assert isinstance(message.content, str)
    cited = message.response_metadata["guardrail"]["citations"][0]
    assert message.text[cited["start_index"] : cited["end_index"]] == "writer"
    assert cited["extras"]["triple"]["property"] == "occupation"


def test_an_annotation_names_what_goes_in_and_comes_out():
    assert issubclass(GuardrailRunnable[str, AIMessage], GuardrailRunnable)


@pytest.mark.parametrize("way", ["invoke", "stream"])
def test_reasoning_and_token_probabilities_do_not_carry_unjudged_text_out(guard, way):
    told = {"content": [{"token": CANARY, "logprob": -0.1}]}
    said = AIMessage(
        content=[
            {"type": "reasoning", "reasoning": f"Perhaps {CANARY}."},
            {"type": "text", "text": ANSWER},
        ],
        response_metadata={"logprobs": told, "finish_reason": "stop"},
    )
    guarded = GuardrailRunnable(guard, RunnableLambda(lambda _: said))
    found = list(guarded.stream(QUESTION)) if way == "stream" else [guarded.invoke(QUESTION)]
    assert CANARY not in str(found)
    assert found[-1].response_metadata["finish_reason"] == "stop"


def test_citations_of_an_openai_message_are_not_translated_twice(guard):
    blocks = [{"type": "text", "text": TRUE_START}]
    raw = AIMessage(content=blocks, response_metadata={"model_provider": "openai"})
    (block,) = GuardrailRunnable(guard, model(raw)).invoke(QUESTION).content_blocks
    (citation,) = block["annotations"]
    assert citation["type"] == "citation"
    assert citation["title"] == "Mary Shelley, occupation: writer"


def test_a_string_comes_back_as_a_string(guard):
    chain = ChatPromptTemplate.from_template("{question}") | model() | StrOutputParser()
    text = GuardrailRunnable(guard, chain, style="none").invoke({"question": QUESTION})
    assert text == "Mary Shelley was a writer. Her mother was Mary Wollstonecraft."


def test_a_guarded_step_fits_into_a_chain(guard):
    chain = ChatPromptTemplate.from_template("{question}") | GuardrailRunnable(guard, model())
    assert CANARY not in (chain | StrOutputParser()).invoke({"question": QUESTION})


def test_tool_calls_and_data_pass_untouched(guard):
    call = AIMessage(content="", tool_calls=[{"name": "look", "args": {"at": CANARY}, "id": "1"}])
    found = GuardrailRunnable(guard, model(call)).invoke(QUESTION)
    assert found.tool_calls == call.tool_calls
    assert found.response_metadata == {"guardrail": {"unjudged": ["tool call look"]}}
    data = RunnableLambda(lambda _: {"rows": [1, 2]})
    assert GuardrailRunnable(guard, data).invoke(QUESTION) == {"rows": [1, 2]}


CALL = {"name": "look", "args": {"at": CANARY}, "id": "1", "type": "tool_call"}
SIGNED = {"type": "thinking", "thinking": "hm", "signature": "s"}


@pytest.mark.parametrize("way", ["invoke", "batch", "stream"])
@pytest.mark.parametrize("content", [ANSWER, [SIGNED, {"type": "text", "text": ANSWER}]])
def test_text_beside_a_tool_call_is_judged(guard, way, content):
    said = AIMessage(content=content, tool_calls=[CALL])
    guarded = GuardrailRunnable(guard, RunnableLambda(lambda _: said), style="none")
    if way == "stream":
        first, *rest = guarded.stream(QUESTION)
        found = sum(rest, first)
    else:
        found = guarded.invoke(QUESTION) if way == "invoke" else guarded.batch([QUESTION])[0]
    assert found.text == "Mary Shelley was a writer. Her mother was Mary Wollstonecraft."
    assert found.tool_calls == said.tool_calls
    assert found.response_metadata["guardrail"]["action"] == "filter"
    if way != "stream" and isinstance(content, list):
        assert found.content[0] == SIGNED  # the provider wants it back with the tool's result


@pytest.mark.parametrize("way", ["invoke", "stream"])
def test_refused_text_beside_a_tool_call_is_left_out(guard, way):
    said = AIMessage(content=f"She was born on 4 May 1999 in {CANARY}.", tool_calls=[CALL])
    guarded = GuardrailRunnable(guard, RunnableLambda(lambda _: said))
    if way == "invoke":
        found = guarded.invoke(QUESTION)
    else:
        first, *rest = guarded.stream(QUESTION)
        found = sum(rest, first)
    assert found.text == ""
    assert found.tool_calls == said.tool_calls


def test_a_streamed_tool_call_keeps_its_parts(guard):
    call = AIMessage(content="", tool_calls=[{"name": "look", "args": {"at": "sea"}, "id": "1"}])
    bound = RunnableLambda(lambda _: call)
    pieces = list(GuardrailRunnable(guard, bound).stream(QUESTION))
    (whole,) = pieces
    assert whole.tool_calls[0]["args"] == {"at": "sea"}


def test_a_batch_is_judged_together_and_keeps_its_order(guard):
    runnable = GuardrailRunnable(guard, RunnableLambda(lambda q: f"{q} was a writer."))
    found = runnable.batch(["Mary Shelley", "Mary"])
    assert [text.split(" was")[0] for text in found] == ["Mary Shelley", "Mary"]


def test_a_failing_row_of_a_batch_fails_alone(guard):
    def answer(question: str) -> str:
        if question == "bad":
            raise ValueError("no answer")
        return "Mary Shelley was a writer."

    runnable = GuardrailRunnable(guard, RunnableLambda(answer))
    good, bad = runnable.batch([QUESTION, "bad"], return_exceptions=True)
    assert good.startswith("Mary Shelley")
    assert isinstance(bad, ValueError)
    with pytest.raises(ValueError, match="no answer"):
        runnable.batch([QUESTION, "bad"])


def retrieved(question):
    """Stands in for a retriever that knows one question, and fails on another."""
    if "Nobody" in question:
        raise RuntimeError("no such index")
    return FACTS


@pytest.mark.parametrize("way", ["batch", "abatch"])
async def test_every_row_of_a_batch_has_its_own_error(way):
    """In reading what it is judged against, or in judging where the policy says so."""
    said = RunnableLambda(lambda value: {"answer": "Mary Shelley was a writer.", **value})
    rows = [
        {"question": QUESTION, "context": FACTS},
        {"question": QUESTION},
        {"question": "Who was Nobody?", "context": FACTS},
    ]
    raising = STRICT.changed(unavailable="raise")
    with scripted_guard(retriever=retrieved) as guard:
        handed = GuardrailRunnable(
            guard, said, evidence="context", evidence_mode="both", style="none"
        )
        asked = GuardrailRunnable(
            guard, RunnableLambda(lambda _: TRUE_START),
            policy=raising, style="none",
        )  # fmt: skip
        for runnable, inputs, failed in (
            (handed, rows, [None, InputError, KnowledgeGraphError]),
            (asked, ["Who was Nobody?", QUESTION], [KnowledgeGraphError, None]),
        ):
            if way == "batch":
                found = runnable.batch(inputs, return_exceptions=True)
            else:
                found = await runnable.abatch(inputs, return_exceptions=True)
            for item, error in zip(found, failed, strict=True):
                assert isinstance(item, error or str | dict)
                if error is None:
                    assert (item if isinstance(item, str) else item["answer"]) == TRUE_START
        with pytest.raises(KnowledgeGraphError):
            asked.invoke("Who was Nobody?")
        with pytest.raises(InputError):
            handed.batch(rows)


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


async def test_sync_and_async_agree(guard):
    def guarded():
        return GuardrailRunnable(guard, model())

    single = guarded().invoke(QUESTION).text
    assert (await guarded().ainvoke(QUESTION)).text == single
    assert guarded().batch([QUESTION])[0].text == single
    assert (await guarded().abatch([QUESTION]))[0].text == single
    assert "".join(chunk.text for chunk in guarded().stream(QUESTION)) == single
    assert "".join([chunk.text async for chunk in guarded().astream(QUESTION)]) == single


@pytest.mark.parametrize("stream_mode", ["sentence", "buffer"])
def test_streamed_chunks_add_up_to_a_message_with_usage_and_verdict(guard, stream_mode):
    chunks = list(GuardrailRunnable(guard, model(), stream_mode=stream_mode).stream(QUESTION))
    whole = sum(chunks[1:], chunks[0])
    assert CANARY not in str(chunks)
    assert whole.response_metadata["guardrail"]["citations"]
    assert len({chunk.id for chunk in chunks}) == 1


async def test_events_show_no_unjudged_text(guard):
    """What astream_events gives a consumer, with the guardrail and without."""

    async def seen(runnable):
        return str([event async for event in runnable.astream_events(QUESTION, version="v2")])

    assert CANARY in await seen(model())
    assert CANARY not in await seen(GuardrailRunnable(guard, model()))


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
    assert CANARY in recorder.text  # a tracer must see what the model really said


def test_the_question_of_a_conversation_is_resolved(exact_guard):
    """The name stands in an earlier turn only, and still its facts are found."""
    conversation = [
        HumanMessage("Who was Ada Lovelace?"),
        AIMessage("A mathematician."),
        HumanMessage("Where was she born?"),
    ]
    message = GuardrailRunnable(exact_guard, model("She was born in London.")).invoke(conversation)
    assert "place of birth: London" in message.text
