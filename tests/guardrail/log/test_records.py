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
import typer
from pydantic import ValidationError
from typer.testing import CliRunner

from guardrail import Guardrail, GuardrailConfig
from guardrail.commands.log import log as log_command
from guardrail.commands.log import report
from guardrail.core.errors import InputError, RecordError
from guardrail.core.types import (
    Action,
    Category,
    Entity,
    GuardedAnswer,
    LinkedEntity,
    Mention,
    Problem,
    Score,
    ScoreCard,
    Sentence,
    Triple,
)
from guardrail.log.entries import ScoreBound, from_json, to_json
from guardrail.log.records import (
    Feedback,
    JSONLinesLog,
    Record,
    RecordFilter,
    SQLiteLog,
    open_log,
    tagged,
)
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


@pytest.fixture(params=["log.sqlite", "log.jsonl"])
def log(request, tmp_path):
    with_file = open_log(tmp_path / request.param)
    yield with_file
    with_file.close()


def test_a_response_comes_back_as_it_was_written(log):
    log.write(answer(text="a lone surrogate \ud800 and a null \x00"), tags={"tenant": "blue"})
    (record,) = log.records()
    assert record.answer.text == "a lone surrogate \ud800 and a null \x00"
    assert record.tags == {"tenant": "blue"}


def test_filters(log):
    ada = LinkedEntity(
        mention=Mention(text="Ada", start=0, end=3),
        entity=Entity(id="Q7259", label="Ada Lovelace"),
        matched="label",
    )
    log.write(answer("good", overall=0.9, entities=(ada,)), tags={"run": "1"})
    log.write(answer("bad", overall=0.1, action=Action.REFUSE))

    def found(**conditions):
        return [record.answer.id for record in log.records(RecordFilter(**conditions))]

    assert found() == ["good", "bad"]
    assert found(max_overall=0.2) == ["bad"]
    assert found(action="refuse") == ["bad"]
    assert found(entity="Q7259") == found(entity="Ada Lovelace") == ["good"]
    assert found(tag="run=1") == ["good"]
    assert found(category=Category.CONTRADICTORY) == []
    assert found(since=datetime.now(UTC) + timedelta(hours=1)) == []


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


def test_a_record_written_twice_is_kept_once(tmp_path):
    with SQLiteLog(tmp_path / "log.sqlite") as log:
        record = Record(answer=answer())
        log.write_record(record)
        log.write_record(record)
        assert log.count() == 1


def test_retention_deletes_old_records(tmp_path):
    path = tmp_path / "log.sqlite"
    with SQLiteLog(path) as log:
        log.write_record(
            Record(answer=answer("old"), created=datetime.now(UTC) - timedelta(days=40))
        )
        log.write(answer("new"))
    with SQLiteLog(path, retention=timedelta(days=30)) as log:
        assert [record.answer.id for record in log.records()] == ["new"]


def test_feedback_stands_beside_its_record(tmp_path):
    with SQLiteLog(tmp_path / "log.sqlite") as log:
        record = Record(answer=answer())
        log.write_record(record)
        log.write_feedback(Feedback(record_id=record.id, sentence=0, thumb=-1, correction="Paris"))
        (kept,) = log.feedback()
        assert (kept.record_id, kept.thumb, kept.correction) == (record.id, -1, "Paris")
        with pytest.raises(RecordError, match="no record"):
            log.write_feedback(Feedback(record_id="missing", thumb=1))


@pytest.mark.parametrize("name", ["log.sqlite", "log.jsonl"])
def test_feedback_may_name_the_answer_in_place_of_its_record(tmp_path, name):
    log = open_log(tmp_path / name)
    for text in ("first", "second"):
        log.write(answer("q1", text))
    assert log.write_feedback(Feedback(record_id="q1", thumb=-1))
    log.write(answer("q1", "third"))
    (kept,) = log.feedback()
    assert log.record(kept.record_id).answer.text == "second"


def test_feedback_takes_the_beginning_of_one_answers_id(tmp_path):
    made = uuid4().hex
    with SQLiteLog(tmp_path / "log.sqlite") as log:
        log.write(answer(f"{made}.10"))
        assert log.write_feedback(Feedback(record_id=made[:12], thumb=1))
        # A whole id means its own answer, which may be on its way.
        assert not log.write_feedback(Feedback(record_id=f"{made}.1", thumb=1))
        log.write(answer(f"{made}.2"))
        for short in (made[:12], made[:7]):
            with pytest.raises(RecordError, match="no record"):
                log.write_feedback(Feedback(record_id=short, thumb=1))


