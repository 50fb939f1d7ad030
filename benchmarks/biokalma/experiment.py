"""One experiment: which questions, model and settings; its result is a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import Field

from benchmarks.biokalma.metrics import (
    ContainmentAligner,
    KalmaScores,
    NLIAligner,
    NotAvailableScores,
    kalma_scores,
    not_available_scores,
)
from benchmarks.biokalma.questions import (
    RunQuestion,
    read_questions,
    retrieved_subgraphs,
)
from benchmarks.biokalma.run import (
    AnswerRow,
    Setting,
    Variant,
    answers,
    regenerate_all,
    sample_all,
    write_rows,
)
from benchmarks.biokalma.samples import SampleStore
from benchmarks.biokalma.scoring import cited_answer
from benchmarks.biokalma.tables import (
    TableRow,
    markdown,
    na_markdown,
    quality_cells,
    quality_markdown,
    quality_means,
    table_row,
)
from benchmarks.data import PATIENCE_S
from benchmarks.provenance import provenance
from guardrail.config import GenerationSettings, GuardrailConfig, ModelConfig
from guardrail.core.errors import InputError
from guardrail.core.types import Score, Triple, Value, linearise
from guardrail.guard import Guardrail
from guardrail.markers.grammar import strip
from guardrail.models import open_model
from judges.text_quality import OpenAIRater, QualityItem, rate_quality

if TYPE_CHECKING:
    from guardrail.models.base import LanguageModel
    from judges.base import NLIJudge
    from kg.base import KnowledgeGraph

__all__ = ["Experiment", "ExperimentResult"]

Progress = Callable[[int, int], None]


class ExperimentResult(Value):
    """The table, as cells and as Markdown."""

    rows: tuple[TableRow, ...]
    markdown: str


class Experiment(Value):
    """What is run; see the options of ``guardrail bench biokalma run``."""

    data: Path
    output: Path
    settings: tuple[Setting, ...]
    model: str
    n: int | None
    seeds: tuple[int, ...]
    kg: str | None
    variants: tuple[Variant, ...] = Field(min_length=1)
    grader: str | None
    rater: str | None = None
    linked: bool
    accuracy: float = Field(ge=0, le=1)
    removed: int = Field(ge=0)
    temperature: float = Field(ge=0)
    max_tokens: int = Field(ge=1)
    facts: int = Field(ge=1)

    def run(
        self, graph: KnowledgeGraph, grader: NLIJudge | None, *, progress: Progress
    ) -> ExperimentResult:
        """Sample, guard, score, and write everything under ``output``.

        Args:
            graph: Where the knowledge comes from.
            grader: NLI judge for alignment; None leaves that column empty.
            progress: Called with (calls done, total calls) while sampling.

        Raises:
            GuardrailError: The questions cannot be read, or model, graph or judge fails.
        """
        try:
            self.output.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"cannot write to {self.output}: {error.strerror}") from error
        questions = read_questions(self.data, self.n)
        model = open_model(self.model, timeout_s=PATIENCE_S)
        linked = self._linked(graph, questions) if self.linked else None
        rows: list[AnswerRow] = []
        store = SampleStore(self.output / f"samples-{self._conditions()}.jsonl")
        how = GenerationSettings(
            temperature=self.temperature,
            max_tokens=self.max_tokens,
            facts=self.facts,
        )
        for seed in self.seeds:
            known = retrieved_subgraphs(
                graph,
                questions,
                linked=linked,
                accuracy=self.accuracy,
                removed=self.removed,
                seed=seed,
            )
            sample_all(
                model, known, self.settings, store, seed=seed, generation=how, report=progress
            )
            with ExitStack() as stack:
                guards = {
                    variant: stack.enter_context(guard)
                    for variant, guard in self._guards(model, graph, how, seed).items()
                }
                if Setting.REGENERATE in self.settings:
                    regenerate_all(known, guards, store, seed=seed, report=progress)
                rows += answers(known, self.settings, store, guards, seed=seed)
        write_rows(self.output / "answers.jsonl", rows)
        result = self._result(
            rows, grader, {question.id: question.question for question in questions}
        )
        (self.output / "table.md").write_text(result.markdown + "\n", encoding="utf-8")
        (self.output / "table.json").write_text(result.model_dump_json(indent=2), encoding="utf-8")
        return result

    def _guards(
        self, model: LanguageModel, graph: KnowledgeGraph, how: GenerationSettings, seed: int
    ) -> dict[Variant, Guardrail]:
        if not any(setting.guarded for setting in self.settings):
            return {}
        asked = ModelConfig(generation=how.model_copy(update={"seed": seed}))
        return {
            variant: Guardrail(
                GuardrailConfig(judge=variant.judge, citations=variant.citations, model=asked),
                graph=graph,
                model=model,
            )
            for variant in self.variants
        }

    def _conditions(self) -> str:
        """What samples depend on, besides question and seed; part of their file's name."""
        name = "".join(sign if sign.isalnum() else "-" for sign in self.model)
        retrieval = "linked" if self.linked else "gold"
        return (
            f"{name}-{retrieval}-{round(100 * self.accuracy)}-{self.removed}-"
            f"{self.temperature:g}-{self.max_tokens}-{self.facts}-anchored"
        )

    @staticmethod
    def _linked(graph: KnowledgeGraph, questions: Sequence[RunQuestion]) -> list[list[str]]:
        from kg.linking import EntityLinker

        found = EntityLinker(graph).link([row.question for row in questions])
        return [list(dict.fromkeys(item.entity.id for item in row)) for row in found]

    def _result(
        self, rows: Sequence[AnswerRow], grader: NLIJudge | None, questions: Mapping[str, str]
    ) -> ExperimentResult:
        table = []
        for setting in self.settings:
            for variant in self.variants if setting.guarded else (None,):
                runs: list[KalmaScores] = []
                na: list[NotAvailableScores] = []
                na_nli: list[NotAvailableScores] = []
                ratings: list[dict[str, Score]] = []
                for seed in self.seeds:
                    own = [
                        row
                        for row in rows
                        if (row.setting, row.seed) == (setting, seed)
                        and (row.judge, row.citations) == (variant or (None, None))
                    ]
                    cited = [
                        cited_answer(row.marked, row.graph, row.minimum, row.removed) for row in own
                    ]
                    runs.append(kalma_scores(cited, grader))
                    if self.removed:
                        na.append(not_available_scores(cited, ContainmentAligner()))
                        if grader is not None:
                            na_nli.append(not_available_scores(cited, NLIAligner(grader)))
                    if self.rater is not None:
                        ratings.append(_rated(self.rater, own, questions))
                circular = variant is not None and variant.judge == self.grader
                row = table_row(self._label(setting, variant), runs, na, na_nli, circular=circular)
                table.append(row.model_copy(update={"quality": quality_cells(ratings)}))
        origin = provenance(judge=self.variants[0].judge, model=self.model, seed=self.seeds[0])
        parts = [str(origin), markdown(table, notes=self._notes())]
        if self.removed:
            parts.append(na_markdown(table, self.removed))
        if self.rater is not None:
            parts.append(quality_markdown(table, self.rater))
        return ExperimentResult(rows=tuple(table), markdown="\n\n".join(parts))

    def _notes(self) -> list[str]:
        retrieval = "linked entities" if self.linked else "the questions' own entities"
        conditions = (
            f"Model {self.model}, temperature {self.temperature:g}, at most {self.max_tokens} "
            f"tokens, {self.facts} facts shown; {len(self.seeds)} run(s); knowledge of "
            f"{retrieval}, {100 * self.accuracy:.0f} % of the subgraphs right, "
            f"{self.removed} triples of each minimum set removed. Percent; deviation over runs "
            "in brackets."
        )
        notes = [conditions, "All columns but the two with NLI are model-free."]
        if any(setting.guarded for setting in self.settings):
            notes.append(
                f"Guardrail with judge {' and '.join(variant.label for variant in self.variants)}."
            )
        if any(variant.citations == "verbatim" for variant in self.variants):
            notes.append(
                "Citing word for word leaves only citations whose value is in the sentence, "
                "so that containment holds by construction."
            )
        if self.grader is None:
            notes.append("No NLI judge measured alignment.")
        else:
            notes.append(
                f"NLI by {self.grader}; a star marks a row whose guardrail had the same "
                "judge, a circular measure. In the other rows it took no part in filtering."
            )
        return notes

    def _label(self, setting: Setting, variant: Variant | None) -> str:
        """The row's name, with the guardrail's name if several are compared."""
        if variant is None or len(self.variants) == 1:
            return setting.label
        return f"{setting.label}, {variant.label}"


def _rated(rater: str, rows: Sequence[AnswerRow], questions: Mapping[str, str]) -> dict[str, Score]:
    """Mean ratings of the answers of one setting in one run (KaLMA 4.1)."""
    items = [
        QualityItem(
            question=questions[row.id],
            answer=strip(row.marked),
            knowledge=linearise(Triple(*fact) for fact in row.graph),
        )
        for row in rows
    ]
    return quality_means(rate_quality(items, OpenAIRater(rater, timeout_s=PATIENCE_S)))
