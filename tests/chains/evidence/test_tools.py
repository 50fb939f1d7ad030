"""What tools returned: nothing of it is lost in silence."""

import json

import pytest

from chains.evidence import EvidenceMode, EvidenceSettings, Found, Source, case_of, tools
from chains.evidence.items import RequestField
from chains.evidence.openai import chat_evidence
from chains.evidence.tools import ToolResult, evidence_of_tools
from guardrail import InputError, Passage, Triple
from guardrail.sources import tables
from tests.chains.conftest import scripted_guard

LAPTOP = {
    "name": "Kestrel K3", "body": "A light laptop.", "price": 899, "status": "in stock",
    "released": "2026-03-01", "ports": ["USB-C", "HDMI"], "url": "https://l.example/k3",
}  # fmt: skip


def result_evidence(content, tool=None):
    return list(tools.result_evidence(content, tool))


def facts(evidence):
    return [
        (item.subject, item.property, item.value) for item in evidence if isinstance(item, Triple)
    ]


@pytest.mark.parametrize("key", ["text", "content", "page_content", "snippet", "body"])
def test_an_object_with_a_text_keeps_its_other_values(key):
    told = {key if name == "body" else name: value for name, value in LAPTOP.items()}
    first, *rest = result_evidence(json.dumps(told))
    assert first == Passage(text="A light laptop.", title="Kestrel K3", url="https://l.example/k3")
    assert facts(rest) == [
        ("Kestrel K3", "price", "899"),
        ("Kestrel K3", "status", "in stock"),
        ("Kestrel K3", "released", "2026-03-01"),
        ("Kestrel K3", "ports", "USB-C"),
        ("Kestrel K3", "ports", "HDMI"),
    ]


def test_metadata_of_a_document_and_objects_in_it_are_kept():
    told = {
        "page_content": "Open daily.",
        "metadata": {"title": "Pool", "source": "https://h.example/pool", "price": 9},
        "hours": {"opens": "08:00"},
    }
    first, *rest = result_evidence(told)
    assert first == Passage(text="Open daily.", title="Pool", url="https://h.example/pool")
    assert facts(rest) == [("Pool", "price", "9"), ("Pool", "opens", "08:00")]


def test_two_texts_of_one_object_are_two_passages():
    held = result_evidence(
        {"title": "Pool", "content": "Open daily. Heated.", "snippet": "Heated."}
    )
    assert held == [
        Passage(text="Open daily. Heated.", title="Pool"),
        Passage(text="Heated.", title="Pool"),
    ]


def test_a_document_that_tells_no_more_is_a_passage_alone():
    told = {"id": 7, "title": "Pool", "link": "https://h.example/pool", "text": "Open daily."}
    assert result_evidence(told) == [
        Passage(text="Open daily.", id="7", title="Pool", url="https://h.example/pool")
    ]


def test_content_parts_say_nothing_of_themselves():
    parts = [{"type": "text", "text": "Open daily."}, {"type": "image", "data": {}}]
    assert Passage(text="Open daily.", title="look") in result_evidence(parts, "look")
    assert ("look", "type", "text") not in facts(result_evidence(parts, "look"))


def test_numbers_without_a_key_and_objects_deep_down_are_kept():
    assert facts(result_evidence("[42, 43]", "rooms")) == [
        ("rooms", "value", "42"),
        ("rooms", "value", "43"),
    ]
    deep = {"a": {"b": {"c": {"d": {"e": {"rooms": 42}}}}}}
    (held,) = result_evidence(deep)
    assert held.text == '{"rooms": 42}'


# --- bounds ------------------------------------------------------------------------------


def read(*contents, **bounds):
    """Evidence of results, given oldest first, within bounds."""
    results = [ToolResult(content, "look") for content in contents]
    return evidence_of_tools(results, EvidenceSettings(**bounds))


def told(found):
    """The messages of the problems that a reading left."""
    assert all(problem.part == "evidence" for problem in found.problems)
    return [problem.message for problem in found.problems]


def test_the_newest_result_is_cut_where_it_is_too_long():
    text = "The Kestrel has 42 rooms.\n\n" + "The pool is open.\n\n" * 10_000
    found = read(text)
    (held,) = found.evidence
    assert text.startswith(held.text)
    assert held.text.endswith("The pool is open.")
    assert 99_900 < len(held.text) <= 100_000
    (message,) = told(found)
    assert "100,000 characters" in message
    assert "cut: 1" in message


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("One is.\n\nTwo is so.\n\nThree is not so.", "One is.\n\nTwo is so."),
        ("One is.\nTwo is so.\nThree is not so.", "One is.\nTwo is so."),
        ("One is. Two is so. Three is not so.", "One is. Two is so."),
        ("一は青い。二は赤い。三は白くて、丸くて、大きくて、重い。", "一は青い。二は赤い。"),
        ("a\n\nOne is. Two is so. Three is not so.", "a\n\nOne is. Two is so."),
        ("price;1\nprice;22\nprice;333333333333", "price;1\nprice;22"),
    ],
)
def test_a_text_is_cut_behind_a_paragraph_a_line_or_a_sentence(text, kept):
    (held,) = read(text, tool_chars=22).evidence
    assert held.text == kept


