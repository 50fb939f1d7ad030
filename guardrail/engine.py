"""The engine behind ``Guardrail``: rows through the pipeline, scores, policy, regeneration."""

from __future__ import annotations

import asyncio
import contextvars
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import uuid4

from guardrail.config import GuardrailConfig
from guardrail.errors import (
    DeadlineExceededError,
    GuardrailError,
    InputError,
    JudgeError,
    KnowledgeGraphError,
    MissingExtraError,
    ModelError,
)
from guardrail.generation import generate
from guardrail.pipeline import Checked, Parts, Pipeline, Row, clean_input
from guardrail.policy import Decision, Policy, Unavailable, decide, feedback
from guardrail.prompts import FailedSentence
from guardrail.ranking import ranked
from guardrail.retrieval import Knowledge, given, retrieve_passages
from guardrail.scoring import ScoringRequest, score_answers, sentence_card
from guardrail.tracing import log_failed, model_call, record_answer, stage
from guardrail.types import (
    Action,
    AttributedAnswer,
    Evidence,
    GuardedAnswer,
    Problem,
    Score,
    ScoreCard,
)

if TYPE_CHECKING:
    from guardrail.records import ScoreLog

__all__ = ["Engine"]

T = TypeVar("T")

ROWS_PER_PASS = 64
"""Rows of a batch that go through the pipeline together: enough to fill the judge, few enough
to keep memory flat."""

LAST_ATTEMPT_S = 1.0
"""No further attempt is started with less time than this left."""

ERRORS_OF_PARTS: dict[str, type[GuardrailError]] = {
    "kg": KnowledgeGraphError,
    "judge": JudgeError,
    "model": ModelError,
    "deadline": DeadlineExceededError,
    "input": InputError,
}


