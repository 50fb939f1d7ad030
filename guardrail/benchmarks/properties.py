"""How often a value passes under the words of another property of the same subject.

    python -m guardrail.benchmarks.properties --data DIR [--source dart|people] [--rows 200]
        [--part report|develop] [--judge onnx] [--seed 1] [--show 0]

Each row is an entity with two properties, one value each, whose values are of one kind: two
names, two numbers, two places. The false sentence tells the second one's value as the first
one's: *The death place of S is V*, where S was born in V. *dart*: the property's label as a noun,
entities of ``DIR/triples/dart_dev.jsonl.gz``; *people*: the verbaliser's prose, persons of the
shipped people graph, properties of which everybody has one value. No model writes or judges the
rows, so what is false is known exactly. The parts are those of
``guardrail.benchmarks.attribution``.
"""

from __future__ import annotations

import random
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import permutations
from typing import NamedTuple

from guardrail import ANNOTATE, CheckRequest, Guardrail, GuardrailConfig
from guardrail.benchmarks.attribution import Statement, read_options, statements_of
from guardrail.types import Category, Sentence, Triple
from guardrail.vocabulary import is_functional, property_words

__all__ = ["Exchange", "exchanges", "supported"]


class Exchange(NamedTuple):
    """Two facts of one entity, and what it would be to take one's value for the other's.

    Attributes:
        facts: All facts of the entity that are given as evidence.
        told: The fact that the sentences speak of.
        taken: The fact whose value the false sentence tells instead.
        true: The sentence that tells ``told``.
        false: The sentence that tells the value of ``taken`` as that of the property of ``told``.
    """

    facts: tuple[Triple, ...]
    told: Triple
    taken: Triple
    true: str
    false: str

    @property
    def without(self) -> tuple[Triple, ...]:
        """The facts less the one that the sentences speak of."""
        return tuple(fact for fact in self.facts if fact != self.told)


def exchanges(
    statements: Sequence[Statement], source: str = "dart", *, seed: int = 1
) -> list[Exchange]:
    """Every pair of properties of an entity whose values are of one kind, once, shuffled.

    Args:
        statements: Texts with their facts; the texts are not used.
        source: ``dart`` or ``people``: how sentences are worded and which properties are told.
        seed: Chooses the order and the phrasings.
    """
    rng = random.Random(f"{seed}/properties")
    found: dict[tuple[str, ...], tuple[tuple[Triple, ...], Triple, Triple]] = {}
    for facts in _by_subject(statements):
        count = Counter(fact.property for fact in facts)
        kinds = {fact: _kind(fact, source) for fact in facts if count[fact.property] == 1}
        for told, taken in permutations(kinds, 2):
            if (
                kinds[told] is not None
                and kinds[told] == kinds[taken]
                and told.value != taken.value
                and (source == "dart" or is_functional(told.property))
            ):
                key = told.subject, told.property, taken.property, taken.value
                found.setdefault(key, (facts, told, taken))
    rows = [
        Exchange(*one, *_sentences(*one[1:], source, rng.randrange(3))) for one in found.values()
    ]
    rng.shuffle(rows)
    return rows


def supported(
    guard: Guardrail, rows: Sequence[tuple[str, Sequence[Triple]]]
) -> tuple[int, list[Sentence]]:
    """Check sentences and count those that come out supportive.

    Args:
        guard: The guardrail.
        rows: Sentences with their evidence.

    Returns:
        How many are supportive, and all of them as they were judged.
    """
    answers = guard.check_batch(
        [CheckRequest(question="", answer=text, evidence=tuple(facts)) for text, facts in rows]
    )
    judged = [answer.sentences[0] for answer in answers]
    return sum(one.category is Category.SUPPORTIVE for one in judged), judged


def _by_subject(statements: Sequence[Statement]) -> Iterator[tuple[Triple, ...]]:
    """Yield the facts of every entity of every statement, in order, without repeats."""
    for statement in statements:
        facts: dict[str, dict[Triple, None]] = defaultdict(dict)
        for fact in statement.triples:
            facts[fact.subject][fact] = None
        yield from (tuple(own) for subject, own in facts.items() if not subject.startswith("["))


def _kind(fact: Triple, source: str) -> str | None:
    """What kind of value a fact has: None where it cannot be told from other words."""
    if source == "people":
        from kg.verbalise import phrasing

        kind = phrasing(fact.property).value_kind
        return kind if kind in ("place", "date", "person") else None
    if re.fullmatch(r"[\d.,]+", fact.value):
        return "number"
    named = fact.value[:1].isupper() and not any(sign.isdigit() for sign in fact.value)
    return "name" if named else None


def _sentences(told: Triple, taken: Triple, source: str, variant: int) -> tuple[str, str]:
    if source == "people":
        from kg.verbalise import finish, predicate

        true, false = (
            finish(f"{told.subject} {predicate(told.property, value, variant)}")
            for value in (told.value, taken.value)
        )
        return true, false
    start = f"The {property_words(told.property)} of {told.subject} is"
    return f"{start} {told.value}.", f"{start} {taken.value}."


def main(arguments: Sequence[str] | None = None) -> int:
    """Run from the command line."""
    options = read_options(arguments, __doc__, parts=("report", "develop"))
    statements = statements_of(options)
    rows = exchanges(statements, options.source, seed=options.seed)[: options.rows]
    patient = ANNOTATE.model_copy(update={"deadline_s": None})
    guard = Guardrail(GuardrailConfig(judge=options.judge, policy=patient))
    print("| sentences | evidence | n | supportive | share |")
    print("|---|---|---|---|---|")
    for name, evidence, checked in (
        ("true", "all", [(row.true, row.facts) for row in rows]),
        ("false", "all", [(row.false, row.facts) for row in rows]),
        ("false", "less the true one", [(row.false, row.without) for row in rows]),
    ):
        count, judged = supported(guard, checked)
        share = f"{count / len(checked):.3f}" if checked else "-"
        print(f"| {name} | {evidence} | {len(checked)} | {count} | {share} |")
        wrong = [
            one for one in judged if (one.category is Category.SUPPORTIVE) == (name == "false")
        ]
        for one in wrong[: options.show]:
            cited = [f"{fact.property}: {fact.value}" for fact in one.citations]
            print(f"    {one.text!r} {one.category} {cited}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
