"""A company's table is a graph."""

from __future__ import annotations

import gzip
import io
from pathlib import Path

import pytest

from guardrail.core.errors import GuardrailError
from kg import TableColumns, load_graph, open_graph
from kg.tables import triples_of_table

STAFF = (
    "id,name,start_date,salary,remote,office,phone\n"
    '1,"Lovelace, Ada",2019-04-01,5200.50,true,b 7,0451\n'
    "2,Grace Hopper,2020-01-15,6100,FALSE,,\n"
)
OFFICES = (
    '{"code": "b 7", "name": "Harbour House", "floors": 3, "tags": ["quiet", "old"], '
    '"rent": {"amount": 900, "currency": "EUR"}, "gate": {"open": "07:00"}}\n'
)


def texts(graph_path: Path, label: str) -> list[str]:
    graph = open_graph(graph_path)
    [entity] = graph.find([label])[0]
    return [triple.text for triple in graph.subgraphs([entity.id])[0].triples]


@pytest.mark.parametrize("packed", [False, True])
def test_columns_become_properties_and_keep_their_type(tmp_path: Path, packed: bool) -> None:
    source = tmp_path / ("staff.csv.gz" if packed else "staff.csv")
    source.write_bytes(gzip.compress(STAFF.encode()) if packed else STAFF.encode())
    table = TableColumns(subject="id", label="name", links={"office": "offices"})
    report = load_graph(source, tmp_path / "g", table=table)
    offices = tmp_path / "offices.jsonl"
    offices.write_text(OFFICES)
    load_graph(offices, tmp_path / "g", table=TableColumns(subject="code", label="name"))
    assert report.unmatched == {"office": "urn:table:offices:b%207"}  # not loaded yet
    assert report.added == 2 + 5 + 5 + 3  # names, names of columns, values of each row
    assert texts(tmp_path / "g", "Lovelace, Ada") == [
        "Lovelace, Ada, office: Harbour House.",
        "Lovelace, Ada, phone: 0451.",
        "Lovelace, Ada, remote: true.",
        "Lovelace, Ada, salary: 5200.50.",
        "Lovelace, Ada, start date: 2019-04-01.",
    ]
    assert {
        "Harbour House, tags: old.",
        "Harbour House, rent: 900 EUR.",
        "Harbour House, gate open: 07:00.",
    } <= {*texts(tmp_path / "g", "Harbour House")}
    types = open_graph(tmp_path / "g").query(
        "SELECT ?p (DATATYPE(?v) AS ?t) { <urn:table:staff:1> ?p ?v FILTER(ISLITERAL(?v)) }"
    )
    found = {str(row[0]).rsplit(":", 1)[1]: str(row[1]).rsplit("#", 1)[1] for row in types.rows}
    assert found["salary"] == "string"  # as a number it would be shown as 5200.5
    assert found["remote"] == "boolean"
    assert found["start_date"] == "date"
    assert found["phone"] == "string"  # a leading zero is no number's


@pytest.mark.parametrize(
    ("cell", "type_"),
    [
        *(("5200", "integer"), ("-3", "integer"), ("0", "integer")),
        *(("5200.05", "decimal"), ("-0.5", "decimal"), ("0.125", "decimal")),
        *(("5200.50", "string"), ("2.10", "string"), ("3.0", "string"), ("-0", "string")),
        *(("+49123", "string"), ("+2.5", "string"), ("007", "string"), ("00.5", "string")),
    ],
)
def test_numbers_keep_their_notation(tmp_path: Path, cell: str, type_: str) -> None:
    (tmp_path / "a.csv").write_text(f"id,figure\nada,{cell}\n")
    load_graph(tmp_path / "a.csv", tmp_path / "g", table=TableColumns(subject="id"))
    assert texts(tmp_path / "g", "ada") == [f"ada, figure: {cell}."]
    query = "SELECT (DATATYPE(?v) AS ?t) (xsd:decimal(?v) AS ?n) { ?row <urn:column:figure> ?v }"
    [[datatype, number]] = open_graph(tmp_path / "g").query(query).rows
    assert str(datatype).endswith(f"#{type_}")
    assert float(str(number)) == float(cell)


