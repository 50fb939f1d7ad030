"""Rows as evidence: from dicts, frames, Arrow, files and queries."""

import sqlite3
import time
from datetime import date, datetime
from decimal import Decimal

import pandas as pd
import pyarrow as pa
import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.orm import Session

from guardrail import (
    Guardrail,
    GuardrailConfig,
    InputError,
    Passage,
    Table,
    Triple,
    evidence_from_sql,
)
from guardrail.core.types import TableRow
from guardrail.sources import tables
from guardrail.sources.items import evidence_of_bytes, evidence_of_files
from guardrail.sources.tables import in_one_notation

BIKES = [
    {"id": 1, "name": "Fjell 3", "price_eur": Decimal("2490.00"), "launched": date(2024, 3, 1)},
    {"id": 2, "name": "Tarn City", "price_eur": Decimal("1790.50"), "launched": None},
]


def facts(table: Table) -> list[tuple[str, str, str]]:
    return [(item.subject, item.property, item.value) for item in table]


def test_a_cell_is_a_fact_that_knows_its_row():
    table = Table(BIKES, name="bikes")
    place = TableRow(table="bikes", number=1)
    assert list(table)[1] == Triple("Fjell 3", "price_eur", "2490.00", row=place)
    assert facts(table) == [
        ("Fjell 3", "id", "1"),
        ("Fjell 3", "price_eur", "2490.00"),
        ("Fjell 3", "launched", "2024-03-01"),
        ("Tarn City", "id", "2"),
        ("Tarn City", "price_eur", "1790.50"),
    ]
    assert (len(table), table.columns) == (2, ("id", "name", "price_eur", "launched"))


def test_a_row_that_version_0_2_wrote_is_read() -> None:
    old = {"table": "bikes", "number": 1, "of": 2, "cells": 3, "table_id": "a"}
    assert TableRow.model_validate(old) == TableRow(table="bikes", number=1)


@pytest.mark.parametrize(
    ("rows", "subject"),
    [
        ([{"place": "Oslo", "n": 1}, {"place": "Bergen", "n": 2}], "Oslo"),
        ([{"place": "Oslo", "n": 1}, {"place": "Oslo", "n": 2}], "shops 1"),
        ([{"n": 1, "id": "A-1"}], "A-1"),
        ([{"Name": "Ann", "place": "Oslo"}], "Ann"),
        ([{"n": 17}], "shops 1"),
        # A column that is called as the rows are comes before codes, but not before a name.
        ([{"code": "A1", "shop": "Oak"}, {"code": "B1", "shop": "Elm"}], "Oak"),
        ([{"id": "A1", "shop name": "Oak"}], "Oak"),
        ([{"code": "A1", "shop": "Oak"}, {"code": "B1", "shop": "Oak"}], "A1"),
        ([{"shop": "Oak", "title": "Best shop"}], "Best shop"),
    ],
)
def test_the_subject_column_is_inferred(rows, subject):
    assert next(iter(Table(rows, name="shops"))).subject == subject


def test_cells_are_written_as_they_are_read():
    row = {
        "name": "A", "yes": True, "float": 0.1 + 0.2, "whole": 3.0, "large": 1e17, "none": None,
        "nan": float("nan"), "tags": ["a", "b"], "at": datetime(2024, 3, 1, 14, 30),
        "bytes": b"\x00", "nested": {"a": 1}, "blank": " ",
    }  # fmt: skip
    assert [(p, v) for _, p, v in facts(Table([row]))] == [
        ("yes", "true"), ("float", "0.3"), ("whole", "3"), ("large", "100000000000000000"),
        ("tags", "a"), ("tags", "b"), ("at", "2024-03-01 14:30:00"), ("nested a", "1"),
    ]  # fmt: skip


def test_figures_of_any_length_are_cells():
    long = 10**5_000  # longer than Python writes a whole number by itself
    table = Table([{"name": "A", "seeds": long, "nested": [{"seeds": long}]}])
    assert facts(table) == [("A", "seeds", "1" + "0" * 5_000)]


def test_an_amount_has_the_unit_of_its_object_or_row():
    price = {"amount": Decimal("2.50"), "currency": "EUR"}
    for rows in (pa.table({"name": ["A"], "price": [price]}), [{"name": "A", "price": price}]):
        assert facts(Table(rows)) == [("A", "price", "2.50 EUR")]
    frame = pd.DataFrame({"name": ["A", "B"], "price": [2, 3], "currency": ["EUR", "USD"]})
    assert [value for _, name, value in facts(Table(frame)) if name == "price"] == [
        "2 EUR", "3 USD",
    ]  # fmt: skip


@pytest.mark.parametrize("line", ['"place": "Oslo", "trip_id": 7', '"trip_id": 7, "place": "Oslo"'])
def test_the_keys_of_json_lines_have_no_order(line):
    data = f'{{{line}}}\n{{"trip_id": 8, "place": "Bergen"}}\n'.encode()
    found = {*facts(Table.from_bytes(data, "rows.jsonl"))}
    assert found == {("7", "place", "Oslo"), ("8", "place", "Bergen")}


