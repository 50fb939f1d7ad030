"""The parts a guardrail is made of: each is made when first needed, once, whatever thread asks."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from guardrail.config import GuardrailConfig
from guardrail.core.errors import ConfigError, InputError
from guardrail.core.types import Usage, Used
from guardrail.evidence.retrieval import Knowledge, given

if TYPE_CHECKING:
    from guardrail.core.types.judging import Weighing
    from guardrail.engine.scoring import Scorer
    from guardrail.evidence.prepared import EvidenceCache
    from guardrail.models.base import LanguageModel
    from guardrail.verdict.checks import Check
    from guardrail.verdict.grounder import Grounder
    from judges.base import AttributionJudge, GroundingJudge, NLIJudge
    from judges.second_opinion import SecondJudge, SecondOpinions
    from kg.base import KnowledgeGraph
    from kg.linking import EntityLinker

__all__ = ["Parts"]

T = TypeVar("T")


class Parts:
    """The parts of one guardrail; those handed in are used, the others made from the config.

    Args:
        config: What to make.
        given: Parts by name: ``graph``, ``linker``, ``nli``, ``attribution``, ``grounding``,
            ``model``, ``checks``.
        scorers: Scorers in addition to those named in the config.
    """

    def __init__(
        self, config: GuardrailConfig, given: Mapping[str, object], scorers: Sequence[Scorer]
    ) -> None:
        self._config = config
        self._given_parts: dict[str, Any] = {
            name: part for name, part in given.items() if part is not None
        }
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
        graph = self._config.graph
        if graph.location == "none" and "graph" not in self._made:
            return None

        def make() -> KnowledgeGraph:
            from kg import open_graphs

            return open_graphs(graph.location, profile=graph.profile, settings=graph.endpoint)

        return self._part("graph", make)

    @property
    def evidence(self) -> EvidenceCache:
        """Prepared evidence, shared by the sentences, candidates and rounds of all answers."""
        from guardrail.evidence.prepared import EvidenceCache

        return self._part("prepared evidence", EvidenceCache)

    @property
    def own_evidence(self) -> Knowledge | None:
        """What the files of the config hold, in place of the graph; None where it names none.

        Raises:
            ConfigError: A file cannot be read, or holds nothing.
            MissingExtraError: It takes the extra ``documents``.
        """
        files = self._config.evidence
        if not files:
            return None

        def make() -> Knowledge:
            from guardrail.sources.files import evidence_of_files

            try:
                found = evidence_of_files(files, self._config.evidence_links) or ()
            except InputError as error:
                raise ConfigError(f"evidence: {error}") from error
            return given(found, self._config.limits)._replace(source="files")

        return self._part("evidence", make)

    @property
    def linker(self) -> EntityLinker | None:
        """Links texts to the graph."""
        graph = self.graph
        if graph is None:
            return None

        def make() -> EntityLinker:
            from kg import EntityLinker

            settings = self._config.graph
            return EntityLinker(graph, limit=settings.limit)

        return self._part("linker", make)

    @property
    def nli(self) -> NLIJudge | None:
        """Judges entailment; None where the config says ``none``."""
        from judges.service import JudgeService

        return self._shared("shared nli", self._nli_judge(), JudgeService)

    def _shared(self, name: str, judge: T | None, service: Callable[..., T]) -> T | None:
        """A judge as a service, where it is to remember verdicts."""
        size = self._config.judge_cache
        if judge is None or not size:
            return judge
        return self._part(name, lambda: service(judge, cache_size=size))

    def _nli_judge(self) -> NLIJudge | None:
        name = self._config.judge
        if name == "none" and "nli" not in self._made:
            return None

        def make() -> NLIJudge:
            from judges.registry import create_nli

            return create_nli(name, **self._options(name))

        return self._part("nli", make)

    def _options(self, name: str, form: str = "detail") -> dict[str, object]:
        """The settings of a chat model as judge; none for other judges."""
        settings = self._config.chat.model_copy(update={"form": self._config.chat.form or form})
        return {"settings": settings} if name.startswith("chat:") else {}

    @property
    def attribution(self) -> AttributionJudge | None:
        """Judges the four categories; the NLI judge itself where it can do both."""
        from judges.service import AttributionService

        return self._shared("shared attribution", self._attribution_judge(), AttributionService)

    def _attribution_judge(self) -> AttributionJudge | None:
        name = self._config.judge
        if name == "none" and "attribution" not in self._made:
            return None

        def make() -> AttributionJudge:
            from judges.base import AttributionJudge
            from judges.registry import create_attribution

            nli = self._nli_judge()
            if isinstance(nli, AttributionJudge):
                return nli
            return create_attribution(name, **self._options(name))

        return self._part("attribution", make)

    @property
    def grounding(self) -> GroundingJudge | None:
        """Judges sentences in one pass: the NLI judge itself where it can, else by its pairs."""
        if self._config.judge == "none" and not {"nli", "grounding"} & set(self._made):
            return None

        def make() -> GroundingJudge:
            from judges.grounding import NLIGrounding, as_grounding
            from judges.service import GroundingService

            judge = self._given_parts.get("grounding") or self._nli_judge()
            assert judge is not None
            made = as_grounding(judge)
            size = self._config.judge_cache
            if not size:
                return made
            if isinstance(made, NLIGrounding) and self.nli is not None:
                return NLIGrounding(self.nli)  # its pairs are shared
            return GroundingService(made, cache_size=size)

        return self._part("shared grounding", make)

    @property
    def second_judge(self) -> SecondJudge | None:
        """Judges sentences that the first judge is not sure of; None where none is named.

        Raises:
            ConfigError: There is no such judge, or no first one.
        """
        settings = self._config.second_judge
        if settings is None:
            return None

        def make() -> SecondJudge:
            from judges.registry import create_nli
            from judges.second_opinion import REMEMBERED, SecondJudge

            if self.grounding is None:
                raise ConfigError("second_judge comes after a first: judge must not be 'none'")
            size = self._config.judge_cache or REMEMBERED
            name = settings.judge
            return SecondJudge(
                create_nli(name, **self._options(name, "label")), name, cache_size=size
            )

        return self._part("second_judge", make)

    @property
    def grounder(self) -> Grounder:
        """Grounds answers."""
        return self._part("grounder", lambda: self._grounder(self.grounding))

    def remembering_grounder(self) -> Grounder:
        """One that asks the judge nothing twice, for one answer that is looked at often."""
        from judges.memory import RememberedGrounding

        judge = self.grounding
        return self._grounder(judge and RememberedGrounding(judge), growing=True)

    @property
    def weighing(self) -> Weighing | None:
        """How much the first judge's word and the findings weigh; None where nothing was fitted."""
        judge = self._given_parts.get("grounding") or self._nli_judge()
        found: Weighing | None = getattr(judge, "weighing", None)
        return found

    def _grounder(self, judge: GroundingJudge | None, *, growing: bool = False) -> Grounder:
        from judges.second_opinion import SecondOpinions

        second, settings = self.second_judge, self._config.second_judge
        if second is None or settings is None:
            return self.grounder_of(judge)
        bounds = {name: value for name, value in settings if name != "judge"}
        return self.grounder_of(judge, SecondOpinions(second, growing=growing, **bounds))

    def grounder_of(
        self, judge: GroundingJudge | None, second: SecondOpinions | None = None
    ) -> Grounder:
        """Grounds answers by a first judge and a second one."""
        from guardrail.verdict.grounder import Grounder

        return Grounder(
            judge,
            off=frozenset(self._config.checks.off),
            more=self.checks,
            verbatim=self._config.citations == "verbatim",
            weighing=self.weighing,
            second=second,
        )

    @property
    def checks(self) -> tuple[Check, ...]:
        """Checks from outside: those that the config names, then those handed in."""

        def make() -> tuple[Check, ...]:
            from guardrail.verdict.checks import create_check

            return tuple(map(create_check, self._config.checks.more))

        return self._part("named checks", make) + tuple(self._given_parts.get("checks", ()))

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
            from guardrail.engine.scoring import create_scorer

            named = tuple(
                create_scorer(name, config=self._config, graph=self.graph, nli=self.nli, parts=self)
                for name in self._config.scorers
            )
            return named + self._extra_scorers

        return self._part("scorers", make)

    @property
    def scoring(self) -> bool:
        """Whether there are further scorers, made or not."""
        return bool(self._config.scorers or self._extra_scorers)

    def made(self, *names: str) -> object:
        """The first of some parts that has been made; None before that."""
        return next((self._made[name] for name in names if name in self._made), None)

    def versions(self) -> dict[str, str]:
        """Names of the parts in use so far, for the score log."""
        names = {}
        for name in ("graph", "nli", "grounding", "second_judge", "attribution", "model"):
            part = self._made.get(name)
            if part is not None:
                names["judge" if name in ("nli", "grounding") else name] = str(part.name)
        return names

    def in_use(self) -> Usage:
        """What those made so far are busy with."""
        made = list(self._made.values())  # without the lock, which is held while a part loads
        return Usage.together(part.in_use() for part in made if isinstance(part, Used))

    def close(self) -> None:
        """Release the parts that were made here; those handed in stay their owner's."""
        with self._lock:
            # Last made, first closed: services before the judges they share.
            for name in [name for name in reversed(self._made) if name not in self._given_parts]:
                close = getattr(self._made.pop(name), "close", None)
                if callable(close):
                    close()
