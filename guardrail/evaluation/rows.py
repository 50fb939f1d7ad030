"""Answers with what people expect of them: JSON lines of ``eval``, and tables of ``tune``."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from pydantic import Field, ValidationError, field_validator

from guardrail.core.errors import InputError
from guardrail.core.fields import in_short
from guardrail.core.rows import TABLE_FILES, cell_text, read_rows
from guardrail.core.text.lexicon import lexicon
from guardrail.core.types import Evidence, GuardedAnswer, Probability, Value, Verdict
from guardrail.evaluation.assertion import Requirement, assess, whole_answer_policy
from guardrail.lines.jobs import ROWS_PER_CALL, CheckRow
from guardrail.lines.rows import EvidenceRow, LineJob, first_problem

if TYPE_CHECKING:
    from guardrail.core.types.answers import CheckRequest
    from guardrail.guard import Guardrail

__all__ = [
    "NO_EVIDENCE",
    "EvalResult",
    "EvalRow",
    "JudgedSentence",
    "LabelledRow",
    "collecting_job",
    "evaluation_job",
    "read_labelled",
]

LABELS: Mapping[str, Verdict] = {
    **dict.fromkeys(("supported", "1", *lexicon("function_words")["yes"]), Verdict.SUPPORTED),
    **dict.fromkeys(("unsupported", "0", *lexicon("function_words")["no"]), Verdict.UNSUPPORTED),
    "contradicted": Verdict.CONTRADICTED,
    "no_claim": Verdict.NO_CLAIM,
}
"""How a label may be written: a verdict, or yes and no as tables write them."""

COLUMNS: Mapping[str, tuple[str, ...]] = {
    "question": ("question",),
    "answer": ("answer", "sentence"),
    "evidence": ("evidence", "passages"),
    "expected": ("label", "expected"),
}
"""Columns of a table of labelled answers, with all their names."""

_DIGITS = 16


class EvalRow(CheckRow):
    """An answer of a chatbot, its evidence, and the expected verdict.

    Attributes:
        expected: ``supported``, ``unsupported``, ``contradicted`` or ``no_claim``; None if every
            claim must be supported.
    """

    other_names: ClassVar[Mapping[str, str]] = {
        **EvidenceRow.other_names,
        **dict.fromkeys(("label", "verdict", "gold"), "expected"),
        **dict.fromkeys(("input", "user_input", "query"), "question"),
        **dict.fromkeys(("output", "actual_output", "response"), "answer"),
    }
    expected: Verdict | None = None

    @field_validator("expected", mode="before")
    @classmethod
    def _known(cls, value: object) -> object:
        if not isinstance(value, str | bool | int):
            return value
        found = LABELS.get(str(value).strip().lower())
        if found is None:
            raise ValueError(f"there is no {in_short(value)}; known: {', '.join(LABELS)}")
        return found


class LabelledRow(NamedTuple):
    """An answer that people judged.

    Attributes:
        question: The question; may be empty.
        answer: The answer, or one sentence of it.
        evidence: The evidence it is judged against.
        label: ``supported``, ``unsupported`` or ``contradicted``.
        group: The evidence as written, else the answer; rows of a group are not independent.
    """

    question: str
    answer: str
    evidence: tuple[Evidence, ...]
    label: Verdict
    group: str


class JudgedSentence(Value):
    """A sentence with its verdict."""

    text: str
    verdict: Verdict
    support: Probability | None = None
    contradiction: Probability | None = None
    against: tuple[str, ...] = ()


class EvalResult(Value):
    """The result of a row, as a run stores it for the next.

    Attributes:
        id: The row's.
        question: The row's.
        answer: The row's.
        evidence_hash: Identifies its evidence.
        expected: The row's.
        verdict: On the answer as a whole; None if nothing could be checked.
        passed: True if it is as expected.
        claims: Number of sentences that claim something.
        supported: Share of supported claims.
        contradicted: Share of contradicted claims.
        failures: What is not as expected, one line each.
        sentences: Every sentence with its verdict.
        versions: Hashes of judge, graph and policy.
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
    sentences: tuple[JudgedSentence, ...] = ()
    versions: Mapping[str, str] = Field(default_factory=dict)
    error: str | None = None


