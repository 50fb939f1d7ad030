"""The label index of an on-disk graph: an SQLite file next to the store.

Names are found by their key. Readers share the pages of the file that they use.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Final

from guardrail.core.errors import KnowledgeGraphError
from kg.labels import MAX_WORDS, key_of
from kg.profiles import Profile

__all__ = ["NAMES", "FileLabelIndex", "LabelFileWriter"]

NAMES: Final = "names.sqlite"
"""File in the folder of a graph that holds the index."""

_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS names (key TEXT, iri TEXT, PRIMARY KEY (key, iri)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS words (word TEXT, length INT, PRIMARY KEY (word, length)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS meta (vocabulary TEXT, names INT);
CREATE TEMP TABLE gathered (key TEXT, iri TEXT);
"""
_MERGE: Final = f"""
INSERT OR IGNORE INTO names SELECT key, iri FROM gathered ORDER BY key, iri;
INSERT OR IGNORE INTO words
    SELECT DISTINCT substr(key, 1, instr(key || ' ', ' ') - 1) AS word,
        length(key) - length(replace(key, ' ', '')) + 1 AS length
    FROM gathered WHERE length <= {MAX_WORDS} ORDER BY word, length;
DELETE FROM meta;
"""


class FileLabelIndex:
    """A label index in a file. Safe to read from several threads.

    Raises:
        KnowledgeGraphError: The graph has no index.
    """

    def __init__(self, graph: Path) -> None:
        try:
            self._db = _opened(graph)
            [(self._count,)] = self._db.execute("SELECT names FROM meta")
        except (sqlite3.Error, ValueError) as error:
            raise KnowledgeGraphError(f"cannot read the labels of {graph}: {error}") from error

    @staticmethod
    def exists(graph: Path, profile: Profile) -> bool:
        """True if the graph has an index of the names that a profile defines."""
        try:
            with closing(_opened(graph)) as db:
                return db.execute("SELECT vocabulary FROM meta").fetchall() == [
                    (_vocabulary(profile),)
                ]
        except sqlite3.Error:
            return False

    def __len__(self) -> int:
        return int(self._count)

    def nodes(self, key: str) -> Sequence[str]:
        """IRIs of the nodes that have a name with this key, sorted."""
        rows = self._db.execute("SELECT iri FROM names WHERE key = ? ORDER BY iri", (_text(key),))
        return [iri for (iri,) in rows]

    def lengths(self, first: str) -> Sequence[int]:
        """Lengths, longest first, of the names whose first word is ``first`` (folded)."""
        rows = self._db.execute(
            "SELECT length FROM words WHERE word = ? ORDER BY length DESC", (_text(first),)
        )
        return [length for (length,) in rows]


class LabelFileWriter:
    """Collects names while a graph is loaded, then writes the index. Memory stays constant.

    Args:
        graph: The graph's folder.
        profile: The vocabulary that the names come from.
        keep: Add to the names that the index holds already.
    """

    def __init__(self, graph: Path, profile: Profile, *, keep: bool) -> None:
        self.profile = profile
        self._path = graph / NAMES
        self._new = graph / f"{NAMES}.new"
        self._new.unlink(missing_ok=True)
        if keep and self._path.exists():
            shutil.copyfile(self._path, self._new)
        self._db = sqlite3.connect(self._new, isolation_level=None)
        self._db.executescript("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;" + _SCHEMA)
        self._db.execute("BEGIN")

    def add(self, names: Iterable[tuple[str, str]]) -> None:
        """Add (IRI, name) pairs."""
        rows = ((_text(key), iri) for iri, name in names if (key := key_of(name)))
        self._db.executemany("INSERT INTO gathered VALUES (?, ?)", rows)

    def fits(self, profile: Profile) -> bool:
        """True if a profile defines the same names as the one they were collected with."""
        return _vocabulary(profile) == _vocabulary(self.profile)

    def finish(self) -> None:
        """Write the index, in place of an older one."""
        for statement in _MERGE.split(";"):
            self._db.execute(statement)
        self._db.execute(
            "INSERT INTO meta SELECT ?, count(*) FROM names", (_vocabulary(self.profile),)
        )
        self._db.execute("COMMIT")
        self._db.close()
        self._new.replace(self._path)

    def close(self) -> None:
        """Drop what was collected."""
        self._db.close()
        self._new.unlink(missing_ok=True)


def _opened(graph: Path) -> sqlite3.Connection:
    # A file that is complete never changes; it is replaced.
    place = f"{(graph / NAMES).resolve().as_uri()}?mode=ro&immutable=1"
    return sqlite3.connect(place, uri=True, check_same_thread=False)


def _vocabulary(profile: Profile) -> str:
    return json.dumps([*profile.label, *profile.alias, *profile.tags])


def _text(text: str) -> str:
    """A text that SQLite can hold: without surrogates."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()
