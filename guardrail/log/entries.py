"""What the score log holds: records, readers' feedback, and the conditions to find them by."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Annotated, Literal, Self
from uuid import uuid4

from pydantic import BeforeValidator, Field, FiniteFloat, ValidationError
from pydantic_core import PydanticCustomError

from guardrail.core.errors import InputError, RecordError
from guardrail.core.types import Category, GuardedAnswer, Triple, Value

__all__ = [
    "LOST",
    "Feedback",
    "Record",
    "RecordFilter",
    "Redact",
    "ScoreBound",
    "from_json",
    "prepare",
    "slim",
    "tagged",
    "tagged_lost",
    "to_json",
]

BOUND = re.compile(r"\s*(?P<name>[\w.]+)\s*(?P<sign><=|>=|<|>)\s*(?P<limit>[-+.\deE]+)\s*")


THUMBS = {"up": 1, "down": -1, "1": 1, "+1": 1, "-1": -1, "0": 0}
"""Words for a reader's verdict."""


LOST: Mapping[str, str] = MappingProxyType({"candidate": "lost"})
"""The tag of an answer that was sampled, and that nobody was given: another one was better."""

_TAGS: ContextVar[Mapping[str, str]] = ContextVar("guardrail_tags", default=MappingProxyType({}))


class Record(Value):
    """What the log keeps of one response.

    Attributes:
        id: Unique; a record written twice under one id is kept once.
        created: UTC.
        answer: What the guardrail returned.
        tags: The caller's own labels, such as a tenant, a user or an experiment.
    """

    id: str = Field(default_factory=lambda: uuid4().hex)
    created: datetime = Field(default_factory=lambda: datetime.now(UTC))
    answer: GuardedAnswer
    tags: Mapping[str, str] = Field(default_factory=dict)

    def score(self, name: str) -> float | None:
        """A score by its name, ``overall`` included; None where there is no value."""
        card = self.answer.scorecard
        if name == "overall":
            return card.overall.value
        score = card.scores.get(name)
        return None if score is None else score.value

    @property
    def lost(self) -> bool:
        """Whether nobody was given the answer, since another one that was sampled is better."""
        return _is_lost(self.tags)


def _as_thumb(value: object) -> int:
    thumb = THUMBS.get(value.strip().lower()) if isinstance(value, str) else value
    if isinstance(thumb, bool) or thumb not in (-1, 0, 1):
        raise PydanticCustomError("thumb", 'a thumb is 1 or -1, "up" or "down"')
    return int(thumb)


Thumb = Annotated[
    int,
    BeforeValidator(_as_thumb, json_schema_input_type=Literal[1, -1, 0, "up", "down"]),
]
"""The type of a reader's verdict."""


class Feedback(Value):
    """What a reader said of a response or of one of its sentences.

    Attributes:
        record_id: The record it belongs to: its own id, or the answer's ``id``.
        sentence: Index of the sentence; None for the whole response.
        thumb: 1 or ``up``, -1 or ``down``; 0 for a correction without verdict.
        correction: What the text should have said.
        created: UTC.
        tenant: Whose record it may speak of, by the record's tag of that name; None for anybody's.
            The gateway fills it in.
    """

    record_id: str = Field(max_length=256)
    sentence: int | None = Field(default=None, ge=0, le=1_000_000)
    thumb: Thumb = 0
    correction: str | None = Field(default=None, max_length=10_000)
    created: datetime = Field(default_factory=lambda: datetime.now(UTC))
    tenant: str | None = None


Redact = Callable[[Record], Record | None]
"""Changes a record before it is written, or drops it by returning None."""


class ScoreBound(Value):
    """A bound on one score; a record whose score has no value is outside every bound.

    Attributes:
        name: The score, ``overall`` included.
        sign: ``<``, ``<=``, ``>`` or ``>=``.
        limit: The number compared with.
    """

    name: str
    sign: str = Field(pattern="^[<>]=?$")
    limit: FiniteFloat

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read ``overall<0.5``.

        Raises:
            InputError: It is no such expression.
        """
        found = BOUND.fullmatch(text)
        try:
            if found is None:
                raise ValueError(text)
            return cls(name=found["name"], sign=found["sign"], limit=float(found["limit"]))
        except (ValueError, ValidationError) as error:
            raise InputError(f"{text!r} is no bound on a score; write overall<0.5") from error

    def holds(self, record: Record) -> bool:
        """Whether a record's score is within the bound."""
        value = record.score(self.name)
        if value is None:
            return False
        if self.limit == value:
            return self.sign.endswith("=")
        return (value < self.limit) == self.sign.startswith("<")


