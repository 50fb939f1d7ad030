"""Words of a text: tokens with their place, folded and stemmed for comparison, and spans.

Everything here is free of models. The folded form and the stem make "Gérard" meet "Gerard" and
"painters" meet "painter".
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from functools import cache, lru_cache
from itertools import pairwise
from typing import NamedTuple, Protocol, TypeVar

from guardrail.core.text.lexicon import lexicon, lexicon_set

T = TypeVar("T")

LONGEST = 128
"""Longest text that is remembered, in characters: what recurs is shorter, and whoever writes the
evidence must not fill the memory."""


class _Memory(dict[str, T]):
    """Results by text; a hit is a lookup in a dictionary and calls no function of Python."""

    def __init__(self, function: Callable[[str], T], many: int) -> None:
        self._function, self._many = function, many

    def __missing__(self, text: str) -> T:
        result = self._function(text)
        if len(text) <= LONGEST:
            if len(self) >= self._many:
                self.clear()
            self[text] = result
        return result


def remembered(many: int) -> Callable[[Callable[[str], T]], Callable[[str], T]]:
    """Make a function of a text remember its results for short texts, ``many`` at most."""
    return lambda function: _Memory(function, many).__getitem__


# --- spans -------------------------------------------------------------------------------

Span = tuple[int, int]
"""Offsets of the first character and past the last one."""


class Placed(Protocol):
    """What has offsets in a text: a word, a value, a phrase."""

    @property
    def start(self) -> int: ...  # noqa: D102

    @property
    def end(self) -> int: ...  # noqa: D102


PlacedT = TypeVar("PlacedT", bound=Placed)


def outside(items: Iterable[PlacedT], spans: Iterable[Span]) -> list[PlacedT]:
    """The items that overlap none of some spans."""
    taken = set[int]()
    for start, end in spans:
        taken.update(range(start, end))
    if not taken:
        return list(items)
    return [item for item in items if taken.isdisjoint(range(item.start, item.end))]


def meets(span: Span, others: Iterable[Span]) -> bool:
    """True if a span overlaps any other."""
    first, last = span
    for start, end in others:  # noqa: SIM110  # runs for every word of a sentence
        if first < end and start < last:
            return True
    return False


def within_another(span: Span, others: Iterable[Span]) -> bool:
    """True if a span is a proper part of any other."""
    first, last = span
    for start, end in others:
        if start <= first and last <= end and end - start > last - first:
            return True
    return False


# --- letters -----------------------------------------------------------------------------

FLAG = re.compile("(?<![🇦-🇿])[🇦-🇿]{2}(?![🇦-🇿])")
"""Two letters that are shown as a flag; other runs of such letters spell words."""


@lru_cache(maxsize=8_192)
def is_writing(sign: str) -> bool:
    """True if a sign may tell something, as a letter or a figure does; emoji do not.

    Letters in circles and squares may, Braille, private and unassigned signs.
    """
    kind = unicodedata.category(sign)
    if kind == "So":
        return re.search("LETTER |PATTERN DOTS", unicodedata.name(sign)) is not None
    if kind == "Cn":  # where pictographs are, it is a new one
        return ord(sign) >> 12 != 0x1F
    return sign.isalnum() or kind == "Co"


def hides_letters(text: str) -> bool:
    """True if a text has writing in signs that are neither letters nor figures."""
    odd = "" if text.isascii() else FLAG.sub("", text)
    return any(is_writing(sign) and not sign.isalnum() for sign in odd)


# --- words -------------------------------------------------------------------------------

TOKEN = re.compile(
    r"(?<![\w.,'’])[1-9]\d{0,2}(?:([ '’])\d{3})(?:\1\d{3})*(?:[.,]\d{1,2})?(?![\d'’]|[.,]\d)"
    r"|\d+(?:[.,]\d+)*(?:(?:st|nd|rd|th)\b)?"
    r"|(?:[^\W\d_]\. ?){2,}|[^\W_]+(?:['’][^\W\d_]+)*"
)
"""A number, which ends before letters; an abbreviation with full stops; a word.

