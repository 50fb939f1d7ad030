"""JSON and arguments of calls are judged where the policy asks for it, and stay as they are."""

import json

import pytest

from chains.openai_exchange import Endpoint, Exchange, Reply
from chains.openai_request import GuardSettings
from chains.openai_wire import UnreadableReplyError
from guardrail import ANNOTATE, BEST_OF_N, STRICT, GuardrailConfig
from tests.chains.conftest import CANARY, QUESTION, scripted_guard

TRUE = {"person": {"occupation": "Mary Shelley was a writer"}, "mother": ["Mary Wollstonecraft"]}
FALSE = {"occupation": "Mary Shelley was a writer", "born_in": f"4 May 1999 in {CANARY}"}
HIDDEN = {"occupation": "writer", "note": f"[Q47152, born: 1999 in {CANARY}]"}
JUDGED = STRICT.changed(structured=True)
CHAT = {"model": "m", "messages": [{"role": "user", "content": QUESTION}]}
JSON_CHAT = CHAT | {"response_format": {"type": "json_object"}}
RESPONSE = {"model": "m", "input": QUESTION}
JSON_RESPONSE = RESPONSE | {"text": {"format": {"type": "json_object"}}}
TOOLS = {
    "tools": [
        {"type": "function", "name": name, "function": {"name": name}}
        for name in ("save", "save_person")
    ]
}


@pytest.fixture(scope="module")
def guard():
    with scripted_guard(config=GuardrailConfig(policy=STRICT)) as guard:
        yield guard


async def judged(guard, policy, endpoint, asked, reply):
    exchange = Exchange(GuardSettings(guard=guard, policy=policy), endpoint, asked)
    assert not exchange.streams_through
    guarded = await exchange.judge(Reply(200, (), json.dumps(reply).encode()))
    return json.loads(guarded.reply.body), guarded.answers


def chat(message):
    message = {"role": "assistant"} | message
    return {"id": "1", "choices": [{"index": 0, "finish_reason": "stop", "message": message}]}


def called(document):
    function = {"name": "save_person", "arguments": json.dumps(document)}
    return {"id": "c1", "type": "function", "function": function}


@pytest.mark.parametrize(
    ("document", "withheld"), [(TRUE, False), (FALSE, True), (HIDDEN, True), ({}, False)]
)
async def test_json_of_a_chat(guard, document, withheld):
    text = json.dumps(document)
    asked = JSON_CHAT | {"stream": True}
    body, answers = await judged(guard, JUDGED, Endpoint.CHAT, asked, chat({"content": text}))
    message = body["choices"][0]["message"]
    assert message["content"] == (None if withheld else text)
    assert (CANARY in json.dumps(body)) is False
    if withheld:
        assert message["refusal"] == JUDGED.refusal
    assert len(answers) == bool(document)


async def test_verdicts_stand_beside_the_json_by_their_place(guard):
    policy = ANNOTATE.changed(structured=True)
    asked = JSON_CHAT | {"stream": True}
    reply = chat({"content": json.dumps(FALSE)})
    body, _ = await judged(guard, policy, Endpoint.CHAT, asked, reply)
    message = body["choices"][0]["message"]
    assert json.loads(message["content"]) == FALSE
    (verdict,) = message["guardrail"]["structured"]
    said = {leaf["path"]: leaf["categories"] for leaf in verdict["leaves"]}
    assert said == {"/occupation": ["supportive"], "/born_in": ["contradictory"]}
    assert not verdict["withheld"]


@pytest.mark.parametrize(("document", "kept"), [(TRUE, True), (FALSE, False), ("{broken", True)])
async def test_arguments_of_a_tools_call(guard, document, kept):
    calls = [called(document)]
    policy = JUDGED.changed(needs_support=False)
    reply = chat({"content": None, "tool_calls": calls})
    body, _ = await judged(guard, policy, Endpoint.CHAT, CHAT | TOOLS | {"stream": True}, reply)
    choice = body["choices"][0]
    assert choice["message"].get("tool_calls", []) == (calls if kept else [])
    assert CANARY not in json.dumps(body)
    (verdict,) = choice["message"]["guardrail"]["structured"]
    assert verdict["of"] == "c1"


