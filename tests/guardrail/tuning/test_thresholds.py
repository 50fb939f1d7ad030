"""Thresholds from labelled answers and from feedback, and the command that writes them."""

import csv
import json
import tomllib
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner, Result

from guardrail import Guardrail, GuardrailConfig, Passage, Triple
from guardrail.cli import app
from guardrail.core.errors import ConfigError, InputError
from guardrail.core.types import (
    Action,
    Grounding,
    GuardedAnswer,
    NLIScores,
    Score,
    ScoreCard,
    Strictness,
    VerdictThresholds,
)
from guardrail.evaluation.rows import read_labelled
from guardrail.intervals import wilson
from guardrail.log.records import Feedback, Record, open_log
from guardrail.tuning.thresholds import Scored, Tuning, tune_labelled, tune_scored
from guardrail.verdict.grounder import Grounder
from judges import registry
from judges.base import GroundingItem, Pair
from judges.service import RememberedGrounding
from tests.guardrail.scripted import Ready


class Percent(Ready):
    """Believes the percentages in a sentence: of support, and of contradiction."""

    name = "percent-1"

    def judge(self, pairs: Sequence[Pair]) -> list[NLIScores]:
        raise AssertionError("it judges in one pass")

    def ground(self, items: Sequence[GroundingItem]) -> list[Grounding]:
        return [_believed(item.sentence) for item in items]


class Unreading(Percent):
    """Cannot read the first word of a sentence that it is more than half sure of."""

    def ground(self, items: Sequence[GroundingItem]) -> list[Grounding]:
        return [
            found.model_copy(update={"unread": ((0, 3),)}) if found.supported > 0.5 else found
            for found in super().ground(items)
        ]


class Deciding(Percent):
    """A second judge, certain of what the evidence calls true."""

    name = "deciding-1"

    def ground(self, items: Sequence[GroundingItem]) -> list[Grounding]:
        shares = [0.98 if "true" in " ".join(item.statements) else 0.01 for item in items]
        return [
            Grounding(supported=share, unsupported=0.99 - share, contradicted=0.01, no_claim=0)
            for share in shares
        ]


def _believed(sentence: str) -> Grounding:
    first, second = (word for word in sentence.rstrip(".").split() if word.startswith("p"))
    support, against = int(first[1:]) / 100, int(second[1:]) / 100
    rest = round(1 - support - against, 4)
    return Grounding(supported=support, unsupported=rest, contradicted=against, no_claim=0)


def row(support: int, label: str, *, against: int = 0, evidence: str = "A note.") -> dict[str, str]:
    sentence = f"She believes it p{support} and doubts p{against}."
    return {"question": "", "sentence": sentence, "evidence": evidence, "label": label}


OFF = frozenset({"typed_values"})
"""The sentences' own numbers are no values of the evidence."""
GOOD = [row(50 + 2 * n, "supported", evidence=f"Note {n}.") for n in range(20)]
BAD = [row(5 * n, "unsupported", evidence=f"Note {n}.") for n in range(20)]
FAR = [row(30 + n, "supported", evidence=f"Far {n}.") for n in range(20)]
NEAR = [row(n, "unsupported", evidence=f"Near {n}.") for n in range(20)]


@pytest.fixture(autouse=True)
def _judge(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry._FACTORIES, "percent", lambda model=None, **options: Percent())


def written(path: Path, rows: Sequence[dict[str, str]], delimiter: str = ",") -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, list(rows[0]), delimiter=delimiter)
        table.writeheader()
        table.writerows(rows)
    return path


def grounder(off: frozenset[str] = frozenset(), judge: Percent | None = None) -> Grounder:
    return Grounder(RememberedGrounding(judge or Percent()), off=off)


def learned(
    tmp_path: Path,
    rows: Sequence[dict[str, str]],
    *,
    false_pass: float | None = 0.05,
    before: VerdictThresholds = Strictness.BALANCED.thresholds,
) -> Tuning:
    labelled = read_labelled(written(tmp_path / "my.csv", rows))
    return tune_labelled(labelled, grounder(OFF), false_pass=false_pass, before=before)


def test_the_lowest_threshold_that_keeps_false_passes_down_is_chosen(tmp_path):
    found = learned(tmp_path, GOOD + BAD, false_pass=0.1)
    # Of the 20 wrong rows two may pass, those at 0.90 and 0.95; 0.86 is next above 0.85.
    assert found.chosen is not None
    assert (found.chosen.threshold, found.chosen.wrong.value) == (0.855, 0.1)
    assert found.chosen.right.value == pytest.approx(2 / 20)  # 0.86 and 0.88
    assert (found.chosen.wrong.low, found.chosen.wrong.high) == pytest.approx(wilson(0.1, 20))
    assert found.settings == {"support": 0.855, "contradiction": 0.65, "removal": 0.75}


