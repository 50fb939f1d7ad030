"""The label index: from names to nodes, and from running text to the names in it.

A name is looked up by its *key*: its words and punctuation marks, case folded, without accents,
joined by single spaces. ``spot`` walks over the text once and tries, at each word, only the
lengths of the names that begin with that word, so its time is linear in the text.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Protocol

from pyoxigraph import Literal, NamedNode, Store

from guardrail.core.text.lexicon import lexicon_set
from guardrail.core.types import Mention
from kg.blank_nodes import is_named
from kg.profiles import Profile
from kg.results import graph_read

__all__ = ["LabelIndex", "MemoryLabelIndex", "key_of", "spot"]

MAX_WORDS = 16
"""Longest name, in words and punctuation marks, that is spotted in text; longer ones are still
found by ``find``."""

# A word keeps its combining accents, so that decomposed text has the same words as composed text.
_TOKEN = re.compile(r"\w[\w\u0300-\u036f]*|[^\w\s]")
# Its key is the name itself in lower case; most names are of this kind.
_PLAIN = re.compile(r"[A-Za-z0-9_]+(?: [A-Za-z0-9_]+)*")
_ACCENTS = re.compile(r"[\u0300-\u036f\s]")
_APOSTROPHES = str.maketrans("’‘ʼ`", "''''")


def key_of(name: str) -> str:
    """Return the key a name is found by.

    Case and accents are folded (*Zoe* finds Zoë, *CO2* CO₂), white space and apostrophes are
    normalised.
    """
    if _PLAIN.fullmatch(name):
        return name.lower()
    return " ".join(_fold(match.group()) for match in _TOKEN.finditer(name))


class LabelIndex(Protocol):
    """What ``spot`` and the stores need to know about names."""

    def nodes(self, key: str) -> Sequence[str]:
        """IRIs of the nodes that bear a name with this key, in a stable order."""
        ...

    def lengths(self, first: str) -> Sequence[int]:
        """Lengths, longest first, of the names whose first word is ``first`` (folded)."""
        ...


class MemoryLabelIndex:
    """A label index in dictionaries, for graphs that live in memory.

    Args:
        names: (IRI of the node, name) pairs; a node may have several.
    """

    def __init__(self, names: Iterable[tuple[str, str]]) -> None:
        nodes: dict[str, dict[str, None]] = {}
        lengths: dict[str, set[int]] = {}
        for iri, name in names:
            key = key_of(name)
            if not key:
                continue
            nodes.setdefault(key, {})[iri] = None
            words = key.split(" ")
            if len(words) <= MAX_WORDS:
                lengths.setdefault(words[0], set()).add(len(words))
        self._nodes = {key: tuple(sorted(iris)) for key, iris in nodes.items()}
        self._lengths = {
            word: tuple(sorted(counts, reverse=True)) for word, counts in lengths.items()
        }

    def nodes(self, key: str) -> Sequence[str]:
        """IRIs of the nodes that bear a name with this key, in a stable order."""
        return self._nodes.get(key, ())

    def lengths(self, first: str) -> Sequence[int]:
        """Lengths, longest first, of the names whose first word is ``first`` (folded)."""
        return self._lengths.get(first, ())


Names = Callable[[str], Sequence[str]]
"""Gives all labels and aliases of a node by its IRI; none for one that must not be spotted."""


def spot(text: str, index: LabelIndex, names: Names) -> list[Mention]:
    """Find the names of the index in running text.

    A stretch matches when its words equal those of a name at word boundaries; a possessive
    ending stays outside. Capitals count: a word that the name writes with a capital needs one
    in the text too ("rose" is not Rose). Exceptions are particles ("of", "van"), the first of a
    name of otherwise small words ("skin check" is Skin check), and a text without any capitals,
    where names of two words and more match in any case.

    Args:
        text: Any text; the time taken is linear in its length.
        index: The names.
        names: The written forms of a node's names, to compare capitals.

    Returns:
        Every match that is not inside a longer one, in order of the text.
    """
    spans: list[tuple[int, int]] = []
    words: list[str] = []
    folded: dict[str, str] = {}
    for match in _TOKEN.finditer(text):
        written = match.group()
        word = folded.get(written)
        if word is None:
            word = folded[written] = _fold(written)
        spans.append(match.span())
        words.append(word)
    uncapitalised = not any(character.isupper() for character in text)
    lengths: dict[str, Sequence[int]] = {}
    accepted: dict[tuple[str, str], bool] = {}
    mentions: list[Mention] = []
    covered = 0
    for first, word in enumerate(words):
        options = lengths.get(word)
        if options is None:
            options = lengths[word] = index.lengths(word)
        for count in options:
            past = first + count
            # Inside an earlier match, or past the end of the text.
            if past <= covered or past > len(words):
                continue
            start, end = spans[first][0], spans[past - 1][1]
            if not _at_boundaries(text, start, end):
                continue
            surface = text[start:end]
            key = " ".join(words[first:past])
            known = accepted.get((key, surface))
            if known is None:
                known = accepted[key, surface] = _accept(
                    surface, key, index, names, uncapitalised=uncapitalised
                )
            if known:
                mentions.append(Mention(text=surface, start=start, end=end))
                covered = past
                break
    return mentions


def _accept(
    surface: str, key: str, index: LabelIndex, names: Names, *, uncapitalised: bool
) -> bool:
    nodes = index.nodes(key)
    any_case = uncapitalised and " " in key
    return any(
        key_of(name) == key and (any_case or _capitals_agree(surface, name))
        for iri in islice(nodes, 100)
        for name in names(iri)
    )


def _capitals_agree(surface: str, name: str) -> bool:
    """Whether the surface has a capital wherever the name has one.

    The first word of a name whose other words are small is written as sentences begin: *skin
    check* is Skin check, but *home alone* is not Home Alone.
    """
    written = [match.group() for match in _TOKEN.finditer(surface)]
    proper = [match.group() for match in _TOKEN.finditer(name)]
    either = lexicon_set("names", "particles") | lexicon_set("names", "small_words")
    rest = [word for word in proper[1:] if word.casefold() not in either]
    if rest and all(word.islower() for word in rest) and proper[0][1:].islower():
        proper[0] = proper[0].lower()
    return len(written) == len(proper) and all(
        not word[0].isupper() or mine[0].isupper() or word.casefold() in either
        for mine, word in zip(written, proper, strict=True)
    )


def _at_boundaries(text: str, start: int, end: int) -> bool:
    """Refuse half of a hyphenated name: the Jean of Jean-Paul, but not the Hitler of Hitler-era."""
    after = text[end : end + 2]
    if len(after) == 2 and after[0] == "-" and after[1].isupper():
        return False
    before = text[max(0, start - 2) : start]
    return not (len(before) == 2 and before[1] == "-" and before[0].isalpha())


def _fold(text: str) -> str:
    parts = unicodedata.normalize("NFKD", text.translate(_APOSTROPHES).casefold())
    bare = _ACCENTS.sub("", parts)
    return unicodedata.normalize("NFC", bare).casefold()


def names_in(store: Store, profile: Profile) -> Iterator[tuple[str, str]]:
    """Yield (IRI, name) for every readable name in all graphs of a store, streaming."""
    graph = graph_read(store)
    for predicate in profile.label + profile.alias:
        for quad in store.quads_for_pattern(None, NamedNode(predicate), None, graph):
            subject, name = quad.subject, quad.object
            if not isinstance(name, Literal) or not is_named(subject):
                continue
            if profile.language_rank(name.language) is not None:
                yield subject.value, name.value
