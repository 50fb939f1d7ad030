"""Evidence as numbered statements, as the judge reads it: triples linearised, passages cut up."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from guardrail.core.text.dates import Date, Validity, days_in_full, find_dates, validity_of
from guardrail.core.text.lexicon import lexicon, lexicon_set
from guardrail.core.text.names import NO_NAMES, find_names, label_in, part_of_name_in
from guardrail.core.text.sentences import laid_out
from guardrail.core.text.units import certain_cues, cues, property_name
from guardrail.core.text.values import Agreement, TypedValue, compare, find_values, values_of
from guardrail.core.text.words import (
    Token,
    content_stems,
    fold,
    meets,
    plain,
    property_words,
    tokenise,
)
from guardrail.core.types import Citation, Evidence, Passage, Triple
from guardrail.core.workers import stop_if_given_up

CITED_CHARS = 120
"""A citation of a passage quotes at most this many characters."""


@dataclass(eq=False)
class Statement:
    """One numbered statement of the evidence.

    Attributes:
        text: What the judge reads.
        triple: The triple it is; None for a sentence of a passage.
        citation: How it is cited.
        place: Of its passage or triple among the evidence; neighbours share a passage's.
        subject: Whom it is about: a fact's subject, else a passage's title; empty where unknown.
        fact: What it says as subject, property and value: the triple, or a cell of a table.
        head: Title and heading that a sentence of a passage stands under.
        names: Other names of the subject.
        others: Other names of the value: the wider places that hold it, as the answer tells them.
        words: The sentence or list item of a passage in its own words, or a fact's text.
        above: The label above it, if that may deny, limit or attribute what it says: any label of a
            sentence, and the label of a list if it has a word of negation or condition.
        quoted: True inside a quotation that an earlier or the same sentence opens and leaves open.
    """

    text: str
    triple: Triple | None
    citation: Citation
    place: int
    subject: str
    fact: Triple | None
    head: str = ""
    names: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    words: str = ""
    above: str = ""
    quoted: bool = False

    @cached_property
    def stems(self) -> frozenset[str]:
        """Stems of its content words, and of words that name its property or table in prose."""
        own = content_stems(self.text)
        if self.triple is not None and self.triple.row is not None:
            own |= content_stems(self.triple.row.table)
        return own | cues(self.fact.property) if self.fact else own

    @cached_property
    def values(self) -> tuple[TypedValue, ...]:
        """Its typed values; offsets are those of ``value_text``."""
        if self.fact is None:
            return tuple(find_values(self.value_text))
        return tuple(values_of(self.value_text, self.fact.property))

    @cached_property
    def is_typed(self) -> bool:
        """True if a fact's value consists of typed values: *2,490 euros*, *3 May 2026, 15:00*."""
        rest = self.value_text
        for value in sorted(self.values, key=lambda item: -item.start):
            rest = rest[: value.start] + rest[value.end :]
        words = {token.folded for token in tokenise(rest)} - {"t", "every"}  # stamps, intervals
        light = lexicon_set("function_words", "stop_words")
        return bool(self.fact and self.values) and words <= light

    @cached_property
    def cues(self) -> frozenset[str]:
        """Stems of the words that may name a fact's property in a sentence."""
        if self.fact is None:
            return frozenset()
        label = self.fact.property
        known = cues(label) if self.is_typed else certain_cues(label)
        return known | content_stems(property_words(label))

    @cached_property
    def kind(self) -> str:
        """The stem of a property that only says what its value is: *room*, of *room: Sea View*."""
        words = content_stems(property_name(self.fact.property)) if self.fact else ()
        named = self.value_text[:1].isupper() and not self.values
        return next(iter(words)) if named and len(words) == 1 else ""

    @cached_property
    def end(self) -> int:
        """Which end of a span a fact with one value gives: -1 for *valid from*, 1, or 0."""
        if self.fact is None or len(self.values) != 1 or not self.is_typed:
            return 0
        words = property_words(self.fact.property).split()
        ends = {end_named(word, close=word == words[-1]) for word in words} - {0}
        return ends.pop() if len(ends) == 1 else 0

    @cached_property
    def is_missing(self) -> bool:
        """True for a cell without a value: *NaN*, *NULL*. It supports and contradicts nothing."""
        return bool(self.fact) and fold(self.value_text) in lexicon_set("numbers", "missing")

    @cached_property
    def validity(self) -> Validity | None:
        """When a statement holds, if it says so: *Bergen (2015 to 2020)*, *from 2017 to 2021*."""
        return validity_of(self.value_text)

    @cached_property
    def yes(self) -> bool | None:
        """Whether its value is yes, or no; None where it is something else, such as Norway's NO."""
        if self.fact and self.fact.value.strip() == "NO":
            coded = lexicon_set("properties", "coded")
            if not coded.isdisjoint(property_words(self.fact.property).split()):
                return None
        first = re.split(r"[,;(]|\bfor (?=\W?\d)", self.fact.value)[0] if self.fact else ""
        value = fold(first).strip(" .")
        modal = lexicon("function_words")["modal"]
        if value in lexicon_set("function_words", "yes") or value in modal["yes"]:
            return True
        no = value in lexicon_set("function_words", "no") or value in modal["no"]
        return False if no else None

    def stands_in(
        self, text: str, tokens: Sequence[Token], values: Sequence[TypedValue]
    ) -> list[tuple[int, int]]:
        """Find a triple's value, or a place that contains it, in a plain text.

        ``tokens`` are its words, ``values`` its typed values.
        """
        if self.triple is None:
            return []
        if len(self.values) == 1 and self.values[0].text == self.triple.value.strip():
            value = self.values[0]
            same_values = [item for item in values if compare(item, value) is Agreement.SAME]
            return [(item.start, item.end) for item in same_values]
        found = label_in(text, tokens, self.triple.value)
        for name in () if found else self.others:
            spans = [span for span in label_in(text, tokens, name) if text[slice(*span)] == name]
            if spans:
                return spans
        return found or self._part_in(text, tokens)

    def _part_in(self, text: str, tokens: Sequence[Token]) -> list[tuple[int, int]]:
        """Where a word of a person's name stands for it: *Leopold*, for Leopold Mozart.

        A word of a fuller name stands for another: *Leopold Auer*.
        """
        assert self.triple is not None
        words = self.triple.value.split()
        if len(words) < 2 or not all(word[:1].isupper() for word in words):
            return []
        own = {fold(word) for word in self.subject.split()}
        others = [token for token in tokens if token.folded not in own]
        spans = part_of_name_in(others, self.triple.value)
        if not spans:
            return []
        known = {token.folded for token in tokenise(self.triple.value)} | own
        known |= lexicon_set("abbreviations", "titles")
        fuller = [
            (start, end)
            for start, end in find_names(text)
            if not known.issuperset(token.folded for token in tokenise(text[start:end]))
        ]
        return [span for span in spans if not meets(span, fuller)]

    @cached_property
    def value_text(self) -> str:
        """Where its values stand: a fact's value, or its text."""
        return self.fact.value if self.fact else self.text

    @cached_property
    def label_dates(self) -> tuple[Date, ...]:
        """The years of its property: *Price 2024 (USD)*."""
        found = find_dates(property_words(self.fact.property)) if self.fact else []
        return tuple([when for when in found if when.year is not None])

    @cached_property
    def label_values(self) -> tuple[TypedValue, ...]:
        """Values that only tell its subject or property from others: *population (2011)*."""
        if self.fact is None:
            return ()
        return tuple(find_values(f"{self.fact.subject} {self.fact.property}"))

    @cached_property
    def head_values(self) -> tuple[TypedValue, ...]:
        """Values in the name of its property: *price of 10 visits*."""
        return () if self.fact is None else tuple(find_values(self.fact.property))


