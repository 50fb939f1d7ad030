"""The pass of a batch through the parts: parse, retrieve, attribute.

``Pipeline.run`` is synchronous; the engine runs it in a worker thread.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from guardrail.core.errors import KnowledgeGraphError
from guardrail.core.types import (
    AttributedAnswer,
    Evidence,
    Problem,
    Strictness,
    Triple,
    VerdictThresholds,
)
from guardrail.engine.scoring import ScoringRequest
from guardrail.evidence.places import with_wider
from guardrail.evidence.retrieval import GraphRetriever, Knowledge
from guardrail.log.tracing import stage
from guardrail.markers.grammar import ParsedText
from guardrail.markers.grammar import parse as parse_markers

if TYPE_CHECKING:
    from spacy.tokens import Doc

    from guardrail.config import GuardrailConfig
    from guardrail.correction.edits import Proposal
    from guardrail.engine.parts import Parts
    from guardrail.verdict.claims import GroundingRequest
    from guardrail.verdict.grounder import Grounder

__all__ = ["Checked", "Pipeline", "Row"]

PROBES = 3
"""Rows that fail alone, none having come through, before a part is taken to be down: enough to
tell a bad row from a dead part, few enough not to keep callers of a dead one waiting."""

UNPLACED = (
    "which places lie in which is not known, so that a wider place than the graph's may be called "
    "unsupported or contradicted"
)


class Row(NamedTuple):
    """One answer to check.

    Attributes:
        id: Echoed in the result.
        question: Without control characters.
        answer: The same, with or without markers.
        knowledge: Evidence that is known already; None to retrieve it.
        place: Place among the candidates it is ranked with; 0 for an answer alone.
        since: Offset in the clean answer; what ends before it is context, and gets no verdict.
        most: Most sentences that are judged; None for the configured bound.
    """

    id: str
    question: str
    answer: str
    knowledge: Knowledge | None = None
    place: int = 0
    since: int = 0
    most: int | None = None


class Checked(NamedTuple):
    """One answer after its pass.

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


