"""Units and currencies: what a sign or word behind a number measures, and how much of it."""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from guardrail.core.text.lexicon import lexicon
from guardrail.core.text.words import property_words

__all__ = ["Unit", "currency_before", "is_unit_name", "period", "unit_behind", "unit_of_label"]

MONEY = "money "
"""Begins the measure of every currency; its code follows."""

SIGN = re.compile(r"[(\[]\s*([^\w\s()\[\]]+)\s*[)\]]\s*$")
"""A sign in brackets at the end of a label: *price (£)*, *share [%]*."""


class Unit(NamedTuple):
    """A unit.

    Attributes:
        measure: What it measures: ``length``, ``percent``, ``money EUR``; two values compare only
            where this is the same.
        factor: Its size in the first unit of that.
        offset: Added after that, for temperatures.
    """

    measure: str
    factor: float
    offset: float = 0.0


@cache
def _symbols() -> dict[str, Unit]:
    """Units by their symbols, whose case counts."""
    found = {
        symbol: Unit(measure, item["factor"], item["offset"])
        for measure, units in lexicon("units")["measures"].items()
        for item in units
        for symbol in item["symbols"]
    }
    for item in lexicon("currencies")["currencies"]:
        unit = Unit(MONEY + item["code"], 1.0)
        found |= dict.fromkeys([item["code"], *item["signs"]], unit)
    return found


@cache
def _names() -> dict[str, Unit]:
    """Units by their names, folded."""
    found: dict[str, Unit] = {}
    for item in lexicon("currencies")["currencies"]:
        found |= dict.fromkeys(item["words"], Unit(MONEY + item["code"], 1.0))
        for name in (name for names in item["hundredths"] for name in names):
            found.setdefault(name, Unit(MONEY + item["code"], 0.01))
    for measure, units in lexicon("units")["measures"].items():
        for unit in units:
            for name in unit["words"]:
                found.setdefault(name, Unit(measure, unit["factor"], unit["offset"]))
    return found


@cache
def _behind() -> re.Pattern[str]:
    symbols = "|".join(re.escape(symbol) for symbol in sorted(_symbols(), key=len, reverse=True))
    names = "|".join(re.escape(name) for name in sorted(_names(), key=len, reverse=True))
    return re.compile(rf"(?:\s|-| \()?(?:(?P<symbol>{symbols})|(?P<name>(?i:{names})))(?![\w²³])")


@cache
def _before() -> re.Pattern[str]:
    currencies = lexicon("currencies")["currencies"]
    signs = [sign for currency in currencies for sign in (*currency["signs"], currency["code"])]
    return re.compile(
        rf"(?:{'|'.join(re.escape(item) for item in sorted(signs, key=len, reverse=True))})\s?$"
    )


def unit_behind(text: str, place: int) -> tuple[Unit, int] | None:
    """The unit that stands at a place of a text, right behind a number, and where it ends."""
    match = _behind().match(text, place)
    if match is None:
        return None
    symbol = match["symbol"]
    unit = _symbols()[symbol] if symbol else _names()[match["name"].lower()]
    return unit, match.end()


def period(word: str) -> Unit | None:
    """The unit of time that a word names; None where it names none."""
    unit = _names().get(word)
    return unit if unit is not None and unit.measure == "time" else None


def currency_before(text: str, place: int) -> tuple[Unit, int] | None:
    """The currency that stands right before a place of a text, and where it begins."""
    match = _before().search(text, max(0, place - 5), place)
    if match is None:
        return None
    if match.group()[0].isalpha() and match.start() and text[match.start() - 1].isalnum():
        return None
    return _symbols()[match.group().strip()], match.start()


@cache
def _labelled() -> dict[str, Unit]:
    """Units by how the label of a property writes them, without case; the commoner one wins."""
    found: dict[str, Unit] = {}
    for symbol, unit in _symbols().items():
        short = symbol.lower()
        if short not in found or abs(unit.factor) >= 1.0 > abs(found[short].factor):
            found[short] = unit
    found |= {name: unit for name, unit in _names().items() if " " not in name}
    return found | {"c": _symbols()["°C"], "f": _symbols()["°F"], "mm": _symbols()["mm"]}


def unit_of_label(label: str) -> Unit | None:
    """The unit in which the values of a property are, where its label says so.

    Such labels are ``price_gbp``, ``weight (kg)`` and ``processing_weeks``.
    """
    if (sign := SIGN.search(label)) and sign[1] in _symbols():
        return _symbols()[sign[1]]
    last = property_words(label).split()[-1:]
    apart = re.match(r"\W*+\w+\W*[_\s(\[/-]", label[::-1]) is not None  # from its end
    if not last or not apart:
        return None
    return _labelled().get(last[0])


def is_unit_name(word: str) -> bool:
    """Whether a folded word names a unit or currency, or is a part of such a name."""
    return word in _name_words()


@cache
def _name_words() -> frozenset[str]:
    return frozenset(word for name in _names() for word in name.split())
