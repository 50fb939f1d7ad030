"""Judges the answers of a score log again, and tells which verdicts flipped and why."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Final, Literal

from guardrail.bulk.run import run_bulk
from guardrail.bulk.scorer import BulkScorer
from guardrail.config import GuardrailConfig
from guardrail.errors import InputError
from guardrail.log.entries import Record
from guardrail.log.fingerprints import HASHES
from guardrail.log.records import open_log
from guardrail.types import Citation, GuardedAnswer, Passage, Sentence, Triple, Value

__all__ = ["Flip", "replay_log"]

_ANSWERS: Final = "answers.jsonl"
_JUDGED: Final = "judged"


class Flip(Value):
    """A sentence whose verdict is another than before.

    Attributes:
        id: The record's id.
        created: When it was recorded.
        sentence: The sentence.
        before: Verdict in the log: a category, with ``NA`` where support was lacking.
        after: Verdict now.
        was: What it cited.
        now: What it cites now.
        because: Why, for a person to read.
        changed: Names of the hashes that differ.
    """

    id: str
    created: datetime
    sentence: str
    before: str
    after: str
    was: tuple[Citation, ...]
    now: tuple[Citation, ...]
    because: str
    changed: tuple[str, ...]


def replay_log(
    log: Path,
    config: GuardrailConfig,
    output: str,
    *,
    engine: Literal["local", "ray"] = "local",
    workers: int = 1,
    shard_rows: int = 256,
    progress: Callable[[int, int], None] | None = None,
) -> Iterator[Flip | None]:
    """Judge the answers of a log again.

    Args:
        log: The score log.
        config: Graph, judge and policy of today.
        output: Folder for the answers and for what is judged; a second run goes on there.
        engine: See ``run_bulk``.
        workers: See ``run_bulk``.
        shard_rows: See ``run_bulk``.
        progress: See ``run_bulk``.

    Yields:
        None for each answer, and before it a flip for each of its sentences that flipped.

    Raises:
        RecordError: The log cannot be read.
        InputError: The output folder is another log's.
    """
    folder = Path(output)
    folder.mkdir(parents=True, exist_ok=True)
    rows = folder / _ANSWERS
    if not rows.exists():
        if any(folder.iterdir()):
            raise InputError(f"{folder} is not empty and holds no replay; name another folder")
        with rows.with_suffix(".new").open("w", encoding="utf-8") as file:
            for record in open_log(log, read_only=True).records():
                file.write(json.dumps(_row(record)) + "\n")
        rows.with_suffix(".new").replace(rows)
    run_bulk(
        BulkScorer(task="check", config=config),
        str(rows),
        str(folder / _JUDGED),
        engine=engine,
        workers=workers,
        shard_rows=shard_rows,
        progress=progress,
    )
    judged = _judged(folder / _JUDGED)
    for record in open_log(log, read_only=True).records():
        found = next(judged, None)
        if found is None:
            return  # recorded since
        if found["id"] != record.id:
            raise InputError(f"{folder} holds the replay of another log; name another folder")
        if "error" not in found:
            yield from flips(record, GuardedAnswer.model_validate(found))
        yield None


def flips(record: Record, after: GuardedAnswer) -> Iterator[Flip]:
    """Compare a record with what is said of the same answer now, sentence by sentence."""
    before = record.answer
    now = {sentence.text: sentence for sentence in after.sentences}
    changed = tuple(
        name for name in HASHES if before.versions.get(name) != after.versions.get(name)
    )
    for old in before.sentences:
        new = now.get(old.text)
        if new is not None and _verdict(old) != _verdict(new):
            yield Flip(
                id=record.id,
                created=record.created,
                sentence=old.text,
                before=_verdict(old),
                after=_verdict(new),
                was=old.citations,
                now=new.citations,
                because=_because(old, new, after, changed),
                changed=changed,
            )


def _row(record: Record) -> dict[str, object]:
    """The row that judges a record's answer as it came from the model.

    Facts of a graph carry ids, and are read from the graph of today; others came with the call.
    """
    answer = record.answer
    row: dict[str, object] = {
        "id": record.id,
        "question": answer.question,
        "answer": answer.text if answer.original is None else answer.original,
    }
    triples = [item for item in answer.evidence if isinstance(item, Triple)]
    passages = [item.text for item in answer.evidence if isinstance(item, Passage)]
    inline = [[one.subject, one.property, one.value] for one in triples if one.subject_id is None]
    if passages or inline:
        row |= {"triples": inline, "passages": passages}
    return row


def _judged(folder: Path) -> Iterator[dict[str, object]]:
    for part in sorted(folder.glob("part-*.jsonl")):
        with part.open(encoding="utf-8") as file:
            for line in file:
                row = json.loads(line)
                del row["row"]
                yield row


def _verdict(sentence: Sentence) -> str:
    category = "no claim" if sentence.category is None else sentence.category.value
    return f"{category} [NA]" if sentence.na else category


def _because(old: Sentence, new: Sentence, after: GuardedAnswer, changed: tuple[str, ...]) -> str:
    known = {item.citation for item in after.evidence if isinstance(item, Triple)}
    gone = [one for one in old.citations if one not in known]
    found = [one for one in new.citations if one not in old.citations]
    told = []
    if new.against:
        told.append(f"the evidence says: {' '.join(new.against)}")
    if gone:
        told.append(f"no longer in the graph: {_facts(gone)}")
    if found:
        told.append(f"now supported by: {_facts(found)}")
    if not told:
        parts = [name.partition("_")[0] for name in changed]
        told.append(f"changed since: {', '.join(parts)}" if parts else "nothing known has changed")
    return "; ".join(told)


def _facts(citations: list[Citation]) -> str:
    return ", ".join(f"{one.entity} {one.property}: {one.value}" for one in citations)
