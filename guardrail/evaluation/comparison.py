"""The results of an evaluation, compared with those of the last one, and as JUnit XML."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from xml.etree import ElementTree

from pydantic import ValidationError

from guardrail.core.errors import InputError
from guardrail.core.types import Value, Verdict
from guardrail.evaluation.rows import NO_EVIDENCE, EvalResult
from guardrail.intervals import Rate, effective_size, paired_difference, share
from guardrail.log.fingerprints import HASHES

__all__ = [
    "Comparison",
    "EvalSummary",
    "SentenceTurn",
    "Turn",
    "compare",
    "read_run",
    "summarise",
    "write_junit",
]

SUITE = "guardrail eval"
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML must not contain (XML 1.0, 2.2)."""


class SentenceTurn(Value):
    """A sentence whose verdict changed since the last run."""

    text: str
    before: Verdict
    after: Verdict


class Turn(Value):
    """A row whose verdict changed, or that passes in only one of two runs.

    Attributes:
        id: The row's.
        question: The row's.
        before: The verdict of the last run; None if nothing could be checked.
        after: The verdict now.
        passed_before: True if it passed in the last run.
        passed: True if it passes now.
        changed: What differs: ``answer``, ``evidence``, ``expected``, ``judge``, ``policy``,
            ``graph``.
        sentences: Sentences of both answers whose verdict changed.
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
    """This run compared with the last one, on the rows of both.

    Attributes:
        rows: Rows in both.
        added: Rows that the last run does not have.
        gone: Rows that this run does not have.
        before: Share of the common rows that passed in the last run.
        better: Rows that pass only now.
        worse: Rows that passed only before.
        difference: Share that passes now minus the share before, with its interval.
        turned: Every row that changed.
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
    """The results of a run.

    Attributes:
        rows: Rows in all.
        errors: Rows that could not be judged; they do not pass.
        passed: Share of all rows that pass. Rows with the same evidence form a cluster, as do rows
            without evidence that have the same question.
        verdicts: Rows by verdict.
        expected: Rows by expected and actual verdict, as ``expected: found``.
        comparison: With the last run, if there is one.
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
        lines = path.read_text("utf-8").split("\n")  # str.splitlines would split at U+2028
        return [EvalResult.model_validate_json(line) for line in lines if line.strip()]
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read {path}: {error}") from error
    except ValidationError as error:
        raise InputError(f"{path} is no run of guardrail eval; write one with --output") from error


def summarise(results: Sequence[EvalResult], last: Sequence[EvalResult] | None) -> EvalSummary:
    """Summarise a run.

    Args:
        results: Its rows, at least one.
        last: The rows of the last run; None if there is none.
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
    """Compare a run with the last one; rows are matched by id, else by question.

    Args:
        last: The last run.
        results: This run.
    """
    before = dict(_keyed(last))
    after = dict(_keyed(results))
    both = [(before[key], row) for key, row in after.items() if key in before]
    changes = [new.passed - old.passed for old, new in both]
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
        difference=paired_difference(changes, _groups([new for _, new in both])),
        turned=tuple(turned),
    )


def write_junit(path: Path, results: Sequence[EvalResult]) -> None:
    """Write a run as JUnit XML, which CI servers show: a test case per row.

    Raises:
        InputError: The file cannot be written.
    """
    errors = sum(row.error is not None for row in results)
    failed = sum(not row.passed for row in results) - errors
    counts = {"tests": len(results), "failures": failed, "errors": errors}
    suite = ElementTree.Element(
        "testsuite", {"name": SUITE} | {name: str(number) for name, number in counts.items()}
    )
    for place, row in enumerate(results, start=1):
        name = str(row.id) if row.id is not None else row.question or f"row {place}"
        case = ElementTree.SubElement(suite, "testcase", classname=SUITE, name=_valid_xml(name))
        if row.error is not None:
            ElementTree.SubElement(case, "error", message=_valid_xml(row.error))
        elif not row.passed:
            fault = ElementTree.SubElement(case, "failure", message=_valid_xml(row.failures[0]))
            fault.text = _valid_xml("\n".join((*row.failures, f"answer: {row.answer}")))
    whole = ElementTree.Element("testsuites")
    whole.append(suite)
    try:
        ElementTree.ElementTree(whole).write(path, "utf-8", xml_declaration=True)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from error


def _keyed(rows: Iterable[EvalResult]) -> Iterator[tuple[tuple[str, int], EvalResult]]:
    """Rows by id, or question, and by their number among rows with the same one."""
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
    passed = [row.passed for row in rows]
    return share(sum(passed), len(rows), effective_size(passed, _groups(rows)) if rows else 0)


def _groups(rows: Sequence[EvalResult]) -> list[str]:
    return [_group(row) or f"row {place}" for place, row in enumerate(rows)]


def _group(row: EvalResult) -> str:
    """What dependent rows have in common: evidence, or the question that retrieves it.

    Empty for a row with neither, such as one that could not be read.
    """
    if row.evidence_hash and row.evidence_hash not in NO_EVIDENCE:
        return row.evidence_hash
    return row.question and f"question {row.question}"


def _word(verdict: Verdict | None) -> str:
    return "not checked" if verdict is None else verdict.value


def _valid_xml(text: str) -> str:
    return _NOT_XML.sub("\ufffd", text)
