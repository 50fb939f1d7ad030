"""The evolver that needs no model: answers and questions from templates."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import groupby

from benchmarks.biokalma.pairs import PersonPair
from benchmarks.biokalma.rounds import Draft
from benchmarks.verbalise import finish, phrasing, predicate, surface
from guardrail.core.types import Triple

__all__ = ["TemplateEvolver", "tell"]

_OPENINGS = (
    "Who was {first}, how was {first} related to {second}",
    "What is known of {first} and of the tie to {second}",
    "Who was {first}, and what connected {first} with {second}",
)
_ASKS = (
    "what can be said of {facts}",
    "what do we know about {facts}",
    "what is recorded of {facts}",
)


class TemplateEvolver:
    """Writes drafts from the verbaliser's templates; the same seed gives the same draft."""

    name = "template"

    def evolve(
        self, pair: PersonPair, injected: Sequence[Triple], before: Draft | None, seed: int
    ) -> Draft:
        """Add a sentence for the new triple, then ask for all of them; see ``Evolver``."""
        rng = random.Random(seed)
        new = tell([injected[-1]], rng)
        answer = f"{before.answer} {new}" if before else new
        return Draft(answer=answer, question=_question(pair, injected, rng))


def tell(triples: Sequence[Triple], rng: random.Random) -> str:
    """One sentence for triples of one subject: ``Ada Lovelace was born in London and …``."""
    parts = []
    for triple in triples:
        variant = rng.randrange(len(phrasing(triple.property).predicates))
        parts.append(predicate(triple.property, surface(triple.value, rng.randrange(2)), variant))
    joined = _listed(parts)
    return finish(f"{triples[0].subject} {joined}")


def _question(pair: PersonPair, injected: Sequence[Triple], rng: random.Random) -> str:
    opening = rng.choice(_OPENINGS).format(first=pair.first.label, second=pair.second.label)
    facts = []
    ordered = sorted(injected[1:], key=lambda triple: triple.subject != pair.first.label)
    for subject, triples in groupby(ordered, key=lambda triple: triple.subject):
        nouns = _listed(list(dict.fromkeys(phrasing(t.property).noun for t in triples)))
        facts.append(f"{subject}{_possessive(subject)} {nouns}")
    if not facts:
        return f"{opening}?"
    return f"{opening}, and {rng.choice(_ASKS).format(facts=_listed(facts))}?"


def _possessive(name: str) -> str:
    return "'" if name.endswith("s") else "'s"


def _listed(parts: Sequence[str]) -> str:
    if len(parts) < 2:
        return "".join(parts)
    return f"{', '.join(parts[:-1])} and {parts[-1]}"
