"""The parts a guardrail is made of, and the pass of a batch through them.

Parts are made when first needed, once, whatever thread asks. ``Pipeline.run`` is synchronous
and batched: parse, retrieve, attribute; the engine runs it in a worker thread.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from guardrail.citations import ParsedText
from guardrail.citations import parse as parse_markers
from guardrail.config import GuardrailConfig
from guardrail.errors import KnowledgeGraphError
from guardrail.retrieval import GraphRetriever, Knowledge
from guardrail.tracing import stage
from guardrail.types import AttributedAnswer, Problem, Triple

if TYPE_CHECKING:
    from guardrail.attribution import Attributor
    from guardrail.models.base import LanguageModel
    from guardrail.scoring import Scorer
    from judges.base import AttributionJudge, NLIJudge
    from kg.base import KnowledgeGraph
    from kg.linking import EntityLinker

__all__ = ["Checked", "Parts", "Pipeline", "Row", "clean_input"]

T = TypeVar("T")

UNWANTED = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")
"""Control characters and lone surrogates: no text, and no JSON either."""


PROBES = 3
"""Rows that fail alone, none having come through, before a part is taken to be down: enough to
tell a bad row from a dead part, few enough not to keep callers of a dead one waiting."""


class Row(NamedTuple):
    """One answer to check.

    Attributes:
        id: Echoed in the result.
        question: Without control characters.
        answer: The same, with or without markers.
        knowledge: Evidence that is known already; None to retrieve it.
        place: Place among the candidates it is ranked with; 0 for an answer alone.
    """

    id: str
    question: str
    answer: str
    knowledge: Knowledge | None = None
    place: int = 0


class Checked(NamedTuple):
    """One answer after its pass."""

    row: Row
    knowledge: Knowledge
    answer: AttributedAnswer
    problems: tuple[Problem, ...]
    timings_ms: dict[str, float]


def clean_input(text: str) -> str:
    """Remove what is no text, and unify line ends."""
    return UNWANTED.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))


class Parts:
    """The parts of one guardrail; those handed in are used, the others made from the config.

    Args:
        config: What to make.
        given: Parts by name: ``graph``, ``linker``, ``nli``, ``attribution``, ``model``.
        scorers: Scorers beside those named in the config.
    """

    def __init__(
        self, config: GuardrailConfig, given: dict[str, Any], scorers: Sequence[Scorer]
    ) -> None:
        self._config = config
        self._given_parts = {name: part for name, part in given.items() if part is not None}
        # A model is handed in by name, as a LangChain model or ready; it is opened when asked for.
        self._made = {name: part for name, part in self._given_parts.items() if name != "model"}
        self._extra_scorers = tuple(scorers)
        self._lock = threading.RLock()

    def _part(self, name: str, make: Callable[[], T]) -> T:
        with self._lock:
            if name not in self._made:
                self._made[name] = make()
            part: T = self._made[name]
            return part

    @property
    def graph(self) -> KnowledgeGraph | None:
        """The knowledge graph; None where the config says ``none``.

        Raises:
            KnowledgeGraphError: It cannot be opened.
        """
        settings = self._config.graph
        if settings.location == "none" and "graph" not in self._made:
            return None

        def make() -> KnowledgeGraph:
            from kg import open_graph

            return open_graph(settings.location, profile=settings.profile)

        return self._part("graph", make)

    @property
    def linker(self) -> EntityLinker | None:
        """Links texts to the graph."""
        graph = self.graph
        if graph is None:
            return None

        def make() -> EntityLinker:
            from kg import EntityLinker

            settings = self._config.graph
            return EntityLinker(graph, relations=settings.relations, limit=settings.limit)

        return self._part("linker", make)

    @property
    def nli(self) -> NLIJudge | None:
        """Judges entailment; None where the config says ``none``."""
        name = self._config.judge
        if name == "none" and "nli" not in self._made:
            return None

        def make() -> NLIJudge:
            from judges.registry import create_nli

            return create_nli(name)

        return self._part("nli", make)

    @property
    def attribution(self) -> AttributionJudge | None:
        """Judges the four categories; the NLI judge itself where it can do both."""
        name = self._config.attribution_judge or self._config.judge
        if name == "none" and "attribution" not in self._made:
            return None

        def make() -> AttributionJudge:
            from judges.base import AttributionJudge
            from judges.registry import create_attribution

            nli = self.nli
            if self._config.attribution_judge is None and isinstance(nli, AttributionJudge):
                return nli
            return create_attribution(name)

        return self._part("attribution", make)

    @property
    def attributor(self) -> Attributor:
        """Grounds answers."""

        def make() -> Attributor:
            from guardrail.attribution import Attributor
            from guardrail.support import Thresholds

            changed = self._config.attribution.model_dump(exclude_none=True)
            return Attributor(self.nli, self.attribution, Thresholds()._replace(**changed))

        return self._part("attributor", make)

    @property
    def model(self) -> LanguageModel:
        """The language model that answers.

        Raises:
            ModelError, ConfigError, MissingExtraError: It cannot be had.
        """
        handed_in = self._given_parts.get("model")

        def make() -> LanguageModel:
            import os

            from guardrail.models import default_model, open_model

            settings = self._config.model
            if handed_in is not None:
                return open_model(handed_in)
            if settings.name is None and settings.base_url is None:
                return default_model()
            return open_model(
                settings.name or "openai:default",
                base_url=settings.base_url,
                api_key=os.environ.get(settings.api_key_env),
            )

        return self._part("model", make)

    @property
    def scorers(self) -> tuple[Scorer, ...]:
        """All scorers, those named in the config first."""

        def make() -> tuple[Scorer, ...]:
            from guardrail.scoring import create_scorer

            named = tuple(
                create_scorer(name, config=self._config, graph=self.graph, nli=self.nli, parts=self)
                for name in self._config.scorers
            )
            return named + self._extra_scorers

        return self._part("scorers", make)

    def versions(self) -> dict[str, str]:
        """Names of the parts in use so far, for the score log."""
        names = {}
        for name in ("graph", "nli", "attribution", "model"):
            part = self._made.get(name)
            if part is not None:
                names["judge" if name == "nli" else name] = str(part.name)
        return names

    def close(self) -> None:
        """Release the parts that were made here; those handed in stay their owner's."""
        with self._lock:
            for name in [name for name in self._made if name not in self._given_parts]:
                close = getattr(self._made.pop(name), "close", None)
                if callable(close):
                    close()


