"""Rows that teach grounding: statements, and sets of triples with texts that state them."""

from __future__ import annotations

import random
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from benchmarks.data import held_out, read_jsonl
from guardrail.core.types import Triple, Verdict
from judges.folder import HEADS
from training.forms import mentions, near_miss, same_value
from training.relations import MIXED_UP, readable
from training.rows import NO_LABEL, Row
from training.statements import Statement

__all__ = [
    "TripleSet",
    "dart_sets",
    "less_evidence",
    "other_evidence_rows",
    "set_rows",
    "statement_rows",
]

_ENTAILED, _NEUTRAL, _CONTRADICTED = range(3)
_SUPPORTIVE, _PARTIAL, _CONTRADICTORY, _IRRELEVANT = range(len(HEADS["attribution"]))
_CLAIM, _NO_CLAIM = range(2)

LESS = 6
"""Most sentences of a pair with less evidence."""

DISTRACTORS = 8
"""Maximum number of triples about other subjects that are added to a text's own."""


def statement_rows(
    statements: Iterable[Statement], source: str, *, seed: float | None = None
) -> Iterator[Row]:
    """Rows of statements, each with its question and what stands before it as context.

    Args:
        statements: The statements.
        source: Name of the rows; ``_triples`` or ``_passages`` is added.
        seed: Shuffles the triples of each row, which have no order, and leaves the question out
            of the context of some; None keeps all as it is.
    """
    for number, statement in enumerate(statements):
        order = list(range(len(statement.statements)))
        context = " ".join(f"{statement.question} {statement.context}".split())
        if seed is not None:
            chooser = random.Random(f"{seed}/{number}")
            if statement.triples:
                chooser.shuffle(order)
            if chooser.random() < 0.3:
                context = statement.context
        yield Row(
            premise="",
            hypothesis=statement.sentence,
            source=f"{source}_{'triples' if statement.triples else 'passages'}",
            nli=_NLI_OF[statement.verdict],
            attribution=_attribution(statement),
            claim=_NO_CLAIM if statement.verdict is Verdict.NO_CLAIM else _CLAIM,
            statements=tuple(statement.statements[place] for place in order),
            context=context,
            span=None if statement.verdict is Verdict.NO_CLAIM else statement.span or (),
            cited=frozenset(place for place, old in enumerate(order) if old in statement.cited),
        )


def other_evidence_rows(
    statements: Sequence[Statement], source: str, *, seed: int
) -> Iterator[Row]:
    """The same sentences with less evidence, so that the evidence decides, not the sentence.

    One or two statements of a set are removed. Sentences that they support or contradict
    are unsupported then (the minimal pairs of MiniCheck and FactCG); what was unsupported stays
    so. For the others nothing changes, unless they may depend on all statements, as a sum or a list
    does, or come from passages, whose sentences are connected: those are left out. Statements of
    another set are added to some.

    Args:
        statements: The statements, those of a set together.
        source: Name of the rows; ``_triples`` or ``_passages`` is added.
        seed: Seed of all choices.
    """
    chooser = random.Random(f"{seed}/{source}")
    for _, some in groupby(statements, key=lambda item: item.group):
        rows = list(some)
        first = rows[0]
        cited = sorted({place for row in rows for place in row.cited})
        if len(first.statements) < 3 or not cited:
            continue
        gone = frozenset(chooser.sample(cited, min(len(cited), chooser.randint(1, 2))))
        kept = [place for place in range(len(first.statements)) if place not in gone]
        other = chooser.choice(statements)
        foreign = () if other.group == first.group or chooser.random() < 0.5 else other.statements
        added = foreign[: chooser.randint(1, MORE_STATEMENTS)] if foreign else ()
        made = [
            _with_others(_with_only(changed, kept), added)
            for row in rows
            if (changed := _without(row, gone)) is not None
        ]
        yield from statement_rows(made, source, seed=chooser.random())


