"""Edits: the words of a contradicted sentence that a statement of the evidence replaces.

A check that finds a contradiction names the statement and the words; the edit writes the
statement's value there: a number, date or code, yes or no, or, where the judge alone finds the
contradiction, a name. An edit that is not certain is not made.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from itertools import combinations, pairwise
from typing import TYPE_CHECKING, NamedTuple

from guardrail.core.text.dates import ClockTime, Date, days_of_cell, find_weekdays, through
from guardrail.core.text.lexicon import lexicon, lexicon_set
from guardrail.core.text.names import part_of_name_in
from guardrail.core.text.quantities import Quantity
from guardrail.core.text.tagging import parse
from guardrail.core.text.units import MONEY, Unit, cues, property_name
from guardrail.core.text.values import Agreement, TypedValue, compare, find_values
from guardrail.core.text.words import (
    Span,
    content_stems,
    fold,
    meets,
    outside,
    property_words,
    tokenise,
)
from guardrail.core.types import Effect, Verdict
from guardrail.verdict.checks.base import LIKELY, NAMED, named_share

if TYPE_CHECKING:
    from spacy.tokens import Span as Words
    from spacy.tokens import Token

    from guardrail.core.types import Finding
    from guardrail.evidence.statements import Statement
    from guardrail.verdict.checks.base import Premises
    from guardrail.verdict.claims import Claim
    from guardrail.verdict.combination import Outcome


QUALIFIER = re.compile(r"(?<!\s)\s*\([^()]*\)\s*$")
"""What distinguishes namesakes in labels; prose omits it."""

MODIFIERS = frozenset({"amod", "compound", "nmod"})
NOUNS = frozenset({"NN", "NNS", "NNP", "NNPS"})
RELATIVE = frozenset({"WDT", "WP", "WP$", "WRB"})


class Edit(NamedTuple):
    """Words of a sentence and their replacement."""

    start: int
    end: int
    text: str
    number: int


class Proposal(NamedTuple):
    """A contradicted sentence and how it may be corrected; offsets are those of the clean answer.

    Attributes:
        start: Offset of the sentence.
        end: Offset past it.
        original: The sentence.
        edits: The edits; empty if none is certain.
        sources: The statement of each edit; without edits, the one that contradicts the sentence.
    """

    start: int
    end: int
    original: str
    edits: tuple[Edit, ...]
    sources: tuple[Statement, ...]


def replaced(text: str, edits: Sequence[Edit]) -> str:
    """A text with edits applied, which must not overlap."""
    for edit in sorted(edits, reverse=True):
        text = text[: edit.start] + edit.text + text[edit.end :]
    return text


def proposed(
    claim: Claim, evidence: Premises, findings: Sequence[Finding], outcome: Outcome
) -> list[Proposal]:
    """How one sentence may be corrected: every finding against it, or nothing.

    In an unsupported sentence its one unsupported name, value or group of days is replaced, if the
    sentence names the property of exactly one fact that it does not state.
    """
    statements = evidence.indexed.statements
    if outcome.verdict is Verdict.UNSUPPORTED:
        leans = outcome.weighed and outcome.weighed.contradiction > outcome.weighed.support
        edits = _of_name(claim, evidence, None, conflicts=bool(leans))
        if leans and not findings:
            edits = edits or _of_judge(claim, evidence, None) or _of_days(claim, evidence)
        sources = tuple(statements[edit.number] for edit in edits)
        place = claim.stretch[1:]
        return [Proposal(*place, claim.stretch.text, tuple(edits), sources)] if edits else []
    if outcome.verdict is not Verdict.CONTRADICTED:
        return []
    each: dict[tuple[int, ...], tuple[Edit, ...]] = {}
    findings = _nearest(claim, findings, evidence)
    decided = {(finding.start, finding.end) for finding in findings if finding.decides}
    for finding in findings:
        if not finding.decides and (finding.start, finding.end) in decided:
            continue
        if finding.effect is Effect.CONTRADICTS:  # several checks may find one difference
            key = finding.start, *finding.statements
            each[key] = each.get(key) or _of_finding(claim, finding, evidence)
    edits = sorted({edit for found in each.values() for edit in found})
    if not each and outcome.against is not None:
        against = outcome.against
        edits = _of_judge(claim, evidence, against) or _of_days(claim, evidence)
        edits = edits or _of_name(claim, evidence, against, conflicts=True)
    writes = Counter(edit.number for edit in edits)
    if (
        not all(each.values())
        or any(first.end > second.start for first, second in pairwise(edits))
        or any(meets((edit.start, edit.end), claim.mentions) for edit in edits)
        or any(len(statements[n].values or "?") < count for n, count in writes.items() if
               statements[n].yes is None)
    ):  # fmt: skip
        edits = []
    numbers = [edit.number for edit in edits]
    if not edits and outcome.against is not None:
        numbers = [outcome.against]
    sources = tuple(statements[number] for number in numbers)
    return [Proposal(*claim.stretch[1:], claim.stretch.text, tuple(edits), sources)]


def _nearest(claim: Claim, findings: Sequence[Finding], evidence: Premises) -> list[Finding]:
    """Without contradictions of one fact by several values, except the one at its property's word.

    Of *18 g of fat and 1.4 g of protein* the second is against *protein: 1.8 g*.
    """
    against: dict[tuple[int, ...], list[Finding]] = {}
    for item in findings:
        if item.effect is Effect.CONTRADICTS and not item.decides:
            against.setdefault(item.statements, []).append(item)
    dropped: list[Finding] = []
    for (number, *others), some in against.items():
        fact = evidence.indexed.statements[number].fact
        if fact is None or others or len({item.start for item in some}) < 2:
            continue
        at = [item for item in some if _stands_at(claim, item, cues(fact.property))]
        if len({item.start for item in at}) == 1:
            dropped += [item for item in some if item not in at]
    return [item for item in findings if item not in dropped]


def _stands_at(claim: Claim, item: Finding, words: frozenset[str]) -> bool:
    """True if only function words stand between a value and a word of its property."""
    start, end = item.start - claim.stretch.start, item.end - claim.stretch.start
    stop = lexicon_set("function_words", "stop_words")
    for token in claim.tokens:
        between = claim.plain[token.end : start] or claim.plain[end : token.start]
        if token.stem in words and not {one.folded for one in tokenise(between)} - stop:
            return not re.search(r"[^\w\s]", between)
    return False


def _of_finding(claim: Claim, finding: Finding, evidence: Premises) -> tuple[Edit, ...]:
    from guardrail.verdict.checks.hours import certain_times

    statements = [evidence.indexed.statements[number] for number in finding.statements]
    if not statements or any(item.fact and not evidence.speaks_of(item) for item in statements):
        return ()  # a fact about another subject corrects nothing
    number, statement = finding.statements[0], statements[0]
    span = finding.start - claim.stretch.start, finding.end - claim.stretch.start
    if statement.yes is not None:
        return _of_yes_no(claim, span, number, statement)
    if finding.check == "hours" and finding.instead is None:
        return _of_opening(claim, number, statement)
    claimed = next((item for item in claim.values if item.start == span[0]), None)
    if claimed is None:
        text = _of_cell(claim, span, finding, statement)
        return (Edit(*span, text, number),) if text else ()
    if statement.fact is None and not finding.decides:
        return _of_prose(claim, claimed, evidence)
    values = certain_times(statement.values) if finding.check == "hours" else statement.values
    held = (
        item
        for item in values
        if item.text == finding.instead and compare(claimed, item) is Agreement.CONFLICT
    )
    found = (value_edit(claim.text, claimed, item, number) for item in held)
    return tuple(edit for edit in found if edit is not None)[:1]


def _of_cell(claim: Claim, span: Span, finding: Finding, statement: Statement) -> str | None:
    """The text of a cell that a sentence gives the text of another row."""
    text = finding.instead
    if not text or not finding.decides or statement.is_typed or days_of_cell(text):
        return None
    text = QUALIFIER.sub("", text).strip()
    if claim.text[: span[0]].lower().endswith("the "):
        text = text.removeprefix("The ").removeprefix("the ")
    return text[:1].upper() + text[1:] if span[0] == 0 else text


# --- values ------------------------------------------------------------------------------


def value_edit(text: str, claimed: TypedValue, held: TypedValue, number: int) -> Edit | None:
    """The edit that writes a held value in place of a claimed one.

    Returns:
        None if no way to write it gives a sentence that agrees with the held value.
    """
    if _is_in_name(text, claimed):
        return None
    for new in _written(text, claimed, held):
        if claimed.text.endswith(".") and claimed.end == len(text):  # of *9 a.m.*
            new = f"{new.rstrip('.')}."
        start, words = _with_article(text, claimed.start, new)
        edit = Edit(start, claimed.end, words, number)
        end = start + len(words)
        if words != text[start : claimed.end] and any(
            item.start < end and start < item.end and compare(item, held) is Agreement.SAME
            for item in find_values(replaced(text, [edit]))
        ):
            return edit
    return None


def _of_opening(claim: Claim, number: int, statement: Statement) -> tuple[Edit, ...]:
    """*Open from 10:00 to 16:00*, where the evidence says closed, or the other way round."""
    from guardrail.verdict.checks.hours import VERB

    text, verbs = claim.text, [*VERB.finditer(claim.plain)]
    times = [item for item in claim.values if isinstance(item.value, ClockTime)]
    be = lexicon_set("grammar", "be")
    if len(verbs) != 1 or not {token.folded for token in claim.tokens if
                               token.end + 1 == verbs[0].start()} & be:  # fmt: skip
        return ()
    start, end = verbs[0].span()
    held = [item.text for item in statement.values if isinstance(item.value, ClockTime)]
    if verbs[0][3] and not times and len(held) == 2:
        return (Edit(start, end, f"open from {held[0]} to {held[1]}", number),)
    if not verbs[0][4] or held:
        return ()
    rest = ""
    if times:
        before = claim.plain[: times[0].start].rstrip()
        word = before.rpartition(" ")[2]
        if word.lower() in lexicon_set("function_words", "stop_words"):
            before = before.removesuffix(word).rstrip()
        if len(before) < end:
            return ()
        rest, end = text[end : len(before)], times[-1].end
    return (Edit(start, end, f"closed{rest}", number),)


def _is_in_name(text: str, claimed: TypedValue) -> bool:
    """True for a bare number right behind a capitalised word: *Gubbio 1910*."""
    before = re.search(r"(?<!\w)(\w++)\s$", text[: claimed.start])
    stop = lexicon_set("function_words", "stop_words")
    return (
        claimed.text.isdigit()
        and before is not None
        and before[1][0].isupper()
        and fold(before[1]) not in stop
    )


def _of_judge(claim: Claim, evidence: Premises, against: int | None) -> list[Edit]:
    """The only value of a sentence that nothing supports, if the judge finds the contradiction.

    It becomes the value of the fact whose property the sentence names best, which is ``against`` if
    that is given; or of prose that is.
    """
    statements = evidence.indexed.statements
    known = [value for _, item in evidence.chosen for value in item.values]
    left = [
        value
        for value in outside(claim.values, claim.mentions)
        if all(compare(value, item) is not Agreement.SAME for item in known)
    ]
    if len(left) != 1:
        return []
    if against is not None and statements[against].fact is None:
        alike = [item for item in known if item.kind == left[0].kind]
        if any(_are_sums(left[0], *pair) for pair in combinations(alike, 2)):
            return []
        return [*_of_prose(claim, left[0], evidence)]
    shares = {
        number: named_share(claim, item.fact.property)
        for number, item in evidence.indexed.facts_of(evidence.subjects)
        if item.fact and any(_comparable(left[0], value) for value in item.values)
    }
    best = [number for number, share in shares.items() if share == max(shares.values())]
    if against not in (None, *best) or len(best) != 1 or len(statements[best[0]].values) != 1:
        return []
    if against is None and shares[best[0]] < LIKELY:
        return []
    edit = value_edit(claim.text, left[0], statements[best[0]].values[0], best[0])
    return [] if edit is None else [edit]


def _are_sums(claimed: TypedValue, first: TypedValue, second: TypedValue) -> bool:
    """True for the sum or difference of two amounts, which contradicts neither of them."""
    low, a, b = (item.value.ends[0] if isinstance(item.value, Quantity) else None
                 for item in (claimed, first, second))  # fmt: skip
    if low is None or a is None or b is None:
        return False
    return any(math.isclose(low, result) for result in (a + b, abs(a - b)))


def _of_prose(claim: Claim, claimed: TypedValue, evidence: Premises) -> tuple[Edit, ...]:
    """The value of the one part of prose that shares most words with the claim."""
    from guardrail.verdict.checks.typed_values import parts_of

    words = claim.stems - content_stems(claimed.text)
    own = words - content_stems(" ".join(evidence.subjects))
    found = []
    for number, statement in evidence.chosen:
        held = [
            item
            for item in statement.values
            if _comparable(claimed, item) and not (claimed.kind == "time" and
                                                   _unit(item) != _unit(claimed))
        ]  # fmt: skip
        if held:
            found.append((len(words & statement.stems), len(own & statement.stems), number, held))
    found.sort(key=lambda item: -item[0])
    if not found or [item[0] for item in found[:2]] == [found[0][0]] * 2:
        return ()
    shared, alone, number, held = found[0]
    if shared < max(2, len(words) / 2):
        return ()
    if len(held) > 1:
        alike = [item for item in evidence.indexed.statements[number].values if
                 item.kind == claimed.kind]  # fmt: skip
        parts = parts_of(evidence.indexed.statements[number], alike)
        ranked = sorted((len(own & content_stems(text)), n) for n, (text, _) in enumerate(parts))
        held = [item for item in held if item in parts[ranked[-1][1]][1]]
        if len(held) != 1 or ranked[-1][0] == ranked[-2][0]:
            return ()
    edit = value_edit(claim.text, claimed, held[0], number)
    return () if edit is None or any(item[1] > alone for item in found) else (edit,)


def _of_days(claim: Claim, evidence: Premises) -> list[Edit]:
    """The days of the week of a sentence, if those of the only fact of its property are others."""
    said, text = find_weekdays(claim.text), claim.text
    found = [
        (number, held)
        for number, item in evidence.indexed.facts_of(evidence.subjects)
        if item.fact and (held := days_of_cell(item.fact.value))
        and named_share(claim, item.fact.property) >= LIKELY
    ]  # fmt: skip
    if len(said) != 1 or len(found) != 1 or said[0][0] <= found[0][1]:
        return []
    (_, start, end), ((number, held),) = said[0], found
    end -= text[start:end].endswith(".")
    new = evidence.indexed.statements[number].value_text.strip()
    several, was = len(held) > 1, len(said[0][0]) > 1
    ahead = re.search(r"\b(?:on|from) $", text[:start], flags=re.IGNORECASE)
    if several is not was and ahead and through().search(new) is not None:
        start, new = ahead.start(), f"{'From' if ahead[0][0].isupper() else 'from'} {new}"
    elif several or was:
        if several is not was:
            return []
    elif text[start:end].endswith("s") and not new.endswith("s"):
        new = f"{new}s"
    return [Edit(start, end, new, number)]


def _unit(item: TypedValue) -> Unit | None:
    return item.value.unit if isinstance(item.value, Quantity) else None


def _comparable(claimed: TypedValue, held: TypedValue) -> bool:
    mine, theirs = claimed.value, held.value
    if isinstance(mine, Quantity) and isinstance(theirs, Quantity) and mine.per != theirs.per:
        return False
    return claimed.kind == held.kind and compare(claimed, held) is Agreement.CONFLICT


def _written(text: str, claimed: TypedValue, held: TypedValue) -> Iterator[str]:
    """Ways to write a held value, the one that is most like the sentence's own first."""
    mine, theirs = claimed.value, held.value
    if isinstance(mine, Quantity) and isinstance(theirs, Quantity):
        yield from _quantities(text, mine, theirs, held.text)
    elif isinstance(mine, Date) and isinstance(theirs, Date):
        yield from _dates(claimed.text, mine, theirs.real)
    elif isinstance(mine, ClockTime) and isinstance(theirs, ClockTime):
        hours, minutes = divmod(theirs.minutes, 60)
        half = re.search(r"(\s?)[ap](\.?m\.?)$", claimed.text)
        if half and (theirs.half or hours >= 12):
            shown = f"{hours % 12 or 12}:{minutes:02}" if minutes else f"{hours % 12 or 12}"
            yield f"{shown}{half[1]}{'p' if hours >= 12 else 'a'}{half[2]}"
        yield held.text
    else:
        yield held.text.lstrip("v") if claimed.kind == "version" else held.text