@pytest.mark.parametrize("order", [(TRUE, FALSE), (FALSE, TRUE)])
async def test_calls_of_one_id_are_all_judged(guard, order):
    policy = JUDGED.changed(needs_support=False)
    reply = chat({"content": None, "tool_calls": [called(document) for document in order]})
    body, answers = await judged(guard, policy, Endpoint.CHAT, CHAT | TOOLS, reply)
    assert CANARY not in json.dumps(body)
    assert len(answers) == 2
    head = {"type": "function_call", "id": "f", "call_id": "c1", "name": "save"}
    items = [head | {"arguments": json.dumps(document)} for document in order]
    reply = {"id": "1", "output": items}
    body, answers = await judged(guard, policy, Endpoint.RESPONSES, RESPONSE | TOOLS, reply)
    assert CANARY not in json.dumps(body)
    assert len(answers) == 2


@pytest.mark.parametrize("named", ["function_call", "content"])
async def test_a_calls_id_names_no_other_part_of_the_message(guard, named):
    policy = JUDGED.changed(needs_support=False)
    message = {"content": None, "tool_calls": [called(FALSE) | {"id": named}]}
    body, _ = await judged(guard, policy, Endpoint.CHAT, CHAT | TOOLS, chat(message))
    assert CANARY not in json.dumps(body)


async def test_a_call_in_two_forms_is_judged_in_both(guard):
    both = called(TRUE) | {"custom": {"name": "save", "input": json.dumps(FALSE)}}
    policy = JUDGED.changed(needs_support=False)
    reply = chat({"content": None, "tool_calls": [both]})
    body, _ = await judged(guard, policy, Endpoint.CHAT, CHAT | TOOLS, reply)
    assert CANARY not in json.dumps(body)


async def test_all_values_of_a_key_that_is_repeated_are_judged(guard):
    text = json.dumps(FALSE)[:-1] + ', "born_in": "London"}'
    body, _ = await judged(guard, JUDGED, Endpoint.CHAT, JSON_CHAT, chat({"content": text}))
    assert CANARY not in json.dumps(body)


@pytest.mark.parametrize(("document", "kept"), [(TRUE, True), (FALSE, False)])
async def test_responses(guard, document, kept):
    text = json.dumps(document)
    part = {"type": "output_text", "text": text, "annotations": []}
    items = [
        {"type": "function_call", "id": "f", "call_id": "c1", "name": "save", "arguments": text},
        {"type": "shell_call", "id": "s", "action": {"commands": [text]}},
        {"type": "message", "id": "m", "role": "assistant", "content": [part]},
    ]
    asked = JSON_RESPONSE | TOOLS | {"stream": True}
    body, answers = await judged(
        guard, JUDGED, Endpoint.RESPONSES, asked, {"id": "1", "output": items}
    )
    assert len(answers) == 3
    assert (CANARY in json.dumps(body)) is False
    *calls, message = body["output"]
    assert len(calls) == (2 if kept else 0)
    assert message["content"][0]["type"] == ("output_text" if kept else "refusal")
    assert len(body["guardrail"]["structured"]) == 3


async def test_without_it_json_is_data(guard):
    exchange = Exchange(GuardSettings(guard=guard, policy=STRICT), Endpoint.CHAT, JSON_CHAT)
    reply = chat({"content": json.dumps(FALSE)})
    guarded = await exchange.judge(Reply(200, (), json.dumps(reply).encode()))
    assert CANARY in guarded.reply.body.decode()
    assert guarded.answers == ()


