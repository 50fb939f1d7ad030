"""What leaves without a verdict is named to the caller, whole and streamed, by every way in."""

import json

import pytest

from chains.openai_chat import ChatStream
from chains.openai_exchange import Endpoint, Exchange, Reply
from chains.openai_request import GuardedRequest, GuardSettings
from chains.openai_response_stream import ResponseStream
from chains.openai_sse import Event
from guardrail import STRICT, GuardrailConfig
from guardrail.core.errors import InputError
from tests.chains.conftest import QUESTION, scripted_guard

TRUE = "Mary Shelley was a writer."
DATA = json.dumps({"price_eur": 1})
FUNCTION = {"name": "get_price", "arguments": DATA}
CALL = {"id": "c1", "type": "function", "function": FUNCTION}
CHAT = {"model": "m", "messages": [{"role": "user", "content": QUESTION}]}
RESPONSE = {"model": "m", "input": QUESTION}
TOOLS = {"tools": [{"type": "function", "name": "get_price", "function": {"name": "get_price"}}]}
JSON_CHAT = {"response_format": {"type": "json_object"}}
JSON_RESPONSE = {"text": {"format": {"type": "json_object"}}}
CALLED = {"type": "function_call", "id": "f", "call_id": "c1", **FUNCTION}
PICTURE = {"type": "image_generation_call", "id": "p", "result": "iVBORw0KGgo="}


@pytest.fixture(scope="module")
def guard():
    with scripted_guard(config=GuardrailConfig(policy=STRICT)) as guard:
        yield guard


async def whole(guard, endpoint, asked, reply, policy=STRICT):
    exchange = Exchange(GuardSettings(guard=guard, policy=policy), endpoint, asked)
    judged = await exchange.judge(Reply(200, (), json.dumps(reply).encode()))
    return json.loads(judged.reply.body), judged.events


def message(text):
    part = {"type": "output_text", "text": text, "annotations": []}
    return {"type": "message", "id": "m", "role": "assistant", "content": [part]}


CHATS = {
    "a call": (TOOLS, {"content": None, "tool_calls": [CALL]}, ["tool call get_price"]),
    "a call in the old form": (TOOLS, {"function_call": FUNCTION}, ["tool call get_price"]),
    "a call beside text": (TOOLS, {"content": TRUE, "tool_calls": [CALL]}, ["tool call get_price"]),
    "JSON": (JSON_CHAT, {"content": DATA}, ["content"]),
    "text": (JSON_CHAT | TOOLS, {"content": TRUE}, None),
}


@pytest.mark.parametrize(("asked", "said", "named"), CHATS.values(), ids=CHATS)
async def test_of_chat_completions(guard, asked, said, named):
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant"} | said}
    body, _ = await whole(guard, Endpoint.CHAT, CHAT | asked, {"id": "1", "choices": [choice]})
    told = body["choices"][0]["message"].get("guardrail", {})
    assert told.get("unjudged") == named
    assert ("action" in told) == (said.get("content") == TRUE)

    stream = ChatStream(GuardedRequest(GuardSettings(guard=guard, policy=STRICT), CHAT | asked))
    calls = [{"index": n, **call} for n, call in enumerate(said.get("tool_calls", ()))]
    first = said | ({"tool_calls": calls} if calls else {})
    more = {"tool_calls": [{"index": 0, "function": {"arguments": " "}}]} if calls else {}
    events = [
        event
        for delta, ended in ((first, None), (more, None), ({}, "stop"))
        for event in await stream.feed(
            Event.of({"choices": [{"index": 0, "delta": delta, "finish_reason": ended}]})
        )
    ]
    last = json.loads(events[-1].data)["choices"][0]["delta"].get("guardrail", {})
    assert last.get("unjudged") == named


RESPONSES = {
    "a call": (TOOLS, [CALLED], ["tool call get_price"]),
    "a search": (TOOLS, [{"type": "web_search_call", "id": "w"}], ["tool call web_search_call"]),
    "a picture": (TOOLS, [PICTURE], ["tool call image_generation_call"]),
    "JSON": (JSON_RESPONSE, [message(TRUE), message(DATA)], ["output 1, content 0"]),
    "text": (JSON_RESPONSE | TOOLS, [message(TRUE)], None),
}


@pytest.mark.parametrize("parts", [True, False])
@pytest.mark.parametrize(("asked", "output", "named"), RESPONSES.values(), ids=RESPONSES)
async def test_of_responses(guard, asked, output, named, parts):
    reply = {"id": "1", "status": "completed", "output": output}
    body, _ = await whole(guard, Endpoint.RESPONSES, RESPONSE | asked, reply)
    assert body.get("guardrail", {}).get("unjudged") == named

    asked = GuardedRequest(
        GuardSettings(guard=guard, policy=STRICT), RESPONSE | asked, responses=True
    )
    stream = ResponseStream(asked)
    events = []
    for index, item in enumerate(output if parts else ()):
        place = {"output_index": index, "content_index": 0, "item_id": "m"}
        if item["type"] == "message":
            delta = {"type": "response.output_text.delta", "delta": item["content"][0]["text"]}
            events += await stream.feed(Event.of(delta | place))
        done = {"type": "response.output_item.done", "output_index": index, "item": item}
        events += await stream.feed(Event.of(done))
    (*_, last) = await stream.feed(Event.of({"type": "response.completed", "response": reply}))
    told = json.loads(last.data)["response"]
    assert told.get("guardrail", {}).get("unjudged") == named


