"""Numbers of a text with their units, bounds and precision: *more than 300 m*, *$160 million*."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import cache
from typing import NamedTuple

from guardrail.core.text.lexicon import lexicon
from guardrail.core.text.units import MONEY, Bound, Unit, currency_before, unit_behind
from guardrail.core.text.words import Token, digits_of, number_of, plain_figures, stem, tokenise

SCIENTIFIC = re.compile(
    r"(?P<figures>\d+(?:\.\d+)?)(?:[eE](?P<e>[+-]?\d{1,3})\b"
    r"|\s?[×x*]\s?10(?:\^(?P<power>-?\d{1,2})|(?P<raised>[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]{1,3})))"
)
"""*1.75E+01*, *5 × 10^6*, *5×10⁶*."""

SHORT_SCALE = re.compile(r"\s?([a-zA-Z]{1,3})\b")
VULGAR = re.compile(r"[¼½¾⅐-⅞]")
"""A fraction of one character, alone or behind a whole number."""


class Quantity(NamedTuple):
    """A number or range with its unit.

    Attributes:
        low: The number, or the lower end of a range, as written, in its own unit.
        high: The number, or the upper end.
        step: Size of the last digit that is written and not a closing zero, in the same unit.
        unit: Its unit, or None.
        bound: What it is put as.
        start: Offset of its first character, a sign of currency counted.
        end: Offset past its unit.
        words: Whether it is written in words alone.
        number_end: Offset past the number itself, of one that was not joined from several.
        worded: True if words give its sign: *a loss of 2 million*, *20 degrees below zero*.
        scaled: True if a word or letter scales its figures: *2.4 million*, *12k*.
        per: Stem of what it is a rate of: *month* of *€12 per month*; empty where it is none.
        change: True if it is a difference, multiple or span: *7 euros less*, *four times as much*.
    """

    low: float
    high: float
    step: float
    unit: Unit | None
    bound: Bound
    start: int
    end: int
    words: bool = False
    number_end: int = 0
    per: str = ""
    worded: bool = False
    scaled: bool = False
    change: bool = False

    @property
    def ends(self) -> tuple[float, float]:
        """Both ends in the first unit of what is measured."""
        low, high, unit = self.low, self.high, self.unit
        if unit is None:
            return low, high
        return low * unit.factor + unit.offset, high * unit.factor + unit.offset


class _Number(NamedTuple):
    value: float
    step: float
    start: int
    end: int
    words: bool
    scaled: bool = False


def find_quantities(text: str, taken: Sequence[tuple[int, int]] = ()) -> list[Quantity]:
    """All quantities of a plain text, in order; what is ``taken`` is something else: dates."""
    found: list[Quantity] = []
    for quantity in [_with_unit(text, number) for number in _numbers(text, taken)]:
        last = found[-1] if found else None
        if last is not None and (joined := _joined(text, last, quantity)) is not None:
            found[-1] = joined
        else:
            found.append(quantity)
    for place, quantity in enumerate(found):
        bounded = _bounded(text, quantity, found[place - 1].end if place else 0)
        if bounded.unit is None or bounded.unit.measure.startswith(MONEY):
            bounded = bounded._replace(per=per_what(text, bounded.end))
        found[place] = bounded
    return found


@cache
def _fractions() -> re.Pattern[str]:
    names = sorted(lexicon("numbers")["fractions"], key=len, reverse=True)
    return re.compile(rf"\b({'|'.join(map(re.escape, names))}) of\b(?! an? )", re.IGNORECASE)


def find_fractions(text: str) -> Iterator[Quantity]:
    """Fractions of a plain text as rough percentages: *two thirds of the boats*, *half of them*."""
    for match in _fractions().finditer(text):
        share = 100 * lexicon("numbers")["fractions"][match[1].lower()]
        unit = Unit("percent", 1.0)
        yield Quantity(share, share, 1.0, unit, Bound.ABOUT, *match.span(1), words=True)


def _numbers(text: str, taken: Sequence[tuple[int, int]]) -> list[_Number]:
    scales, known = lexicon("numbers")["short_scales"], _number_words()
    tokens, found = tokenise(text), []
    before = set[int]()
    for start, end in taken:
        before.update(range(start, end))
    place = 0
    while place < len(tokens):
        word = tokens[place].folded
        if word[0].isalpha() and word not in known:
            place += 1
            continue
        run = _run(text, tokens, place)
        if run is None or not before.isdisjoint(range(run.start, run.end)):
            place += 1
            continue
        scaled = _scaled(text, run, scales)
        found.append(scaled)
        while place < len(tokens) and tokens[place].start < scaled.end:
            place += 1
    return found


@cache
def _number_words() -> frozenset[str]:
    numbers = lexicon("numbers")
    return frozenset([*numbers["units"], *numbers["scales"], *numbers["halves"]])


def _run(text: str, tokens: Sequence[Token], place: int) -> _Number | None:
    """The longest number that begins at a token."""
    first = tokens[place]
    numbers = lexicon("numbers")
    inside = _inside_word(text, first)
    if not inside and (special := _special(text, first)) is not None:
        return special
    figures = first.text[:1].isdecimal()
    if figures and (inside or first.folded[-1:].isalpha() or _is_lettered(text, first.end)):
        return None
    if not figures and first.folded not in _number_words():
        return None
    known = numbers["scales"] if figures else {*_number_words(), "and", "a"}
    run = [first]
    for token in tokens[place + 1 : place + (3 if figures else 12)]:
        if token.folded not in known or text[run[-1].end : token.start] not in (" ", "-", ""):
            break
        run.append(token)
    for length in range(len(run), 0, -1):
        run = run[:length]
        value = None if run[-1].folded == "and" else number_of(run)
        if value is None or (length == 1 and first.folded in numbers["scales"]):
            continue
        if length == 1 and not figures and value == 1 and unit_behind(text, first.end) is None:
            continue  # "one" alone is a pronoun
        start = first.start
        if _is_minus(text, start):
            value, start = -value, start - 1
        scale = 1.0
        for item in run[1:] if figures else ():
            scale *= numbers["scales"][item.folded]
        step = _step(first.text, value) * scale
        return _Number(value, step, start, run[-1].end, not figures, scale != 1.0)
    return None


def _special(text: str, first: Token) -> _Number | None:
    """A number with an exponent or a vulgar fraction that begins at a token."""
    match = SCIENTIFIC.match(text, first.start)
    near = VULGAR.match(text, first.start) or VULGAR.match(text, first.end)
    if match is None and near is None:
        return None
    start, sign = first.start, 1.0
    if _is_minus(text, start):
        start, sign = start - 1, -1.0
    if match is not None:
        raised = unicodedata.normalize("NFKC", match["raised"] or "").replace("−", "-")
        power = int(match["e"] or match["power"] or raised or 0)
        # Largest exponent of a number that is compared
        if abs(power) > 30:
            return None
        scale = 10.0**power
        step = _step(match["figures"], 0.0) * scale
        return _Number(sign * float(match["figures"]) * scale, step, start, match.end(), False)
    whole = 0 if first.text[:1] in text and VULGAR.match(first.text) else digits_of(first.text)
    place = first.start if whole == 0 else first.end
    if whole is None or not (match := VULGAR.match(text, place)):
        return None
    value = whole + unicodedata.numeric(match.group())
    return _Number(sign * value, 0.01, start, match.end(), False)


def _is_minus(text: str, start: int) -> bool:
    """True if a minus sign, and not a hyphen or a dash of a range, stands before an offset."""
    if text[max(0, start - 6) : start].lower() == "minus ":
        return True
    return text[start - 1 : start] == "-" and (start == 1 or text[start - 2] in " (:=/[|$£€¥")


def _inside_word(text: str, token: Token) -> bool:
    """Whether figures are a piece of a name: the *21* of *K-21*, the *7* of *IPX7*."""
    before = text[token.start - 1 : token.start]
    if before == "-" and token.start > 1 and text[token.start - 2].isalpha():
        return True
    return before.isalpha() and before not in "$£€¥₹x"


def _is_lettered(text: str, end: int) -> bool:
    """Whether a capital that is neither a unit nor a scale ends figures: *77Q*, *pier 4E*."""
    letter = re.match(r"-?([A-Z])(?![\w²³°])", text[end : end + 3])
    scales = lexicon("numbers")["short_scales"]
    return letter is not None and letter[1].lower() not in scales and not unit_behind(text, end)


def _step(written: str, value: float) -> float:
    """The size of the last digit that tells something: 1,000 for 546,000 and 0.1 for 8.7."""
    if not written[:1].isdigit():
        written = f"{abs(value):.0f}"
    digits = plain_figures(written)
    places = len(digits.partition(".")[2]) if digits.count(".") == 1 else 0
    if places:
        return float(10.0**-places)
    digits = digits.replace(".", "").lstrip("0")
    closing = len(digits) - len(digits.rstrip("0"))
    return float(10 ** min(closing, max(0, len(digits) - 1)))


def _scaled(text: str, number: _Number, scales: dict[str, float]) -> _Number:
    """A number with a short scale behind it, as money has: *£5m*, *12k*."""
    match = SHORT_SCALE.match(text, number.end)
    if match is None or number.words:
        return number
    scale = scales.get(match[1].lower())
    short = match[1] in ("m", "b") or (match[1] in ("M", "B") and match.group()[0] == " ")
    if scale is None or (short and currency_before(text, number.start) is None):
        return number
    value, step = number.value * scale, number.step * scale
    return number._replace(value=value, step=step, end=match.end(), scaled=True)


def _with_unit(text: str, number: _Number) -> Quantity:
    value, step, start, number_end, words, scaled = number
    before, behind = currency_before(text, start), unit_behind(text, number_end)
    unit, end = None, number_end
    if before is not None:
        unit, start = before
        if value > 0 and _is_minus(text, start):
            value, start = -value, start - 1
    if behind is not None and (before is None or behind[0] == unit):
        unit, end = behind
    return Quantity(
        value, value, step, unit, Bound.EXACT, start, end, words, number_end, scaled=scaled
    )


def _joined(text: str, first: Quantity, second: Quantity) -> Quantity | None:
    """Two numbers as one range, or as the parts of one measure; None where they are apart."""
    between = text[first.end : second.start]
    same = first.unit is None or second.unit is None or first.unit.measure == second.unit.measure
    if not same or first.low != first.high or second.low != second.high:
        return None
    bare = between.strip().lower()
    opened = text[max(0, first.start - 9) : first.start].lower().rstrip().endswith("between")
    ranged = (bare in ("to", "-") and between in (" to ", "-", " - ")) or (bare == "and" and opened)
    signed = between == "-" and first.end == first.number_end  # the sign of £20-25 is of both
    unit_told = first.unit is None or second.unit is not None or signed
    if ranged and abs(second.low) > abs(first.low) and unit_told:
        unit = second.unit or first.unit
        low, scale = first.low, _scale(text[: second.number_end])
        if abs(low) < abs(second.low) / scale and _scale(text[: first.number_end]) == 1:
            low *= scale
        if first.unit is not None and second.unit is not None and first.unit != second.unit:
            low = low * first.unit.factor / second.unit.factor
        return Quantity(low, second.low, second.step, unit, Bound.EXACT, first.start, second.end)
    if (
        first.unit is not None
        and second.unit is not None
        and first.unit.measure in {"time", "length", "mass"}
        and first.unit.factor > second.unit.factor
        and re.fullmatch(r"(?:,? and |,? )", between)
        and second.low * second.unit.factor < first.unit.factor
    ):
        number = first.low * first.unit.factor / second.unit.factor + second.low
        return Quantity(
            number, number, second.step, second.unit, Bound.EXACT, first.start, second.end
        )
    return None


def _scale(text: str) -> float:
    """What the number that ends a text counts in: a million for *2 million*, 1 for *2*."""
    numbers, last = lexicon("numbers"), re.split(r"[^a-z]", text.lower())[-1]
    return float(numbers["scales"].get(last) or numbers["short_scales"].get(last) or 1)


@cache
def _rate() -> re.Pattern[str]:
    joined = "|".join(re.escape(word) for word in lexicon("numbers")["per"])
    return re.compile(rf"\s?(?:{joined})(?:\s|(?<=/))(?P<of>[^\W\d_]+)", re.IGNORECASE)


def per_what(text: str, place: int = 0) -> str:
    """Stem of the reference of a rate at a position of a text: *per month*, */day*."""
    match = _rate().match(text, place)
    return stem(match["of"].lower().removesuffix("s")) if match else ""


@cache
def _bounds() -> tuple[tuple[Bound, re.Pattern[str]], ...]:
    numbers = lexicon("numbers")
    made = []
    for bound in (Bound.AT_LEAST, Bound.AT_MOST, Bound.ABOVE, Bound.BELOW, Bound.ABOUT):
        names = sorted(numbers[bound.value], key=len, reverse=True)
        joined = "|".join(re.escape(name) for name in names)
        made.append((bound, re.compile(rf"(?:^|[\s(])(?:{joined})(?: an?| the)?\s*$", re.I)))
    return tuple(made)


@cache
def _signed_by_words() -> re.Pattern[str]:
    words = "|".join(map(re.escape, lexicon("numbers")["losses"]))
    return re.compile(rf"\b(?:{words})(?: (?:of|by))?(?: an?| about| around)?\s*$", re.IGNORECASE)


@cache
def _changes() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """What makes a number a difference, multiple or span, right before it and right behind."""
    numbers, light = lexicon("numbers"), "|".join(lexicon("function_words")["stop_words"])
    changes, drops = "|".join(numbers["changes"]), "|".join(numbers["losses"])
    limits = [name for name in (*numbers["above"], *numbers["below"]) if name.endswith(" than")]
    more = "|".join([*numbers["comparatives"], *(name[: -len(" than")] for name in limits)])
    before = rf"\b(?:(?:{changes}|{drops}) by|(?:{changes})(?: of)?)(?: an?| about| around)?\s*$"
    noun, times = rf"(?:(?!(?:{light})\b)\w+\s)?", "|".join(numbers["multiples"])
    behind = rf"\s{noun}(?:{more})\b(?! or )|[\s-]?(?:{times}|times (?:{more}))\b"
    return re.compile(before, re.IGNORECASE), re.compile(behind, re.IGNORECASE)


def _bounded(text: str, quantity: Quantity, floor: int) -> Quantity:
    before = text[max(floor, quantity.start - 30) : quantity.start]
    (ahead, behind), end = _changes(), quantity.end
    quantity = quantity._replace(change=bool(ahead.search(before) or behind.match(text, end)))
    if _signed_by_words().search(before) or text[quantity.end :].lower().startswith(" below zero"):
        quantity = quantity._replace(worded=True)
    for bound, form in _bounds():
        if form.search(before):
            return quantity._replace(bound=bound)
    after = text[quantity.end : quantity.end + 18]
    if re.match(r"\s*(?:\+|or (?:more|so)\b|or thereabouts)", after):
        bound = Bound.ABOUT if " so" in after[:6] else Bound.AT_LEAST
        return quantity._replace(bound=bound)
    return quantity
