"""What a sentence is about, and when: what evidence does not name, and facts of another time."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

from guardrail.core.text.dates import Date
from guardrail.core.text.lexicon import lexicon, lexicon_set
from guardrail.core.text.names import nation_words
from guardrail.core.text.quantities import Quantity
from guardrail.core.text.units import is_unit_name
from guardrail.core.text.words import Span, Token, content_stems, fold, meets, plain, tokenise
from guardrail.core.types import Effect, Finding, Verdict
from guardrail.verdict.checks.base import LIKELY, Context, applies, finding
from guardrail.verdict.checks.roles import agrees
from guardrail.verdict.claims import opening_name

if TYPE_CHECKING:
    from guardrail.evidence.statements import Statement
    from guardrail.verdict.checks.base import Premises
    from guardrail.verdict.claims import Claim


class KnownSubject:
    """Finds sentences about somebody or something on which the evidence has no facts.

    Facts of others, among them those who are related to it, say nothing about it: neither where
    there are no facts about it, nor where the judge finds the sentence in those of others alone.
    """

    name = "known_subject"

    def apply(self, claim: Claim, evidence: Premises, context: Context) -> Sequence[Finding]:
        """Find that no statement is about the subject of the sentence."""
        if claim.text.rstrip().endswith("?"):
            return ()
        indexed = evidence.indexed
        others = evidence.subjects.difference(indexed.labels)
        span = opening_name(claim.plain, claim.tokens)
        if others and evidence.subjects == others:
            if any(s.triple is None or s.value_text in others for s in indexed.statements):
                return ()
            because = f"the evidence says nothing about {', '.join(sorted(others))}"
        elif not evidence.subjects and indexed.labels:
            if span is None or not opens_unknown(claim, evidence):
                return ()
            because = f"the evidence says nothing about {claim.text[slice(*span)]}"
        elif borrowed := _borrowed(claim, evidence, opens=span is not None):
            because, span = f"a fact about another subject: {borrowed.text}", None
        elif found := _of_another(claim, evidence):
            because, span = f"only of another subject: {found[0].text}", found[1]
        else:
            return ()
        whole = span or (0, len(claim.text))
        return (finding(self.name, Effect.MISSING, claim, whole, because, decides=True),)


def opens_unknown(claim: Claim, evidence: Premises) -> bool:
    """Whether a sentence opens with a name that neither evidence nor question mentions."""
    span = opening_name(claim.plain, claim.tokens)
    name = claim.text[slice(*span)] if span else ""
    asked = claim.answers is not None or fold(name) in fold(plain(claim.asked))
    return bool(name) and not asked and not evidence.indexed.mentions(name)


def _of_another(claim: Claim, evidence: Premises) -> tuple[Statement, Span] | None:
    """The fact of another subject that has a value of the sentence, where its own has another.

    Such as *The Tarn is built of beech*, where the Fjell is, and the Tarn is built of maple.
    """
    words = {token.folded for token in claim.tokens}
    apart = lexicon_set("grammar", "setting_apart") | lexicon_set("function_words", "negations")
    if len(evidence.subjects) != 1 or not words.isdisjoint(apart):
        return None
    own = [item for _, item in evidence.indexed.facts_of(evidence.subjects)]
    known = [*own, *(item for _, item in evidence.chosen if item.triple is None)]
    labels = [item.fact.property for _, item in evidence.chosen if item.fact]
    stems = content_stems(plain(" ".join([claim.asked, *labels])))
    stems = stems.union(*(item.stems for item in known))
    values = [value for item in known for value in item.values] + claim.asked_values
    for number, item in evidence.chosen:
        if item.fact is None or item.triple is None or item.yes is not None:
            continue
        mine = [s for s in own if s.fact and s.fact.property == item.fact.property]
        if not mine or any(map(claim.where, mine)) or evidence.concerns(claim, number):
            continue
        alike = [(v.start, v.end) for v in claim.values if agrees(v, item.values)]
        for span in claim.where(item) or alike:
            held = [value for value in claim.values if meets(span, [(value.start, value.end)])]
            if held:
                new = not any(agrees(v, values) or v.kind == "number" for v in held)
            else:
                described = claim.plain[: span[0]].casefold().endswith("the ")  # *the alpine house*
                new = not described and stems.isdisjoint(content_stems(claim.plain[slice(*span)]))
            if new and not meets(span, claim.mentions):
                return item, span
    return None


def _borrowed(claim: Claim, evidence: Premises, *, opens: bool) -> Statement | None:
    """The fact about another subject on which the judge's support of a sentence rests alone."""
    grounding, indexed = evidence.grounding, evidence.indexed
    if grounding is None or grounding.verdict_at(evidence.thresholds) is not Verdict.SUPPORTED:
        return None
    about = evidence.subjects.intersection(claim.labels)
    first = min([a for name in about for a, _ in claim.spans_of(name)], default=None)
    light = lexicon_set("function_words", "articles") | lexicon_set("grammar", "be") | {"of"}
    if first is None or (not opens and {t.folded for t in claim.tokens if t.end <= first} - light):
        return None
    if any(isinstance(item.value, Quantity) and item.value.change for item in claim.values):
        return None  # *three times as much* as what the sentence before is about
    scores = {number: evidence.carries(number) for number, _ in evidence.chosen}
    least = min(LIKELY, max(scores.values(), default=0.0))
    carrying = [number for number, score in scores.items() if score >= least > 0.0]
    others = [number for number in scores if not evidence.concerns(claim, number)]
    own = [indexed.statements[number] for number in carrying if number not in others]
    # A row without other cells states its subject's name, which carries no more than that
    more = bool(claim.values) or any(not meets(name, claim.mentions) for name in claim.names)
    named = [item for item in own if more and fold(item.value_text) == fold(item.subject)]
    if not carrying or not others or len(named) < len(own):
        return None
    return indexed.statements[max(others, key=scores.__getitem__)]


