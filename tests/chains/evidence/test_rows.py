"""Rows and documents in requests, and rows that the tools of agents return."""

import json
from base64 import b64encode

import pytest

from chains.evidence import evidence_items
from chains.evidence.tools import result_evidence
from guardrail import Guardrail, GuardrailConfig, InputError, Passage, Table
from tests.guardrail.core.documents import made

BIKES = [{"name": "Fjell 3", "price_eur": 2490}, {"name": "Tarn City", "price_eur": 1790}]
HANDED = Table(BIKES, name="bikes").triples


@pytest.mark.parametrize(
    "table",
    [
        {"name": "bikes", "rows": BIKES},
        {"name": "bikes", "subject": "name", "rows": BIKES},
        {
            "name": "bikes",
            "columns": ["name", "price_eur"],
            "rows": [["Fjell 3", 2490], ["Tarn City", 1790]],
        },
    ],
)
def test_a_table_in_a_request(table):
    assert evidence_items([{"table": table}]) == HANDED
    assert evidence_items([Table(BIKES, name="bikes")]) == HANDED
    assert [item.text for item in HANDED] == [
        "Fjell 3, price_eur: 2490.",
        "Tarn City, price_eur: 1790.",
    ]


def test_a_document_in_a_request():
    data = b64encode(made.pdf()).decode()
    for written in (data, f"data:application/pdf;base64,{data}"):
        found = evidence_items([{"file": {"filename": "handbook.pdf", "file_data": written}}])
        assert [item.id for item in found if isinstance(item, Passage)] == [
            "handbook.pdf, p. 1, Prices",
            "handbook.pdf, p. 2, Returns",
            "handbook.pdf, p. 2, Warranty",
        ]


def test_a_table_s_file_in_a_request_is_a_table():
    data = b64encode(b"name,price_eur\nFjell 3,2490\nTarn City,1790\n").decode()
    assert evidence_items([{"file": {"filename": "bikes.csv", "file_data": data}}]) == HANDED
    lines = b64encode("\n".join(map(json.dumps, BIKES)).encode()).decode()
    assert evidence_items([{"file": {"filename": "bikes.jsonl", "file_data": lines}}]) == HANDED


@pytest.mark.parametrize(
    ("item", "message"),
    [
        ({"table": BIKES}, r"evidence\[0\]\.table must be an object with 'rows', not list"),
        ({"table": {"row": BIKES}}, "no field 'row'; did you mean 'rows'"),
        ({"table": {"rows": {}}}, r"table\.rows must be a list of objects"),
        ({"table": {"rows": [1]}}, r"table: rows\[0\] must be a dict"),
        ({"table": {"rows": [[1]], "columns": ["a", "b"]}}, r"rows\[0\] must be a list of 2 cells"),
        ({"table": {"rows": [[1]], "columns": 3}}, "columns must be a list of names"),
        ({"table": {"rows": [], "name": 3}}, r"table\.name must be a text, not int"),
        ({"table": {"rows": BIKES, "subject": "sku"}}, "no column 'sku'"),
        ({"table": {"rows": BIKES}, "text": "a"}, "more than 'table'"),
        ({"file": "a.pdf"}, "must be an object with 'filename' and 'file_data'"),
        ({"file": {"filename": "a.pdf"}}, "must have 'filename' and 'file_data'"),
        ({"file": {"filename": "a.pdf", "file_data": "§"}}, "is not base 64"),
        ({"file": {"filename": "a.pdf", "file_data": "AAAA"}}, "a.pdf is no PDF"),
    ],
)
def test_what_is_wrong_is_named(item, message):
    with pytest.raises(InputError, match=message):
        evidence_items([item])


@pytest.mark.parametrize(
    "content",
    [
        BIKES,
        '[{"name": "Fjell 3", "price_eur": 2490}, {"name": "Tarn City", "price_eur": 1790}]',
        {"columns": ["name", "price_eur"], "rows": [["Fjell 3", 2490], ["Tarn City", 1790]]},
        {"columns": ["name", "price_eur"], "data": [["Fjell 3", 2490], ["Tarn City", 1790]]},
        {
            "columns": [{"name": "name", "type": "TEXT"}, {"name": "price_eur", "type": "INT"}],
            "rows": [["Fjell 3", 2490], ["Tarn City", 1790]],
        },
        {"results": BIKES},
        {"bikes": BIKES, "took_ms": 3},
        str(BIKES).replace("2490", "Decimal('2490')"),
        "| name | price_eur |\n|---|---|\n| Fjell 3 | 2490 |\n| Tarn City | 1790 |",
    ],
)
def test_what_an_agent_s_query_returned_is_read_as_rows(content):
    found = [item for item in result_evidence(content, "bikes") if item.property != "took_ms"]
    assert tuple(found) == HANDED


def test_rows_without_names_of_columns():
    """As ``QuerySQLDatabaseTool`` of LangChain returns them."""
    told = "[('Fjell 3', datetime.date(2024, 3, 1)), ('Tarn City', datetime.date(2025, 1, 10))]"
    assert [item.text for item in result_evidence(told, "sql_db_query")] == [
        "Fjell 3, value: 2024-03-01.",
        "Tarn City, value: 2025-01-10.",
    ]
    wide = "[(1, 'a', None), (2, 'b', datetime.datetime(2024, 3, 1, 14, 30))]"
    assert [item.text for item in result_evidence(wide)] == [
        "a, value 1: 1.",
        "b, value 1: 2.",
        "b, value 3: 2024-03-01 14:30:00.",
    ]


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
    found = result_evidence(f"[('Fjell 3', {moment}), ('Tarn City', {moment})]")
    assert {item.value for item in found} == {f"2024-03-01 00:30:00{written}"}


@pytest.mark.parametrize(
    "text",
    [
        "[(open('/etc/passwd'), 1), (2, 3)]",
        "[(1, 2",
        "[(" * 5_000,
        "| a |\nand more",
        "[(x, y)]",
        *(
            f"[(1, {value}), (2, {value})]"
            for value in (
                "datetime.date(2024, 2, 30)",
                "datetime.date(10**9, 1, 1)",
                "datetime.date('a', 1, 1)",
                "datetime.datetime(2024, 1, 1, 0, 0, tzinfo=open('/etc/passwd'))",
                "datetime.datetime(2024, 1, 1, 0, 0, tzinfo=ZoneInfo('Nowhere/There'))",
                "datetime.datetime(2024, 1, 1, 0, 0, tzinfo=ZoneInfo())",
                "datetime.datetime(2024, 1, 1, 0, 0, tzinfo=timezone(timedelta(days=9999999999)))",
            )
        ),
    ],
)
def test_a_text_that_only_looks_like_rows_stays_a_text(text):
    assert [*result_evidence(text)] == [Passage(text=text)]


def test_documents_are_no_rows():
    found = [*result_evidence([{"title": "A", "text": "One."}, {"title": "B", "text": "Two."}])]
    assert found == [Passage("One.", title="A"), Passage("Two.", title="B")]


def test_an_answer_is_checked_by_what_the_query_returned():
    evidence = [*result_evidence([*BIKES, {"name": "Fjell Cargo", "price_eur": 3890}], "bikes")]
    with Guardrail(GuardrailConfig(graph="none")) as guard:
        answer = guard.check(
            "What do they cost?",
            "The price of the Fjell Cargo is 3,890 euros. "
            "The price of the Fjell Cargo is 3,990 euros.",
            evidence=evidence,
        )
    assert [sentence.category for sentence in answer.sentences] == ["supportive", "contradictory"]