def _quantities(text: str, mine: Quantity, held: Quantity, held_text: str) -> Iterator[str]:
    """Between units the decimal point may move, or whole become whole: 0.75 m is 75 cm, 14 days are
    two weeks, and six weeks no months.
    """
    scale = held.unit.factor / mine.unit.factor if mine.unit and held.unit else 1.0
    moved, wholes = math.log10(abs(scale)), (max(scale, 1 / scale), held.low * scale)
    whole = all(abs(one - round(one)) < 1e-9 for one in wholes)
    offset = mine.unit != held.unit and mine.unit and held.unit and mine.unit.offset
    rates = mine.per and held.per and mine.per != held.per
    if rates or (abs(moved - round(moved)) > 1e-9 and not whole):
        return
    value = round(held.low * scale, 9)
    counts = (mine.high == 1) is not (value == 1)
    after = text[mine.number_end : mine.end] or text[mine.end :][:2]
    if offset or (value and abs(mine.low / value) > 1e4):
        return
    ranges = held.low != held.high or mine.low != mine.high
    if ranges or (counts and after[-1:].isalpha()):
        if mine.unit == held.unit and (ranges or mine.unit is not None):
            yield held_text
        return
    written = text[mine.start : mine.number_end]
    figures = re.search(r"\d(?:[\d,.' ]*\d)?", written)
    behind = text[mine.number_end : mine.end]
    sign = "-" if value < 0 else ""
    if number := _scaled(abs(value), abs(mine.low), written):
        yield f"{sign}{number}{behind}"
    before = "" if mine.words or figures is None else written[: figures.start()].removeprefix("-")
    number = (mine.words and _in_words(value, written)) or _figures(value, written, held_text, mine)
    yield f"{sign}{before}{number}{behind}"