def test_a_row_that_a_check_stops_passes_at_no_threshold(tmp_path):
    stopped = {**row(89, "unsupported"), "evidence": "It was in 1950 that she believed it."}
    stopped["sentence"] = "It was in 1951 that she believed it p89 and doubted p0."
    rows = read_labelled(written(tmp_path / "my.csv", [*GOOD, *BAD, stopped]))
    for off, passing in ((frozenset[str](), [2]), (OFF, [3, 2])):
        found = tune_labelled(rows, grounder(off), false_pass=0.05)
        shares = {point.threshold: point.wrong.value for point in found.curve}
        near = [shares[at] for at in (0.885, 0.89, 0.895) if at in shares]
        assert [round(21 * share) for share in near] == passing  # 0.90, 0.95, and the stopped one


def test_no_threshold_changes_a_verdict_that_a_finding_settles(tmp_path):
    quoted = [row(n, "supported", evidence="") for n in range(12)]
    for number, item in enumerate(quoted):
        item["evidence"] = f"Note {number}. {item['sentence']}"
    found = learned(tmp_path, quoted + NEAR, false_pass=None)
    assert found.before == found.after == 1.0
    assert all(point.right.value == 1.0 for point in found.curve if point.threshold <= 1.0)


def test_a_threshold_separates_contradictions_from_lack_of_support(tmp_path):
    against = [row(10, "contradicted", against=30 + n, evidence=f"C {n}.") for n in range(12)]
    lacking = [row(10, "unsupported", against=n, evidence=f"U {n}.") for n in range(12)]
    found = learned(tmp_path, GOOD + against + lacking)
    assert 11 / 90 <= found.settings["contradiction"] < 30 / 90
    assert found.settings["removal"] == 0.75


def test_thresholds_are_learned_if_they_help_on_held_out_rows(tmp_path):
    found = learned(tmp_path, FAR + NEAR, false_pass=None)
    assert (found.before, found.after) == (0.5, 1.0)
    assert 0.19 < found.settings["support"] < 0.30
    good = VerdictThresholds(support=0.25, contradiction=0.6, removal=0.75)
    same = learned(tmp_path, FAR + NEAR, false_pass=None, before=good)
    assert (same.before, same.after, same.settings) == (1.0, 1.0, {})


