"""What was found as evidence, where, and what an answer is judged against in the end."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from functools import cache
from typing import TYPE_CHECKING, Annotated, NamedTuple, Self

from pydantic import BeforeValidator, Field

from guardrail import GuardedAnswer, Policy
from guardrail.core.reasoning import without_reasoning
from guardrail.core.secrets import get_logger
from guardrail.core.types import Evidence, LinkedEntity, Problem, Triple, Value

if TYPE_CHECKING:
    from guardrail import CheckSession, Guardrail

__all__ = ["Case", "EvidenceMode", "EvidenceSettings", "Found", "Marks", "Source", "case_of"]


log = get_logger("chains.evidence")

SHIPPED_GRAPH = "people"
"""Name of the graph that ships with the package, in the versions of an answer."""

BY_THE_SHIPPED_GRAPH = Problem(
    part="evidence",
    message="no evidence came with the answer and no graph is configured, so it was judged by the "
    "graph of about 1,000 people that ships as an example; hand evidence over, name files of yours "
    "with the setting 'evidence', or your graph with the setting 'graph' (or 'none')",
)
"""Reported with every answer that was judged without given evidence."""


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

    ``given``: what the caller, a chain's retrievers or content parts hand over, in place of the
    graph; tool results, earlier answers and marked text are added. ``both``: all of it and
    the graph.
    ``graph``: the graph alone.

    Files that the guardrail's settings name replace the graph in all of them; with
    ``both`` the graph is added to them.
    """

    GIVEN = "given"
    GRAPH = "graph"
    BOTH = "both"


def _two_that_differ(marks: object) -> object:
    """Marks as they are; equal ones would end each stretch where the next begins."""
    if not isinstance(marks, list | tuple) or not all(isinstance(mark, str) for mark in marks):
        return marks  # pydantic says what is wrong
    if len(marks) != 2 or len({mark.strip() for mark in marks} - {""}) != 2:
        raise ValueError("give two delimiters that differ, such as '<context>' and '</context>'")
    return marks


Marks = Annotated[tuple[str, str], BeforeValidator(_two_that_differ)]
"""Delimiters of a marked stretch in messages, such as ``("<context>", "</context>")``."""


class EvidenceSettings(Value):
    """Which places are looked at, and how much is taken from them.

    Attributes:
        mode: Whether evidence that was found replaces the graph or is added to it.
        tools: Whether results of tools count.
        reply_searches: Whether what a file search found, as the reply itself tells it, counts for
            that reply. It is the server's own word for what its model says.
        tool_results: Most results of tools that are read, newest first.
        tool_chars: Most characters of all of them together; a longer text is cut.
        earlier: Most earlier answers of a conversation whose own evidence counts again, so that
            what was judged supported may be referred to; what else they said is never evidence.
        marks: Delimiters of a marked stretch in system and user messages, such as
            ``("<context>", "</context>")``, two that differ; None to look for none.
        keep_parts: Whether content parts that only other gateways know are sent on as they are,
            for an upstream that knows them; else it gets them as plain text.
    """

    mode: EvidenceMode = EvidenceMode.GIVEN
    tools: bool = True
    reply_searches: bool = False
    tool_results: int = Field(default=16, ge=1)
    tool_chars: int = Field(default=100_000, ge=1)
    earlier: int = Field(default=6, ge=0)
    marks: Marks | None = None
    keep_parts: bool = False


class Found(NamedTuple):
    """Evidence of one request.

    Attributes:
        evidence: In order of trust, without repeats.
        sources: Where it came from, in the same order. A source may have held nothing: an empty
            retrieval is evidence of nothing, and is not the same as none.
        question: The question, where a content part names it.
        problems: What of it was not read.
    """

    evidence: tuple[Evidence, ...] = ()
    sources: tuple[Source, ...] = ()
    question: str | None = None
    problems: tuple[Problem, ...] = ()

    @classmethod
    def of(cls, source: Source, evidence: Iterable[Evidence] | None) -> Self:
        """What one place held; nothing where it is not there at all."""
        return cls() if evidence is None else cls(tuple(evidence), (source,))

    @property
    def handed_over(self) -> bool:
        """Whether somebody handed evidence over, so that nothing needs to be fetched."""
        return not {Source.CALLER, Source.RETRIEVERS, Source.PARTS}.isdisjoint(self.sources)

    def __or__(self, other: Found) -> Found:
        return Found(
            tuple(dict.fromkeys((*self.evidence, *other.evidence))),
            tuple(dict.fromkeys((*self.sources, *other.sources))),
            self.question or other.question,
            tuple(dict.fromkeys((*self.problems, *other.problems))),
        )


