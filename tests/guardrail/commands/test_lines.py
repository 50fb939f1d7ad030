"""JSON lines in, JSON lines out: order, echo of ids, and bad lines that stay alone."""

import json
from collections.abc import Sequence

import pytest

from guardrail.commands.lines import run_lines
from guardrail.core.errors import InputError
from guardrail.core.types import Value
from guardrail.lines import LineJob, Row, json_line


class Number(Row):
    value: int


class Square(Value):
    square: int


def squares(rows: Sequence[Number]) -> list[Square]:
    if any(row.value < 0 for row in rows):
        raise InputError("negative numbers are not squared here")
    return [Square(square=row.value**2) for row in rows]


def results(*lines: str, batch_size: int = 64):
    return list(LineJob(Number, squares, batch_size=batch_size).results(lines))


def test_rows_come_back_in_order_with_their_ids():
    lines = [json.dumps({"id": n, "value": n}) for n in range(10)]
    assert results(*lines, batch_size=3) == [{"id": n, "square": n * n} for n in range(10)]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("{", "line 2: not JSON"),
        ("[" * 100_000, "line 2: not JSON"),
        ("3", "line 2: not a JSON object"),
        ('{"id": "b"}', "line 2: value: Field required"),
        ('{"id": "b", "value": "x"}', "line 2: value: "),
        ('{"id": Infinity, "value": "x"}', "line 2: value: "),
        ('{"id": [1e999], "value": 2}', "line 2: id.str: "),
        (f'{{"id": {"[" * 600}{"]" * 600}, "value": 2}}', "line 2: id.str: "),
    ],
)
def test_a_bad_line_yields_an_error_and_the_others_their_results(line, problem):
    first, bad, last = results('{"id": "a", "value": 2}', line, '{"id": "c", "value": 3}')
    assert (first, last) == ({"id": "a", "square": 4}, {"id": "c", "square": 9})
    assert bad["error"].startswith(problem)
    assert json_line(bad)


def test_a_row_that_fails_in_a_batch_fails_alone():
    found = results('{"id": 1, "value": 1}', '{"id": 2, "value": -1}', '{"id": 3, "value": 3}')
    assert [row.get("square") for row in found] == [1, None, 9]
    assert found[1] == {"id": 2, "error": "negative numbers are not squared here"}


def test_a_fault_of_ours_on_one_row_does_not_end_the_job(caplog):
    def faulty(rows):
        return [Square(square=1 // row.value) for row in rows]

    lines = ('{"id": 1, "value": 1}', '{"id": 2, "value": 0}', '{"id": 3, "value": 1}')
    found = list(LineJob(Number, faulty).results(lines))
    assert [row.get("square") for row in found] == [1, None, 1]
    assert found[1]["error"].startswith("internal fault: ZeroDivisionError")
    assert "ZeroDivisionError" in caplog.text


def test_files_are_read_and_written(tmp_path):
    source, target = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_text('{"id": "ü", "value": 4}\n\n{"id": "\\ud800", "value": 5}\n', "utf-8")
    run_lines(LineJob(Number, squares), str(source), str(target))
    rows = [json.loads(line) for line in target.read_text("utf-8").splitlines()]
    assert [row["square"] for row in rows] == [16, 25]


def test_a_line_without_end_is_refused_and_the_next_one_read(tmp_path, monkeypatch):
    monkeypatch.setattr("guardrail.core.rows.LONGEST_LINE", 24)
    endless = '{"id": "x", "value": ' + "9" * 100 + "}"
    (tmp_path / "in").write_text(f'{endless}\n{{"id": "b", "value": 3}}\n{endless}')
    run_lines(LineJob(Number, squares), str(tmp_path / "in"), str(tmp_path / "out"))
    found = [json.loads(line) for line in (tmp_path / "out").read_text().splitlines()]
    assert [item.get("square") for item in found] == [None, 9, None]
    assert found[2]["error"].startswith("line 3: longer than 24 characters")


def test_failures_and_keys_that_were_not_read_are_reported_at_the_end(tmp_path, capsys):
    source = tmp_path / "in"
    source.write_text('{"value": 1, "gold": 1}\n{"value": -1, "gold": 2}\n{"value": 3}\n')
    run_lines(LineJob(Number, squares), str(source), str(tmp_path / "out"))
    reported = capsys.readouterr().err
    assert "not read: 'gold'" in reported
    assert reported.endswith("1 of 3 lines failed\n")


def test_an_interrupt_reports_the_number_of_written_lines(tmp_path, capsys):
    def interrupted(rows: Sequence[Number]) -> list[Square]:
        if rows[0].value == 2:
            raise KeyboardInterrupt
        return squares(rows)

    (tmp_path / "in").write_text('{"value": 1}\n{"value": 2}\n')
    job = LineJob(Number, interrupted, batch_size=1)
    with pytest.raises(KeyboardInterrupt):
        run_lines(job, str(tmp_path / "in"), str(tmp_path / "out"))
    assert len((tmp_path / "out").read_text().splitlines()) == 1
    assert "stopped; lines written: 1" in capsys.readouterr().err
