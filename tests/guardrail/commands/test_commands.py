"""The commands as a user runs them: files in, files out."""

import json
import re

import pytest
from typer.testing import CliRunner

from guardrail.cli import app
from guardrail.core.types import GuardedAnswer, Sentence, Span
from judges.conner import ConnerReport
from judges.sck import Intent, SCKReport

FACTS = [
    ["Sydney Harbour Bridge", "opened", "1932-03-19"],
    ["Sydney Harbour Bridge", "architect", "John Bradfield"],
]


@pytest.fixture
def lines(tmp_path):
    """Run a command on rows and return the rows it writes."""

    def run(command: str, rows: list[dict], *options: str) -> list[dict]:
        source, target = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
        source.write_text("\n".join(json.dumps(row) for row in rows), "utf-8")
        arguments = [*command.split(), "-i", str(source), "-o", str(target), *options]
        done = CliRunner().invoke(app, arguments, catch_exceptions=False)
        assert done.exit_code == 0, done.output
        return [json.loads(line) for line in target.read_text("utf-8").splitlines()]

    return run


def row(answer: str, question: str = "Who designed it?", **fields) -> dict:
    return {"question": question, "answer": answer, "triples": FACTS, **fields}


def test_check_with_inline_triples(lines):
    opened = row("The Sydney Harbour Bridge was opened on 19 March 1932.", "When was it opened?")
    rows = [opened, row("Lin Chen built it."), {"id": "c", "question": "no answer"}]
    good, bad, failed = lines("check --judge none", rows)
    assert good["sentences"][0]["citations"][0]["value"] == "1932-03-19"
    assert good["sentences"][0]["category"] == "supportive"
    assert {"id", "question", "text", "marked", "action", "scorecard", "timings_ms"} <= good.keys()
    assert bad["sentences"][0]["na"]
    assert failed["error"].startswith("line 3: answer")


def test_rank_puts_the_supported_answer_first(lines):
    answers = ["It was opened by Lin Chen.", "The Sydney Harbour Bridge was opened in 1932."]
    asked = {"id": 7, "question": "When was it opened?", "answers": answers, "triples": FACTS}
    (found,) = lines("rank --judge none", [asked])
    assert found["id"] == 7
    assert [place["index"] for place in found["ranking"]] == [1, 0]


def test_link_shows_how_each_entity_was_found(lines):
    question = "Who was the father of Mary Shelley, the wife of Percy Bysshe Shelley?"
    (found,) = lines("link", [{"id": "q", "question": question}])
    named = {entity["label"]: entity["matched"] for entity in found["entities"]}
    assert named["Mary Shelley"] == "label"
    assert named["William Godwin"] == "relation: father"


def test_nli_and_attribute_give_probabilities(lines):
    pair = {"id": 1, "premise": "Ada was born in London.", "hypothesis": "Ada was born in London."}
    (found,) = lines("nli", [pair])
    assert found["label"] == "entailment"
    assert sum(found["scores"].values()) == pytest.approx(1, abs=3e-6)
    asked = {"id": 2, "question": "Where?", "answer": "In Rome.", "evidence": ["Ada sang in Oslo."]}
    (found,) = lines("attribute", [asked])
    assert found["category"] in {
        "supportive", "partially_supportive", "contradictory", "irrelevant"
    }  # fmt: skip
    assert sum(found["scores"].values()) == pytest.approx(1, abs=3e-6)


def test_score_gives_both_reports_with_reasons_for_what_is_missing(lines):
    (found,) = lines("score", [row("The Sydney Harbour Bridge was designed by John Bradfield.")])
    assert 0 <= found["sck"]["score"]["value"] <= 1
    assert 0 <= found["conner"]["factuality"]["value"] <= 1
    assert found["conner"]["informativeness"]["value"] is None
    assert "causal language model" in found["conner"]["informativeness"]["reason"]


def test_score_weighs_sck_as_a_file_of_learned_weights_says(lines, tmp_path):
    content_alone = {"structure": 0, "content": 1, "knowledge": 0}
    learned = tmp_path / "weights.json"
    learned.write_text(json.dumps({intent.value: content_alone for intent in Intent}), "utf-8")
    scored = row("The architect of the Sydney Harbour Bridge was John Bradfield.")
    (plain,) = lines("score", [scored])
    (found,) = lines("score", [scored], "--sck-weights", str(learned))
    assert found["sck"]["score"]["value"] == found["sck"]["content"]["score"]["value"]
    assert found["sck"]["score"]["value"] != plain["sck"]["score"]["value"]
    for damaged in ("{}{", "[" * 200_000):
        learned.write_text(damaged, "utf-8")
        wrong = CliRunner().invoke(app, ["score", "--sck-weights", str(learned)], input="{}")
        assert "weights.json holds no SCK weights" in str(wrong.exception)


