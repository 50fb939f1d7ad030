"""Aggregates: counts, sums, means, the greatest and the least of a table's rows, computed.

A sentence may tell them of all rows, or of those that have the names, words, dates and bounds that
it tells. Where it may narrow them by what the table does not know, the check contradicts nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import fsum
from statistics import fmean
from typing import TYPE_CHECKING, NamedTuple

from guardrail.core.apart import Span
from guardrail.core.text.lexicon import lexicon_set
from guardrail.core.text.properties import cues
from guardrail.core.text.quantities import Bound, Quantity
from guardrail.core.text.superlatives import Superlative, superlative_at
from guardrail.core.text.values import Agreement, TypedValue, compare, find_values
from guardrail.core.text.words import Token, content_stems, plain, tokenise
from guardrail.core.types import Effect, Finding
from guardrail.verdict.checks.alignment import NAMED, named_share
from guardrail.verdict.checks.base import Context, finding
from guardrail.verdict.checks.computing import (
    Compute,
    cells_of,
    computed_from,
    first_of,
    is_number_of,
)

if TYPE_CHECKING:
    from guardrail.evidence.rows import Narrowed, RowsOfTable
    from guardrail.verdict.claims import Claim
    from guardrail.verdict.premises import Premises

__all__ = ["Aggregates", "Computed", "computed_of"]

CITED_ROWS = 20
"""Most rows that one computed value cites."""

OPENING = 4
"""A pronoun among so many first words stands for the subject of the sentence before."""

KNOWN = (
    *("wholes", "things", "count", "sum", "mean"),
    *("greatest", "least", "superlatives", "degrees"),
)
"""Words that tell of all rows, or of what is computed, and so narrow nothing."""


class Computed(NamedTuple):
    """What was computed for a sentence.

    Attributes:
        findings: What agrees with it and what does not.
        spans: The values of the sentence that were compared with it, or chose its rows.
    """

    findings: tuple[Finding, ...] = ()
    spans: tuple[Span, ...] = ()


class Aggregates:
    """Computes what a sentence tells of the rows of a table together."""

    name = "aggregates"

    def apply(self, claim: Claim, evidence: Premises, context: Context) -> Sequence[Finding]:
        """Find the counts, sums, means and ends that are told rightly, and those that are not."""
        return computed_of(claim, evidence).findings


def computed_of(claim: Claim, evidence: Premises) -> Computed:
    """What the tables of the evidence say of a sentence together."""
    words = {token.folded for token in claim.tokens}
    if not evidence.indexed.tables or words & lexicon_set("aggregates", "limits"):
        return Computed()
    found: list[tuple[bool, bool, _Found]] = []
    for table in evidence.indexed.tables:
        reading = _Reading(claim, evidence, table)
        unnamed = claim.stems.isdisjoint(content_stems(table.name))
        for item in (*reading.counts(), *reading.sums(), *reading.ends()):
            found.append((unnamed, item.finding.effect is Effect.CONTRADICTS, item))
    kept: list[_Found] = []
    # A value is told of the table that the sentence names, else of one that agrees with it.
    for _, _, item in sorted(found, key=lambda one: one[:2]):
        said = item.finding
        if not any(said.start < a.finding.end and a.finding.start < said.end for a in kept):
            kept.append(item)
    spans = tuple(span for item in kept for span in item.spans)
    return Computed(tuple(item.finding for item in kept), spans)


class _Found(NamedTuple):
    """A finding, with the values that it has read."""

    finding: Finding
    spans: tuple[Span, ...]


class _Reading:
    """A sentence, read as telling something of a table."""

    def __init__(self, claim: Claim, evidence: Premises, table: RowsOfTable) -> None:
        self.claim, self.evidence, self.table = claim, evidence, table
        self.text = plain(claim.text)
        self.named = table.named(self.text, claim.tokens)
        self.places = tuple(span for spans in self.named.values() for span in spans)

    def counts(self) -> Iterator[_Found]:
        """Counts of rows, or of the different texts of a column: *twelve bikes*, *3 places*."""
        for value in self._told(lambda item: item.kind == "number"):
            quantity = value.value
            assert isinstance(quantity, Quantity)
            if quantity.low != int(quantity.low) or quantity.per:
                continue
            noun = self._noun(value)
            if noun is not None:
                column = self.table.text_column(noun.stem)
                what = "count" if column is None else f"different {column}"
                found = self._verdict(value, column, None, what, noun)
                if found:
                    yield found

    def sums(self) -> Iterator[_Found]:
        """Sums and means of a column: *12,300 euros in total*, *an average price of £40*."""
        words = {token.folded for token in self.claim.tokens}
        ways: tuple[tuple[str, Compute], ...] = (("sum", fsum), ("mean", fmean))
        for way, compute in ways:
            told = words & lexicon_set("aggregates", way)
            if not told:
                continue
            for value in self._told(lambda item: item.kind != "date"):
                column = self._only(
                    column
                    for column, kind in self.table.kinds.items()
                    if kind == value.kind and not told & {*cues(column)}
                )
                if column is None or (value.kind == "number" and not self._names(column)):
                    continue
                found = self._verdict(value, column, compute, f"{way} of {column}")
                if found:
                    yield found

    def ends(self) -> Iterator[_Found]:
        """The greatest and the least of a column: *the cheapest is …*, *the highest price is …*."""
        for place, token in enumerate(self.claim.tokens):
            told = superlative_at(self.claim.tokens, place)
            if told is None:
                continue
            column = self._measured(told, token)
            if column is None:
                continue
            pick: Compute = max if told.end == "greatest" else min
            if self.named or self._meant():
                found = self._named_end(token, column, pick)
            else:
                value = next(iter(self._told_of(column)), None)
                found = value and self._verdict(value, column, pick, f"{told.end} of {column}")
            if found:
                yield found
                return

    def _named_end(self, token: Token, column: str, pick: Compute) -> _Found | None:
        """Whether the row that a sentence names has the greatest or least value."""
        names = {*self.named} or self._meant()
        if any(self._belongs(span) for span in self.places):
            return None
        values = self._told_of(column)
        told = tuple((value.start, value.end) for value in values)
        narrowed = self._rows((*self.places, *told, (token.start, token.end)), named=False)
        if narrowed is None:
            return None
        first, agrees = first_of(narrowed.rows, column, pick, names)
        if not agrees:
            outside = not names <= {row.subject for row in narrowed.rows}
            if narrowed.unsure or (outside and narrowed.columns):
                return None
            narrowed = self._before(narrowed, 2)
            if narrowed is None:
                return None
            first, agrees = first_of(narrowed.rows, column, pick, names)
        winners = {cell.statement.subject for cell in first}
        if not winners or (not agrees and (names & winners or len(names) > 1)):
            return None
        spans = [(token.start, token.end), *self.places]
        others = [v for v in values if compare(v, first[0].value) is Agreement.CONFLICT]
        if agrees and others:
            agrees, spans = False, [(value.start, value.end) for value in others]
        start, stop = min(a for a, _ in spans), max(b for _, b in spans)
        statements = tuple(cell.number for cell in first[:CITED_ROWS])
        because = (
            f"{token.folded} by {column} in {len(narrowed.rows)} of {len(self.table.rows)} rows of "
            f"{self.table.name}: {', '.join(sorted(winners))} ({first[0].text})"
        )
        effect = Effect.CARRIES if agrees else Effect.CONTRADICTS
        made = finding(Aggregates.name, effect, self.claim, (start, stop), because, statements)
        return _Found(made, (*told, *narrowed.spans))

    def _verdict(
        self,
        value: TypedValue,
        column: str | None,
        compute: Compute | None,
        what: str,
        noun: Token | None = None,
    ) -> _Found | None:
        """What a computed value says of one that is told; None where they do not compare."""
        span = value.start, value.end
        also = () if noun is None else ((noun.start, noun.end),)
        narrowed = self._rows((span, *also), named=True)
        known = narrowed and computed_from(value, narrowed.rows, column, compute)
        if not narrowed or not known:
            return None
        if noun and any(span[1] <= start < noun.start for start, _ in narrowed.strange):
            return None  # what the noun is narrowed by, the table does not tell
        agreement = compare(value, known)
        if agreement is Agreement.CONFLICT:
            narrowed = self._before(narrowed, 1)
            known = narrowed and computed_from(value, narrowed.rows, column, compute)
            if not narrowed or not known:
                return None
            agreement = compare(value, known)
        unsure = agreement is Agreement.CONFLICT and (
            narrowed.unsure or self._told_beside(value, narrowed, noun)
        )
        if unsure or agreement is Agreement.OPEN:
            return None
        because = (
            f"{what} in {len(narrowed.rows)} of {len(self.table.rows)} rows of "
            f"{self.table.name}: {known.text}"
        )
        effect = Effect.CARRIES if agreement is Agreement.SAME else Effect.CONTRADICTS
        cells = cells_of(narrowed.rows, column)
        statements = tuple(cell.number for cell in cells)[:CITED_ROWS]
        # One row of many is not what a sum or count is at odds with.
        stated = statements if effect is Effect.CARRIES else ()
        made = finding(Aggregates.name, effect, self.claim, span, because, stated)
        return _Found(made, (span, *narrowed.spans))

    def _rows(self, taken: tuple[Span, ...], *, named: bool) -> Narrowed | None:
        """The rows that the sentence speaks of; None where it narrows them in a way unknown.

        Args:
            taken: What is told of them.
            named: Whether the subjects that it names narrow them.
        """
        others = [v for v in self.claim.values if (v.start, v.end) not in taken]
        names, read = self.named if named else (), (*taken, *self.places)
        found = self.table.narrowed(
            self.text, self.claim.tokens, others, read, named=names, known=self._known
        )
        scoped = found and self._scoped(self.claim.tokens, (*read, *found.spans))
        return None if scoped else found

    def _told_beside(self, value: TypedValue, narrowed: Narrowed, noun: Token | None) -> bool:
        """Whether the sentence tells another value that may narrow the rows, or be the one meant.

        A count may stand beside all but other counts and what narrows its noun; a sum or an end
        beside the number of the rows and what their cells hold.
        """
        read = {(value.start, value.end), *narrowed.spans}
        others = [item for item in self.claim.values if (item.start, item.end) not in read]
        if noun is not None:
            return any(
                value.end <= item.start < noun.start or (item.kind == "number" and self._noun(item))
                for item in others
            )
        held = [cell.typed for row in narrowed.rows for cell in row.values() if cell.typed]
        return any(
            not is_number_of(item, narrowed.rows)
            and all(compare(item, known) is not Agreement.SAME for known in held)
            for item in others
        )

    def _before(self, found: Narrowed, least: int) -> Narrowed | None:
        """Of some rows those that what is told before speaks of: *the cheapest* of those asked for.

        Args:
            found: The rows that the sentence speaks of.
            least: So many subjects named before narrow them.

        Returns:
            None where it narrows them in a way unknown.
        """
        # A sentence that narrows them itself does not go on from the sentences before.
        own = bool(found.spans or self.named)
        text = plain(self.claim.question if own else self.claim.context)
        tokens = tokenise(text)
        named = self.table.named(text, tokens)
        places = tuple(span for spans in named.values() for span in spans)
        told = self.table.narrowed(text, tokens, find_values(text), places, known=self._known)
        if told is None or self._scoped(tokens, (*told.spans, *places)):
            return None
        kept = {id(row) for row in told.rows}
        narrows = len(named) >= least and not self.named.keys() >= named.keys()
        rows = tuple(
            row for row in found.rows if id(row) in kept and (not narrows or row.subject in named)
        )
        return found._replace(rows=rows)

    def _scoped(self, tokens: Sequence[Token], read: Sequence[Span]) -> bool:
        """Whether a phrase narrows the rows by something that the table does not know."""
        scopes = lexicon_set("aggregates", "scopes")
        stop = lexicon_set("function_words", "stop_words")
        opened = False
        for token in tokens:
            if token.folded in scopes:
                opened = True
            elif opened and token.folded not in stop:
                opened = False
                if not self._known(token) and not any(a <= token.start < b for a, b in read):
                    return True
        return False

    def _known(self, token: Token) -> bool:
        light = token.folded in lexicon_set("function_words", "stop_words")
        told = any(token.folded in lexicon_set("aggregates", name) for name in KNOWN)
        return light or told or self.table.tells(token.stem)

    def _told(self, wanted: Callable[[TypedValue], bool]) -> Iterator[TypedValue]:
        """The exact or rough amounts that the sentence tells, its names left out."""
        for value in self.claim.values:
            quantity = value.value
            rough = isinstance(quantity, Quantity) and quantity.bound in (Bound.EXACT, Bound.ABOUT)
            dated = value.kind == "date"
            inside = any(a <= value.start and value.end <= b for a, b in self.places)
            if (rough or dated) and not inside and wanted(value):
                yield value

    def _told_of(self, column: str) -> list[TypedValue]:
        """The values that the sentence tells of the kind that a column has."""
        return [*self._told(lambda item: item.kind == self.table.kinds[column])]

    def _noun(self, value: TypedValue) -> Token | None:
        """The noun of the rows, or of a column, that a number counts; None where it counts none.

        It is one of the first words behind it, or of those behind *the number of*.
        """
        tokens = self.claim.tokens
        behind = [token for token in tokens if token.start >= value.end]
        counted = lexicon_set("aggregates", "count")
        place = next((n for n, token in enumerate(tokens) if token.folded in counted), None)
        if place is not None and tokens[place].end < value.start:
            behind = [token for token in tokens[place + 1 :] if token.end <= value.start]
        for token in behind[:OPENING]:
            if self.table.text_column(token.stem) is not None or self._names_rows(token):
                return token
        return None

    def _names_rows(self, noun: Token) -> bool:
        things = lexicon_set("aggregates", "things")
        return noun.folded in things or noun.stem in content_stems(self.table.name)

    def _names(self, column: str) -> bool:
        return named_share(self.claim, column) >= NAMED

    def _only(self, columns: Iterator[str]) -> str | None:
        """The one column of several that is meant: the only one, or the only one named."""
        found = list(columns)
        found = found if len(found) < 2 else [column for column in found if self._names(column)]
        return found[0] if len(found) == 1 else None

    def _measured(self, told: Superlative, token: Token) -> str | None:
        """The column whose greatest or least value is told."""
        kinds, stems_of = self.table.kinds, self.table.stems_of
        if not told.says_what:
            return self._only(
                column
                for column in kinds
                if self._names(column) and token.stem not in stems_of(column)
            )
        named = [column for column in kinds if told.stems & (stems_of(column) | cues(column))]
        alike = [c for c, kind in kinds.items() if kind.partition(" ")[0] in told.measures]
        return self._only(iter(named if named or self.table.cut else alike))

    def _meant(self) -> frozenset[str]:
        """The subject of the sentence before, where a pronoun points back to it."""
        back = lexicon_set("function_words", "third_persons")
        points = any(token.folded in back for token in self.claim.tokens[:OPENING])
        return self.evidence.subjects & {*self.table.subjects} if points else frozenset()

    def _belongs(self, span: Span) -> bool:
        """Whether a name only says whose value is told: *the highest price of the Fjell 3*."""
        if self.text[span[1] : span[1] + 2] == "'s":
            return True
        stop = lexicon_set("function_words", "articles")
        before = [t for t in self.claim.tokens if t.end <= span[0] and t.folded not in stop]
        return bool(before) and before[-1].folded in lexicon_set("aggregates", "scopes")