def _scaled(value: float, mine: float, written: str) -> str | None:
    """A number in the sentence's scale, *3.8 million*, if at most two decimals tell it."""
    scaled = re.fullmatch(r"-?(\d+(?:\.\d+)?)( ?(?:thousand|[mb]illion|trillion))", written)
    shown = value / mine * float(scaled[1]) if scaled and mine else 0.0
    short = 1 <= shown < 1000 and abs(shown - round(shown, 2)) < 1e-9
    return f"{round(shown, 2):,.10g}{scaled[2]}" if scaled and short else None


def _in_words(value: float, written: str) -> str | None:
    """A small whole number in words."""
    units = lexicon("numbers")["units"]
    word: str | None = next((word for word, size in units.items() if size == value), None)
    return word and (word.capitalize() if written[0].isupper() else word)


def _figures(value: float, written: str, held: str, mine: Quantity) -> str:
    """A number in figures, with thousands separated as in the sentence or else in the evidence."""
    places = next((n for n in range(7) if abs(round(value, n) - value) < 1e-9), 6)
    cents = places == 1 or (not places and re.search(r"\.\d\d$", written))
    if cents and mine.unit and mine.unit.measure.startswith(MONEY):
        places = 2
    mark = "," if abs(value) >= 10_000 else ""
    for like in (held, written):
        if separated := re.search(r"\d([,' ])\d{3}(?!\d)", like):
            mark = separated[1]
        elif re.search(r"\d{4}", like):
            mark = ""
    return f"{abs(value):,.{places}f}".replace(",", mark)