def test_no_sentence_is_cut_in_the_middle():
    found = read("The pool is open to everybody but children", tool_chars=29)
    assert found.evidence == ()
    assert "left out: 1" in told(found)[0]


def test_a_text_that_cannot_be_cut_does_not_hide_the_others():
    found = read("The pool is open.", "x" * 200, tool_chars=100)
    assert [item.text for item in found.evidence] == ["The pool is open."]
    assert "left out: 1" in told(found)[0]


def test_records_are_left_out_whole():
    rows = json.dumps([{"name": f"Room {n}", "beds": 2} for n in range(100)])
    found = read(rows, tool_chars=100)
    assert facts(found.evidence) == [(f"Room {n}", "beds", "2") for n in range(6)]
    assert "left out: 94" in told(found)[0]


def test_a_result_with_a_name_that_is_too_long_is_left_out_and_told():
    page = {"title": "x" * 2_001, "text": "The pool is open."}
    found = read(json.dumps([page, {"title": "Pool", "text": "Open daily."}]))
    assert [item.title for item in found.evidence] == ["Pool"]
    assert "names of more than 2,000" in told(found)[0]
    assert "left out: 1" in told(found)[0]


def test_results_beyond_the_newest_are_told():
    found = read("One.", "Two.", "Three.", tool_results=2)
    assert [item.text for item in found.evidence] == ["Three.", "Two."]
    assert "of 3 tool results the newest 2 were read" in told(found)[0]
    assert read("One.", "Two.").problems == ()


async def test_the_answer_tells_what_was_not_read():
    found = read("The Kestrel has 42 rooms. " + "x" * 100, tool_chars=50)
    question, said = "How many rooms does the Kestrel have?", "The Kestrel has 42 rooms."
    with scripted_guard(retriever=lambda question: []) as guard:
        for mode in (EvidenceMode.GIVEN, EvidenceMode.BOTH):
            case = await case_of(guard, question, found, mode)
            answer = await case.check(guard, said, guard.config.policy)
            assert set(found.problems) <= set(answer.errors)
            assert case.with_problems(answer).errors == answer.errors
        alone = await case_of(guard, question, found, EvidenceMode.GRAPH)
        assert alone.problems == ()
        nothing = read("x" * 100, tool_chars=50)
        assert (await case_of(guard, question, nothing, EvidenceMode.GIVEN)).problems
    both = found | Found.of(Source.MARKED, [])
    assert both.problems == found.problems


@pytest.mark.parametrize(
    "content",
    [
        json.dumps([{"name": f"Room {n}", "beds": 2} for n in range(5_000)]),
        json.dumps({"columns": ["name", "beds"], "rows": [[f"Room {n}", 2] for n in range(5_000)]}),
        [("Room", 2)] * 5_000,
    ],
    ids=["objects", "columns", "tuples"],
)
def test_of_a_long_table_no_more_is_made_than_may_find_room(content, monkeypatch):
    made = []
    triple = tables.Triple
    monkeypatch.setattr(tables, "Triple", lambda *a, **k: made.append(1) or triple(*a, **k))
    found = read(content, tool_chars=1_000)
    assert 50 <= len(made) < 150
    assert f"left out: {5_000 - len(found.evidence):,}".replace(",", "") in told(found)[0]


def test_a_long_table_of_markdown_is_a_text_that_is_cut():
    rows = "| name | beds |\n|-|-|\n" + "| Room | 2 |\n" * 20_000
    (held,) = read(rows).evidence
    assert isinstance(held, Passage)
    assert len(held.text) <= 100_000


def test_reading_stops_at_the_bound_and_tells_it(monkeypatch):
    monkeypatch.setattr(tools, "MOST_CELLS", 10)
    items = iter([f"Text {n}." for n in range(100)])
    documents = (Passage(text=text) for text in items)
    result = ToolResult(None, documents=documents)
    found = evidence_of_tools([result], EvidenceSettings())
    assert len(found.evidence) == 10
    assert "and everything after them" in told(found)[0]
    assert len(list(items)) == 89


@pytest.mark.parametrize(
    "content",
    [
        [{"type": "grounding_source", "text": "a"}] * 11,
        [{"groundingSources": ["a"] * 11}],
        [{"type": "document", "source": {"type": "content", "content": ["a"] * 11}}],
        "<c>a</c>" * 11,
    ],
    ids=["parts", "sources in a part", "blocks", "marked"],
)
def test_sources_in_messages_have_the_bound_of_all_evidence(content, monkeypatch):
    monkeypatch.setattr(tables, "MOST_CELLS", 10)
    request = {"messages": [{"role": "user", "content": content}]}
    with pytest.raises(InputError, match="more than 10 texts"):
        chat_evidence(request, RequestField(), EvidenceSettings(marks=("<c>", "</c>")))


def test_sources_beside_the_messages_have_it(monkeypatch):
    monkeypatch.setattr(tables, "MOST_CELLS", 10)
    with pytest.raises(InputError, match="more than 10 texts"):
        chat_evidence({"groundingSources": ["a"] * 11}, RequestField(), EvidenceSettings())
