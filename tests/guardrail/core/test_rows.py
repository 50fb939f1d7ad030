"""Rows of CSV, TSV and JSON lines; packed files."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
from datetime import timedelta

import pytest

from guardrail import InputError
from guardrail.core import rows as reading
from guardrail.core.rows import bounded_lines, cell_text, is_cut, read_rows, unpacked

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
    assert rows("\nsep=;\n\n" + TEXT.replace(",", ";")) == ROWS


@pytest.mark.parametrize(
    "text",
    [
        "| name | price |\n|---|---|\n| Fjell | 2,490 |\n| Tarn |  |\n",
        "| name | price |\n|:--- | ---:|\n| Fjell | 2,490 |\n| Tarn | |\n\n",
        "name | price\n--- | ---\nFjell | 2,490\nTarn | \n",
    ],
)
def test_a_markdown_table_is_read(text: str) -> None:
    cells = [{name.strip(): cell_text(cell) for name, cell in row.items()} for row in rows(text)]
    assert cells == [{"name": "Fjell", "price": "2,490"}, {"name": "Tarn", "price": None}]


def test_a_row_of_dashes_is_no_rule_of_a_markdown_table() -> None:
    assert rows("name,price\n-,-\n") == [{"name": "-", "price": "-"}]
    assert len(rows("name|price\n-|5\n")) == 1


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("Price list 2026\nname,price\nFjell,2490\nTarn,1990\n", True),
        ("Price list 2026\n\nname;price\nFjell;2490\nTarn;1990\n", True),
        ("Price list, 2026\nname,price,weight\nFjell,2490,17\n", True),
        ("Price list 2026,,\nname,price,weight\nFjell,2490,17\n", True),
        ("name\nFjell\nTarn\n", False),
        ("name,price\nFjell,2490\nTarn,1990,5\n", False),
    ],
)
def test_an_error_names_a_title_above_the_columns(text: str, title: bool) -> None:
    with pytest.raises(InputError) as error:
        rows(text)
    assert ("title" in str(error.value)) is title


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
def test_an_unknown_encoding_is_refused(data: bytes) -> None:
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


PACKINGS = {"gz": gzip, "bz2": bz2, "xz": lzma}


def opened(packing, data):
    stream = PACKINGS[packing].open(io.BytesIO(data))
    return unpacked(stream, f"a.{packing}", len(data), InputError)


@pytest.mark.parametrize("packing", PACKINGS)
def test_what_unpacks_to_many_times_its_size_is_refused(packing, monkeypatch):
    monkeypatch.setattr(reading, "LEAST_REFUSED", 1 << 20)
    packed = PACKINGS[packing].compress(b"\n" * (32 << 20))
    with opened(packing, packed) as stream, pytest.raises(InputError, match="times its size"):
        list(iter(lambda: stream.read(1 << 16), b""))


@pytest.mark.parametrize("packing", PACKINGS)
def test_what_is_read_again_counts_once(packing, monkeypatch):
    monkeypatch.setattr(reading, "LEAST_REFUSED", 2_000)
    monkeypatch.setattr(reading, "MOST_UNPACKED", 1)
    data = bytes(range(200)) * 8
    with opened(packing, PACKINGS[packing].compress(data)) as stream:
        for _ in range(5):
            stream.seek(100)
            assert stream.read() == data[100:]


@pytest.mark.parametrize("packing", ["gz", "xz"])
def test_a_truncated_file_is_reported(packing):
    packed = PACKINGS[packing].compress(bytes(range(256)) * 1_000)[:-20]
    with opened(packing, packed) as stream, pytest.raises(InputError, match="cut short"):
        stream.read()


@pytest.mark.parametrize("kind", [str, bytes])
def test_of_a_line_that_is_too_long_the_beginning_is_read(kind, monkeypatch):
    monkeypatch.setattr(reading, "LONGEST_LINE", 10)
    text = "a\n" + "b" * 10 + "\n" + "c" * 35 + "\nd"
    reader = io.StringIO(text) if kind is str else io.BytesIO(text.encode())
    lines = list(bounded_lines(reader))
    assert [len(line) for line in lines] == [2, 11, 11, 1]
    assert [is_cut(line.rstrip()) for line in lines] == [False, False, True, False]
