"""What leaves without a verdict is named, and how many choices a request may ask for."""

import json

import pytest

from chains.openai_wire import EventDecoder
from guardrail import STRICT
from guardrail.core.errors import InputError
from tests.chains.exchanges import (
    CHAT,
    JSON_FORMAT,
    RESPONSES,
    TRUE,
    as_reply,
    chunk,
    completed,
    completion,
    delta,
    events_of,
    exchange,
    guarded,
    message,
    response,
    tools,
)

DATA = json.dumps({"price_eur": 1})
FUNCTION = {"name": "get_price", "arguments": DATA}
CALL = {"id": "c1", "type": "function", "function": FUNCTION}
TOOLS = tools("get_price")
CALLED = {"type": "function_call", "id": "f", "call_id": "c1", **FUNCTION}
PICTURE = {"type": "image_generation_call", "id": "p", "result": "iVBORw0KGgo="}
CHATS = {
    "a call": (TOOLS, {"tool_calls": [CALL]}, ["tool call get_price"]),
    "a call in the old form": (TOOLS, {"function_call": FUNCTION}, ["tool call get_price"]),
    "a call with text": (TOOLS, {"content": TRUE, "tool_calls": [CALL]}, ["tool call get_price"]),
    "JSON": (JSON_FORMAT[CHAT], {"content": DATA}, ["content"]),
    "text": (JSON_FORMAT[CHAT] | TOOLS, {"content": TRUE}, None),
}


def verdict_in(events):
    """The field ``guardrail`` of the last chunk of a choice."""
    return events[-1]["choices"][0]["delta"].get("guardrail", {})


@pytest.mark.parametrize(("asked", "said", "named"), CHATS.values(), ids=CHATS)
async def test_of_chat_completions(guard, asked, said, named):
    body, _ = await guarded(guard, CHAT, asked, completion(said))
    verdict = body["choices"][0]["message"].get("guardrail", {})
    assert verdict.get("unjudged") == named
    assert ("action" in verdict) == (said.get("content") == TRUE)

    calls = [{"index": n, **call} for n, call in enumerate(said.get("tool_calls", ()))]
    more = {"tool_calls": [{"index": 0, "function": {"arguments": " "}}]} if calls else {}
    chunks = [chunk(**said | {"tool_calls": calls}), chunk(**more), chunk(ended="stop")]
    events, _ = await events_of(guard, CHAT, asked, *chunks)
    assert verdict_in(events).get("unjudged") == named


RESPONSE_CASES = {
    "a call": (TOOLS, [CALLED], ["tool call get_price"]),
    "a search": (TOOLS, [{"type": "web_search_call", "id": "w"}], ["tool call web_search_call"]),
    "a picture": (TOOLS, [PICTURE], ["tool call image_generation_call"]),
    "JSON": (JSON_FORMAT[RESPONSES], [message(TRUE), message(DATA)], ["output 1, content 0"]),
    "text": (JSON_FORMAT[RESPONSES] | TOOLS, [message(TRUE)], None),
}


@pytest.mark.parametrize("parts", [True, False])
@pytest.mark.parametrize(("asked", "output", "named"), RESPONSE_CASES.values(), ids=RESPONSE_CASES)
async def test_of_responses(guard, asked, output, named, parts):
    body, _ = await guarded(guard, RESPONSES, asked, response(*output))
    assert body.get("guardrail", {}).get("unjudged") == named

    events = []
    for index, item in enumerate(output if parts else ()):
        if item["type"] == "message":
            events.append(delta(item["content"][0]["text"]) | {"output_index": index})
        done = {"type": "response.output_item.done", "output_index": index, "item": item}
        events.append(done)
    left, _ = await events_of(guard, RESPONSES, asked, *events, completed(*output))
    assert left[-1]["response"].get("guardrail", {}).get("unjudged") == named


async def test_a_call_without_a_name_is_named_by_its_id_and_leaves_no_stream(guard):
    piece = {"type": "response.function_call_arguments.delta", "output_index": 0, "delta": DATA}
    left, _ = await events_of(guard, RESPONSES, TOOLS, piece, completed())
    (name,) = left[-1]["response"]["guardrail"]["unjudged"]
    assert name.startswith("tool call ")
    asked = {"prompt": {"id": "p"}}  # only the server knows the names of its tools
    nameless = {"index": 0, "id": "c1", "type": "function", "function": {"arguments": DATA}}
    body, _ = await guarded(guard, CHAT, asked, completion({"tool_calls": [nameless]}))
    assert body["choices"][0]["message"]["guardrail"] == {"unjudged": ["tool call c1"]}
    left, _ = await events_of(guard, CHAT, asked, chunk(tool_calls=[nameless], ended="tool_calls"))
    assert "tool_calls" not in left[-1]["choices"][0]["delta"]


async def test_a_whole_reply_as_a_stream_names_it_at_its_end(guard):
    settings = {"policy": STRICT.changed(candidates=2)}
    asked = exchange(guard, CHAT, TOOLS | {"stream": True}, **settings)
    found = await asked.judge(as_reply(completion({"tool_calls": [CALL]})))
    events = [event.json() for event in EventDecoder().feed(found.reply.body)[:-1]]
    assert verdict_in(events) == {"unjudged": ["tool call get_price"]}


@pytest.mark.parametrize("document", [{"safe": None}, {}])
async def test_a_document_without_text_is_named_even_if_documents_are_judged(guard, document):
    reply = completion(json.dumps(document))
    policy = STRICT.changed(structured=True)
    body, _ = await guarded(guard, CHAT, JSON_FORMAT[CHAT], reply, policy=policy)
    assert body["choices"][0]["message"]["guardrail"] == {"unjudged": ["content"]}


@pytest.mark.parametrize("name", ["annotate", "strict"])
def test_a_policy_named_in_a_request_does_not_end_the_judging_of_documents(guard, name):
    asked = {"guardrail": {"policy": name}}
    policy = exchange(guard, CHAT, asked, policy=STRICT.changed(structured=True)).policy
    assert policy.structured
    assert policy.name == name


# --- how many -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("endpoint", "n", "reply"),
    [
        *((RESPONSES, n, response(TRUE)) for n in (128, 2, "128", None)),
        *((CHAT, n, completion(TRUE)) for n in (64, 1, None)),
    ],
)
async def test_responses_know_no_number_of_choices(guard, endpoint, n, reply):
    """And all choices of a chat are requested at once."""
    sent = []

    async def send(body):
        sent.append(body)
        return as_reply(reply)

    await exchange(guard, endpoint, {"n": n}).whole(send)
    assert len(sent) == 1
    asked = exchange(guard, endpoint, {"n": n, "stream": True})
    assert asked.streams_through == (endpoint is RESPONSES or n != 64)


@pytest.mark.parametrize("n", [65, 10**30, 0, -1, True, "128", 128.0, [2]])
def test_more_choices_than_are_ranked_are_refused(guard, n):
    with pytest.raises(InputError):
        exchange(guard, CHAT, {"n": n})
