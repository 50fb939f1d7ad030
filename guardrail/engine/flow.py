"""The engine behind ``Guardrail``: a batch is parsed, given evidence, grounded, scored, decided."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING, NamedTuple
from uuid import uuid4

from guardrail.config import GuardrailConfig
from guardrail.core.errors import GuardrailError, KnowledgeGraphError
from guardrail.core.incoming import clean_text, without_controls
from guardrail.core.plugins import external_errors
from guardrail.core.types import (
    Action,
    AttributedAnswer,
    CheckRequest,
    Evidence,
    GuardedAnswer,
    Problem,
    Score,
    ScoreCard,
    Strictness,
    Triple,
    VerdictThresholds,
)
from guardrail.core.workers import Workers, off_loop, within
from guardrail.correction.correcting import Correcting
from guardrail.engine.decision import (
    ERRORS_OF_PARTS,
    UNUSABLE,
    Decision,
    as_judged_first,
    behind_the_bound,
    decide,
    dry,
    late,
    notices,
    problem_of,
    unfit,
    without_second_opinion,
)
from guardrail.engine.parts import Parts
from guardrail.engine.recording import Recorder
from guardrail.evidence.retrieval import Knowledge, from_graph, given, retrieve_passages, with_wider
from guardrail.log.entries import fingerprints
from guardrail.log.tracing import stage
from guardrail.markers.grammar import ParsedText
from guardrail.markers.grammar import parse as parse_markers
from guardrail.policy import Policy, Unavailable
from guardrail.scorers import ScoringRequest, further_scores, score_card

if TYPE_CHECKING:
    from spacy.tokens import Doc

    from guardrail.correction.edits import Proposal
    from guardrail.log.records import ScoreLog
    from guardrail.verdict.claims import Claim
    from guardrail.verdict.grounder import Grounder
    from judges.settings import Account


class Row(NamedTuple):
    """One answer to check.

    Attributes:
        request: Id, question and answer, without control characters; the answer may have markers.
        knowledge: Evidence that is known already; None to retrieve it.
        place: Place among the candidates it is ranked with; 0 for an answer alone.
        since: Offset in the clean answer; what ends before it is context, and gets no verdict.
        most: Most sentences that are judged; None for the configured bound.
        known: Claims of earlier states of the answer, in a session.
        account: Pays for the second judge's calls on the answer and its corrections.
    """

    request: CheckRequest
    knowledge: Knowledge | None = None
    place: int = 0
    since: int = 0
    most: int | None = None
    known: dict[object, Claim] | None = None
    account: Account | None = None

    def answering(self, text: str) -> Row:
        """The row with another answer."""
        return self._replace(request=self.request.model_copy(update={"answer": text}))


class Checked(NamedTuple):
    """One answer with its verdicts.

    Attributes:
        row: The original row.
        knowledge: What it was judged by.
        answer: The verdicts.
        problems: What went wrong.
        timings_ms: Wall time by stage, milliseconds.
        docs: Its texts that were parsed, by text.
        first: The verdicts on the original, if sentences of ``answer`` were corrected.
        proposals: How its contradicted sentences may be corrected, if the policy corrects.
    """

    row: Row
    knowledge: Knowledge
    answer: AttributedAnswer
    problems: tuple[Problem, ...]
    timings_ms: dict[str, float]
    docs: Mapping[str, Doc]
    first: AttributedAnswer | None = None
    proposals: tuple[Proposal, ...] = ()


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
        self._retriever = retriever
        calls = config.limits.concurrency
        # Abandoned calls that may hang for each concurrent one, before answers return at once
        self.workers = Workers(calls, 4 * calls)
        self.recorder = Recorder(config.log, log)

    @external_errors("loading the parts", GuardrailError)
    def warm_up(self) -> None:
        """Load what the first answer would load; the graph last, since it may be down."""
        if self.parts.grounding is not None:
            self.parts.grounding.warm_up()
        if self.parts.second_judge is not None:
            self.parts.second_judge.warm_up()
        _ = self.parts.grounder  # a missing check is an error before the first answer
        if self.source == "files":
            _ = self.parts.own_evidence
        for scorer in self.parts.scorers:
            if callable(load := getattr(scorer, "warm_up", None)):
                load()
        self.recorder.open()
        if self.reads_answers and self.parts.linker is not None:
            self.parts.linker.link(["Ada Lovelace was born in London in 1815."])

    def close(self) -> None:
        """Release threads, parts and the log that were made here."""
        self.workers.close()
        self.parts.close()
        self.recorder.close()

    @property
    def source(self) -> str:
        """Where evidence comes from that no request brings: ``retriever``, ``files``, ``graph``."""
        files = "files" if self.config.evidence else "graph"
        return files if self._retriever is None else "retriever"

    @property
    def reads_answers(self) -> bool:
        """Whether evidence is found by the names of an answer too: in the graph alone."""
        return self.source == "graph"

    def row(self, request: CheckRequest, place: int = 0) -> Row:
        """A caller's answer as a row, with an id."""
        evidence = request.evidence
        known = None if evidence is None else given(evidence, self.config.limits)
        clean = CheckRequest(
            id=without_controls(request.id or "") or uuid4().hex,
            question=clean_text(request.question),
            answer=clean_text(request.answer),
        )
        return Row(clean, known, place, account=self.parts.account())

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
        alone, share = policy.deadline_s, 1.0 if answers is None else answers / max(1, len(rows))
        tagged = scored and self.parts.scoring
        check = partial(self._check, grounder=grounder, strictness=policy.strictness, tagged=tagged)
        recall = {} if recall is None else recall
        guarded: list[GuardedAnswer] = []
        size = 64  # enough to fill the judge, few enough to keep memory flat
        for first in range(0, len(rows), size):
            some = rows[first : first + size]
            seconds = alone and min(
                alone * max(1.0, len(some) * share), max(alone, self.config.limits.batch_s)
            )
            with within(seconds):
                guarded += await self._pass(some, policy, seconds, check, recall, scored=tagged)
        return guarded

    async def _pass(
        self,
        rows: Sequence[Row],
        policy: Policy,
        seconds: float | None,
        check: partial[list[Checked]],
        recall: dict[str, Knowledge],
        *,
        scored: bool,
    ) -> list[GuardedAnswer]:
        begin, limits = time.perf_counter(), self.config.limits
        faults = {place: fault for place, row in enumerate(rows) if (fault := unfit(row, limits))}
        sound = [row for place, row in enumerate(rows) if place not in faults]
        problems: list[Problem] = []
        checked: list[Checked] = []
        further: list[dict[str, Score]] = []
        scoring: float | None = None
        late_part = "deadline"
        corrects = policy.contradicted is Action.CORRECT
        try:
            async with asyncio.timeout(seconds):
                sound, more = await self._with_passages(sound, recall)
                problems += more
                if sound:
                    checked = await self.workers.run(partial(check, correct=corrects), sound)
                if corrects:
                    late_part = "correction"
                    with stage("correct"):
                        checked = await Correcting(
                            judge=partial(self.workers.run, check),
                            model=lambda: self.workers.run(lambda: self.parts.model),
                            at_once=limits.concurrency,
                            verbatim=self.config.citations == "verbatim",
                        ).correct(checked, policy)
                late_part = "scorers"
                scorers = await self.workers.run(lambda: self.parts.scorers) if scored else ()
                scoring = time.perf_counter()
                if scored:
                    with stage("score"):
                        requests = [
                            ScoringRequest(
                                item.row.request.question,
                                item.answer,
                                item.knowledge.evidence,
                                item.knowledge.entities,
                                item.docs,
                            )
                            for item in checked
                        ]
                        further, more = await further_scores(requests, scorers, self.workers.run)
                    problems += more
        except TimeoutError:
            problems.append(late(policy, seconds, late_part))
        except UNUSABLE as error:
            problems.append(problem_of(error, "judge"))

        def results() -> list[GuardedAnswer]:
            # What is late or fails costs corrections or further scores, never the verdict.
            with nullcontext() if scored else stage("score"):
                cards = [
                    score_card(item.answer.sentences, further[place] if further else {})
                    for place, item in enumerate(checked)
                ]
            now = time.perf_counter()
            if scoring is not None:
                for item in checked:
                    item.timings_ms["score"] = (now - scoring) * 1000.0 / len(checked)
            total = (now - begin) * 1000.0 / len(rows)
            done = iter(zip(checked, cards, strict=True))
            return [result(place, row, total, done) for place, row in enumerate(rows)]

        def result(
            place: int, row: Row, total: float, done: Iterator[tuple[Checked, ScoreCard]]
        ) -> GuardedAnswer:
            if place in faults:
                return self.unavailable(row, [faults[place]], policy, total)
            item, card = next(done, (None, None))
            reported = [*(item.problems if item else ()), *problems]
            if item is not None:
                reported += behind_the_bound(item.answer.sentences, limits)
                if self.config.second_judge is not None:
                    reported += without_second_opinion(item.answer.sentences)
            if item is None or card is None or any(it.part in ERRORS_OF_PARTS for it in reported):
                return self.unavailable(row, reported, policy, total, item, card)
            decision = decide(policy, item.answer, card)
            if policy.dry_run:
                decision = dry(decision, item.first or item.answer)
            elif item.first is not None:
                decision = as_judged_first(decision, item.answer, item.first)
            return self._result(row, item, card, decision, reported, policy, total)

        return await off_loop(results)

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
            bare = AttributedAnswer(text=row.request.answer, marked=row.request.answer)
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
        known = checked.knowledge if checked else row.knowledge or Knowledge(source=self.source)
        notes = notices(row, checked, known, failed=bool(problems))
        names = self.parts.versions()
        made = self.parts.all
        judge = made.get("_grounding") or made.get("_nli")
        return GuardedAnswer(
            id=row.request.id or "",
            index=row.place,
            question=row.request.question,
            **dict(decision.answer),  # text, marked, sentences
            action=decision.action,
            would=decision.would,
            reasons=decision.reasons,
            removed=decision.removed,
            entities=known.entities,
            evidence=known.evidence,
            evidence_from=(known.source,),
            scorecard=card,
            original=row.request.answer,
            versions={
                **names,
                "policy": policy.name,
                "strictness": str(policy.strictness or self.config.strictness),
                **fingerprints(names, made.get("graph"), policy, judge, known.files),
            },
            timings_ms={**(checked.timings_ms if checked else {}), "total": spent},
            errors=tuple(dict.fromkeys([*problems, *notes])),
        )

    # --- evidence ------------------------------------------------------------------------

    async def knowledge(self, question: str, *, graph: bool = False) -> Knowledge:
        """The graph's facts on a question, or the evidence that replaces the graph."""
        with stage("retrieve"):
            if not (graph or self.reads_answers):
                return (await self._without_graph([question]))[0]
            return (await self.workers.run(self._from_graph, [(question, "")]))[0]

    async def _with_passages(
        self, rows: Sequence[Row], recall: dict[str, Knowledge]
    ) -> tuple[list[Row], list[Problem]]:
        """Fill in what retriever or files hold for rows without evidence of their own."""
        if self.reads_answers:
            return list(rows), []
        asked = dict.fromkeys(row.request.question for row in rows if row.knowledge is None)
        problems = []
        if new := [question for question in asked if question not in recall]:
            try:
                with stage("retrieve"):
                    found = await self._without_graph(new)
                recall.update(zip(new, found, strict=True))
            except KnowledgeGraphError as error:
                problems = [Problem(part="kg", message=str(error))]
        unread = Knowledge(source=self.source)
        return [
            row._replace(knowledge=row.knowledge or recall.get(row.request.question, unread))
            for row in rows
        ], problems

    async def _without_graph(self, questions: Sequence[str]) -> list[Knowledge]:
        """What a retriever finds for n questions, or the files hold, in place of the graph."""
        if self._retriever is None:
            own = await self.workers.run(lambda: self.parts.own_evidence)
            return [own or Knowledge()] * len(questions)
        limits = self.config.limits
        return await retrieve_passages(self._retriever, questions, limits, self.workers.run)

    def _from_graph(
        self, pairs: Sequence[tuple[str, str]], docs: dict[str, Doc] | None = None
    ) -> list[Knowledge]:
        """What the graph knows on n pairs of question and answer."""
        graph, linker = self.parts.graph, self.parts.linker
        if graph is None or linker is None:
            return [Knowledge() for _ in pairs]
        return from_graph(graph, linker, pairs, self.config.limits.evidence, docs)

    # --- verdicts ------------------------------------------------------------------------

    def _check(
        self,
        rows: Sequence[Row],
        *,
        grounder: Callable[[], Grounder] | None,
        strictness: Strictness | VerdictThresholds | None,
        tagged: bool,
        correct: bool = False,
    ) -> list[Checked]:
        """Check n rows together, in a worker thread; a part that fails is one of their problems."""
        thresholds = (strictness or self.config.strictness).thresholds
        grounds = grounder() if grounder else self.parts.grounder
        ground = partial(self._ground, grounds, thresholds, tagged, correct)
        checked = ground(rows)
        if len(rows) < 2 or not any(item.problems for item in checked):
            return checked
        alone: list[Checked] = []
        for row in rows:
            alone += ground([row])
            # Three rows tell a bad row from a dead part, whose callers are not kept waiting
            if len(alone) == 3 and all(item.problems for item in alone):
                return checked
        return alone

    def _ground(
        self,
        grounder: Grounder,
        thresholds: VerdictThresholds,
        tagged: bool,
        correct: bool,
        rows: Sequence[Row],
    ) -> list[Checked]:
        from guardrail.core.text.tagging import parse
        from guardrail.verdict.claims import GroundingRequest

        laps, last = {}, time.perf_counter()
        with stage("parse"):
            answers = [
                parse_answer(row.request.answer, row.knowledge.evidence if row.knowledge else ())
                for row in rows
            ]
            pairs = [(r.request.question, a.clean) for r, a in zip(rows, answers, strict=True)]
            # Scorers read parsed texts; else the linker alone tags those it links.
            texts = dict.fromkeys(text for pair in pairs for text in pair) if tagged else {}
            docs = dict(zip(texts, parse(list(texts)), strict=True)) if texts else {}
        laps["parse"], last = time.perf_counter() - last, time.perf_counter()
        failed: list[Problem] = []
        unplaced: list[Problem] = []
        known = [row.knowledge or Knowledge() for row in rows]
        try:
            with stage("retrieve"):
                open_ = [place for place, row in enumerate(rows) if row.knowledge is None]
                if open_:
                    found = self._from_graph([pairs[place] for place in open_], docs or None)
                    for place, some in zip(open_, found, strict=True):
                        known[place] = some
        except KnowledgeGraphError as error:
            failed.append(Problem(part="kg", message=str(error)))
        try:
            graph = self.parts.graph if [one for some in known for one in some.entities] else None
            if graph is not None:
                known = with_wider(graph, [answer.clean for answer in answers], known)
        except KnowledgeGraphError as error:
            message = (
                f"{error}; which places lie in which is not known, so that a wider place than the "
                "graph's may be called unsupported or contradicted"
            )
            unplaced = [Problem(part="places", message=message)]
        laps["retrieve"], last = time.perf_counter() - last, time.perf_counter()
        with stage("attribute"):
            requests = [
                GroundingRequest(
                    row.request.question,
                    answer,
                    self.parts.evidence.prepare(some.evidence, some.other_names, some.wider),
                    some.asked,
                    row.since,
                    thresholds,
                    self.config.limits.sentences if row.most is None else row.most,
                    correct,
                    row.known,
                    row.account,
                )
                for row, answer, some in zip(rows, answers, known, strict=True)
            ]
            attributed, proposals, problems = grounder.ground(requests)
        laps["attribute"] = time.perf_counter() - last
        return [
            Checked(
                row,
                known[n],
                attributed[n],
                (
                    *(failed if row.knowledge is None else ()),
                    *(unplaced if known[n].entities else ()),
                    *problems,
                ),
                {name: lap * 1000.0 / len(rows) for name, lap in laps.items()},
                {text: docs[text] for text in pairs[n] if text in docs},
                proposals=tuple(proposals[n]),
            )
            for n, row in enumerate(rows)
        ]


def parse_answer(raw: str, evidence: Sequence[Evidence]) -> ParsedText:
    """An answer without its markers; numbers of the evidence that was given are markers, too."""
    if "[" not in raw:
        return ParsedText(clean=raw, marked=raw)
    triples = [item for item in evidence if isinstance(item, Triple)]
    return parse_markers(raw, triples, sources=len(evidence))
