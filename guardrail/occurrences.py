"""Where a value stands in a sentence: whole, in other words, in part, as a date or a number.

No model takes part. A value that stands there need not be told of a triple's subject and
property; ``guardrail.matching`` and the modules behind it decide that.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from guardrail.degrees import grades_another, told_by_degree
from guardrail.naming import (
    KINDS,
    Name,
    SentenceTokens,
    Span,
    initials,
    middle_aside,
    name_of,
    numeral,
    runs,
)
from guardrail.nations import PROPER, names_another
from guardrail.quantities import Quantity, find_quantity, quantity_of
from guardrail.text.values import (
    Agreement,
    Date,
    Token,
    agreement,
    find_dates,
    word_set,
)
from guardrail.truths import telling, truth_value
from guardrail.types import Triple
from guardrail.vocabulary import (
    STOP_WORDS,
    cues,
    describes_entity,
    is_language,
    is_nationality,
    is_place,
    is_tie,
    property_words,
)

__all__ = ["find_value", "in_institution", "in_title", "inside", "names_value", "within"]

FIRST_SURE_YEAR = 1000
"""Smaller numbers are read as years only where a held date and the word before them say so."""

BEFORE_YEARS = frozenset({"in", "c", "ca", "around", "about", "circa", "year", "ad", "of", "since"})

PLACING = word_set("of in on to into at through throughout across within")
"""Words before a country that tell a place, or whose something is."""

INSTITUTIONS = word_set(
    "university college school institute academy conservatory church bishop archbishop museum "
    "hospital duke earl count king queen bank battle siege treaty"
)
"""Words that make a place behind *of* a part of a name."""

WORKS = word_set("film movie novel music song fiction book series show game literature comics")
"""Nouns for kinds of works that a genre goes without."""

NOT_THE_HEAD = word_set("vice deputy assistant associate acting honorary former pseudo anti ex sub")
"""Words before a noun that make something else of it: a vice president is no president."""


def find_value(
    sentence: SentenceTokens,
    value: Name,
    triple: Triple,
    subject_spans: tuple[Span, ...],
    others: Sequence[Span],
) -> tuple[float, tuple[Span, ...], Date | None]:
    """How much of a value stands in a sentence: share, places, finer date.

    A piece of a whole name of something else, at one of ``others``, is no piece of the value.
    """
    if value.date is not None:
        dated = _find_date(sentence, value.date, triple.value)
        if dated[1] or value.number is None:
            return dated
        return *find_quantity(sentence, Quantity(value.number, None), bare=True), None
    if truth_value(triple.value) is not None:
        return _find_truth(sentence, triple, (*subject_spans, *others))
    if not value.tokens:
        return 0.0, (), None
    quantity = quantity_of(triple.value)
    if value.number is not None:
        held = quantity or Quantity(value.number, None)
        return *find_quantity(sentence, held, bare=True), None
    if quantity is not None:
        return *find_quantity(sentence, quantity, bare=False), None
    named = runs(sentence, value.tokens) or initials(sentence, value.tokens)
    if not named and is_tie(triple.property):
        named = middle_aside(sentence, value.tokens)
    whole = tuple(
        span
        for span in named
        if not _among(span, subject_spans) and not grades_another(sentence, span, triple.property)
    )
    form = _other_words(sentence, value, triple, subject_spans) or told_by_degree(sentence, triple)
    if whole:
        # Told as a place here, a country may be told as a nationality there.
        return 1.0, whole + form if is_nationality(triple.property) else whole, None
    if form:
        return 1.0, form, None
    taken = (*subject_spans, *others)
    # What a person shares with a relation, the family's name, names neither.
    shared = (
        {token.folded for token in name_of(triple.subject).tokens}
        if is_tie(triple.property)
        else set()
    )
    part_of_name = _name_part(sentence, value, taken, shared)
    if part_of_name:
        return 1.0, part_of_name, None
    head = _head(sentence, value, triple) or _specifier(sentence, value, triple)
    if head:
        return 1.0, head, None
    spans: list[Span] = []
    hits = 0.0
    exact = bool(value.others) and is_nationality(triple.property)  # no Nigerian is from Niger
    for number, part in enumerate(value.tokens):
        places = [
            place
            for place in sentence.by_stem.get(part.stem, ())
            if not inside(sentence.tokens[place], taken)
            and part.folded not in shared
            and not grades_another(sentence, _span(sentence, place), triple.property)
            and not (exact and sentence.tokens[place].folded != part.folded)
            and not (
                len(value.tokens) == 1
                and sentence.tokens[place].folded != part.folded
                and (_opens_name(sentence, place) or is_language(triple.property))
            )
        ]
        if not places and numeral(part, number):
            return 0.0, (), None  # Bahram III is not Bahram I in part
        if places:
            hits += 1.0
            found = [sentence.tokens[place] for place in places]
            spans += [(token.start, token.end) for token in found]
    return hits / len(value.tokens), tuple(sorted(set(spans))), None


def _span(sentence: SentenceTokens, place: int) -> Span:
    return sentence.tokens[place].start, sentence.tokens[place].end


def _other_words(
    sentence: SentenceTokens, value: Name, triple: Triple, subject_spans: Sequence[Span]
) -> tuple[Span, ...]:
    """Where other words stand for a whole value: *Dutch*, *a South African*."""
    found = []
    for name in value.others:
        first, *rest = name.split()
        for place in sentence.by_folded.get(first, ()):
            last = place + len(rest)
            token = sentence.tokens[place]
            if (
                [one.folded for one in sentence.tokens[place + 1 : last + 1]] == rest
                and not inside(token, subject_spans)
                and not (place and names_another(sentence.tokens[place - 1].folded, name))
                and (name != "us" or token.text.isupper())
                and (name not in PROPER or token.text[0].isupper())
                and not _opens_name(sentence, last)
                and not (is_place(triple.property) and not _told_as_place(sentence, place))
            ):
                found.append((token.start, sentence.tokens[last].end))
    return tuple(found)


def _told_as_place(sentence: SentenceTokens, place: int) -> bool:
    """Whether a preposition leads to a country: *lived in the USA*, not *a French actor*."""
    before = [token.folded for token in sentence.tokens[:place] if token.folded != "the"]
    return bool(before) and before[-1] in ("in", "at", "from", "to", "near", "of", "across")


def _opens_name(sentence: SentenceTokens, place: int) -> bool:
    """Whether a capitalised word follows: the *Italian Socialist Party* makes nobody Italian."""
    here, after = sentence.tokens[place], sentence.tokens[place + 1 : place + 2]
    return bool(after) and after[0].start - here.end == 1 and after[0].text[:1].isupper()


def in_title(sentence: SentenceTokens, span: Span, value: Name, label: str) -> bool:
    """Whether a country tells a place, or what rules it or is called by it, and no nationality.

    So it is in *king of Egypt*, *lived in Egypt* and *Egyptian Museum*; a *citizen of Egypt* is
    of it, and so is somebody *from Egypt*. No place tells an ethnic group either. Always False for
    any other property.

    Args:
        sentence: The prepared sentence.
        span: Where the country stands.
        value: Its name.
        label: The property.
    """
    ethnic = property_words(label) == "ethnic group"
    if not (ethnic or is_nationality(label)):
        return False
    parts = {part.folded for part in value.tokens}
    before = [token for token in sentence.tokens if token.end <= span[0]]
    while before and before[-1].folded in parts | {"the"}:
        before.pop()
    if ethnic:
        return bool(before) and before[-1].folded in PLACING - {"of"}
    if before and before[-1].folded in PLACING:
        return len(before) < 2 or before[-2].stem not in cues(label)
    last = next(n for n, token in enumerate(sentence.tokens) if token.end >= span[1])
    return _opens_name(sentence, last)


def in_institution(sentence: SentenceTokens, span: Span, label: str) -> bool:
    """Whether a place stands in the name of an institution only: *the University of Amsterdam*."""
    before = [token for token in sentence.tokens if token.end <= span[0]][-2:]
    return (
        is_place(label)
        and len(before) == 2
        and before[1].folded == "of"
        and before[0].text[0].isupper()
        and before[0].folded in INSTITUTIONS
    )


def names_value(sentence: SentenceTokens, spans: Sequence[Span], value: str) -> bool:
    """Whether pieces of a value hold any name of it: a *family* is not the Bach family."""
    if not any(word[:1].isupper() for word in value.split()):
        return True
    starts = {start for start, _ in spans}
    return any(token.text[0].isupper() for token in sentence.tokens if token.start in starts)


def _head(sentence: SentenceTokens, value: Name, triple: Triple) -> tuple[Span, ...]:
    """Where the noun stands that a description specifies: a *travel writer* is a *writer*."""
    words = triple.value.split()
    if (
        len(words) < 2
        or not triple.value.islower()
        or not all(word.isalpha() for word in words)
        or not describes_entity(triple.property)
        or NOT_THE_HEAD & set(words)
    ):
        return ()
    noun = value.tokens[-1].folded
    return tuple(
        (token.start, token.end)
        for form in (noun, f"{noun}s")
        for place in sentence.by_folded.get(form, ())
        if (token := sentence.tokens[place]).text.islower()
    )


def _specifier(sentence: SentenceTokens, value: Name, triple: Triple) -> tuple[Span, ...]:
    """Where a genre stands without the kind of work: a *thriller film* is a *thriller*."""
    if "genre" not in property_words(triple.property) or len(value.tokens) < 2:
        return ()
    *first, last = value.tokens
    return runs(sentence, first) if last.folded in WORKS else ()


def _name_part(
    sentence: SentenceTokens, value: Name, taken: Sequence[Span], shared: set[str]
) -> tuple[Span, ...]:
    """Where the first or last name of a person stands alone: ``Orazio`` or ``Gentileschi``."""
    if not 2 <= len(value.tokens) <= 4 or not all(part.text[:1].isupper() for part in value.tokens):
        return ()
    if KINDS & {part.folded for part in value.tokens}:
        return ()
    names = {part.folded for part in value.tokens}
    spans = []
    for part in (value.tokens[-1], value.tokens[0]):
        if numeral(part, value.tokens.index(part)) or part.folded in shared:
            continue
        for place in sentence.by_folded.get(part.folded, ()):
            token = sentence.tokens[place]
            beside = sentence.tokens[max(0, place - 1) : place + 2]
            alone = all(
                one.folded in names
                or not one.text[:1].isupper()
                or (one.folded in STOP_WORDS and not (one.start > token.start and numeral(one, 1)))
                for one in beside
            )
            if token.text[:1].isupper() and alone and not inside(token, taken):
                spans.append((token.start, token.end))
    return tuple(spans)


def _find_date(
    sentence: SentenceTokens, held: Date, written: str
) -> tuple[float, tuple[Span, ...], Date | None]:
    # "1370-01-01" is read as the year alone, but whoever tells that very day tells no more.
    spelt = find_dates(written)
    for date in sentence.dates:
        relation = agreement(date, held)
        if relation is not Agreement.CONFLICT:
            same = any((date.month, date.day) == (one.month, one.day) for one in spelt)
            finer = date if relation is Agreement.FINER and not same else None
            return 1.0, ((date.start, date.end),), finer
    if 0 < held.year < FIRST_SURE_YEAR:
        for place in sentence.by_folded.get(str(held.year), ()):
            if place and sentence.tokens[place - 1].folded in BEFORE_YEARS:
                token = sentence.tokens[place]
                return 1.0, ((token.start, token.end),), None
    return 0.0, (), None


def _find_truth(
    sentence: SentenceTokens, triple: Triple, names: Sequence[Span]
) -> tuple[float, tuple[Span, ...], Date | None]:
    """Where a property is told that holds or does not; ``guardrail.clauses`` reads which."""
    spans = tuple(
        (token.start, token.end)
        for word in telling(triple.property, sentence.by_stem)
        for place in sentence.by_stem[word]
        if not inside(token := sentence.tokens[place], names) and not _in_name(sentence, place)
    )
    return (1.0, spans, None) if spans else (0.0, (), None)


def _in_name(sentence: SentenceTokens, place: int) -> bool:
    """Whether a capitalised word stands beside another one: the *Kids* Museum."""
    if not place or not sentence.tokens[place].text[:1].isupper():
        return False
    return any(one.text[:1].isupper() for one in sentence.tokens[place - 1 : place + 2 : 2])


def inside(token: Token, spans: Iterable[Span]) -> bool:
    """Whether a token stands in one of several stretches."""
    return any(start <= token.start and token.end <= end for start, end in spans)


def within(span: Span, spans: Iterable[Span]) -> bool:
    """Whether a stretch is a piece of one of several longer ones."""
    return any(
        start <= span[0] and span[1] <= end and end - start > span[1] - span[0]
        for start, end in spans
    )


def _among(span: Span, spans: Iterable[Span]) -> bool:
    return any(start <= span[0] and span[1] <= end for start, end in spans)