def test_pandas_and_arrow():
    frame = pd.DataFrame(
        {"name": ["A", "B"], "seats": [4, None], "day": pd.to_datetime(["2024-01-02", None])}
    )
    assert facts(Table(frame)) == [
        ("A", "seats", "4"), ("A", "day", "2024-01-02"), ("B", "name", "B"),
    ]  # fmt: skip
    table = pa.table({"name": ["A"], "price": [Decimal("2.50")], "day": [date(2024, 1, 2)]})
    assert facts(Table(table)) == [("A", "price", "2.50"), ("A", "day", "2024-01-02")]


def test_files(tmp_path):
    (tmp_path / "bikes.csv").write_text('name,price\nFjell 3,"2,490 euros"\n')
    table = Table.from_file(tmp_path / "bikes.csv")
    assert (table.name, facts(table)) == ("bikes", [("Fjell 3", "price", "2,490 euros")])
    (tmp_path / "bad.csv").write_text("name,price\na,b,c\n")
    with pytest.raises(InputError, match="line 2: more values than columns"):
        Table.from_file(tmp_path / "bad.csv")
    with pytest.raises(InputError, match="unsupported"):
        Table.from_bytes(b"", "bikes.xlsx")


def test_no_two_columns_have_one_name(connection):
    engine = create_engine("sqlite://", creator=lambda: connection)
    twice = "select name, price_eur, price_eur from bikes"
    with engine.connect() as opened:
        for rows in (
            pd.DataFrame([["A", 1, 2]], columns=["name", "price_eur", "price_eur"]),
            pa.table([["A"], [1], [2]], names=["name", "price_eur", "price_eur"]),
            connection.execute(twice),
            opened.execute(text(twice)),
        ):
            with pytest.raises(InputError, match="two columns are called 'price_eur'"):
                Table(rows)


def test_columns_without_a_name_hold_nothing(tmp_path):
    """As spreadsheets write them behind the last one."""
    file = tmp_path / "bikes.csv"
    file.write_text("name;price;;\nFjell 3;2490;;\nTarn City\n")
    assert facts(Table.from_file(file)) == [
        ("Fjell 3", "price", "2490"),
        ("Tarn City", "name", "Tarn City"),
    ]
    file.write_text("name;price;;\nFjell 3;2490;;\nTarn City;1790;new;old\n")
    with pytest.raises(InputError, match="line 3: a value of several columns without a name"):
        Table.from_file(file)


@pytest.mark.parametrize("name", ["bikes.csv", "bikes.tsv", "bikes.jsonl"])
def test_a_file_without_rows_is_an_input_error(tmp_path, name):
    head = "" if name.endswith("jsonl") else "name\n"
    (tmp_path / name).write_text(head)
    with pytest.raises(InputError, match=f"{name} holds no rows"):
        evidence_of_files([tmp_path / name])
    with pytest.raises(InputError, match=f"^{name} holds no rows"):
        evidence_of_bytes(head.encode(), name)
    assert len(Table.from_file(tmp_path / name)) == 0


@pytest.fixture
def connection():
    made = sqlite3.connect(":memory:")
    made.execute("create table bikes (name text, price_eur numeric)")
    made.executemany("insert into bikes values (?, ?)", [("Fjell 3", 2490), ("Tarn City", 1790)])
    made.commit()
    yield made
    made.close()


def test_a_query_and_a_cursor(connection):
    query = "select * from bikes where price_eur > ?"
    dear = evidence_from_sql(connection, query, (2000,), name="bikes")
    assert (dear.name, facts(dear)) == ("bikes", [("Fjell 3", "price_eur", "2490")])
    assert len(Table(connection.execute("select * from bikes"))) == 2


def by_column(cursor, row):
    return {column[0]: cell for column, cell in zip(cursor.description, row, strict=True)}


class DriverRow:
    """A row that is no registered sequence, as those of pyodbc."""

    def __init__(self, cursor, row):
        self.row = row

    def __iter__(self):
        return iter(self.row)


@pytest.mark.parametrize("factory", [by_column, DriverRow, sqlite3.Row])
def test_rows_as_a_driver_gives_them(connection, factory):
    """As ``dict_row`` of psycopg, ``DictCursor`` of PyMySQL and others do."""
    expected = [("Fjell 3", "price_eur", "2490"), ("Tarn City", "price_eur", "1790")]
    query = "select price_eur, name from bikes"
    connection.row_factory = factory
    assert facts(evidence_from_sql(connection, query)) == expected
    assert facts(Table(connection.execute(query))) == expected


