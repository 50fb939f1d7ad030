"""Evidence in requests of the OpenAI protocol and in LangChain's inputs: kinds and order.

Payloads of single hosts are tested in ``tests/chains/hosts``.
"""

import json

import numpy as np
import pytest
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

from chains.conversation import standalone_question
from chains.evidence.base import EvidenceSettings, RequestField, Source
from chains.evidence.langchain import chain_evidence, config_field
from chains.evidence.openai import request_evidence, request_turns
from chains.payloads import question_of
from guardrail import InputError, Passage, Triple
from guardrail.core.types import TableRow

SETTINGS = EvidenceSettings()
MARKS = EvidenceSettings(marks=("<context>", "</context>"))
NONE = RequestField()
TEXT = "The Kestrel has 42 rooms."
POOL = "The pool is open until 21:00."
ASKED = "How many rooms does the Kestrel have?"
FACT = Triple("Kestrel", "rooms", "42", row=TableRow(table="look", number=1))
ROOMS = Document(TEXT, metadata={"source": "https://h.example/k", "title": "Kestrel"})
ROOMS_READ = Passage(text=TEXT, title="Kestrel", url="https://h.example/k")
FUNCTION = {"name": "look", "arguments": "{}"}
CALLED = [
    {"role": "user", "content": ASKED},
    {"role": "assistant", "content": None, "tool_calls": [{"id": "c1", "function": FUNCTION}]},
]


def of_chat(messages, settings=SETTINGS, field=NONE):
    return request_evidence({"messages": messages}, field, settings)


def result(content):
    return {"role": "tool", "tool_call_id": "c1", "content": content}


@pytest.mark.parametrize(
    ("content", "evidence"),
    [
        (json.dumps({"name": "Kestrel", "rooms": 42}), [FACT]),
        (TEXT, [Passage(text=TEXT, title="look")]),
        (json.dumps({"results": [{"title": "Pool", "url": "https://h.example", "content": POOL}]}),
         [Passage(text=POOL, title="Pool", url="https://h.example")]),
        (" ", []),
    ],
)  # fmt: skip
def test_the_result_of_a_tool_in_a_chat(content, evidence):
    messages = [*CALLED, result(content)]
    found = of_chat(messages)
    assert found.evidence == tuple(evidence)
    assert found.sources == ((Source.TOOLS,) if evidence else ())
    assert not found.handed_over
    turns = request_turns({"messages": messages}, SETTINGS)
    assert standalone_question(turns) == ASKED
    assert of_chat(messages, EvidenceSettings(tools=False)).sources == ()


def test_the_callers_evidence_goes_first():
    found = of_chat([*CALLED, result(TEXT)], field=RequestField(evidence=(Passage(text=POOL),)))
    assert found.sources == (Source.CALLER, Source.TOOLS)
    assert found.evidence[0] == Passage(text=POOL)
    assert found.handed_over


@pytest.mark.parametrize("role", ["system", "user"])
def test_marked_text_is_evidence_and_no_part_of_the_question(role):
    messages = [{"role": role, "content": f"Use this. <context>{TEXT}</context>"}, CALLED[0]]
    assert of_chat(messages).sources == ()
    found = of_chat(messages, MARKS)
    assert (found.evidence, found.sources) == ((Passage(text=TEXT),), (Source.MARKED,))
    joined = [{"role": "user", "content": f"<context>{TEXT}</context> {ASKED}"}]
    assert standalone_question(request_turns({"messages": joined}, MARKS)) == ASKED


# --- LangChain ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("place", "value", "output"),
    [
        ("context", {"question": "?", "context": [ROOMS]}, None),
        ("retrieved.docs", {"retrieved": {"docs": [ROOMS]}}, None),
        ("context", {"input": "?"}, {"context": [ROOMS], "answer": "42."}),
        ("context", {"context": ROOMS}, None),
        ("context", {"context": [(ROOMS, 0.83)]}, None),  # of similarity_search_with_score
        ("context", {"context": [(ROOMS, np.float32(0.83))]}, None),  # of FAISS
        ("context", {"context": [(ROOMS, None)]}, None),
        (lambda value: [ROOMS], {"question": "?"}, None),
    ],
)
def test_a_chain_that_names_its_documents(place, value, output):
    found = chain_evidence(place, value, output, NONE, SETTINGS)
    assert (found.evidence, found.sources) == ((ROOMS_READ,), (Source.CALLER,))


def test_a_list_of_documents_is_no_document_with_a_score():
    """Its second document would be lost."""
    with pytest.raises(InputError):
        chain_evidence("context", {"context": [(ROOMS, ROOMS)]}, None, NONE, SETTINGS)


def test_messages_of_an_agent():
    messages = [
        SystemMessage(f"<context>{POOL}</context>"),
        HumanMessage([{"type": "grounding_source", "text": "Dogs are welcome."}]),
        AIMessage("", tool_calls=[{"name": "look", "args": {}, "id": "1"}]),
        ToolMessage('{"name": "Kestrel", "rooms": 42}', tool_call_id="1"),
        AIMessage("", tool_calls=[{"name": "search", "args": {}, "id": "2"}]),
        ToolMessage("Found one.", tool_call_id="2", artifact=[ROOMS]),
        ToolMessage("Failed: no such file", tool_call_id="3", status="error"),
    ]
    found = chain_evidence(None, messages, None, NONE, MARKS)
    assert found.evidence == (
        Passage(text="Dogs are welcome."), ROOMS_READ, Passage(text="Found one.", title="search"),
        FACT, Passage(text=POOL),
    )  # fmt: skip
    assert found.sources == (Source.PARTS, Source.TOOLS, Source.MARKED)


def test_metadata_of_a_run():
    field = config_field({"metadata": {"guardrail": {"evidence": [ROOMS], "policy": "annotate"}}})
    assert field == RequestField(evidence=(ROOMS_READ,), policy="annotate")
    with pytest.raises(InputError):
        config_field({"metadata": {"guardrail": {"evidences": []}}})


def test_the_question_of_a_mapping():
    assert question_of({"topic": "Which hotel?"}) == "Which hotel?"
    for value, key in (({"topic": "hotels", "context": TEXT}, None), ({"topic": "?"}, "asked")):
        with pytest.raises(InputError, match="question_key"):
            question_of(value, key)
