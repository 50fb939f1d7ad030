"""Pairs made from the facts of a graph: what the engine asks at run time, with known answers.

Two directions. *Facts to sentence*: the premise holds up to fifteen facts about a subject and
its neighbours, the hypothesis is an answer sentence that states one to four facts. *Sentence to
fact*: the premise is such a sentence, the hypothesis one triple. Sentences come from the
verbaliser, so names, dates and relations appear in many written forms.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from benchmarks.caqa.build import split_graph
from benchmarks.caqa.graph import FactGraph
from benchmarks.caqa.rows import Split as CAQASplit
from benchmarks.verbalise import finish, inversions, phrasing, predicate, surface
from guardrail.core.types import Triple, linearise
from training.forms import near_miss, same_value
from training.relations import IMPLIED, INVERSE, MIXED_UP, ONE_WAY, single_valued
from training.rows import Row, nli_row
from training.sentence_pairs import statement

__all__ = ["GraphPairs", "graph_rows"]

PREMISE_WORDS = 85
"""Words of a premise of facts at most, so that a pair stays within about 160 word pieces."""
_RARE = {"given name", "surname", "sex or gender", "instance of", "family name"}
"""Properties that nearly every node has: kept as distractors, seldom claimed."""


def graph_rows(graph: FactGraph, *, rows: int, seed: int, split: CAQASplit) -> list[Row]:
    """Pairs from a graph's facts; the splits share no entity with facts of its own.

    Args:
        graph: All facts.
        rows: Number of rows.
        seed: Seed of all choices.
        split: ``train`` or ``valid``.
    """
    part = split_graph(graph, split)
    pairs = GraphPairs(part, random.Random(f"{seed}/graph/{split}"))
    return [pairs.row() for _ in range(rows)]


class GraphPairs:
    """Draws pairs from a graph.

    Args:
        graph: The facts.
        rng: Source of all choices.
    """

    def __init__(self, graph: FactGraph, rng: random.Random) -> None:
        self._rng = rng
        self._facts: dict[str, list[Triple]] = {}
        self._values: dict[str, list[str]] = {}
        for key, facts in graph.out.items():
            self._facts[key] = [graph.triple(fact) for fact in facts]
        for name, facts in graph.by_property.items():
            self._values[name] = [graph.labels[fact.value] for fact in facts]
        self._rich = [key for key, facts in self._facts.items() if len(facts) >= 4]
        self._any = list(self._facts)
        self._makers = (
            (0.26, self._entailed),
            (0.32, self._contradicted),
            (0.14, self._partial),
            (0.10, self._unrelated),
            (0.40, self._sentence_to_fact),
            (0.10, self._turned),
            (0.08, self._dated),
        )

    def row(self) -> Row:
        """Draw one row."""
        makers = [maker for _, maker in self._makers]
        weights = [weight for weight, _ in self._makers]
        while True:
            maker = self._rng.choices(makers, weights)[0]
            row = maker()
            if row is not None:
                return row

    # --- facts -> sentence -------------------------------------------------------------

    def _entailed(self) -> Row | None:
        facts, claims = self._claims()
        premise = self._premise(claims, [f for f in facts if f not in claims])
        return nli_row(premise, self._sentence(claims), "entailment", "graph")

    def _contradicted(self) -> Row | None:
        facts, claims = self._claims()
        choices = [claim for claim in claims if self._only(claim, facts)]
        if not choices:
            return self._other_value(facts, claims)
        true = self._rng.choice(choices)
        false = self._wrong(true, facts)
        if false is None:
            return None
        stated = [false if claim == true else claim for claim in claims]
        premise = self._premise(claims, [f for f in facts if f not in claims])
        stated_as = self._sentence(stated, exact=_same_year(true.value, false.value))
        return nli_row(premise, stated_as, "contradiction", "graph")

    def _other_value(self, facts: list[Triple], claims: list[Triple]) -> Row | None:
        """Another value of a relation that may have several: open, not contradicted."""
        claim = self._rng.choice(claims)
        value = self._rng.choice(self._values[claim.property])
        if any(same_value(value, f.value) for f in facts):
            return None
        stated = [c if c != claim else c.model_copy(update={"value": value}) for c in claims]
        premise = self._premise(claims, [f for f in facts if f not in claims])
        known = "partially_supportive" if len(claims) > 1 else "irrelevant"
        return nli_row(premise, self._sentence(stated), "neutral", "graph", neutral=known)

    def _partial(self) -> Row | None:
        """One of several claims is missing from the premise."""
        facts, claims = self._claims(least=2)
        if len(claims) < 2:
            return None
        gone = self._rng.choice(claims)
        rest = [f for f in facts if f not in claims and not same_value(f.value, gone.value)]
        if single_valued(gone.property):
            rest = [f for f in rest if f.property != gone.property]
        kept = [claim for claim in claims if claim != gone]
        if any(same_value(claim.value, gone.value) for claim in kept):
            return None
        return nli_row(self._premise(kept, rest), self._sentence(claims), "neutral", "graph",
                       neutral="partially_supportive")  # fmt: skip

    def _unrelated(self) -> Row | None:
        """The premise tells other facts of the subject, or the same facts of someone else."""
        facts, claims = self._claims()
        properties = {claim.property for claim in claims}
        if self._rng.random() < 0.5:
            rest = [f for f in facts if f.property not in properties]
            rest = [f for f in rest if not any(same_value(f.value, c.value) for c in claims)]
            premise = self._premise([], rest)
        else:
            premise = self._premise([], self._someone_else(claims[0]))
        if not premise:
            return None
        return nli_row(premise, self._sentence(claims), "neutral", "graph", neutral="irrelevant")

    def _someone_else(self, claim: Triple) -> list[Triple]:
        """Facts of another entity, of the same relation and, half the time, a similar name."""
        for _ in range(20):
            facts = self._facts[self._rng.choice(self._rich)]
            if facts[0].subject != claim.subject and any(
                f.property == claim.property for f in facts
            ):
                if self._rng.random() < 0.5:
                    return facts
                name = _namesake(claim.subject, facts[0].subject)
                return [f.model_copy(update={"subject": name}) for f in facts]
        return []

    # --- sentence -> fact --------------------------------------------------------------

    def _sentence_to_fact(self) -> Row | None:
        facts, claims = self._claims(most=3)
        claim = self._rng.choice(claims)
        kind = self._rng.random()
        if kind < 0.4:
            return self._asked(self._sentence(claims), claim, "entailment")
        if kind < 0.75:
            single = [c for c in claims if single_valued(c.property)]
            claim = self._rng.choice(single) if single else claim
            false = self._wrong(claim, facts)
            if false is None:
                return None
            label = "contradiction" if single_valued(claim.property) else "neutral"
            exact = _same_year(claim.value, false.value)
            return self._asked(self._sentence(claims, exact=exact), false, label)
        premise = self._sentence(claims)
        if kind < 0.9:
            stated = {c.property for c in claims}
            unstated = [f for f in facts if f.property not in stated]
            unstated = [
                f for f in unstated if not any(same_value(f.value, c.value) for c in claims)
            ]
            return self._asked(premise, self._rng.choice(unstated), "neutral") if unstated else None
        others = self._someone_else(claim)
        if not others:
            return None
        hypothesis = claim.model_copy(update={"subject": others[0].subject}).text
        return nli_row(premise, hypothesis, "neutral", "graph_fact", neutral="irrelevant")

    def _asked(self, premise: str, triple: Triple, label: str) -> Row:
        """A sentence against a triple, whose date may be written out.

        The bare ``relation: value`` is what the engine asks when it does not know whom a sentence
        is about, so that sentence may start with a pronoun or a surname.
        """
        rng = self._rng
        if rng.random() < 0.5:
            triple = triple.model_copy(update={"value": surface(triple.value, rng.randrange(4))})
        hypothesis = statement(triple, rng)
        name = triple.subject
        if not hypothesis.startswith(name) and premise.startswith(name) and rng.random() < 0.5:
            other = rng.choice(("He", "She", "It", name.split()[-1]))
            premise = finish(other + premise[len(name) :])
        return nli_row(premise, hypothesis, label, "graph_fact", neutral="irrelevant")

    # --- roles and dates ---------------------------------------------------------------

    def _turned(self) -> Row | None:
        """Subject and value trade places: *A was the father of B* for *B was the father of A*."""
        rng = self._rng
        facts = self._facts[rng.choice(self._any)]
        roles = [f for f in facts if f.property in ONE_WAY]
        if not roles:
            return None
        true = rng.choice(roles)
        turned = Triple(subject=true.value, property=true.property, value=true.subject)
        label = "contradiction"
        if rng.random() < 0.45:
            label = "entailment"
            implied = IMPLIED.get(true.property)
            turned = turned.model_copy(update={"property": implied}) if implied else true
        if rng.random() < 0.5:
            others = [f for f in facts if f != true and f.property != true.property]
            return nli_row(self._premise([true], others), self._sentence([turned]), label, "graph")
        return nli_row(self._sentence([true]), turned.text, label, "graph_fact")

    def _dated(self) -> Row | None:
        """One full date in two written forms, or two dates that differ in one part."""
        rng = self._rng
        facts = self._facts[rng.choice(self._any)]
        dates = [f for f in facts if surface(f.value, 1) != f.value]
        if not dates:
            return None
        true = rng.choice(dates)
        several = sum(f.property == true.property for f in facts) > 1
        value = near_miss(true.value, rng) if rng.random() < 0.5 and not several else true.value
        stated = true.model_copy(update={"value": value or true.value})
        label = "entailment" if stated == true else "contradiction"
        if rng.random() < 0.5:
            others = [f for f in facts if f.property != true.property]
            sentence = self._sentence([stated], exact=True)
            return nli_row(self._premise([true], others), sentence, label, "graph")
        claimed = stated.model_copy(update={"value": surface(stated.value, rng.randrange(4))})
        premise = self._sentence([true], exact=True)
        return nli_row(premise, statement(claimed, rng), label, "graph_fact")

    # --- parts -------------------------------------------------------------------------

    def _claims(self, *, least: int = 1, most: int = 4) -> tuple[list[Triple], list[Triple]]:
        """Facts of a subject and the few of them that the sentence will state."""
        rich = self._rng.random() < 0.7 or least > 1
        facts = self._facts[self._rng.choice(self._rich if rich else self._any)]
        count = min(self._rng.choices((1, 2, 3, 4), (45, 30, 17, 8))[0], most)
        pool = [f for f in facts if f.property not in _RARE or self._rng.random() < 0.15] or facts
        claims: list[Triple] = []
        for fact in self._rng.sample(pool, len(pool)):
            if len(claims) == max(least, count):
                break
            if fact.property not in {c.property for c in claims} or self._rng.random() < 0.2:
                claims.append(fact)
        return facts, claims

    def _only(self, claim: Triple, facts: Sequence[Triple]) -> bool:
        alone = sum(f.property == claim.property for f in facts) == 1
        return alone and single_valued(claim.property)

    def _wrong(self, true: Triple, facts: Sequence[Triple]) -> Triple | None:
        """The fact with a wrong value: a near miss, a mixed-up relation or another's value."""
        value = near_miss(true.value, self._rng) if self._rng.random() < 0.5 else None
        if value is None and self._rng.random() < 0.4:
            value = self._mixed_up(true, facts)
        value = value or self._rng.choice(self._values[true.property])
        if any(same_value(value, f.value) for f in facts if f.property == true.property):
            return None
        return true.model_copy(update={"value": value})

    def _mixed_up(self, true: Triple, facts: Sequence[Triple]) -> str | None:
        names = {b for a, b in MIXED_UP if a == true.property}
        names |= {a for a, b in MIXED_UP if b == true.property}
        values = [f.value for f in facts if f.property in names]
        return self._rng.choice(values) if values else None

    def _premise(self, needed: Sequence[Triple], others: Sequence[Triple]) -> str:
        """Facts as the engine hands them over: the needed ones among distractors."""
        rng = self._rng
        chosen = list(needed)
        words = sum(len(t.text.split()) for t in chosen)
        limit = rng.choice((0, 2, 5, 9, 14)) if needed else rng.choice((1, 3, 6, 12))
        for fact in rng.sample(list(others), min(limit, len(others))):
            words += len(f"{fact.property} {fact.value}".split())
            if words > PREMISE_WORDS:
                break
            chosen.append(fact)
        if rng.random() < 0.25:
            extra = self._facts[rng.choice(self._rich)]
            chosen += rng.sample(extra, min(rng.randint(1, 3), len(extra)))
        rng.shuffle(chosen)
        first = chosen[0].subject if chosen else ""
        chosen.sort(key=lambda t: t.subject != first)
        if rng.random() < 0.5:  # as a graph's stable order gives them
            chosen.sort(key=lambda t: (t.subject != first, t.subject, t.property))
        return linearise(self._mirrored(chosen))

    def _mirrored(self, facts: Sequence[Triple]) -> Iterator[Triple]:
        """Occasionally state a fact from the object's point of view."""
        for fact in facts:
            inverse = INVERSE.get(fact.property)
            if inverse and self._rng.random() < 0.3:
                yield Triple(subject=fact.value, property=inverse, value=fact.subject)
            else:
                yield fact

    def _sentence(self, claims: Sequence[Triple], *, exact: bool = False) -> str:
        """One sentence that states all claims of one subject; ``exact`` dates are given in full."""
        rng = self._rng
        if len(claims) == 1 and (rng.random() < 0.35):
            (claim,) = claims
            turned = inversions(claim.property, claim.subject, self._value(claim, exact))
            if turned:
                return finish(rng.choice(turned))
        parts = [self._predicate(claim, exact) for claim in claims]
        subject = claims[0].subject
        if len(parts) == 1:
            return finish(f"{subject} {parts[0]}")
        if rng.random() < 0.4:
            tail = " and ".join((", ".join(parts[1:-1]), parts[-1])) if parts[2:] else parts[1]
            return finish(f"{subject}, who {parts[0]}, {tail}" if self._person(claims) else
                          f"{subject}, which {parts[0]}, {tail}")  # fmt: skip
        return finish(f"{subject} {', '.join(parts[:-1])} and {parts[-1]}")

    def _predicate(self, claim: Triple, exact: bool) -> str:
        variant = self._rng.randrange(len(phrasing(claim.property).predicates))
        return predicate(claim.property, self._value(claim, exact), variant)

    def _value(self, claim: Triple, exact: bool) -> str:
        written = surface(claim.value, self._rng.randrange(4))
        if written != claim.value and not exact and self._rng.random() < 0.15:
            return written.split()[-1] if written[-4:].isdigit() else written
        return written

    def _person(self, claims: Sequence[Triple]) -> bool:
        return any(phrasing(claim.property).subject_kind == "person" for claim in claims)


def _same_year(text: str, other: str) -> bool:
    """Whether two values are dates within one year, so that the year alone cannot tell them."""
    years = [value.rsplit("-", 2)[0] for value in (text, other)]
    return years[0] == years[1] and years[0].lstrip("-").isdigit()


def _namesake(name: str, donor: str) -> str:
    """A name that shares its last word with another: *Orazio Gentileschi* for *Artemisia …*."""
    words, given = name.split(), donor.split()
    if len(words) < 2 or not given or given[0] == words[0]:
        return donor
    return " ".join([given[0], *words[1:]])