def _dates(written: str, mine: Date, held: Date) -> Iterator[str]:
    """A date with as many parts as the sentence gives, if the evidence has them."""
    periods = max(mine.span, held.span, mine.months, held.months) > 1
    if periods or ((held.year or 0) < 1 and (mine.year is not None or held.year is not None)):
        return
    if mine.month is None:
        yield str(held.year)
    if mine.month is None or held.month is None or (mine.day and not held.day):
        return
    named = re.match(r"([A-Za-z]+)(\W+(?:the )?)", written) if mine.weekday is not None else None
    if named:
        if held.falls_on is not None:
            day = lexicon("calendar")["weekdays"][held.falls_on].title()
            lead = (day if named[1].endswith("day") else day[:3]) + named[2]
            rest = _dates(written[named.end() :], mine._replace(weekday=None), held)
            yield from (lead + item for item in rest)
        return
    if re.match(r"\d{4}-", written):
        yield f"{held.year:04}-{held.month:02}" + (f"-{held.day:02}" if mine.day else "")
        return
    month = lexicon("calendar")["months"][held.month - 1].capitalize()
    year = "" if mine.year is None else f" {held.year}"
    if mine.day is None:
        yield f"{month}{year}"
    elif written[:1].isdigit():
        yield f"{held.day} {month}{year}"
    else:
        yield f"{month} {held.day}{year and ','}{year}"


