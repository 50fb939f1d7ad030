"""What a caller hands over: items of every kind, and errors that name what is wrong."""

import pytest
from langchain_core.documents import Document

from chains.evidence import evidence_items, request_field
from guardrail import ConfigError, InputError, Passage, Triple


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
