"""The guardrail: check, rank and ask, single and in batches, synchronous and not."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Self, TypeVar
from uuid import uuid4

from guardrail.candidates import answers_of_model
from guardrail.config import GuardrailConfig
from guardrail.core.errors import ConfigError, InputError
from guardrail.core.types import (
    Evidence,
    GuardedAnswer,
    Strictness,
    Triple,
    Usage,
    VerdictThresholds,
    as_strictness,
)
from guardrail.core.types.answers import AskRequest, CheckRequest, RankRequest
from guardrail.core.types.value import Value
from guardrail.core.workers import Closing, off_loop, synchronous, within
from guardrail.engine.decision import ranked
from guardrail.engine.flow import Engine, Row
from guardrail.engine.parts import Parts
from guardrail.engine.session import CheckSession
from guardrail.evidence.retrieval import Knowledge, given
from guardrail.log.entries import LOST, tagged
from guardrail.log.tracing import stage
from guardrail.models.facts import relevant_triples
from guardrail.policy import Policy, chosen_policy
from guardrail.scorers import Scorer
from guardrail.selftest import try_judge
from guardrail.sources.items import as_evidence

if TYPE_CHECKING:
    from guardrail.log.records import ScoreLog
    from guardrail.sources.tables import Table
    from guardrail.verdict.checks.base import Check
    from judges.base import GroundingJudge, NLIJudge
    from kg.base import KnowledgeGraph
    from kg.linking import EntityLinker

__all__ = ["AskRequest", "CheckRequest", "Guardrail", "RankRequest"]

ITEMS_ON_LOOP = 1_000
"""Most items of evidence that are read on the event loop, in some milliseconds."""


RequestT = TypeVar("RequestT", bound=Value)


class Guardrail(Closing):
    """Grounds answers in a knowledge graph, marks what lacks support, scores and decides.

    Cheap to make: parts load when first needed, or in ``warm_up``. One guardrail may be used
    from many threads and event loops at once.

    Args:
        config: Settings; None reads the environment over the defaults.
        graph: A knowledge graph, or where it lies, in place of the configured one.
        linker: An entity linker over that graph.
        nli: An NLI judge.
        grounding: A grounding judge, in place of the NLI judge for verdicts.
        model: A language model: anything ``guardrail.models.open_model`` takes.
        scorers: Scorers in addition to those named in the config.
        checks: Checks in addition to those of the package and those named in the config.
        log: A score log; one that fails never fails an answer.
        retriever: A LangChain retriever, or a function from a question to evidence, asked in
            place of the graph, and of the files that ``config.evidence`` names.
        policy: A policy, or the name of one, in place of the configured one.
        strictness: ``lenient``, ``balanced`` or ``strict``, or thresholds, in place of the
            configured strictness. For one call, hand in a policy: ``STRICT.changed(strictness=…)``.

    Raises:
        ConfigError: A part is of a kind that cannot serve.

    Example:
        >>> guard = Guardrail()
        >>> answer = guard.check(question="Who was Ada Lovelace?", answer="A poet from Rome.")
        >>> answer.sentences[0].na
        True
    """

    def __init__(
        self,
        config: GuardrailConfig | None = None,
        *,
        graph: KnowledgeGraph | str | Path | None = None,
        linker: EntityLinker | None = None,
        nli: NLIJudge | None = None,
        grounding: GroundingJudge | None = None,
        model: object = None,
        scorers: Sequence[Scorer] = (),
        checks: Sequence[Check] = (),
        log: ScoreLog | None = None,
        retriever: object = None,
        policy: Policy | str | None = None,
        strictness: Strictness | VerdictThresholds | str | None = None,
    ) -> None:
        self.config = GuardrailConfig.from_env() if config is None else config
        if isinstance(graph, str | Path):
            place = {**self.config.graph.model_dump(), "location": str(graph)}
            self.config, graph = self.config.changed(graph=place), None
        if policy is not None:
            self.config = self.config.changed(policy=chosen_policy(policy, self.config.policy))
        objects = {"retriever": retriever, "linker": linker, "grounding": grounding, "log": log}
        for name, part in objects.items():
            if isinstance(part, str | Path):
                raise ConfigError(f"{name} must be an object, not {str(part)!r}; see Guardrail")
        if strictness is not None:
            changed = {"strictness": as_strictness(strictness)}
            self.config = self.config.model_copy(update=changed)
        given = {
            "graph": graph,
            "linker": linker,
            "nli": nli,
            "grounding": grounding,
            "model": model,
            "checks": tuple(checks) or None,
        }
        self._model_given = model is not None
        self._scorer_names = (*self.config.scorers, *(scorer.name for scorer in scorers))
        self._engine = Engine(self.config, Parts(self.config, given, scorers), retriever, log)

    def warm_up(self) -> None:
        """Load graph, linker, judges and parser now, so that the first answer is fast.

        Raises:
            GuardrailError: A part cannot be loaded.
        """
        self._engine.warm_up()

    def self_test(self) -> None:
        """Have each judge tell three sentences apart, as ``guardrail doctor`` and the gateway do.

        Raises:
            JudgeError: It gets one of them wrong, or cannot be asked.
        """
        parts = self._engine.parts
        if parts.grounding is not None:
            try_judge(parts.grounding)
        if parts.second_judge is not None:
            try_judge(parts.second_judge.grounding, "second_judge")

    @property
    def has_model(self) -> bool:
        """True if a language model was passed in or is named in the settings."""
        model = self.config.model
        return self._model_given or model.name is not None or model.base_url is not None

    def require(self, policy: Policy) -> Policy:
        """The policy itself, if its scores are computed here.

        Raises:
            ConfigError: A threshold or ``rank_by`` names a score of a scorer that is switched off;
                such a threshold would never be passed, and the ranking would be arbitrary.
        """
        for name in (*policy.thresholds, policy.rank_by):
            scorer = name.partition(".")[0]
            if (
                scorer in ("sck", "conner", "quality", "relevance")
                and scorer not in self._scorer_names
            ):
                raise ConfigError(
                    f"policy {policy.name!r} needs the score {name!r}; switch its scorer on with "
                    f"the setting scorers = [{scorer!r}]"
                )
        return policy

    def usage(self) -> Usage:
        """What its parts are busy with: queues, calls in work, caches, batches of the judge."""
        engine = self._engine
        return Usage.together([engine.workers.in_use(), engine.parts.in_use()])

    def close(self) -> None:
        """Release all parts that this guardrail made; it cannot be used afterwards."""
        self._engine.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.to_thread(self.close)

    async def acheck(
        self,
        question: str,
        answer: str,
        *,
        evidence: Iterable[Evidence | Table] | None = None,
        policy: Policy | str | None = None,
        id: str | None = None,
        record: bool = True,
    ) -> GuardedAnswer:
        """Check an answer that was written elsewhere.

        Args:
            question: What was asked; may be empty.
            answer: The answer, with or without markers.
            evidence: Triples, passages and tables; None for what the settings name: the graph, a
                retriever or files.
            policy: A policy or its name; None for the configured one.
            id: Echoed in the result; made when None.
            record: Whether the score log gets a row; False for a look at an answer that is still
                growing, as the log holds one row per response.

        Returns:
            The answer as the policy leaves it. ``errors`` reports failed parts.

        Raises:
            InputError: ``evidence`` is no list, or an item has an unsupported type.
            GuardrailError: A part cannot be used and the policy says ``raise``.
        """
        request = CheckRequest(question=question, answer=answer, evidence=_given(evidence), id=id)
        return (await self.acheck_batch([request], policy=policy, record=record))[0]

    check = synchronous(acheck)
    """``acheck`` for synchronous callers."""

    async def acheck_batch(
        self,
        requests: Sequence[CheckRequest],
        *,
        policy: Policy | str | None = None,
        record: bool = True,
    ) -> list[GuardedAnswer]:
        """Check n answers, in order, with one call to the judge for many of them.

        Raises:
            InputError: An item is no ``CheckRequest``.
            GuardrailError: A part cannot be used and the policy says ``raise``.
        """
        asked = _all_of(CheckRequest, requests)
        rows = await self._rows(
            [item.evidence for item in asked],
            lambda: [self._engine.row(item) for item in asked],
        )
        with stage("check", rows=len(rows)):
            checked = await self._engine.guard(rows, self._policy(policy))
            return await self._engine.recorder.record(checked) if record else checked

    check_batch = synchronous(acheck_batch)
    """``acheck_batch`` for synchronous callers."""

    def session(
        self,
        question: str,
        *,
        evidence: Iterable[Evidence | Table] | None = None,
        policy: Policy | str | None = None,
        id: str | None = None,
    ) -> CheckSession:
        """Check an answer while it grows: each sentence once, and at the end the whole.

        Args:
            question: What is asked; may be empty.
            evidence: Triples, passages and tables that replace the graph; None to use the graph.
            policy: A policy or its name, for the verdict on the whole; None for the configured.
            id: Echoed in the results; made when None.

        Raises:
            InputError: ``evidence`` is no list, or an item has an unsupported type.
        """
        return CheckSession(
            self._engine,
            question=question,
            evidence=_given(evidence),
            policy=self._policy(policy),
            id=id,
        )

    # --- retrieve ------------------------------------------------------------------------

    async def aretrieve(self, question: str, *, graph: bool = False) -> Knowledge:
        """Link a question's entities and retrieve the facts round them.

        Args:
            question: The question.
            graph: Whether the graph is also asked if a retriever or files replace it.

        Raises:
            ConfigError: A file of ``config.evidence`` cannot be read.
            KnowledgeGraphError: The graph cannot be used.
        """
        return await self._engine.knowledge(question, graph=graph)

    retrieve = synchronous(aretrieve)
    """``aretrieve`` for synchronous callers."""

    async def afacts(
        self, question: str, *, evidence: Iterable[Evidence | Table] | None = None
    ) -> tuple[Triple, ...]:
        """The facts on a question for a prompt, the most relevant first (KaLMA 3.3).

        Their number and length are bounded by the settings of generation. A passage is a fact with
        the property ``passage``.

        Args:
            question: The question.
            evidence: What to choose from; None to retrieve it.

        Raises:
            InputError: ``evidence`` is no list, or an item has an unsupported type.
            KnowledgeGraphError: The graph cannot be used.
        """
        items = _given(evidence)
        if items is None:
            known = await self.aretrieve(question)
        else:
            known = given(items, self.config.limits)
        return relevant_triples(question, known.subgraphs, self.config.model.generation.facts)

    facts = synchronous(afacts)
    """``afacts`` for synchronous callers."""

    async def arank(
        self,
        question: str,
        answers: Sequence[str],
        *,
        evidence: Iterable[Evidence | Table] | None = None,
        policy: Policy | str | None = None,
        id: str | None = None,
        record: bool = True,
    ) -> list[GuardedAnswer]:
        """Check several answers to one question, best first.

        Args:
            question: What was asked.
            answers: The answers; the one at place i has the ``index`` i and the id ``<id>.<i>``.
            evidence: Triples, passages and tables that replace the graph.
            policy: A policy or its name; its ``rank_by`` orders the answers.
            id: Prefix of the results' ids; made when None.
            record: Whether the score log gets a row for each answer.

        Returns:
            All answers, best first; the first of ``reasons`` says why each stands where it does.

        Raises:
            InputError: ``evidence`` is no list, or an item has an unsupported type.
            GuardrailError: A part cannot be used and the policy says ``raise``.
        """
        request = RankRequest(
            question=question, answers=_several(answers), evidence=_given(evidence), id=id
        )
        return (await self.arank_batch([request], policy=policy, record=record))[0]

    rank = synchronous(arank)
    """``arank`` for synchronous callers."""

    async def arank_batch(
        self,
        requests: Sequence[RankRequest],
        *,
        policy: Policy | str | None = None,
        record: bool = True,
    ) -> list[list[GuardedAnswer]]:
        """Rank the answers of n questions, each best first; see ``rank`` for ``record``.

        Raises:
            InputError: An item is no ``RankRequest``.
            GuardrailError: A part cannot be used and the policy says ``raise``.
        """
        chosen = self._policy(policy)
        asked = _all_of(RankRequest, requests)
        rows = await self._rows(
            [item.evidence for item in asked], lambda: [*self._ranked_rows(asked)]
        )
        with stage("rank", rows=len(rows)):
            checked = await self._engine.guard(rows, chosen, answers=len(asked))
            each = iter(checked)
            rankings = [ranked([next(each) for _ in item.answers], chosen) for item in asked]
            if not record:
                return rankings
            # Recorded once each has its place, so that the log tells why one candidate won.
            kept = iter(await self._engine.recorder.record([*chain.from_iterable(rankings)]))
        return [[next(kept) for _ in request.answers] for request in asked]

    rank_batch = synchronous(arank_batch)
    """``arank_batch`` for synchronous callers."""

    async def _rows(
        self, evidence: Iterable[Sequence[Evidence] | None], make: Callable[[], list[Row]]
    ) -> list[Row]:
        """Rows of the pipeline; of much evidence on a thread, so that no other caller waits."""
        many = sum(len(each or ()) for each in evidence) > ITEMS_ON_LOOP
        return await off_loop(make) if many else make()

    def _ranked_rows(self, requests: Sequence[RankRequest]) -> Iterator[Row]:
        for request in requests:
            prefix = request.id or uuid4().hex
            known = CheckRequest(question=request.question, answer="", evidence=request.evidence)
            knowledge = self._engine.row(known).knowledge  # read once for all of them
            for place, answer in enumerate(request.answers):
                one = CheckRequest(id=f"{prefix}.{place}", question=request.question, answer=answer)
                yield self._engine.row(one, place)._replace(knowledge=knowledge)

    # --- ask --------------------------------------------------------------------------

    async def aask(
        self,
        question: str,
        *,
        n: int | None = None,
        evidence: Iterable[Evidence | Table] | None = None,
        policy: Policy | str | None = None,
        id: str | None = None,
    ) -> GuardedAnswer:
        """Answer a question: retrieve, sample, check, rank, regenerate where needed.

        Args:
            question: What to answer.
            n: Answers to sample in each attempt; None for the policy's number.
            evidence: Triples, passages and tables that replace the graph.
            policy: A policy or its name; ``attempts`` and ``deadline_s`` bound the work.
            id: Echoed in the result; made when None.

        Raises:
            InputError: The question is empty or too long, or ``evidence`` is invalid.
            GuardrailError: A part cannot be used and the policy says ``raise``.
        """
        return (await self.aask_ranked(question, n=n, evidence=evidence, policy=policy, id=id))[0]

    ask = synchronous(aask)
    """``aask`` for synchronous callers."""

    async def aask_ranked(
        self,
        question: str,
        *,
        n: int | None = None,
        evidence: Iterable[Evidence | Table] | None = None,
        policy: Policy | str | None = None,
        id: str | None = None,
    ) -> list[GuardedAnswer]:
        """``ask``, with all sampled answers, best first; the log has each with its place."""
        request = AskRequest(question=question, n=n, evidence=_given(evidence), id=id)
        return await self._ask(request, self._policy(policy))

    ask_ranked = synchronous(aask_ranked)
    """``aask_ranked`` for synchronous callers."""

    async def aask_batch(
        self, requests: Sequence[AskRequest], *, policy: Policy | str | None = None
    ) -> list[GuardedAnswer]:
        """Answer n questions, in order.

        Raises:
            InputError: An item is no ``AskRequest``.
            GuardrailError: A part cannot be used and the policy says ``raise``.
        """
        chosen = self._policy(policy)
        gate = asyncio.Semaphore(self.config.limits.concurrency)

        async def one(request: AskRequest) -> GuardedAnswer:
            async with gate:
                return (await self._ask(request, chosen))[0]

        return list(await asyncio.gather(*map(one, _all_of(AskRequest, requests))))

    ask_batch = synchronous(aask_batch)
    """``aask_batch`` for synchronous callers."""

    async def _ask(self, request: AskRequest, policy: Policy) -> list[GuardedAnswer]:
        with stage("ask"):
            with within(policy.deadline_s):
                answers = await answers_of_model(self._engine, request, policy)
            return await self.arecord(answers)

    async def arecord(
        self, answers: Sequence[GuardedAnswer], *, delivered: int = 1
    ) -> list[GuardedAnswer]:
        """Write the candidates of one response to the score log.

        Args:
            answers: Best first.
            delivered: How many of them the caller gets; the others are tagged as lost.
        """
        best, lost = await asyncio.gather(
            self._engine.recorder.record(answers[:delivered]),
            self._record_lost(answers[delivered:]),
        )
        return [*best, *lost]

    record = synchronous(arecord)
    """``arecord`` for synchronous callers."""

    async def _record_lost(self, answers: Sequence[GuardedAnswer]) -> list[GuardedAnswer]:
        if not answers:
            return []
        with tagged(**LOST):
            return await self._engine.recorder.record(answers)

    def _policy(self, policy: Policy | str | None) -> Policy:
        chosen = chosen_policy(policy, self.config.policy)
        if chosen.strictness is not None:
            return chosen
        return chosen.model_copy(update={"strictness": self.config.strictness})


def _given(evidence: Iterable[Evidence | Table] | None) -> tuple[Evidence, ...] | None:
    """What a call brings to be judged by; None where it brings none, and the graph is asked."""
    return None if evidence is None else as_evidence(evidence)


def _several(answers: Iterable[str]) -> tuple[str, ...]:
    """The answers to rank.

    Raises:
        InputError: They are no list of texts, such as one text, whose characters would pass for
            answers.
    """
    if isinstance(answers, str) or not isinstance(answers, Iterable):
        raise InputError(f"answers must be several texts in a list, not {_type(answers)}")
    return tuple(answers)


def _all_of(kind: type[RequestT], requests: Iterable[RequestT]) -> list[RequestT]:
    """The requests of a batch.

    Raises:
        InputError: They are no list, or one is something else, such as a text or a dict.
    """
    if isinstance(requests, str | Mapping | Value) or not isinstance(requests, Iterable):
        raise InputError(f"a batch is a list of {kind.__name__}, not {_type(requests)}")
    found = list(requests)
    for place, item in enumerate(found):
        if not isinstance(item, kind):
            raise InputError(
                f"requests[{place}] must be of type {kind.__name__}, not {_type(item)}; "
                f"write guardrail.{kind.__name__}(question=…, …)"
            )
    return found


def _type(item: object) -> str:
    return type(item).__name__
