"""What a caller hands over: items of every kind, and errors that name what is wrong."""

import pytest
from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda

from chains import GuardrailRunnable
from chains.evidence import EvidenceSettings, evidence_items, request_field
from guardrail import ConfigError, InputError, Passage, Triple
from guardrail.sources.items import inline_evidence


def test_items_of_every_kind():
    document = Document(
        "The pool is open.", id="d1", metadata={"source": "https://h.example/pool", "title": "Pool"}
    )
    items = [
        "The Kestrel has 42 rooms.",
        {"text": "Open daily.", "id": 7, "title": "Hours", "url": "https://h.example/hours"},
        {"triple": ["Kestrel", "rooms", 42]},
        document,
        Triple(subject="Kestrel", property="city", value="Bergen"),
        {"page_content": "Dogs are welcome.", "metadata": {"source": "dogs.md"}},
    ]
    assert evidence_items(items) == (
        Passage(text="The Kestrel has 42 rooms."),
        Passage(text="Open daily.", id="7", title="Hours", url="https://h.example/hours"),
        Triple(subject="Kestrel", property="rooms", value="42"),
        Passage(text="The pool is open.", id="d1", title="Pool", url="https://h.example/pool"),
        Triple(subject="Kestrel", property="city", value="Bergen"),
        Passage(text="Dogs are welcome.", url="dogs.md"),
    )


@pytest.mark.parametrize(
    ("field", "told"),
    [
        ({"evidense": []}, "no field 'evidense'; did you mean 'evidence'?"),
        ({"evidence": "text"}, "guardrail.evidence must be a list"),
        (
            {"evidence": [{"texte": "a"}]},
            r"evidence\[0\] has no field 'texte'; did you mean 'text'",
        ),
        ({"evidence": [{"triple": ["a", "b"]}]}, r"must be \[subject, property, value\]"),
        ({"evidence": [{"id": "a"}]}, r"evidence\[0\]\.text: Field required"),
        ({"evidence": [3]}, r"evidence\[0\] must be a text, an object"),
        ({"policy": 3}, "must be a policy's name"),
        ("strict", "must be an object"),
    ],
)
def test_what_is_wrong_is_named(field, told):
    with pytest.raises(InputError, match=told):
        request_field(field)


def test_a_policy_that_there_is_not():
    with pytest.raises(ConfigError, match="did you mean 'strict'"):
        request_field({"policy": "strickt"})


def test_an_empty_list_is_not_the_same_as_none():
    assert request_field(None).evidence is None
    assert request_field({"evidence": []}).evidence == ()


def test_a_text_beside_a_triple_is_kept():
    fact = Triple(subject="Kestrel", property="rooms", value="42")
    item = {"text": "The Kestrel has 42 rooms.", "id": 7, "triple": ["Kestrel", "rooms", 42]}
    assert evidence_items([item]) == (Passage(text="The Kestrel has 42 rooms.", id="7"), fact)
    assert evidence_items([{"text": None, "triple": ["Kestrel", "rooms", 42]}]) == (fact,)


def test_what_a_triple_cannot_hold_is_refused():
    with pytest.raises(InputError, match="'url' and 'triple'"):
        evidence_items([{"url": "https://h.example", "triple": ["Kestrel", "rooms", 42]}])


@pytest.mark.parametrize("marks", [("<c>", "<c>"), ("<c>", " <c>"), ("", "</c>"), ("<c>", " ")])
def test_marks_that_do_not_differ_are_refused(guard, marks):
    with pytest.raises(ValueError, match="two delimiters that differ"):
        EvidenceSettings(marks=marks)
    with pytest.raises(ValueError, match="two delimiters that differ"):
        GuardrailRunnable(guard, RunnableLambda(str), marks=marks)


SAME = [
    ({"url": "https://h.example/a", "source": "a.md", "title": "A"}, "https://h.example/a"),
    ({"source": "a.md", "title": "A"}, "a.md"),
    ({"url": "", "source": "a.md", "title": "A"}, "a.md"),
    ({"url": None, "title": "A"}, None),
]


@pytest.mark.parametrize(("metadata", "url"), SAME)
def test_a_document_is_one_passage_by_every_way_in(metadata, url):
    document = Document("The pool is open.", metadata=metadata | {"id": 0})
    read = Passage(text="The pool is open.", id="0", title="A", url=url)
    assert evidence_items([document]) == (read,)
    assert evidence_items([document.model_dump()]) == (read,)
    assert inline_evidence(None, [document]) == (read,)
    assert evidence_items([(document, 0.83), [document.model_dump(), 1]]) == (read, read)
    assert inline_evidence(None, [(document, 0.83)]) == (read,)
    with pytest.raises(InputError):
        evidence_items([(0.83, document)])
