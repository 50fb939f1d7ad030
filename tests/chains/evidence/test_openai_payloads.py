"""Recorded requests of OpenAI's APIs and of gateways: what is found, in which order."""

import json

import pytest

from chains.evidence import EvidenceSettings, RequestField, Source
from chains.evidence.openai import (
    chat_evidence,
    chat_question,
    response_evidence,
    response_question,
)
from chains.evidence.parts import plain_body
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
    assert [one.text for one in found.evidence] == ["Result 4.", "Result 3."]
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


def test_litellm_parts():
    content = [
        {"type": "grounding_source", "text": ROOMS},
        {"type": "query", "text": ASKED},
    ]
    request = {"messages": [user(content)]}
    found = chat_evidence(request, NONE, SETTINGS)
    assert found == ((Passage(text=ROOMS),), (Source.PARTS,), ASKED)
    assert chat_question(request, SETTINGS) == ASKED
    assert plain_body(request)["messages"][0]["content"] == [
        {"type": "text", "text": ROOMS},
        {"type": "text", "text": ASKED},
    ]


def test_bedrock_guard_content():
    def block(text, *qualifiers):
        return {"guardContent": {"text": {"text": text, "qualifiers": list(qualifiers)}}}

    content = [
        block(ROOMS, "grounding_source"),
        block(POOL, "grounding_source", "guard_content"),
        block(ASKED, "query"),
    ]
    found = chat_evidence({"messages": [user(content)]}, NONE, SETTINGS)
    assert [one.text for one in found.evidence] == [ROOMS, POOL]
    assert found.question == ASKED


def test_azure_grounding_sources():
    request = {
        "domain": "Generic",
        "task": "QnA",
        "qna": {"query": ASKED},
        "groundingSources": [ROOMS, POOL],
        "messages": [user("anything")],
    }
    found = chat_evidence(request, NONE, SETTINGS)
    assert [one.text for one in found.evidence] == [ROOMS, POOL]
    assert found.question == ASKED
    assert "groundingSources" not in plain_body(request)


def test_anthropic_content():
    document = {
        "type": "document",
        "source": {"type": "text", "media_type": "text/plain", "data": ROOMS},
        "title": "Kestrel guide",
    }
    search = {
        "type": "search_result",
        "source": "https://h.example/pool",
        "title": "Pool",
        "content": [{"type": "text", "text": POOL}],
    }
    messages = [
        user([document, search, {"type": "text", "text": ASKED}]),
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "t1", "name": "prices", "input": {}}],
        },
        user([{"type": "tool_result", "tool_use_id": "t1", "content": "A room costs 90 euros."}]),
    ]
    found = chat_evidence({"messages": messages}, NONE, SETTINGS)
    assert found.evidence == (
        Passage(text=ROOMS, title="Kestrel guide"),
        Passage(text=POOL, title="Pool", url="https://h.example/pool"),
        Passage(text="A room costs 90 euros.", title="prices"),
    )
    assert found.sources == (Source.PARTS, Source.TOOLS)
    assert chat_question({"messages": messages}, SETTINGS) == ASKED


def test_responses_with_a_function_and_a_file_search():
    request = {
        "input": [
            user(ASKED),
            {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c1", "output": ROOMS},
            {
                "type": "file_search_call",
                "id": "fs_1",
                "queries": ["pool"],
                "results": [
                    {"file_id": "f1", "filename": "pool.md", "score": 0.9, "text": POOL,
                     "attributes": {"url": "https://h.example/pool"}}
                ],
            },
        ]
    }  # fmt: skip
    found = response_evidence(request, NONE, SETTINGS)
    assert found.evidence == (
        Passage(text=POOL, id="f1", title="pool.md", url="https://h.example/pool"),
        Passage(text=ROOMS, title="look"),
    )
    assert response_question(request, SETTINGS) == ASKED


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
