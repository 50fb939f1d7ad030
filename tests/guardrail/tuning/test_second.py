"""Whether a chat model as second judge is worth switching on, by labelled answers."""

import csv
import json

import pytest
from typer.testing import CliRunner

from guardrail import GuardrailConfig
from guardrail.cli import app
from guardrail.core.types import NLIScores
from judges.base import NLITraits
from tests.guardrail.scripted import Ready
from tests.judges.chat_server import endpoint, prompt_of, sentence_of

FIRST = f"{__name__}:Unsure"
HUTS = [f"Hut {n} lies by the lake and sleeps {n % 7 + 4} guests." for n in range(30)]
ROWS = [
    (f"Hut {n} can house a party of any size.", text, "supported" if n % 2 else "unsupported")
    for n, text in enumerate(HUTS)
]
TRUE = {answer for answer, _, label in ROWS if label == "supported"}


class Unsure(Ready):
    """A first judge that is right on two of three, and never sure."""

    name = "unsure-1"
    traits = NLITraits()

    def judge(self, pairs):
        found = []
        for pair in pairs:
            right = len(pair.hypothesis) + sum(map(int, filter(str.isdigit, pair.hypothesis)))
            chance = 0.6 if (pair.hypothesis in TRUE) == (right % 3 > 0) else 0.4
            found.append(NLIScores(entailment=chance, neutral=1 - chance, contradiction=0.0))
        return found


@pytest.fixture
def labelled(tmp_path):
    path = tmp_path / "labelled.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("answer", "evidence", "label"), *ROWS])
    return path


def tune(labelled, reply, monkeypatch, *more):
    with endpoint(reply) as (url, served):
        monkeypatch.setenv("OPENAI_BASE_URL", url)
        command = ["tune", "--labelled", labelled, "--judge", FIRST, "--second", "chat:m", *more]
        return CliRunner().invoke(app, list(map(str, command))), served


def knows(body):
    """Supports what is true by the evidence, and nothing without it."""
    there = sentence_of(body) in TRUE.union(HUTS) and "There is none." not in prompt_of(body)
    return "C" if there else "B"


def test_a_model_that_knows_is_switched_on_with_its_calibration(labelled, monkeypatch, tmp_path):
    config = tmp_path / "guardrail.toml"
    done, served = tune(labelled, knows, monkeypatch, "--write", "--config", config)
    assert done.exit_code == 0, done.output
    assert len(served.requests) >= len(ROWS)
    written = GuardrailConfig.from_toml(config, environ={})
    assert written.second_judge is not None
    assert written.second_judge.judge == "chat:m"
    assert written.chat.calibration.temperature < 1.0  # it was surer than it said


@pytest.mark.parametrize(
    ("before", "second"),
    [
        ("[chat]\nconcurrency = 2\n", "chat:m"),
        ('second_judge = "chat:other"\n', "chat:m"),
        ("[chat]\ncalibration = { temperature = 2.5 }\n", None),
        ("chat = { concurrency = 2 }\n", None),
        ('second_judge = { judge = "chat:other", share = 0.5 }\n', "chat:other"),
    ],
)
def test_settings_are_written_all_or_none(before, second, labelled, monkeypatch, tmp_path):
    config = tmp_path / "guardrail.toml"
    config.write_text(before)
    done, _ = tune(labelled, knows, monkeypatch, "--write", "--config", config)
    written = GuardrailConfig.from_toml(config, environ={})
    assert (written.second_judge and written.second_judge.judge) == second
    assert (done.exit_code == 0) is (second == "chat:m")
    assert (config.read_text() == before) is (done.exit_code != 0)


def test_evidence_may_be_that_of_the_settings(monkeypatch, tmp_path):
    path, text, config = (tmp_path / name for name in ("rows.csv", "huts.txt", "guardrail.toml"))
    text.write_text("\n\n".join(HUTS))
    config.write_text(f"evidence = [{str(text)!r}]\n")
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("answer", "label"), *[(row[0], row[2]) for row in ROWS]])
    done, served = tune(path, knows, monkeypatch, "--json", "--config", config)
    assert json.loads(done.stdout.splitlines()[0])["rows"] == len(ROWS), done.output
    assert any(HUTS[3] in prompt for prompt in served.prompts)


@pytest.mark.parametrize("letter", ["A", "B", "C"])
def test_a_model_that_always_says_the_same_is_refused(labelled, letter, monkeypatch, tmp_path):
    config = tmp_path / "guardrail.toml"
    done, _ = tune(labelled, letter, monkeypatch, "--write", "--config", config)
    assert done.exit_code == 1
    assert "not switched on" in done.output
    assert not config.exists()


def test_a_model_that_is_on_and_does_not_help_is_to_be_removed(labelled, monkeypatch, tmp_path):
    config = tmp_path / "guardrail.toml"
    config.write_text('second_judge = "chat:m"\n')
    done, _ = tune(labelled, "B", monkeypatch, "--config", config)
    assert done.exit_code == 1
    assert "remove second_judge" in done.output


def test_a_gain_on_few_texts_is_refused(tmp_path, monkeypatch):
    path, config = tmp_path / "one.csv", tmp_path / "guardrail.toml"
    rows = [(answer, " ".join(HUTS), label) for answer, _, label in ROWS]
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("answer", "evidence", "label"), *rows])

    def reply(body):
        said = sentence_of(body)
        known = said in TRUE or prompt_of(body).count(said) > 1
        return "C" if known and "There is none." not in prompt_of(body) else "B"

    done, _ = tune(path, reply, monkeypatch, "--write", "--config", config)
    assert "at least +0.367" in done.output
    assert "at least 10 different texts of evidence are needed, and these are 1" in done.output
    assert done.exit_code == 1
    assert not config.exists()


def test_both_are_printed_as_json(labelled, monkeypatch):
    done, served = tune(labelled, knows, monkeypatch, "--json")
    found = json.loads(done.stdout.splitlines()[0])
    assert found["both"]["balanced"] > 0.9 > found["first"]["balanced"] > 0.5
    assert (found["rows"], found["groups"], found["asked"], found["answered"]) == (30, 30, 30, 30)
    assert found["missing"] == {}
    assert found["usage"]["calls"] == len(served.requests)
    assert 0.0 < found["lower"] < found["gain"]
