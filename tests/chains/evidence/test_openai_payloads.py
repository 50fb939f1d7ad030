"""Requests of OpenAI's protocol: what is found, in which order, within which bounds.

Payloads of single hosts are tested in ``tests/chains/hosts``.
"""

import json

import pytest

from chains.evidence import EvidenceSettings, RequestField, Source
from chains.evidence.openai import (
    chat_evidence,
    chat_question,
)
from guardrail import Passage, Triple

SETTINGS = EvidenceSettings()
NONE = RequestField()
ROOMS = "The Kestrel has 42 rooms."
POOL = "The pool is open until 21:00."
ASKED = "How many rooms does the Kestrel have?"


def user(content):
    return {"role": "user", "content": content}


TOOL_CHAT = [
    user(ASKED),
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
        ],
    },
    {"role": "tool", "tool_call_id": "c1", "content": json.dumps({"name": "Kestrel", "rooms": 42})},
]


def test_openai_chat_with_a_tool():
    found = chat_evidence({"messages": TOOL_CHAT}, NONE, SETTINGS)
    assert found.evidence == (Triple(subject="Kestrel", property="rooms", value="42"),)
    assert found.sources == (Source.TOOLS,)
    assert not found.handed_over
    assert chat_question({"messages": TOOL_CHAT}, SETTINGS) == ASKED


def test_a_tools_plain_text_is_a_passage_that_names_the_tool():
    messages = [*TOOL_CHAT[:2], {"role": "tool", "tool_call_id": "c1", "content": ROOMS}]
    found = chat_evidence({"messages": messages}, NONE, SETTINGS)
    assert found.evidence == (Passage(text=ROOMS, title="look"),)


def test_the_newest_results_come_first_and_are_bounded():
    messages = [
        {"role": "tool", "tool_call_id": str(n), "content": f"Result {n}."} for n in range(5)
    ]
    settings = EvidenceSettings(tool_results=2)
    found = chat_evidence({"messages": messages}, NONE, settings)
    assert [item.text for item in found.evidence] == ["Result 4.", "Result 3."]
    few = EvidenceSettings(tool_chars=12)
    assert len(chat_evidence({"messages": messages}, NONE, few).evidence) == 1
    off = EvidenceSettings(tools=False)
    assert chat_evidence({"messages": messages}, NONE, off).sources == ()


def test_an_empty_result_says_nothing():
    messages = [{"role": "tool", "tool_call_id": "1", "content": " "}]
    assert chat_evidence({"messages": messages}, NONE, SETTINGS).sources == ()


def test_documents_that_a_tool_returns_keep_title_and_url():
    reply = {"results": [{"title": "Pool", "url": "https://h.example/pool", "content": POOL}]}
    messages = [{"role": "tool", "tool_call_id": "1", "content": json.dumps(reply)}]
    found = chat_evidence({"messages": messages}, NONE, SETTINGS)
    assert found.evidence == (Passage(text=POOL, title="Pool", url="https://h.example/pool"),)


def test_the_callers_evidence_goes_first():
    field = RequestField(evidence=(Passage(text=POOL),))
    found = chat_evidence({"messages": TOOL_CHAT}, field, SETTINGS)
    assert found.sources == (Source.CALLER, Source.TOOLS)
    assert found.evidence[0] == Passage(text=POOL)
    assert found.handed_over


@pytest.mark.parametrize("role", ["system", "user"])
def test_a_marked_stretch(role):
    text = f"Answer from this. <context>{ROOMS}</context>"
    messages = [{"role": role, "content": text}, user(ASKED)]
    assert chat_evidence({"messages": messages}, NONE, SETTINGS).sources == ()
    marks = EvidenceSettings(marks=("<context>", "</context>"))
    found = chat_evidence({"messages": messages}, NONE, marks)
    assert found.evidence == (Passage(text=ROOMS),)
    assert found.sources == (Source.MARKED,)
    joined = {"messages": [user(f"<context>{ROOMS}</context> {ASKED}")]}
    assert chat_question(joined, marks) == ASKED
