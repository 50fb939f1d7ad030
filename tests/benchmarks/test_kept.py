"""Rows on disk of a run that was stopped."""

from pathlib import Path

from benchmarks.kept import kept_lines


def test_a_line_that_a_stop_cut_is_taken_off(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text('{"a": "\u2028"}\n{"b"', encoding="utf-8")
    assert kept_lines(file) == ['{"a": "\u2028"}']
    with file.open("a", encoding="utf-8") as more:
        more.write('{"c": 1}\n')
    assert kept_lines(file) == ['{"a": "\u2028"}', '{"c": 1}']
