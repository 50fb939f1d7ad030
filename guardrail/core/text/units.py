"""Units and currencies of values, and how prose names the properties that have them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import StrEnum
from functools import cache
from typing import NamedTuple

from guardrail.core.text.lexicon import lexicon, lexicon_set
from guardrail.core.text.words import content_stems, property_words, remembered, stem

MONEY = "money "
"""Begins the measure of every currency; its code follows."""


class Bound(StrEnum):
    """What a number is put as."""

    EXACT = "exact"
    ABOUT = "about"
    AT_LEAST = "at_least"
    AT_MOST = "at_most"
    ABOVE = "above"
    BELOW = "below"


class Unit(NamedTuple):
    """A unit.

    Attributes:
        measure: What it measures: ``length``, ``percent``, ``money EUR``; two values compare only
            where this is the same.
        factor: Its size in the first unit of that.
        offset: Added after that, for temperatures.
        shared: True for a name that several currencies have: *cents*.
    """

    measure: str
    factor: float
    offset: float = 0.0
    shared: bool = False


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
            other = found.get(name)
            unit = Unit(MONEY + item["code"], 0.01) if other is None else other
            found[name] = unit._replace(shared=other is not None and other.factor == unit.factor)
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


class Head(NamedTuple):
    """The label of a property or column.

    Attributes:
        name: What it names, as plain words.
        unit: Unit of its values; None if it names none.
        scale: Factor of its values: 1,000 for *in thousands of EUR* and *keur*.
        per: Stem of what its values are a rate of: *kwh* for ``price_ct_per_kwh``.
        limit: What its values are put as: at most for *passengers (max)*.
    """

    name: str
    unit: Unit | None = None
    scale: float = 1.0
    per: str = ""
    limit: Bound = Bound.EXACT


@remembered(4_096)
def head_of(label: str) -> Head:
    """Read a label such as ``price_gbp``, ``weight (kg)`` or ``revenue (in thousands of EUR)``."""
    if (rate := _rate_of(label)) is not None:
        return rate
    words = property_words(label).split()
    sign = re.search(r"[(\[]\s*([^\w\s()\[\]]+)\s*[)\]]\s*$", label)
    unit = _symbols().get(sign[1]) if sign else None
    per, scale = "", 1.0
    if "per" in words[1:-1]:
        place = words.index("per")
        per = stem(words[place + 1].removesuffix("s"))
        words = [*words[:place], *words[place + 2 :]]
    timed = not lexicon_set("numbers", "durations").isdisjoint(words)
    limit = _limit_of(words[:-1] if timed and words[-1] == "min" else words)
    # A label whose words are apart; of camel case the last word may be no unit
    while len(words) > 1 and re.search(r"\w[_\s(\[/-]+\S", label):
        word, before = words[-1], words[-2]
        short = re.fullmatch(r"(k|m|mn|bn)([a-z]{3})", word)
        money = _labelled().get(before)
        if word in ("m", "b") and money and money.measure.startswith(MONEY):
            scale *= _scales()[word]
        elif unit is None and word in _labelled():
            # Minutes of delay_min and Length (min), and the least age of age_min
            known = timed or word != "min" or label.endswith(("(min)", "[min]"))
            unit = _labelled()[word] if known else None
        elif unit is None and short and short[2].upper() in _symbols():
            unit, scale = _symbols()[short[2].upper()], scale * _scales()[short[1]]
        elif word in _scales() and word not in ("m", "b"):
            scale *= _scales()[word]
        elif word not in ("in", "of") or (unit is None and scale == 1.0):
            break
        words.pop()
    return Head(" ".join(words), unit, scale, per, limit)


def _limit_of(words: Iterable[str]) -> Bound:
    bounds = lexicon("numbers")["label_limits"].items()
    return Bound(next((k for k, signs in bounds if not {*signs}.isdisjoint(words)), Bound.EXACT))


def _rate_of(label: str) -> Head | None:
    """Read a label such as ``fee (£/year)`` or ``use (l/100 km)``; None where it names no rate."""
    form = r"[(\[\s]\s*([^\s()\[\]/]+)\s*(?:/|\sper\s)\s*(?:\d+\s*)?([^\W\d]\w*)\s*[)\]]?\s*$"
    before, end = label[:-40], label[-40:]
    found = re.search(form, end)
    if found is None:
        return None
    name = property_words(before + end[: found.start()])
    if whole := _symbols().get(f"{found[1]}/{found[2]}"):
        return Head(name, whole, limit=_limit_of(name.split()))
    unit = _symbols().get(found[1]) or _labelled().get(found[1].lower())
    if unit is None:
        return None
    of = _symbols().get(found[2])
    time = next((word for word, known in _names().items() if known == of and period(word)), None)
    return Head(name, unit, per=stem(time or found[2]), limit=_limit_of(name.split()))


@cache
def _scales() -> dict[str, float]:
    """Scales by the words and signs that labels write them with."""
    numbers = lexicon("numbers")
    words = {f"{word}s": size for word, size in numbers["scales"].items()}
    return {**numbers["scales"], **words, **numbers["short_scales"], "000": 1000.0, "000s": 1000.0}


def unit_of_label(label: str) -> Unit | None:
    """The unit of the values of a property, if its label names one."""
    return head_of(label).unit


def is_unit_name(word: str) -> bool:
    """Whether a folded word names a unit or currency, or is a part of such a name."""
    return word in _name_words()


@cache
def _name_words() -> frozenset[str]:
    return frozenset(word for name in _names() for word in name.split())


@remembered(4_096)
def property_name(label: str) -> str:
    """The words of a label without its unit and scale: *price* of ``price_eur``."""
    return head_of(label).name


@remembered(16_384)
def cues(label: str) -> frozenset[str]:
    """Stems of the words that name a property in prose, including those of its label."""
    name = property_name(label)
    return content_stems(" ".join([name, *lexicon("properties")["wording"].get(name, ())]))


@remembered(16_384)
def certain_cues(label: str) -> frozenset[str]:
    """The cues that name this property and no unrelated one, as *parent* does a father."""
    name = property_name(label)
    own = content_stems(name)
    shared = frozenset[str]().union(
        *(
            content_stems(" ".join([other, *words]))
            for other, words in lexicon("properties")["wording"].items()
            if own.isdisjoint(content_stems(other))
        )
    )
    return own | (cues(label) - shared)


def tells_place(label: str) -> bool:
    """Whether a property tells where something is or happened, and so in any wider place too."""
    name = property_words(label)
    within = lexicon_set("properties", "within")
    return name in lexicon_set("properties", "within_labels") or not within.isdisjoint(name.split())