def test_sentences_that_the_judge_cannot_read_are_no_gain(tmp_path):
    """No threshold makes them pass, so they separate nothing."""
    unread = [row(70 + n, "supported", evidence=f"Far {n}.") for n in range(20)]
    wrong = [row(n // 7, "unsupported", evidence=f"Near {n}.") for n in range(20)]
    rows = read_labelled(written(tmp_path / "my.csv", unread + wrong))
    found = tune_labelled(rows, grounder(OFF, Unreading()))
    assert (found.before, found.after, found.settings) == (0.5, 0.5, {})


def test_the_head_of_a_table_passes_at_any_threshold(tmp_path):
    """Unsupported, it claims nothing."""
    table = "| Bike p30 p0 | Range 5 km |\n|---|---|\n| Fjell p90 p0 | far |"
    right = [{**row(0, "supported", evidence=f"Far {n}."), "sentence": table} for n in range(20)]
    wrong = [row(40, "unsupported", evidence=f"Near {n}.") for n in range(20)]
    rows = read_labelled(written(tmp_path / "my.csv", right + wrong))
    low = VerdictThresholds(support=0.25, contradiction=0.6, removal=0.75)
    found = tune_labelled(rows, grounder(OFF), before=low)
    assert (found.before, found.after) == (0.5, 1.0)
    assert 0.4 < found.settings["support"] < 0.9


def test_the_gain_is_the_engine_s_where_a_second_judge_decides(tmp_path, monkeypatch):
    """The first judge is unsure of all rows, and the second one right about each."""
    monkeypatch.setitem(registry._FACTORIES, "deciding", lambda model=None, **options: Deciding())
    right = [row(45, "supported", evidence=f"Note {n} is true.") for n in range(20)]
    wrong = [row(45, "unsupported", evidence=f"Note {n} is odd.") for n in range(20)]
    config = tmp_path / "guardrail.toml"
    config.write_text('second_judge = "deciding"\nchecks.off = ["typed_values"]\n')
    labelled = written(tmp_path / "my.csv", right + wrong)
    done = run("--labelled", labelled, "--judge", "percent", "--config", config, "--json")
    found = json.loads(done.stdout)
    assert (found["before"], found["after"], found["settings"]) == (1.0, 1.0, {})
    settings = GuardrailConfig.from_toml(config).changed(judge="percent")
    with Guardrail(settings) as guard:
        for item in right + wrong:
            answer = guard.check("", item["sentence"], evidence=[Passage(item["evidence"])])
            assert answer.sentences[0].verdict == item["label"]


def test_the_engine_applies_the_learned_threshold(tmp_path):
    found = learned(tmp_path, GOOD + BAD, false_pass=0.1)
    config = GuardrailConfig.model_validate(
        {"judge": "percent", "strictness": found.settings, "checks": {"off": ["typed_values"]}}
    )
    with Guardrail(config) as guard:
        passed = [
            guard.check("", item["sentence"], evidence=[Passage(item["evidence"])]).action == "pass"
            for item in BAD
        ]
    assert sum(passed) / len(passed) == 0.1


def test_a_cell_of_evidence_is_a_text_or_a_list(tmp_path):
    cells = ["Plain, with a comma.", '["One.", {"text": "Two.", "id": "2"}, ["a", "b", "c"]]', ""]
    rows = [
        {"answer": "It is.", "passages": cell, "label": label}
        for cell, label in zip(cells, ("Yes", "0", "contradicted"), strict=True)
    ]
    for delimiter in ",;\t":
        found = read_labelled(written(tmp_path / "my.csv", rows, delimiter))
        assert [item.evidence for item in found] == [
            (Passage("Plain, with a comma."),),
            (Passage("One."), Passage(text="Two.", id="2"), Triple("a", "b", "c")),
            (),
        ]
        assert [item.label for item in found] == ["supported", "unsupported", "contradicted"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"answer,evidence,label\n", "has no rows"),
        (b"answer,evidence\na,b\n", "no column 'label'"),
        (b"answer,evidence,label\na,b,perhaps\n", "line 2: expected: there is no 'perhaps'"),
        (b"answer,evidence,label\n,b,1\n", "line 2: no answer"),
        (b'answer,evidence,label\na,"[7]",1\n', r"line 2: evidence\[0\] must be a text"),
        ("answer,evidence,label\nПривет,b,1\n".encode("cp1251"), "is not UTF-8"),
        (b"answer,evidence,label\n" + b"a,b,1\n" * 30, "all 30 rows are supported"),
        (b"answer,evidence,label\na,b,1\na,b,0\n", "10 of each are needed, 9 more supported"),
    ],
)
def test_an_unusable_file_is_refused(tmp_path, content, message):
    path = tmp_path / "my.csv"
    path.write_bytes(content)
    with pytest.raises(InputError, match=message):
        tune_labelled(read_labelled(path), grounder())


SCORES = st.lists(st.integers(0, 20).map(lambda n: n / 20), min_size=10, max_size=30)


@settings(deadline=None)  # a busy machine is slow at times
@given(SCORES, SCORES, st.floats(0, 1))
def test_the_curve_falls_and_the_choice_is_the_best(good, bad, wanted):
    rows = [Scored(score, True, f"right {n}") for n, score in enumerate(good)]
    rows += [Scored(score, False, f"wrong {n}") for n, score in enumerate(bad)]
    found = tune_scored(rows, score="overall", false_pass=wanted)
    rates = [point.wrong.value for point in found.curve]
    assert rates == sorted(rates, reverse=True)
    assert (rates[0], rates[-1]) == (max(rates), 0.0)
    assert found.chosen is not None
    assert found.chosen.wrong.value <= wanted
    for point in found.curve:
        if point.wrong.value <= wanted:
            assert point.right.value <= found.chosen.right.value
        if point.threshold > found.chosen.threshold:  # a higher one costs right answers
            assert point.right.value < found.chosen.right.value
    pairs = [(g > b) + 0.5 * (g == b) for g in good for b in bad]
    assert found.auc == pytest.approx(sum(pairs) / len(pairs))


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["tune", *map(str, arguments)])


def test_a_threshold_comes_from_feedback(tmp_path):
    path = tmp_path / "log.sqlite"
    with open_log(path) as log:
        for n in range(24):
            card = ScoreCard(overall=Score(value=n / 24), scores={"mine": Score(value=n / 48)})
            answer = GuardedAnswer(
                id="a", question="q", text="t", marked="t", action=Action.PASS, scorecard=card
            )
            log.write_records([Record(id=f"{n}", answer=answer)])
            if n >= 12:
                log.write_feedback(Feedback(record_id=f"{n}", thumb=1))
            if n < 11:
                log.write_feedback(Feedback(record_id=f"{n}", sentence=0, thumb=1))
                log.write_feedback(Feedback(record_id=f"{n}", sentence=1, correction="else"))
    shown = run(path, "--false-pass", 0)
    assert "[policy.thresholds]\noverall = 0.5000\n" in shown.stdout
    assert "12 right and 11 wrong answers" in shown.stdout
    found = json.loads(run(path, "--json", "--false-pass", 0, "--score", "mine").stdout)
    assert found["chosen"]["threshold"] == 0.25
    with pytest.raises(InputError, match="0 right and 0 wrong answers with a score 'other'"):
        raise run(path, "--score", "other").exception or AssertionError


