"""JSON lines in, JSON lines out: rows, their evidence, and the jobs of check, rank and score.

A line that cannot be used yields an object with ``error`` and does not stop the run.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Generic, Self, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    JsonValue,
    PrivateAttr,
    ValidationError,
    model_validator,
)
from pydantic_core import to_jsonable_python

from guardrail.core import rows as reading
from guardrail.core.errors import GuardrailError
from guardrail.core.fields import in_short
from guardrail.core.incoming import finite_json
from guardrail.core.secrets import get_logger
from guardrail.core.types import (
    AttributedAnswer,
    Evidence,
    GuardedAnswer,
    Passage,
)
from guardrail.core.types.answers import CheckRequest, RankRequest
from guardrail.policy import ANNOTATE
from guardrail.sources.items import ShortPassages, ShortTriples, evidence_items, inline_evidence
from guardrail.sources.tables import few_enough

if TYPE_CHECKING:
    from guardrail.guard import Guardrail

logger = get_logger(__name__)

ROWS_PER_CALL = 32
DIGITS = 6
"""Digits after the decimal point: more precise than any judge's probability, and without
floating-point noise such as 0.30000000000000004."""


class Row(BaseModel):
    """Base of the rows that commands read.

    A key that is another name or a misspelling of a missing field is an error, because its value
    would be lost silently. Other unknown keys (a gold label, a source) are ignored and reported
    once on stderr.
    """

    model_config = ConfigDict(frozen=True, extra="allow", coerce_numbers_to_str=True)

    other_names: ClassVar[Mapping[str, str]] = {}
    """Other common names of a field, each with the field's name."""

    id: str | int | None = None

    @model_validator(mode="after")
    def _no_mistaken_key(self) -> Self:
        missing = set(type(self).model_fields) - self.model_fields_set - {"id"}
        for key in self.model_extra or {}:
            meant = self.other_names.get(key.lower())
            if meant is None:
                near = get_close_matches(key.lower(), missing, n=1, cutoff=0.75)
                meant = near[0] if near else None
            if meant in missing:
                raise ValueError(f"there is no field {in_short(key)}; did you mean {meant!r}?")
        return self

    @property
    def text_id(self) -> str | None:
        """The id as text."""
        return None if self.id is None else str(self.id)


class EvidenceRow(Row):
    """A row that may bring its own evidence in place of the graph.

    Attributes:
        evidence: A text, or a list of items for ``evidence_items``, as in a request to the
            gateway; None for no evidence.
        triples: A shorter form: lists of subject, property and value.
        passages: A shorter form: texts, or passage objects.
    """

    other_names: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(("context", "contexts", "documents"), "evidence"),
        **dict.fromkeys(("facts", "knowledge"), "triples"),
    }
    evidence: str | list[JsonValue] | None = None
    triples: ShortTriples = None
    passages: ShortPassages = None
    _items: tuple[Evidence, ...] | None = PrivateAttr(None)

    @model_validator(mode="after")
    def _read(self) -> Self:
        own: tuple[Evidence, ...] | None
        if isinstance(self.evidence, str):
            own = (Passage(text=self.evidence),) if self.evidence.strip() else ()
        else:
            own = None if self.evidence is None else evidence_items(self.evidence)
        short = inline_evidence(self.triples, self.passages)
        few_enough(len(own or ()) + len(short or ()), "the row")
        if own is not None or short is not None:
            self._items = tuple(dict.fromkeys((*(own or ()), *(short or ()))))
        return self

    @property
    def items(self) -> tuple[Evidence, ...] | None:
        """The evidence as the engine takes it; None to query the graph."""
        return self._items


RowT = TypeVar("RowT", bound=Row)
Result = BaseModel | Mapping[str, object]
"""What a command writes for a row: a JSON object, of models as well."""


@dataclass
class LineJob(Generic[RowT]):
    """A function on rows, applied to JSON lines.

    Attributes:
        row_type: The model each line must match.
        process: Turns n rows into n results, in order; raises GuardrailError.
        batch_size: Rows per call of ``process``.
        title: Label of the progress bar.
        unread: Keys of all lines so far that are no fields.
    """

    row_type: type[RowT]
    process: Callable[[Sequence[RowT]], Sequence[Result]]
    batch_size: int = field(default=64, kw_only=True)
    title: str = field(default="rows", kw_only=True)
    unread: dict[str, None] = field(default_factory=dict, init=False)

    def results(self, lines: Iterable[str], first: int = 1) -> Iterator[dict[str, object]]:
        """Yield one JSON object for every line that is not blank, in order.

        Args:
            lines: The lines.
            first: Number of the first one, for messages.
        """
        numbered = ((n, line) for n, line in enumerate(lines, start=first) if line.strip())
        while batch := list(islice(numbered, self.batch_size)):
            parsed = [self._parse(number, line) for number, line in batch]
            rows = [row for row in parsed if isinstance(row, Row)]
            answers = iter(self._process(rows))
            for item in parsed:
                yield next(answers) if isinstance(item, Row) else item

    def _parse(self, number: int, line: str) -> RowT | dict[str, object]:
        """Read one line: a row, or an error object in its place."""
        row_id = None
        try:
            raw = _json_object(line)
            found = raw.get("id")
            # An id that is nested may not be encodable again, so it is not echoed.
            row_id = found if isinstance(found, str | int | float) else None
            row = self.row_type.model_validate(raw)
        except ValidationError as error:
            return {"id": row_id, "error": f"line {number}: {first_problem(error)}"}
        except ValueError as error:
            return {"id": row_id, "error": f"line {number}: {error}"}
        self.unread |= dict.fromkeys(row.model_extra or {})
        return row

    def _process(self, rows: Sequence[RowT]) -> list[dict[str, object]]:
        """Process a batch; if it fails, process row by row, so that only the bad row fails."""
        if not rows:
            return []
        try:
            results = self.process(rows)
        except Exception as error:  # a bug that one row triggers must not end a job of thousands
            if len(rows) > 1:
                return [result for row in rows for result in self._process([row])]
            if isinstance(error, GuardrailError):
                return [{"id": rows[0].id, "error": str(error)}]
            logger.exception("a row could not be judged")
            return [{"id": rows[0].id, "error": f"internal fault: {type(error).__name__}: {error}"}]
        return [
            {"id": row.id} | to_jsonable_python(result, exclude={"id"})
            for row, result in zip(rows, results, strict=True)
        ]


