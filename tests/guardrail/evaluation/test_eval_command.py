"""``guardrail eval`` as CI runs it: table, files, comparison, exit status."""

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner, Result

from guardrail.cli import app

PRICE = ["Fjell 3", "price", "2,490 euros"]
RANGE = "The range of the Fjell 3 is 110 km."
GOOD = {"id": "price", "answer": "The Fjell 3 costs 2,490 euros.", "evidence": [PRICE]}
WRONG = {"id": "price", "answer": "The Fjell 3 costs 2,190 euros.", "evidence": [PRICE]}
AWARD = {
    "id": "award", "question": "Did it win?", "answer": "It won the Golden Spoke award in Lisbon.",
    "evidence": RANGE, "expected": "unsupported",
}  # fmt: skip


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def evaluate(rows: list[object], *arguments: str) -> Result:
    lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    Path("rows.jsonl").write_text("\n".join(lines), "utf-8")
    return CliRunner().invoke(app, ["eval", "rows.jsonl", *arguments])


def test_rows_as_expected_pass() -> None:
    done = evaluate([GOOD, AWARD], "--fail-under", "1", "--json")
    assert done.exit_code == 0, done.output
    summary = json.loads(done.stdout)
    assert summary["verdicts"] == {"supported": 1, "unsupported": 1}
    assert summary["expected"] == {"unsupported: unsupported": 1}
    assert summary["passed"]["value"] == 1.0
    assert summary["passed"]["low"] < 1.0


def test_a_row_that_falls_short_fails_the_run_and_says_why() -> None:
    done = evaluate([WRONG, AWARD], "--fail-under", "0.6", "--junit", "reports/eval.xml")
    assert done.exit_code == 3
    assert "price: 100% of the claims are contradicted, at most 0% may be" in done.stdout
    assert 'contradicted: "The Fjell 3 costs 2,190 euros.", but: ' in done.stdout
    assert "passed: 50.0% [" in done.stdout
    assert "guardrail: 50.0% of the rows pass, below 60.0%" in done.stderr
    (suite,) = ElementTree.parse("reports/eval.xml").getroot()
    assert {name: suite.get(name) for name in ("tests", "failures", "errors")} == {
        "tests": "2", "failures": "1", "errors": "0",
    }  # fmt: skip
    (fault,) = suite.iter("failure")
    assert fault.text is not None
    assert fault.text.endswith("answer: The Fjell 3 costs 2,190 euros.")
    assert evaluate([WRONG, AWARD], "--fail-under", "0.5").exit_code == 0


def test_changes_since_the_last_run_are_printed() -> None:
    run = "runs/now/run.jsonl"  # folders are made
    files = ("--output", run, "--against", run, "--fail-on-worse")
    first = evaluate([GOOD, AWARD], *files)
    assert first.exit_code == 0
    assert f"no run at {run} yet" in first.stdout
    same = evaluate([GOOD, AWARD], *files)
    assert same.exit_code == 0
    assert "since then: +0.0 points [" in same.stdout
    worse = evaluate([WRONG, AWARD], *files)
    assert worse.exit_code == 3
    assert "since then: -50.0 points [" in worse.stdout
    assert "price: supported -> contradicted (changed: answer)" in worse.stdout
    assert "1 rows passed in the last run and do not now" in worse.stderr
    assert evaluate([GOOD, AWARD], *files).exit_code == 0


def test_a_changed_evidence_file_of_the_settings_is_named_as_the_cause() -> None:
    Path("settings.toml").write_text('evidence = ["bikes.csv", "notes.md"]', "utf-8")
    Path("notes.md").write_text("Riders love it.", "utf-8")
    row = {"id": "price", "answer": "The Fjell 3 costs 2,490 euros."}
    files = ("--output", "run.jsonl", "--against", "run.jsonl", "--config", "settings.toml")
    for price in (2490, 2190):
        Path("bikes.csv").write_text(f"name,price_eur\nFjell 3,{price}\n", "utf-8")
        done = evaluate([row], *files)
    assert "price: supported -> contradicted (changed: bikes.csv)" in done.stdout


def test_what_cannot_be_read_is_not_checked_and_does_not_pass() -> None:
    rows = [GOOD, {"id": "odd", "answer": "x", "evidence": [3]}, "{", {"answer": "x", "label": "?"}]
    done = evaluate(rows, "--junit", "eval.xml", "--fail-under", "0.5")
    assert done.exit_code == 3
    assert "evidence[0] must be a text, an object with 'text', 'triple', 'table'" in done.stdout
    assert "line 3: not JSON" in done.stdout
    assert "there is no field 'label'; did you mean 'expected'?" in done.stdout
    assert "4 rows: 3 not checked, 1 supported" in done.stdout
    assert len(list(ElementTree.parse("eval.xml").iter("error"))) == 3


def test_an_expectation_in_other_words_or_unknown() -> None:
    assert evaluate([WRONG | {"expected": "contradicted"}], "--fail-under", "1").exit_code == 0
    assert evaluate([GOOD | {"expected": True}], "--fail-under", "1").exit_code == 0
    reported = evaluate([GOOD | {"expected": "rihgt"}])
    assert "there is no 'rihgt'; known: supported" in reported.stdout


def test_strictness_and_thresholds_of_the_settings_policy_apply() -> None:
    row = {"answer": f"{RANGE} It won the Golden Spoke award in Lisbon.", "evidence": RANGE}
    shares = ("--supported", "0.5", "--fail-under", "1")

    def with_policy(settings: str) -> Result:
        Path("settings.toml").write_text(settings, "utf-8")
        return evaluate([row], *shares, "--config", "settings.toml", "--output", "run.jsonl")

    assert evaluate([row], *shares, "--output", "run.jsonl").exit_code == 0
    below = with_policy('[policy]\nbase = "strict"\nthresholds = {supported_share = 0.75}')
    assert below.exit_code == 3
    assert "supported_share is 0.50, below 0.75" in below.stdout
    expected = evaluate([row | {"expected": "unsupported"}], "--config", "settings.toml")
    assert "passed: 100.0%" in expected.stdout
    with_policy('[policy]\nbase = "strict"\nstrictness = "lenient"')
    (judged,) = map(json.loads, Path("run.jsonl").read_text("utf-8").splitlines())
    assert judged["versions"]["strictness"] == "lenient"
    unscored = with_policy('[policy]\nbase = "strict"\nthresholds = {relevance = 0.5}')
    assert "switch its scorer on" in str(unscored.exception)


def test_an_empty_file_and_a_run_that_is_none_cannot_be_used() -> None:
    assert evaluate([]).exit_code == 1
    Path("run.jsonl").write_text("[]", "utf-8")
    assert evaluate([GOOD], "--against", "run.jsonl").exit_code == 1


@pytest.mark.parametrize("option", ["--output", "--junit"])
def test_an_unwritable_target_is_reported_before_anything_is_judged(option: str) -> None:
    Path("taken").write_text("a file", "utf-8")
    done = evaluate([GOOD], option, "taken/eval", "--config", "no-such-settings.toml")
    assert "cannot make the folder of taken/eval: " in str(done.exception)
