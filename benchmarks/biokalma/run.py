"""Runs a model on the questions in several settings, with and without the guardrail.

Everything sampled is kept, and the settings that share samples are compared on the same ones.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Literal, NamedTuple

from benchmarks.biokalma.questions import RunQuestion
from benchmarks.biokalma.samples import SampleRow, SampleStore
from benchmarks.biokalma.scoring import Fact
from guardrail.config import GenerationSettings
from guardrail.core.errors import InputError
from guardrail.core.types import Action, GuardedAnswer, Subgraph, Triple, Value
from guardrail.guard import Guardrail, RankRequest
from guardrail.models.base import LanguageModel
from guardrail.models.generation import generate
from guardrail.policy import ANNOTATE, BEST_OF_N

__all__ = [
    "AnswerRow",
    "Setting",
    "Variant",
    "answers",
    "regenerate_all",
    "sample_all",
]

BEST_OF = 5  # KaLMA's settings sample once; best-of-five is this project's

# A benchmark on a busy machine must not lose answers to a deadline.
CHECK = ANNOTATE.changed(deadline_s=None)
RANK = BEST_OF_N.changed(deadline_s=None)
REGENERATE = ANNOTATE.changed(
    name="regenerate",
    contradicted=Action.REGENERATE,
    unsupported=Action.REGENERATE,
    exhausted=Action.ANNOTATE,
    attempts=3,
    deadline_s=None,
)


class Setting(StrEnum):
    """How an answer comes about."""

    PLAIN = "plain"
    CONSTRAINED = "constrained"
    CHECK = "check"
    BEST_OF_5 = "best-of-5"
    REGENERATE = "regenerate"

    @property
    def label(self) -> str:
        """The row's name in a table."""
        return {
            Setting.PLAIN: "model alone",
            Setting.CONSTRAINED: "constrained",
            Setting.CHECK: "with guardrail (check)",
            Setting.BEST_OF_5: "with guardrail (best of 5)",
            Setting.REGENERATE: "with guardrail (regenerate)",
        }[self]

    @property
    def guarded(self) -> bool:
        """True when its answers go through the guardrail."""
        return self in (Setting.CHECK, Setting.BEST_OF_5, Setting.REGENERATE)

    @property
    def constrained(self) -> bool:
        """True when its samples are held to the retrieved triples."""
        return self in (Setting.CONSTRAINED, Setting.BEST_OF_5)

    @property
    def samples(self) -> int:
        """Samples of the model alone that it needs of each question."""
        return {Setting.BEST_OF_5: BEST_OF, Setting.REGENERATE: 0}.get(self, 1)


class Variant(NamedTuple):
    """A guardrail that is compared: its judge, and which of the stated triples it cites."""

    judge: str
    citations: Literal["stated", "verbatim"] = "stated"

    @property
    def label(self) -> str:
        """What tells it from others."""
        judge = "exact evidence alone" if self.judge == "none" else self.judge
        return judge if self.citations == "stated" else f"{judge}, citing word for word"


class AnswerRow(Value):
    """One answer in one setting, with what it is measured against.

    Attributes:
        id: The question's.
        setting: How it came about.
        judge: The guardrail's judge; None where the guardrail took no part.
        citations: Which triples the guardrail cited, ``stated`` or ``verbatim``.
        seed: Of the run.
        marked: The answer with markers.
        graph: What was retrieved.
        minimum: The minimum knowledge set.
        removed: Triples of the minimum set that were kept from the model.
    """

    id: str
    setting: Setting
    judge: str | None = None
    citations: str | None = None
    seed: int
    marked: str
    graph: tuple[Fact, ...]
    minimum: tuple[Fact, ...]
    removed: tuple[Fact, ...] = ()


def sample_all(
    model: LanguageModel,
    rows: Sequence[tuple[RunQuestion, tuple[Subgraph, ...]]],
    settings: Sequence[Setting],
    store: SampleStore,
    *,
    seed: int,
    generation: GenerationSettings | None = None,
    report: Callable[[int, int], None] = lambda done, total: None,
) -> None:
    """Sample what the settings need and the store lacks.

    Args:
        model: The model.
        rows: Questions with their knowledge.
        settings: The settings to be compared.
        store: Where samples are kept.
        seed: Of the run; question i is sampled with ``seed · 10,000 + i``.
        generation: How to sample; the seed is set here.
        report: Called with (calls done, total calls).

    Raises:
        ModelError: The model could not be reached or refused.
    """
    generation = generation or GenerationSettings()
    kinds: dict[bool, int] = {}
    for setting in settings:
        constrained = setting.constrained
        if setting.samples:
            kinds[constrained] = max(kinds.get(constrained, 0), setting.samples)
    calls = [
        (number, constrained, n)
        for number in range(len(rows))
        for constrained, n in sorted(kinds.items())
    ]
    for done, (number, constrained, n) in enumerate(calls):
        report(done, len(calls))
        question, subgraphs = rows[number]
        if store.find(question.id, seed, constrained=constrained, n=n):
            continue
        how = generation.model_copy(update={"seed": seed * 10_000 + number})
        began = time.perf_counter()
        found = asyncio.run(
            generate(question.question, subgraphs, model, n, settings=how, constrained=constrained)
        )
        store.add(
            SampleRow(
                id=question.id,
                seed=seed,
                constrained=constrained,
                marked=tuple(found),
                seconds=time.perf_counter() - began,
            )
        )
    report(len(calls), len(calls))


