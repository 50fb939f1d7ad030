"""Runs of ``guardrail eval``: rows judged, summarised, compared with the last run, and as JUnit."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from pydantic import Field, ValidationError

from guardrail.core.errors import InputError, file_errors
from guardrail.core.types import GuardedAnswer, Probability, Value, Verdict
from guardrail.evaluation.assertion import Requirement, assess, whole_answer_policy
from guardrail.evaluation.rows import EvalRow
from guardrail.intervals import Rate, clustered_share, paired_difference
from guardrail.lines import ROWS_PER_CALL, LineJob
from guardrail.log.entries import EVIDENCE, changed_hashes

if TYPE_CHECKING:
    from guardrail.guard import Guardrail


class EvalResult(Value):
    """The result of a row, as a run stores it for the next.

    Attributes:
        verdict: On the answer as a whole; None if nothing could be checked.
        passed: True if it is as expected.
        claims: Number of sentences that claim something.
        failures: What is not as expected, one line each.
        sentences: The verdict on every sentence, by its text.
        versions: Names and hashes of judge, graph, policy and evidence files of the settings.
        error: Why nothing could be checked.
    """

    id: str | int | None = None
    question: str = ""
    answer: str = ""
    evidence_hash: str = ""
    expected: Verdict | None = None
    verdict: Verdict | None = None
    passed: bool = False
    claims: int = 0
    supported: Probability | None = None
    contradicted: Probability | None = None
    failures: tuple[str, ...] = ()
    sentences: Mapping[str, Verdict] = Field(default_factory=dict)
    versions: Mapping[str, str] = Field(default_factory=dict)
    error: str | None = None


class Turn(Value):
    """A row whose verdict changed, or that passes in only one of two runs.

    Attributes:
        before: The verdict of the last run; None if nothing could be checked.
        changed: What differs: ``answer``, ``evidence``, ``expected``, ``judge``, ``policy``,
            ``graph``, or the name of an evidence file of the settings.
        sentences: Sentences of both answers whose verdict changed, before and after.
    """

    id: str | int | None
    question: str
    before: Verdict | None
    after: Verdict | None
    changed: tuple[str, ...] = ()
    sentences: Mapping[str, tuple[Verdict, Verdict]] = Field(default_factory=dict)


class Comparison(Value):
    """This run compared with the last one, on the rows of both.

    Attributes:
        before: Share of the common rows that passed in the last run.
        better: Rows that pass only now.
        worse: Rows that passed only before.
        difference: Share that passes now minus the share before, with its interval.
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
        errors: Rows that could not be judged; they do not pass.
        passed: Share of all rows that pass. Rows with the same evidence form a cluster, as do rows
            without evidence that have the same question.
        expected: Rows by expected and actual verdict, as ``expected: found``.
    """

    rows: int
    errors: int
    passed: Rate
    verdicts: dict[str, int]
    expected: dict[str, int]
    comparison: Comparison | None = None


def evaluation_job(guard: Guardrail, requirement: Requirement) -> LineJob[EvalRow]:
    """Judge the answers of rows.

    An answer without an expected verdict must reach the requirement and the thresholds of the
    guardrail's policy.

    Raises:
        ConfigError: A threshold of the policy is on a score that is not computed.
    """
    guard.require(guard.config.policy)
    policy = whole_answer_policy(guard.config)
    requirement = requirement.model_copy(update={"thresholds": policy.thresholds})

    def process(rows: Sequence[EvalRow]) -> list[EvalResult]:
        judged = guard.check_batch([row.request() for row in rows], policy=policy)
        return [_result(row, answer, requirement) for row, answer in zip(rows, judged, strict=True)]

    return LineJob(EvalRow, process, batch_size=ROWS_PER_CALL, title="eval")


def read_run(path: Path) -> list[EvalResult]:
    """Read the results of an earlier run; raises InputError."""
    try:
        lines = path.read_text("utf-8").split("\n")  # str.splitlines would split at U+2028
        return [EvalResult.model_validate_json(line) for line in lines if line.strip()]
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read {path}: {error}") from error
    except ValidationError as error:
        raise InputError(f"{path} is no run of guardrail eval; write one with --output") from error


def summarise(results: Sequence[EvalResult], last: Sequence[EvalResult] | None) -> EvalSummary:
    """Summarise a run of at least one row, compared with the last one if there is one."""
    words = [row.verdict.value if row.verdict else "not checked" for row in results]
    pairs = zip(results, words, strict=True)
    expected = Counter(f"{row.expected.value}: {word}" for row, word in pairs if row.expected)
    return EvalSummary(
        rows=len(results),
        errors=sum(row.error is not None for row in results),
        passed=_passing(results),
        verdicts=dict(Counter(words)),
        expected=dict(expected),
        comparison=None if last is None else compare(last, results),
    )


def compare(last: Sequence[EvalResult], results: Sequence[EvalResult]) -> Comparison:
    """Compare a run with the last one; rows are matched by id, else by question."""
    before, after = dict(_keyed(last)), dict(_keyed(results))
    both = [(before[key], row) for key, row in after.items() if key in before]
    changes = [new.passed - old.passed for old, new in both]
    return Comparison(
        rows=len(both),
        added=len(after) - len(both),
        gone=len(before) - len(both),
        before=_passing([old for old, _ in both]),
        better=changes.count(1),
        worse=changes.count(-1),
        difference=paired_difference(changes, _clusters([new for _, new in both])),
        turned=tuple(
            _turn(old, new)
            for old, new in both
            if (old.verdict, old.passed) != (new.verdict, new.passed)
        ),
    )


def write_junit(path: Path, results: Sequence[EvalResult]) -> None:
    """Write a run as JUnit XML, which CI servers show: a test case per row."""
    errors = sum(row.error is not None for row in results)
    failed = sum(not row.passed for row in results) - errors
    counts = {"tests": len(results), "failures": failed, "errors": errors}
    whole = ElementTree.Element("testsuites")
    title = "guardrail eval"
    suite = ElementTree.SubElement(
        whole, "testsuite", {"name": title} | {name: str(count) for name, count in counts.items()}
    )
    for place, row in enumerate(results, start=1):
        name = str(row.id) if row.id is not None else row.question or f"row {place}"
        case = ElementTree.SubElement(suite, "testcase", classname=title, name=_valid_xml(name))
        if row.error is not None:
            ElementTree.SubElement(case, "error", message=_valid_xml(row.error))
        elif not row.passed:
            fault = ElementTree.SubElement(case, "failure", message=_valid_xml(row.failures[0]))
            fault.text = _valid_xml("\n".join((*row.failures, f"answer: {row.answer}")))
    with file_errors("write", path):
        ElementTree.ElementTree(whole).write(path, "utf-8", xml_declaration=True)


def _result(row: EvalRow, answer: GuardedAnswer, requirement: Requirement) -> EvalResult:
    found = assess(answer, requirement)
    failures = found.failures
    if row.expected is not None and found.verdict is not None:
        wrong = f"{found.verdict.value}, where {row.expected.value} was expected"
        failures = () if found.verdict is row.expected else (wrong, *failures)
    return EvalResult(
        id=row.id,
        question=row.question,
        answer=row.answer,
        evidence_hash=_evidence_hash(row),
        expected=row.expected,
        verdict=found.verdict,
        passed=not failures,
        claims=found.claims,
        supported=found.supported,
        contradicted=found.contradicted,
        failures=failures,
        sentences={item.text: item.verdict for item in answer.judged},
        versions=answer.versions,
        error=failures[0] if found.verdict is None else None,
    )


def _evidence_hash(row: EvalRow) -> str:
    """Empty for a row without evidence, for which the graph or files are queried."""
    if not row.items:
        return ""
    fields = {"evidence", "triples", "passages"}
    written = row.model_dump(mode="json", include=fields, exclude_none=True)
    return hashlib.sha256(json.dumps(written, sort_keys=True).encode()).hexdigest()[:16]


def _keyed(rows: Iterable[EvalResult]) -> Iterator[tuple[tuple[str, int], EvalResult]]:
    """Rows by id, or question, and by their number among rows with the same one."""
    seen: Counter[str] = Counter()
    for row in rows:
        name = f"question {row.question}" if row.id is None else f"id {row.id}"
        yield (name, seen[name]), row
        seen[name] += 1


def _turn(old: EvalResult, new: EvalResult) -> Turn:
    fields = {"answer": "answer", "evidence_hash": "evidence", "expected": "expected"}
    changed = [name for field, name in fields.items() if getattr(old, field) != getattr(new, field)]
    changed += [
        name.removeprefix(EVIDENCE) if name.startswith(EVIDENCE) else name.partition("_")[0]
        for name in changed_hashes(old.versions, new.versions)
    ]
    return Turn(
        id=new.id,
        question=new.question,
        before=old.verdict,
        after=new.verdict,
        changed=tuple(changed),
        sentences={
            text: (old.sentences[text], verdict)
            for text, verdict in new.sentences.items()
            if old.sentences.get(text, verdict) is not verdict
        },
    )


def _passing(rows: Sequence[EvalResult]) -> Rate:
    return clustered_share([row.passed for row in rows], _clusters(rows))


def _clusters(rows: Sequence[EvalResult]) -> list[str]:
    """What dependent rows have in common: evidence, or the question that retrieves it."""
    return [
        row.evidence_hash or (row.question and f"question {row.question}") or f"row {place}"
        for place, row in enumerate(rows)
    ]


def _valid_xml(text: str) -> str:
    # Characters that XML must not contain (XML 1.0, 2.2)
    return re.sub("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "\ufffd", text)