def evaluation_job(guard: Guardrail, requirement: Requirement) -> LineJob[EvalRow]:
    """Judge the answers of rows.

    Args:
        guard: The guardrail.
        requirement: What an answer without an expected verdict must reach.
    """
    policy = whole_answer_policy(guard.config)

    def process(rows: Sequence[EvalRow]) -> list[EvalResult]:
        judged = guard.check_batch([row.request() for row in rows], policy=policy)
        return [_result(row, answer, requirement) for row, answer in zip(rows, judged, strict=True)]

    return LineJob(EvalRow, process, batch_size=ROWS_PER_CALL, title="eval")


def collecting_job(found: list[CheckRequest]) -> LineJob[EvalRow]:
    """Append the rows of a file to ``found`` as requests, without judging them."""

    def process(rows: Sequence[EvalRow]) -> list[EvalResult]:
        found.extend(row.request() for row in rows)
        return [EvalResult() for _ in rows]

    return LineJob(EvalRow, process, title="eval")


def read_labelled(path: Path, files: Sequence[Evidence] | None = None) -> list[LabelledRow]:
    """Read a table of labelled answers: CSV, TSV or JSON lines.

    Args:
        path: The file. Columns: ``question`` (optional), ``answer`` or ``sentence``, ``evidence``
            or ``passages``, ``label`` or ``expected``. A cell of evidence is a text, or a JSON
            list of items for ``evidence_items``.
        files: The evidence of all rows if the table has no column of evidence; None for none.

    Raises:
        InputError: The file cannot be read, has no rows or lacks a column, or a row is wrong.
    """
    kind = TABLE_FILES.get(path.suffix.lower(), "csv")
    try:
        with path.open("rb") as file:
            table = list(read_rows(file, kind, str(path)))
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error
    rows = [
        _labelled(f"{path}, line {line}", cells, files)
        for line, cells in table
        if any(map(cell_text, cells.values()))
    ]
    if not rows:
        raise InputError(f"{path} has no rows below its first line")
    return rows


def _labelled(
    where: str, cells: Mapping[str, object], files: Sequence[Evidence] | None
) -> LabelledRow:
    named = {name.strip().lower(): cell for name, cell in cells.items() if name}
    fields: dict[str, object] = {}
    for field, names in COLUMNS.items():
        found = [named[name] for name in names if name in named]
        if found:
            cell = found[0]
            fields[field] = cell.strip() if isinstance(cell, str) else cell
            if field in ("answer", "expected") and fields[field] in (None, ""):
                raise InputError(f"{where}: no {names[0]}")
        elif field != "question" and (field != "evidence" or files is None):
            hint = "; or name files of evidence in the settings" if field == "evidence" else ""
            raise InputError(
                f"{where}: there is no column {' or '.join(map(repr, names))}; there are "
                f"{', '.join(map(repr, named))}{hint}"
            )
    written = fields.get("evidence")
    if isinstance(written, str) and written.startswith("["):
        with suppress(ValueError, RecursionError):  # may be a text that begins with a bracket
            fields["evidence"] = json.loads(written)
    try:
        row = EvalRow.model_validate(fields)
    except ValidationError as error:
        raise InputError(f"{where}: {first_problem(error)}") from None
    if row.expected is None or row.expected is Verdict.NO_CLAIM:
        raise InputError(f"{where}: the label must be supported, unsupported or contradicted")
    evidence = tuple(files or ()) if row.items is None else row.items
    group = " ".join(str(row.answer if written is None else written).split())
    return LabelledRow(row.question, row.answer, evidence, row.expected, group)


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
        sentences=tuple(
            JudgedSentence(
                text=item.text,
                verdict=item.verdict,
                support=item.support,
                contradiction=item.contradiction,
                against=item.against,
            )
            for item in answer.judged
        ),
        versions=answer.versions,
        error=failures[0] if found.verdict is None else None,
    )


def _evidence_hash(row: EvalRow) -> str:
    if not row.items:
        return _digest(None if row.items is None else [])
    short = row.model_dump(mode="json", include={"triples", "passages"}, exclude_none=True)
    return _digest({"evidence": row.evidence, **short} if short else row.evidence)


def _digest(value: object) -> str:
    text = json.dumps(value, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]


NO_EVIDENCE = frozenset({_digest(None), _digest([])})
"""The ``evidence_hash`` of rows without evidence, for which the graph or files are queried."""
