"""An answer may cite the evidence of an earlier answer, but not its unsupported claims."""

from functools import partial

import httpx
import openai
import pytest

from chains import EvidenceSettings, guard_openai
from chains.evidence.earlier import EarlierAnswers, grounds_of
from chains.gateway import GatewaySettings, create_app
from guardrail import ANNOTATE, STRICT, Passage
from guardrail.core.types import Verdict
from tests.chains.conftest import CANARY, FACTS, QUESTION, TRUE_END, TRUE_START

ITEMS = [{"triple": [fact.subject, fact.property, fact.value]} for fact in FACTS]
SECOND = "Say it again."


@pytest.fixture
def client_of(empty, upstream):
    def client_of(policy=STRICT, **evidence):
        client = openai.OpenAI(base_url=upstream, api_key="none")
        settings = EvidenceSettings(**evidence)
        return guard_openai(client, empty, policy=policy, evidence=settings)

    return client_of


def reply_text(client, messages, *, stream, **more):
    """What comes of one turn, as a user reads it."""
    reply = client.chat.completions.create(
        model="plain", messages=messages, stream=stream, extra_body=more
    )
    if not stream:
        return reply.choices[0].message.content
    return "".join(chunk.choices[0].delta.content or "" for chunk in reply if chunk.choices)


def after(said, asked=QUESTION, next_=SECOND):
    turns = [("user", asked), ("assistant", said), ("user", next_)]
    return [{"role": role, "content": content} for role, content in turns]


def first_answer(client, evidence=ITEMS, *, stream=False):
    asked = [{"role": "user", "content": QUESTION}]
    return reply_text(client, asked, stream=stream, guardrail={"evidence": evidence})


@pytest.mark.parametrize("stream", [False, True])
def test_what_was_supported_may_be_said_again(client_of, stream):
    client = client_of()
    first = first_answer(client, stream=stream)
    second = reply_text(client, after(first), stream=stream)
    assert TRUE_START.rstrip(".") in second
    late = after(second, SECOND, "And once more.")
    for said in (first, second, reply_text(client, late, stream=stream)):
        assert "[NA]" not in said
        assert CANARY not in said


def test_what_was_marked_is_no_evidence_when_it_is_repeated(client_of):
    client = client_of(ANNOTATE)
    first = first_answer(client, ITEMS[:1])
    assert "Wollstonecraft [NA]" in first
    assert reply_text(client, after(first), stream=False) == first


def test_what_a_marked_sentence_cites_is_no_evidence_for_the_next_turn(empty):
    answer = empty.check(QUESTION, TRUE_START, evidence=FACTS, policy=ANNOTATE)
    (sentence,) = answer.sentences
    assert sentence.citations
    for verdict in Verdict:
        judged = sentence.model_copy(update={"verdict": verdict})
        grounds = grounds_of(answer.model_copy(update={"sentences": [judged]}))
        assert bool(grounds) == (verdict is Verdict.SUPPORTED)


def test_it_can_be_switched_off_and_an_answer_that_nobody_judged_here_is_no_evidence(client_of):
    off, on = client_of(ANNOTATE, earlier=0), client_of(ANNOTATE)
    for client, said in ((off, first_answer(off)), (on, f"{TRUE_START} {TRUE_END}")):
        assert "] Mary Shelley," not in reply_text(client, after(said), stream=False)


@pytest.mark.parametrize("stream", [False, True])
def test_a_response_is_known_by_its_id(client_of, stream):
    create = partial(client_of().responses.create, model="plain")
    asked = {"input": QUESTION, "extra_body": {"guardrail": {"evidence": ITEMS}}}
    reply = create(**asked, stream=stream)
    first = [*reply][-1].response if stream else reply
    for id, known in ((first.id, True), ("another", False)):
        again = create(input=SECOND, previous_response_id=id).output_text
        assert ("] Mary Shelley," in again) == known
        assert "[NA]" not in again


async def test_another_callers_answers_are_not_known(empty, upstream):
    settings = GatewaySettings(upstream=upstream, tenants="blue=b, red=r")
    transport = httpx.ASGITransport(create_app(empty, settings))
    async with httpx.AsyncClient(transport=transport, base_url="http://gateway") as client:

        async def say(key, messages, **more):
            body, headers = {"messages": messages, **more}, {"authorization": f"Bearer {key}"}
            body["model"] = "plain"
            reply = await client.post("/v1/chat/completions", json=body, headers=headers)
            return reply.json()["choices"][0]["message"]

        asked = [{"role": "user", "content": QUESTION}]
        first = (await say("b", asked, guardrail={"evidence": ITEMS}))["content"]
        own, other = await say("b", after(first)), await say("r", after(first))
    assert own["guardrail"]["evidence"]["from"] == ["earlier answers", "graph"]
    assert "] Mary Shelley, mother: Mary Wollstonecraft" in own["content"]
    assert "] Mary Shelley," not in other["content"]


@pytest.mark.parametrize("own", [[], [{"triple": ["Mary Shelley", "occupation", "writer"]}]])
def test_what_a_request_brings_itself_is_all_that_counts(client_of, own):
    client = client_of(ANNOTATE)
    first = first_answer(client)
    assert "] Mary Shelley, mother: Mary Wollstonecraft" in first
    again = reply_text(client, after(first), stream=False, guardrail={"evidence": own})
    assert "] Mary Shelley, mother: Mary Wollstonecraft" not in again


def test_the_memory_keeps_what_all_answers_of_a_key_rest_on_and_forgets_the_oldest():
    memory = EarlierAnswers(most=2)
    memory.keep([b"same"], [Passage("right"), Passage("both")])
    memory.keep([b"same"], [Passage("both"), Passage("laundered")])
    assert memory.of([b"same"]) == (Passage("both"),)
    memory.keep([b"same"], [Passage("laundered")])
    assert memory.of([b"same"]) == ()
    for name in ("one", "two"):
        memory.keep([name.encode()], [Passage(name)])
    assert memory.of([b"one"]) == (Passage("one"),)
    memory.keep([b"three"], [Passage("three")])
    assert memory.of([b"one", b"two", b"three"]) == (Passage("one"), Passage("three"))