class UnknownNames:
    """Reports a name as missing if none of its words is in any evidence."""

    name = "unknown_names"

    def apply(self, claim: Claim, evidence: Premises, context: Context) -> Sequence[Finding]:
        """Find the first name that nothing knows."""
        known = evidence.indexed.stems | content_stems(plain(claim.asked))
        days = [(v.start, v.end) for v in claim.values if isinstance(v.value, Date)]
        for start, end in claim.names:
            if meets((start, end), days):
                continue  # Fri 12 June
            name = claim.text[start:end]
            tokens = tokenise(name)
            if any(token.stem in known or _says_nothing(token) for token in tokens):
                continue
            # A name may be a piece of a longer word of the evidence.
            if any(fold(name) in fold(statement.text) for statement in evidence.indexed.statements):
                continue
            because = f"no evidence names {name}"
            return (finding(self.name, Effect.MISSING, claim, (start, end), because),)
        return ()


def _says_nothing(token: Token) -> bool:
    """Whether a word proves nothing by standing in no evidence."""
    return (
        token.text.isupper()
        or token.folded in nation_words()
        or is_unit_name(token.folded)
        or token.folded.partition("'")[0] in lexicon_set("function_words", "speakers")
    )


class ValidInTime:
    """Finds sentences that only statements support that do not hold at their time."""

    name = "valid_in_time"

    def apply(self, claim: Claim, evidence: Premises, context: Context) -> Sequence[Finding]:
        """Find that what carries the sentence has ended or has not begun."""
        carrying = [s for number, s in evidence.chosen if evidence.carries(number) >= LIKELY]
        ended = [statement for statement in carrying if not applies(claim, statement)]
        if not ended or len(ended) < len(carrying):
            return ()
        because = f"at another time: {ended[0].text}"
        span = (0, len(claim.text))
        return (finding(self.name, Effect.MISSING, claim, span, because, decides=True),)


class Mentions:
    """Compares sentences such as *The documents do not mention the warranty* with all evidence.

    They are false where prose has the words of a topic that is a plain noun phrase one behind the
    other, or a fact has all of them, and true where the evidence lacks every word of a topic that
    consists of names: other words have synonyms, which it takes the judge to see.
    """

    name = "mentions"

    def apply(self, claim: Claim, evidence: Premises, context: Context) -> Sequence[Finding]:
        """Find the statement that mentions what is denied, or that none does."""
        found = _denial().fullmatch(claim.plain.strip())
        statements = evidence.indexed.statements
        if not found or not statements:
            return ()
        topic, words = content_stems(found["topic"]), tokenise(found["topic"])
        light = lexicon_set("grammar", "of_topics")
        whole = 0, len(claim.text)
        named = all(word.text[:1].isupper() or word.folded in light for word in words)
        if named and topic and topic.isdisjoint(evidence.indexed.stems):
            said = self.name, Effect.CARRIES, claim, whole, f"nothing mentions {found['topic']}"
            return (finding(*said, decides=True),)
        plainly = all(word.stem in topic or word.folded in light for word in words)
        wanted = [word.folded for word in words if word.folded not in light]
        between = rf"(?:[ -](?:{'|'.join(light)}))*[ -]"
        for number, statement in enumerate(statements) if topic and plainly else ():
            if _mentions(statement, wanted, between):
                said = self.name, Effect.CONTRADICTS, claim, whole, f"mentioned: {statement.text}"
                return (finding(*said, (number,), decides=True),)
        return ()


def _mentions(statement: Statement, wanted: list[str], between: str) -> bool:
    """Whether prose has words in a row, or a fact all of them; the last in singular or plural."""
    *first, last = map(re.escape, wanted)
    # *News* and *goods* are no plurals of *new* and *good*
    last = f"{last.removesuffix('s') if first or len(last) > 5 else last}s?"
    parts = [*first, last] if statement.fact else [between.join([*first, last])]
    text = fold(plain(f"{statement.head} {statement.text}"))
    return all(re.search(rf"(?<!\w){part}(?!\w)", text) for part in parts)


@cache
def _denial() -> re.Pattern[str]:
    """A whole sentence that denies that something is mentioned, with its topic."""
    words = lexicon("grammar")
    parts = words["unmentioned_parts"]
    opening = "|".join(words["unmentioned"]).format(**parts)
    topic = rf"(?P<topic>[^,;:.?!]+?)(?: in {parts['source']})?[.!]?"
    return re.compile(f"(?:{opening}) {topic}", flags=re.IGNORECASE)
