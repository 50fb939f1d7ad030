"""Benchmark questions from files, and the knowledge that is retrieved for them."""

from __future__ import annotations

import gzip
import random
from collections.abc import Iterable, Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from benchmarks.biokalma.scoring import Fact
from guardrail.core.errors import InputError
from guardrail.core.types import Subgraph, Value
from kg.base import KnowledgeGraph

__all__ = ["RunQuestion", "read_questions", "retrieved_subgraphs"]


class RunQuestion(Value):
    """A question to run.

    Attributes:
        id: Its name.
        question: The text.
        entities: Ids of the entities it was made from.
        minimum: The minimum knowledge set; empty where it is not known.
        removed: Triples of the minimum set that are kept from the model (4.4).
    """

    id: str
    question: str
    entities: tuple[str, ...]
    minimum: tuple[Fact, ...] = ()
    removed: tuple[Fact, ...] = ()


class _Line(BaseModel):
    """A line of ``build``'s output, or of the released questions (``complex``, ``qids``)."""

    model_config = ConfigDict(extra="ignore")

    id: str | None = None
    question: str | None = None
    complex: str | None = None
    entities: tuple[str, ...] = ()
    qids: tuple[str, ...] = ()
    minimum: tuple[Fact, ...] = ()


def read_questions(path: Path, n: int | None = None, seed: int = 0) -> list[RunQuestion]:
    """Read questions, plain or gzipped JSON lines.

    Args:
        path: What ``build`` wrote, or the released questions; of a folder with the benchmark
            data, ``biokalma/questions.jsonl.gz``.
        n: How many to draw; None for all.
        seed: Decides which.

    Raises:
        InputError: The file cannot be read or is no such file.
    """
    if path.is_dir():
        path = path / "biokalma" / "questions.jsonl.gz"
    questions = []
    number = 0
    try:
        with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as file:
            for number, line in enumerate(file, start=1):
                row = _Line.model_validate_json(line)
                text = row.question or row.complex
                if not text:
                    raise InputError(f"{path}, line {number}: no question")
                questions.append(
                    RunQuestion(
                        id=row.id or f"q{number}",
                        question=text,
                        entities=row.entities or row.qids,
                        minimum=row.minimum,
                    )
                )
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read questions from {path}: {error}") from error
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise InputError(
            f"{path}, line {number}, is no question: {place and f'{place}: '}{first['msg']}"
        ) from error
    if n is None:
        return questions
    # One order for every n: a smaller run is the start of a larger one and shares its samples.
    random.Random(seed).shuffle(questions)
    return questions[:n]


def retrieved_subgraphs(
    graph: KnowledgeGraph,
    questions: Sequence[RunQuestion],
    *,
    linked: Sequence[Sequence[str]] | None = None,
    accuracy: float = 1.0,
    removed: int = 0,
    seed: int = 0,
) -> list[tuple[RunQuestion, tuple[Subgraph, ...]]]:
    """The knowledge each question is answered with.

    Args:
        graph: Where it comes from.
        questions: The questions.
        linked: Ids that a linker found for each; None takes the question's own entities, as a
            retrieval without mistakes would (``gold``).
        accuracy: Share of subgraphs kept; the others are replaced by those of entities that
            have nothing to do with the question (KaLMA 5.3).
        removed: Triples of the minimum set taken out (KaLMA 4.4, 5.2).
        seed: Decides what is replaced and removed.

    Returns:
        Each question, with ``removed`` filled in, and its subgraphs.

    Raises:
        KnowledgeGraphError: The graph cannot answer.
    """
    chosen = [tuple(ids) for ids in linked] if linked else [row.entities for row in questions]
    everyone = sorted({entity for row in questions for entity in row.entities})
    rows = []
    for question, ids in zip(questions, chosen, strict=True):
        rng = random.Random(f"{seed}:{question.id}")
        others = [entity for entity in everyone if entity not in question.entities]
        kept = tuple(
            rng.choice(others) if others and rng.random() >= accuracy else entity for entity in ids
        )
        gone = tuple(rng.sample(question.minimum, min(removed, len(question.minimum))))
        subgraphs = tuple(
            without(subgraph, gone)
            for subgraph in (graph.subgraphs(list(kept)) if kept else [])
            if subgraph.triples
        )
        rows.append((question.model_copy(update={"removed": gone}), subgraphs))
    return rows


def without(subgraph: Subgraph, removed: Iterable[Fact]) -> Subgraph:
    """A subgraph without some triples, and without those that point at its entity."""
    gone = set(removed)
    triples = tuple(
        triple
        for triple in subgraph.triples
        if Fact(triple.citation.entity, triple.property, triple.value) not in gone
    )
    return subgraph.model_copy(update={"triples": triples, "incoming": ()})
