"""One table over all wrappers, policies and ways to answer, against a server with candidates.

The server's first five answers are wrong or without support; once it is details what was wrong it
answers well. Each test counts the calls of the model, the candidates that were ranked and the rows
of the score log, reads which feedback the model got, and judges every released choice again: its
policy leaves it as it is.
"""

import asyncio
import itertools
import json
import re
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest
from langchain.agents import create_agent
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_openai import ChatOpenAI
from openai import OpenAI

from chains import GuardedChatModel, GuardrailMiddleware, GuardrailRunnable, guard_openai
from chains.gateway import GatewaySettings, create_app
from guardrail import (
    ANNOTATE,
    BEST_OF_N,
    STRICT,
    STRICT_CORRECT,
    Action,
    ConfigError,
    GuardrailConfig,
    Triple,
)
from guardrail.core.types import Category
from guardrail.log.records import open_log
from guardrail.markers.grammar import parse
from tests.chains.conftest import scripted_guard
from tests.chains.fake_openai import FakeOpenAI, served
from tests.chains.models import run

FACTS = [Triple("Kestrel Hotel", "rooms", "42"), Triple("Kestrel Hotel", "town", "Bergen")]
QUESTION = "How many rooms does the Kestrel Hotel have?"
TRUE = "The Kestrel Hotel stands in the town Bergen."
WRONG = "The Kestrel Hotel has 97 rooms."
RIGHT = "The Kestrel Hotel has 42 rooms."
OTHERS = ("The Kestrel Hotel has gardens.", "The Kestrel Hotel is quiet.")
FIRST = [WRONG, f"{TRUE} {WRONG}", OTHERS[0], f"{WRONG} {TRUE}", OTHERS[1]]
BETTER = f"{TRUE} {RIGHT}"
FEEDBACK = "97 rooms"
MESSAGES = [{"role": "user", "content": QUESTION}]
POLICIES = {
    "annotate": ANNOTATE,
    "strict": STRICT,
    "strict-correct": STRICT_CORRECT,
    "best-of-n": BEST_OF_N.changed(thresholds={"overall": 0.9}),
}


class CandidateServer(FakeOpenAI):
    """Answers with the next of ``FIRST``, and with ``BETTER`` after feedback."""

    def __init__(self):
        super().__init__()
        self.texts = itertools.cycle(FIRST)

    def _texts(self, body):
        return [self._text(body) for _ in range(body.get("n") or 1)]

    def _text(self, body):
        return self._next(body["messages"])

    def _response_text(self, body):
        return self._next(body["input"])

    def _next(self, conversation):
        return BETTER if FEEDBACK in json.dumps(conversation) else next(self.texts)


@dataclass
class Bench:
    """A guardrail with a score log, the server, and the policy of one case."""

    guard: object
    url: str
    policy: object
    server: CandidateServer
    options: dict = field(default_factory=dict)

    @property
    def model(self):
        return ChatOpenAI(model="candidates", base_url=f"{self.url}/v1", api_key="k", max_retries=0)

    @property
    def keywords(self):
        return {"policy": self.policy, "style": "none", **self.options}

    @contextmanager
    def client(self, way):
        """A client that is guarded itself or calls a gateway."""
        if way == "client":
            client = OpenAI(base_url=f"{self.url}/v1", api_key="k", max_retries=0)
            yield guard_openai(client, self.guard, **self.keywords)
            return
        settings = GatewaySettings(upstream=f"{self.url}/v1", **{"style": "none", **self.options})
        with served(create_app(self.guard, settings)) as url:
            yield OpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0)


def ask(bench, stream):
    answer = bench.guard.ask(question=QUESTION, policy=bench.policy)
    return [answer.text if bench.keywords["style"] == "none" else answer.marked]


def langchain(guarded, value, stream):
    output = asyncio.run(run(guarded, value, "stream" if stream else "invoke"))
    return [output if isinstance(output, str) else output.text]


def runnable(bench, stream):
    chain = ChatPromptTemplate.from_template("{question}") | bench.model | StrOutputParser()
    guarded = GuardrailRunnable(bench.guard, chain, **bench.keywords)
    return langchain(guarded, {"question": QUESTION}, stream)


def chat_model(bench, stream):
    return langchain(GuardedChatModel(bench.guard, bench.model, **bench.keywords), QUESTION, stream)


