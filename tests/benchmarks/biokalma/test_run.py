from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from benchmarks.biokalma.cli import app
from benchmarks.biokalma.questions import read_questions, retrieved_subgraphs
from benchmarks.biokalma.scoring import Fact
from kg import open_graph
from tests.guardrail.models.endpoint import serve

RUNNER = CliRunner()
EXACT = "exact evidence alone"
"""How a guardrail without a judge is named."""


@pytest.fixture(scope="module")
def questions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("biokalma") / "questions.jsonl"
    built = RUNNER.invoke(app, ["build", "-o", str(path), "-n", "4", "--seed", "5"])
    assert built.exit_code == 0, built.output
    return path


def test_build_resumes_to_the_same_file(questions: Path, tmp_path: Path) -> None:
    whole = questions.read_text()
    stopped = tmp_path / "stopped.jsonl"
    stopped.write_text(whole[: len(whole) // 2])
    RUNNER.invoke(app, ["build", "-o", str(stopped), "-n", "4", "--seed", "5"])
    assert stopped.read_text() == whole


def test_score_reads_lines_and_reports_bad_ones(tmp_path: Path) -> None:
    rome = ["Q1", "place of birth", "Rome"]
    marked = "Ann was born in Rome [Q1, place of birth: Rome]."
    row = {"id": 1, "marked": marked, "graph": [rome], "minimum": [rome]}
    rows = tmp_path / "rows.jsonl"
    rows.write_text(json.dumps(row) + "\n{bad\n" + json.dumps({"id": 2}) + "\n")
    printed = json.loads(RUNNER.invoke(app, ["score", "-i", str(rows)]).stdout)
    assert printed["micro"] == {"correctness": 1.0, "precision": 1.0, "recall": 1.0, "f1": 1.0}
    assert printed["alignment_containment"] == 1.0
    assert printed["alignment"] is None
    assert [error[:6] for error in printed["errors"]] == ["line 2", "line 3"]


def test_run_compares_settings_on_the_same_samples_and_resumes(
    questions: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = json.loads(questions.read_text().splitlines()[0])
    entity, name, value = first["minimum"][0]
    draft = first["rounds"][0]["draft"]["answer"].rstrip(".")
    out = tmp_path / "run"
    with serve() as endpoint:
        endpoint.text = f"{draft} [{entity}, {name}: {value}]. She had a dog [Q0, pet: dog]."
        monkeypatch.setenv("OPENAI_BASE_URL", endpoint.url)
        monkeypatch.setenv("OPENAI_API_KEY", "k")
        arguments = ["run", "--data", str(questions), "-o", str(out), "--model", "openai:m"]
        arguments += ["--judge", "none", "--json"]
        result = RUNNER.invoke(app, arguments)
        assert result.exit_code == 0, result.output
        calls = len(endpoint.requests)
        assert RUNNER.invoke(app, arguments).exit_code == 0
        assert len(endpoint.requests) == calls  # nothing is sampled twice
    rows = {row["row"]: row["cells"] for row in json.loads(result.stdout)["rows"]}
    checked, best = "with guardrail (check)", "with guardrail (best of 5)"
    assert list(rows) == ["model alone", "constrained", checked, best]
    assert rows["model alone"]["correctness"]["mean"] == pytest.approx(100 / 8)  # 1 of 8
    assert rows["constrained"]["correctness"]["mean"] == 100
    assert rows[checked]["correctness"]["mean"] == 100
    table = (out / "table.md").read_text()
    assert "| paper: GPT-4 (0.5) | " in table
    assert "No NLI judge measured alignment." in table
    scored = RUNNER.invoke(app, ["score", "-i", str(out / "answers.jsonl")])
    assert json.loads(scored.stdout)["answers"] == 16
    # A second guardrail reads the same samples; the grader's own rows are starred.
    judged = [*arguments[:-3], "--judge", "onnx,none", "--grader", "onnx"]
    result = RUNNER.invoke(app, judged)
    assert result.exit_code == 0, result.output
    starred = {
        line.split(" | ")[0].strip("| "): "*" in line
        for line in result.stdout.splitlines()
        if line.startswith("| with guardrail")
    }
    judged = {f"{row}, {judge}" for row in (checked, best) for judge in ("onnx", EXACT)}
    assert starred == {row: row.endswith("onnx") for row in judged}


def test_what_does_not_hold_is_asked_for_again_and_nothing_is_asked_for_twice(
    questions: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serve() as endpoint:
        endpoint.text = "She kept a dog in Paris."
        monkeypatch.setenv("OPENAI_BASE_URL", endpoint.url)
        monkeypatch.setenv("OPENAI_API_KEY", "k")
        arguments = ["run", "--data", str(questions), "-o", str(tmp_path), "--model", "openai:m"]
        arguments += ["--settings", "regenerate", "--judge", "none", "-n", "2"]
        for _ in range(2):
            result = RUNNER.invoke(app, arguments)
            assert result.exit_code == 0, result.output
            assert len(endpoint.requests) == 2 * 3
    assert "| with guardrail (regenerate) |" in result.stdout
    kept = [json.loads(line) for line in next(tmp_path.glob("samples-*")).read_text().splitlines()]
    assert [row["guard"] for row in kept] == [EXACT] * 2
    assert all("[NA]" in row["marked"][0] for row in kept)


def test_knowledge_can_be_incomplete_or_wrong(questions: Path) -> None:
    graph = open_graph()
    rows = read_questions(questions)
    for question, subgraphs in retrieved_subgraphs(graph, rows, removed=2):
        assert len(question.removed) == 2
        held = {
            Fact(triple.citation.entity, triple.property, triple.value)
            for subgraph in subgraphs
            for triple in subgraph.triples
        }
        assert held.isdisjoint(question.removed)
        assert held.issuperset(set(question.minimum) - set(question.removed))
    for question, subgraphs in retrieved_subgraphs(graph, rows, accuracy=0.0):
        assert {subgraph.entity.id for subgraph in subgraphs}.isdisjoint(question.entities)
