"""Invariants: metamorphic tests of a guardrail's guarantees, without labels.

Transformations that keep the meaning of evidence or answers must keep the verdict; those that
break it must not leave a claim supported. Any evidence and answers will do.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from guardrail.core.text.dates import parse_date
from guardrail.core.text.lexicon import lexicon
from guardrail.core.text.sentences import split_sentences
from guardrail.core.text.units import head_of, property_name
from guardrail.core.text.words import property_words
from guardrail.core.types import Category, Evidence, Passage, Triple
from guardrail.core.types.answers import CheckRequest

if TYPE_CHECKING:
    from guardrail.core.types import GuardedAnswer
    from guardrail.guard import Guardrail

GUARANTEES = {
    "shuffle": 1, "duplicate": 1, "split": 1, "unrelated": 1,
    "copied": 2, "subject swap": 3, "subject swap, true twin": 3,
    "notation": 4, "picture": 4, "rename": 4, "value swap": 4, "sign flip": 4, "boolean flip": 4,
    "true twin": 4, "batch": 6, "stream": 6, "cache": 6,
}  # fmt: skip
"""Kinds of trials by the guarantee that they test."""


class Trial(NamedTuple):
    """A request, and what must hold of its verdict.

    Attributes:
        kind: One of ``GUARANTEES``.
        same_as: The untransformed request, whose verdicts must be the same; None if ``supported``
            says what is expected.
    """

    kind: str
    request: CheckRequest
    same_as: CheckRequest | None = None
    supported: bool = True


class Tally(NamedTuple):
    """Trials of a kind, violations, and contradictions of those expected to be supported."""

    trials: int = 0
    violations: int = 0
    contradicted: int = 0


def trials_of(
    requests: Sequence[CheckRequest], *, most: int = 20, seed: int = 1
) -> Iterator[Trial]:
    """Generate trials from answers with their evidence, at most so many of each kind."""
    rng = random.Random(seed)
    usable = [item for item in requests if item.evidence]
    chosen = rng.sample(usable, min(most, len(usable)))
    unrelated = Passage(  # to any other document
        "The harbour museum shows model ships. Its garden has old anchors. Visitors like the "
        "buoys.",
        title="Harbour museum",
    )
    for item in chosen:
        evidence = [*(item.evidence or ())]
        mixed = rng.sample(evidence, len(evidence))
        yield Trial("shuffle", _with(item, mixed), item)
        yield Trial("duplicate", _with(item, evidence + mixed[: len(mixed) // 2 + 1]), item)
        yield Trial("split", _with(item, [*_split(evidence)]), item)
        yield Trial("unrelated", _with(item, [*evidence, unrelated]), item)
        if item.answer[:1].isalpha():
            yield Trial("picture", item.model_copy(update={"answer": f"✅ {item.answer}"}), item)
    for make in (_copied, _stated):
        found: dict[str, list[Trial]] = {}
        for item in usable:
            for trial in make(item, rng):
                found.setdefault(trial.kind, []).append(trial)
        for several in found.values():
            yield from rng.sample(several, min(most, len(several)))


def measured(guard: Guardrail, trials: Sequence[Trial], *, most: int = 20) -> dict[str, Tally]:
    """Check trials and count the violations of each kind.

    ``most`` of the requests are also checked alone, in pieces and again.
    """
    whole = list({id(t.same_as): t.same_as for t in trials if t.same_as is not None}.values())
    asked = [*whole, *(trial.request for trial in trials)]
    answers: list[GuardedAnswer] = []
    for first in range(0, len(asked), 20):  # twenty are checked together
        answers += guard.check_batch(asked[first : first + 20], policy="annotate")
    before = {id(item): answer for item, answer in zip(whole, answers, strict=False)}
    counts: dict[str, Tally] = {}
    for trial, answer in zip(trials, answers[len(whole) :], strict=True):
        found = _verdicts(answer)
        if trial.same_as is not None:
            _count(counts, trial.kind, _verdicts(before[id(trial.same_as)]) == found)
            continue
        good = ({*found} <= {Category.SUPPORTIVE, None}) is trial.supported
        _count(counts, trial.kind, good, trial.supported and Category.CONTRADICTORY in found)
    for item in whole[:most]:
        expected = _verdicts(before[id(item)])
        for kind in ("batch", "cache"):  # alone, and again
            once = guard.check(
                item.question, item.answer, evidence=item.evidence, policy="annotate"
            )
            _count(counts, kind, _verdicts(once) == expected)
        _count(counts, "stream", _streamed(guard, item) == expected)
    return {kind: counts[kind] for kind in GUARANTEES if kind in counts}


def _count(counts: dict[str, Tally], kind: str, good: bool, against: bool = False) -> None:
    trials, violations, contradicted = counts.get(kind, Tally())
    counts[kind] = Tally(trials + 1, violations + (not good), contradicted + against)


def _verdicts(answer: GuardedAnswer) -> list[Category | None]:
    return [sentence.category for sentence in answer.sentences]


def _streamed(guard: Guardrail, item: CheckRequest) -> list[Category | None]:
    session = guard.session(item.question, evidence=item.evidence, policy="annotate")
    for start in range(0, len(item.answer), 7):
        session.add(item.answer[start : start + 7])
    session.rest()
    return _verdicts(session.finish())


def _with(
    item: CheckRequest, evidence: Sequence[Evidence], answer: str | None = None
) -> CheckRequest:
    changed = {"evidence": tuple(evidence), "answer": item.answer if answer is None else answer}
    if answer is not None:
        changed["question"] = ""
    return item.model_copy(update=changed)


def _split(evidence: Sequence[Evidence]) -> Iterator[Evidence]:
    """Passages cut at their headings."""
    for item in evidence:
        if isinstance(item, Passage):
            for part in re.split(r"\n+(?=#)", item.text):
                yield item.model_copy(update={"text": part})
        else:
            yield item


def _copied(item: CheckRequest, rng: random.Random) -> Iterator[Trial]:
    passages = [one for one in item.evidence or () if isinstance(one, Passage)]
    for passage in rng.sample(passages, min(2, len(passages))):
        sentences = [
            piece.text
            for piece in split_sentences(passage.text)
            if piece.text.endswith(".") and piece.text[0].isupper() and len(piece.text) < 300
        ]
        for text in rng.sample(sentences, min(3, len(sentences))):
            yield Trial("copied", _with(item, item.evidence or (), text))


def _stated(item: CheckRequest, rng: random.Random) -> Iterator[Trial]:
    """Facts as sentences, true ones in several notations and false ones."""
    facts = [one for one in item.evidence or () if isinstance(one, Triple)]
    held = {(fact.subject, fact.property): fact.value for fact in facts}
    single = [fact for fact in facts if _is_single(fact, facts)]

    def asked(kind: str, text: str, *, supported: bool) -> Trial:
        return Trial(kind, _with(item, item.evidence or (), text), supported=supported)

    for fact in rng.sample(single, min(6, len(single))):
        yield asked("true twin", _sentence(fact), supported=True)
        for value in _notations(fact):
            yield asked("notation", _sentence(fact, value), supported=True)
        others = [
            other
            for other in facts
            if other.subject != fact.subject
            and fact.value not in held.get((other.subject, fact.property), fact.value)
        ]
        if others:
            other = rng.choice(others)
            yield asked("subject swap, true twin", _sentence(fact), supported=True)
            swapped = fact.model_copy(update={"subject": other.subject})
            yield asked("subject swap", _sentence(swapped), supported=False)
            values = held[other.subject, fact.property]
            if _figures(fact.value) and _figures(values) and "," not in values:
                yield asked("value swap", _sentence(fact, values), supported=False)
        if (number := _figures(fact.value)) and float(number) > 0 and head_of(fact.property).unit:
            yield asked("sign flip", _sentence(fact, f"-{fact.value}"), supported=False)
        words = lexicon("function_words")
        name = property_name(fact.property)
        for way, opposite in (("yes", "no"), ("no", "yes")):
            if fact.value.casefold() in words[way]:
                yield asked("boolean flip", f"{fact.subject}: {name}: {opposite}.", supported=False)
                yield asked("true twin", f"{fact.subject}: {name}: {way}.", supported=True)
        renamed = fact.subject[::-1].title().replace(" ", "") + " Qel"
        if fact.subject not in fact.value:
            changed = [
                one.model_copy(update={"subject": renamed}) if one.subject == fact.subject else one
                for one in facts
            ]
            new = fact.model_copy(update={"subject": renamed})
            yield Trial("rename", _with(item, changed, _sentence(new)))


def _is_single(fact: Triple, facts: Sequence[Triple]) -> bool:
    """True for the only fact of its subject and property, if it is short enough for a sentence."""
    alike = [one for one in facts if (one.subject, one.property) == (fact.subject, fact.property)]
    return len({one.value for one in alike}) == 1 and len(fact.value) < 60


def _sentence(fact: Triple, value: str | None = None) -> str:
    """A fact as a sentence, its unit behind the value."""
    text = fact.value if value is None else value
    words = property_words(fact.property).split()
    unit = words[-1] if len(words) > len(property_name(fact.property).split()) else ""
    codes = {item["code"] for item in lexicon("currencies")["currencies"]}
    unit = unit.upper() if unit.upper() in codes else unit
    unit = f" {unit}" if unit and text[-1:].isdigit() else ""
    return f"The {property_name(fact.property)} of {fact.subject} is {text}{unit}."


def _figures(value: str) -> str:
    """A value that is one number in figures; empty for any other."""
    return value if re.fullmatch(r"\d+(?:\.\d+)?", value) else ""


def _notations(fact: Triple) -> Iterator[str]:
    """A value in other usual notations."""
    number = _figures(fact.value)
    if number and head_of(fact.property).unit:
        whole, _, rest = number.partition(".")
        if len(whole) > 3:
            for mark in (",", " ", "'"):
                yield f"{int(whole):,}".replace(",", mark) + (f".{rest}" if rest else "")
        if not rest:
            yield f"{whole}.00"
    date = parse_date(fact.value)
    if date and date.year and date.month and date.day:
        month = lexicon("calendar")["months"][date.month - 1].capitalize()
        yield f"{date.day} {month} {date.year}"
        yield f"{month} {date.day}, {date.year}"
        yield f"{date.year}-{date.month:02}-{date.day:02}"
