"""The label index: from names to nodes, and from running text to the names in it.

A name is looked up by its *key*: its words and punctuation marks, case folded, without accents,
joined by single spaces. ``spot`` walks over the text once and tries, at each word, only the
lengths of the names that begin with that word, so its time is linear in the text. The index is an
SQLite database, in memory or next to the store of an on-disk graph.
"""

from __future__ import annotations

import json
import re
import sqlite3
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

from pyoxigraph import DefaultGraph, Literal, NamedNode, RdfFormat, Store, parse

from guardrail.core.text.lexicon import lexicon_set
from guardrail.core.types import Mention
from kg.profiles import Profile
from kg.terms import is_blank

NAMES: Final = "names.sqlite"
"""File in the folder of a graph that holds the index."""
# A word keeps its combining accents, so that decomposed text has the same words as composed text.
_TOKEN = re.compile(r"\w[\w\u0300-\u036f]*|[^\w\s]")
# Its key is the name itself in lower case; most names are of this kind.
_PLAIN = re.compile(r"[A-Za-z0-9_]+(?: [A-Za-z0-9_]+)*")
_ACCENTS = re.compile(r"[\u0300-\u036f\s]")
_APOSTROPHES = str.maketrans("’‘ʼ`", "''''")

Names = Callable[[Sequence[str]], Mapping[str, Sequence[str]]]
"""Gives all labels and aliases of nodes by IRI; leaves out those that must not be spotted."""


def key_of(name: str) -> str:
    """Return the key a name is found by.

    Case and accents are folded (*Zoe* finds Zoë, *CO2* CO₂), white space and apostrophes are
    normalised.
    """
    if _PLAIN.fullmatch(name):
        return name.lower()
    return " ".join(_fold(match.group()) for match in _TOKEN.finditer(name))


class LabelIndex:
    """The names of a graph. Safe to read from several threads."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._db = database
        [(self._vocabulary, self._count)] = database.execute("SELECT * FROM meta")

    @classmethod
    def open(cls, folder: Path, profile: Profile) -> LabelIndex | None:
        """Open the index of an on-disk graph; None if it has none for the names of a profile."""
        # A complete file never changes; it is replaced.
        place = f"{(folder / NAMES).resolve().as_uri()}?mode=ro&immutable=1"
        try:
            index = cls(sqlite3.connect(place, uri=True, check_same_thread=False))
            return index if index.is_of(profile) else None
        except (sqlite3.Error, ValueError):
            return None

    @classmethod
    def build(
        cls, names: Iterable[tuple[str, str]], profile: Profile, folder: Path | None = None
    ) -> LabelIndex:
        """Index (IRI, name) pairs, in memory or in a file in the folder of the graph.

        Names of more than 16 words and punctuation marks are found by ``nodes`` only.

        Raises:
            OSError, sqlite3.Error: The file cannot be written.
        """
        new = None if folder is None else folder / f"{NAMES}.new"
        if new is not None:
            new.unlink(missing_ok=True)
        database = sqlite3.connect(new or ":memory:", isolation_level=None, check_same_thread=False)
        database.executescript("""
            PRAGMA journal_mode = OFF;
            PRAGMA synchronous = OFF;
            CREATE TABLE names (key TEXT, iri TEXT, PRIMARY KEY (key, iri)) WITHOUT ROWID;
            CREATE TABLE words (word TEXT, length INT, PRIMARY KEY (word, length)) WITHOUT ROWID;
            CREATE TABLE meta (vocabulary TEXT, names INT);
            CREATE TEMP TABLE gathered (key TEXT, iri TEXT);
        """)
        database.execute("BEGIN")
        rows = ((_text(key_of(name)), iri) for iri, name in names)
        database.executemany("INSERT INTO gathered VALUES (?, ?)", (r for r in rows if r[0]))
        database.execute("INSERT OR IGNORE INTO names SELECT * FROM gathered ORDER BY key, iri")
        database.execute("""
            INSERT OR IGNORE INTO words
            SELECT DISTINCT substr(key, 1, instr(key || ' ', ' ') - 1) AS word,
                length(key) - length(replace(key, ' ', '')) + 1 AS length
            FROM gathered WHERE length <= 16 ORDER BY word, length
        """)
        database.execute("DROP TABLE gathered")
        database.execute("INSERT INTO meta SELECT ?, count(*) FROM names", (_vocabulary(profile),))
        database.execute("COMMIT")
        if new is not None and folder is not None:
            new.replace(folder / NAMES)
        return cls(database)

    def is_of(self, profile: Profile) -> bool:
        """True if the index holds the names that a profile defines."""
        return bool(self._vocabulary == _vocabulary(profile))

    def __len__(self) -> int:
        return int(self._count)

    def nodes(self, key: str) -> list[str]:
        """IRIs of the nodes that have a name with this key, sorted."""
        rows = self._db.execute("SELECT iri FROM names WHERE key = ? ORDER BY iri", (_text(key),))
        return [iri for (iri,) in rows]

    def lengths(self, first: str) -> list[int]:
        """Lengths, longest first, of the names whose first word is ``first`` (folded)."""
        rows = self._db.execute(
            "SELECT length FROM words WHERE word = ? ORDER BY length DESC", (_text(first),)
        )
        return [length for (length,) in rows]


class _Place(NamedTuple):
    """A stretch of a text that has the key of a name; ``first`` and ``past`` count words."""

    first: int
    past: int
    start: int
    end: int
    key: str


def spot(text: str, index: LabelIndex, names: Names) -> list[Mention]:
    """Find the names of the index in running text: the longest matches, in linear time.

    A span matches when its words equal those of a name at word boundaries; a possessive
    ending stays outside. Capitals count: a word that the name writes with a capital needs one
    in the text too ("rose" is not Rose). Exceptions are particles ("of", "van"), the first of a
    name of otherwise small words ("skin check" is Skin check), and a text without any capitals,
    where names of two words and more match in any case.
    """
    bearers: dict[str, list[str]] = {}
    places = list(_places(text, index, bearers))
    iris = dict.fromkeys(iri for place in places for iri in bearers[place.key])
    written: dict[str, set[str]] = {}
    for own in (names(list(iris)) if iris else {}).values():
        for name in own:
            written.setdefault(key_of(name), set()).add(name)
    uncapitalised = not any(character.isupper() for character in text)

    @cache
    def accepted(surface: str, key: str) -> bool:
        any_case = uncapitalised and " " in key
        return any(any_case or _capitals_agree(surface, name) for name in written.get(key, ()))

    mentions: list[Mention] = []
    covered = 0
    for place in places:
        # Inside an earlier match, or shorter than a match at the same word.
        if place.past <= covered:
            continue
        surface = text[place.start : place.end]
        if accepted(surface, place.key):
            mentions.append(Mention(text=surface, start=place.start, end=place.end))
            covered = place.past
    return mentions


def _places(text: str, index: LabelIndex, bearers: dict[str, list[str]]) -> Iterator[_Place]:
    """Yield where names may be, the longest of each word first; collects the bearers by key."""
    folded = {word: _fold(word) for word in {*_TOKEN.findall(text)}}
    lengths = {word: index.lengths(word) for word in {*folded.values()}}
    spans = [match.span() for match in _TOKEN.finditer(text)]
    words = [folded[text[start:end]] for start, end in spans]
    for first, word in enumerate(words):
        for count in lengths[word]:
            past = first + count
            if past > len(words):
                continue
            start, end = spans[first][0], spans[past - 1][1]
            if not _at_boundaries(text, start, end):
                continue
            key = " ".join(words[first:past])
            if key not in bearers:
                bearers[key] = index.nodes(key)[:100]  # whose spelling is compared with the text
            if bearers[key]:
                yield _Place(first, past, start, end, key)


def _capitals_agree(surface: str, name: str) -> bool:
    """True if the surface has a capital wherever the name has one.

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


