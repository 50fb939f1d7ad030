"""With ``structured``, JSON and calls are judged, and leave unchanged or not at all."""

import json

import pytest

from chains.openai_wire import UnreadableReplyError
from guardrail import ANNOTATE, BEST_OF_N, STRICT, GuardrailConfig
from tests.chains.conftest import CANARY, scripted_guard
from tests.chains.exchanges import (
    CHAT,
    JSON_FORMAT,
    RESPONSES,
    as_reply,
    completed,
    completion,
    delta,
    exchange,
    guarded,
    message,
    response,
    streamed,
    tools,
)

TRUE = {"person": {"occupation": "Mary Shelley was a writer"}, "mother": ["Mary Wollstonecraft"]}
FALSE = {"occupation": "Mary Shelley was a writer", "born_in": f"4 May 1999 in {CANARY}"}
HIDDEN = {"occupation": "writer", "note": f"[Q47152, born: 1999 in {CANARY}]"}
REPEATED = json.dumps(FALSE)[:-1] + ', "born_in": "London"}'
SAID = f"She was born in {CANARY} on 4 May 1999"
JUDGED = STRICT.changed(structured=True)
CALLS_JUDGED = JUDGED.changed(needs_support=False)
SHOWN = ANNOTATE.changed(structured=True)
TOOLS = tools("save", "save_person")


async def judged_message(guard, policy, asked, said):
    """The message of a chat completion once it is judged."""
    body, answers = await guarded(guard, CHAT, asked, completion(said), policy=policy)
    return body["choices"][0]["message"], answers


def called(document, **fields):
    function = {"name": "save_person", "arguments": json.dumps(document)}
    return {"id": "c1", "type": "function", "function": function} | fields


@pytest.mark.parametrize(
    ("document", "withheld"),
    [
        (TRUE, False),
        (FALSE, True),
        (HIDDEN, True),
        ({}, False),
        (REPEATED, True),  # every value of a repeated key is judged
        # Keys of several words may be claims.
        ({"occupation": "writer", "She was a writer": True}, False),
        ({SAID: True}, True),
        ({SAID.replace(" ", "_"): True}, True),
        ({SAID.replace(" ", "-"): True}, True),
        ({"date-of-birth": "1797-08-30", "Mary-Shelley's-occupation": "writer"}, False),
        ({SAID: None}, True),
        ({SAID: {"checked": []}}, True),
        ({SAID: {"occupation": "writer"}}, True),
        ({f"{SAID}. {'so ' * 99}": {"occupation": "writer"}}, True),
        ({"Mary Shelley": {"occupation": "writer", "middle_name": None}}, False),
    ],
)
async def test_json_of_a_chat(guard, document, withheld):
    text = document if isinstance(document, str) else json.dumps(document)
    message, answers = await judged_message(guard, CALLS_JUDGED, JSON_FORMAT[CHAT], text)
    assert message["content"] == (None if withheld else text)
    assert CANARY not in json.dumps(message)
    if withheld:
        assert message["refusal"] == JUDGED.refusal
    assert len(answers) == bool(document)


@pytest.mark.parametrize(
    ("document", "leaves"),
    [
        (FALSE, {"/occupation": ["supportive"], "/born_in": ["contradictory"]}),
        ({"writer": True, "painter": False, "age": None}, {"/writer": None, "/painter": None}),
    ],
)
async def test_verdicts_name_each_value_by_its_pointer(guard, document, leaves):
    message, _ = await judged_message(guard, SHOWN, JSON_FORMAT[CHAT], json.dumps(document))
    assert json.loads(message["content"]) == document
    (verdict,) = message["guardrail"]["structured"]
    assert not verdict["withheld"]
    found = {leaf["path"]: leaf["categories"] for leaf in verdict["leaves"]}
    assert found.keys() == leaves.keys()
    assert all(found.values())
    assert all(found[path] == wanted for path, wanted in leaves.items() if wanted)