def middleware(bench, stream):
    guarded = GuardrailMiddleware(bench.guard, **bench.keywords)
    agent = create_agent(bench.model, [], middleware=[guarded])
    asked = {"messages": MESSAGES}
    state = [*agent.stream(asked, stream_mode="values")][-1] if stream else agent.invoke(asked)
    return [state["messages"][-1].text]


def openai_chat(bench, stream, way="client", **options):
    with bench.client(way) as client:
        reply = client.chat.completions.create(
            model="candidates", messages=MESSAGES, stream=stream, **options
        )
        if not stream:
            return [choice.message.content for choice in reply.choices]
        texts = {}
        for choice in (choice for chunk in reply for choice in chunk.choices):
            texts[choice.index] = texts.get(choice.index, "") + (choice.delta.content or "")
        return list(texts.values())


def openai_choices(bench, stream):
    return openai_chat(bench, stream, n=5)


def gateway_chat(bench, stream):
    return openai_chat(bench, stream, "gateway")


def gateway_choices(bench, stream):
    return openai_chat(bench, stream, "gateway", n=5)


def openai_responses(bench, stream, way="client"):
    with bench.client(way) as client:
        reply = client.responses.create(model="candidates", input=QUESTION, stream=stream)
        return [([*reply][-1].response if stream else reply).output_text]


def gateway_responses(bench, stream):
    return openai_responses(bench, stream, "gateway")


def mcp_answer(bench, stream):
    mcp = pytest.importorskip("mcp")
    from chains.mcp_server import mcp_server

    async def call():
        async with mcp.Client(mcp_server(bench.guard)) as client:
            asked = {"question": QUESTION, "policy": bench.policy.name}
            return (await client.call_tool("answer_question", asked)).structured_content

    return [asyncio.run(call())["clean"]]


WHOLE_ONLY = (ask, mcp_answer)
"""Ways in that do not stream, and whose prompt is KaLMA's, whatever ``inject`` says."""
SEVERAL = (openai_choices, gateway_choices)
"""Ways in that release five choices."""
BY_N = (ask, chat_model, openai_chat, gateway_chat, mcp_answer, *SEVERAL)
"""Ways in that sample several candidates in one call."""
WRAPPERS = (*BY_N, runnable, middleware, openai_responses, gateway_responses)
WAYS = [
    pytest.param(wrapper, stream, id=f"{wrapper.__name__}-{'stream' if stream else 'whole'}")
    for wrapper in WRAPPERS
    for stream in (False, True)
    if not (stream and wrapper in WHOLE_ONLY)
]


