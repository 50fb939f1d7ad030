"""Files of tables as programs of all countries write them."""

from __future__ import annotations

import io
from datetime import timedelta

import pytest

from guardrail import InputError
from guardrail.core.rows import cell_text, read_rows

ROWS = [{"name": "Fjell 3", "price": "2490"}, {"name": "Zoë", "price": "17"}]
TEXT = "name,price\nFjell 3,2490\nZoë,17\n"


def rows(data: str | bytes, kind: str = "csv") -> list[dict[str, object]]:
    encoded = data.encode() if isinstance(data, str) else data
    return [row for _, row in read_rows(io.BytesIO(encoded), kind, "bikes.csv")]


@pytest.mark.parametrize("mark", [",", ";", "\t", "|"])
@pytest.mark.parametrize("above", ["", "\n\n", ";;;\n", "\ufeff"])
def test_the_separator_is_found(mark: str, above: str) -> None:
    assert rows(above + TEXT.replace(",", mark)) == ROWS


def test_the_separator_is_the_one_by_which_all_lines_have_as_many_cells() -> None:
    assert rows("name;price, EUR;note\nFjell;2,50;a, b\n") == [
        {"name": "Fjell", "price, EUR": "2,50", "note": "a, b"}
    ]
    assert rows('name,note\nFjell,"a;b|c"\nTarn,d;e\n')[0] == {"name": "Fjell", "note": "a;b|c"}


def test_a_first_line_names_the_separator() -> None:
    assert rows("sep=:\n" + TEXT.replace(",", ":")) == ROWS
    assert rows('"sep=;"\r\n' + TEXT.replace(",", ";")) == ROWS


@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "cp1252"]
)
def test_the_encoding_is_found(encoding: str) -> None:
    assert rows(TEXT.encode(encoding)) == ROWS


def test_json_lines_of_utf_16_are_read() -> None:
    assert rows('{"name": "Zoë"}\n'.encode("utf-16"), "jsonl") == [{"name": "Zoë"}]


@pytest.mark.parametrize(
    "data",
    ["name,city\nИван,Москва\n".encode("cp1251"), "name,city\nÅsa,Malmö".encode()[:-1] + b",x\n"],
)
def test_an_encoding_that_cannot_be_told_is_refused(data: bytes) -> None:
    with pytest.raises(InputError, match="save it as UTF-8"):
        rows(data)


@pytest.mark.parametrize(
    ("data", "likely"), [("name:price\nFjell:2490\n", "':'"), ("name\nFjell\n", "comma")]
)
def test_one_column_is_an_error_that_names_the_likely_separator(data: str, likely: str) -> None:
    with pytest.raises(InputError, match=f"one column.*{likely}"):
        rows(data)


def test_an_error_names_the_line_of_the_file() -> None:
    with pytest.raises(InputError, match="line 5"):
        rows("\n\nname,price\nFjell,1\nTarn,1,2\n")


@pytest.mark.parametrize("missing", ["NaN", "NULL", "n/a", "#N/A", " ", "#DIV/0!", float("nan")])
def test_a_cell_marked_as_missing_is_none(missing: object) -> None:
    assert cell_text(missing) is None


@pytest.mark.parametrize(
    ("cell", "text"),
    [
        ("None", "None"),
        ("NA", "NA"),
        (True, "true"),
        (2490.0, "2490"),
        (timedelta(hours=2, minutes=30), "2.5 hours"),
        (timedelta(hours=2, minutes=20), "140 minutes"),
        (timedelta(seconds=5), "5 seconds"),
    ],
)
def test_a_cell_is_written_as_people_write_it(cell: object, text: str) -> None:
    assert cell_text(cell) == text