class CheckRow(EvidenceRow):
    """An answer to check."""

    question: str = ""
    answer: str

    def request(self) -> CheckRequest:
        """The row as a request; without evidence of its own, files or the graph are read."""
        return CheckRequest(
            question=self.question, answer=self.answer, evidence=self.items, id=self.text_id
        )


class RankRow(EvidenceRow):
    """Answers to rank."""

    question: str = ""
    answers: tuple[str, ...]


class ScoreRow(CheckRow):
    """An answer to score, with a reference answer if there is one."""

    reference: str | None = None


def check_job(guard: Guardrail) -> LineJob[CheckRow]:
    """Check answers."""

    def process(rows: Sequence[CheckRow]) -> list[GuardedAnswer]:
        return guard.check_batch([row.request() for row in rows])

    return LineJob(CheckRow, process, batch_size=ROWS_PER_CALL, title="check")


def rank_job(
    guard: Guardrail, take: Callable[[Sequence[list[GuardedAnswer]]], None] = lambda _: None
) -> LineJob[RankRow]:
    """Rank answers: for each its place in the input, its score and its score card, best first.

    Args:
        guard: The guardrail.
        take: Called with the full ranked answers; the results hold only their scores.
    """

    def process(rows: Sequence[RankRow]) -> list[Result]:
        ranked = guard.rank_batch(
            [
                RankRequest(question=row.question, answers=row.answers, evidence=row.items)
                for row in rows
            ]
        )
        take(ranked)
        return [
            {
                "ranking": [
                    {
                        "index": answer.index,
                        "score": answer.scorecard.overall.value,
                        "scorecard": answer.scorecard,
                    }
                    for answer in group
                ]
            }
            for group in ranked
        ]

    return LineJob(RankRow, process, batch_size=ROWS_PER_CALL, title="rank")


def score_job(guard: Guardrail, sck_weights: Path | None = None) -> LineJob[ScoreRow]:
    """Score answers: for each an ``SCKReport`` and a ``ConnerReport``.

    Args:
        guard: The guardrail; ``model.causal_lm`` of its configuration computes likelihoods.
        sck_weights: File of weights by intent, written by ``training.sck_weights``; None for the
            paper's.

    Raises:
        ConfigError: The weights cannot be read, or the causal language model is unknown.
    """
    from guardrail.scorers import ScoringRequest, conner_input, open_conner, sck_input
    from judges.encoder import create_encoder
    from judges.registry import create_nli
    from judges.sck import SCKScorer, SCKSettings
    from judges.sck.report import load_weights

    weights = SCKSettings() if sck_weights is None else SCKSettings(load_weights(sck_weights))
    sck = SCKScorer(create_encoder(), weights)
    conner = open_conner(create_nli(guard.config.judge), guard.config)

    def process(rows: Sequence[ScoreRow]) -> list[Result]:
        checked = guard.check_batch([row.request() for row in rows], policy=ANNOTATE)
        requests = [
            ScoringRequest(
                item.question,
                AttributedAnswer(text=item.text, marked=item.marked, sentences=item.sentences),
                item.evidence,
                item.entities,
            )
            for item in checked
        ]
        pairs = [(request, row.reference) for request, row in zip(requests, rows, strict=True)]
        return [
            {"sck": structure, "conner": perspectives}
            for structure, perspectives in zip(
                sck.score([sck_input(*pair) for pair in pairs]),
                conner.score([conner_input(*pair) for pair in pairs]),
                strict=True,
            )
        ]

    return LineJob(ScoreRow, process, title="score")


def json_line(value: object) -> str:
    """One line of JSON, floats rounded to ``DIGITS`` digits after the decimal point.

    Surrogates, which cannot be encoded as UTF-8, become JSON escapes.

    Raises:
        ValueError: There is a NaN or an infinity.
    """
    text = json.dumps(_rounded(value), ensure_ascii=False, allow_nan=False)
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _json_object(line: str) -> dict[str, object]:
    if reading.is_cut(line):
        raise ValueError(f"longer than {reading.LONGEST_LINE} characters")
    # What surrogateescape makes of a byte that is not UTF-8
    if wrong := re.search("[\udc80-\udcff]", line):
        raise ValueError(f"not UTF-8: the byte 0x{ord(wrong.group()) - 0xDC00:02X}")
    try:
        raw = finite_json(line)
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON: {error.msg}, character {error.pos + 1}") from error
    except (ValueError, RecursionError) as error:
        raise ValueError(f"not JSON: {error}") from error
    if not isinstance(raw, dict):
        raise ValueError("not a JSON object")
    return raw


def first_problem(error: ValidationError) -> str:
    """The first error of a validation, with the field it concerns."""
    first = error.errors(include_url=False)[0]
    place = ".".join(str(part) for part in first["loc"])
    text = str(first.get("ctx", {}).get("error", first["msg"]))
    return f"{place}: {text}" if place else text


def _rounded(value: object) -> object:
    if isinstance(value, float):
        return round(value, DIGITS) + 0.0  # no negative zero
    if isinstance(value, dict):
        return {name: _rounded(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(part) for part in value]
    return value
