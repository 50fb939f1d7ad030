"""What a run found, and what turned since the last one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from pydantic import ValidationError

from guardrail.bulk.summary import Rate
from guardrail.core.errors import InputError
from guardrail.core.types import Value, Verdict
from guardrail.evaluation.rows import NO_EVIDENCE, EvalResult
from guardrail.intervals import GroupedShare, paired_difference
from guardrail.log.fingerprints import HASHES

__all__ = ["Comparison", "EvalSummary", "SentenceTurn", "Turn", "compare", "read_run", "summarise"]


class SentenceTurn(Value):
    """A sentence whose verdict is another than in the last run."""

    text: str
    before: Verdict
    after: Verdict


class Turn(Value):
    """A row whose verdict, or whose passing, is another than in the last run.

    Attributes:
        id: The row's.
        question: The row's.
        before: The verdict of the last run; None where nothing could be checked.
        after: The verdict now.
        passed_before: Whether it passed in the last run.
        passed: Whether it passes now.
        changed: What differs: ``answer``, ``evidence``, ``expected``, ``judge``, ``policy``,
            ``graph``.
        sentences: The sentences that stand in both answers and turned.
    """

    id: str | int | None
    question: str
    before: Verdict | None
    after: Verdict | None
    passed_before: bool
    passed: bool
    changed: tuple[str, ...] = ()
    sentences: tuple[SentenceTurn, ...] = ()


class Comparison(Value):
    """This run beside the last one, on the rows that are in both.

    Attributes:
        rows: Rows in both.
        added: Rows that the last run lacks.
        gone: Rows that this run lacks.
        before: Share of the rows in both that passed.
        better: Rows that pass now and did not.
        worse: Rows that passed and do not now.
        difference: Share that passes now minus the share before, with its interval.
        turned: Every row that turned.
    """

    rows: int
    added: int
    gone: int
    before: Rate
    better: int
    worse: int
    difference: Rate
    turned: tuple[Turn, ...] = ()


class EvalSummary(Value):
    """What a run found.

    Attributes:
        rows: Rows in all.
        errors: Rows that could not be judged; they do not pass.
        passed: Share of all rows that pass; rows that share their evidence count as a group, of
            those that bring none the rows of one question.
        verdicts: Rows by verdict.
        expected: Rows by what was expected and what was found, as ``expected: found``.
        comparison: Beside the last run, where there is one.
    """

    rows: int
    errors: int
    passed: Rate
    verdicts: dict[str, int]
    expected: dict[str, int]
    comparison: Comparison | None = None


def read_run(path: Path) -> list[EvalResult]:
    """Read the results of an earlier run.

    Raises:
        InputError: The file cannot be read, or holds something else.
    """
    try:
        lines = path.read_text("utf-8").split("\n")  # a text may hold U+2028, no end of a row
        return [EvalResult.model_validate_json(line) for line in lines if line.strip()]
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read {path}: {error}") from error
    except ValidationError as error:
        raise InputError(f"{path} is no run of guardrail eval; write one with --output") from error


def summarise(results: Sequence[EvalResult], last: Sequence[EvalResult] | None) -> EvalSummary:
    """Count what a run found.

    Args:
        results: Its rows, at least one.
        last: The rows of the run before; None where there is none.
    """
    pairs = Counter(
        f"{row.expected.value}: {_word(row.verdict)}" for row in results if row.expected is not None
    )
    return EvalSummary(
        rows=len(results),
        errors=sum(row.error is not None for row in results),
        passed=_passing(results),
        verdicts=dict(Counter(_word(row.verdict) for row in results)),
        expected=dict(pairs),
        comparison=None if last is None else compare(last, results),
    )


def compare(last: Sequence[EvalResult], results: Sequence[EvalResult]) -> Comparison:
    """Hold a run beside the one before; rows go together by their ids.

    Args:
        last: The earlier run.
        results: This run.
    """
    before = dict(_keyed(last))
    after = dict(_keyed(results))
    both = [(before[key], row) for key, row in after.items() if key in before]
    changes = [new.passed - old.passed for old, new in both]
    value, low, high = paired_difference(changes, _groups([new for _, new in both]))
    turned = [
        _turn(old, new)
        for old, new in both
        if (old.verdict, old.passed) != (new.verdict, new.passed)
    ]
    return Comparison(
        rows=len(both),
        added=len(after) - len(both),
        gone=len(before) - len(both),
        before=_passing([old for old, _ in both]),
        better=changes.count(1),
        worse=changes.count(-1),
        difference=Rate(value=value, low=low, high=high, rows=len(both)),
        turned=tuple(turned),
    )


def _keyed(rows: Iterable[EvalResult]) -> Iterator[tuple[tuple[str, int], EvalResult]]:
    """Rows by id and by which of that id they are; those without go by their question."""
    seen: Counter[str] = Counter()
    for row in rows:
        name = f"question {row.question}" if row.id is None else f"id {row.id}"
        yield (name, seen[name]), row
        seen[name] += 1


def _turn(old: EvalResult, new: EvalResult) -> Turn:
    changed = [
        name
        for name, was, now in (
            ("answer", old.answer, new.answer),
            ("evidence", old.evidence_hash, new.evidence_hash),
            ("expected", old.expected, new.expected),
        )
        if was != now
    ]
    changed += [
        name.partition("_")[0]
        for name in HASHES
        if old.versions.get(name) != new.versions.get(name)
    ]
    verdicts = {item.text: item.verdict for item in old.sentences}
    return Turn(
        id=new.id,
        question=new.question,
        before=old.verdict,
        after=new.verdict,
        passed_before=old.passed,
        passed=new.passed,
        changed=tuple(changed),
        sentences=tuple(
            SentenceTurn(text=item.text, before=verdicts[item.text], after=item.verdict)
            for item in new.sentences
            if verdicts.get(item.text, item.verdict) is not item.verdict
        ),
    )


def _passing(rows: Sequence[EvalResult]) -> Rate:
    if not rows:
        return Rate(value=0.0, low=0.0, high=1.0, rows=0)
    groups = _groups(rows)
    share = GroupedShare(groups)
    for row, group in zip(rows, groups, strict=True):
        if not row.passed:
            share.fail(group)
    low, high = share.interval()
    return Rate(value=share.share, low=low, high=high, rows=len(rows))


def _groups(rows: Sequence[EvalResult]) -> list[str]:
    return [_group(row) or f"row {place}" for place, row in enumerate(rows)]


def _group(row: EvalResult) -> str:
    """What rows share that are not independent: their evidence, or what is found for a question.

    Empty of a row with neither, as of one that could not be read: it stands alone.
    """
    if row.evidence_hash and row.evidence_hash not in NO_EVIDENCE:
        return row.evidence_hash
    return row.question and f"question {row.question}"


def _word(verdict: Verdict | None) -> str:
    return "not checked" if verdict is None else verdict.value
