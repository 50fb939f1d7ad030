"""Results of tools as evidence: texts, objects, rows; what is not read is reported."""

import json

import pytest

from chains.evidence import tools
from chains.evidence.base import (
    EvidenceMode,
    EvidenceSettings,
    RequestField,
    Source,
    case_of,
)
from chains.evidence.openai import request_evidence
from chains.evidence.tools import ToolResult, evidence_of_tools
from guardrail import InputError, Passage, Table, Triple
from guardrail.sources import tables
from tests.chains.conftest import scripted_guard

POOL = "https://h.example/pool"
BIKES = [{"name": "Fjell 3", "price_eur": 2490}, {"name": "Tarn City", "price_eur": 1790}]
ROWS = [["Fjell 3", 2490], ["Tarn City", 1790]]


def read(*contents):
    """Evidence of results, given oldest first."""
    results = [ToolResult(content, "look") for content in contents]
    return evidence_of_tools(results, EvidenceSettings())


def facts(found):
    return [
        (item.subject, item.property, item.value)
        for item in found.evidence
        if isinstance(item, Triple)
    ]


def passages(found):
    return [item for item in found.evidence if isinstance(item, Passage)]


@pytest.mark.parametrize("key", ["text", "content", "page_content", "snippet", "body"])
def test_an_object_with_a_text_keeps_its_other_values(key):
    item = {"name": "Kestrel K3", key: "Light.", "price": 899, "ports": ["USB-C", "HDMI"]}
    found = read(json.dumps(item | {"url": POOL}))
    assert passages(found) == [Passage(text="Light.", title="Kestrel K3", url=POOL)]
    values = [("price", "899"), ("ports", "USB-C"), ("ports", "HDMI")]
    assert facts(found) == [("Kestrel K3", *value) for value in values]


@pytest.mark.parametrize(
    ("content", "texts", "triples"),
    [
        (
            {
                "page_content": "Open daily.",
                "metadata": {"title": "Pool", "source": POOL, "price": 9},
                "hours": {"opens": "08:00"},
            },
            [Passage(text="Open daily.", title="Pool", url=POOL)],
            [("Pool", "price", "9"), ("Pool", "hours opens", "08:00")],
        ),
        ({"title": "Pool", "content": "Open daily. Heated.", "snippet": "Heated."},
         [Passage(text=text, title="Pool") for text in ("Open daily. Heated.", "Heated.")], []),
        ({"id": 7, "title": "Pool", "link": POOL, "text": "Open daily."},
         [Passage(text="Open daily.", id="7", title="Pool", url=POOL)], []),
        ([{"type": "text", "text": "Open daily."}, {"type": "image", "data": {}}],
         [Passage(text="Open daily.", title="look")], [("look", "type", "image")]),
        ("[42, 43]", [], [("look", "value", "42"), ("look", "value", "43")]),
        ([{"title": "A", "text": "One."}, {"title": "B", "text": "Two."}],
         [Passage("One.", title="A"), Passage("Two.", title="B")], []),
    ],
    ids=["document", "two texts", "fields", "parts", "numbers", "documents are no rows"],
)  # fmt: skip
def test_texts_are_passages_and_other_values_facts(content, texts, triples):
    found = read(content)
    assert passages(found) == texts
    assert facts(found) == triples


def test_objects_nested_deeply_are_read_as_text():
    (held,) = read({"a": {"b": {"c": {"d": {"e": {"rooms": 42}}}}}}).evidence
    assert held.text == '{"rooms": 42}'


# --- subjects ----------------------------------------------------------------------------

KX4 = {"booking_reference": "KX4-77Q", "state": "confirmed", "adults": 2}
PT9 = {"booking_reference": "PT9-03L", "state": "on_hold", "adults": 1}
CABIN = {"cabin": {"number": "214"}}
OSLO, BERGEN = {"city": "Oslo", "degrees": 2}, {"city": "Bergen", "degrees": 4}


def rooms(*prices):
    return {"rooms": [{"name": f"Room {n}", "price": p} for n, p in enumerate(prices)]}


def crew(*names):
    return {"crew": [{"name": name, "age": 50} for name in names]}


