"""Facts that a sentence states or denies: in full, as yes or no, or in the words of a triple."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from guardrail.core.text.dates import (
    ClockTime,
    days_of_cell,
    names_weekday,
    timeless,
    weekday_runs,
)
from guardrail.core.text.lexicon import lexicon, lexicon_set
from guardrail.core.text.names import part_of_name_in
from guardrail.core.text.quantities import Quantity
from guardrail.core.text.units import property_name, tells_place
from guardrail.core.text.values import Agreement, TypedValue, compare
from guardrail.core.text.words import (
    MIN_STEM,
    Span,
    Token,
    content_stems,
    fold,
    meets,
    outside,
    plain,
    property_words,
    stem,
    tokenise,
    within_another,
)
from guardrail.core.types import Effect, Finding
from guardrail.verdict.checks.base import NAMED, Context, applies, finding, named_share, of_parts
from guardrail.verdict.checks.compared import compared
from guardrail.verdict.checks.roles import exchanged_values, is_other_end, lies_within, span_around
from guardrail.verdict.checks.typed_values import COMPARED
from guardrail.verdict.citations import is_cited

if TYPE_CHECKING:
    from guardrail.evidence.statements import Statement
    from guardrail.verdict.checks.base import Premises
    from guardrail.verdict.claims import Claim

TRUTHS = {"1": True, "0": False}
"""Yes and no in figures, as programs write them."""


class Stated:
    """Reads a sentence as facts about one subject: a property, and its value in any notation.

    It speaks only if nothing of the sentence is left over: every word belongs to the subject, to a
    named property, to a value, or carries no content. Then agreement settles that the sentence is
    supported, and one value that differs settles that it is contradicted.
    """

    name = "stated"

    def apply(self, claim: Claim, evidence: Premises, context: Context) -> Sequence[Finding]:
        """Find the facts that the sentence states, or the one that it denies."""
        if not evidence.subjects or claim.is_turned:
            return ()
        if claim.parts:
            return of_parts(self, claim, evidence, context)
        if "|" in claim.text and len(evidence.subjects) > 1:
            return ()  # which cell is whose, the order of the columns says
        reading = _Reading(claim, evidence)
        facts = reading.facts
        several = [item.agrees for item in facts].count(False) > 1
        if not facts or several or reading.is_split() or reading.left_over():
            return ()
        if reading.is_ambiguous():
            return ()

        def found(
            effect: Effect, span: Span, because: str, *facts: _Fact, instead: str | None = None
        ) -> Sequence[Finding]:
            numbers = tuple(dict.fromkeys([item.number for item in facts]))
            return (
                finding(
                    self.name, effect, claim, span, because, numbers, instead=instead, decides=True
                ),
            )

        if turned := next((item for item in facts if reading.is_turned(item)), None):
            because = f"the other way round than {turned.statement.text}"
            return found(Effect.MISSING, turned.span, because)
        timely = [item for item in facts if applies(claim, item.statement)]
        if not timely:
            because = f"at another time: {facts[0].statement.text}"
            return found(Effect.MISSING, facts[0].span, because)
        if reading.denies_a_fact:
            because = f"denies {timely[0].statement.text}"
            whole = (0, len(claim.text))
            return found(Effect.CONTRADICTS, whole, because, *timely) if timely[0].agrees else ()
        texts = [s for _, s, *_ in facts if not s.is_typed and s.yes is None]
        if reading.denied and texts:  # a text may hold the word that seems to deny
            return ()
        if fact := next((item for item in timely if not item.agrees), None):
            span = fact.span if fact.statement.yes is None else (0, len(claim.text))
            because = f"{claim.text[slice(*fact.span)]} differs from {fact.statement.text}"
            return found(Effect.CONTRADICTS, span, because, fact, instead=fact.instead)
        if len(timely) > 1 and exchanged_values(claim, evidence):
            return ()
        because = f"states {'; '.join(dict.fromkeys([item.statement.text for item in timely]))}"
        span = min([item.span for item in timely])[0], max([item.span[1] for item in timely])
        return found(Effect.CARRIES, span, because, *timely)


class _Fact(NamedTuple):
    """A fact that a sentence states or denies, and the span of its value in the sentence."""

    number: int
    statement: Statement
    agrees: bool
    span: Span
    instead: str | None = None


class _Reading:
    """A sentence, read as facts about its subject."""

    def __init__(self, claim: Claim, evidence: Premises) -> None:
        self.claim, self.evidence = claim, evidence
        self.tokens, self.about = claim.tokens, evidence.indexed.facts_of(evidence.subjects)
        self.spans = {subject: self._spans_of(subject) for subject in evidence.subjects}
        self.named_at = [span for spans in self.spans.values() for span in spans]
        self.values = outside(claim.values, self.named_at)
        self.words = outside(self.tokens, self.named_at)
        self.folded = frozenset([token.folded for token in self.words])
        self.stems = frozenset([token.stem for token in self.words])
        if not self.about or self._is_fragment:
            self.stems |= content_stems(plain(claim.asked))
        self.denied = not self.folded.isdisjoint(_denials())
        self.facts: list[_Fact] = []
        self.compared = None if self.denied else compared(claim, self.about, self.spans)
        if it := self.compared:
            self.about = [pair for pair in self.about if pair[1].subject == it.subject]
            statement = evidence.indexed.statements[it.number]
            self.facts.append(_Fact(it.number, statement, it.holds, it.span))
        if self.about:
            exchanged = {fact.number: fact for fact in self._exchanged()}
            texts = (fact for fact in self._texts() if fact.number not in exchanged)
            self.facts += [*self._typed(), *texts, *self._yes_or_no(), *exchanged.values()]

    def is_split(self) -> bool:
        """True if a denial may be of a part only: of one of two facts, clauses or subjects."""
        split = not self.folded.isdisjoint(lexicon_set("function_words", "contrasts"))
        several = len({item.number for item in self.facts}) > 1
        named = set(filter(self.claim.spans_of, self.evidence.subjects))
        named -= {item.statement.value_text for item in self.facts}
        named -= {self.compared.other} if self.compared else set()
        return len(named) > 1 or (self.denied and (split or several or "," in self.claim.plain))

    @property
    def denies_a_fact(self) -> bool:
        """True if a sentence denies its only fact, which is no yes or no, nor a denial itself."""
        if not self.denied or len(self.facts) != 1:
            return False
        statement, denials = self.facts[0].statement, lexicon_set("function_words", "negations")
        if statement.yes is not None or statement.value_text in TRUTHS:
            return False
        held = tokenise(plain(statement.text))
        said = outside(self.words, [self.facts[0].span])
        denied = not denials.isdisjoint([token.folded for token in said])
        return denied and denials.isdisjoint([token.folded for token in held])

    def is_ambiguous(self) -> bool:
        """True if a pronoun may mean several subjects, and a fact holds for some of them alone."""
        if len(self.evidence.subjects) < 2 or self.named_at:
            return False
        return any(self.evidence.is_ambiguous(self.claim, fact.statement) for fact in self.facts)

    def is_turned(self, item: _Fact) -> bool:
        """True if a relation's value stands where its subject belongs: *Globex is part of Acme*.

        Its subject never stands behind *part of*, and its value is not the one whose *manager*
        something is.
        """
        statement, fact = item.statement, item.statement.fact
        if fact is None or not item.agrees or statement.is_typed or statement.yes is not None:
            return False
        words = property_words(fact.property).casefold().split()
        if not words or " ".join(words) in lexicon_set("properties", "symmetric"):
            return False
        joins, tokens = lexicon_set("function_words", "within_claim"), self.tokens
        articles, be = lexicon_set("function_words", "articles"), lexicon_set("grammar", "be")

        def before(place: int) -> list[str]:
            ahead = [t.folded for t in tokens if t.end <= place]
            return ahead[:-1] if ahead and ahead[-1] in articles else ahead

        if words[-1] in joins:
            spans = self.spans.get(item.statement.subject, ())
            return len(words) > 1 and any(before(a)[-2:] == words[-2:] for a, _ in spans)
        (start, end), noun = item.span, stem(words[-1])
        behind = [token.stem for token in tokens if token.start >= end][:3]
        if self.claim.plain.startswith(("'s ", "’s "), end) and noun in behind:
            return True
        *ahead, article, name, of = ["", "", "", *before(start)]
        role = of == "of" and stem(name) == noun and article in articles
        return role and (not any(ahead) or ahead[-1] in be)

    def left_over(self) -> bool:
        """True if the sentence says more than the facts: a word, value, condition or denial."""
        covered = [item.span for item in self.facts]
        known = frozenset[str]().union(
            *[item.statement.cues for item in self.facts],
            *(content_stems(t.row.table) for item in self.facts
              if (t := item.statement.triple) and t.row),
        )  # fmt: skip
        known |= frozenset().union(*(content_stems(value.kind) for value in self.values))
        light = lexicon_set("function_words", "stop_words")
        limits = lexicon_set("function_words", "conditions")
        limits -= lexicon_set("grammar", "quantifiers")
        denials = _denials()
        truth = any(item.statement.yes is not None or item.statement.value_text in TRUTHS
                    for item in self.facts)  # fmt: skip
        known |= {
            item.kind
            for _, item in self.about
            if item.kind and (truth or item.stands_in(self.claim.plain, self.tokens, self.values))
        }
        timed = any(item.statement.validity is not None for item in self.facts)
        light |= lexicon_set("grammar", "ongoing") if timed else frozenset()
        dates = [(v.start, v.end) for v in self.values if v.kind == "date" and timed]
        covered += dates
        harmless = (light - limits - denials) | lexicon_set("function_words", "stances")
        if self.denies_a_fact:
            harmless |= lexicon_set("function_words", "negations")
        if truth:
            harmless |= lexicon_set("function_words", "negations")
            harmless |= _alike([item.statement.value_text for item in self.facts])
        for token in outside(self.words, covered):
            named = not known.isdisjoint(
                (token.stem, f"{token.stem}s")
            ) or (  # *weigh*, of *weight*
                len(token.stem) >= MIN_STEM and any(w.startswith(token.stem) for w in known)
            )
            if not named and token.folded not in harmless:
                return True
        return bool(outside(self.values, covered))

    def _spans_of(self, subject: str) -> list[Span]:
        start = self.claim.plain.find(subject)
        whole = [(start, start + len(subject))] if start >= 0 else []
        names = {n for _, s in self.about if s.subject == subject for n in s.names}
        spans = [span for name in (subject, *names) for span in self.claim.spans_of(name)]
        return whole + (spans or part_of_name_in(self.tokens, subject))

    @cached_property
    def _is_fragment(self) -> bool:
        """True for a bare value that answers the question, such as *2,490 euros*."""
        light = lexicon_set("function_words", "stop_words")
        spans = [(value.start, value.end) for value in self.values]
        rest = {token.folded for token in outside(self.words, spans)}
        return len(spans) == 1 and rest <= light

    def _named(self, statement: Statement, at: Sequence[Span] = ()) -> bool:
        """True if the sentence names the property of a fact, outside the spans of its value."""
        assert statement.fact is not None
        words = content_stems(property_name(statement.fact.property))
        words = words - content_stems(statement.subject) or words
        stems = {token.stem for token in outside(self.words, at)} if at else self.stems
        verbs = tuple([stem for stem in stems if len(stem) >= MIN_STEM])  # *weigh*, of *weight*
        left = [
            word
            for word in words - stems
            if not word.startswith(verbs) and word.removesuffix("s") not in stems
        ]
        if left and names_weekday(statement.fact.property):
            return False  # the hours of one day are not those of another
        return not left or not stems.isdisjoint(statement.cues - words)

    def _typed(self) -> Iterator[_Fact]:
        """The values of the sentence as agreeing with, or differing from, facts that it names."""
        statements = {
            number: statement
            for number, statement in self.about
            if statement.is_typed and self._named(statement)
        }
        named = {n: item.fact for n, item in statements.items() if item.fact}
        names = {n: content_stems(property_name(fact.property)) for n, fact in named.items()}
        whole = [n for n in names if names[n] <= self.stems and len(self.values) == 1]
        for n, fact in named.items():
            if any(fact.subject == named[m].subject and names[n] < names[m] for m in whole):
                del statements[n]  # *price*, where a *child price* is named
        said = [
            {
                number: [
                    (compare(self._as_held(value, held, item), held), held) for held in item.values
                ]
                for number, item in statements.items()
                if not is_other_end(self.claim, value.start, item)
            }
            for value in self.values[:COMPARED]
        ]
        met = {
            number
            for facts in said
            for number, pairs in facts.items()
            if any(agreement is Agreement.SAME for agreement, _ in pairs)
        }
        for value, facts in zip(self.values, said, strict=False):
            span = (value.start, value.end)
            same = [n for n, pairs in facts.items() if any(a is Agreement.SAME for a, _ in pairs)]
            unsure = any(
                agreement is Agreement.OPEN and held.kind == value.kind
                for number, pairs in facts.items()
                if number not in same
                for agreement, held in pairs
            )
            clash = {
                number: held
                for number, pairs in facts.items()
                if number not in met
                and span_around(self.claim, value.start, number, self.evidence) is None
                for agreement, held in pairs
                if agreement is Agreement.CONFLICT
            }
            # Two values may each belong to the other's property
            crossed = clash and any(v is not value and v.kind == value.kind for v in self.values)
            if same and not crossed:
                for number in same:
                    if _surely(value, statements[number]):
                        yield _Fact(number, statements[number], True, span)
            elif clash and not same and not unsure and len(clash) == 1:
                number, held = next(iter(clash.items()))
                yield _Fact(number, statements[number], False, span, held.text)

    def _as_held(self, value: TypedValue, held: TypedValue, item: Statement) -> TypedValue:
        """A number without a unit in that of its fact, and a time inside hours as one of them."""
        if isinstance(value.value, ClockTime) and lies_within(self.claim, value, item):
            return held
        mine, other = value.value, held.value
        if not isinstance(mine, Quantity) or not isinstance(other, Quantity) or mine.unit:
            return value
        return value._replace(value=mine._replace(unit=other.unit))

    def _texts(self) -> Iterator[_Fact]:
        """The facts whose value is a text that the sentence contains."""
        copula = lexicon_set("grammar", "be")
        for number, statement in self.about:
            fact = statement.fact
            if fact is None or statement.is_typed or statement.yes is not None:
                continue
            spans = self._standing(statement)
            if not spans:
                continue
            describes = fact.value.islower() and any(t.folded in copula for t in self.tokens)
            if describes or self._named(statement, spans):
                yield _Fact(number, statement, True, spans[0])

    def _exchanged(self) -> Iterator[_Fact]:
        """Cells whose text the sentence replaces with that of another row of the column."""
        for number, statement in () if self.denied else self.about:
            cell = statement.triple
            if cell is None or statement.is_typed or statement.yes is not None:
                continue
            names = content_stems(property_name(cell.property))
            others = [s for _, s in self.about if s.subject == statement.subject and s.triple]
            if cell.row is None:  # a graph's fact may be one of several, and a place hold another
                alike = [s for s in others if s.triple and s.triple.property == cell.property]
                written = {*property_words(cell.property).split()} <= self.folded
                several = len(alike) > 1 or len(self.evidence.subjects) > 1
                if several or not written or tells_place(cell.property):
                    continue
            if not names or not self._named(statement):
                continue  # before the texts of its column are looked for
            own = self._standing(statement)
            taken = [
                span
                for other in others
                if other is not statement and self._named(other, at := self._standing(other))
                for span in at
            ]
            texts = dict.fromkeys(self.evidence.indexed.column_texts.get(cell.property, ()))
            texts |= dict.fromkeys([item.value_text for item in others if not item.is_typed])
            found = [span for value in texts for span in self.claim.spans_of(value)]
            if days := days_of_cell(cell.value):
                runs = weekday_runs(self.claim.plain)
                found = [(a, b) for said, a, b in runs if len(said) > 1 < len(days) and said - days]
            spans = [
                (start, end)
                for start, end in found
                if not meets((start, end), (*self.spans.get(statement.subject, ()), *taken))
                and all(start <= a and b <= end and b - a < end - start for a, b in own)
            ]
            if spans and self._named(statement, spans):
                span = max(spans, key=lambda item: item[1] - item[0])
                yield _Fact(number, statement, False, span, statement.value_text)

    def _standing(self, statement: Statement) -> list[Span]:
        """Span of a fact's value in the sentence, without the time at which it holds."""
        if statement.validity is None:
            found = statement.stands_in(self.claim.plain, self.tokens, self.values)
        else:
            found = self.claim.spans_of(timeless(statement.value_text).strip())
        others = [
            s for name, spans in self.spans.items() if name != statement.value_text for s in spans
        ]
        return [span for span in found if not meets(span, others)]

    def _yes_or_no(self) -> Iterator[_Fact]:
        """The facts whose value is yes or no, and whose property the sentence says or denies."""
        negations = lexicon_set("function_words", "negations")
        for number, statement in self.about:
            known = statement.yes
            if known is None and not self.values:
                known = TRUTHS.get(statement.value_text.strip())
            if known is None or statement.fact is None:
                continue
            words = content_stems(property_words(statement.fact.property))
            words -= content_stems(statement.subject)
            if not words or not words <= self.stems:
                continue
            no = self.folded & _denials(statement)
            if no & negations - {"none"} and no - negations:
                continue  # *No, it is forbidden* and *it is not forbidden*
            spans = [(t.start, t.end) for t in self.words if t.stem in words]
            if spans:
                span = min(a for a, _ in spans), max(b for _, b in spans)
                yield _Fact(number, statement, known is not bool(no), span, statement.value_text)


