"""Evidence inside a wrapped chain: what its retrievers found, and what its steps hand on."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest
from langchain_core.documents import Document
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda, RunnablePassthrough

from chains import GuardedChatModel, GuardrailMiddleware, GuardrailRunnable, guard_openai
from chains.evidence import base
from guardrail import ANNOTATE, ConfigError, Guardrail, InputError
from tests.chains.conftest import scripted_guard
from tests.chains.scripted import ScriptedJudge

PROMPT = ChatPromptTemplate.from_template("By this: {context}\nanswer: {question}")
ROOMS = {"Kestrel": 42, "Falcon": 17}


class Retriever(BaseRetriever):
    """Finds the hotel that a question names."""

    def _get_relevant_documents(self, query, *, run_manager):
        return [
            Document(f"The {name} has {rooms} rooms.", metadata={"title": name})
            for name, rooms in ROOMS.items()
            if name in query
        ]


def says(rooms):
    """A model that tells the Kestrel's number of rooms, whatever is asked."""
    return RunnableLambda(lambda _: AIMessage(f"The Kestrel has {rooms} rooms."))


def lcel(model, context=None):
    return {"context": context or Retriever(), "question": RunnablePassthrough()} | PROMPT | model


@pytest.fixture(scope="module")
def nothing():
    """A guardrail that knows nothing by itself."""
    with scripted_guard(retriever=lambda question: []) as guard:
        yield guard


QUESTION = "How many rooms has the Kestrel?"


def told(message):
    return message.response_metadata["guardrail"]


@pytest.mark.parametrize("options", [{}, {"evidence": "context"}])
@pytest.mark.parametrize(("rooms", "action"), [(42, "pass"), (40, "refuse")])
def test_the_commonest_chain_is_judged_by_what_it_retrieved(nothing, options, rooms, action):
    message = GuardrailRunnable(nothing, lcel(says(rooms)), **options).invoke(QUESTION)
    assert told(message)["action"] == action
    assert told(message)["evidence"]["count"] == 1
    assert "Kestrel" in str(told(message)["citations"]) or action == "refuse"


def test_a_context_that_was_made_a_text_counts_too(nothing):
    joined = Retriever() | (lambda found: "\n\n".join(item.page_content for item in found))
    guarded = GuardrailRunnable(nothing, lcel(says(42), joined), evidence="context")
    assert told(guarded.invoke(QUESTION))["action"] == "pass"
    named = GuardrailRunnable(nothing, lcel(says(42), joined)).invoke(QUESTION)
    assert told(named)["evidence"] == {"from": ["retrievers"], "count": 1}


@pytest.mark.parametrize("options", [{}, {"evidence": "context"}])
async def test_every_way_of_running_sees_the_steps(nothing, options):
    def guarded():
        words = AIMessage("The Kestrel has 42 rooms. The Kestrel has 17 rooms.")
        model = GenericFakeChatModel(messages=iter([words] * 9))
        return GuardrailRunnable(nothing, lcel(model), **options)

    async def streamed():
        return [item async for item in guarded().astream(QUESTION)]

    results = [
        guarded().invoke(QUESTION),
        await guarded().ainvoke(QUESTION),
        *guarded().batch([QUESTION]),
        *await guarded().abatch([QUESTION]),
    ]
    for pieces in (list(guarded().stream(QUESTION)), await streamed()):
        assert len([item for item in pieces if item.content]) >= 1
        whole = pieces[0]
        for piece in pieces[1:]:
            whole += piece
        results.append(whole)
    for message in results:
        assert "42 rooms" in message.text
        assert "17 rooms" not in message.text
        assert told(message)["action"] == "filter"


def test_a_stream_of_such_a_chain_leaves_sentence_by_sentence(nothing):
    words = "The Kestrel has 42 rooms. The Kestrel is a hotel with 42 rooms. More of it."
    model = GenericFakeChatModel(messages=iter([AIMessage(words)]))
    guarded = GuardrailRunnable(nothing, lcel(model) | StrOutputParser(), evidence="context")
    assert len(list(guarded.stream(QUESTION))) > 1


@pytest.mark.parametrize("options", [{}, {"evidence": "context"}])
def test_runs_side_by_side_do_not_mix(nothing, options):
    def answer(prompt):
        name = prompt.to_string().rpartition(" the ")[2].strip("?")
        return AIMessage(f"The {name} has 42 rooms.")

    guarded = GuardrailRunnable(nothing, lcel(RunnableLambda(answer)), **options)
    questions = [f"How many rooms has the {name}?" for name in ("Kestrel", "Falcon") * 8]
    wanted = ["pass", "refuse"] * 8
    assert [told(item)["action"] for item in guarded.batch(questions)] == wanted
    with ThreadPoolExecutor(8) as threads:
        found = threads.map(guarded.invoke, questions)
        assert [told(item)["action"] for item in found] == wanted

    async def together():
        return await asyncio.gather(*map(guarded.ainvoke, questions))

    assert [told(item)["action"] for item in asyncio.run(together())] == wanted


def test_what_the_caller_hands_over_goes_before_the_retrievers(nothing):
    config = {"metadata": {"guardrail": {"evidence": ["The Kestrel has 40 rooms."]}}}
    message = GuardrailRunnable(nothing, lcel(says(40))).invoke(QUESTION, config)
    assert told(message)["action"] == "pass"
    assert told(message)["evidence"]["from"] == ["caller"]


def test_a_place_that_no_step_has_is_told_with_a_chain_that_works(nothing):
    with pytest.raises(InputError, match=r"RunnablePassthrough\.assign.*answer_key='answer'"):
        GuardrailRunnable(nothing, lcel(says(42)), evidence="documents").invoke(QUESTION)


def test_a_policy_may_be_named(nothing):
    guarded = GuardrailRunnable(nothing, says(42), policy="annotate")
    assert guarded.policy == ANNOTATE
    assert GuardedChatModel(nothing, GenericFakeChatModel(messages=iter([])), policy="annotate")
    assert GuardrailMiddleware(nothing, policy="annotate")
    from openai import OpenAI

    assert guard_openai(OpenAI(api_key="k"), nothing, policy="annotate")
    for make in (
        lambda: GuardrailRunnable(nothing, says(42), policy="anotate"),
        lambda: GuardrailMiddleware(nothing, policy="anotate"),
        lambda: guard_openai(OpenAI(api_key="k"), nothing, policy="anotate"),
    ):
        with pytest.raises(ConfigError, match="did you mean 'annotate'"):
            make()


def test_an_answer_judged_by_the_example_graph_says_so(nothing):
    problem = base.BY_THE_SHIPPED_GRAPH.model_dump()
    with Guardrail(grounding=ScriptedJudge()) as guard:
        assert problem in told(GuardrailRunnable(guard, says(42)).invoke(QUESTION))["errors"]
    assert problem not in told(GuardrailRunnable(nothing, says(42)).invoke(QUESTION))["errors"]
