"""The official OpenAI client, guarded, synchronous and not."""

import asyncio
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any

import httpx
import openai
import pytest
from openai import AsyncOpenAI, AzureOpenAI, OpenAI
from pydantic import BaseModel

from chains import guard_openai
from guardrail import Guardrail
from guardrail.core.errors import ConfigError
from tests.chains.conftest import ANSWER, CANARY, QUESTION
from tests.chains.exchanges import chunk, written
from tests.chains.fake_openai import GOOD, JSON_ANSWER, MORE, USAGE

MESSAGES = [{"role": "user", "content": QUESTION}]
NOTED = (
    "Mary Shelley was a writer [1]. Her mother was Mary Wollstonecraft [2].\n\n"
    "[1] Mary Shelley, occupation: writer  \n[2] Mary Shelley, mother: Mary Wollstonecraft"
)


@dataclass
class Way:
    """One way to a model: a client that the tests use like any other.

    ``run`` calls a method by its dotted name and gathers what it streams.
    """

    name: str
    url: str
    guard: Guardrail | None

    def client(self) -> Any:
        kind = AsyncOpenAI if "async" in self.name else OpenAI
        client = kind(base_url=self.url, api_key="sk-test", max_retries=0, timeout=30)
        return guard_openai(client, self.guard) if self.guard else client

    def run(self, method: str, **arguments: Any) -> Any:
        if "async" in self.name:
            return asyncio.run(self._run_async(method, arguments))
        with self.client() as client:
            result = attrgetter(method)(client)(**arguments)
            if method.endswith("stream"):
                with result as stream:
                    events = list(stream)
                    return events, getattr(stream, FINAL[method])()
            return list(result) if arguments.get("stream") else result

    async def _run_async(self, method: str, arguments: dict[str, Any]) -> Any:
        async with self.client() as client:
            result = attrgetter(method)(client)(**arguments)
            if method.endswith("stream"):
                async with result as stream:
                    events = [event async for event in stream]
                    return events, await getattr(stream, FINAL[method])()
            result = await result
            return [chunk async for chunk in result] if arguments.get("stream") else result


FINAL = {
    "chat.completions.stream": "get_final_completion",
    "responses.stream": "get_final_response",
}


@pytest.fixture(params=["client", "async client"])
def way(request, upstream, strict_guard):
    return Way(request.param, upstream, strict_guard)


def text_of(chunks):
    return "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)


# --- chat completions --------------------------------------------------------------------


def test_chat(way):
    completion = way.run("chat.completions.create", model="plain", messages=MESSAGES)
    assert type(completion) is openai.types.chat.ChatCompletion
    (choice,) = completion.choices
    assert choice.message.content == NOTED
    assert choice.logprobs is None
    first, second = choice.message.annotations
    cited = first.url_citation
    assert choice.message.content[cited.start_index : cited.end_index] == "writer"
    assert second.url_citation.title == "Mary Shelley, mother: Mary Wollstonecraft"
    assert choice.message.guardrail["action"] == "filter"
    assert completion.usage.model_dump(exclude_unset=True) == USAGE
    assert CANARY not in completion.model_dump_json()


def test_chat_stream(way):
    asked = {"model": "plain", "messages": MESSAGES, "stream_options": {"include_usage": True}}
    chunks = way.run("chat.completions.create", **asked, stream=True)
    assert all(type(chunk) is openai.types.chat.ChatCompletionChunk for chunk in chunks)
    assert text_of(chunks) == NOTED
    assert sum(bool(c.choices and c.choices[0].delta.content) for c in chunks) == 2
    assert chunks[-2].choices[0].finish_reason == "stop"
    assert len(chunks[-2].choices[0].delta.annotations) == 2
    assert chunks[-1].usage.total_tokens == USAGE["total_tokens"]
    assert CANARY not in "".join(chunk.model_dump_json() for chunk in chunks)
    events, final = way.run("chat.completions.stream", model="plain", messages=MESSAGES)
    message = final.choices[0].message
    assert message.content == NOTED
    assert message.guardrail["action"] == "filter"
    assert {"content.delta", "content.done"} <= {event.type for event in events}


FUNCTION = {"name": "look_up", "strict": True, "parameters": {"type": "object"}}
LOOK_UP = {"type": "function", "function": FUNCTION}


def test_tool_calls_pass(way):
    asked = {"model": "tools", "messages": MESSAGES, "tools": [LOOK_UP]}
    whole = way.run("chat.completions.create", **asked)
    _, final = way.run("chat.completions.stream", **asked)
    for completion in (whole, final):
        (choice,) = completion.choices
        (call,) = choice.message.tool_calls
        assert call.function.arguments == '{"name": "Mary Shelley"}'
        assert choice.finish_reason == "tool_calls"
        assert choice.message.model_extra["guardrail"]["unjudged"] == ["tool call look_up"]


class Person(BaseModel):
    name: str
    note: str


def test_json_passes_and_is_parsed(way):
    asked = {"model": "json", "messages": MESSAGES}
    mode = {"response_format": {"type": "json_object"}}
    completion = way.run("chat.completions.create", **asked, **mode)
    assert completion.choices[0].message.content == JSON_ANSWER
    chunks = way.run("chat.completions.create", **asked, **mode, stream=True)
    assert text_of(chunks) == JSON_ANSWER
    prose = way.run("chat.completions.create", model="broken-json", messages=MESSAGES, **mode)
    assert prose.choices[0].message.content == NOTED
    parsed = way.run("chat.completions.parse", **asked, response_format=Person)
    assert parsed.choices[0].message.parsed == Person(name="Mary Shelley", note="any text")


# --- responses ---------------------------------------------------------------------------