def _denials(of: Statement | None = None) -> frozenset[str]:
    """Words that deny a yes or no, without those of its property: *smoking forbidden*."""
    words = lexicon("function_words")
    own = [token.folded for token in tokenise(of.fact.property)] if of and of.fact else ()
    return frozenset([*words["negations"], *words["no"], *words["modal"]["no"]]).difference(own)


def _alike(values: Iterable[str]) -> frozenset[str]:
    """The words that say yes or no in the way of some values: *permitted*, of *not allowed*."""
    words = {token.folded for value in values for token in tokenise(value)}
    first, *others = map(frozenset, lexicon("function_words")["truths"].values())
    return frozenset().union(*(item for item in others if not item.isdisjoint(words))) or first


def _surely(value: TypedValue, statement: Statement) -> bool:
    """True if a claimed unit is the unit of the fact, or of another fact of its row."""
    quantity = value.value
    if not isinstance(quantity, Quantity) or quantity.unit is None:
        return True
    held: Iterable[TypedValue] = statement.values
    return any(isinstance(v.value, Quantity) and v.value.unit is not None for v in held)


class YesNo:
    """Says whether a sentence agrees with the yes or no of a property that it speaks of.

    A clause speaks of a property by its words; it denies it by a word that negates. A clause with
    a condition or a quantifier says more than yes or no, and is left to the judge.
    """

    name = "yes_no"

    def apply(self, claim: Claim, evidence: Premises, context: Context) -> Sequence[Finding]:
        """Find the properties that are stated correctly, and those stated as their opposite."""
        return [
            found
            for number, statement in evidence.chosen
            if (known := statement.yes) is not None and evidence.speaks_of(statement)
            for found in self._of(claim, evidence, number, statement, known=known)
        ]

    def _of(
        self, claim: Claim, evidence: Premises, number: int, statement: Statement, *, known: bool
    ) -> Iterator[Finding]:
        assert statement.fact is not None
        plainly = lexicon_set("function_words", "yes") | lexicon_set("function_words", "no")
        if fold(statement.fact.value).strip(" .") not in plainly:
            return  # *required* and *no (except in May)* say more
        wanted = content_stems(property_words(statement.fact.property))
        wanted -= content_stems(statement.subject)
        said = (c for c in _clauses(claim) if wanted and wanted <= {token.stem for token in c})
        if (tokens := next(said, None)) is None:
            return
        words = {token.folded for token in tokens}
        about = {
            subject
            for subject in evidence.subjects
            if words.issuperset(token.folded for token in tokenise(subject))
        } or evidence.subjects
        if statement.subject not in about:
            return
        if not words.isdisjoint(lexicon_set("function_words", "conditions")):
            return
        negating = lexicon_set("function_words", "negations")
        negating |= lexicon_set("function_words", "negating_prefixes")
        stated = negating.isdisjoint(words)
        if not words.isdisjoint(_denials(statement) - negating):
            stated = not stated
        span = tokens[0].start, tokens[-1].end
        if stated is known and evidence.is_ambiguous(claim, statement):
            return
        if stated is known:
            because = f"agrees with {statement.text}"
            yield finding(self.name, Effect.CARRIES, claim, span, because, (number,))
        elif about == {statement.subject}:
            because = f"states the opposite of {statement.text}"
            instead = statement.fact.value
            yield finding(
                self.name, Effect.CONTRADICTS, claim, span, because, (number,), instead=instead
            )