def test_a_table_that_is_loaded_again_says_what_it_says_now(tmp_path: Path) -> None:
    source = tmp_path / "staff.csv"
    table = TableColumns(subject="id", label="name")
    other = tmp_path / "staff.jsonl"
    source.write_text(STAFF)
    other.write_text('{"id": "1", "name": "Lovelace, Ada", "office": "b 7", "desk": 4}')
    load_graph(source, tmp_path / "g", table=table)
    load_graph(other, tmp_path / "g", table=table)
    source.write_text(
        STAFF.replace("0451", "0999").replace("5200.50", "").replace("Grace Hopper", "G. Hopper")
    )
    load_graph(source, tmp_path / "g", table=table)
    assert texts(tmp_path / "g", "Lovelace, Ada") == [
        "Lovelace, Ada, desk: 4.", "Lovelace, Ada, office: b 7.", "Lovelace, Ada, phone: 0999.",
        "Lovelace, Ada, remote: true.", "Lovelace, Ada, start date: 2019-04-01.",
    ]  # fmt: skip
    graph = open_graph(tmp_path / "g")
    assert [bool(found) for found in graph.find(["G. Hopper", "Grace Hopper"])] == [True, False]
    again = load_graph(source, tmp_path / "g", table=table)
    assert again.added == 0


def test_a_table_without_names_keeps_those_that_are_there(tmp_path: Path) -> None:
    source = tmp_path / "acme.staff.csv"
    source.write_text(STAFF)
    load_graph(source, tmp_path / "g", table=TableColumns(subject="id", label="name"))
    source.write_text("id,salary\n1,7000\n")
    load_graph(source, tmp_path / "g", table=TableColumns(subject="id"))
    assert [text for text in texts(tmp_path / "g", "Lovelace, Ada") if "salary: 7000." in text]
    other = tmp_path / "acme.orders.csv"
    other.write_text("id,name,salary\n1,A chair,none\n")
    load_graph(other, tmp_path / "g", table=TableColumns(subject="id", label="name"))
    assert [text for text in texts(tmp_path / "g", "Lovelace, Ada") if "salary: 7000." in text]
    assert texts(tmp_path / "g", "A chair") == ["A chair, salary: none."]


@pytest.mark.parametrize(
    ("name", "text", "subject", "message"),
    [
        ("a.csv", "id,name\n1,A\n", "key", "no column 'key'; known: id, name"),
        ("a.csv", "id,name\n1,A\n", "nmae", "did you mean 'name'"),
        ("a.csv", "id,name\n,A\n", "id", "line 2: no value of 'id'"),
        ("a.csv", "id,name\n1,A,B\n", "id", "line 2: more values"),
        ("a.csv", "id,name,name\n1,A,B\n", "id", "two columns are called 'name'"),
        ("a.csv", "id\n1\n", None, "--subject"),
        ("a.jsonl", '{"a": 1}\n[]\n', "a", "line 2: not a JSON object"),
    ],
)
def test_a_table_that_does_not_fit(
    tmp_path: Path, name: str, text: str, subject: str | None, message: str
) -> None:
    (tmp_path / name).write_text(text)
    table = TableColumns(subject=subject) if subject else None
    with pytest.raises(GuardrailError, match=message):
        load_graph(tmp_path / name, tmp_path / "g", table=table)
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize(
    "row", [b'{"id": "1\\ud800", "a\\udfff": ["b\\udc00"]}', b'\xef\xbb\xbf{"id": 1}']
)
def test_halves_of_characters_in_a_row_are_left_out(row: bytes) -> None:
    columns = TableColumns(subject="id", name="t")
    triples = b"".join(triples_of_table(io.BytesIO(row), Path("rows.jsonl"), columns))
    assert b"<urn:table:t:1>" in triples