def _with_article(text: str, start: int, new: str) -> tuple[int, str]:
    """Where a replacement starts and what it writes, with a fitting article before it."""
    before = re.search(r"\b(?P<article>an?)\s$", text[:start], flags=re.IGNORECASE)
    article = before and before["article"][0] + ("n" if _opens_with_vowel(new) else "")
    if before is None or article == before["article"]:
        return start, new
    return before.start(), f"{article}{text[before.end('article') : start]}{new}"


def _opens_with_vowel(words: str) -> bool:
    """True if the first word is spoken with a vowel at its start."""
    word = fold(re.split(r"[\s-]", words.lstrip("\"'(*_"))[0])
    if word[:1].isdigit():
        # Figures that are spoken with a vowel first: eight, eleven, eighteen
        return re.match(r"8|1[18](?!\d)(?!,\d{3},)", word) is not None
    sounds = lexicon("grammar")
    vowel = word[:1] in "aeiou" and not word.startswith(tuple(sounds["consonant"]))
    return vowel or word.startswith(tuple(sounds["silent"]))


# --- names -------------------------------------------------------------------------------


def _of_name(
    claim: Claim, evidence: Premises, against: int | None, *, conflicts: bool
) -> list[Edit]:
    """The only name of a sentence that nothing supports becomes the value of a fact."""
    names = _unsupported_names(claim, evidence, conflicts=conflicts)
    if len(names) != 1:
        return []
    text, (start, end) = claim.text, names[0]
    number = _unstated(claim, evidence, text[start:end], against, conflicts=conflicts)
    if number is None:
        return []
    statement = evidence.indexed.statements[number]
    fact = statement.fact
    if fact is None or not evidence.speaks_of(statement) or not _is_name(statement):
        return []
    facts = evidence.indexed.facts_of(evidence.subjects)
    values = {item.fact.value for _, item in facts if item.fact and
              item.fact.property == fact.property}  # fmt: skip
    new = QUALIFIER.sub("", fact.value).strip()
    if start > 4 and text[:start].endswith("The "):
        start -= 4  # *close to The Sorrento*
    elif text[:start].lower().endswith("the "):
        new = new.removeprefix("The ").removeprefix("the ")
    rest, own = content_stems(f"{text[:start]} {text[end:]}"), content_stems(new)
    again = own <= rest or own & rest - content_stems(fact.subject)
    if len(values) > 1 or again or not _may_replace(text[start:end], new):
        return []
    [doc] = parse([text])
    name = doc.char_span(start, end, alignment_mode="expand")
    if name is None:
        return []
    if re.search(r"\b[A-Z]\w* (?:and|&) $", text[:start]):
        return []  # *Faber and Faber*
    nation = _nation(text[start:end]) and (number == against or "peoples" in _nation(new))
    if not nation and not _fills(claim, name, fact.property):
        return []  # nor a part of a longer name: the *Brown* of *Brown sauce*
    start, new = _with_article(text, start, new)
    return [Edit(start, end, new, number)]


