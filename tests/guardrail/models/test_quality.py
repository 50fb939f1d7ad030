"""Ratings by a chat model, as a scorer and as a column of the benchmark."""

import json

import pytest
from typer.testing import CliRunner

from benchmarks.biokalma.cli import app
from guardrail import Guardrail, GuardrailConfig, Triple
from guardrail.core.types import ScoreCard
from tests.guardrail.models.endpoint import serve


@pytest.fixture
def rater(monkeypatch):
    with serve() as endpoint:
        endpoint.text = "4"
        monkeypatch.setenv("OPENAI_BASE_URL", endpoint.url)
        monkeypatch.setenv("OPENAI_API_KEY", "k")
        yield endpoint


def test_the_scorer_rates_an_answer_by_its_evidence(rater):
    config = GuardrailConfig(judge="none", scorers=("quality",))
    with Guardrail(config) as guard:
        answer = guard.check(
            "When was it opened?", "In 1932.", evidence=[Triple("Bridge", "opened", "1932")]
        )
    card: ScoreCard = answer.scorecard
    assert card.scores["quality"].value == 4
    assert card.scores["quality.fluency"].value == 4
    prompts = [request["messages"][0]["content"] for request in rater.requests]
    assert sum("Knowledge: Bridge, opened: 1932." in prompt for prompt in prompts) == 1


def test_the_benchmark_has_the_paper_s_table_of_ratings(rater, tmp_path):
    questions = tmp_path / "questions.jsonl"
    CliRunner().invoke(app, ["build", "-o", str(questions), "-n", "1"])
    arguments = ["run", "--data", str(questions), "-o", str(tmp_path / "run"), "--judge", "none"]
    arguments += ["--model", "openai:m", "--settings", "plain", "--rater", "m", "--json"]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    (row,) = json.loads(done.stdout)["rows"]
    assert row["quality"]["coherence"]["mean"] == 4
    assert "| paper: GPT-4 (0.5) | 4.48 |" in (tmp_path / "run" / "table.md").read_text()
