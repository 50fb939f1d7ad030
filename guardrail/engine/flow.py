"""The engine behind ``Guardrail``: rows through the pipeline, scores, policy."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING
from uuid import uuid4

from guardrail.config import GuardrailConfig
from guardrail.core.errors import GuardrailError, KnowledgeGraphError
from guardrail.core.incoming import clean_text, without_controls
from guardrail.core.plugins import foreign
from guardrail.core.types import (
    Action,
    AttributedAnswer,
    Evidence,
    GuardedAnswer,
    Problem,
    Score,
    ScoreCard,
)
from guardrail.core.workers import Workers, off_loop, within
from guardrail.correction.correcting import Correcting
from guardrail.engine.decision import Decision, as_it_came, decide, dry
from guardrail.engine.parts import Parts
from guardrail.engine.pipeline import Checked, Pipeline, Row
from guardrail.engine.problems import (
    ERRORS_OF_PARTS,
    UNUSABLE,
    behind_the_bound,
    late,
    notices,
    problem_of,
    unfit,
)
from guardrail.engine.recording import Recorder
from guardrail.engine.scoring import (
    AheadScorer,
    ScoringRequest,
    read_ahead,
    score_answers,
    sentence_card,
)
from guardrail.evidence.retrieval import Knowledge, given, retrieve_passages
from guardrail.log.fingerprints import fingerprints
from guardrail.log.tracing import stage
from guardrail.policy import Policy, Unavailable
from judges.second_opinion import unheard

if TYPE_CHECKING:
    from guardrail.log.records import ScoreLog
    from guardrail.verdict.grounder import Grounder

__all__ = ["Engine"]

ROWS_PER_PASS = 64
"""Rows of a batch that go through the pipeline together: enough to fill the judge, few enough
to keep memory flat."""


STUCK_PER_WORKER = 4
"""Abandoned calls that may hang for each concurrent one, before answers return at once."""


class Engine:
    """Does the work of one guardrail; everything here is a coroutine or cheap.

    Args:
        config: Settings.
        parts: Graph, linker, judges, model and scorers.
        retriever: Asked for evidence in place of the graph and of the files of the config; None
            for these.
        log: A score log handed in; None for the configured one.
    """

    def __init__(
        self, config: GuardrailConfig, parts: Parts, retriever: object, log: ScoreLog | None
    ) -> None:
        self.config = config
        self.parts = parts
        self._pipeline = Pipeline(config, parts)
        self._retriever = retriever
        calls = config.limits.concurrency
        self.workers = Workers(calls, STUCK_PER_WORKER * calls)
        self.recorder = Recorder(config.log, log)

    @foreign("loading the parts", GuardrailError)
    def warm_up(self) -> None:
        """Load what the first answer would load."""
        if self.parts.grounding is not None:
            self.parts.grounding.warm_up()
        if self.parts.second_judge is not None:
            self.parts.second_judge.warm_up()
        _ = self.parts.grounder  # a missing check is an error before the first answer
        if self._reads_files:
            _ = self.parts.own_evidence
        elif self.reads_answers and self.parts.linker is not None:
            self.parts.linker.link(["Ada Lovelace was born in London in 1815."])
        for scorer in self.parts.scorers:
            if isinstance(scorer, AheadScorer):
                scorer.warm_up()
        self.recorder.open()

    def close(self) -> None:
        """Release threads, parts and the log that were made here."""
        self.workers.close()
        self.parts.close()
        self.recorder.close()

    def row(
        self,
        row_id: str | None,
        question: str,
        answer: str,
        evidence: Sequence[Evidence] | None,
        place: int = 0,
    ) -> Row:
        """A caller's answer as a row of the pipeline."""
        known = None if evidence is None else given(evidence, self.config.limits)
        name = without_controls(row_id or "") or uuid4().hex
        return Row(name, clean_text(question), clean_text(answer), known, place)

    # --- check ---------------------------------------------------------------------------

    async def guard(
        self,
        rows: Sequence[Row],
        policy: Policy,
        *,
        answers: int | None = None,
        grounder: Callable[[], Grounder] | None = None,
        recall: dict[str, Knowledge] | None = None,
        scored: bool = True,
    ) -> list[GuardedAnswer]:
        """Check, score and decide n rows, in order.

        Args:
            rows: The rows.
            policy: What to do with each.
            answers: Number of answers of the rows, each with the policy's time: the
                candidates of one ranking share theirs. None where each row is an answer.
            grounder: Gives what grounds them, in place of the configured one.
            recall: What the retriever found, by question; asked first, and added to.
            scored: Whether the further scorers are asked.

        Raises:
            GuardrailError: A part cannot be used and the policy says ``raise``.
        """
        share = 1.0 if answers is None else answers / max(1, len(rows))
        guarded: list[GuardedAnswer] = []
        for first in range(0, len(rows), ROWS_PER_PASS):
            some = rows[first : first + ROWS_PER_PASS]
            seconds = self._allowed(policy, max(1.0, len(some) * share))
            with within(seconds):
                guarded += await self._pass(some, policy, seconds, grounder, recall, scored)
        return guarded

    def _allowed(self, policy: Policy, answers: float) -> float | None:
        """Seconds for answers that go through together; see ``limits.batch_s``."""
        alone = policy.deadline_s
        if alone is None:
            return None
        return min(alone * answers, max(alone, self.config.limits.batch_s))

    async def _pass(
        self,
        rows: Sequence[Row],
        policy: Policy,
        seconds: float | None,
        grounder: Callable[[], Grounder] | None,
        recall: dict[str, Knowledge] | None,
        scored: bool,
    ) -> list[GuardedAnswer]:
        begin, limits = time.perf_counter(), self.config.limits
        faults = {place: fault for place, row in enumerate(rows) if (fault := unfit(row, limits))}
        sound = [row for place, row in enumerate(rows) if place not in faults]
        problems: list[Problem] = []
        checked: list[Checked] = []
        cards: list[ScoreCard] = []
        late_part = "deadline"
        try:
            async with asyncio.timeout(seconds):
                sound, more = await self._with_passages(sound, {} if recall is None else recall)
                problems += more
                scored = scored and self.parts.scoring
                ahead = partial(read_ahead, self.parts.made_scorers) if scored else None
                if sound:
                    run = partial(self._pipeline.run, correct=policy.contradicted is Action.CORRECT)
                    checked = await self.workers.run(run, sound, grounder, ahead, policy.strictness)
                if policy.contradicted is Action.CORRECT:
                    late_part = "correction"
                    with stage("correct"):
                        checked = await self._correcting(policy, grounder, ahead).correct(
                            checked, policy
                        )
                requests = [
                    ScoringRequest(
                        item.row.question,
                        item.answer,
                        item.knowledge.evidence,
                        item.knowledge.entities,
                        item.docs,
                    )
                    for item in checked
                ]
                late_part = "scorers"
                scorers = await self.workers.run(lambda: self.parts.scorers) if scored else ()
                scoring = time.perf_counter()
                with stage("score"):
                    cards, more = await score_answers(requests, scorers, self.workers.run)
                problems += more
                for item in checked:
                    share = (time.perf_counter() - scoring) * 1000.0 / len(checked)
                    item.timings_ms["score"] = share
        except TimeoutError:
            problems.append(late(policy, seconds, late_part))
        except UNUSABLE as error:
            problems.append(problem_of(error, "judge"))
        if checked and not cards:
            # What is late or fails then costs corrections or scores, never the verdict.
            cards = [sentence_card(item.answer.sentences) for item in checked]
        spent = (time.perf_counter() - begin) * 1000.0 / len(rows)
        done = iter(zip(checked, cards, strict=False))

        def result(place: int, row: Row) -> GuardedAnswer:
            if place in faults:
                return self.unavailable(row, [faults[place]], policy, spent)
            item, card = next(done, (None, None))
            reported = [*(item.problems if item else ()), *problems]
            if item is not None:
                reported += behind_the_bound(item.answer.sentences, limits)
                reported += unheard(item.answer.sentences)
            if item is None or card is None or any(it.part in ERRORS_OF_PARTS for it in reported):
                return self.unavailable(row, reported, policy, spent, item, card)
            decision = decide(policy, item.answer, card)
            if policy.dry_run:
                decision = dry(decision, item.first or item.answer)
            elif item.first is not None:
                decision = as_it_came(decision, item.answer, item.first)
            return self._result(row, item, card, decision, reported, policy, spent)

        return await off_loop(lambda: [result(place, row) for place, row in enumerate(rows)])

    def _correcting(
        self,
        policy: Policy,
        grounder: Callable[[], Grounder] | None,
        ahead: Callable[[Sequence[ScoringRequest]], None] | None,
    ) -> Correcting:
        return Correcting(
            judge=lambda rows: self.workers.run(
                self._pipeline.run, rows, grounder, ahead, policy.strictness
            ),
            model=lambda: self.workers.run(lambda: self.parts.model),
            at_once=self.config.limits.concurrency,
            verbatim=self.config.citations == "verbatim",
        )

    async def _with_passages(
        self, rows: Sequence[Row], recall: dict[str, Knowledge]
    ) -> tuple[list[Row], list[Problem]]:
        """Fill in what retriever or files hold for rows without evidence of their own."""
        if self.reads_answers:
            return list(rows), []
        asked = dict.fromkeys(row.question for row in rows if row.knowledge is None)
        new = [question for question in asked if question not in recall]
        problems = []
        if new:
            try:
                with stage("retrieve"):
                    found = await self._without_graph(new)
                recall.update(zip(new, found, strict=True))
            except KnowledgeGraphError as error:
                problems = [Problem(part="kg", message=str(error))]
        known = [row.knowledge or recall.get(row.question, Knowledge()) for row in rows]
        filled = [row._replace(knowledge=some) for row, some in zip(rows, known, strict=True)]
        return filled, problems

    async def _without_graph(self, questions: Sequence[str]) -> list[Knowledge]:
        """What a retriever finds for n questions, or the files hold, in place of the graph."""
        if self._retriever is None:
            own = await self.workers.run(lambda: self.parts.own_evidence)
            return [own or Knowledge()] * len(questions)
        limits = self.config.limits
        return await retrieve_passages(self._retriever, questions, limits, self.workers.run)

    def unavailable(
        self,
        row: Row,
        problems: Sequence[Problem],
        policy: Policy,
        spent: float,
        checked: Checked | None = None,
        card: ScoreCard | None = None,
    ) -> GuardedAnswer:
        """What the policy says for an answer that could not be verified."""
        reason = "; ".join(problem.message for problem in problems)
        if policy.unavailable is Unavailable.RAISE and not policy.dry_run:
            part = next((item.part for item in problems if item.part in ERRORS_OF_PARTS), "judge")
            raise ERRORS_OF_PARTS[part](reason)
        if policy.unavailable is Unavailable.REFUSE and not policy.dry_run:
            refused = AttributedAnswer(text=policy.refusal, marked=policy.refusal)
            decision = Decision(Action.REFUSE, (reason,), refused)
        else:
            bare = AttributedAnswer(text=row.answer, marked=row.answer)
            answer = (checked.first or checked.answer) if checked else bare
            kept = policy.unavailable is Unavailable.RETURN_UNVERIFIED
            would = (Action.UNVERIFIED if kept else Action.REFUSE) if policy.dry_run else None
            decision = Decision(Action.UNVERIFIED, (reason,), answer, would=would)
        none = ScoreCard(overall=Score(reason=reason))
        return self._result(row, checked, card or none, decision, problems, policy, spent)

    def _result(
        self,
        row: Row,
        checked: Checked | None,
        card: ScoreCard,
        decision: Decision,
        problems: Sequence[Problem],
        policy: Policy,
        spent: float,
    ) -> GuardedAnswer:
        unread = Knowledge(source="files" if self._reads_files else "graph")
        known = checked.knowledge if checked else row.knowledge or unread
        notes = notices(row, checked, known, failed=bool(problems))
        return GuardedAnswer(
            id=row.id,
            index=row.place,
            question=row.question,
            **dict(decision.answer),  # text, marked, sentences
            action=decision.action,
            would=decision.would,
            reasons=decision.reasons,
            removed=decision.removed,
            entities=known.entities,
            evidence=known.evidence,
            evidence_from=(known.source,),
            scorecard=card,
            original=row.answer,
            versions={
                **(names := self.parts.versions()),
                "policy": policy.name,
                "strictness": str(policy.strictness or self.config.strictness),
                **fingerprints(
                    names, self.parts.made("graph"), policy, self.parts.made("grounding", "nli")
                ),
            },
            timings_ms={**(checked.timings_ms if checked else {}), "total": spent},
            errors=tuple(dict.fromkeys([*problems, *notes])),
        )

    # --- retrieve ------------------------------------------------------------------------

    @property
    def reads_answers(self) -> bool:
        """Whether evidence is found by the names of an answer too: in the graph alone."""
        return self._retriever is None and not self.config.evidence

    @property
    def _reads_files(self) -> bool:
        return self._retriever is None and bool(self.config.evidence)

    async def knowledge(self, question: str, *, graph: bool = False) -> Knowledge:
        """The graph's facts on a question, or the evidence that replaces the graph."""
        with stage("retrieve"):
            if not (graph or self.reads_answers):
                return (await self._without_graph([question]))[0]
            return (await self.workers.run(self._pipeline.knowledge, [question]))[0]
