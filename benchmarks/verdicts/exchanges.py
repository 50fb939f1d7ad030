"""Two properties of one entity, and a sentence that tells the value of one as that of the other.

No model writes or judges these sentences, so what is false is known exactly.
"""

from __future__ import annotations

import random
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import permutations

from benchmarks.verdicts.cases import Case
from guardrail.core.text.units import property_name
from guardrail.core.text.words import property_words
from guardrail.core.types import Triple, Verdict

__all__ = ["label_exchanges", "prose_exchanges"]

Facts = Sequence[Triple]


def label_exchanges(name: str, groups: Iterable[Facts], rng: random.Random) -> Iterator[Case]:
    """True and false sentences that name the property by its label: *The capital of S is V*.

    The false ones are judged with and without the named property's own fact in the evidence.
    """

    def kind(fact: Triple) -> str | None:
        if re.fullmatch(r"[\d.,]+", fact.value):
            return "number"
        named = fact.value[:1].isupper() and not any(sign.isdigit() for sign in fact.value)
        return "name" if named else None

    for facts, stated, taken in _pairs(groups, kind):
        start = f"The {property_words(stated.property)} of {stated.subject} is"
        yield from _cases(
            name, facts, stated, f"{start} {stated.value}.", f"{start} {taken.value}."
        )


def prose_exchanges(name: str, groups: Iterable[Facts], rng: random.Random) -> Iterator[Case]:
    """True and false sentences in the verbaliser's prose: *S was born in V*."""
    from benchmarks.verbalise import finish, phrasing, predicate, property_forms

    def kind(fact: Triple) -> str | None:
        found = phrasing(fact.property).value_kind
        single = property_name(fact.property) in property_forms()["single_valued"]
        return found if single and found in ("place", "date", "person") else None

    for facts, stated, taken in _pairs(groups, kind):
        variant = rng.randrange(3)
        true, false = (
            finish(f"{stated.subject} {predicate(stated.property, value, variant)}")
            for value in (stated.value, taken.value)
        )
        yield from _cases(name, facts, stated, true, false)


def _pairs(
    groups: Iterable[Facts], kind: Callable[[Triple], str | None]
) -> Iterator[tuple[tuple[Triple, ...], Triple, Triple]]:
    """Every two properties of an entity whose values are of one kind, once."""
    seen: set[tuple[str, ...]] = set()
    for facts in _by_subject(groups):
        count = Counter(fact.property for fact in facts)
        kinds = {fact: kind(fact) for fact in facts if count[fact.property] == 1}
        for stated, taken in permutations(kinds, 2):
            key = stated.subject, stated.property, taken.property, taken.value
            same = kinds[stated] is not None and kinds[stated] == kinds[taken]
            if same and stated.value != taken.value and key not in seen:
                seen.add(key)
                yield facts, stated, taken


def _by_subject(groups: Iterable[Facts]) -> Iterator[tuple[Triple, ...]]:
    for group in groups:
        facts: dict[str, dict[Triple, None]] = defaultdict(dict)
        for fact in group:
            facts[fact.subject][fact] = None
        yield from (tuple(own) for subject, own in facts.items() if not subject.startswith("["))


def _cases(
    name: str, facts: tuple[Triple, ...], stated: Triple, true: str, false: str
) -> Iterator[Case]:
    without = tuple(fact for fact in facts if fact != stated)
    yield Case(name, facts, true, Verdict.SUPPORTED, stated=(facts.index(stated),))
    yield Case(name, facts, false, Verdict.UNSUPPORTED)
    if without:
        yield Case(name, without, false, Verdict.UNSUPPORTED)
