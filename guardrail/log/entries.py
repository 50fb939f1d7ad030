"""Contents of the score log: records, readers' feedback, and the conditions to find them."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Literal, Self
from uuid import uuid4

from pydantic import BeforeValidator, Field, FiniteFloat, ValidationError
from pydantic_core import PydanticCustomError

from guardrail.core.errors import InputError, RecordError
from guardrail.core.types import GuardedAnswer, Triple, Value
from guardrail.core.types.answers import CHANGING

if TYPE_CHECKING:
    from guardrail.policy import Policy

EVIDENCE = "evidence:"
"""Precedes the names of evidence files among an answer's versions; the values are hashes."""
LOST: Mapping[str, str] = MappingProxyType({"candidate": "lost"})
"""The tag of a sampled answer that was not returned, since another one was better."""
INTENT = "Intent of the question: "
"""Begins the line in the evidence of an SCK score that names the intent."""

_TAGS: ContextVar[Mapping[str, str]] = ContextVar("guardrail_tags", default=MappingProxyType({}))


class Record(Value):
    """What the log keeps of one response.

    Attributes:
        id: Unique; a record written twice under one id is kept once.
        tags: The caller's own labels, such as a tenant, a user or an experiment.
    """

    id: str = Field(default_factory=lambda: uuid4().hex)
    created: datetime = Field(default_factory=lambda: datetime.now(UTC))
    answer: GuardedAnswer
    tags: Mapping[str, str] = Field(default_factory=dict)


def _as_thumb(value: object) -> int:
    names = {"up": 1, "down": -1, "1": 1, "+1": 1, "-1": -1, "0": 0}
    thumb = names.get(value.strip().lower()) if isinstance(value, str) else value
    if isinstance(thumb, bool) or thumb not in (-1, 0, 1):
        raise PydanticCustomError("thumb", 'a thumb is 1 or -1, "up" or "down"')
    return int(thumb)


Thumb = Annotated[
    int,
    BeforeValidator(_as_thumb, json_schema_input_type=Literal[1, -1, 0, "up", "down"]),
]
"""The type of a reader's verdict."""


class Feedback(Value):
    """A reader's opinion of a response or of one of its sentences.

    Attributes:
        record_id: The record it belongs to: its own id, or the answer's ``id``.
        sentence: Index of the sentence; None for the whole response.
        thumb: 1 or ``up``, -1 or ``down``; 0 for a correction alone.
        correction: What the text should have said.
        created: UTC.
        tenant: Only records with this tag ``tenant`` are meant; None for any. Set by the gateway.
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
    """A bound on one score; a record without a value for the score is outside every bound."""

    name: str
    sign: str = Field(pattern="^[<>]=?$")
    limit: FiniteFloat

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read ``overall<0.5``; raises InputError."""
        found = re.fullmatch(
            r"\s*(?P<name>[\w.]+)\s*(?P<sign><=|>=|<|>)\s*(?P<limit>[-+.\deE]+)\s*", text
        )
        try:
            if found is None:
                raise ValueError(text)
            return cls(name=found["name"], sign=found["sign"], limit=float(found["limit"]))
        except (ValueError, ValidationError) as error:
            raise InputError(f"{text!r} is not a bound on a score; write overall<0.5") from error


class RecordFilter(Value):
    """Which records to read; every condition that is given must hold.

    Attributes:
        id: The record's own id, or the answer's, or the beginning of either.
        since: Created at or after this time.
        until: Created before this time.
        would_block: Only a dry run let the answer leave unchanged.
        tag: ``name=value`` among the caller's tags.
        returned: Leave out sampled candidates that lost to a better one.
    """

    id: str | None = Field(default=None, min_length=1)
    since: datetime | None = None
    until: datetime | None = None
    action: str | None = None
    bounds: tuple[ScoreBound, ...] = ()
    would_block: bool = False
    tag: str | None = None
    returned: bool = False

    def sql(self) -> tuple[str, list[object]]:
        """The conditions on the table ``responses``, with their parameters."""
        tests: list[str] = []
        values: list[object] = []

        def test(condition: str, *parameters: object) -> None:
            tests.append(condition)
            values.extend(parameters)

        if self.id is not None:
            test("? IN (substr(id, 1, ?), substr(answer_id, 1, ?))",
                 self.id, len(self.id), len(self.id))  # fmt: skip
        if self.since is not None:
            test("created >= ?", self.since.astimezone(UTC).isoformat())
        if self.until is not None:
            test("created < ?", self.until.astimezone(UTC).isoformat())
        if self.action is not None:
            test("action = ?", self.action)
        for bound in self.bounds:
            if bound.name == "overall":
                test(f"overall {bound.sign} ?", bound.limit)
            else:
                test("EXISTS (SELECT 1 FROM json_each(payload, '$.answer.scorecard.scores') WHERE"
                     f" key = ? AND json_extract(value, '$.value') {bound.sign} ?)",
                     bound.name, bound.limit)  # fmt: skip
        if self.would_block:
            changing = ", ".join(f"'{action.value}'" for action in sorted(CHANGING))
            test(f"json_extract(payload, '$.answer.would') IN ({changing})")
        with_tag = "SELECT 1 FROM json_each(payload, '$.tags') WHERE key = ? AND value = ?"
        if self.tag is not None:
            name, _, value = self.tag.partition("=")
            test(f"EXISTS ({with_tag})", name, value)
        if self.returned:
            test(f"NOT EXISTS ({with_tag})", *next(iter(LOST.items())))
        return " AND ".join(tests) or "1", values