def less_evidence(
    statements: Iterable[Statement], *, seed: int
) -> Iterator[list[tuple[Statement, Statement]]]:
    """Supported sentences of a set, each with all evidence and without what some of them cite.

    Args:
        statements: The statements, those of a set together.
        seed: Seed of all choices.
    """
    chooser = random.Random(f"{seed}/less")
    for _, group in groupby(statements, key=lambda one: one.group):
        rows = [one for one in group if one.verdict is Verdict.SUPPORTED and one.cited]
        for _ in range(min(2, len(rows))):
            gone = chooser.choice(rows).cited
            asked = [one for one in rows if one.cited & gone][:LESS]
            kept = [place for place in range(len(asked[0].statements)) if place not in gone]
            if kept:
                less = ((one, _without(one, gone)) for one in asked)
                yield [(one, _with_only(other, kept)) for one, other in less if other is not None]


def _without(statement: Statement, gone: frozenset[int]) -> Statement | None:
    """A statement as it stands once some of its evidence is gone; None where that is unknown."""
    decided = statement.verdict in (Verdict.SUPPORTED, Verdict.CONTRADICTED)
    if decided and statement.cited & gone:
        return statement._replace(
            verdict=Verdict.UNSUPPORTED, cited=frozenset(), span=(0, len(statement.sentence))
        )
    if not decided:
        return statement._replace(cited=statement.cited - gone)
    if statement.triples and statement.kind not in _REST_ON_ALL:
        return statement
    return None


_REST_ON_ALL = frozenset(
    {
        "aggregation",
        "comparison",
        "count",
        "list_item",
        "list_items",
        "only_also",
        "quantifier",
        "superlative",
        "superlative_unsupported",
    }
)
"""Phenomena in which a sentence may depend on statements that it does not cite."""


def _with_only(statement: Statement, places: Sequence[int]) -> Statement:
    """A statement with a part of its evidence."""
    return statement._replace(
        statements=tuple(statement.statements[place] for place in places),
        windows=tuple(statement.windows[place] for place in places if statement.windows),
        cited=frozenset(new for new, place in enumerate(places) if place in statement.cited),
    )


def _with_others(statement: Statement, others: tuple[str, ...]) -> Statement:
    """A statement with other evidence behind its own."""
    return statement._replace(statements=(*statement.statements, *others), windows=())


_NLI_OF = {
    Verdict.SUPPORTED: _ENTAILED,
    Verdict.UNSUPPORTED: _NEUTRAL,
    Verdict.CONTRADICTED: _CONTRADICTED,
    Verdict.NO_CLAIM: NO_LABEL,
}


def _attribution(statement: Statement) -> tuple[int, ...]:
    match statement.verdict:
        case Verdict.SUPPORTED:
            return (_SUPPORTIVE,)
        case Verdict.CONTRADICTED:
            return (_CONTRADICTORY,)
        case Verdict.UNSUPPORTED:
            return (_PARTIAL,) if statement.cited else (_PARTIAL, _IRRELEVANT)
    return ()


MORE_STATEMENTS = 10
"""Maximum number of statements of another set that are added to a sentence's own."""


class TripleSet(NamedTuple):
    """Triples and texts by people that tell all of them and nothing else."""

    triples: tuple[Triple, ...]
    texts: tuple[str, ...]


DART_SHARE = 0.2
"""Share of DART's subjects held out, as in ``training.sentence_pairs``."""


def dart_sets(data: Path) -> tuple[list[TripleSet], list[TripleSet]]:
    """DART's sets to train on and those held out; WebNLG's texts, not free, are in neither."""
    parts: tuple[list[TripleSet], list[TripleSet]] = ([], [])
    for raw in read_jsonl(data / "triples" / "dart_dev.jsonl.gz"):
        triples = tuple(
            Triple(subject=_plain(s), property=readable(p), value=_plain(o))
            for s, p, o in raw["triples"]
            if readable(p) and _plain(o)
        )
        if triples and "webnlg" not in raw["source"].casefold():
            unseen = held_out(triples[0].subject, DART_SHARE, salt="dart")
            parts[unseen].append(TripleSet(triples, tuple(raw["texts"][:4])))
    return parts