@pytest.fixture
def bench(tmp_path, request, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    server = CandidateServer()
    policy = POLICIES[request.param]
    config = GuardrailConfig(policy=policy, log=tmp_path / "scores.sqlite")
    with served(server.app) as url:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{url}/v1")
        config = config.changed(model="openai:candidates")
        with scripted_guard(config=config, retriever=lambda question: FACTS) as guard:
            yield Bench(guard, url, policy, server)


def logged(tmp_path):
    """Rows of the score log: those that were delivered and those that lost, and their ranks."""
    with open_log(tmp_path / "scores.sqlite", read_only=True) as log:
        records = list(log.records())
    lost = [record.tags.get("candidate") == "lost" for record in records]
    reasons = (reason for record in records for reason in record.answer.reasons[:1])
    ranks = [re.match(r"rank (\d+) of (\d+)", reason) for reason in reasons]
    return (
        (lost.count(False), lost.count(True)),
        sorted((int(rank[1]), int(rank[2])) for rank in ranks if rank),
    )


def violations(bench, text):
    """Sentences of a released text that its policy would not have let through as they are."""
    settled = bench.policy.settled()
    if text == settled.refusal:
        return []
    again = bench.guard.check(QUESTION, text, policy=settled)
    found = list(again.removed)
    if settled.contradicted is not Action.ANNOTATE:
        found += [item for item in again.sentences if item.category is Category.CONTRADICTORY]
    return [*found, *([] if again.text == text else [again.text])]


@pytest.mark.parametrize("bench", POLICIES, indirect=True)
@pytest.mark.parametrize(("wrapper", "stream"), WAYS)
def test_every_wrapper_honours_every_policy(wrapper, bench, stream, tmp_path):
    released = wrapper(bench, stream)
    calls = list(bench.server.requests)
    delivered, ranks = logged(tmp_path)
    choices = 5 if wrapper in SEVERAL else 1
    fed_back = [call for call in calls if FEEDBACK in json.dumps(call)]
    assert len(released) == choices
    assert all(released)
    assert [violations(bench, text) for text in released] == [[]] * choices
    assert ("97" in str(released)) == (bench.policy.name == "annotate")
    if bench.policy.name == "best-of-n":
        assert len(calls) == (2 if wrapper in BY_N else 10)
        assert delivered == (choices, 10 - choices)
        assert ranks == [(place, 10) for place in range(1, 11)]
        assert released[0] == BETTER
        assert len(fed_back) == len(calls) // 2
        assert all("rooms: 42" in json.dumps(call) for call in fed_back)
    else:
        assert len(calls) == 1
        assert delivered == (choices, 0)
        assert [place for place, _ in ranks] == (list(range(1, 6)) if choices > 1 else [])
        assert fed_back == []
        assert bench.policy.name != "strict-correct" or RIGHT in released


@pytest.mark.parametrize("bench", ["strict"], indirect=True)
@pytest.mark.parametrize(("wrapper", "stream"), WAYS)
def test_the_facts_are_shown_to_the_model_where_asked_for(wrapper, bench, stream):
    for inject in ("prompt",) if wrapper in WHOLE_ONLY else ("off", "facts", "prompt"):
        bench.options["inject"] = inject
        wrapper(bench, stream)
        sent = json.dumps(bench.server.requests[-1])
        assert ("{Kestrel Hotel, rooms: 42, town: Bergen}" in sent) == (inject != "off")
        assert ("in a street accident [NA]" in sent) == (inject == "prompt")


CITED = (
    "The Kestrel Hotel has 42 rooms [Kestrel Hotel, rooms: 42]. "
    "It stands in the town Bergen [Kestrel Hotel, stars: 5] [Q1, town: Bergen]. "
    "It has gardens [Kestrel Hotel, rooms: 42]."
)
"""A reply with one right citation, two of facts that nobody gave, and one that is out of place."""


@pytest.mark.parametrize("bench", ["strict"], indirect=True)
@pytest.mark.parametrize(("wrapper", "stream"), [way for way in WAYS if "mcp" not in way.id])
def test_a_reply_cites_given_facts_alone(wrapper, bench, stream):
    bench.server.texts = itertools.repeat(CITED)
    bench.options |= {"inject": "prompt", "style": "kalma"}
    (text, *_) = wrapper(bench, stream)
    found = [marker for marker in parse(text, FACTS).markers if not marker.na]
    cited = [item for marker in found for item in marker.citations]
    assert set(cited) == {fact.citation for fact in FACTS}
    assert "gardens [NA]" in text
    assert "stars" not in text
    assert "Q1" not in text


@pytest.mark.parametrize("bench", ["strict"], indirect=True)
@pytest.mark.parametrize(("wrapper", "stream"), [way for way in WAYS if "stream" in way.id])
def test_no_stream_leaves_before_a_threshold_that_refuses(wrapper, bench, stream):
    bench.server.texts = itertools.repeat(TRUE)
    bench.policy = STRICT.changed(thresholds={"overall": 1.01}, below="refuse")
    bench.options["policy"] = bench.policy
    if "gateway" in wrapper.__name__:
        pytest.skip("the gateway has the policy of its guardrail")
    assert set(wrapper(bench, stream)) == {bench.policy.refusal}


def test_a_policy_that_cannot_be_honoured_is_an_error_when_it_is_built(fake):
    with scripted_guard(config=GuardrailConfig(policy=BEST_OF_N)) as guard:
        with pytest.raises(ConfigError):
            create_app(guard, GatewaySettings())
        structured = BEST_OF_N.changed(structured=True)
        model = ChatOpenAI(model="m", api_key="k")
        with pytest.raises(ConfigError):
            GuardedChatModel(guard, model, policy=structured).with_structured_output({"title": "x"})
        with pytest.raises(ConfigError):
            guard_openai(OpenAI(api_key="k"), guard, policy=BEST_OF_N.changed(rank_by="sck"))