@pytest.mark.parametrize(
    "before",
    [
        "",
        '# mine\nstrictness = "strict"  # for now\njudge_cache = 7\n\n[limits]\nevidence = 9\n',
        "[strictness]\n# learned in May\nsupport = 0.9 # old\n\n[limits]\nevidence = 9\n",
    ],
)
def test_the_command_prints_the_settings_and_writes_them(tmp_path, before):
    rows = written(tmp_path / "my.csv", GOOD + BAD)
    config = tmp_path / "guardrail.toml"
    config.write_text(before)
    asked = ("--labelled", rows, "--judge", "percent", "--false-pass", 0.1, "--config", config)
    shown = run(*asked)
    assert shown.exit_code == 0, shown.output
    assert "[strictness]\nsupport = 0.8550\n" in shown.stdout
    assert "20 right and 20 wrong answers, by 20 different texts of evidence" in shown.stdout
    assert "10.0% [2.8%, 30.1%] of wrong answers pass" in shown.stdout
    assert config.read_text() == before
    assert run(*asked, "--write").exit_code == 0
    held = tomllib.loads(config.read_text())
    assert held["strictness"]["support"] == 0.855
    assert held | {"strictness": 0} == tomllib.loads(before) | {"strictness": 0}
    assert config.read_text().count("#") == before.count("#") - before.count("# for now")
    assert run(*asked, "--write").exit_code == 0
    assert tomllib.loads(config.read_text()) == held


def test_the_settings_files_are_evidence_if_there_is_no_column(tmp_path):
    bare = [{key: row[key] for key in row if key != "evidence"} for row in GOOD + BAD]
    rows, config = written(tmp_path / "my.csv", bare), tmp_path / "guardrail.toml"
    config.write_text("")
    asked = ("--labelled", rows, "--judge", "percent", "--false-pass", 0.1, "--config", config)
    assert isinstance(run(*asked).exception, InputError)
    (tmp_path / "handbook.md").write_text("Some believe it.\n")
    config.write_text('evidence = ["handbook.md"]\n')
    assert "20 right and 20 wrong answers" in run(*asked).stdout


def test_a_missing_settings_file_is_created(tmp_path):
    rows = written(tmp_path / "my.csv", GOOD + BAD)
    config = tmp_path / "not" / "yet" / "new.toml"
    asked = ("--labelled", rows, "--judge", "percent", "--false-pass", 0.1, "--config", config)
    shown = run(*asked, "--write", "--json")
    assert config.read_text().startswith("[strictness]\nsupport = ")
    assert json.loads(shown.stdout)["section"] == "strictness"


@pytest.mark.parametrize(
    ("options", "settings", "message"),
    [
        ("", "", "--labelled"),
        ("--labelled my.csv --write", "", "--config FILE"),
        ("--labelled my.csv --judge none", "", "judge"),
        ("--labelled no.csv", "", "cannot read no.csv"),
        ("log.sqlite --second chat:m", "", "--second needs --labelled"),
        ("--labelled my.csv --judge percent --config s.toml --write",
         '[policy]\nbase = "strict"\nstrictness = "lenient"\n', "strictness"),
        ("--labelled my.csv --judge percent --config s.toml --write", "strictness.support = 0.95\n",
         r"write into \[strictness\]: support = 0"),
    ],
)  # fmt: skip
def test_wrong_use_changes_nothing(tmp_path, monkeypatch, options, settings, message):
    monkeypatch.chdir(tmp_path)
    written(tmp_path / "my.csv", GOOD + BAD)
    (tmp_path / "s.toml").write_text(settings)
    done = run(*options.split())
    with pytest.raises((ConfigError, InputError), match=message):
        raise done.exception or AssertionError(done.output)
    assert (tmp_path / "s.toml").read_text() == settings


def test_the_command_writes_nothing_if_the_current_thresholds_are_as_good(tmp_path):
    config = tmp_path / "guardrail.toml"
    config.write_text("strictness = { support = 0.25, contradiction = 0.6, removal = 0.75 }\n")
    labelled = written(tmp_path / "my.csv", FAR + NEAR)
    asked = ("--labelled", labelled, "--judge", "percent", "--config", config)
    shown = run(*asked)
    assert "1.000, with the current thresholds 1.000" in " ".join(shown.stdout.split())
    assert "keep the current one" in shown.stdout
    before = config.read_text()
    assert run(*asked, "--write").exit_code == 0
    assert config.read_text() == before