@pytest.mark.parametrize("row", [{"a": 1}, {"a": 1, "c": 2}, {1, 2}, "ab", b"ab", 7, [1]])
def test_a_row_that_does_not_have_the_columns(row):
    said = r"rows\[1\] must be a list of 2 cells, or a dict by column"
    with pytest.raises(InputError, match=said):
        Table.from_columns(["a", "b"], [[1, 2], row])


def test_sqlalchemy(connection):
    engine = create_engine("sqlite://", creator=lambda: connection)
    query = "select name, price_eur from bikes where name = :name"
    with engine.connect() as opened:
        found = evidence_from_sql(opened, query, {"name": "Tarn City"})
        assert facts(found) == [("Tarn City", "price_eur", "1790")]
        assert facts(Table(opened.execute(text(query), {"name": "Tarn City"}))) == facts(found)
        with pytest.raises(InputError, match="takes parameters by name"):
            evidence_from_sql(opened, query, ("Tarn City",))
        with Session(opened) as session:
            assert facts(evidence_from_sql(session, query, {"name": "Tarn City"})) == facts(found)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("select * from boats", "the query failed: no such table: boats"),
        ("update bikes set price_eur = 1", "gives no rows"),
    ],
)
def test_a_query_that_gives_no_rows(connection, query, message):
    with pytest.raises(InputError, match=message):
        evidence_from_sql(connection, query)


def test_a_result_that_is_too_long_is_no_part_of_one(connection, monkeypatch):
    monkeypatch.setattr(tables, "MAX_ROWS", 1)
    with pytest.raises(InputError, match="more than 1 rows"):
        evidence_from_sql(connection, "select * from bikes")


@pytest.mark.parametrize("rows", ["a,b", {"a": 1}, 7, ["a"], [("a", 1)]])
def test_what_is_no_row(rows):
    with pytest.raises(InputError, match="must be"):
        Table(rows)


def test_a_column_that_is_not_there():
    with pytest.raises(InputError, match="no column 'sku'; known: id, name, price_eur, launched"):
        Table(BIKES, subject="sku")
    with pytest.raises(InputError, match="no column 'nmae'; did you mean 'name'"):
        Table(BIKES, subject="nmae")


def test_an_answer_is_judged_by_rows_and_texts():
    evidence = [Table(BIKES, name="bikes"), Passage("Both are green.")]
    with Guardrail(GuardrailConfig(graph="none")) as guard:
        answer = guard.check(
            "What does the Tarn City cost, and since when is there the Fjell 3?",
            "The Tarn City has a price of 1,970.50 euros. "
            "The Fjell 3 was launched on 1 March 2024.",
            evidence=evidence,
        )
    wrong, right = answer.sentences
    assert wrong.against == ("Tarn City, price_eur: 1790.50.",)
    assert [citation.value for citation in right.citations] == ["2024-03-01"]


def test_many_columns_take_linear_time():
    columns = [f"c{number}" for number in range(40_000)]
    begin = time.process_time()
    Table([{column: 1} for column in columns])
    Table.from_columns(columns, [])
    assert time.process_time() - begin < 10  # s; where each looks through all it is a hundred


@pytest.mark.parametrize(
    ("cells", "written"),
    [
        (["17,5", "15,2"], ["17.5", "15.2"]),
        (["2.490,00 €", "1.790,00 €"], ["2490.00 €", "1790.00 €"]),
        (["€2.490", "€17,50"], ["€2490", "€17.50"]),
        (["2 490", "1\u202f790"], ["2490", "1790"]),
        (["1.75E+01", "1.5e1"], ["17.5", "15"]),
        (["45%", "0.55"], ["45%", "55%"]),
        (["(250)", "300"], ["-250", "300"]),
        (["$(250)", "€ (12.50)", "$300"], ["$-250", "€ -12.50", "$300"]),
        (["(250) €", "300 €"], ["-250 €", "300 €"]),
        (["1'000", "2'500.50"], ["1000", "2500.50"]),
        # what may be something else stays
        *(
            (cells, cells)
            for cells in (
                ["2,490", "1,790"],
                ["1,5", "1.5"],
                ["(2019)", "(2020)"],
                ["$(250)", "$(300)"],
                ["555 123 456", "111 222 333"],
                ["(250)", "see note"],
                ["2024-01-01", "10:30"],
                ["007", "1,234"],
            )
        ),
    ],
)
def test_a_column_of_numbers_gets_one_notation(cells: list[str], written: list[str]) -> None:
    assert in_one_notation(cells) == written


def test_an_answer_is_judged_by_the_value_that_was_meant() -> None:
    bikes = [{"name": "Fjell 3", "weight_kg": "17,5"}, {"name": "Tarn", "weight_kg": "15,2"}]
    answer = Guardrail().check(
        "What do they weigh?",
        "The weight of the Fjell 3 is 17.5 kg. The weight of the Tarn is 152 kg.",
        evidence=Table(bikes, name="bikes"),
    )
    assert [item.category for item in answer.sentences] == ["supportive", "contradictory"]
