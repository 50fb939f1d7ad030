"""Rows on disk of a run that was stopped, and what a judge said in another run."""

from pathlib import Path

from benchmarks.kept import kept_lines
from benchmarks.verdicts.scores import KeptScores
from judges.base import GroundingItem
from tests.guardrail.scripted import Overlap


def test_a_line_that_a_stop_cut_is_taken_off(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text('{"a": "\u2028"}\n{"b"', encoding="utf-8")
    assert kept_lines(file) == ['{"a": "\u2028"}']
    with file.open("a", encoding="utf-8") as more:
        more.write('{"c": 1}\n')
    assert kept_lines(file) == ['{"a": "\u2028"}', '{"c": 1}']


def test_a_judge_is_asked_once_whatever_the_number_of_runs(tmp_path: Path) -> None:
    file, judge = tmp_path / "scores.jsonl", Overlap()
    facts = ("Ada Lovelace was born in London.", "Ada Lovelace wrote a program.")
    items = [GroundingItem(facts, fact, "Who?", (1, 0), True) for fact in facts]
    scores = KeptScores(judge, file).ground([*items, items[0]])
    assert judge.asked == items
    again = KeptScores(judge, file)
    assert again.ground(items) == scores[:2]
    more = GroundingItem(facts, "It rained.")
    again.ground([*items, more])
    assert judge.asked == [*items, more]
    assert len(kept_lines(file)) == 3
