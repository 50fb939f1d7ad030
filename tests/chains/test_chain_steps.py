"""Evidence inside a wrapped chain: documents of its retrievers, and values of its steps."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest
from langchain_core.documents import Document
from langchain_core.messages import AIMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from openai import OpenAI

from chains import GuardedChatModel, GuardrailMiddleware, GuardrailRunnable, guard_openai
from chains.evidence import base
from guardrail import ANNOTATE, ConfigError, Guardrail, InputError
from tests.chains.models import WAYS, model, run, verdict
from tests.chains.scripted import ScriptedJudge

PROMPT = ChatPromptTemplate.from_template("By this: {context}\nanswer: {question}")
ROOMS = {"Kestrel": 42, "Falcon": 17}
QUESTION = "How many rooms has the Kestrel?"
OPTIONS = [{}, {"evidence": "context"}]


class Retriever(BaseRetriever):
    """Finds the hotel that a question names."""

    def _get_relevant_documents(self, query, *, run_manager):
        return [
            Document(f"The {name} has {rooms} rooms.", metadata={"title": name})
            for name, rooms in ROOMS.items()
            if name in query
        ]


def says(rooms):
    return RunnableLambda(lambda _: AIMessage(f"The Kestrel has {rooms} rooms."))


def lcel(model, context=None):
    return {"context": context or Retriever(), "question": RunnablePassthrough()} | PROMPT | model


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize(("rooms", "action"), [(42, "pass"), (40, "refuse")])
def test_a_chain_is_judged_by_what_it_retrieved(empty, options, rooms, action):
    details = verdict(GuardrailRunnable(empty, lcel(says(rooms)), **options).invoke(QUESTION))
    assert details["action"] == action
    assert details["evidence"]["count"] == 1
    assert ("Kestrel" in str(details["citations"])) == (action == "pass")


def test_a_context_joined_to_one_text_counts_too(empty):
    joined = Retriever() | (lambda found: "\n\n".join(item.page_content for item in found))
    named = GuardrailRunnable(empty, lcel(says(42), joined), evidence="context")
    assert verdict(named.invoke(QUESTION))["action"] == "pass"
    found = GuardrailRunnable(empty, lcel(says(42), joined)).invoke(QUESTION)
    assert verdict(found)["evidence"] == {"from": ["retrievers"], "count": 1}


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("way", WAYS)
async def test_every_way_of_running_sees_the_steps(empty, options, way):
    chain = lcel(model("The Kestrel has 42 rooms. The Kestrel has 17 rooms."))
    message = await run(GuardrailRunnable(empty, chain, **options), QUESTION, way)
    assert "42 rooms" in message.text
    assert "17 rooms" not in message.text
    assert verdict(message)["action"] == "filter"


def test_a_stream_of_such_a_chain_leaves_sentence_by_sentence(empty):
    words = "The Kestrel has 42 rooms. The Kestrel is a hotel with 42 rooms. More of it."
    chain = lcel(model(words)) | StrOutputParser()
    assert len([*GuardrailRunnable(empty, chain, evidence="context").stream(QUESTION)]) > 1


@pytest.mark.parametrize("options", OPTIONS)
def test_concurrent_runs_do_not_mix(empty, options):
    def answer(prompt):
        name = prompt.to_string().rpartition(" the ")[2].strip("?")
        return AIMessage(f"The {name} has 42 rooms.")

    guarded = GuardrailRunnable(empty, lcel(RunnableLambda(answer)), **options)
    questions = [f"How many rooms has the {name}?" for name in ("Kestrel", "Falcon") * 8]

    async def together():
        return await asyncio.gather(*map(guarded.ainvoke, questions))

    with ThreadPoolExecutor(8) as threads:
        threaded = [*threads.map(guarded.invoke, questions)]
    for found in (guarded.batch(questions), threaded, asyncio.run(together())):
        assert [verdict(item)["action"] for item in found] == ["pass", "refuse"] * 8


def test_evidence_of_the_caller_goes_before_the_retrievers(empty):
    config = {"metadata": {"guardrail": {"evidence": ["The Kestrel has 40 rooms."]}}}
    details = verdict(GuardrailRunnable(empty, lcel(says(40))).invoke(QUESTION, config))
    assert details["action"] == "pass"
    assert details["evidence"]["from"] == ["caller"]
    with pytest.raises(InputError):  # a place that no step has
        GuardrailRunnable(empty, lcel(says(42)), evidence="documents").invoke(QUESTION)


@pytest.mark.parametrize(
    "make",
    [
        lambda guard, name: GuardrailRunnable(guard, says(42), policy=name).policy,
        lambda guard, name: GuardedChatModel(guard, model(), policy=name).policy,
        lambda guard, name: GuardrailMiddleware(guard, policy=name)._policy,
        lambda guard, name: guard_openai(OpenAI(api_key="k"), guard, policy=name) and ANNOTATE,
    ],
)
def test_a_policy_may_be_named(empty, make):
    assert make(empty, "annotate") == ANNOTATE
    with pytest.raises(ConfigError):
        make(empty, "anotate")


def test_an_answer_judged_by_the_example_graph_says_so(empty):
    problem = base.BY_THE_SHIPPED_GRAPH.model_dump()
    with Guardrail(grounding=ScriptedJudge()) as guard:
        assert problem in verdict(GuardrailRunnable(guard, says(42)).invoke(QUESTION))["errors"]
    assert problem not in verdict(GuardrailRunnable(empty, says(42)).invoke(QUESTION))["errors"]