class RecordFilter(Value):
    """Which records to read; every condition that is given must hold.

    Attributes:
        id: The record's own id, or the answer's, or how either begins.
        since: Created at or after this moment.
        until: Created before this moment.
        action: The policy's action.
        category: At least one sentence has it, shown or taken out.
        entity: An entity id or label that was linked.
        max_overall: The overall score is at most this.
        bounds: Bounds on scores.
        would_block: A dry run alone let it leave as the model wrote it.
        tag: ``name=value`` among the caller's tags.
    """

    id: str | None = Field(default=None, min_length=1)
    since: datetime | None = None
    until: datetime | None = None
    action: str | None = None
    category: Category | None = None
    entity: str | None = None
    max_overall: float | None = None
    bounds: tuple[ScoreBound, ...] = ()
    would_block: bool = False
    tag: str | None = None

    def accepts(self, record: Record) -> bool:
        """Whether a record meets every condition."""
        answer = record.answer
        overall = answer.scorecard.overall.value
        name, _, value = (self.tag or "").partition("=")
        return (
            (self.id is None or record.id.startswith(self.id) or answer.id.startswith(self.id))
            and (self.since is None or record.created >= self.since)
            and (self.until is None or record.created < self.until)
            and (self.action is None or answer.action == self.action)
            and (
                self.category is None
                or self.category in {one.category for one in (*answer.sentences, *answer.removed)}
            )
            and (
                self.entity is None
                or any(self.entity in (e.entity.id, e.entity.label) for e in answer.entities)
            )
            and (self.max_overall is None or (overall is not None and overall <= self.max_overall))
            and all(bound.holds(record) for bound in self.bounds)
            and (answer.would_block or not self.would_block)
            and (self.tag is None or record.tags.get(name) == value)
        )


@contextmanager
def tagged(**tags: str) -> Iterator[None]:
    """Tag every answer that is recorded inside the block, in this task or thread.

    Blocks may stand in one another; the inner one's tags are added.

    Example:
        >>> from guardrail import Guardrail
        >>> guard = Guardrail()
        >>> with tagged(tenant="blue", user="u17"):
        ...     answer = guard.check(question="Who was Ada Lovelace?", answer="A poet.")
    """
    token = _TAGS.set({**_TAGS.get(), **tags})
    try:
        yield
    finally:
        _TAGS.reset(token)


def tagged_lost() -> bool:
    """Whether answers that are recorded here are tagged as lost candidates."""
    return _is_lost(_TAGS.get())


def _is_lost(tags: Mapping[str, str]) -> bool:
    return tags.items() >= LOST.items()


def slim(answer: GuardedAnswer) -> GuardedAnswer:
    """The answer with the evidence that its sentences rest on alone.

    An answer is judged against all facts round its entities, often hundreds; the log keeps
    those that carry or contradict a sentence, shown or taken out, and of each linked entity the
    node that was chosen. Passages and triples without an id came with the call: no graph has them,
    so all are kept.
    """
    sentences = (*answer.sentences, *answer.removed)
    carrying = {item for one in sentences for item in (*one.citations, *one.uncited)}
    named = {span.triple for sentence in sentences for span in sentence.spans}
    evidence = tuple(
        item
        for item in answer.evidence
        if not isinstance(item, Triple)
        or item.subject_id is None
        or item in named
        or item.citation in carrying
    )
    entities = tuple(
        link.model_copy(
            update={
                "candidates": (),
                "entity": link.entity.model_copy(update={"aliases": (), "types": ()}),
            }
        )
        for link in answer.entities
    )
    return answer.model_copy(update={"evidence": evidence, "entities": entities})


def prepare(
    answer: GuardedAnswer,
    tags: Mapping[str, str] | None,
    redact: Redact | None,
    sample: float,
    whole: bool,
) -> Record | None:
    """The record of an answer; None where it was not sampled or the redaction drops it.

    Args:
        answer: The answer; one with errors is always sampled.
        tags: The caller's labels.
        redact: Changes or drops the record.
        sample: Share of answers to record.
        whole: Keep all evidence, not only what the sentences rest on.
    """
    if sample < 1.0 and not answer.errors and random.random() >= sample:
        return None
    labels = {**_TAGS.get(), **(tags or {})}
    record = Record(answer=answer if whole else slim(answer), tags=labels)
    return record if redact is None else redact(record)


def to_json(record: Record) -> str:
    """One line of JSON; a lone surrogate in a model's answer is kept as an escape."""
    try:
        return record.model_dump_json()
    except ValueError:
        return json.dumps(record.model_dump(mode="json"), allow_nan=False)


def from_json(text: str) -> Record:
    """Read what ``to_json`` wrote.

    Raises:
        RecordError: It is no record.
    """
    try:
        return Record.model_validate_json(text)
    except ValidationError:
        pass
    try:
        # The standard parser reads the escape of a lone surrogate, which pydantic's refuses.
        return Record.model_validate(json.loads(text))
    except (ValueError, RecursionError) as error:
        raise RecordError("the score log holds a record of another shape") from error