def _fills(claim: Claim, name: Words, label: str) -> bool:
    """Whether a name is what a sentence gives as a property: its complement, agent or modifier.

    *The designer is X*, *X is the designer*, *designed by X*, *French food*, *is in X* of a
    location; but not *the designer lives in X*.
    """
    wanted, words = (
        content_stems(property_words(label)) | cues(label),
        frozenset(lexicon("properties")["wording"].get(property_name(label), ())),
    )
    word, head, be = name.root, name.root.head, lexicon_set("grammar", "be")

    def says(tokens: Iterable[Token]) -> bool:
        return any(content_stems(token.text) & wanted for token in tokens)

    if says(one for one in word.children if one.dep_ in MODIFIERS and one.i < name.start):
        return True  # *under commander X*
    if word.dep_ == "pobj":  # *near X*, *located in X*, *close to X*, *the capital of X*
        up = head.head
        while any(value.start <= up.idx < value.end for value in claim.values):
            up = up.head  # *born on 15 March in X*
        governs = up.tag_[0] in "VJR" or head.lower_ == "of"
        stands = head.lower_ in words and up.lower_ in be
        slots = lexicon_set("grammar", "slots")
        return says([head]) or stands or (governs and head.lower_ in slots and says([up]))
    if says([head]) or word.dep_ in MODIFIERS:
        return says([head])
    subjects = ("attr", "nsubj", "nsubjpass")
    siblings = [one for one in head.children if one.dep_ in subjects and one != word]
    if word.dep_ == "dobj":  # *has X as its leader*
        siblings = [one for prep in head.children if prep.lower_ == "as" for one in prep.children]
    joins = head.lower_ in be or word.dep_ in ("dobj", "oprd")  # *the leader is called X*
    return joins and says(siblings)


def _unstated(
    claim: Claim, evidence: Premises, name: str, against: int | None, *, conflicts: bool
) -> int | None:
    """The only fact that a sentence does not state and whose property it names, or ``against``.

    If the sentence is in conflict with its evidence, half of the property's words name it, and a
    people (*a Japanese coffee shop*) stands for the only fact that gives one.
    """
    stems, statements = content_stems(claim.plain), evidence.indexed.statements
    shares: dict[int, float] = {}
    for number, item in evidence.chosen:
        if item.fact is None or not evidence.speaks_of(item) or not _is_name(item):
            continue
        if not claim.where(item) and not content_stems(item.fact.value.partition(",")[0]) <= stems:
            label = re.sub(r"[ _]name$", "", item.fact.property, flags=re.IGNORECASE)
            shares[number] = named_share(claim, label)
    named = [number for number, share in shares.items() if share >= NAMED]
    partly = [number for number, share in shares.items() if share >= LIKELY]
    if not conflicts:
        found = named if named == partly else []
    elif "peoples" in _nation(name):
        found = [n for n in shares if "peoples" in _nation(statements[n].value_text.strip())]
    else:
        found = named or partly
    return found[0] if len(found) == 1 else against if against in shares else None