async def test_counts_of_usage_that_are_no_numbers_count_nothing(guard):
    exchange = Exchange(GuardSettings(guard=guard, policy=BEST_OF_N), Endpoint.CHAT, CHAT)
    usage = {"prompt_tokens": {"a": 1}, "completion_tokens": 2}
    reply = chat({"content": "Mary Shelley was a writer."}) | {"usage": usage}

    async def send(body):
        return Reply(200, (), json.dumps(reply).encode())

    guarded = await exchange.whole(send)
    told = json.loads(guarded.reply.body)["usage"]
    assert told["completion_tokens"] >= 2
    assert told["prompt_tokens"] == 0


@pytest.mark.parametrize(
    ("document", "withheld"),
    [
        ({"occupation": "writer", "She was a writer": True}, False),
        ({f"She was born in {CANARY} on 4 May 1999": True}, True),
        ({f"She was born in {CANARY} on 4 May 1999": None}, True),
        ({f"She was born in {CANARY} on 4 May 1999": {"checked": []}}, True),
        ({f"She was born in {CANARY} on 4 May 1999": {"occupation": "writer"}}, True),
        ({f"She was born in {CANARY} on 4 May 1999. {'so ' * 99}": {"occupation": "writer"}}, True),
        ({"Mary Shelley": {"occupation": "writer", "middle_name": None}}, False),
    ],
)
async def test_keys_that_say_something_are_judged(guard, document, withheld):
    policy = JUDGED.changed(needs_support=False)
    reply = chat({"content": json.dumps(document)})
    body, _ = await judged(guard, policy, Endpoint.CHAT, JSON_CHAT, reply)
    assert (body["choices"][0]["message"]["content"] is None) is withheld
    assert CANARY not in json.dumps(body)


async def test_truth_values_are_judged_by_their_keys(guard):
    policy = ANNOTATE.changed(structured=True)
    reply = chat({"content": json.dumps({"writer": True, "painter": False, "age": None})})
    body, _ = await judged(guard, policy, Endpoint.CHAT, JSON_CHAT, reply)
    (verdict,) = body["choices"][0]["message"]["guardrail"]["structured"]
    assert [leaf["path"] for leaf in verdict["leaves"]] == ["/writer", "/painter"]
    assert all(leaf["categories"] for leaf in verdict["leaves"])


async def test_the_documents_of_one_reply_share_a_bound():
    config = GuardrailConfig(policy=STRICT, limits={"sentences": 8})
    with scripted_guard(config=config) as few:
        for count, enough in ((8, True), (9, False)):
            calls = [called({"occupation": "writer"}) for _ in range(count)]
            reply = chat({"content": None, "tool_calls": calls})
            asked = judged(few, JUDGED, Endpoint.CHAT, CHAT | TOOLS, reply)
            if enough:
                assert len((await asked)[1]) == count
            else:
                with pytest.raises(UnreadableReplyError):
                    await asked


@pytest.mark.parametrize("stream", [False, True])
async def test_the_parts_of_one_reply_share_a_bound(stream):
    config = GuardrailConfig(policy=STRICT, limits={"sentences": 8})
    part = {"type": "output_text", "text": "She was a writer. She wrote. "}
    with scripted_guard(config=config) as few:
        for count, enough in ((4, True), (9, False)):
            exchange = Exchange(
                GuardSettings(guard=few, policy=STRICT),
                Endpoint.RESPONSES,
                RESPONSE | {"stream": stream},
            )
            items = [{"type": "message", "content": [part]} for _ in range(count)]
            body = {"id": "1", "status": "completed", "output": items}
            if stream:
                end = {"type": "response.completed", "response": body}
                reply = exchange.stream().feed(f"data: {json.dumps(end)}\n\n".encode())
            else:
                reply = exchange.judge(Reply(200, (), json.dumps(body).encode()))
            if enough:
                assert await reply
            else:
                with pytest.raises(UnreadableReplyError):
                    await reply