async def test_a_call_that_a_stream_tells_by_its_pieces_alone_is_named(guard):
    asked = GuardedRequest(
        GuardSettings(guard=guard, policy=STRICT), RESPONSE | TOOLS, responses=True
    )
    stream = ResponseStream(asked)
    piece = {"type": "response.function_call_arguments.delta", "output_index": 0, "delta": DATA}
    await stream.feed(Event.of(piece))
    end = {"type": "response.completed", "response": {"id": "1", "output": []}}
    (last,) = await stream.feed(Event.of(end))
    (name,) = json.loads(last.data)["response"]["guardrail"]["unjudged"]
    assert name.startswith("tool call ")


async def test_a_call_without_a_name_is_named_by_its_id_and_leaves_no_stream(guard):
    asked = CHAT | {"prompt": {"id": "p"}}  # what its tools are called, its server alone knows
    nameless = {"index": 0, "id": "c1", "type": "function", "function": {"arguments": DATA}}
    message = {"role": "assistant", "tool_calls": [nameless]}
    reply = {"id": "1", "choices": [{"index": 0, "message": message}]}
    body, _ = await whole(guard, Endpoint.CHAT, asked, reply)
    assert body["choices"][0]["message"]["guardrail"] == {"unjudged": ["tool call c1"]}
    stream = ChatStream(GuardedRequest(GuardSettings(guard=guard, policy=STRICT), asked))
    chunk = {"choices": [{"index": 0, "delta": message, "finish_reason": "tool_calls"}]}
    (*_, last) = await stream.feed(Event.of(chunk))
    assert "tool_calls" not in last.data


async def test_a_whole_reply_as_a_stream_names_it_at_its_end(guard):
    policy = STRICT.changed(candidates=2)
    choice = {"index": 0, "message": {"role": "assistant", "tool_calls": [CALL]}}
    asked = CHAT | TOOLS | {"stream": True}
    _, events = await whole(guard, Endpoint.CHAT, asked, {"id": "1", "choices": [choice]}, policy)
    told = [json.loads(event.data) for event in events[:-1]]
    (named,) = [
        delta["guardrail"]
        for chunk in told
        if "guardrail" in (delta := chunk["choices"][0]["delta"])
    ]
    assert named == {"unjudged": ["tool call get_price"]}


@pytest.mark.parametrize("document", [{"safe": None}, {}])
async def test_where_documents_are_judged_one_without_a_text_is_named(guard, document):
    policy = STRICT.changed(structured=True)
    message = {"role": "assistant", "content": json.dumps(document)}
    reply = {"id": "1", "choices": [{"index": 0, "message": message}]}
    body, _ = await whole(guard, Endpoint.CHAT, CHAT | JSON_CHAT, reply, policy)
    assert body["choices"][0]["message"]["guardrail"] == {"unjudged": ["content"]}
    call = CALL | {"function": FUNCTION | {"arguments": json.dumps({"who": TRUE})}}
    message = {"role": "assistant", "tool_calls": [call]}
    reply = {"id": "1", "choices": [{"index": 0, "message": message}]}
    body, _ = await whole(guard, Endpoint.CHAT, CHAT | TOOLS, reply, policy)
    assert body["choices"][0]["message"]["guardrail"].keys() == {"structured"}


async def test_a_policy_named_in_a_request_does_not_end_the_judging_of_documents(guard):
    policy = STRICT.changed(structured=True)
    for name in ("annotate", "strict"):
        asked = GuardedRequest(
            GuardSettings(guard=guard, policy=policy), CHAT | {"guardrail": {"policy": name}}
        )
        assert asked.guarding.policy.structured
        assert asked.guarding.policy.name == name


# --- how many -----------------------------------------------------------------------------


@pytest.mark.parametrize("n", [128, 2, "128", None])
async def test_responses_know_no_number_of_choices(guard, n):
    sent = []

    async def send(body):
        sent.append(body)
        return Reply(200, (), json.dumps({"id": "1", "output": [message(TRUE)]}).encode())

    asked = RESPONSE | {"n": n}
    exchange = Exchange(GuardSettings(guard=guard, policy=STRICT), Endpoint.RESPONSES, asked)
    await exchange.whole(send)
    assert len(sent) == 1
    assert Exchange(
        GuardSettings(guard=guard, policy=STRICT), Endpoint.RESPONSES, asked | {"stream": True}
    ).streams_through


@pytest.mark.parametrize("n", [65, 10**30, 0, -1, True, "128", 128.0, [2]])
def test_more_choices_than_are_ranked_are_refused(guard, n):
    with pytest.raises(InputError, match="from 1 to 64"):
        Exchange(GuardSettings(guard=guard, policy=STRICT), Endpoint.CHAT, CHAT | {"n": n})


@pytest.mark.parametrize(("n", "calls"), [(64, 1), (1, 1), (None, 1)])
async def test_as_many_as_are_ranked_are_asked_for_at_once(guard, n, calls):
    sent = []

    async def send(body):
        sent.append(body)
        choice = {"index": 0, "message": {"role": "assistant", "content": TRUE}}
        return Reply(200, (), json.dumps({"id": "1", "choices": [choice]}).encode())

    exchange = Exchange(GuardSettings(guard=guard, policy=STRICT), Endpoint.CHAT, CHAT | {"n": n})
    await exchange.whole(send)
    assert len(sent) == calls