def _may_replace(name: str, new: str) -> bool:
    """Whether one name may stand in another's place.

    Nations stand for nations alone, and peoples for peoples. What is English is British: of one
    nation neither name is wrong.
    """
    alike = SequenceMatcher(a=fold(name), b=fold(new), autojunk=False).ratio()
    mine, theirs = _nation(name), _nation(new)
    if alike >= 0.85 or (mine != theirs and mine.isdisjoint(theirs)):
        return False
    both = {_folded(name), _folded(new)}
    rows = lexicon("nations")["nations"]
    return not any(both <= {*row["names"], *row["peoples"]} for row in rows)


def _nation(name: str) -> frozenset[str]:
    """``names`` or ``peoples``, as a name is a country's or a people's."""
    words, rows = _folded(name), lexicon("nations")["nations"]
    kinds = ("names", "peoples")
    return frozenset(kind for kind in kinds if any(words in row[kind] for row in rows))


def _folded(name: str) -> str:
    return " ".join(token.folded for token in tokenise(name))


def _is_name(statement: Statement) -> bool:
    value = statement.value_text.strip()
    short = len(value) <= 60 and value[:1].isupper()
    return short and not statement.values and statement.yes is None


def _unsupported_names(claim: Claim, evidence: Premises, *, conflicts: bool) -> list[Span]:
    """The names of a sentence that are no subject, value or property of the evidence.

    If all are and the sentence is in conflict with its evidence, those that are only the value of a
    property which it does not name, and a name that opens it.
    """
    found = _names_beyond(claim, evidence, claim.names, None)
    if found or not conflicts:
        return found
    said = {
        n for n, item in evidence.chosen if item.fact and named_share(claim, item.fact.property)
    }
    [doc] = parse([claim.text])
    first = [word for word in doc[:1] if word.tag_ in ("NNP", "NNPS")]
    opening = [(word.idx, word.idx + len(word)) for word in first]
    opening = [(a, b) for a, b in opening if not re.match(r",| and | or ", claim.text[b:])]
    names = [*(span for span in opening if not meets(span, claim.names)), *claim.names]
    return _names_beyond(claim, evidence, names, said)


def _names_beyond(
    claim: Claim, evidence: Premises, names: Sequence[Span], said: Collection[int] | None
) -> list[Span]:
    """Names without those of the sentence's subjects and of some statements, or of all."""
    text = claim.plain
    known = [*claim.mentions, *((value.start, value.end) for value in claim.values)]
    properties = frozenset[str]()
    for label in evidence.subjects:
        known += part_of_name_in(claim.tokens, label)
    for number, item in evidence.chosen:
        if evidence.speaks_of(item) and (said is None or number in said):
            known += claim.where(item)
        if item.fact:
            properties |= content_stems(property_words(item.fact.property))
    found: list[Span] = []
    light = properties | lexicon_set("function_words", "stop_words")
    for start, end in names:
        ahead = [token for token in claim.tokens if start <= token.start < end]
        while ahead and {ahead[0].stem, ahead[0].folded} & light:
            ahead = ahead[1:]  # *Near the Ranch*, *Architect Mirja Tamm*
        if not ahead or meets(span := (ahead[0].start, end), known):
            continue
        if found and text[found[-1][1] : span[0]] in (", ", " of ", " of the ", " & "):
            found[-1] = (found[-1][0], span[1])
        else:
            initials = re.search(r"(?<![\w.])(?:[A-Z]\. ?)+$", text[: span[0]])
            found.append((initials.start() if initials else span[0], span[1]))
    found = [(start, end) for start, end in found if not re.match(r" of (?:the )?[A-Z]", text[end:])
             and not re.search(r"\b[A-Z][\w'’-]* of (?:the )?$", text[:start])]  # fmt: skip
    if len(found) < 2 or evidence.grounding is None:
        return found
    words = [(word.start, word.end) for word in evidence.grounding.words if
             word.contradicted >= 0.5]  # fmt: skip
    return [span for span in found if meets(span, words)]


# --- yes and no --------------------------------------------------------------------------