class Engine:
    """Does the work of one guardrail; everything here is a coroutine or cheap.

    Args:
        config: Settings.
        parts: Graph, linker, judges, model and scorers.
        retriever: Asked for evidence in place of the graph; None for the graph.
        log: A score log handed in; None for the configured one.
    """

    def __init__(
        self, config: GuardrailConfig, parts: Parts, retriever: Any, log: ScoreLog | None
    ) -> None:
        self.config = config
        self.parts = parts
        self._pipeline = Pipeline(config, parts)
        self._retriever = retriever
        self._log = log
        self._owns_log = log is None
        self._workers = ThreadPoolExecutor(config.limits.concurrency, "guardrail")

    def warm_up(self) -> None:
        """Load what the first answer would load."""
        from guardrail.phrases import parse

        for judge in (self.parts.nli, self.parts.attribution):
            if judge is not None:
                judge.warm_up()
        docs = parse(["Ada Lovelace was born in London in 1815."])
        if self._retriever is None and self.parts.linker is not None:
            self.parts.linker.link([doc.text for doc in docs], docs=docs)
        self._open_log()

    def close(self) -> None:
        """Release threads, parts and the log that were made here."""
        self._workers.shutdown(wait=True, cancel_futures=True)
        self.parts.close()
        if self._owns_log and self._log is not None:
            self._log.close()

    def row(
        self,
        row_id: str | None,
        question: str,
        answer: str,
        evidence: Sequence[Evidence] | None,
        place: int = 0,
    ) -> Row:
        """A caller's answer as a row of the pipeline."""
        known = None if evidence is None else given(evidence, self.config.limits.evidence)
        return Row(row_id or uuid4().hex, clean_input(question), clean_input(answer), known, place)

    # --- check ---------------------------------------------------------------------------

    async def guard(self, rows: Sequence[Row], policy: Policy) -> list[GuardedAnswer]:
        """Check, score and decide n rows, in order.

        Raises:
            GuardrailError: A part cannot be used and the policy says ``raise``.
        """
        answers: list[GuardedAnswer] = []
        for first in range(0, len(rows), ROWS_PER_PASS):
            answers += await self._pass(rows[first : first + ROWS_PER_PASS], policy)
        return answers

    async def _pass(self, rows: Sequence[Row], policy: Policy) -> list[GuardedAnswer]:
        begin = time.perf_counter()
        faults = {place: fault for place, row in enumerate(rows) if (fault := self._fault(row))}
        sound = [row for place, row in enumerate(rows) if place not in faults]
        problems: list[Problem] = []
        checked: list[Checked] = []
        cards: list[ScoreCard] = []
        try:
            async with asyncio.timeout(_allowed(policy, len(rows))):
                sound, told = await self._with_passages(sound)
                problems += told
                checked = await self._in_thread(self._pipeline.run, sound) if sound else []
                requests = [
                    ScoringRequest(
                        one.row.question, one.answer, one.knowledge.evidence, one.knowledge.entities
                    )
                    for one in checked
                ]
                scorers = await self._in_thread(lambda: self.parts.scorers)
                scoring = time.perf_counter()
                with stage("score"):
                    cards, told = await score_answers(requests, scorers)
                problems += told
                for one in checked:
                    share = (time.perf_counter() - scoring) * 1000.0 / len(checked)
                    one.timings_ms["score"] = share
        except TimeoutError:
            late = _late(policy)
            # Where the verdicts stand already, only the further scorers came too late.
            problems.append(late.model_copy(update={"part": "scorers"}) if checked else late)
        except (KnowledgeGraphError, JudgeError, MissingExtraError) as error:
            part = "kg" if isinstance(error, KnowledgeGraphError) else "judge"
            problems.append(Problem(part=part, message=str(error)))
        if checked and not cards:
            # A further scorer that is late or fails costs its scores, never the verdict.
            cards = [sentence_card(one.answer.sentences) for one in checked]
        spent = (time.perf_counter() - begin) * 1000.0 / len(rows)
        done = iter(zip(checked, cards, strict=False))
        results = []
        for place, row in enumerate(rows):
            fault = faults.get(place)
            pair = None if fault else next(done, None)
            if pair is None:
                told = [fault] if fault else problems
                results.append(self._unavailable(row, None, None, told, policy, spent))
            else:
                results.append(self._decided(*pair, problems, policy, spent))
        return results

    def _fault(self, row: Row) -> Problem | None:
        limits = self.config.limits
        if not row.answer.strip():
            return Problem(part="input", message="the answer is empty; there is nothing to check")
        for what, text, most in (
            ("answer", row.answer, limits.answer_chars),
            ("question", row.question, limits.question_chars),
        ):
            if len(text) > most:
                message = (
                    f"the {what} has {len(text)} characters, more than limits.{what}_chars = "
                    f"{most}; shorten it or raise the limit"
                )
                return Problem(part="input", message=message)
        return None

    async def _with_passages(self, rows: Sequence[Row]) -> tuple[list[Row], list[Problem]]:
        """Fill in what the retriever finds for rows without evidence of their own."""
        places = [place for place, row in enumerate(rows) if row.knowledge is None]
        if self._retriever is None or not places:
            return list(rows), []
        filled = list(rows)
        try:
            with stage("retrieve"):
                found = await retrieve_passages(
                    self._retriever,
                    [rows[place].question for place in places],
                    self.config.limits.evidence,
                )
        except KnowledgeGraphError as error:
            found = [Knowledge() for _ in places]
            problems = [Problem(part="kg", message=str(error))]
        else:
            problems = []
        for place, known in zip(places, found, strict=True):
            filled[place] = rows[place]._replace(knowledge=known)
        return filled, problems

    def _decided(
        self,
        checked: Checked,
        card: ScoreCard,
        problems: Sequence[Problem],
        policy: Policy,
        spent: float,
    ) -> GuardedAnswer:
        told = [*checked.problems, *problems]
        if any(problem.part in ERRORS_OF_PARTS for problem in told):
            return self._unavailable(checked.row, checked, card, told, policy, spent)
        return self._result(
            checked.row, checked, card, decide(policy, checked.answer, card), told, policy, spent
        )

    def _unavailable(
        self,
        row: Row,
        checked: Checked | None,
        card: ScoreCard | None,
        problems: Sequence[Problem],
        policy: Policy,
        spent: float,
    ) -> GuardedAnswer:
        """What the policy says for an answer that could not be verified."""
        reason = "; ".join(problem.message for problem in problems)
        if policy.unavailable is Unavailable.RAISE:
            part = next((one.part for one in problems if one.part in ERRORS_OF_PARTS), "judge")
            raise ERRORS_OF_PARTS[part](reason)
        if policy.unavailable is Unavailable.REFUSE:
            refused = AttributedAnswer(text=policy.refusal, marked=policy.refusal)
            decision = Decision(Action.REFUSE, (reason,), refused)
        else:
            bare = AttributedAnswer(text=row.answer, marked=row.answer)
            answer = checked.answer if checked else bare
            decision = Decision(Action.UNVERIFIED, (reason,), answer)
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
        known = checked.knowledge if checked else row.knowledge or Knowledge()
        told = list(problems)
        if not row.question.strip():
            message = "the question is empty; entities were linked in the answer alone"
            told.append(Problem(part="question", message=message))
        if known.left_out:
            message = (
                f"{known.left_out} triples and passages were left out, beyond limits.evidence = "
                f"{self.config.limits.evidence}; raise the limit, or hand in less evidence"
            )
            told.append(Problem(part="evidence", message=message))
        return GuardedAnswer(
            id=row.id,
            index=row.place,
            question=row.question,
            text=decision.answer.text,
            marked=decision.answer.marked,
            action=decision.action,
            reasons=decision.reasons,
            sentences=decision.answer.sentences,
            entities=known.entities,
            evidence=known.evidence,
            scorecard=card,
            original=row.answer,
            versions={**self.parts.versions(), "policy": policy.name},
            timings_ms={**(checked.timings_ms if checked else {}), "total": spent},
            errors=tuple(dict.fromkeys(told)),
        )

    # --- ask -----------------------------------------------------------------------------

    async def ask(
        self,
        row_id: str | None,
        question: str,
        n: int | None,
        evidence: Sequence[Evidence] | None,
        policy: Policy,
    ) -> list[GuardedAnswer]:
        """Sample, check and rank answers; all of them, best first.

        Raises:
            InputError: The question is empty or too long.
            GuardrailError: A part cannot be used and the policy says ``raise``.
        """
        row = self.row(row_id, question, "", evidence)
        if not row.question.strip():
            raise InputError("the question is empty; there is nothing to ask")
        if len(row.question) > self.config.limits.question_chars:
            raise InputError(
                f"the question has {len(row.question)} characters, more than "
                f"limits.question_chars = {self.config.limits.question_chars}"
            )
        begin = time.perf_counter()
        spent_ms = {"retrieve": 0.0, "generate": 0.0}
        pool: list[GuardedAnswer] = []
        calls = 0
        failed: Sequence[FailedSentence] = ()
        problems: list[Problem] = []
        try:
            async with asyncio.timeout(policy.deadline_s):
                known = row.knowledge or await self.knowledge(row.question)
                spent_ms["retrieve"] = (time.perf_counter() - begin) * 1000.0
                count = n or policy.candidates
                for attempt in range(policy.attempts):
                    with stage("attempt", number=attempt + 1):
                        asked = time.perf_counter()
                        texts = await self._sample(row.question, known, count, failed)
                        spent_ms["generate"] += (time.perf_counter() - asked) * 1000.0
                        calls += 1
                        rows = [
                            row._replace(
                                id=f"{row.id}.{place}", answer=text, knowledge=known, place=place
                            )
                            for place, text in enumerate(texts, start=len(pool))
                        ]
                        inner = policy.model_copy(update={"deadline_s": None})
                        pool = ranked([*pool, *await self.guard(rows, inner)], policy)
                        if pool[0].action is not Action.REGENERATE:
                            break
                        failed = feedback(pool[0].sentences)
                        spent = time.perf_counter() - begin
                        left = (policy.deadline_s or float("inf")) - spent
                        if attempt + 1 < policy.attempts and left < LAST_ATTEMPT_S:
                            problems.append(_late(policy))
                            break
        except TimeoutError:
            problems.append(_late(policy))
        except (KnowledgeGraphError, JudgeError, ModelError, MissingExtraError) as error:
            part = "kg" if isinstance(error, KnowledgeGraphError) else "model"
            problems.append(Problem(part=part, message=str(error)))
        spent_ms["total"] = (time.perf_counter() - begin) * 1000.0
        if not pool:
            problems = problems or [Problem(part="model", message="the model gave no answer")]
            pool = [self._unavailable(row, None, None, problems, policy, spent_ms["total"])]
            problems = []
        return [
            self._finished(answer, place, row.id, calls, problems, policy, spent_ms)
            for place, answer in enumerate(pool)
        ]

    async def knowledge(self, question: str) -> Knowledge:
        """What the graph, or the retriever, has on a question."""
        with stage("retrieve"):
            if self._retriever is not None:
                limit = self.config.limits.evidence
                return (await retrieve_passages(self._retriever, [question], limit))[0]
            return (await self._in_thread(self._pipeline.knowledge, [question]))[0]

    async def _sample(
        self, question: str, known: Knowledge, n: int, failed: Sequence[FailedSentence]
    ) -> list[str]:
        model = await self._in_thread(lambda: self.parts.model)
        with model_call(model, n):
            answers = await generate(
                question,
                known.subgraphs,
                model,
                n,
                settings=self.config.model.generation,
                failed=failed,
            )
        return [answer.marked for answer in answers]

    def _finished(
        self,
        answer: GuardedAnswer,
        place: int,
        row_id: str,
        calls: int,
        problems: Sequence[Problem],
        policy: Policy,
        spent_ms: Mapping[str, float],
    ) -> GuardedAnswer:
        changes: dict[str, Any] = {
            "id": row_id if place == 0 else answer.id,
            "attempts": calls,
            "errors": (*answer.errors, *problems),
            "timings_ms": {**answer.timings_ms, **spent_ms},
            "versions": {**answer.versions, **self.parts.versions()},
        }
        if answer.action is Action.REGENERATE:
            # What cannot be had again is done without: the text that leaves is never the
            # unfiltered one that regeneration was asked for.
            note = f"no better answer within {calls} attempt{'s' if calls != 1 else ''}"
            last = decide(policy.settled(), _as_attributed(answer), answer.scorecard)
            changes |= {
                "action": last.action,
                "reasons": (*answer.reasons, note),
                "text": last.answer.text,
                "marked": last.answer.marked,
                "sentences": last.answer.sentences,
            }
        return answer.model_copy(update=changes)

    # --- record --------------------------------------------------------------------------

    async def recorded(self, answers: Sequence[GuardedAnswer]) -> list[GuardedAnswer]:
        """Write answers to the score log; a log that fails is told in their errors."""
        if self._log is None and self.config.log is None:
            finished = list(answers)
        else:
            with stage("record"):
                finished = await self._in_thread(lambda: [self._record(one) for one in answers])
        for answer in finished:
            record_answer(answer)
        return finished

    def _record(self, answer: GuardedAnswer) -> GuardedAnswer:
        try:
            log = self._open_log()
            if log is not None:
                log.write(answer)
        except Exception as error:  # the log may be foreign code; an answer is worth more
            log_failed(type(error).__name__)
            problem = Problem(part="records", message=f"not recorded: {error}")
            return answer.model_copy(update={"errors": (*answer.errors, problem)})
        return answer

    def _open_log(self) -> ScoreLog | None:
        if self._log is None and self.config.log is not None:
            from guardrail.records import open_log

            self._log = open_log(self.config.log)
        return self._log

    async def _in_thread(self, work: Callable[..., T], *args: Any) -> T:
        context = contextvars.copy_context()
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._workers, lambda: context.run(work, *args))


def _allowed(policy: Policy, rows: int) -> float | None:
    """Seconds for a pass: those of one answer, times the answers that go through together."""
    return None if policy.deadline_s is None else policy.deadline_s * rows


def _late(policy: Policy) -> Problem:
    return Problem(
        part="deadline",
        message=f"the {policy.deadline_s:g} s of policy {policy.name!r} ran out; raise deadline_s "
        "or ask for less",
    )


def _as_attributed(answer: GuardedAnswer) -> AttributedAnswer:
    return AttributedAnswer(text=answer.text, marked=answer.marked, sentences=answer.sentences)