A number's thousands may stand apart: *9,750*, *9'750*, *9 750*."""

CODE = re.compile(
    r"(?<![\w$£€¥#./-])(?!\d{4}-?[QW]\d|Q[1-4][-/.]\d|\d{4}-?\d\d-?\d\dT)"
    r"(?:(?=(?:[^\W_]+[-/._])*(?!\d+[hex]\d|\d*[a-z]{1,2}[23]\b|10[eE])[^\W_]*?[^\W\d_]\d)"
    r"|(?=[\dA-Z./_]*[A-Z]-\d+-[A-Z]|\d+-[A-Z]+-\d))[^\W_]+(?:[-/._][^\W_]+)+(?![\w°])"
)
"""Letters and figures that identify something: *KX4-77Q*, *AB-12-CD*; not *Q3-2021*, *m3/h*."""

CONTINENTAL = re.compile(
    r"\d{1,3}(?:\.\d{3}){2,}(?:,\d+)?|\d{1,3}(?:[.' ]\d{3})+,\d{1,2}|\d+,\d{1,2}"
)
"""A comma before the decimals, full stops between thousands: *2.490,00*, *17,5*. One full stop
without a comma is a decimal point."""

PLAIN_SIGNS = str.maketrans(
    {
        **dict.fromkeys("’‘ʼ′`´", "'"),
        **dict.fromkeys("“”„«»″", '"'),
        **dict.fromkeys("–—−‐‑‒", "-"),
        **dict.fromkeys("\u00a0\u2009\u202f\u2007\u200a\u2002\u2003", " "),
    }
)
"""Typographic signs and the plain ones they stand for, each of one character."""

MARKS = re.compile(
    r"(?<!\w)[*_`]{1,3}(?=[\w\"'“‘(\[$€£+-])|(?<=[\w.,;:!?)\]\"'”’%€$°])[*_`]{1,3}(?!\w)"
    r"|</?(?!(?:del|s|strike)\b)[a-zA-Z][a-zA-Z0-9]*(?:\s[^<>]*)?/?>|^\s*(?:\(?[a-z]\)\s|(?:(?![✗✘❌✖✕☐☒👎🚫⛔])"
    r"[•‣⁃ℹ←-⇿⌀-⏿■-❵➔-➿⬀-⯿\U0001f000-\U0001f0ff\U0001f200-\U0001faff]\ufe0f?\s*)+)"
)
"""Emphasis, tags of HTML, and what stands before the first word of an item but does not deny it."""

MIN_STEM = 4


@remembered(4_096)
def plain(text: str) -> str:
    """Write typographic apostrophes, quotes, dashes and spaces plainly; offsets stay."""
    return text if text.isascii() else text.translate(PLAIN_SIGNS)


def without_marks(text: str) -> str:
    """Write spaces for emphasis, tags of HTML, and a sentence's bullet or picture; offsets stay."""
    return MARKS.sub(lambda match: " " * len(match.group()), text)


class Token(NamedTuple):
    """A word or number of a text, with its offsets.

    ``folded`` has neither case nor accents. ``stem`` has no derivational endings; of a number it is
    the value, so that ``5``, ``5.0`` and ``five`` are equal.
    """

    text: str
    folded: str
    stem: str
    start: int
    end: int


@remembered(16_384)
def fold(text: str) -> str:
    """Casefold and drop accents, so that ``Gérard`` equals ``gerard``."""
    if text.isascii():
        return text.lower()
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    return "".join(sign for sign in decomposed if not unicodedata.combining(sign))


@remembered(16_384)
def stem(folded: str) -> str:
    """Strip derivational endings while at least four letters stay: painters, painting → paint."""
    word = folded.removesuffix("'s")
    stripped = True
    while stripped and not word[-1:].isdigit():
        stripped = False
        for suffix in lexicon("stemming")["suffixes"]:
            if word.endswith(suffix) and len(word) - len(suffix) >= MIN_STEM:
                word, stripped = word[: -len(suffix)], True
                break
    return word


@remembered(4_096)
def tokenise(text: str) -> tuple[Token, ...]:
    """Split a text into words and numbers; punctuation is dropped, hyphenated words come apart."""
    tokens = []
    for match in TOKEN.finditer(text):
        word = match.group().rstrip()
        end = match.start() + len(word)
        if word[-2:] in ("'s", "’s"):
            word, end = word[:-2], end - 2
        folded = fold(word).replace("’", "'")
        if word[-1] == ".":
            folded = folded.replace(".", "").replace(" ", "")  # U.S., F.C., T. S.
        tokens.append(Token(word, folded, _key(folded), match.start(), end))
    return tuple(tokens)


@remembered(16_384)
def _key(folded: str) -> str:
    """The stem of a word; numbers in figures and words share one key: 5, 5.0, 5th, five."""
    value = digits_of(folded)
    if value is None:
        numbers = lexicon("numbers")
        value = numbers["units"].get(folded, numbers["ordinals"].get(folded))
    return stem(folded) if value is None or folded == "second" else f"{value:.10g}"


def number_of(tokens: Sequence[Token]) -> float | None:
    """The number that a run of tokens writes: ``5,457,831``, ``twenty one``, ``half a million``."""
    numbers = lexicon("numbers")
    units, ordinals, scales = numbers["units"], numbers["ordinals"], numbers["scales"]
    if len(tokens) == 3 and [item.folded for item in tokens[:2]] == ["half", "a"]:
        scale = scales.get(tokens[2].folded)
        return None if scale is None else scale / 2
    total = 0.0
    group: float | None = None  # what stands before the next thousand or million
    figures = joined = False
    for token in tokens:
        word = token.folded
        value = digits_of(word)
        if value is not None:
            if group is not None or total:
                return None  # "20-25" is a range, not a sum
            group, figures = value, True
        elif word in scales:
            group = (1.0 if group is None else group) * scales[word]
            if scales[word] >= 1000:
                total, group = total + group, None
        elif (value := units.get(word, ordinals.get(word))) is not None and not figures:
            if group is not None and not _adds(group, value, joined=joined):
                return None  # "two and three" are two numbers
            group = value if group is None else group + value
        elif word != "and":
            return None
        joined = word == "and"
    return None if group is None and not total else total + (group or 0.0)


