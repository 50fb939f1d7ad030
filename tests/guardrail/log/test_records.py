"""The score log keeps every acknowledged response, once, and says why where it cannot."""

import csv
import json
import os
import resource
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
from typer.testing import CliRunner

from guardrail import Guardrail, GuardrailConfig
from guardrail.cli import app
from guardrail.core.errors import InputError, RecordError
from guardrail.core.types import (
    Action,
    Category,
    GuardedAnswer,
    Problem,
    Score,
    ScoreCard,
    Sentence,
    Triple,
)
from guardrail.log.entries import ScoreBound, from_json
from guardrail.log.records import Feedback, Record, RecordFilter, SQLiteLog, open_log, tagged
from tests.clock import until


def answer(answer_id="a", text="Ada was born in London.", overall=0.5, **changes):
    return GuardedAnswer(
        id=answer_id,
        question="Where was Ada born?",
        text=text,
        marked=text,
        action=changes.pop("action", Action.PASS),
        sentences=(Sentence(text=text, start=0, end=len(text), category=Category.SUPPORTIVE),),
        scorecard=ScoreCard(overall=Score(value=overall)),
        **changes,
    )


@pytest.fixture
def log(tmp_path):
    with open_log(tmp_path / "log.sqlite") as log:
        yield log


def test_a_response_comes_back_as_it_was_written(log):
    log.write(answer(text="a lone surrogate \ud800 and a null \x00"), tags={"tenant": "blue"})
    (record,) = log.records()
    assert record.answer.text == "a lone surrogate \ud800 and a null \x00"
    assert record.tags == {"tenant": "blue"}


def test_filters(log):
    good = answer("good", overall=0.9)
    card = good.scorecard.model_copy(update={"scores": {"sck": Score(value=0.0)}})
    log.write(good.model_copy(update={"scorecard": card}), tags={"run": "1"})
    log.write(answer("bad", overall=0.1, action=Action.REFUSE))

    def found(**conditions):
        return [record.answer.id for record in log.records(RecordFilter(**conditions))]

    assert found() == ["good", "bad"]
    assert found(bounds=[ScoreBound.parse("overall<=0.1")]) == ["bad"]
    assert found(bounds=[ScoreBound.parse("overall > 0.1")]) == ["good"]
    assert found(bounds=[ScoreBound.parse("sck>=0")]) == ["good"]
    assert found(id="goo") == ["good"]
    assert found(action="refuse") == ["bad"]
    assert found(tag="run=1") == ["good"]
    assert found(since=datetime.now(UTC) + timedelta(hours=1)) == []
    with pytest.raises(InputError):
        ScoreBound.parse("overall=1")


def test_redaction_changes_or_drops_records(tmp_path):
    def redact(record: Record) -> Record | None:
        if record.tags.get("private"):
            return None
        clean = record.answer.model_copy(update={"question": "[redacted]"})
        return record.model_copy(update={"answer": clean})

    with SQLiteLog(tmp_path / "log.sqlite", redact=redact) as log:
        log.write(answer("kept"))
        log.write(answer("dropped"), tags={"private": "yes"})
        (record,) = log.records()
    assert record.answer.question == "[redacted]"


def test_sampling_keeps_failures(tmp_path):
    with SQLiteLog(tmp_path / "log.sqlite", sample=0.0) as log:
        log.write(answer("fine"))
        log.write(answer("failed", errors=(Problem(part="kg", message="no answer"),)))
        assert [record.answer.id for record in log.records()] == ["failed"]


def test_retention_deletes_old_records(tmp_path):
    path = tmp_path / "log.sqlite"
    with SQLiteLog(path) as log:
        log.write_record(
            Record(answer=answer("old"), created=datetime.now(UTC) - timedelta(days=40))
        )
        log.write(answer("new"))
    with SQLiteLog(path, retention=timedelta(days=30)) as log:
        assert [record.answer.id for record in log.records()] == ["new"]


def test_feedback_is_stored_with_its_record(tmp_path):
    with SQLiteLog(tmp_path / "log.sqlite") as log:
        record = Record(answer=answer())
        log.write_record(record)
        log.write_feedback(Feedback(record_id=record.id, sentence=0, thumb=-1, correction="Paris"))
        (kept,) = log.feedback()
        assert (kept.record_id, kept.thumb, kept.correction) == (record.id, -1, "Paris")
        with pytest.raises(RecordError):
            log.write_feedback(Feedback(record_id="missing", thumb=1))