def set_rows(sets: Sequence[TripleSet], source: str, *, seed: int) -> Iterator[Row]:
    """Texts with all their triples, and with sets that are wrong in the ways that matter.

    A statement is removed; a value is swapped for another of its property; another relation is
    stated about the same names; roles are swapped. Triples about other subjects are added.

    Args:
        sets: The sets.
        source: Name of the rows.
        seed: Seed of all choices.
    """
    chooser = random.Random(f"{seed}/{source}")
    values: dict[str, list[str]] = defaultdict(list)
    everything = []
    for item in sets:
        for triple in item.triples:
            values[triple.property].append(triple.value)
            everything.append(triple)
    builder = _SetRows(source, values, everything, chooser)
    for item in sets:
        for text in item.texts:
            yield from builder.rows(item.triples, " ".join(text.split()))


class _SetRows(NamedTuple):
    source: str
    values: dict[str, list[str]]
    everything: list[Triple]
    chooser: random.Random

    def rows(self, triples: tuple[Triple, ...], text: str) -> Iterator[Row]:
        yield self._row(triples, text, _ENTAILED, (), triples)
        mentioned = [triple for triple in triples if mentions(text, triple.value)]
        if not mentioned:
            return
        chosen = self.chooser.choice(mentioned)
        rest = tuple(triple for triple in triples if triple is not chosen)
        if not any(
            same_value(item.value, chosen.value) or mentions(item.subject, chosen.value)
            for item in rest
        ):
            yield self._row(rest, text, _NEUTRAL, _found(text, chosen.value), rest)
        others = [triple for triple in triples if triple.property == chosen.property]
        value = near_miss(chosen.value, self.chooser) if self.chooser.random() < 0.5 else None
        value = value or self.chooser.choice(self.values[chosen.property])
        if len(others) == 1 and not same_value(value, chosen.value) and not mentions(text, value):
            wrong = chosen.model_copy(update={"value": value})
            changed = tuple(wrong if triple is chosen else triple for triple in triples)
            yield self._row(changed, text, _CONTRADICTED, _found(text, chosen.value), (wrong,))
        turned = self._other_relation(chosen)
        if turned is not None:
            yield self._row((*rest, turned), text, _NEUTRAL, None, None)

    def _other_relation(self, triple: Triple) -> Triple | None:
        """Another relation of the same two names, or the same one the other way round."""
        for item, other in (*MIXED_UP, *(pair[::-1] for pair in MIXED_UP)):
            if triple.property == item:
                return triple.model_copy(update={"property": other})
        if self.chooser.random() < 0.3 and triple.value[:1].isupper():
            turned = {"subject": triple.value, "value": triple.subject}
            return triple.model_copy(update=turned)
        return None

    def _row(
        self,
        triples: Sequence[Triple],
        text: str,
        nli: int,
        span: tuple[int, int] | tuple[()] | None,
        cited: Sequence[Triple] | None,
    ) -> Row:
        subjects = {triple.subject for triple in triples}
        added = [
            item
            for item in self.chooser.sample(
                self.everything, min(len(self.everything), self.chooser.randrange(DISTRACTORS + 1))
            )
            if item.subject not in subjects and not mentions(text, item.value)
        ]
        shown = [*triples, *added]
        self.chooser.shuffle(shown)
        kept = None if cited is None else frozenset(
            place for place, item in enumerate(shown) if any(item is other for other in cited)
        )  # fmt: skip
        category = (_SUPPORTIVE, _PARTIAL, _CONTRADICTORY)[nli]
        return Row(
            premise="",
            hypothesis=text,
            source=self.source,
            nli=nli,
            attribution=(category,) if cited or category != _PARTIAL else (_PARTIAL, _IRRELEVANT),
            claim=_CLAIM,
            statements=tuple(item.statement for item in shown) or ("Nothing is known.",),
            span=span,
            cited=kept,
        )


def _found(text: str, value: str) -> tuple[int, int] | None:
    """Position of a value in a text as written; None if the text paraphrases it."""
    match = re.search(re.escape(value), text, re.IGNORECASE)
    return None if match is None else match.span()


def _plain(text: str) -> str:
    return " ".join(text.replace("_", " ").strip('"').split())