class Pipeline:
    """Takes batches of rows to attributed answers.

    Args:
        config: Bounds and how much of the graph is read.
        parts: The parts.
    """

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

    def run(self, rows: Sequence[Row]) -> list[Checked]:
        """Check n rows in one pass; a part that fails is told in the rows' problems.

        After a failure every row is checked alone, so that only the rows that cause it go
        without that part. Where the first few fail alone too, the part is down for all.
        """
        checked = self._pass(rows)
        if len(rows) < 2 or not any(one.problems for one in checked):
            return checked
        alone: list[Checked] = []
        for row in rows:
            alone += self._pass([row])
            if len(alone) == PROBES and all(one.problems for one in alone):
                return checked
        return alone

    def _pass(self, rows: Sequence[Row]) -> list[Checked]:
        from guardrail.attribution import AttributionRequest
        from guardrail.phrases import parse

        clock = _Clock(len(rows))
        with stage("parse"):
            answers = [_parse(row) for row in rows]
            texts = dict.fromkeys(answer.clean for answer in answers)
            texts |= dict.fromkeys(row.question for row in rows if row.knowledge is None)
            docs = dict(zip(texts, parse(list(texts)), strict=True))
        clock.lap("parse")
        problems: list[Problem] = []
        try:
            with stage("retrieve"):
                knowledge = self._retrieve(rows, answers, docs)
        except KnowledgeGraphError as error:
            problems.append(Problem(part="kg", message=str(error)))
            knowledge = [row.knowledge or Knowledge() for row in rows]
        clock.lap("retrieve")
        with stage("attribute"):
            attributed, failed = self._parts.attributor.attribute(
                [
                    AttributionRequest(
                        row.question, answer, known.evidence, known.asked, docs[answer.clean]
                    )
                    for row, answer, known in zip(rows, answers, knowledge, strict=True)
                ]
            )
        clock.lap("attribute")
        return [
            Checked(
                row,
                known,
                answer,
                (*(problems if row.knowledge is None else ()), *failed),
                clock.shares(),
            )
            for row, known, answer in zip(rows, knowledge, attributed, strict=True)
        ]

    def _retrieve(
        self, rows: Sequence[Row], answers: Sequence[ParsedText], docs: dict[str, Any]
    ) -> list[Knowledge]:
        places = [place for place, row in enumerate(rows) if row.knowledge is None]
        found = [row.knowledge or Knowledge() for row in rows]
        retriever = self._retriever() if places else None
        if retriever is not None:
            pairs = [(rows[place].question, answers[place].clean) for place in places]
            for place, known in zip(places, retriever.retrieve(pairs, docs), strict=True):
                found[place] = known
        return found

    def _retriever(self) -> GraphRetriever | None:
        graph, linker = self._parts.graph, self._parts.linker
        if graph is None or linker is None:
            return None
        return GraphRetriever(graph, linker, self._config.graph, self._config.limits.evidence)


def _parse(row: Row) -> ParsedText:
    known = row.knowledge.evidence if row.knowledge else ()
    return parse_markers(row.answer, [item for item in known if isinstance(item, Triple)])


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