def test_feedback_takes_the_beginning_of_one_answers_id(tmp_path):
    made = uuid4().hex
    with SQLiteLog(tmp_path / "log.sqlite") as log:
        log.write(answer(f"{made}.10"))
        assert log.write_feedback(Feedback(record_id=made[:12], thumb=1))
        # A whole id means its own answer, which may be on its way.
        assert not log.write_feedback(Feedback(record_id=f"{made}.1", thumb=1))
        log.write(answer(f"{made}.2"))
        for short in (made[:12], made[:7]):
            with pytest.raises(RecordError):
                log.write_feedback(Feedback(record_id=short, thumb=1))


@pytest.mark.parametrize(
    ("reported", "thumb"), [("up", 1), ("Down", -1), (1, 1), (-1, -1), ("-1", -1), (0, 0)]
)
def test_a_thumb_is_a_number_or_a_word(reported, thumb):
    assert Feedback(record_id="r", thumb=reported).thumb == thumb


@pytest.mark.parametrize("version", [1, 999])
def test_a_file_of_another_version_is_refused(tmp_path, version):
    path = tmp_path / "log.sqlite"
    with sqlite3.connect(path) as db:
        db.execute(f"PRAGMA user_version = {version}")
    with pytest.raises(RecordError, match=f"version {version}"):
        SQLiteLog(path)


@pytest.mark.parametrize("name", ["missing/log.sqlite", "log.jsonl", "other.txt"])
def test_a_place_that_cannot_be_a_log_is_a_typed_error(tmp_path, name):
    (tmp_path / "other.txt").write_text("not a database, but a text of some length" * 10)
    with pytest.raises(RecordError):
        open_log(tmp_path / name)


WRITER = """
import sys
from guardrail.log.records import Record, open_log
from guardrail.core.types import Action, GuardedAnswer, Score, ScoreCard
log = open_log(sys.argv[1])
for n in range(100_000):
    record = Record(answer=GuardedAnswer(
        id=str(n), question="q", text="t", marked="t", action=Action.PASS,
        scorecard=ScoreCard(overall=Score(value=0.5))))
    log.write_record(record)
    print(record.id, flush=True)
"""


def test_kill_9_amid_concurrent_writes_loses_no_acknowledged_record(tmp_path):
    """Two processes write until they are killed without warning."""
    path = tmp_path / "log.sqlite"
    SQLiteLog(path).close()
    acknowledged = []
    writers = []
    for number in range(2):
        acknowledged.append(tmp_path / f"ack{number}")
        with acknowledged[-1].open("w") as out:
            writers.append(subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=out))
    until(lambda: min(path.stat().st_size for path in acknowledged) >= 2000)
    for writer in writers:
        os.kill(writer.pid, signal.SIGKILL)
        writer.wait()
    # A line cut short by the kill was not acknowledged.
    ids = [line for p in acknowledged for line in p.read_text().split("\n")[:-1]]
    with SQLiteLog(path) as log:
        kept = [record.id for record in log.records()]
    assert len(ids) > 100
    assert set(ids) <= set(kept)
    assert len(kept) == len(set(kept))


def test_the_log_keeps_what_carries_a_sentence_in_other_words(tmp_path):
    facts = (
        Triple("Bo", "occupation", "physician", subject_id="urn:bo"),
        Triple("Bo", "pet", "Rex", subject_id="urn:bo"),
        Triple("Bo", "bicycle", "Fjell 3"),
    )
    config = GuardrailConfig(citations="verbatim", graph="none")
    with Guardrail(config, log=open_log(tmp_path / "log.sqlite")) as guard:
        checked = guard.check("Who is Bo?", "Bo worked as a doctor.", evidence=facts)
    [sentence] = checked.sentences
    assert sentence.category is Category.SUPPORTIVE
    assert sentence.citations == ()
    assert sentence.uncited == (facts[0].citation,)
    [record] = open_log(tmp_path / "log.sqlite", read_only=True).records()
    # What has no id came with the call and is nowhere else.
    assert record.answer.evidence == (facts[0], facts[2])


@pytest.mark.parametrize(
    ("said", "action", "removed"),
    [
        ("Bo was born in Oslo. Bo was born in 1815.", Action.FILTER, (21, 41)),
        ("Bo was born in 1815.", Action.REFUSE, (0, 20)),
    ],
)
def test_what_a_policy_took_out_is_kept_with_its_evidence(log, said, action, removed):
    facts = (
        Triple("Bo", "place of birth", "Oslo", subject_id="urn:bo"),
        Triple("Bo", "year of birth", "1850", subject_id="urn:bo"),
    )
    with Guardrail(GuardrailConfig(graph="none", policy="strict"), log=log) as guard:
        answer = guard.check("Who is Bo?", said, evidence=facts)
    assert answer.action is action
    [gone] = answer.removed
    assert (gone.start, gone.end) == removed
    assert gone.text == answer.original[gone.start : gone.end] == "Bo was born in 1815."
    assert gone.against == (facts[1].text,)
    [record] = log.records()
    assert record.answer.removed == (gone.model_copy(update={"read": ()}),)  # never logged
    assert facts[1] in record.answer.evidence