def _of_yes_no(claim: Claim, span: Span, number: int, statement: Statement) -> tuple[Edit, ...]:
    """Negate a clause, or take its negation out, from its last verb before the property's words."""
    assert statement.fact is not None
    text = claim.stretch.text
    opener = re.match(r"(?P<word>yes|no)(?=,|\s[-–—])", text, flags=re.IGNORECASE)
    [doc] = parse([text])
    floor = max(span[0], opener.end() if opener else 0)
    clause = [token for token in doc if floor <= token.idx < span[1]]
    wanted = content_stems(property_words(statement.fact.property))
    named = [place for place, token in enumerate(clause) if content_stems(token.text) & wanted]
    finite = {"MD", "VBZ", "VBP", "VBD"}
    verbs = [n for n, token in enumerate(clause[: max(named, default=0)]) if token.tag_ in finite]
    clause = clause[verbs[-1] :] if verbs else []
    if not clause or any(token.tag_ in RELATIVE for token in doc[clause[0].i :]):
        return ()  # *has a car park, which is free*: the rest would refer to nothing
    found = _affirmed(clause) if statement.yes else _negated(clause)
    if found is None:
        return ()
    edits = (Edit(found[0], found[1], found[2], number),)
    word = "yes" if statement.yes else "no"
    if opener is None or fold(opener["word"]) == word:
        return edits
    word = word if opener["word"].islower() else word.capitalize()
    return (Edit(opener.start("word"), opener.end("word"), word, number), *edits)


def _negated(clause: Sequence[Token]) -> tuple[int, int, str] | None:
    """The first verb negated: *is not*, *cannot*, *has no*, *does not offer*."""
    verb, after = clause[0], clause[1] if len(clause) > 1 else None
    start, end, word = verb.idx, verb.idx + len(verb), verb.text
    if verb.lower_ in lexicon_set("grammar", "be") or verb.tag_ == "MD":
        return start, end, f"{word}{'' if verb.lower_ == 'can' else ' '}not"
    if verb.lower_ in lexicon_set("grammar", "have"):
        if after is None:
            return None
        if after.tag_ == "VBN" and after.dep_ not in MODIFIERS:
            return start, end, f"{word} not"
        if after.lower_ in lexicon_set("function_words", "articles"):
            return start, after.idx + len(after), f"{word} no"
        # *has two*, *has its own*, *has always been* are negated in another way
        adjectives = {"JJ", "JJR", "JJS", "VBG", "VBN"}
        return (start, end, f"{word} no") if after.tag_ in NOUNS | adjectives else None
    return (start, end, f"does not {_base(verb.lower_)}") if verb.tag_ == "VBZ" else None


def _affirmed(clause: Sequence[Token]) -> tuple[int, int, str] | None:
    """The only negation taken out: *is not* → *is*, *has no lift* → *has a lift*."""
    denials = [n for n, token in enumerate(clause) if token.dep_ == "neg" or token.lower_ == "no"]
    if len(denials) != 1 or not denials[0]:
        return None
    verb, word, after = clause[denials[0] - 1], clause[denials[0]], clause[denials[0] + 1 :]
    end = word.idx + len(word)
    if word.lower_ == "no":
        noun = next((token for token in after if token.tag_ in NOUNS), None)
        if noun is None:
            return None
        several = noun.tag_ in ("NNS", "NNPS") and noun.lower_.endswith("s")
        if several or noun.lower_.endswith(tuple(lexicon("grammar")["uncounted_endings"])):
            return verb.idx, end, verb.text
        return word.idx, end, "an" if _opens_with_vowel(after[0].text) else "a"
    if verb.lower_ in lexicon_set("grammar", "be") or verb.tag_ == "MD":
        return verb.idx, end, lexicon("grammar")["shortened"].get(verb.lower_, verb.text)
    polar = lexicon_set("grammar", "negative_polarity")
    if any(token.lower_ in polar for token in after):
        return None  # *does not allow any dogs*, *does not open at all*
    if verb.lower_ in ("do", "does") and after and after[0].tag_ == "VB":
        base = after[0].text
        shown = base if verb.lower_ == "do" else _third_person(base)
        return verb.idx, after[0].idx + len(base), shown
    return None


def _base(verb: str) -> str:
    """The base of a verb in the third person: *carries* → *carry*, *watches* → *watch*."""
    if verb.endswith(("sses", "shes", "ches", "xes", "zzes", "oes")):
        return verb[:-2]
    return f"{verb[:-3]}y" if verb.endswith("ies") and len(verb) > 4 else verb.removesuffix("s")


def _third_person(verb: str) -> str:
    """The third person of a verb: *carry* → *carries*, *watch* → *watches*, *have* → *has*."""
    if verb == "have":
        return "has"
    if verb.endswith("y") and verb[-2:-1] not in "aeiou":
        return f"{verb[:-1]}ies"
    return f"{verb}es" if verb.endswith(("s", "sh", "ch", "x", "z", "o")) else f"{verb}s"