def test_responses(way):
    response = way.run("responses.create", model="plain", input=QUESTION)
    assert type(response) is openai.types.responses.Response
    assert response.output_text == NOTED
    part = response.output[1].content[0]
    assert part.annotations[0].type == "url_citation"
    assert NOTED[part.annotations[0].start_index : part.annotations[0].end_index] == "writer"
    assert part.guardrail["action"] == "filter"
    assert CANARY not in response.model_dump_json()


def test_responses_stream(way):
    events = way.run("responses.create", model="plain", input=QUESTION, stream=True)
    deltas = [event.delta for event in events if event.type == "response.output_text.delta"]
    assert "".join(deltas) == NOTED
    assert len(deltas) == 2
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert events[-1].type == "response.completed"
    assert events[-1].response.output_text == NOTED
    assert CANARY not in "".join(event.model_dump_json() for event in events)
    _, final = way.run("responses.stream", model="plain", input=QUESTION)
    assert final.output_text == NOTED


# --- errors ------------------------------------------------------------------------------


def test_a_stream_that_breaks_off_does_so_here(way):
    for each in (way, replace(way, guard=None)):
        with pytest.raises(openai.APIConnectionError):
            each.run("chat.completions.create", model="cut", messages=MESSAGES, stream=True)


def test_unjudged_calls_are_refused_and_others_pass(way):
    with pytest.raises(openai.PermissionDeniedError, match="does not judge"):
        way.run("completions.create", model="plain", prompt=QUESTION)
    assert way.run("embeddings.create", model="e", input="x").data[0].embedding == [0.5, 0.25]
    listed = way.run("models.list")
    assert listed.data[0].id == "plain"


# --- the client alone --------------------------------------------------------------------


@pytest.fixture
def client_of(upstream, strict_guard):
    """Makes guarded clients."""

    def make(kind=OpenAI, **options):
        bare = kind(base_url=upstream, api_key="k", max_retries=0, **options)
        return guard_openai(bare, strict_guard, style="none")

    return make


@pytest.mark.parametrize(
    "path", ["decisions", "agents/sessions/s/events", "evals/e/runs", "evals/e/runs/r/output_items"]
)
def test_answers_in_other_forms_are_refused(client_of, path):
    with pytest.raises(openai.PermissionDeniedError, match="does not judge"):
        client_of().post(f"/{path}", cast_to=object, body={})


@pytest.mark.parametrize("stream", [False, True])
def test_raw_replies_have_nothing_that_could_hold_an_answer(strict_guard, stream):
    prose = "an answer that nobody judged"

    def answer(request):
        headers = {"x-notes": prose, "openai-model": prose, "x-request-id": "req_7"}
        message = {"role": "assistant", "content": GOOD}
        body = {"choices": [{"index": 0, "finish_reason": "stop", "message": message}]}
        status_line = {"reason_phrase": prose.encode()}
        if not stream:
            return httpx.Response(200, headers=headers, json=body, extensions=status_line)
        headers["content-type"] = "text/event-stream"
        return httpx.Response(200, headers=headers, text="data: [DONE]\n\n", extensions=status_line)

    inner = httpx.Client(transport=httpx.MockTransport(answer))
    client = guard_openai(OpenAI(api_key="k", http_client=inner), strict_guard)
    create = client.chat.completions.with_raw_response.create
    raw = create(model="plain", messages=MESSAGES, stream=stream)
    assert raw.headers["x-request-id"] == "req_7"
    assert prose not in str(raw.headers)
    assert raw.http_response.reason_phrase == "OK"


def test_every_way_to_read_a_reply_is_guarded(upstream, client_of):
    guarded = client_of(default_headers={"x-mine": "1"})
    assert type(guarded) is OpenAI
    asked = {"model": "plain", "messages": MESSAGES}
    for item in (guarded, guarded.with_options(timeout=20)):
        completion = item.chat.completions.create(**asked)
        assert completion.choices[0].message.content == f"{GOOD} {MORE}"
    raw = guarded.chat.completions.with_raw_response.create(**asked)
    assert CANARY not in raw.text
    assert raw.headers["x-request-id"] == "req_7"
    streamed = guarded.chat.completions.with_streaming_response.create(**asked, stream=True)
    with streamed as response:
        assert CANARY not in "".join(response.iter_lines())
    bare = OpenAI(base_url=upstream, api_key="k").chat.completions.create(**asked)
    assert bare.choices[0].message.content == ANSWER


def test_derived_clients_are_guarded(client_of, strict_guard):
    guarded = client_of(AzureOpenAI, api_version="2024-10-21")
    assert isinstance(guarded, AzureOpenAI)
    completion = guarded.chat.completions.create(model="plain", messages=MESSAGES)
    assert completion.choices[0].message.content == f"{GOOD} {MORE}"
    with pytest.raises(ConfigError, match="not an OpenAI"):
        guard_openai(object(), strict_guard)


def test_the_first_sentence_does_not_wait_for_the_last(strict_guard):
    def slowly():
        for text in ("Mary Shelley was a writer.", " Her mother was"):
            yield written(chunk(content=text))
        raise AssertionError("the rest was read before the first sentence left")

    def reply(request):
        return httpx.Response(200, headers={"content-type": "text/event-stream"}, content=slowly())

    http = httpx.Client(transport=httpx.MockTransport(reply))
    client = guard_openai(OpenAI(api_key="k", http_client=http), strict_guard)
    stream = client.chat.completions.create(model="plain", messages=MESSAGES, stream=True)
    texts = (one.choices[0].delta.content for one in stream)
    assert next(filter(None, texts)).startswith("Mary Shelley was a writer")