class Pipeline:
    """Takes batches of rows to attributed answers."""

    def __init__(self, config: GuardrailConfig, parts: Parts) -> None:
        self._config = config
        self._parts = parts

    def knowledge(self, questions: Sequence[str]) -> list[Knowledge]:
        """Retrieve for n questions alone, before there is an answer.

        Raises:
            KnowledgeGraphError: The graph cannot answer.
        """
        retriever = self._retriever()
        if retriever is None:
            return [Knowledge() for _ in questions]
        return retriever.retrieve([(question, "") for question in questions])

    def run(
        self,
        rows: Sequence[Row],
        grounder: Callable[[], Grounder] | None = None,
        ahead: Callable[[Sequence[ScoringRequest]], None] | None = None,
        strictness: Strictness | VerdictThresholds | None = None,
        *,
        correct: bool = False,
    ) -> list[Checked]:
        """Check n rows in one pass; a part that fails is reported in the rows' problems.

        After a failure every row is checked alone, so that only the rows that cause it go
        without that part. Where the first few fail alone too, the part is down for all.

        Args:
            rows: The rows.
            grounder: Gives what grounds them; None for the one of the parts.
            ahead: Called with the answers before any work, and again with what was retrieved for
                them. Questions are then parsed in any case: scorers read them.
            strictness: How sure the judge must be; None for the configured strictness.
            correct: True to propose corrections of contradicted sentences.
        """
        thresholds = (strictness or self._config.strictness).thresholds
        chosen = grounder() if grounder else self._parts.grounder
        checked = self._pass(rows, chosen, ahead, thresholds, correct)
        if len(rows) < 2 or not any(item.problems for item in checked):
            return checked
        alone: list[Checked] = []
        for row in rows:
            alone += self._pass([row], chosen, ahead, thresholds, correct)
            if len(alone) == PROBES and all(item.problems for item in alone):
                return checked
        return alone

    def _pass(
        self,
        rows: Sequence[Row],
        grounder: Grounder,
        ahead: Callable[[Sequence[ScoringRequest]], None] | None,
        thresholds: VerdictThresholds,
        correct: bool,
    ) -> list[Checked]:
        from guardrail.core.text.tagging import parse

        clock = _Clock(len(rows))
        with stage("parse"):
            answers = [_parse(row) for row in rows]
            pairs = [(row.question, item.clean) for row, item in zip(rows, answers, strict=True)]
            if ahead is not None:
                ahead([_unchecked(pair, Knowledge()) for pair in pairs])
            # Scorers read parsed texts; else the linker alone tags those it links.
            texts = dict.fromkeys(text for pair in pairs for text in pair) if ahead else {}
            docs = dict(zip(texts, parse(list(texts)), strict=True))
        clock.lap("parse")
        problems: list[Problem] = []
        unplaced: list[Problem] = []
        try:
            with stage("retrieve"):
                knowledge = self._retrieve(rows, answers, docs or None)
        except KnowledgeGraphError as error:
            problems.append(Problem(part="kg", message=str(error)))
            knowledge = [row.knowledge or Knowledge() for row in rows]
        try:
            graph = self._parts.graph if any(known.entities for known in knowledge) else None
            if graph is not None:
                knowledge = with_wider(graph, [answer.clean for answer in answers], knowledge)
        except KnowledgeGraphError as error:
            unplaced = [Problem(part="places", message=f"{error}; {UNPLACED}")]
        if ahead is not None:
            ahead([_unchecked(*pair) for pair in zip(pairs, knowledge, strict=True)])
        clock.lap("retrieve")
        with stage("attribute"):
            each = zip(rows, answers, knowledge, strict=True)
            requests = [self._request(*row, thresholds)._replace(correct=correct) for row in each]
            attributed, proposals, failed = grounder.ground(requests)
        clock.lap("attribute")
        return [
            Checked(
                row,
                known,
                answer,
                (
                    *(problems if row.knowledge is None else ()),
                    *(unplaced if known.entities else ()),
                    *failed,
                ),
                clock.shares(),
                {text: docs[text] for text in pair if text in docs},
                proposals=tuple(some),
            )
            for row, known, answer, pair, some in zip(
                rows, knowledge, attributed, pairs, proposals, strict=True
            )
        ]

    def _retrieve(
        self, rows: Sequence[Row], answers: Sequence[ParsedText], docs: dict[str, Doc] | None
    ) -> list[Knowledge]:
        places = [place for place, row in enumerate(rows) if row.knowledge is None]
        found = [row.knowledge or Knowledge() for row in rows]
        retriever = self._retriever() if places else None
        if retriever is not None:
            pairs = [(rows[place].question, answers[place].clean) for place in places]
            for place, known in zip(places, retriever.retrieve(pairs, docs), strict=True):
                found[place] = known
        return found

    def _request(
        self, row: Row, answer: ParsedText, known: Knowledge, thresholds: VerdictThresholds
    ) -> GroundingRequest:
        from guardrail.verdict.claims import GroundingRequest

        return GroundingRequest(
            row.question,
            answer,
            self._parts.evidence.prepare(known.evidence, known.other_names, known.wider),
            known.asked,
            row.since,
            thresholds,
            self._config.limits.sentences if row.most is None else row.most,
        )

    def _retriever(self) -> GraphRetriever | None:
        graph, linker = self._parts.graph, self._parts.linker
        if graph is None or linker is None:
            return None
        return GraphRetriever(graph, linker, self._config.graph, self._config.limits.evidence)


def _unchecked(pair: tuple[str, str], known: Knowledge) -> ScoringRequest:
    question, clean = pair
    answer = AttributedAnswer(text=clean, marked=clean)
    return ScoringRequest(question, answer, known.evidence, known.entities)


def parse_answer(raw: str, evidence: Sequence[Evidence]) -> ParsedText:
    """An answer without its markers; numbers of the evidence that was given are markers, too."""
    triples = [item for item in evidence if isinstance(item, Triple)]
    return parse_markers(raw, triples, sources=len(evidence))


def _parse(row: Row) -> ParsedText:
    return parse_answer(row.answer, row.knowledge.evidence if row.knowledge else ())


class _Clock:
    """Wall time by stage, shared evenly by the rows of a batch."""

    def __init__(self, rows: int) -> None:
        self._rows = rows
        self._last = time.perf_counter()
        self._laps: dict[str, float] = {}

    def lap(self, stage: str) -> None:
        now = time.perf_counter()
        self._laps[stage] = (now - self._last) * 1000.0
        self._last = now

    def shares(self) -> dict[str, float]:
        return {stage: spent / self._rows for stage, spent in self._laps.items()}
