"""One test over all ways in: what the synchronous form returns, the asynchronous one does too."""

import pytest
from langchain.agents import create_agent
from openai import AsyncOpenAI, OpenAI

from chains import GuardedChatModel, GuardrailMiddleware, GuardrailRunnable, guard_openai
from guardrail import STRICT, CheckRequest, RankRequest
from tests.chains.conftest import ANSWER, CANARY, QUESTION, TRUE_START
from tests.chains.fake_openai import FakeOpenAI, served
from tests.chains.test_middleware import ASKED, scripted
from tests.chains.test_runnable import model

MESSAGES = [{"role": "user", "content": QUESTION}]
CHECKS = [CheckRequest(question=QUESTION, answer=ANSWER)]
RANKS = [RankRequest(question=QUESTION, answers=(ANSWER, TRUE_START))]


def agent(guard):
    return create_agent(scripted(ANSWER), [], middleware=[GuardrailMiddleware(guard)])


def client(guard, url, kind):
    return guard_openai(kind(base_url=f"{url}/v1", api_key="k", max_retries=0), guard)


def chat(item):
    return item.chat.completions.create(model="plain", messages=MESSAGES)


def responses(item):
    return item.responses.create(model="plain", input=QUESTION)


ENTRIES = {
    "check": (
        lambda g, u: g.check(question=QUESTION, answer=ANSWER, policy=STRICT).text,
        lambda g, u: g.acheck(question=QUESTION, answer=ANSWER, policy=STRICT),
    ),
    "check_batch": (
        lambda g, u: g.check_batch(CHECKS, policy=STRICT)[0].text,
        lambda g, u: g.acheck_batch(CHECKS, policy=STRICT),
    ),
    "rank": (
        lambda g, u: g.rank(question=QUESTION, answers=(ANSWER, TRUE_START), policy=STRICT)[0].text,
        lambda g, u: g.arank(question=QUESTION, answers=(ANSWER, TRUE_START), policy=STRICT),
    ),
    "rank_batch": (
        lambda g, u: g.rank_batch(RANKS, policy=STRICT)[0][0].text,
        lambda g, u: g.arank_batch(RANKS, policy=STRICT),
    ),
    "runnable": (
        lambda g, u: GuardrailRunnable(g, model()).invoke(QUESTION).text,
        lambda g, u: GuardrailRunnable(g, model()).ainvoke(QUESTION),
    ),
    "chat model": (
        lambda g, u: GuardedChatModel(g, model()).invoke(QUESTION).text,
        lambda g, u: GuardedChatModel(g, model()).ainvoke(QUESTION),
    ),
    "agent": (
        lambda g, u: agent(g).invoke(ASKED)["messages"][-1].text,
        lambda g, u: agent(g).ainvoke(ASKED),
    ),
    "openai chat": (
        lambda g, u: text_of(chat(client(g, u, OpenAI))),
        lambda g, u: chat(client(g, u, AsyncOpenAI)),
    ),
    "openai responses": (
        lambda g, u: text_of(responses(client(g, u, OpenAI))),
        lambda g, u: responses(client(g, u, AsyncOpenAI)),
    ),
}


def text_of(result):
    """The answer's text in whatever type an entry point returns."""
    if isinstance(result, list):
        return text_of(result[0])
    if isinstance(result, dict):
        return result["messages"][-1].text
    if hasattr(result, "choices"):
        return result.choices[0].message.content
    return result.output_text if hasattr(result, "output_text") else result.text


@pytest.fixture(scope="module")
def url():
    with served(FakeOpenAI().app) as address:
        yield address


@pytest.mark.parametrize("name", ENTRIES)
async def test_sync_and_async_agree(guard, url, name):
    synchronous, asynchronous = ENTRIES[name]
    text = synchronous(guard, url)
    assert text_of(await asynchronous(guard, url)) == text
    assert text.startswith("Mary Shelley was a")
    assert CANARY.lower() not in text.lower()
