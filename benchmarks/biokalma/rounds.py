"""Evolutionary question generation (KaLMA 2.2): answer first, question after, six rounds.

Round 1 states the relation of a pair; each later round injects one more triple of either
person. All injected triples form the minimum knowledge set of the last round's question.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol

from pydantic import Field

from benchmarks.biokalma.pairs import PersonPair
from benchmarks.biokalma.scoring import Fact
from benchmarks.verbalise import DATE_FORMS, surface
from guardrail.core.errors import ModelError
from guardrail.core.types import Subgraph, Triple, Value
from guardrail.models.facts import is_housekeeping
from kg.base import KnowledgeGraph

__all__ = [
    "ROUNDS",
    "BioKalmaQuestion",
    "Draft",
    "Evolver",
    "Round",
    "construct",
    "problems_of",
]

ROUNDS = 6  # KaLMA 2.2

# A person's life in the order a biography tells it, by the words of the property.
_LIFE = (
    ("birth", "father", "mother", "family", "sibling"),
    ("citizenship", "ethnic", "language", "religion", "sex or gender"),
    ("alma mater", "student of", "academic", "doctoral advisor"),
    ("spouse", "partner", "cohabitant", "child", "relative"),
    ("occupation", "field", "genre", "instrument", "sport", "movement", "employer"),
    ("position", "member", "party", "rank", "conflict", "title", "notable", "award", "student"),
    ("residence", "work location", "death", "burial"),
)

# True of nearly everyone, so taken only where little else is known.
_DULL = frozenset(["sex or gender", "languages spoken", "native language", "manner of death"])

_IDENTIFIER = re.compile(r"\b[QP]\d{2,}\b")


class Draft(Value):
    """An answer and the question it answers."""

    answer: str
    question: str


class Round(Value):
    """One round: the triple that was injected, and what came of it."""

    number: int = Field(ge=1)
    injected: Triple
    draft: Draft


class BioKalmaQuestion(Value):
    """A question of the benchmark.

    Attributes:
        id: The two entities, joined by a hyphen.
        question: Of the last round.
        answer: Of the last round, without markers.
        entities: Ids of the two persons.
        minimum: The minimum knowledge set, in the order of injection.
        rounds: How the question came about.
        generator: What wrote it.
    """

    id: str
    question: str
    answer: str
    entities: tuple[str, ...]
    minimum: tuple[Fact, ...]
    rounds: tuple[Round, ...]
    generator: str


class Evolver(Protocol):
    """Writes answer and question of a round."""

    @property
    def name(self) -> str:
        """What to record as the generator."""
        ...

    def evolve(
        self, pair: PersonPair, injected: Sequence[Triple], before: Draft | None, seed: int
    ) -> Draft:
        """Extend the answer by the last injected triple, then write the question.

        Args:
            pair: The two persons.
            injected: All triples injected so far; the last one is new.
            before: The draft of the round before; None in round 1.
            seed: Decides all choices.

        Raises:
            ModelError: The model could not be reached or wrote nothing that can be read.
        """
        ...


def construct(
    graph: KnowledgeGraph,
    pairs: Sequence[PersonPair],
    evolver: Evolver,
    *,
    n: int,
    seed: int = 0,
    rounds: int = ROUNDS,
    done: Iterable[str] = (),
    report: Callable[[str], None] = lambda message: None,
) -> Iterator[BioKalmaQuestion]:
    """Make questions from pairs of persons, one after the other.

    The questions depend on graph, pairs, seed and evolver only: a run that was stopped and is
    given the ids it has done goes on with the same questions.

    Args:
        graph: Where the persons' triples come from.
        pairs: Disambiguated pairs; their order is shuffled by the seed.
        evolver: Writes the drafts.
        n: Number of questions, those done included.
        seed: Decides the order of pairs and all choices.
        rounds: Rounds of evolution.
        done: Ids that exist already.
        report: Called with the reason why a pair was given up.

    Yields:
        New questions, until there are n or the pairs are used up.

    Raises:
        KnowledgeGraphError: The graph cannot answer.
    """
    order = sorted(pairs, key=lambda pair: (pair.first.id, pair.second.id))
    random.Random(seed).shuffle(order)
    finished = set(done)
    made = len(finished)
    for pair in order:
        if made >= n:
            return
        name = f"{pair.first.id}-{pair.second.id}"
        if name in finished:
            continue
        try:
            question = _evolved(graph, pair, evolver, f"{seed}:{name}", rounds)
        except ModelError as error:
            report(f"{name}: {error}")
            continue
        if question is None:
            report(f"{name}: too few triples that fit")
            continue
        made += 1
        yield question


def problems_of(draft: Draft, pair: PersonPair, injected: Sequence[Triple]) -> list[str]:
    """What is wrong with a draft; empty when it passes.

    The answer must contain every injected value (dates in any written form), the question must
    be one question that names a person of the pair, and no id may leak.
    """
    problems = []
    answer = draft.answer.casefold()
    for triple in injected:
        forms = {triple.value, *(surface(triple.value, form) for form in range(DATE_FORMS))}
        if not any(form.casefold() in answer for form in forms):
            problems.append(f"the answer lacks {triple.property}: {triple.value}")
    if draft.question.count("?") != 1 or not draft.question.rstrip().endswith("?"):
        problems.append("the question is not one single question")
    if not any(person.label in draft.question for person in (pair.first, pair.second)):
        problems.append("the question names neither person")
    for text in (draft.answer, draft.question):
        if _IDENTIFIER.search(text) or "[" in text:
            problems.append("an id or a marker leaked into the text")
    return problems


def _evolved(
    graph: KnowledgeGraph, pair: PersonPair, evolver: Evolver, seed: str, rounds: int
) -> BioKalmaQuestion | None:
    rng = random.Random(seed)
    subgraphs = graph.subgraphs([pair.first.id, pair.second.id])
    spare = _coherent(_choices(subgraphs, pair), rounds - 1, rng)
    injected = [pair.link]
    drafts = [evolver.evolve(pair, injected, None, rng.randrange(2**31))]
    if problems_of(drafts[0], pair, injected):
        return None
    history = [Round(number=1, injected=pair.link, draft=drafts[0])]
    for triple in spare:
        if len(history) == rounds:
            break
        # Answer first, question after; a triple that the evolver cannot fit in is passed over.
        draft = evolver.evolve(pair, [*injected, triple], history[-1].draft, rng.randrange(2**31))
        if problems_of(draft, pair, [*injected, triple]):
            continue
        injected.append(triple)
        history.append(Round(number=len(history) + 1, injected=triple, draft=draft))
    if len(history) < rounds:
        return None
    last = history[-1].draft
    return BioKalmaQuestion(
        id=f"{pair.first.id}-{pair.second.id}",
        question=last.question,
        answer=last.answer,
        entities=(pair.first.id, pair.second.id),
        minimum=tuple(
            Fact(t.citation.entity, t.citation.property, t.citation.value) for t in injected
        ),
        rounds=tuple(history),
        generator=evolver.name,
    )


def _choices(subgraphs: Sequence[Subgraph], pair: PersonPair) -> list[Triple]:
    """Triples worth a question: not on the data base itself, and not the pair's own relation."""
    names = {pair.first.label, pair.second.label}
    chosen: dict[tuple[str, str], Triple] = {}
    for subgraph in subgraphs:
        for triple in subgraph.triples:
            if is_housekeeping(triple.property) or triple.value in names:
                continue
            if _IDENTIFIER.search(triple.value) or "[" in triple.value:
                continue
            chosen.setdefault((triple.subject, triple.property), triple)
    return list(chosen.values())


def _coherent(choices: list[Triple], n: int, rng: random.Random) -> list[Triple]:
    """Draw n triples and some spare ones; each person's life in order, one person at a time."""
    shuffled = rng.sample(choices, len(choices))
    shuffled.sort(key=lambda triple: triple.property in _DULL)
    drawn, spare = shuffled[:n], shuffled[n:]
    subjects = list(dict.fromkeys(triple.subject for triple in choices))
    drawn.sort(key=lambda triple: (subjects.index(triple.subject), _stage(triple)))
    return drawn + spare[:n]


def _stage(triple: Triple) -> int:
    for stage, words in enumerate(_LIFE):
        if any(word in triple.property for word in words):
            return stage
    return len(_LIFE) - 2