class Case(NamedTuple):
    """A question, and what answers to it are judged against.

    Attributes:
        question: The question.
        evidence: Replaces the graph; None to ask the graph.
        sources: Where the evidence came from.
        policy: Of this call, in place of the configured one.
        entities: Of the graph's part of the evidence, with their pages.
        problems: What of the evidence was not read; the answer's ``errors`` name it.
    """

    question: str
    evidence: tuple[Evidence, ...] | None = None
    sources: tuple[Source, ...] = (Source.GRAPH,)
    policy: Policy | None = None
    entities: tuple[LinkedEntity, ...] = ()
    problems: tuple[Problem, ...] = ()

    def with_problems(self, answer: GuardedAnswer) -> GuardedAnswer:
        """The answer with where its evidence came from, what it is about and what was not read.

        If there is neither evidence nor a configured graph, that is reported as well.
        """
        problems = (*answer.errors, *self.problems)
        sources = tuple(source.value for source in self.sources)
        if self.evidence is None and answer.evidence_from == (Source.FILES,):
            sources = answer.evidence_from
        elif self.evidence is None and _by_the_shipped_graph(answer):
            _warn_of_the_shipped_graph()
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
        self, guard: Guardrail, answers: Sequence[str], policy: Policy, *, id: str | None = None
    ) -> list[GuardedAnswer]:
        """Check several answers, best first."""
        answers = [*map(without_reasoning, answers)]
        ranked = await guard.arank(
            question=self.question, answers=answers, evidence=self.evidence, policy=policy, id=id
        )
        return [self.with_problems(item) for item in ranked]

    async def judged(
        self, guard: Guardrail, answers: Sequence[str], policy: Policy
    ) -> list[GuardedAnswer]:
        """Judge the candidates of one round together, in any order; nothing is recorded."""
        if len(answers) == 1:
            return [await self.check(guard, answers[0], policy, record=False)]
        found = await guard.arank(
            question=self.question,
            answers=answers,
            evidence=self.evidence,
            policy=policy,
            record=False,
        )
        return [self.with_problems(item) for item in found]

    def session(self, guard: Guardrail, policy: Policy) -> CheckSession:
        """A session for an answer that grows."""
        return guard.session(question=self.question, evidence=self.evidence, policy=policy)


def _by_the_shipped_graph(answer: GuardedAnswer) -> bool:
    """Whether an answer was judged by the graph of the package, and not by a retriever's finds."""
    return answer.versions.get("graph") == SHIPPED_GRAPH and all(
        isinstance(item, Triple) for item in answer.evidence
    )


@cache
def _warn_of_the_shipped_graph() -> None:
    """One warning a process: who forgot the evidence forgot it for every call."""
    log.warning("%s", BY_THE_SHIPPED_GRAPH.message)


async def case_of(
    guard: Guardrail,
    question: str,
    found: Found,
    mode: EvidenceMode,
    policy: Policy | None = None,
) -> Case:
    """Settle what an answer is judged against.

    Args:
        guard: Its graph, or retriever, is asked if the mode adds it to what was found.
        question: The question; one that a content part names goes before it.
        found: What was found in the request.
        mode: Replace the graph, add to it, or use the graph only.
        policy: Of this call.

    Raises:
        KnowledgeGraphError: The graph cannot be used.
    """
    question = found.question or question
    if mode is EvidenceMode.GRAPH:
        return Case(question, policy=policy)
    if mode is EvidenceMode.GIVEN and found.handed_over:
        return Case(question, found.evidence, found.sources, policy, problems=found.problems)
    beside_files = mode is EvidenceMode.BOTH and bool(guard.config.evidence)
    if not found.sources and not beside_files:
        return Case(question, policy=policy, problems=found.problems)
    known = await guard.aretrieve(question=question)
    if known.source == Source.FILES:
        found |= Found.of(Source.FILES, known.evidence)
        if not beside_files:
            return Case(question, found.evidence, found.sources, policy, problems=found.problems)
        known = await guard.aretrieve(question=question, graph=True)
    together = dict.fromkeys((*found.evidence, *known.evidence))
    sources = (*found.sources, Source.GRAPH)
    return Case(question, tuple(together), sources, policy, known.entities, found.problems)