@contextmanager
def tagged(**tags: str) -> Iterator[None]:
    """Tag every answer that is recorded inside the block, in this task or thread.

    Nested blocks add their tags.

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
    """True if answers that are recorded here are tagged as lost candidates."""
    return _TAGS.get().items() >= LOST.items()


def fingerprints(
    versions: Mapping[str, str],
    graph: object,
    policy: Policy,
    judge: object = None,
    files: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, str]:
    """Short hashes of graph, judge, policy and files that gave a verdict; every record has them.

    ``versions`` are names of the parts, ``files`` hashes of the evidence files of the settings by
    name. A graph without ``snapshot``, such as an endpoint, may change unnoticed and has no hash. A
    judge without one, such as a model behind an address, differs from others only by its name.
    """
    found = {f"{EVIDENCE}{name}": content for name, content in files.items()}
    found["policy_hash"] = _hash(policy.model_dump_json())
    if name := versions.get("judge"):
        second = versions.get("second_judge")
        found["judge_hash"] = _hash(f"{name} {_snapshot(judge)}{f' {second}' if second else ''}")
    if state := _snapshot(graph):
        found["graph_snapshot"] = state
    return found


def changed_hashes(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[str, ...]:
    """Names of the hashes that differ between the versions of two answers.

    Evidence files are compared if both answers were judged by some.
    """
    files = [{name for name in one if name.startswith(EVIDENCE)} for one in (before, after)]
    names = ["graph_snapshot", "judge_hash", "policy_hash"]
    names += sorted(files[0] | files[1]) if all(files) else []
    return tuple(name for name in names if before.get(name) != after.get(name))


def _snapshot(part: object) -> str:
    found = getattr(part, "snapshot", None)
    return found if isinstance(found, str) else ""


@lru_cache(64)
def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _slim(answer: GuardedAnswer) -> GuardedAnswer:
    """The answer without candidates, and without facts of the graph that no sentence uses."""
    # What came with the call (passages, and triples without an id) is in no graph: all of it stays.
    sentences = answer.judged
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
    bare = {"aliases": (), "types": ()}
    entities = tuple(
        link.model_copy(update={"candidates": (), "entity": link.entity.model_copy(update=bare)})
        for link in answer.entities
    )
    return answer.model_copy(update={"evidence": evidence, "entities": entities})


def record_of(answer: GuardedAnswer, tags: Mapping[str, str] | None = None) -> Record:
    """The record of an answer: slimmed, with the question's intent and tags of the caller."""
    scores = answer.scorecard.scores.items()
    lines = (line for name, score in scores if name.startswith("sck") for line in score.evidence)
    line = next((line for line in lines if line.startswith(INTENT)), INTENT)
    intent = line.removeprefix(INTENT).partition(" (")[0]
    own = {"intent": intent} if intent else {}
    return Record(answer=_slim(answer), tags={**own, **_TAGS.get(), **(tags or {})})


def to_json(record: Record) -> str:
    """One line of JSON; a lone surrogate in a model's answer becomes an escape."""
    try:
        return record.model_dump_json()
    except ValueError:
        return json.dumps(record.model_dump(mode="json"), allow_nan=False)


def from_json(text: str) -> Record:
    """Read the output of ``to_json``; raises RecordError."""
    try:
        return Record.model_validate_json(text)
    except ValidationError:
        pass
    try:
        # Python's parser reads the escape of a lone surrogate, which pydantic's refuses.
        return Record.model_validate(json.loads(text))
    except (ValueError, RecursionError) as error:
        raise RecordError("the score log holds a record of another shape") from error
