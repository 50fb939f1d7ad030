"""Protocols between the engine and its judges: synchronous, batches in, batches out.

Every judge is cheap to construct; ``warm_up`` loads models. The engine hands judges plain
texts (premises, hypotheses, questions, answers), so they never know where evidence came from.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, NamedTuple, Protocol, TypeVar, runtime_checkable

from guardrail.core.types import Grounding, Judgement, NLIScores

Inner = TypeVar("Inner", bound="Judge")


class Pair(NamedTuple):
    """A premise and the hypothesis it may entail."""

    premise: str
    hypothesis: str


class AttributionItem(NamedTuple):
    """Input of an attribution judge; the evidence is a tuple of texts."""

    question: str
    answer: str
    evidence: tuple[str, ...]


class GroundingItem(NamedTuple):
    """A sentence of an answer with the evidence to judge it by.

    Attributes:
        statements: The evidence as numbered statements: linearised triples, or sentences of
            passages, in their own order.
        sentence: The sentence to judge.
        context: The question and the previous sentences. They resolve pronouns; they are not
            evidence and are not judged.
        priority: Indices of statements, most important first; if not all fit, these are read
            first. Empty for the order of ``statements``.
        structured: True if the statements are triples, False for prose; each kind has its own
            calibration.
        windows: Number of the window of each statement: the triples of one subject, or neighbouring
            sentences of one passage. Empty if all prose is one passage; triples are then
            grouped by subject.
        evidence: All of the answer's evidence, for a judge that reads as much; else empty.
    """

    statements: tuple[str, ...]
    sentence: str
    context: str = ""
    priority: tuple[int, ...] = ()
    structured: bool = False
    windows: tuple[int, ...] = ()
    evidence: tuple[str, ...] = ()


EVIDENCE_CHARS = 900
"""Characters of evidence for one sentence, by default; see ``NLITraits.evidence_chars``."""


class NLITraits(NamedTuple):
    """Abilities of a judge, its attribute ``traits``; these defaults if it has none.

    Attributes:
        premise_chars: Longest premise that it reads well, in characters.
        tells_contradiction: True if it distinguishes contradiction from lack of support.
        evidence_chars: Characters of evidence that are chosen for one sentence. More gains the
            shipped judge nothing and costs it time.
    """

    premise_chars: int = 1_500
    tells_contradiction: bool = True
    evidence_chars: int = EVIDENCE_CHARS


class TokenLikelihoods(NamedTuple):
    """Natural-log likelihood of each token of a continuation, given its prefix."""

    tokens: tuple[str, ...]
    logprobs: tuple[float, ...]


class Judge(Protocol):
    """Members of every judge."""

    @property
    def name(self) -> str:
        """Name and version, for the score log."""
        ...

    def warm_up(self) -> None:
        """Load the model; later calls do nothing."""
        ...


@runtime_checkable
class NLIJudge(Judge, Protocol):
    """Judges whether premises entail hypotheses."""

    def judge(self, pairs: Sequence[Pair]) -> list[NLIScores]:
        """Judge n pairs; the result has length n and the order of the input.

        Raises:
            JudgeError: The model cannot be loaded or gave no usable output.
        """
        ...


def traits_of(judge: Judge) -> NLITraits:
    """Traits of a judge, or the defaults if it has none."""
    traits = getattr(judge, "traits", None)
    return traits if isinstance(traits, NLITraits) else NLITraits()


class JudgeAround(Generic[Inner]):
    """Wrapper that delegates name, traits and loading to another judge.

    Args:
        inner: The other judge.
    """

    def __init__(self, inner: Inner) -> None:
        self._inner = inner

    @property
    def name(self) -> str:
        """Name and version of the inner judge, for the score log."""
        return self._inner.name

    @property
    def traits(self) -> NLITraits:
        """Traits of the inner judge."""
        return traits_of(self._inner)

    def warm_up(self) -> None:
        """Load the model; later calls do nothing."""
        self._inner.warm_up()


@runtime_checkable
class AttributionJudge(Judge, Protocol):
    """Judges how evidence bears on an answer, in the four categories of CAQA 3.2."""

    def attribute(self, items: Sequence[AttributionItem]) -> list[Judgement]:
        """Judge n items; the result has length n and the order of the input.

        Raises:
            JudgeError: The model cannot be loaded or gave no usable output.
        """
        ...


@runtime_checkable
class GroundingJudge(Judge, Protocol):
    """Judges a sentence, its statements and its words against all evidence in one pass."""

    def ground(self, items: Sequence[GroundingItem]) -> list[Grounding]:
        """Judge n items; the result has length n and the order of the input.

        Raises:
            JudgeError: The model cannot be loaded or gave no usable output.
        """
        ...


class CausalLM(Protocol):
    """A causal language model that reports token likelihoods."""

    @property
    def name(self) -> str:
        """Name of the model, for the score log."""
        ...

    def loglikelihoods(self, pairs: Sequence[tuple[str, str]]) -> list[TokenLikelihoods]:
        """Likelihoods of n continuations, each given its prefix (which may be empty)."""
        ...
