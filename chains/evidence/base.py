"""Evidence of a request, its sources, and the case that an answer is judged against."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, NamedTuple, Self

from pydantic import BeforeValidator, Field
from typing_extensions import TypedDict

from guardrail import GuardedAnswer, Policy
from guardrail.core.errors import InputError
from guardrail.core.fields import did_you_mean, in_short
from guardrail.core.incoming import without_reasoning
from guardrail.core.types import Evidence, LinkedEntity, OwnStrictness, Problem, Triple, Value
from guardrail.policy import policy_named
from guardrail.sources.items import evidence_items

if TYPE_CHECKING:
    from guardrail import CheckSession, Guardrail

BY_THE_SHIPPED_GRAPH = Problem(
    part="evidence",
    message="no evidence came with the answer and no graph is configured, so it was judged by the "
    "example graph of about 1,000 people; pass evidence, or set 'evidence' to files or 'graph' to "
    "a graph of your own (or to 'none')",
)


class Source(StrEnum):
    """Where evidence came from, the most trusted first."""

    CALLER = "caller"
    RETRIEVERS = "retrievers"
    PARTS = "content parts"
    TOOLS = "tool results"
    EARLIER = "earlier answers"
    MARKED = "marked text"
    FILES = "files"
    GRAPH = "graph"


class EvidenceMode(StrEnum):
    """What an answer is judged against.

    ``given``: evidence of the caller, a chain's retrievers or content parts replaces the graph;
    tool results, earlier answers and marked text are added to either. ``both``: all evidence and
    the graph. ``graph``: the graph alone. Files named in the guardrail's settings replace the
    graph in all modes; ``both`` adds the graph to them.
    """

    GIVEN = "given"
    GRAPH = "graph"
    BOTH = "both"


def _two_that_differ(marks: object) -> object:
    """Refuse equal or empty marks: a span would end where the next one begins."""
    if not isinstance(marks, list | tuple) or not all(isinstance(mark, str) for mark in marks):
        return marks  # pydantic reports the type
    if len(marks) != 2 or len({mark.strip() for mark in marks} - {""}) != 2:
        raise ValueError("give two delimiters that differ, such as '<context>' and '</context>'")
    return marks


Marks = Annotated[tuple[str, str], BeforeValidator(_two_that_differ)]
"""Delimiters of marked evidence in messages, such as ``("<context>", "</context>")``."""


class EvidenceSettings(Value):
    """Where requests may hold evidence.

    Attributes:
        mode: Whether evidence in the request replaces the graph or is added to it.
        tools: Whether tool results count.
        earlier: Maximum number of earlier answers whose evidence counts again. The answers
            themselves are never evidence.
        marks: Two different delimiters of evidence in system and user messages, such as
            ``("<context>", "</context>")``; None for none.
    """

    mode: EvidenceMode = EvidenceMode.GIVEN
    tools: bool = True
    earlier: int = Field(default=6, ge=0)
    marks: Marks | None = None


class Found(NamedTuple):
    """Evidence of one request, in order of trust and without duplicates, and its sources.

    A source may be empty: an empty retrieval is not the same as no retrieval. ``question`` is that
    which a content part names, ``problems`` are evidence that was not read.
    """

    evidence: tuple[Evidence, ...] = ()
    sources: tuple[Source, ...] = ()
    question: str | None = None
    problems: tuple[Problem, ...] = ()

    @classmethod
    def of(cls, source: Source, evidence: Iterable[Evidence] | None) -> Self:
        """The evidence of one source; nothing for None."""
        return cls() if evidence is None else cls(tuple(evidence), (source,))

    @property
    def handed_over(self) -> bool:
        """True if evidence was handed over, so that the graph is not asked."""
        return not {Source.CALLER, Source.RETRIEVERS, Source.PARTS}.isdisjoint(self.sources)

    def __or__(self, other: Found) -> Found:
        return Found(
            tuple(dict.fromkeys((*self.evidence, *other.evidence))),
            tuple(dict.fromkeys((*self.sources, *other.sources))),
            self.question or other.question,
            tuple(dict.fromkeys((*self.problems, *other.problems))),
        )


class Case(NamedTuple):
    """A question, and the evidence that its answers are judged against.

    Evidence of None queries the graph; ``entities`` are those of the graph's part of the evidence.
    ``problems``, evidence that was not read, become ``errors`` of the answer.
    """

    question: str
    evidence: tuple[Evidence, ...] | None = None
    sources: tuple[Source, ...] = (Source.GRAPH,)
    entities: tuple[LinkedEntity, ...] = ()
    problems: tuple[Problem, ...] = ()

    def with_problems(self, answer: GuardedAnswer) -> GuardedAnswer:
        """The answer with the sources, entities and problems of its evidence.

        An answer that was judged by the example graph for want of any other has a problem as well.
        """
        problems = (*answer.errors, *self.problems)
        sources = tuple(source.value for source in self.sources)
        if self.evidence is None and answer.evidence_from == (Source.FILES,):
            sources = answer.evidence_from
        elif (
            self.evidence is None
            and answer.versions.get("graph") == "people"  # the graph that ships with the package
            and all(isinstance(item, Triple) for item in answer.evidence)  # else of a retriever
        ):
            problems = (*problems, BY_THE_SHIPPED_GRAPH)
        return answer.model_copy(
            update={
                "evidence_from": sources,
                "entities": answer.entities or self.entities,
                "errors": tuple(dict.fromkeys(problems)),
            }
        )

    async def check(
        self,
        guard: Guardrail,
        answer: str,
        policy: Policy,
        *,
        record: bool = True,
        id: str | None = None,
    ) -> GuardedAnswer:
        """Check one answer."""
        checked = await guard.acheck(
            question=self.question,
            answer=without_reasoning(answer),
            evidence=self.evidence,
            policy=policy,
            record=record,
            id=id,
        )
        return self.with_problems(checked)

    async def rank(
        self,
        guard: Guardrail,
        answers: Sequence[str],
        policy: Policy,
        *,
        record: bool = True,
        id: str | None = None,
    ) -> list[GuardedAnswer]:
        """Check several answers, best first; one that is not recorded is only checked."""
        if len(answers) == 1 and not record:
            return [await self.check(guard, answers[0], policy, record=False)]
        ranked = await guard.arank(
            question=self.question,
            answers=[*map(without_reasoning, answers)],
            evidence=self.evidence,
            policy=policy,
            record=record,
            id=id,
        )
        return [self.with_problems(item) for item in ranked]

    def session(self, guard: Guardrail, policy: Policy) -> CheckSession:
        """A session for an answer that grows."""
        return guard.session(question=self.question, evidence=self.evidence, policy=policy)


async def case_of(guard: Guardrail, question: str, found: Found, mode: EvidenceMode) -> Case:
    """Settle the evidence that an answer is judged against, for which the graph may be asked."""
    question = found.question or question
    if mode is EvidenceMode.GRAPH:
        return Case(question)
    if mode is EvidenceMode.GIVEN and found.handed_over:
        return Case(question, found.evidence, found.sources, problems=found.problems)
    files_too = mode is EvidenceMode.BOTH and bool(guard.config.evidence)
    if not found.sources and not files_too:
        return Case(question, problems=found.problems)
    known = await guard.aretrieve(question=question)
    if known.source == Source.FILES:
        found |= Found.of(Source.FILES, known.evidence)
        if not files_too:
            return Case(question, found.evidence, found.sources, problems=found.problems)
        known = await guard.aretrieve(question=question, graph=True)
    found |= Found.of(Source.GRAPH, known.evidence)
    return Case(question, found.evidence, found.sources, known.entities, found.problems)


FIELD = "guardrail"
"""Name of the field of a request's body, and of the key of a LangChain config's metadata."""


class WrittenTable(TypedDict, total=False):
    """A table: rows as objects by column, or as lists of cells in the order of ``columns``."""

    rows: list[dict[str, object]] | list[list[object]]
    columns: list[str]
    subject: str
    name: str


class WrittenFile(TypedDict):
    """A document: its name, and its bytes in base 64 or as a ``data:`` address."""

    filename: str
    file_data: str


class WrittenItem(TypedDict, total=False):
    """An item of evidence: a passage, a triple or both; a table; a file."""

    text: str
    id: str | int
    title: str
    url: str
    triple: tuple[str, str, str]
    table: WrittenTable
    file: WrittenFile


HandedOver = Annotated[
    tuple[Evidence, ...] | None,
    BeforeValidator(
        lambda items: None if items is None else evidence_items(items),
        json_schema_input_type=list[str | WrittenItem | tuple[str, str, str]] | None,
    ),
]
"""The type of a field of evidence; see ``evidence_items``."""


class RequestField(Value):
    """The ``guardrail`` field of a request.

    Attributes:
        evidence: Evidence to judge the answer against; None for none of its own.
        policy: Name of a policy.
        strictness: How sure the judge must be, a preset or thresholds.
    """

    evidence: HandedOver = None
    policy: str | None = None
    strictness: OwnStrictness = None

    @property
    def changes_policy(self) -> bool:
        """True if it names a policy or a strictness."""
        return self.policy is not None or self.strictness is not None

    def chosen_policy(self, configured: Policy) -> Policy:
        """The named policy, else the configured one, with the given strictness.

        A caller cannot change the deadline, nor end a dry run or the judging of documents.

        Raises:
            ConfigError: There is no policy of that name.
        """
        policy = configured
        if self.policy:
            policy = policy_named(self.policy)
            policy = policy.changed(
                deadline_s=configured.deadline_s,
                dry_run=policy.dry_run or configured.dry_run,
                structured=policy.structured or configured.structured,
            )
        return policy.changed(strictness=self.strictness) if self.strictness else policy


def request_field(value: object) -> RequestField:
    """Read the ``guardrail`` field of a request; None stands for a request without it.

    Raises:
        InputError: It has an unknown key, or an item of an unsupported type.
        ConfigError: There is no such policy or strictness.
    """
    if value is None:
        return RequestField()
    if not isinstance(value, Mapping):
        raise InputError(f"{FIELD!r} must be an object, not {type(value).__name__}")
    known = tuple(RequestField.model_fields)
    for key in value:
        if key not in known:
            hint = did_you_mean(str(key), known)
            raise InputError(f"{FIELD} has no field {in_short(key)}; {hint}")
    evidence, policy = value.get("evidence"), value.get("policy")
    if policy is not None and not isinstance(policy, str):
        raise InputError(f"{FIELD}.policy must be the name of a policy")
    if policy is not None:
        policy_named(policy)
    items = None if evidence is None else evidence_items(evidence, f"{FIELD}.evidence")
    return RequestField(evidence=items, policy=policy, strictness=value.get("strictness"))