def regenerate_all(
    rows: Sequence[tuple[RunQuestion, tuple[Subgraph, ...]]],
    guards: Mapping[Variant, Guardrail],
    store: SampleStore,
    *,
    seed: int,
    report: Callable[[int, int], None] = lambda done, total: None,
) -> None:
    """Have every guardrail ask its model, and again for what did not hold.

    Args:
        rows: Questions with their knowledge.
        guards: The guardrails that are compared, each with a model.
        store: Where answers are kept; what is there is not asked for again.
        seed: Of the run.
        report: Called with (answers done, total answers).

    Raises:
        GuardrailError: A guardrail or its model cannot work.
    """
    calls = [(variant, row) for variant in guards for row in rows]
    for done, (variant, (question, subgraphs)) in enumerate(calls):
        report(done, len(calls))
        if store.find(question.id, seed, constrained=False, n=1, guard=variant.label):
            continue
        began = time.perf_counter()
        answer = guards[variant].ask(
            question=question.question, evidence=_evidence(subgraphs), policy=REGENERATE
        )
        store.add(
            SampleRow(
                id=question.id,
                seed=seed,
                constrained=False,
                guard=variant.label,
                marked=(answer.marked,),
                seconds=time.perf_counter() - began,
            )
        )
    report(len(calls), len(calls))


def answers(
    rows: Sequence[tuple[RunQuestion, tuple[Subgraph, ...]]],
    settings: Sequence[Setting],
    store: SampleStore,
    guards: Mapping[Variant, Guardrail],
    *,
    seed: int,
) -> Iterator[AnswerRow]:
    """The answers of each setting, from the samples in the store.

    Args:
        rows: Questions with their knowledge.
        settings: The settings; a guarded one gives an answer for each guardrail.
        store: Holds the samples.
        guards: The guardrails that are compared.
        seed: Of the run.

    Raises:
        InputError: A sample is missing.
        GuardrailError: A guardrail cannot work.
    """
    for setting in settings:
        if setting is Setting.REGENERATE:
            written: dict[Variant | None, list[str]] = {
                variant: [
                    item.marked[0] for item in _kept(rows, setting, store, seed, variant.label)
                ]
                for variant in guards
            }
        elif setting.guarded:
            samples = _kept(rows, setting, store, seed)
            written = {
                variant: _guarded(guard, setting, rows, samples)
                for variant, guard in guards.items()
            }
        else:
            written = {None: [item.marked[0] for item in _kept(rows, setting, store, seed)]}
        for variant, texts in written.items():
            for (question, subgraphs), marked in zip(rows, texts, strict=True):
                yield AnswerRow(
                    id=question.id,
                    setting=setting,
                    judge=variant and variant.judge,
                    citations=variant and variant.citations,
                    seed=seed,
                    marked=marked,
                    graph=graph_facts(subgraphs),
                    minimum=question.minimum,
                    removed=question.removed,
                )


def _kept(
    rows: Sequence[tuple[RunQuestion, tuple[Subgraph, ...]]],
    setting: Setting,
    store: SampleStore,
    seed: int,
    guard: str = "",
) -> list[SampleRow]:
    """What was sampled for each question."""
    samples = []
    for question, _ in rows:
        sample = store.find(
            question.id,
            seed,
            constrained=setting.constrained,
            n=max(1, setting.samples),
            guard=guard,
        )
        if sample is None:
            raise InputError(f"no sample of question {question.id} for setting {setting}")
        samples.append(sample)
    return samples


def graph_facts(subgraphs: Sequence[Subgraph]) -> tuple[Fact, ...]:
    """The retrieved triples, and each entity's name, which the prompt shows as a fact too."""
    facts: dict[Fact, None] = {}
    for subgraph in subgraphs:
        facts[Fact(subgraph.entity.id, "name", subgraph.entity.label)] = None
        for triple in subgraph.triples:
            facts[Fact(triple.citation.entity, triple.property, triple.value)] = None
    return tuple(facts)


def _guarded(
    guard: Guardrail,
    setting: Setting,
    rows: Sequence[tuple[RunQuestion, tuple[Subgraph, ...]]],
    samples: Sequence[SampleRow],
) -> list[str]:
    """What the guardrail makes of each question's samples: the best of them, with its markers."""
    requests = [
        RankRequest(
            question=question.question,
            answers=tuple(item for item in sample.marked[: setting.samples] if item.strip()),
            evidence=_evidence(subgraphs),
        )
        for (question, subgraphs), sample in zip(rows, samples, strict=True)
    ]
    ranked: list[list[GuardedAnswer]] = guard.rank_batch(
        requests, policy=RANK if setting is Setting.BEST_OF_5 else CHECK
    )
    return [found[0].marked if found else "" for found in ranked]


def _evidence(subgraphs: Sequence[Subgraph]) -> tuple[Triple, ...]:
    return tuple(dict.fromkeys(triple for subgraph in subgraphs for triple in subgraph.triples))


def write_rows(path: Path, rows: Sequence[Value]) -> None:
    """Write rows as JSON lines.

    Raises:
        InputError: The file cannot be written.
    """
    try:
        with path.open("w", encoding="utf-8") as file:
            for row in rows:
                file.write(json.dumps(row.model_dump(mode="json"), ensure_ascii=False) + "\n")
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from error