@pytest.mark.parametrize(
    ("results", "subjects"),
    [
        ([[KX4, PT9]], ["KX4-77Q", "PT9-03L"]),
        ([[KX4 | CABIN, PT9]], ["KX4-77Q", "PT9-03L"]),  # uneven and nested
        ([[KX4 | {"tags": ["a", "b"]}, PT9]], ["KX4-77Q", "PT9-03L"]),
        ([KX4, PT9], ["PT9-03L", "KX4-77Q"]),  # the newest result first
        ([KX4, KX4], ["KX4-77Q"]),
        ([{"bookings": [KX4, PT9 | CABIN]}], ["KX4-77Q", "PT9-03L"]),
        ([{"booking": KX4}], ["look", "KX4-77Q"]),
        ([OSLO, BERGEN], ["Bergen", "Oslo"]),
        ([OSLO], ["look"]),
        ([{"degrees": 2}, {"degrees": 4}], ["look 2", "look 1"]),
        ([{"status": "in service"}, {"status": "in dock"}], ["look 1", "look 2"]),
        ([{"customer_name": "Ann", "sum": 3}, {"customer_name": "Ann", "sum": 4}],
         ["look 2", "look 1"]),
        ([[{"a": 1}, {"a": 1, "b": 2}]], ["look 1", "look 2"]),
        ([[{"text": "One.", "score": 1}, {"text": "Two.", "score": 2}]], ["look 1", "look 2"]),
        ([[{"trip_id": "F-1", "boat_name": "Tern"}, {"trip_id": "F-2", "boat_name": "Gull"}]],
         ["F-1", "F-2"]),
        ([[{"boat_id": 1, "boat_name": "Tern"}, {"boat_id": 2, "boat_name": "Gull"}]],
         ["Tern", "Gull"]),
        ([[{"name": "A"} | rooms(5, 6), {"name": "B"} | rooms(7, 8)]],
         ["A", "B", "A Room 0", "A Room 1", "B Room 0", "B Room 1"]),
        ([[{"name": "A"} | crew("Ann", "Bo"), {"name": "B"} | crew("Cy", "Di")]],
         ["A", "B", "Ann", "Bo", "Cy", "Di"]),
    ],
)  # fmt: skip
def test_each_object_has_a_subject_of_its_own(results, subjects):
    found = read(*map(json.dumps, results))
    assert [*dict.fromkeys(subject for subject, *_ in facts(found))] == subjects


@pytest.mark.parametrize(
    "rows",
    [
        [KX4, PT9],
        [KX4 | CABIN, PT9],
        [
            {"name": "Tern", "status": "Docked", "id": 3},
            {"name": "Gull", "status": "Gone", "id": 4},
        ],
        [{"mode": "ferry", "line": "F1"}, {"mode": "bus", "line": "B7"}],
        [{"from": "North Quay", "to": "Heron"}, {"from": "South Quay", "to": "Otter Bay"}],
    ],
)
def test_the_order_of_keys_and_results_does_not_matter(rows):
    turned = [dict(reversed(row.items())) for row in rows]
    for one, other in (((rows,), (turned,)), (rows, turned), (rows, reversed(turned))):
        assert {*facts(read(*one))} == {*facts(read(*other))}


@pytest.mark.parametrize(
    ("cells", "properties"),
    [
        ({"price": {"amount": 5.8, "currency": "EUR"}}, {"price": "5.8 EUR"}),
        ({"child_price": {"value": "5.80", "currency": "eur"}}, {"child_price": "5.80 EUR"}),
        ({"price": {"amount": 5, "currency": "EUR", "net": True}},
         {"price": "5 EUR", "price net": "true"}),
        ({"draught": {"value": 2.9, "unit": "m"}}, {"draught": "2.9 m"}),
        ({"prices": [{"amount": 5, "currency": "EUR"}, {"amount": 6, "currency": "EUR"}]},
         {"prices": "6 EUR"}),
        ({"price": 5.8, "currency": "EUR"}, {"price": "5.8 EUR", "currency": "EUR"}),
        ({"price": 5.8, "seats": 4, "priceCurrency": "EUR"},
         {"price": "5.8 EUR", "seats": "4", "priceCurrency": "EUR"}),
        ({"price_usd": 5.8, "currency": "EUR"}, {"price_usd": "5.8", "currency": "EUR"}),
        ({"price": "€5.80", "currency": "EUR"}, {"price": "€5.80", "currency": "EUR"}),
        ({"people": 5_000, "currency": "NOK"}, {"people": "5000", "currency": "NOK"}),
        ({"price": 5.8}, {"price": "5.8"}),
        ({"cabin": {"number": "214", "class": "outside"}},
         {"cabin number": "214", "cabin class": "outside"}),
        ({"built": 2009, "engine": {"built": 2011}}, {"built": "2009", "engine built": "2011"}),
    ],
)  # fmt: skip
@pytest.mark.parametrize("listed", [False, True])
def test_an_object_in_an_object_keeps_its_key(cells, properties, listed):
    content = [{"name": "A", **cells}, {"name": "B"}] if listed else {"name": "A", **cells}
    found = [fact for fact in facts(read(json.dumps(content))) if fact[0] == "A"]
    assert {name: value for _, name, value in found} == properties


