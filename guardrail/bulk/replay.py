"""Judges the answers of a score log again, and reports which verdicts changed and why."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from guardrail.bulk.run import run_bulk
from guardrail.bulk.scorer import BulkScorer
from guardrail.config import GuardrailConfig
from guardrail.core.errors import InputError
from guardrail.core.types import (
    Action,
    Citation,
    Evidence,
    GuardedAnswer,
    Passage,
    Sentence,
    Triple,
    Value,
)
from guardrail.log.entries import Record, changed_hashes, fingerprints
from guardrail.log.records import open_log
from guardrail.policy import ANNOTATE

if TYPE_CHECKING:
    from guardrail.guard import Guardrail


class Flip(Value):
    """A sentence whose verdict changed.

    Attributes:
        before: Verdict in the log: a category, with ``[NA]`` if support was missing.
        was: What it cited.
        now: What it cites now.
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


class Unjudged(Value):
    """An answer that could not be judged again."""

    id: str
    created: datetime
    error: str


def replay_log(
    log: Path,
    config: GuardrailConfig,
    output: str,
    run: Callable[[BulkScorer, str, str], object] = run_bulk,
) -> Iterator[Flip | Unjudged | None]:
    """Judge the answers of a log again with today's graph, judge and policy.

    Evidence that came with a call is taken from the log; otherwise the graph, or the files of
    ``config.evidence``, are read anew. Nothing is recorded, whatever ``config.log`` is. ``output``
    is a folder for the answers and the results; a second run continues with the answers that the
    first one found in the log. ``run`` is ``run_bulk`` with further options.

    Yields:
        For each answer a flip for each sentence whose verdict changed, or why it was not judged,
        and then None.

    Raises:
        RecordError: The log cannot be read.
        InputError: The output folder belongs to another log.
    """
    folder = Path(output)
    answers, results = folder / "answers.jsonl", folder / "judged"
    folder.mkdir(parents=True, exist_ok=True)
    config = config.model_copy(update={"log": None})
    strictness = config.policy.strictness or config.strictness
    policy = config.policy.model_copy(update={"strictness": strictness})
    # No sentence may be removed before its verdict is compared.
    whole = ANNOTATE.model_copy(update={"strictness": strictness})
    if not answers.exists():
        if any(folder.iterdir()):
            raise InputError(f"{folder} is not empty and holds no replay; name another folder")
        _write_rows(log, config, answers)
    scorer = BulkScorer(task="check", config=config.model_copy(update={"policy": whole}))
    run(scorer, str(answers), str(results))
    with closing(open_log(log, read_only=True)) as entries:
        for found, record in zip(_judged(results), entries.records(), strict=False):
            if found["id"] != record.id:
                raise InputError(f"{folder} holds the replay of another log; name another folder")
            error = found.get("error")
            if found.get("action") == Action.UNVERIFIED:
                error = "; ".join(GuardedAnswer.model_validate(found).reasons)
            if error is None:
                after = GuardedAnswer.model_validate(found)
                versions = {**after.versions, **fingerprints({}, None, policy)}
                yield from flips(record, after.model_copy(update={"versions": versions}))
            else:
                yield Unjudged(id=record.id, created=record.created, error=str(error))
            yield None


def flips(record: Record, after: GuardedAnswer) -> Iterator[Flip]:
    """Compare a record with the same answer judged now, sentence by sentence."""
    before = record.answer
    changed = changed_hashes(before.versions, after.versions)
    for old, new in _pairs(before, after):
        if _verdict(old) != _verdict(new):
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


def _pairs(before: GuardedAnswer, after: GuardedAnswer) -> Iterator[tuple[Sentence, Sentence]]:
    """The sentences of a recorded answer, shown or removed, with the same ones judged now."""
    left = list(after.sentences)
    found = []
    # Removed ones come first: their offsets are still those of the whole answer.
    for old in (*before.removed, *before.sentences):
        same = [one for one in left if one.text == old.text]
        if old in before.removed:
            same.sort(key=lambda one: one.start != old.start)
        if same:
            left.remove(same[0])
            found.append((old, same[0]))
    yield from sorted(found, key=lambda pair: pair[1].start)


def _write_rows(log: Path, config: GuardrailConfig, answers: Path) -> None:
    """Write a row for each record, with the answer as it was before the policy changed it."""
    from guardrail.guard import Guardrail

    new = answers.with_suffix(".new")
    silent = config.model_copy(update={"judge": "none"})
    with (
        closing(open_log(log, read_only=True)) as entries,
        Guardrail(silent) as guard,
        new.open("w", encoding="utf-8") as file,
    ):
        for record in entries.records():
            file.write(json.dumps(_row(record, guard)) + "\n")
    new.replace(answers)


def _row(record: Record, guard: Guardrail) -> dict[str, object]:
    answer = record.answer
    row: dict[str, object] = {
        "id": record.id,
        "question": answer.question,
        "answer": answer.text if answer.original is None else answer.original,
    }
    if answer.evidence_from in (("graph",), ("files",) if guard.config.evidence else ()):
        return row
    own = list(answer.evidence)
    if any(map(_of_graph, own)):  # replace facts of the graph by today's
        today = [item for item in guard.retrieve(answer.question).evidence if _of_graph(item)]
        known = {item.subject_id for item in today if isinstance(item, Triple)}
        own = [item for item in own if not (isinstance(item, Triple) and item.subject_id in known)]
        own += today
    triples = [[it.subject, it.property, it.value] for it in own if isinstance(it, Triple)]
    passages = [it.model_dump(exclude_defaults=True) for it in own if isinstance(it, Passage)]
    return row | {"triples": triples, "passages": passages}


def _of_graph(item: Evidence) -> bool:
    return isinstance(item, Triple) and item.subject_id is not None


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
    def facts(citations: list[Citation]) -> str:
        return ", ".join(f"{item.entity} {item.property}: {item.value}" for item in citations)

    known = {item.citation for item in after.evidence if isinstance(item, Triple)}
    reasons = []
    if new.against:
        reasons.append(f"the evidence says: {' '.join(new.against)}")
    if gone := [citation for citation in old.citations if citation not in known]:
        reasons.append(f"no longer in the graph: {facts(gone)}")
    if found := [citation for citation in new.citations if citation not in old.citations]:
        reasons.append(f"now supported by: {facts(found)}")
    if not reasons and changed:
        reasons.append(f"changed since: {', '.join(name.partition('_')[0] for name in changed)}")
    return "; ".join(reasons) or "nothing known has changed"