def _adds(group: float, value: float, *, joined: bool) -> bool:
    """True if a word goes on with a number: *twenty one*, *two hundred and ten*."""
    tens = group % 100
    return bool(group >= 100 and not tens) or (
        not joined and tens > 10 and tens % 10 == 0 and value < 10
    )


def plain_figures(word: str) -> str:
    """Figures without thousands separators and with a decimal point: ``2.490,00`` → ``2490.00``."""
    if CONTINENTAL.fullmatch(word):
        return re.sub(r"[.' ]", "", word).replace(",", ".")
    # Thousands separated by commas, apostrophes or spaces; lakhs and crores
    grouped = re.fullmatch(r"\d{1,3}(?:[,' ]\d{3})+(?:\.\d+)?|\d{1,2}(?:,\d{2})+,\d{3}", word)
    return re.sub(r"[,' ]", "", word) if grouped else word


@remembered(16_384)
def digits_of(word: str) -> float | None:
    """The number that figures write, their thousands apart or not; None where they write none."""
    if not word[:1].isdigit():
        return None
    if word[-2:] in ("st", "nd", "rd", "th"):
        word = word[:-2]
    try:
        number = float(plain_figures(word))
    except ValueError:
        return None
    return number if number <= 1e30 else None


@remembered(16_384)
def property_words(label: str) -> str:
    """A property label as plain words: ``birthPlace``, ``BIRTH_PLACE`` → ``birth place``."""
    spaced = label if label.isupper() else re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", label)
    return " ".join(re.sub(r"[\W_]+", " ", fold(spaced)).split())


@remembered(16_384)
def content_stems(text: str) -> frozenset[str]:
    """Stems of a text's words, function words left out."""
    stop = lexicon_set("function_words", "stop_words")
    return frozenset([item.stem for item in tokenise(text) if item.folded not in stop])


@remembered(16_384)
def copy_key(text: str) -> str:
    """A sentence without case, emphasis, quotation and list marks, pictures and closing signs."""
    bare = re.sub(r"[\"*_`#|]+", " ", without_marks(plain(text))).casefold()
    return " ".join(bare.split()).strip(" .,;:!•'").removeprefix("- ").removesuffix("'")


def runs_of(tokens: Sequence[Token], wanted: Sequence[str]) -> list[Span]:
    """Where folded words stand one after the other among tokens."""
    found, size = [], len(wanted)
    for place in range(len(tokens) - size + 1):
        for token, word in zip(tokens[place : place + size], wanted, strict=True):
            if token.folded != word:
                break
        else:
            found.append((tokens[place].start, tokens[place + size - 1].end))
    return found


# --- language ----------------------------------------------------------------------------

ENGLISH_SHARE = 0.16
"""Of the words of running English that are written small, at least this share are common ones."""

LONG_WORDS = 40
"""Words written small from which on running English holds its common ones, whatever it is about;
a shorter text of plain English may hold hardly any: *yes, ships free within two working days*."""


@cache
def _other_languages() -> tuple[frozenset[str], ...]:
    return tuple(frozenset(words) for words in lexicon("languages")["others"].values())


def in_english(text: str) -> bool:
    """True if nothing suggests that a text is in another language.

    Such signs are another script, common words of another language that outnumber the English ones,
    and, in a long text, missing common English words. Names and numbers belong to no language.
    """
    if not text.isascii():
        letters = [*filter(str.isalpha, text)]
        # The last letter of the Latin script's blocks (Latin Extended-B)
        foreign = len([sign for sign in letters if ord(sign) > 0x24F])
        # Fewer letters of another script are a name or a sign
        if foreign >= 20 and 2 * foreign > len(letters):
            return False
    found = re.findall(r"[^\W_]+(?:['’.-][^\W_]+)*", text)
    words = [word for word in found if word[0].islower()]
    # A small word before a capital may be part of a name or a title: von Neumann, un Carnaval.
    alone = [word for word, after in pairwise([*found, ""]) if not after[:1].isupper()]
    common = lexicon_set("languages", "english")
    other = max([sum(map(language.__contains__, alone)) for language in _other_languages()])
    # Minimum number of words of another language; one may be part of a name
    if other >= 2 and other > sum(map(common.__contains__, map(str.lower, found))):
        return False
    english = sum(map(common.__contains__, words))
    return len(words) < LONG_WORDS or english >= ENGLISH_SHARE * len(words)
