"""Inputs of LangChain chains and messages of agents: what is found, in which order."""

import pytest
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

from chains.evidence import EvidenceSettings, RequestField, Source
from chains.evidence.langchain import chain_evidence, config_field, message_evidence
from chains.inputs import question_of
from guardrail import InputError, Passage, Triple

SETTINGS = EvidenceSettings()
NONE = RequestField()
ROOMS = Document(
    "The Kestrel has 42 rooms.", metadata={"source": "https://h.example/k", "title": "Kestrel"}
)
ROOMS_READ = Passage(text="The Kestrel has 42 rooms.", title="Kestrel", url="https://h.example/k")


@pytest.mark.parametrize(
    ("place", "value", "output"),
    [
        ("context", {"question": "?", "context": [ROOMS]}, None),
        ("retrieved.docs", {"retrieved": {"docs": [ROOMS]}}, None),
        ("context", {"input": "?"}, {"context": [ROOMS], "answer": "42."}),
        ("context", {"context": ROOMS}, None),
        ("context", {"context": [(ROOMS, 0.83)]}, None),  # of similarity_search_with_score
        (lambda value: [ROOMS], {"question": "?"}, None),
    ],
)
def test_a_chain_that_names_its_documents(place, value, output):
    found = chain_evidence(place, value, output, NONE, SETTINGS)
    assert found.evidence == (ROOMS_READ,)
    assert found.sources == (Source.CALLER,)


def test_an_empty_retrieval_is_evidence_of_nothing():
    found = chain_evidence("context", {"context": []}, None, NONE, SETTINGS)
    assert found.evidence == ()
    assert found.handed_over


def test_a_place_that_is_not_there_is_an_error_that_names_the_parameter():
    with pytest.raises(InputError, match=r"no 'contex' .*'context', 'question'.*'evidence'"):
        chain_evidence("contex", {"question": "?", "context": []}, None, NONE, SETTINGS)


def test_an_agents_tool_messages():
    messages = [
        HumanMessage("How many rooms?"),
        AIMessage("", tool_calls=[{"name": "look", "args": {}, "id": "1"}]),
        ToolMessage('{"name": "Kestrel", "rooms": 42}', tool_call_id="1"),
        AIMessage("", tool_calls=[{"name": "search", "args": {}, "id": "2"}]),
        ToolMessage("Found one.", tool_call_id="2", artifact=[ROOMS]),
        ToolMessage("Failed: no such file", tool_call_id="3", status="error"),
    ]
    found = message_evidence(messages, SETTINGS)
    assert found.evidence == (
        ROOMS_READ,
        Passage(text="Found one.", title="search"),
        Triple(subject="Kestrel", property="rooms", value="42"),
    )
    assert found.sources == (Source.TOOLS,)


def test_content_parts_and_marked_text_in_messages():
    messages = [
        SystemMessage("<context>The pool is open.</context>"),
        HumanMessage([{"type": "grounding_source", "text": "Dogs are welcome."}]),
    ]
    marks = EvidenceSettings(marks=("<context>", "</context>"))
    found = message_evidence(messages, marks)
    assert [item.text for item in found.evidence] == ["Dogs are welcome.", "The pool is open."]
    assert found.sources == (Source.PARTS, Source.MARKED)


def test_a_runs_metadata():
    field = config_field({"metadata": {"guardrail": {"evidence": [ROOMS], "policy": "annotate"}}})
    assert field == RequestField(evidence=(ROOMS_READ,), policy="annotate")
    with pytest.raises(InputError, match="did you mean 'evidence'"):
        config_field({"metadata": {"guardrail": {"evidences": []}}})


def test_a_question_that_cannot_be_told_is_an_error_that_names_the_parameter():
    with pytest.raises(InputError, match=r"'topic', 'context'.*'question_key'"):
        question_of({"topic": "hotels", "context": "The Kestrel has 42 rooms."})
    with pytest.raises(InputError, match=r"'asked'.*'question_key'"):
        question_of({"topic": "hotels"}, "asked")
    assert question_of({"topic": "Which hotel?"}) == "Which hotel?"