@pytest.mark.parametrize(
    ("calls", "left"),
    [
        ([called(TRUE)], True),
        ([called(FALSE)], False),
        ([called("{broken")], True),
        ([called(TRUE), called(FALSE)], False),  # two calls of one id are both judged
        ([called(FALSE), called(TRUE)], False),
        ([called(FALSE, id="function_call")], False),
        ([called(FALSE, id="content")], False),
        ([called(TRUE, custom={"name": "save", "input": json.dumps(FALSE)})], False),
    ],
)
async def test_arguments_of_tool_calls(guard, calls, left):
    message, _ = await judged_message(guard, CALLS_JUDGED, TOOLS, {"tool_calls": calls})
    assert message.get("tool_calls", []) == (calls if left else [])
    assert CANARY not in json.dumps(message)


@pytest.mark.parametrize(("document", "left"), [(TRUE, True), (FALSE, False)])
async def test_responses(guard, document, left):
    text = json.dumps(document)
    items = [
        {"type": "function_call", "id": "f", "call_id": "c1", "name": "save", "arguments": text},
        {"type": "function_call", "id": "g", "call_id": "c1", "name": "save", "arguments": "{}"},
        {"type": "shell_call", "id": "s", "action": {"commands": [text]}},
        message(text),
    ]
    asked = JSON_FORMAT[RESPONSES] | TOOLS
    body, answers = await guarded(guard, RESPONSES, asked, response(*items), policy=JUDGED)
    assert len(answers) == len(body["guardrail"]["structured"]) == 3
    assert CANARY not in json.dumps(body)
    *calls, last = body["output"]
    assert len(calls) == (3 if left else 0)
    assert last["content"][0]["type"] == ("output_text" if left else "refusal")


async def test_invalid_counts_of_usage_count_nothing(guard):
    counts = {"prompt_tokens": {"a": 1}, "completion_tokens": 2}

    async def send(body):
        return as_reply(completion("Mary Shelley was a writer.", usage=counts))

    found = await exchange(guard, CHAT, policy=BEST_OF_N).whole(send)
    usage = json.loads(found.reply.body)["usage"]
    assert usage["completion_tokens"] >= 2
    assert usage["prompt_tokens"] == 0


@pytest.fixture(scope="module")
def few():
    config = GuardrailConfig(policy=STRICT, limits={"sentences": 8})
    with scripted_guard(config=config) as guard:
        yield guard


async def test_the_documents_of_one_reply_share_a_bound(few):
    calls = [called({"occupation": "writer"})] * 9
    _, answers = await judged_message(few, JUDGED, TOOLS, {"tool_calls": calls[:8]})
    assert len(answers) == 8
    with pytest.raises(UnreadableReplyError):
        await judged_message(few, JUDGED, TOOLS, {"tool_calls": calls})


@pytest.mark.parametrize(("judge", "body"), [(streamed, completed), (guarded, response)])
async def test_the_parts_of_one_reply_share_a_bound(few, judge, body):
    parts = ["She was a writer. She wrote. "] * 9
    assert await judge(few, RESPONSES, {}, body(*parts[:4]))
    with pytest.raises(UnreadableReplyError):
        await judge(few, RESPONSES, {}, body(*parts))


@pytest.mark.parametrize(("parts", "refused"), [(4, False), (9, True)])
async def test_open_parts_of_a_stream_share_the_bound(few, parts, refused):
    """None of them has ended, so that no verdict on one is there yet."""
    said = "She was a writer. She wrote. "
    begun = [delta(said) | {"content_index": number} for number in range(parts)]
    events = [*begun, completed(message(*[said] * parts))]
    if not refused:
        assert await streamed(few, RESPONSES, {}, *events)
        return
    with pytest.raises(UnreadableReplyError, match="more than 8 sentences"):
        await streamed(few, RESPONSES, {}, *events)


@pytest.mark.parametrize(("asked", "choices"), [({}, 1), ({"n": 2}, 2), ({"n": 4}, 3)])
async def test_no_more_choices_are_judged_than_were_asked_for(few, asked, choices):
    """A server that sends 128 choices for one held the judge for minutes."""
    said = [f"Mary Shelley was a writer of {number} books." for number in range(3)]
    body, answers = await guarded(few, CHAT, asked, completion(*said))
    assert len(answers) == len(body["choices"]) == choices
