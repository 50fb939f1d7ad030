"""Numbers with their units and comparatives: *1,083 feet*, *more than 300 m*, *$160 million*.

A quantity agrees with a held one where its number does, in the held unit, as precisely as it is
told; a bound agrees where the held number keeps to it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from guardrail.naming import SentenceTokens, Span
from guardrail.text.values import SCALES, Token, number_of, same_number, tokenise, word_set, words

__all__ = ["Quantity", "find_quantity", "quantity_of"]


class Unit(NamedTuple):
    """A unit: what it measures, and how many of the first unit of that it holds."""

    measures: str
    factor: float


class Quantity(NamedTuple):
    """A number, and its unit where it has one."""

    number: float
    unit: Unit | None


# What is measured, each unit's names with their size; several words are joined by "_".
_MEASURES = {
    "length": {
        "m metre metres meter meters": 1.0,
        "km kilometre kilometres kilometer kilometers": 1e3,
        "cm centimetre centimetres centimeter centimeters": 1e-2,
        "mm millimetre millimetres millimeter millimeters": 1e-3,
        "ft foot feet": 0.3048,
        "inch inches": 0.0254,
        "yd yard yards": 0.9144,
        "mi mile miles": 1609.344,
    },
    "area": {
        "m2 m² sqm square_metre square_metres square_meter square_meters": 1.0,
        "km2 km² square_kilometre square_kilometres square_kilometer square_kilometers": 1e6,
        "ha hectare hectares": 1e4,
        "acre acres": 4046.8564,
        "square_foot square_feet": 0.09290304,
        "square_mile square_miles": 2589988.11,
    },
    "mass": {
        "kg kilogram kilograms kilogramme kilogrammes": 1.0,
        "g gram grams gramme grammes": 1e-3,
        "tonne tonnes metric_ton metric_tons": 1e3,
        "lb lbs": 0.45359237,
    },
    "time": {
        "second seconds sec": 1.0,
        "minute minutes min": 60.0,
        "hour hours hr hrs": 3600.0,
        "day days": 86_400.0,
        "week weeks": 604_800.0,
        "month months": 2_629_746.0,
        "year years": 31_556_952.0,
    },
    "dollar": {"dollar dollars usd $ us$ us_dollar us_dollars united_states_dollar": 1.0},
    "euro": {"euro euros eur €": 1.0},
    "sterling": {"gbp £ pound_sterling pounds_sterling": 1.0},
    "yen": {"yen jpy ¥ japanese_yen": 1.0},
    "rupee": {"rupee rupees inr ₹ indian_rupee indian_rupees": 1.0},
}
UNITS = {
    name.replace("_", " "): Unit(measures, factor)
    for measures, units in _MEASURES.items()
    for names, factor in units.items()
    for name in words(names)
}
MOST_WORDS = 3
"""Words of the longest name of a unit."""

CONVERTED = 0.01
"""Share by which a quantity told in another unit may differ: 330 metres are 1,083 feet."""

ABOUT = word_set("about around approximately nearly almost circa roughly some ca c")
ABOVE = ("more than", "greater than", "higher than", "longer than", "above", "exceeding")
BELOW = ("less than", "fewer than", "lower than", "shorter than", "under", "below")
AT_LEAST = ("at least", "no less than", "no fewer than", "not less than")
OVER = ("over",)
AT_MOST = ("at most", "no more than", "not more than", "up to")

BY_FAR = 2.0
"""Times a number may be what it is told to be over: *spread over 17 islands* tells no 17,000."""

FAR = 10.0
"""Times by which a bound without a unit may differ from a number that has one."""


@lru_cache(maxsize=65_536)
def quantity_of(label: str) -> Quantity | None:
    """The quantity that a value writes, as in ``330 metre`` or ``$5 million``; None for others."""
    tokens = tokenise(label)
    for length in range(min(4, len(tokens)), 0, -1):
        number = number_of(tokens[:length])
        if number is None:
            continue
        rest = " ".join(token.folded for token in tokens[length:])
        sign = label.strip()[:1]
        unit = UNITS.get(rest) if rest else UNITS.get(sign)
        return None if rest and unit is None else Quantity(number, unit)
    return None


def find_quantity(
    sentence: SentenceTokens, held: Quantity, *, bare: bool
) -> tuple[float, tuple[Span, ...]]:
    """How much of a held quantity a sentence tells, and where.

    Args:
        sentence: The sentence.
        held: The quantity.
        bare: Whether the number counts where the sentence tells no unit that is known.

    Returns:
        1 where a number of the sentence agrees with it; one half where that has no known unit, and
        it would have to have one; else 0.
    """
    half: tuple[Span, ...] = ()
    for place, run in _numbers(sentence):
        told = number_of(run)
        assert told is not None
        unit, end = _unit(sentence, place, place + len(run))
        span = (run[0].start, end)
        if unit is None and held.unit is not None and not bare:
            if same_number(told, held.number):
                half = half or (span,)
        elif unit is None or held.unit is None or unit.measures == held.unit.measures:
            ratio = unit.factor / held.unit.factor if unit and held.unit else 1.0
            unitless = unit is None and held.unit is not None
            if _agrees(sentence, place, run, told, held.number, ratio, unitless=unitless):
                return 1.0, (span,)
    return (0.5, half) if half else (0.0, ())


def _numbers(sentence: SentenceTokens) -> Iterator[tuple[int, Sequence[Token]]]:
    """The numbers of a sentence, the longest at each place: where, and their words."""
    place = 0
    while place < len(sentence.tokens):
        for length in (3, 2, 1):
            run = sentence.tokens[place : place + length]
            if number_of(run) is not None and run[-1].folded != "and":
                yield place, run
                place += len(run) - 1
                break
        place += 1


def _unit(sentence: SentenceTokens, place: int, after: int) -> tuple[Unit | None, int]:
    """The unit of a number, behind it or as a sign before it, and where number and unit end."""
    tokens = sentence.tokens
    end = tokens[after - 1].end
    sign = sentence.signs.get(tokens[place].start)
    if sign is not None:
        return UNITS.get(sign), end
    for length in range(MOST_WORDS, 0, -1):
        behind = tokens[after : after + length]
        unit = UNITS.get(" ".join(token.folded for token in behind))
        if unit is not None:
            return unit, behind[-1].end
    return None, end


def _agrees(
    sentence: SentenceTokens,
    place: int,
    run: Sequence[Token],
    told: float,
    held: float,
    ratio: float,
    *,
    unitless: bool,
) -> bool:
    """Whether a number told agrees with a held one.

    A bound far from the number is none of it where the sentence tells no unit and the number has
    one: *more than 4,000 readers* says nothing of $2.4 billion.
    """
    before = " ".join(token.folded for token in sentence.tokens[max(0, place - 3) : place])
    size = told * ratio
    same = same_number(size, held)
    for bounds, kept in (
        (AT_LEAST, held >= size or same),
        (OVER, size <= held <= BY_FAR * size or same_number(size, held, about=True)),
        (AT_MOST, held <= size or same),
        (ABOVE, held > size and not same),
        (BELOW, held < size and not same),
    ):
        if f" {before}".endswith(tuple(f" {bound}" for bound in bounds)):
            near = max(size, held) <= FAR * min(size, held)
            return kept and (near or not unitless)
    about = any(word in ABOUT for word in before.split()[-2:])
    if same_number(size, held, about=about) or _rounds_to(run, told, held / ratio):
        return True
    return ratio != 1.0 and abs(size - held) <= CONVERTED * abs(held)


def _rounds_to(run: Sequence[Token], told: float, held: float) -> bool:
    """Whether a number told with *million* and the like is the held one as precisely as told."""
    scale = SCALES.get(run[-1].folded, 1.0)
    if scale < 1e6 or len(run) < 2:
        return False
    places = len(run[0].folded.partition(".")[2])
    return round(held / scale, places) == round(told / scale, places)