@pytest.mark.parametrize("name", ["log.sqlite", "log.jsonl"])
def test_feedback_that_comes_before_its_record_waits_for_it(tmp_path, name):
    log = open_log(tmp_path / name)
    made = uuid4().hex
    log.write_feedback(Feedback(record_id=made, thumb="down"))
    log.write(answer(made))
    (record,), (kept,) = log.records(), log.feedback()
    assert (kept.record_id, kept.thumb) == (record.id, -1)
    log.close()


def test_what_waits_for_no_record_goes_with_the_retention(tmp_path):
    path = tmp_path / "log.sqlite"
    old = datetime.now(UTC) - timedelta(days=40)
    with SQLiteLog(path) as log:
        log.write_feedback(Feedback(record_id=uuid4().hex, thumb=1, created=old))
        log.write_feedback(Feedback(record_id=uuid4().hex, thumb=1))
    with SQLiteLog(path, retention=timedelta(days=30)) as log:
        assert len(list(log.feedback())) == 1


@pytest.mark.parametrize(
    ("told", "thumb"), [("up", 1), ("Down", -1), (1, 1), (-1, -1), ("-1", -1), (0, 0)]
)
def test_a_thumb_is_a_number_or_a_word(told, thumb):
    assert Feedback(record_id="r", thumb=told).thumb == thumb


@pytest.mark.parametrize("told", ["sideways", 2, True, None, [], 0.5])
def test_what_is_no_thumb_is_told_in_words(told):
    with pytest.raises(ValidationError, match='1 or -1, "up" or "down"'):
        Feedback(record_id="r", thumb=told)


def test_a_file_of_the_first_version_is_migrated(tmp_path):
    path = tmp_path / "log.sqlite"
    from guardrail.log.schema import MIGRATIONS

    with sqlite3.connect(path) as db:
        for statement in MIGRATIONS[0]:
            db.execute(statement)
        db.execute("PRAGMA user_version = 1")
    record = Record(answer=answer())
    with SQLiteLog(path) as log:
        log.write_record(record)
        log.write_feedback(Feedback(record_id=record.id, thumb=1))
        assert log.count() == 1


def test_a_file_of_a_newer_version_is_refused(tmp_path):
    path = tmp_path / "log.sqlite"
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA user_version = 999")
    with pytest.raises(RecordError, match="upgrade"):
        SQLiteLog(path)


def test_json_lines_are_rotated_and_read_in_order(tmp_path):
    log = JSONLinesLog(tmp_path / "log.jsonl", rotate_bytes=1500)
    for number in range(10):
        log.write(answer(str(number)))
    assert len(list(tmp_path.iterdir())) > 1
    assert [record.answer.id for record in log.records()] == [str(n) for n in range(10)]


@pytest.mark.parametrize("name", ["missing/log.sqlite", "missing/log.jsonl"])
def test_a_place_that_cannot_be_written_is_a_typed_error(tmp_path, name):
    with pytest.raises(RecordError, match="cannot"):
        open_log(tmp_path / name).write(answer())


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
    """Four processes write until they are killed without warning."""
    path = tmp_path / "log.sqlite"
    SQLiteLog(path).close()
    acknowledged = []
    writers = []
    for number in range(4):
        acknowledged.append(tmp_path / f"ack{number}")
        with acknowledged[-1].open("w") as out:
            writers.append(subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=out))
    until(lambda: min(path.stat().st_size for path in acknowledged) >= 5000)
    for writer in writers:
        os.kill(writer.pid, signal.SIGKILL)
        writer.wait()
    # A line cut short by the kill was not acknowledged.
    ids = [line for p in acknowledged for line in p.read_text().split("\n")[:-1]]
    with SQLiteLog(path) as log:
        kept = [record.id for record in log.records()]
    assert len(ids) > 400
    assert set(ids) <= set(kept)
    assert len(kept) == len(set(kept))