def end_named(word: str, *, close: bool) -> int:
    """Which end a word names: -1 the first, 1 the last, or 0; *from* and *to* only if ``close``."""
    if word in lexicon_set("grammar", "first_end") or (close and word == "from"):
        return -1
    return int(word in lexicon_set("grammar", "last_end") or (close and word == "to"))


def statements_of(
    evidence: Sequence[Evidence], names: Mapping[str, tuple[str, ...]] = NO_NAMES
) -> list[Statement]:
    """Write evidence as statements, in its order."""
    found: list[Statement] = []
    for place, item in enumerate(evidence):
        stop_if_given_up()
        if isinstance(item, Triple):
            others = names.get(item.subject, ())
            found.append(
                Statement(
                    _as_read(item), item, item.citation, place, item.subject, item, names=others
                )
            )
        else:
            found += _of_passage(item, place)
    return found


def _as_read(triple: Triple) -> str:
    days = days_in_full(triple.value)
    return (triple.model_copy(update={"value": days}) if days else triple).statement


def as_spoken(
    statement: Statement,
    names: Mapping[str, tuple[str, ...]],
    wider: Mapping[str, tuple[str, ...]],
    text: str,
) -> Statement:
    """A statement with the other names and wider places that an answer uses.

    Args:
        statement: The statement.
        names: Other names of subjects, by label.
        wider: Names of the places that contain the value of a triple, by the value's id.
        text: The answer.
    """
    triple = statement.triple
    if triple is None:
        return statement
    around = [item for item in wider.get(triple.value_id or "", ()) if _says(text, item)]
    used = [name for name in names.get(triple.subject, ()) if _says(text, name)]
    if not around and (not used or _says(text, triple.subject)):
        return statement
    subject = triple.subject
    if used and not _says(text, subject):
        subject = f"{subject} ({used[0]})"
    value = ", ".join([triple.value, *around[:1]])
    shown = triple.model_copy(update={"subject": subject, "value": value})
    return replace(statement, text=_as_read(shown), others=(*around,))


def _says(text: str, name: str) -> bool:
    return name in text and re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text) is not None


def _limits(label: str) -> bool:
    """True if a label denies or limits what is listed below it: *Not included*, *If you pay*."""
    words = {token.folded for token in tokenise(label)}
    return not words.isdisjoint(
        lexicon_set("function_words", "negations") | lexicon_set("function_words", "conditions")
    )


def _of_passage(passage: Passage, place: int) -> list[Statement]:
    """The statements of a passage, each with the title and heading that it stands under."""
    name = passage.id or passage.title or f"passage {place + 1}"
    title = passage.title or ""
    found: list[Statement] = []
    quotes = 0
    for piece in laid_out(passage.text):
        stop_if_given_up()
        whole = len(piece.text) <= CITED_CHARS
        value = piece.text if whole else f"{piece.text[: CITED_CHARS - 1].rstrip()}…"
        citation = Citation(entity=name, property="passage", value=value)
        head = ": ".join(dict.fromkeys(filter(None, (title, piece.heading))))
        fact = Triple(*piece.fact) if piece.fact else None
        about = fact.subject if fact else title
        # A quotation mark, and not the sign of inches or seconds
        open_before = quotes % 2 == 1
        quotes += len(re.findall(r'(?<!\d)"', plain(piece.words)))
        above = "" if piece.is_item and not _limits(piece.label) else piece.label
        quoted = open_before or quotes % 2 == 1
        found.append(
            Statement(
                piece.text, None, citation, place, about, fact, head,
                words=piece.words, above=above, quoted=quoted,
            )
        )  # fmt: skip
    return found