def test_a_full_disk_does_not_fail_answers_and_is_visible(tmp_path):
    """A limit on the size of files stands for the full disk: SQLite's writes fail in earnest."""
    with SQLiteLog(tmp_path / "log.sqlite") as log, exact(log) as guard:
        assert guard.check(question="", answer="Mozart was born in Salzburg.").errors[1:] == ()
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
        try:
            late = guard.check(question="Who was Mozart?", answer="Mozart was born in Salzburg.")
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert late.sentences[0].category is Category.SUPPORTIVE
        (problem,) = late.errors
        assert problem.part == "records"
        assert "cannot write the score log" in problem.message
        # With space again, the next answer is recorded, and the first was not lost.
        guard.check(question="Who was Mozart?", answer="Mozart was born in Salzburg.")
        assert len(list(log.records())) == 2


def exact(log):
    return Guardrail(GuardrailConfig(judge="none"), log=log)


def test_export_and_search_from_the_command_line(tmp_path):
    path = tmp_path / "log.sqlite"
    with SQLiteLog(path) as log:
        log.write(answer("good", overall=0.9), tags={"run": "1"})
        log.write(answer("=bad()", text="=HYPERLINK()", overall=0.1))
    run = CliRunner().invoke
    shown = run(app, ["log", str(path), "--score", "overall<0.5", "--json"])
    assert [json.loads(line)["answer"]["id"] for line in shown.stdout.splitlines()] == ["=bad()"]
    for name in ("log.csv", "log.jsonl"):
        assert run(app, ["log", str(path), "--export", str(tmp_path / name)]).exit_code == 0
    with (tmp_path / "log.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["score.overall"] for row in rows] == ["0.9", "0.1"]
    assert (rows[0]["tag.run"], rows[1]["text"]) == ("1", "'=HYPERLINK()")
    lines = (tmp_path / "log.jsonl").read_text().splitlines()
    assert [from_json(line).answer.id for line in lines] == ["good", "=bad()"]
    assert run(app, ["log", str(path), "--export", str(tmp_path / "log.txt")]).exit_code == 1


async def test_callers_tag_what_they_ask_for(tmp_path):
    with SQLiteLog(tmp_path / "log.sqlite") as log, exact(log) as guard:
        with tagged(tenant="blue"):
            guard.check(question="", answer="Mozart was born in Salzburg.", id="sync")
            with tagged(user="u17"):
                await guard.acheck(question="", answer="Mozart was born.", id="async")
        guard.check(question="", answer="Mozart was born.", id="bare")
        tags = {record.answer.id: dict(record.tags) for record in log.records()}
    assert tags["sync"] == {"tenant": "blue"}
    assert tags["async"] == {"tenant": "blue", "user": "u17"}
    assert tags["bare"] == {}


def test_a_log_whose_file_was_taken_away_goes_on_in_a_new_one(tmp_path):
    path = tmp_path / "scores.sqlite"
    with open_log(path) as log:
        log.write(answer("before"))
        for file in tmp_path.glob("scores.sqlite*"):
            file.rename(tmp_path / f"moved-{file.name}")
        log.write(answer("after"))
        with open_log(path, read_only=True) as read:
            assert [record.answer.id for record in read.records()] == ["after"]


def test_a_log_that_another_process_holds_keeps_no_answer_waiting(tmp_path):
    path = tmp_path / "scores.sqlite"
    config = GuardrailConfig(judge="none", graph="none", log={"path": path})
    with Guardrail(config) as guard, closing(sqlite3.connect(path)) as other:
        guard.warm_up()
        other.execute("BEGIN IMMEDIATE")
        begin = time.monotonic()
        held_up = guard.check("Who?", "Ada was born in London.", id="held-up")
        assert time.monotonic() - begin < 25  # SQLite itself waits for thirty
        assert [problem.part for problem in held_up.errors if problem.part == "records"]
        other.rollback()
        guard.check("Who?", "Ada was born in London.", id="later")
    with open_log(path, read_only=True) as log:
        assert {record.answer.id for record in log.records()} == {"held-up", "later"}
