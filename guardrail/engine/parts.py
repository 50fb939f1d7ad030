"""The parts a guardrail is made of: each is made when first needed, once, whatever thread asks."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Generic, TypeVar, cast

from guardrail.config import GuardrailConfig
from guardrail.core.errors import ConfigError, InputError
from guardrail.core.types import Usage, Used
from guardrail.evidence.retrieval import Knowledge, given

if TYPE_CHECKING:
    from guardrail.core.types.judging import Weighing
    from guardrail.evidence.prepared import EvidenceCache
    from guardrail.models.base import LanguageModel
    from guardrail.scorers import Scorer
    from guardrail.verdict.checks.base import Check
    from guardrail.verdict.grounder import Grounder
    from judges.base import GroundingJudge, NLIJudge
    from judges.second_opinion import SecondJudge, SecondOpinions
    from judges.settings import Account
    from kg.base import KnowledgeGraph
    from kg.linking import EntityLinker

T = TypeVar("T")


class _Part(Generic[T]):
    """A property that is made once, unless it was handed in."""

    def __init__(self, make: Callable[[Parts], T]) -> None:
        self._make, self._name, self.__doc__ = make, make.__name__, make.__doc__

    def __get__(self, parts: Parts, owner: type) -> T:
        with parts.lock:
            if self._name not in parts.all:
                parts.all[self._name] = self._make(parts)
            return cast("T", parts.all[self._name])


class Parts:
    """The parts of one guardrail; those handed in are used, the others made from the config.

    Args:
        config: What to make.
        given: Parts by name: ``graph``, ``linker``, ``nli``, ``grounding``, ``model``, ``checks``.
        scorers: Scorers in addition to those named in the config.
    """

    def __init__(
        self, config: GuardrailConfig, given: Mapping[str, object], scorers: Sequence[Scorer]
    ) -> None:
        self._config = config
        self._given = {name: part for name, part in given.items() if part is not None}
        self._extra_scorers = tuple(scorers)
        self.lock = threading.RLock()
        # A model is handed in by name, as a LangChain model or ready; it is opened when asked for.
        self.all: dict[str, object] = {
            name if name in ("graph", "linker") else f"_{name}": part
            for name, part in self._given.items()
        }

    @_Part
    def graph(self) -> KnowledgeGraph | None:
        """The knowledge graph; None where the config says ``none``.

        Raises:
            KnowledgeGraphError: It cannot be opened.
        """
        from kg import open_graphs

        graph = self._config.graph
        if graph.location == "none":
            return None
        return open_graphs(graph.location, profile=graph.profile, settings=graph.endpoint)

    @_Part
    def evidence(self) -> EvidenceCache:
        """Prepared evidence, shared by the sentences, candidates and rounds of all answers."""
        from guardrail.evidence.prepared import EvidenceCache

        return EvidenceCache()

    @_Part
    def own_evidence(self) -> Knowledge | None:
        """What the files of the config hold, in place of the graph; None where it names none.

        Raises:
            ConfigError: A file cannot be read, or holds nothing.
            MissingExtraError: It takes the extra ``documents``.
        """
        from guardrail.sources.items import evidence_of_files, hashes_of_files

        files = self._config.evidence
        if not files:
            return None
        try:
            found = evidence_of_files(files, self._config.evidence_links) or ()
            hashes = hashes_of_files(files)
        except InputError as error:
            raise ConfigError(f"evidence: {error}") from error
        return given(found, self._config.limits)._replace(source="files", files=hashes)

    @_Part
    def linker(self) -> EntityLinker | None:
        """Links texts to the graph; None without a graph."""
        from kg import EntityLinker

        graph = self.graph
        return None if graph is None else EntityLinker(graph)

    # --- judges --------------------------------------------------------------------------

    @_Part
    def _nli(self) -> NLIJudge | None:
        from judges.registry import create_nli

        name = self._config.judge
        return None if name == "none" else create_nli(name, **self._options(name))

    @_Part
    def nli(self) -> NLIJudge | None:
        """Judges entailment; None where the config says ``none``."""
        from judges.service import JudgeService

        return self._shared(self._nli, JudgeService)

    @_Part
    def grounding(self) -> GroundingJudge | None:
        """Judges sentences in one pass: the NLI judge itself where it can, else by its pairs."""
        from judges.grounding import NLIGrounding, as_grounding
        from judges.service import GroundingService

        judge = cast("GroundingJudge | None", self._given.get("grounding")) or self._nli
        if judge is None:
            return None
        made = as_grounding(judge)
        if self._config.judge_cache and isinstance(made, NLIGrounding) and self.nli is not None:
            return NLIGrounding(self.nli)  # its pairs are shared
        return self._shared(made, GroundingService)

    def _shared(self, judge: T | None, service: Callable[..., T]) -> T | None:
        """A judge as a service, where it is to remember verdicts."""
        size = self._config.judge_cache
        return service(judge, cache_size=size) if judge is not None and size else judge

    def _options(self, name: str, *, detail: bool = True) -> dict[str, object]:
        """The settings of a chat model as judge; none for other judges."""
        chat = {"settings": self._config.chat, "detail": detail}
        return chat if name.startswith("chat:") else {}

    @_Part
    def second_judge(self) -> SecondJudge | None:
        """Judges sentences that the first judge is not sure of; None where none is named.

        Raises:
            ConfigError: There is no such judge, or no first one.
        """
        from judges.registry import create_nli
        from judges.second_opinion import CACHED, SecondJudge

        if self._config.second_judge is None:
            return None
        if self.grounding is None:
            raise ConfigError("second_judge comes after a first: judge must not be 'none'")
        name, size = self._config.second_judge.judge, self._config.judge_cache or CACHED
        judge = create_nli(name, **self._options(name, detail=False))
        return SecondJudge(judge, name, cache_size=size)

    def account(self) -> Account | None:
        """Pays for the second judge's calls on one answer; None where there is no second judge."""
        second = self._config.second_judge
        return second.account() if second else None

    @_Part
    def grounder(self) -> Grounder:
        """Grounds answers."""
        return self._grounder(self.grounding)

    def remembering_grounder(self, *, growing: bool = True) -> Grounder:
        """One that asks the judge nothing twice.

        Args:
            growing: Whether it is for one answer that is looked at while it grows, whose second
                opinions stand; else for many answers.
        """
        from judges.service import RememberedGrounding

        remembered = self.grounding and RememberedGrounding(self.grounding)
        return self._grounder(remembered, growing=growing)

    def _grounder(self, judge: GroundingJudge | None, *, growing: bool = False) -> Grounder:
        from judges.second_opinion import SecondOpinions

        second, settings = self.second_judge, self._config.second_judge
        both = SecondOpinions(second, settings, growing=growing) if second and settings else None
        return self.grounder_of(judge, both)

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
    def weighing(self) -> Weighing | None:
        """How much the first judge's word and the findings weigh; None where nothing was fitted."""
        judge = self._given.get("grounding") or self._nli
        return cast("Weighing | None", getattr(judge, "weighing", None))

    @_Part
    def checks(self) -> tuple[Check, ...]:
        """Checks from outside: those that the config names, then those handed in."""
        from guardrail.verdict.checks import create_check

        handed_in = cast("tuple[Check, ...]", self._given.get("checks", ()))
        return (*map(create_check, self._config.checks.more), *handed_in)

    # --- model and scorers ---------------------------------------------------------------

    @_Part
    def model(self) -> LanguageModel:
        """The language model that answers.

        Raises:
            ModelError, ConfigError, MissingExtraError: It cannot be had.
        """
        from guardrail.models import default_model, open_model

        settings = self._config.model
        if "model" in self._given:
            return open_model(self._given["model"])
        if settings.name is None and settings.base_url is None:
            return default_model()
        return open_model(
            settings.name or "openai:default",
            base_url=settings.base_url,
            api_key=os.environ.get(settings.api_key_env),
        )

    @_Part
    def scorers(self) -> tuple[Scorer, ...]:
        """All scorers, those named in the config first."""
        from guardrail.scorers import create_scorer

        parts = {"config": self._config, "graph": self.graph, "nli": self.nli, "parts": self}
        named = (create_scorer(name, **parts) for name in self._config.scorers)
        return (*named, *self._extra_scorers)

    @property
    def scoring(self) -> bool:
        """Whether there are further scorers, made or not."""
        return bool(self._config.scorers or self._extra_scorers)

    # --- what is in use ------------------------------------------------------------------

    def versions(self) -> dict[str, str]:
        """Names of the parts in use so far, for the score log."""
        # Under which keys the score log has the names of parts; those of later parts win
        keys = {
            "graph": "graph",
            "_nli": "judge",
            "_grounding": "judge",
            "second_judge": "second_judge",
            "model": "model",
        }
        return {
            key: str(getattr(part, "name", ""))
            for name, key in keys.items()
            if (part := self.all.get(name)) is not None
        }

    def in_use(self) -> Usage:
        """What those made so far are busy with."""
        made = list(self.all.values())  # without the lock, which is held while a part loads
        used = {id(part): part for part in made if isinstance(part, Used)}
        return Usage.together(part.in_use() for part in used.values())

    def close(self) -> None:
        """Release the parts that were made here; those handed in stay their owner's."""
        with self.lock:
            done = {id(part) for part in self._given.values()}
            # Last made, first closed: services before the judges they share.
            for part in reversed(list(self.all.values())):
                if id(part) not in done and callable(close := getattr(part, "close", None)):
                    close()
                done.add(id(part))
            self.all.clear()
