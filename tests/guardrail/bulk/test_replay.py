"""Replay names the answers that rest on a fact which was changed, and no others."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from guardrail import (
    Action,
    GuardedAnswer,
    Guardrail,
    GuardrailConfig,
    Passage,
    Score,
    Sentence,
    Triple,
    Verdict,
)
from guardrail.bulk.replay import Flip, Unjudged, flips, replay_log
from guardrail.cli import app
from guardrail.config import GraphConfig
from guardrail.core.types import Category, ScoreCard
from guardrail.core.types.answers import CheckRequest
from guardrail.log.entries import Record
from guardrail.log.records import open_log
from kg import TableColumns, load_graph

pytest.importorskip("pyarrow")
PEOPLE = 40
ANSWERS = 120


def graph(folder: Path, name: str, moved: int | None = None) -> Path:
    """People with a birthplace; one of them was born elsewhere than was thought."""
    rows = ["id,name,birthplace"]
    for n in range(PEOPLE):
        rows.append(f"{n},Ana{n} Smith{n},{'Lyon' if n == moved else 'Turin'}")
    (folder / name).mkdir()
    (folder / name / "people.csv").write_text("\n".join(rows) + "\n")
    table = TableColumns(subject="id", label="name")
    load_graph(folder / name / "people.csv", folder / name / "graph", table=table)
    return folder / name / "graph"


def config(location: Path) -> GuardrailConfig:
    return GuardrailConfig(judge="none", graph=GraphConfig(location=str(location)))


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("log")
    path = folder / "scores.sqlite"
    with Guardrail(config(graph(folder, "old")), log=open_log(path)) as guard:
        names = [f"Ana{n % PEOPLE} Smith{n % PEOPLE}" for n in range(ANSWERS)]
        requests = [
            CheckRequest(
                question=f"Who is {name}?", answer=f"The birthplace of {name} is Turin.", id=f"a{n}"
            )
            for n, name in enumerate(names)
        ]
        guard.check_batch(requests)
    return path


def test_only_what_rests_on_the_fact_flips(log: Path, tmp_path: Path) -> None:
    new = graph(tmp_path, "new", moved=7)
    command = ("bulk", "replay", str(log), "-o", str(tmp_path / "out"), "--kg", str(new))
    done = CliRunner().invoke(app, [*command, "--judge", "none", "--workers", "1", "--json"])
    assert done.exit_code == 0, done.output
    assert f"{ANSWERS // PEOPLE} of {ANSWERS} answers flipped" in done.stderr
    flipped = [Flip.model_validate_json(line) for line in done.stdout.splitlines()]
    about = {
        record.id
        for record in open_log(log, read_only=True).records()
        if "Ana7 Smith7 " in record.answer.text
    }
    assert len(about) == ANSWERS // PEOPLE
    assert {item.id for item in flipped} == about
    assert all(item.before == "supportive" for item in flipped)
    assert all("[NA]" in item.after for item in flipped)
    assert all(item.changed == ("graph_snapshot",) for item in flipped)
    assert all("no longer in the graph" in item.because for item in flipped)


def test_the_same_graph_flips_nothing(log: Path, tmp_path: Path) -> None:
    same = graph(tmp_path, "same")
    found = list(replay_log(log, config(same), str(tmp_path / "out")))
    assert found == [None] * ANSWERS


def test_evidence_of_a_call_is_judged_as_it_was(tmp_path: Path) -> None:
    old, new = graph(tmp_path, "old"), graph(tmp_path, "new", moved=7)
    path = tmp_path / "scores.sqlite"
    question, answer = "Where was Ana7 Smith7 born?", "The birthplace of Ana7 Smith7 is Turin."
    with Guardrail(config(old), log=open_log(path)) as guard:
        known = guard.retrieve(question).evidence
        said = "The birthplace of Bo is Oslo."
        note = Passage(said, id="7", title="Notes", url="https://n.example")
        bo = Triple("Bo", "birthplace", "Oslo")
        requests = [
            CheckRequest(question=question, answer=answer, evidence=(), id="nothing"),
            CheckRequest(question=question, answer=answer, evidence=(*known, note), id="both"),
            CheckRequest(question="Bo?", answer="Bo is of Oslo.", evidence=(note, bo), id="own"),
        ]
        before = {entry.id: entry for entry in guard.check_batch(requests)}
    assert {entry.evidence_from for entry in before.values()} == {("caller",)}
    found = list(replay_log(path, config(new), str(tmp_path / "out")))
    flipped = [entry for entry in found if isinstance(entry, Flip)]
    assert [entry.sentence for entry in flipped] == [answer]
    judged = (tmp_path / "out" / "judged" / "part-000000.jsonl").read_text().splitlines()
    after = {row["id"]: row for row in map(json.loads, judged)}
    records = {r.answer.id: r.id for r in open_log(path, read_only=True).records()}
    assert after[records["nothing"]]["evidence"] == []
    kept = after[records["own"]]["evidence"]
    assert next(item for item in kept if "title" in item)["url"] == "https://n.example"
    both = after[records["both"]]["evidence"]
    assert {item["value"] for item in both if "value" in item} == {"Lyon"}


def test_an_answer_that_cannot_be_judged_is_reported(log: Path, tmp_path: Path) -> None:
    new = graph(tmp_path, "new")
    rows = tmp_path / "out" / "answers.jsonl"
    rows.parent.mkdir()
    asked = [
        {"id": record.id, "question": "?", "answer": record.answer.text}
        for record in open_log(log, read_only=True).records()
    ]
    del asked[0]["answer"]
    rows.write_text("\n".join(map(json.dumps, asked)))
    found = list(replay_log(log, config(new), str(tmp_path / "out")))
    [unjudged] = [item for item in found if isinstance(item, Unjudged)]
    assert "answer" in unjudged.error
    command = ("bulk", "replay", str(log), "-o", str(tmp_path / "out"), "--kg", str(new))
    result = CliRunner().invoke(app, [*command, "--judge", "none"])
    assert "1 could not be judged" in result.output
    assert f"{unjudged.id}: not judged" in result.output


PRICES = """\
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
<urn:price> rdfs:label "price"@en .
<urn:f3> rdfs:label "Fjell Tourer"@en ; <urn:price> "{0}" .
<urn:f5> rdfs:label "Nordic Racer"@en ; <urn:price> "700 euros" .
"""


def prices(folder: Path, of_the_tourer: str) -> GuardrailConfig:
    file = folder / "prices.ttl"
    file.write_text(PRICES.format(of_the_tourer))
    return GuardrailConfig(policy="strict", graph=str(file))


def test_what_was_filtered_out_flips_in_its_place(tmp_path: Path) -> None:
    """The same words stand in the answer twice, of two bicycles; of one of them they were wrong."""
    path = tmp_path / "scores.sqlite"
    said = "Nordic Racer:\n- Its price is 700 euros.\n\nFjell Tourer:\n- Its price is 700 euros."
    with Guardrail(prices(tmp_path, "950 euros"), log=open_log(path)) as guard:
        filtered = guard.check("What do they cost?", said)
    assert filtered.action is Action.FILTER
    assert [item.start for item in filtered.removed] == [said.rindex("Its")]
    found = list(replay_log(path, prices(tmp_path, "700 euros"), str(tmp_path / "out")))
    [flip] = [one for one in found if one is not None]
    assert isinstance(flip, Flip)
    assert (flip.before, flip.after) == ("contradictory", "supportive")


def test_equal_sentences_are_compared_each_with_itself() -> None:
    text = "It is red. It is red."
    first = Sentence(text="It is red.", start=0, end=10, category=Category.SUPPORTIVE)
    second = Sentence(text="It is red.", start=11, end=21, category=Category.CONTRADICTORY)
    whole = GuardedAnswer(
        id="a", question="?", text=text, marked=text, action=Action.ANNOTATE,
        sentences=(first, second), scorecard=ScoreCard(overall=Score(value=0.5)),
    )  # fmt: skip
    assert list(flips(Record(answer=whole), whole)) == []
    filtered = whole.model_copy(update={"sentences": (first,), "removed": (second,)})
    assert list(flips(Record(answer=filtered), whole)) == []
    right = second.model_copy(update={"verdict": Verdict.SUPPORTED})
    mended = whole.model_copy(update={"sentences": (first, right)})
    for before in (whole, filtered):
        [flip] = flips(Record(answer=before), mended)
        assert (flip.before, flip.after) == ("contradictory", "supportive")


def test_a_second_run_goes_on_with_the_answers_of_the_first(tmp_path: Path) -> None:
    path = tmp_path / "scores.sqlite"
    before, after = prices(tmp_path, "900 euros"), tmp_path / "new"
    after.mkdir()
    now = prices(after, "950 euros").changed(log=str(path))
    said = "The price of the Fjell Tourer is 900 euros."
    for asked in ("first", "second"):
        with Guardrail(before, log=open_log(path)) as guard:
            guard.check("Fjell Tourer?", said, id=asked)
        found = list(replay_log(path, now, str(tmp_path / "out")))
        assert [type(one) for one in found] == [Flip, type(None)]
    assert len(list(open_log(path).records())) == 2  # nothing of the replay was recorded
