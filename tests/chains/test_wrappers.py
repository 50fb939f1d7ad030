"""One table over all wrappers, policies and ways to answer, against a server with candidates.

The server's first five answers are wrong or without support; once it is details what was wrong it
answers well. Each test counts the calls of the model, the candidates that were judged and the rows
of the score log, and reads what was released and which feedback the model got.
"""

import asyncio
import itertools
import json
from dataclasses import dataclass, field

import httpx
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
    ConfigError,
    GuardrailConfig,
    Triple,
)
from guardrail.log.records import open_log
from tests.chains.conftest import scripted_guard
from tests.chains.fake_openai import FakeOpenAI, served
from tests.chains.models import run

FACTS = [Triple("Kestrel Hotel", "rooms", "42"), Triple("Kestrel Hotel", "town", "Bergen")]
QUESTION = "How many rooms does the Kestrel Hotel have?"
TRUE = "The Kestrel Hotel stands in the town Bergen."
WRONG = "The Kestrel Hotel has 97 rooms."
RIGHT = "The Kestrel Hotel has 42 rooms."
FIRST = [
    WRONG,
    f"{TRUE} {WRONG}",
    "The Kestrel Hotel has gardens.",
    f"{WRONG} {TRUE}",
    "The Kestrel Hotel is quiet.",
]
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

    @property
    def client(self):
        client = OpenAI(base_url=f"{self.url}/v1", api_key="k", max_retries=0)
        return guard_openai(client, self.guard, **self.keywords)


def ask(bench, stream):
    return [bench.guard.ask(question=QUESTION, policy=bench.policy).text]


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


def openai_chat(bench, stream, **options):
    reply = bench.client.chat.completions.create(
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


def openai_responses(bench, stream):
    reply = bench.client.responses.create(model="candidates", input=QUESTION, stream=stream)
    if not stream:
        return [reply.output_text]
    return [event.response.output_text for event in reply if event.type == "response.completed"]


def gateway_chat(bench, stream):
    settings = GatewaySettings(upstream=f"{bench.url}/v1", style="none", **bench.options)
    body = {"model": "candidates", "messages": MESSAGES, "stream": stream}
    with served(create_app(bench.guard, settings)) as url:
        reply = httpx.post(f"{url}/v1/chat/completions", json=body, timeout=60)
    reply.raise_for_status()
    if not stream:
        return [choice["message"]["content"] for choice in reply.json()["choices"]]
    events = [line.removeprefix("data: ") for line in reply.text.splitlines() if line.strip()]
    choices = [choice for data in events[:-1] for choice in json.loads(data)["choices"]]
    return ["".join(choice["delta"].get("content") or "" for choice in choices)]


def mcp_answer(bench, stream):
    mcp = pytest.importorskip("mcp")
    from chains.mcp_server import mcp_server

    async def call():
        async with mcp.Client(mcp_server(bench.guard)) as client:
            asked = {"question": QUESTION, "policy": bench.policy.name}
            return (await client.call_tool("answer_question", asked)).structured_content

    return [asyncio.run(call())["clean"]]


WHOLE_ONLY = (ask, mcp_answer)
"""Ways in that do not stream."""
BY_N = (ask, chat_model, openai_chat, openai_choices, gateway_chat, mcp_answer)
"""Ways in that sample several candidates in one call."""
WRAPPERS = (
    ask, runnable, chat_model, middleware, openai_chat, openai_choices, openai_responses,
    gateway_chat, mcp_answer,
)  # fmt: skip
CASES = [
    pytest.param(wrapper, name, stream, id=f"{wrapper.__name__}-{name}-{way}")
    for wrapper in WRAPPERS
    for name in POLICIES
    for stream, way in ((False, "whole"), (True, "stream"))
    if not (stream and wrapper in WHOLE_ONLY)
]


@pytest.fixture
def bench(tmp_path, request, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    server = CandidateServer()
    policy = POLICIES[request.param]
    config = GuardrailConfig(policy=policy, log=tmp_path / "scores.sqlite")
    with served(server.app) as url:
        config = config.changed(model={"name": "openai:candidates", "base_url": f"{url}/v1"})
        with scripted_guard(config=config, retriever=lambda question: FACTS) as guard:
            yield Bench(guard, url, policy, server)


def rows(tmp_path):
    """Rows of the score log: those that were delivered, and those that lost."""
    with open_log(tmp_path / "scores.sqlite", read_only=True) as log:
        found = [record.tags.get("candidate") == "lost" for record in log.records()]
    return found.count(False), found.count(True)


@pytest.mark.parametrize(("wrapper", "bench", "stream"), CASES, indirect=["bench"])
def test_every_wrapper_honours_every_policy(wrapper, bench, stream, tmp_path):
    released = wrapper(bench, stream)
    calls = bench.server.requests
    choices = 5 if wrapper is openai_choices else 1
    assert len(released) == choices
    assert ("97" in str(released)) == (bench.policy.name == "annotate")
    if bench.policy.name == "best-of-n":
        assert len(calls) == (2 if wrapper in BY_N else 10)
        assert rows(tmp_path) == (choices, 10 - choices)
        assert released[0] == BETTER
        fed_back = [call for call in calls if FEEDBACK in json.dumps(call)]
        assert len(fed_back) == len(calls) // 2
        assert all("rooms: 42" in json.dumps(call) for call in fed_back)
    else:
        assert len(calls) == 1
        assert rows(tmp_path) == (choices, 0)
        assert bench.policy.name != "strict-correct" or RIGHT in released


INJECTING = [wrapper for wrapper in WRAPPERS if wrapper not in (ask, mcp_answer)]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("bench", ["strict"], indirect=True)
@pytest.mark.parametrize("wrapper", INJECTING, ids=lambda wrapper: wrapper.__name__)
def test_the_facts_are_shown_to_the_model_where_asked_for(wrapper, bench, stream):
    for inject in ("off", "facts", "prompt"):
        bench.options["inject"] = inject
        wrapper(bench, stream)
        sent = json.dumps(bench.server.requests[-1])
        assert ("{Kestrel Hotel, rooms: 42, town: Bergen}" in sent) == (inject != "off")
        assert ("in a street accident [NA]" in sent) == (inject == "prompt")


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