def graph_read(store: Store) -> DefaultGraph | None:
    """The graph of a store that is read: None, for all, where it has named graphs."""
    return DefaultGraph() if next(store.named_graphs(), None) is None else None


def names_in(store: Store, profile: Profile) -> Iterator[tuple[str, str]]:
    """Yield (IRI, name) for every readable name in all graphs of a store, streaming."""
    graph, readable = graph_read(store), cache(profile.language_rank)
    for predicate in profile.label + profile.alias:
        for quad in store.quads_for_pattern(None, NamedNode(predicate), None, graph):
            subject, name = quad.subject, quad.object
            if (
                isinstance(name, Literal)
                and isinstance(subject, NamedNode)
                and readable(name.language) is not None
                and not is_blank(subject.value)
            ):
                yield subject.value, name.value


def names_in_lines(lines: bytes, profile: Profile) -> Iterator[tuple[str, str]]:
    """Yield the same pairs from whole lines of valid N-Triples or N-Quads."""
    if b"\r" in lines:
        lines = lines.replace(b"\r", b"\n")
    readable = cache(profile.language_rank)
    for predicate in profile.label + profile.alias:
        # Searching for the predicate, and not for whole lines, skips most of them.
        wanted = b"<%b>" % predicate.encode()
        literal = rb'[ \t]*"((?:[^"\\\n]|\\.)*)"(?:@([A-Za-z0-9-]+))?'
        for found in re.finditer(re.escape(wanted) + literal, lines) if wanted in lines else ():
            subject = lines[lines.rfind(b"\n", 0, found.start()) + 1 : found.start()].strip(b" \t")
            name, tag = found.groups()
            if not subject.startswith(b"<") or subject.find(b">") < len(subject) - 1:
                continue  # a blank node, a comment, or text of a literal
            if readable(tag and tag.decode()) is None:
                continue
            if b"\\" in subject or b"\\" in name:
                with suppress(SyntaxError):  # the load reports it
                    quad = next(parse(b'%b<urn:p>"%b".' % (subject, name), RdfFormat.N_TRIPLES))
                    subject, name = str(quad.subject).encode(), str(quad.object.value).encode()
            iri = subject[1:-1].decode("utf-8", "replace")
            if not is_blank(iri):
                yield iri, name.decode("utf-8", "replace")


def _vocabulary(profile: Profile) -> str:
    return json.dumps([*profile.label, *profile.alias, *profile.tags])


def _text(text: str) -> str:
    """A text that SQLite can hold: without surrogates."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()