def _clauses(claim: Claim) -> Iterator[list[Token]]:
    """The words of a sentence, clause by clause."""
    contrasts = lexicon_set("function_words", "contrasts")
    text = claim.plain
    clause: list[Token] = []
    for token in claim.tokens:
        between = text[clause[-1].end : token.start] if clause else ""
        if re.search(r"[,;:()|]|\s-\s", between) or token.folded in contrasts:
            if clause:
                yield clause
            clause = []
        clause.append(token)
    if clause:
        yield clause


OPPOSED = 0.2
"""Probability of contradiction from which a model's own citation counts for nothing: 152 of 152
denials of facts of the people graph had more, and 25 of 152 true sentences."""


class ExactMatch:
    """Says that triples carry a part of the sentence which states them word for word.

    Without a judge any value other than a name or number suffices next to its subject. If several
    triples have the same value, those are meant whose property the sentence names best.
    """

    name = "exact_match"

    def apply(self, claim: Claim, evidence: Premises, context: Context) -> Sequence[Finding]:
        """Find the triples that the sentence states in their own words."""
        text, judged = claim.plain, evidence.grounding
        opposed = judged is not None and judged.contradicted >= OPPOSED
        stated: dict[int, tuple[Span, float]] = {}
        for number, statement in evidence.chosen:
            if statement.triple is None or not evidence.speaks_of(statement):
                continue
            ambiguous = statement.is_typed and evidence.is_ambiguous(claim, statement)
            if ambiguous or not applies(claim, statement):
                continue
            if statement.yes is not None or names_weekday(statement.triple.property):
                continue  # their values tell nothing without their properties
            share = named_share(claim, statement.triple.property)
            if is_cited(claim, statement) and not opposed:
                share = 1.0  # the model's own citation names the property
            if judged is not None and share < NAMED:
                continue
            spans = [
                span
                for span in claim.where(statement)
                if not is_other_end(claim, span[0], statement)
                and not _is_in_a_longer_name(claim, evidence, span, statement.value_text)
            ]
            if not spans or fold(statement.triple.value) in fold(statement.subject):
                continue
            if share > 0.0 or _describes(text[slice(*spans[0])], statement.triple.value):
                stated[number] = (spans[0], share)
        best: dict[Span, float] = {}
        for span, share in stated.values():
            best[span] = max(share, best.get(span, 0.0))
        kept = {n: span for n, (span, share) in stated.items() if share >= best[span]}
        found, spans = list(kept), list(kept.values())
        if not found:
            return ()
        span = min(spans)[0], max([end for _, end in spans])
        texts = "; ".join([evidence.indexed.statements[number].text for number in found])
        because = f"stands in {texts}"
        return (finding(self.name, Effect.CARRIES, claim, span, because, tuple(found)),)


def _is_in_a_longer_name(claim: Claim, evidence: Premises, span: Span, value: str) -> bool:
    """True for a part of the name of another subject: *MF Tern*, in *MF Tern II*."""
    others = [subject for subject in evidence.subjects if fold(subject) not in fold(value)]
    return any(within_another(span, claim.spans_of(name)) for name in others)


def _describes(text: str, value: str) -> bool:
    """Whether a value tells its property by itself: a *painter*, an *Italian*, but no *London*."""
    return fold(text) != fold(value) or not any(item.isupper() or item.isdigit() for item in value)