def test_an_object_with_a_name_is_linked_from_the_one_around_it():
    captain = {"name": "Ingrid", "born": 1970}
    found = read(json.dumps({"name": "Tern", "captain": captain}))
    assert facts(found) == [("Tern", "captain", "Ingrid"), ("Ingrid", "born", "1970")]
    assert [item.row.table for item in found.evidence] == ["look", "captain"]


# --- rows --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "content",
    [
        BIKES,
        json.dumps(BIKES),
        {"columns": ["name", "price_eur"], "rows": ROWS},
        {"columns": ["name", "price_eur"], "data": ROWS},
        {"columns": [{"name": "name", "type": "TEXT"}, {"name": "price_eur"}], "rows": ROWS},
        {"results": BIKES},
        {"look": BIKES, "took_ms": 3},
        str(BIKES).replace("2490", "Decimal('2490')"),
        "| name | price_eur |\n|---|---|\n| Fjell 3 | 2490 |\n| Tarn City | 1790 |",
        "name,price_eur\nFjell 3,2490\nTarn City,1790\n",
        'name;price_eur\r\n"Fjell 3";2490\r\nTarn City;1790',
        "name\tprice_eur\nFjell 3\t2490\nTarn City\t1790",
    ],
)
def test_the_result_of_a_query_is_read_as_rows(content):
    found = [item for item in read(content).evidence if item.property != "took_ms"]
    assert tuple(found) == Table(BIKES, name="look").triples


@pytest.mark.parametrize(
    ("text", "details"),
    [
        ("[('Fjell 3', datetime.date(2024, 3, 1)), ('Tarn City', datetime.date(2025, 1, 10))]",
         ["Fjell 3, value: 2024-03-01.", "Tarn City, value: 2025-01-10."]),
        ("[(1, 'a', None), (2, 'b', datetime.datetime(2024, 3, 1, 14, 30))]",
         ["a, value 1: 1.", "b, value 1: 2.", "b, value 3: 2024-03-01 14:30:00."]),
    ],
)  # fmt: skip
def test_rows_without_columns_as_langchains_sql_tool_returns_them(text, details):
    assert [item.text for item in read(text).evidence] == details


@pytest.mark.parametrize(
    ("zone", "written"),
    [
        ("datetime.timezone.utc", "+00:00"),
        ("datetime.timezone(datetime.timedelta(seconds=3600), 'CET')", "+01:00"),
        ("datetime.timezone(datetime.timedelta(days=-1, seconds=68400))", "-05:00"),
        ("zoneinfo.ZoneInfo(key='Etc/UTC')", "+00:00"),
    ],
)
def test_a_point_in_time_keeps_its_zone(zone, written):
    moment = f"datetime.datetime(2024, 3, 1, 0, 30, tzinfo={zone})"
    found = read(f"[('Fjell 3', {moment}), ('Tarn City', {moment})]")
    assert {item.value for item in found.evidence} == {f"2024-03-01 00:30:00{written}"}


@pytest.mark.parametrize(
    "text",
    [
        "[(open('/etc/passwd'), 1), (2, 3)]",
        "[(1, 2",
        "[(" * 5_000,
        "| a |\nand more",
        "[(x, y)]",
        "Dear Ida, the bikes are here.\nFjell 3, Tarn City, and more.",
        "we have bikes, prices\nand lights, too",
        "Oslo,Norway\nParis,France",
        "name,price\nFjell 3,2490,new",
        "12,3\n14,5",
        "name,price",
        "name,price\nFjell \ud800,2490",
        "[(1, datetime.date(2024, 2, 30)), (2, 3)]",
        "[(1, datetime.date(10**9, 1, 1)), (2, 3)]",
        "[(1, datetime.date('a', 1, 1)), (2, 3)]",
        "[(1, datetime.datetime(2024, 1, 1, tzinfo=open('/etc/passwd'))), (2, 3)]",
        "[(1, datetime.datetime(2024, 1, 1, tzinfo=ZoneInfo('Nowhere/There'))), (2, 3)]",
        "[(1, datetime.datetime(2024, 1, 1, tzinfo=ZoneInfo())), (2, 3)]",
        "[(1, timezone(timedelta(days=9999999999))), (2, 3)]",
    ],
)
def test_a_text_that_only_looks_like_rows_stays_a_text(text):
    assert read(text).evidence == (Passage(text=text, title="look"),)