def test_kg_load_query_and_stats(tmp_path):
    facts = tmp_path / "facts.nt"
    facts.write_text(
        '<urn:ada> <http://www.w3.org/2000/01/rdf-schema#label> "Ada Lovelace" .\n'
        '<urn:ada> <urn:born> "1815-12-10" .\n'
    )
    graph = str(tmp_path / "graph")
    run = CliRunner()
    loaded = run.invoke(app, ["kg", "load", str(facts), "--kg", graph])
    assert json.loads(loaded.stdout)["added"] == 2
    piped = run.invoke(app, ["kg", "query", "SELECT ?o ?p { ?s ?p ?o } ORDER BY ?o", "--kg", graph])
    assert piped.stdout.splitlines()[:2] == ["o\tp", "1815-12-10\turn:born"]
    query = "SELECT ?b WHERE { <urn:ada> <urn:born> ?b }"
    rows = run.invoke(app, ["kg", "query", query, "--kg", graph, "--json"]).stdout
    assert json.loads(rows) == {"b": "1815-12-10"}
    counts = json.loads(run.invoke(app, ["kg", "stats", "--kg", graph, "--json"]).stdout)
    assert counts["triples"] == 2


def test_the_version_is_printed():
    done = CliRunner().invoke(app, ["--version"])
    assert re.fullmatch(r"kg-guardrail \d+\.\d+\.\d+\n", done.stdout)


@pytest.mark.parametrize("policy", ["annotate", "strict"])
def test_a_question_that_no_model_answers_exits_with_one(policy, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    asked = ["ask", "Who was Lucrezia?", "--judge", "none", "--json", "--policy", policy]
    done = CliRunner().invoke(app, asked)
    assert done.exit_code == 1
    assert "cannot reach" in json.loads(done.stdout)["errors"][0]["message"]


@pytest.mark.parametrize(
    ("command", "models"),
    [("check", (GuardedAnswer, Sentence, Span)), ("score", (SCKReport, ConnerReport))],
)
def test_help_names_every_field_that_is_written(command, models):
    text = CliRunner().invoke(app, [command, "--help"]).output
    words = set(re.findall(r"\w+", text))
    assert {name for model in models for name in model.model_fields} <= words


@pytest.mark.parametrize(
    ("mistake", "said"),
    [
        ("--kg nowhere", "there is no graph at nowhere"),
        ("--kg notes.txt", "cannot tell the format of notes.txt"),
        ("--judge foo", "there is no judge 'foo'"),
        ("--judge chat:gpt-4o", "OPENAI_API_KEY"),
        ("--policy foo", "there is no policy 'foo'"),
    ],
)
def test_a_mistaken_option_stops_the_command(mistake, said, tmp_path, monkeypatch, capsys):
    from guardrail.cli import main

    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    (tmp_path / "notes.txt").write_text("hello\n")
    (tmp_path / "rows.jsonl").write_text('{"answer": "It is."}\n')
    monkeypatch.setattr("sys.argv", ["guardrail", "check", "-i", "rows.jsonl", *mistake.split()])
    with pytest.raises(SystemExit) as stop:
        main()
    reported = capsys.readouterr()
    assert stop.value.code == 1
    assert reported.out == ""
    assert reported.err.startswith(f"guardrail: {said}")
    assert reported.err.count("\n") == 1


def test_a_key_that_means_a_field_is_an_error_and_any_other_is_passed_over(lines):
    bare = {"answer": "The Sydney Harbour Bridge was opened in 1932."}
    rows = [bare | more for more in ({"contexts": ["x"]}, {"tripels": FACTS})]
    alias, slip, good = lines("check --judge none", [*rows, row(bare["answer"], gold=1)])
    assert alias["error"] == "line 1: there is no field 'contexts'; did you mean 'evidence'?"
    assert slip["error"].endswith("did you mean 'triples'?")
    assert good["sentences"][0]["category"] == "supportive"


@pytest.mark.parametrize(
    ("condition", "said"),
    [
        ("--score overal<0.5", "no answer has a score 'overal'; did you mean 'overall'?"),
        ("--action refuse", "no record meets these conditions"),
        ("--tag blue", "write NAME=VALUE"),
        ("--action foo", "'foo' is not one of 'pass'"),
    ],
)
def test_a_log_says_why_nothing_is_found(condition, said, lines, tmp_path, monkeypatch):
    monkeypatch.setenv("GUARDRAIL_LOG__PATH", str(tmp_path / "log.sqlite"))
    lines("check --judge none", [row("It was opened in 1932.")])
    done = CliRunner().invoke(app, ["log", str(tmp_path / "log.sqlite"), *condition.split()])
    assert said in f"{done.stderr}{done.exception}"
    assert done.stdout == ""


def test_an_answer_of_the_log_is_shown_by_its_id(lines, tmp_path, monkeypatch):
    log = str(tmp_path / "log.sqlite")
    monkeypatch.setenv("GUARDRAIL_LOG__PATH", log)
    rows = [row("It was opened in 1932.", id="réf-7"), row("It was closed in 1990.", id="réf-8")]
    lines("check --judge none", rows)
    shown = CliRunner().invoke(app, ["log", log, "--id", "réf-7"])
    assert "opened in 1932" in shown.stdout
    assert "scores: overall" in shown.stdout
    assert "closed" not in shown.stdout
    both = CliRunner().invoke(app, ["log", log, "--id", "réf-", "--json"])
    found = [json.loads(line)["answer"]["id"] for line in both.stdout.splitlines()]
    assert found == ["réf-7", "réf-8"]
    assert CliRunner().invoke(app, ["log", log, "--id", "ref"]).exit_code == 1