def test_the_log_keeps_what_sentences_rest_on(exact_guard, tmp_path):
    checked = exact_guard.check(
        question="Who was Mozart?", answer="Wolfgang Amadeus Mozart was born in Salzburg."
    )
    with (
        SQLiteLog(tmp_path / "slim.sqlite") as slim,
        SQLiteLog(tmp_path / "whole.sqlite", whole=True) as whole,
    ):
        slim.write(checked)
        whole.write(checked)
        (kept,), (all_,) = slim.records(), whole.records()
    assert all_.answer == checked
    cited = kept.answer.sentences[0].citations
    assert tuple(item.citation for item in kept.answer.evidence) == cited
    assert len(all_.answer.evidence) > 20
    assert kept.answer.sentences == checked.sentences


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
    [record] = log.records(RecordFilter(category=Category.CONTRADICTORY))
    assert record.answer.removed == (gone,)
    assert facts[1] in record.answer.evidence


def test_a_record_from_before_a_field_still_loads():
    fields = json.loads(to_json(Record(answer=answer())))
    del fields["answer"]["removed"], fields["answer"]["sentences"][0]["uncited"]
    assert from_json(json.dumps(fields)).answer == answer()


def test_bounds_on_scores():
    record = Record(answer=answer(overall=0.5))
    assert [
        text
        for text in ("overall<0.5", "overall<=0.5", "overall > 0.4", "overall>=0.6", "sck>0")
        if ScoreBound.parse(text).holds(record)
    ] == ["overall<=0.5", "overall > 0.4"]
    with pytest.raises(InputError, match="no bound"):
        ScoreBound.parse("overall=1")


def test_a_reader_sees_the_log_as_it_was_while_others_write(tmp_path):
    with SQLiteLog(tmp_path / "log.sqlite") as log:
        log.write_records(Record(answer=answer(str(n))) for n in range(10))
        reading = log.records()
        first = next(reading)
        log.write(answer("later"))
        assert [first.answer.id, *(item.answer.id for item in reading)] == [
            str(n) for n in range(10)
        ]
        assert [item.answer.id for item in log.latest(2)] == ["9", "later"]


def test_a_half_line_does_not_swallow_the_next(tmp_path):
    path = tmp_path / "log.jsonl"
    log = JSONLinesLog(path)
    log.write(answer("one"))
    with path.open("a") as file:
        file.write('{"id": "cut sh')
    log.write(answer("two"))
    assert [record.answer.id for record in log.records()] == ["one", "two"]


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
        assert log.count() == 2


@pytest.mark.parametrize("name", ["/dev/full", "/proc/guardrail.jsonl"])
def test_json_lines_that_cannot_be_written_do_not_fail_answers(name):
    with exact(JSONLinesLog(name)) as guard:
        late = guard.check(question="Who was Mozart?", answer="Mozart was born in Salzburg.")
    assert late.sentences[0].category is Category.SUPPORTIVE
    assert [problem.part for problem in late.errors] == ["records"]


def exact(log):
    return Guardrail(GuardrailConfig(judge="none"), log=log)


def test_export_and_search_from_the_command_line(tmp_path):
    path = tmp_path / "log.sqlite"
    with SQLiteLog(path) as log:
        log.write(answer("good", overall=0.9), tags={"run": "1"})
        log.write(answer("=bad()", text="=HYPERLINK()", overall=0.1))
    app = typer.Typer()
    app.command("log")(log_command)
    app.command("report")(report)
    run = CliRunner().invoke
    shown = run(app, ["log", str(path), "--score", "overall<0.5", "--json"])
    assert [json.loads(line)["answer"]["id"] for line in shown.stdout.splitlines()] == ["=bad()"]
    for name in ("log.csv", "log.parquet", "log.jsonl"):
        assert run(app, ["log", str(path), "--export", str(tmp_path / name)]).exit_code == 0
    with (tmp_path / "log.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["score.overall"] for row in rows] == ["0.9", "0.1"]
    assert (rows[0]["tag.run"], rows[1]["text"]) == ("1", "'=HYPERLINK()")
    assert len(list(JSONLinesLog(tmp_path / "log.jsonl").records())) == 2
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    table = parquet.read_table(tmp_path / "log.parquet").to_pylist()
    assert [row["text"] for row in table][1] == "=HYPERLINK()"
    assert table[0]["created"].tzinfo is not None


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
    config = GuardrailConfig(judge="none", graph="none", log={"path": path, "wait_s": 0.3})
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