# --- bounds ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("One is.\n\nTwo is so.\n\nThree is not so.", "One is.\n\nTwo is so."),
        ("One is.\nTwo is so.\nThree is not so.", "One is.\nTwo is so."),
        ("One is. Two is so. Three is not so.", "One is. Two is so."),
        ("一は青い。二は赤い。三は白くて、丸くて、大きくて、重い。", "一は青い。二は赤い。"),
        ("a\n\nOne is. Two is so. Three is not so.", "a\n\nOne is. Two is so."),
        ("price;1\nprice;22\nprice;333333333333", "price;1\nprice;22"),
        ("Two thousand threehundred and four", None),
    ],
)
def test_a_text_is_cut_after_a_paragraph_a_line_or_a_sentence(text, left, monkeypatch):
    monkeypatch.setattr(tools, "MOST_RESULT_CHARS", 22)
    found = read(text)
    assert [item.text for item in found.evidence] == ([left] if left else [])
    (problem,) = found.problems
    assert problem.part == "evidence"
    assert ("cut: 1" in problem.message) == bool(left)
    assert ("left out: 1" in problem.message) == (left is None)


@pytest.mark.parametrize(
    "contents",
    [
        ["Open daily.", "x" * 100_001],
        [json.dumps([{"title": "x" * 2_001, "text": "A pool."}, {"text": "Open daily."}])],
    ],
)
def test_a_result_that_is_too_long_does_not_hide_the_others(contents):
    found = read(*contents)
    assert [item.text for item in found.evidence] == ["Open daily."]
    assert found.problems


def test_the_newest_results_are_read():
    found = read(*(f"Text {n}." for n in range(1, 21)))
    assert [item.text for item in found.evidence] == [f"Text {n}." for n in range(20, 4, -1)]
    assert found.problems
    assert read("One.", "Two.").problems == ()


async def test_the_answer_reports_what_was_not_read():
    found = read("The Kestrel has 42 rooms. " + "x" * 100_000)
    question, said = "How many rooms does the Kestrel have?", "The Kestrel has 42 rooms."
    with scripted_guard(retriever=lambda question: []) as guard:
        for mode in (EvidenceMode.GIVEN, EvidenceMode.BOTH):
            case = await case_of(guard, question, found, mode)
            answer = await case.check(guard, said, guard.config.policy)
            assert set(found.problems) <= set(answer.errors)
        assert not (await case_of(guard, question, found, EvidenceMode.GRAPH)).problems
        nothing = read("x" * 100_001)
        assert nothing.sources == ()
        assert (await case_of(guard, question, nothing, EvidenceMode.GIVEN)).problems


@pytest.mark.parametrize(
    "content",
    [
        json.dumps([{"name": f"Room {n}", "beds": 2} for n in range(5_000)]),
        json.dumps({"columns": ["name", "beds"], "rows": [[f"Room {n}", 2] for n in range(5_000)]}),
        [("Room", 2)] * 5_000,
    ],
    ids=["objects", "columns", "tuples"],
)
def test_no_more_of_a_long_table_is_built_than_fits(content, monkeypatch):
    made = []
    triple = tables.Triple
    monkeypatch.setattr(tables, "Triple", lambda *a, **k: made.append(1) or triple(*a, **k))
    monkeypatch.setattr(tools, "MOST_RESULT_CHARS", 1_000)
    found = read(content)
    assert 50 <= len(made) < 150
    assert f"left out: {5_000 - len(found.evidence)}" in found.problems[0].message


def test_a_long_markdown_table_is_a_text_that_is_cut():
    (held,) = read("| name | beds |\n|-|-|\n" + "| Room | 2 |\n" * 20_000).evidence
    assert isinstance(held, Passage)
    assert len(held.text) <= 100_000


def test_reading_stops_at_the_bound(monkeypatch):
    monkeypatch.setattr(tools, "MOST_CELLS", 10)
    items = iter([f"Text {n}." for n in range(100)])
    result = ToolResult(None, documents=(Passage(text=text) for text in items))
    found = evidence_of_tools([result], EvidenceSettings())
    assert (len(found.evidence), found.sources) == (10, (Source.TOOLS,))
    assert found.problems
    assert len(list(items)) == 89


@pytest.mark.parametrize(
    "request_",
    [
        {"groundingSources": ["a"] * 11},
        *(
            {"messages": [{"role": "user", "content": content}]}
            for content in (
                [{"type": "grounding_source", "text": "a"}] * 11,
                [{"groundingSources": ["a"] * 11}],
                [{"type": "document", "source": {"type": "content", "content": ["a"] * 11}}],
                "<c>a</c>" * 11,
            )
        ),
    ],
    ids=["body", "parts", "sources in a part", "blocks", "marked"],
)
def test_sources_in_requests_are_bounded(request_, monkeypatch):
    monkeypatch.setattr(tables, "MOST_CELLS", 10)
    with pytest.raises(InputError):
        request_evidence(request_, RequestField(), EvidenceSettings(marks=("<c>", "</c>")))
