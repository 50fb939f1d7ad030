"""Thresholds and weights from readers' feedback."""

import json

import pytest
import typer
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from guardrail.commands.tuning import tune as tune_command
from guardrail.core.errors import InputError
from guardrail.core.types import Action, GuardedAnswer, Score, ScoreCard
from guardrail.log.records import Feedback, Record, open_log
from guardrail.tuning.feedback import Label, read_labels, tune


def record(overall, **scores):
    return Record(
        answer=GuardedAnswer(
            id="a",
            question="q",
            text="t",
            marked="t",
            action=Action.PASS,
            scorecard=ScoreCard(
                overall=Score(value=overall),
                scores={name: Score(value=value) for name, value in scores.items()},
            ),
        )
    )


def labels_of(good, bad):
    return [Label(record=record(value), right=True) for value in good] + [
        Label(record=record(value), right=False) for value in bad
    ]


def test_the_threshold_is_the_lowest_that_keeps_false_passes_down():
    good = [0.5 + n / 40 for n in range(20)]
    bad = [n / 20 for n in range(20)]
    found = tune(labels_of(good, bad), false_pass=0.1)
    # Of 20 wrong answers two may pass: those at 0.90 and 0.95; 0.875 is the next score above 0.85.
    assert found.chosen is not None
    assert found.chosen.threshold == pytest.approx(0.875)
    assert found.chosen.false_pass == pytest.approx(0.1)
    assert found.chosen.pass_right == pytest.approx(0.25)
    assert found.chosen.upper == pytest.approx(0.301, abs=0.001)  # Wilson, 2 of 20
    assert found.toml == "[policy.thresholds]\noverall = 0.8750\n"


scores = st.lists(st.integers(0, 20).map(lambda n: n / 20), min_size=10, max_size=30)


@settings(deadline=None)  # a busy machine is slow at times
@given(scores, scores, st.floats(0, 1))
def test_the_curve_falls_and_the_choice_holds(good, bad, wanted):
    found = tune(labels_of(good, bad), false_pass=wanted)
    rates = [point.false_pass for point in found.curve]
    assert rates == sorted(rates, reverse=True)
    assert (rates[0], rates[-1]) == (max(rates), 0.0)
    assert found.chosen is not None
    assert found.chosen.false_pass <= wanted
    for point in found.curve:
        if point.false_pass <= wanted:
            assert point.pass_right <= found.chosen.pass_right
        if point.threshold > found.chosen.threshold:  # a higher one costs right answers
            assert point.pass_right < found.chosen.pass_right
    pairs = [(g > b) + 0.5 * (g == b) for g in good for b in bad]
    assert found.auc == pytest.approx(sum(pairs) / len(pairs))


def test_too_few_labels_are_told():
    with pytest.raises(InputError, match="3 right and 0 wrong"):
        tune(labels_of([0.1, 0.2, 0.3], []))


def test_labels_come_from_feedback_and_the_command_prints_the_setting(tmp_path):
    path = tmp_path / "log.sqlite"
    log = open_log(path)
    for n in range(24):
        one = record(n / 24)
        log.write_record(one)
        if n >= 12:
            log.write_feedback(Feedback(record_id=one.id, thumb=1))
        if n < 11:
            log.write_feedback(Feedback(record_id=one.id, sentence=0, thumb=1))
            log.write_feedback(Feedback(record_id=one.id, sentence=1, correction="else"))
    assert [label.right for label in read_labels(log)].count(False) == 11
    log.close()
    app = typer.Typer()
    app.command()(tune_command)
    shown = CliRunner().invoke(app, [str(path), "--false-pass", "0"])
    assert "overall = 0.5000" in shown.stdout
    as_json = CliRunner().invoke(app, [str(path), "--json", "--false-pass", "0"])
    assert json.loads(as_json.stdout)["chosen"]["threshold"] == 0.5
