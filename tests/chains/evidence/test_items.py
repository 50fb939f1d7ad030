"""The ``guardrail`` field of a request: items of evidence of every kind, and what is refused."""

import json
from base64 import b64encode

import pytest
from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda

from chains import GuardrailRunnable
from chains.evidence.base import EvidenceSettings, request_field
from guardrail import ConfigError, InputError, Passage, Table, Triple
from guardrail.sources.items import evidence_items, inline_evidence
from tests.guardrail.core.documents import made

FACT = Triple(subject="Kestrel", property="rooms", value="42")
POOL = {"source": "https://h.example/pool", "title": "Pool"}
BIKES = [{"name": "Fjell 3", "price_eur": 2490}, {"name": "Tarn City", "price_eur": 1790}]
COLUMNS = {"columns": ["name", "price_eur"], "rows": [["Fjell 3", 2490], ["Tarn City", 1790]]}
TABLE = Table(BIKES, name="bikes").triples
CSV = b"name,price_eur\nFjell 3,2490\nTarn City,1790\n"
LINES = "\n".join(map(json.dumps, BIKES)).encode()


def file(name, data):
    return {"file": {"filename": name, "file_data": b64encode(data).decode()}}


@pytest.mark.parametrize(
    ("item", "read"),
    [
        ("The Kestrel has 42 rooms.", [Passage(text="The Kestrel has 42 rooms.")]),
        ({"text": "Daily.", "id": 7, "title": "Hours", "url": "https://h.example/hours"},
         [Passage(text="Daily.", id="7", title="Hours", url="https://h.example/hours")]),
        ({"triple": ["Kestrel", "rooms", 42]}, [FACT]),
        ({"text": None, "triple": ["Kestrel", "rooms", 42]}, [FACT]),
        ({"text": "42 rooms.", "id": 7, "triple": ["Kestrel", "rooms", 42]},
         [Passage(text="42 rooms.", id="7"), FACT]),
        (FACT, [FACT]),
        (Document("Open.", id="d1", metadata=POOL),
         [Passage(text="Open.", id="d1", title="Pool", url="https://h.example/pool")]),
        ({"page_content": "Dogs are welcome.", "metadata": {"source": "dogs.md"}},
         [Passage(text="Dogs are welcome.", url="dogs.md")]),
        ({"table": {"name": "bikes", "rows": BIKES}}, TABLE),
        ({"table": {"name": "bikes", "subject": "name", "rows": BIKES}}, TABLE),
        ({"table": {"name": "bikes", **COLUMNS}}, TABLE),
        (Table(BIKES, name="bikes"), TABLE),
        (file("bikes.csv", CSV), TABLE),
        (file("bikes.jsonl", LINES), TABLE),
    ],
)  # fmt: skip
def test_an_item_of_every_kind(item, read):
    assert evidence_items([item]) == tuple(read)


def test_a_document_in_a_request():
    data = b64encode(made.pdf()).decode()
    for written in (data, f"data:application/pdf;base64,{data}"):
        found = evidence_items([{"file": {"filename": "handbook.pdf", "file_data": written}}])
        assert [item.id for item in found if isinstance(item, Passage)] == [
            "handbook.pdf, p. 1, Prices",
            "handbook.pdf, p. 2, Returns",
            "handbook.pdf, p. 2, Warranty",
        ]


@pytest.mark.parametrize(
    "item",
    [
        {"texte": "a"},
        {"triple": ["a", "b"]},
        {"id": "a"},
        3,
        {"url": "https://h.example", "triple": ["Kestrel", "rooms", 42]},
        (0.83, Document("a")),
        {"table": BIKES},
        {"table": {"row": BIKES}},
        {"table": {"rows": {}}},
        {"table": {"rows": [1]}},
        {"table": {"rows": [[1]], "columns": ["a", "b"]}},
        {"table": {"rows": [[1]], "columns": 3}},
        {"table": {"rows": [], "name": 3}},
        {"table": {"rows": BIKES, "subject": "sku"}},
        {"table": {"rows": BIKES}, "text": "a"},
        {"file": "a.pdf"},
        {"file": {"filename": "a.pdf"}},
        {"file": {"filename": "a.pdf", "file_data": "§"}},
        {"file": {"filename": "a.pdf", "file_data": "AAAA"}},
    ],
)
def test_an_invalid_item_is_an_error_with_its_position(item):
    with pytest.raises(InputError, match=r"guardrail\.evidence\[0\]"):
        request_field({"evidence": [item]})


@pytest.mark.parametrize(
    ("field", "error"),
    [
        ({"evidense": []}, InputError),
        ({"evidence": "text"}, InputError),
        ({"policy": 3}, InputError),
        ("strict", InputError),
        ({"policy": "strickt"}, ConfigError),
    ],
)
def test_an_invalid_field_is_an_error(field, error):
    with pytest.raises(error):
        request_field(field)


def test_an_empty_list_is_not_the_same_as_none():
    assert request_field(None).evidence is None
    assert request_field({"evidence": []}).evidence == ()


@pytest.mark.parametrize("marks", [("<c>", "<c>"), ("<c>", " <c>"), ("", "</c>"), ("<c>", " ")])
def test_equal_marks_are_refused(guard, marks):
    with pytest.raises(ValueError, match="marks"):
        EvidenceSettings(marks=marks)
    with pytest.raises(ValueError, match="marks"):
        GuardrailRunnable(guard, RunnableLambda(str), marks=marks)


@pytest.mark.parametrize(
    ("metadata", "url"),
    [
        ({"url": "https://h.example/a", "source": "a.md", "title": "A"}, "https://h.example/a"),
        ({"source": "a.md", "title": "A"}, "a.md"),
        ({"url": "", "source": "a.md", "title": "A"}, "a.md"),
        ({"url": None, "title": "A"}, None),
    ],
)
def test_a_langchain_document_is_the_same_passage_in_every_form(metadata, url):
    document = Document("The pool is open.", metadata=metadata | {"id": 0})
    read = Passage(text="The pool is open.", id="0", title="A", url=url)
    plain = document.model_dump()
    assert evidence_items([document, plain, (document, 0.83), [plain, 1]]) == (read,) * 4
    assert inline_evidence(None, [document, (document, 0.83)]) == (read, read)
