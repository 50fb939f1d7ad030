"""The label index of an on-disk graph: sorted files beside the store, mapped into memory.

Names are found by the 64-bit hash of their key. The files are read by the page, so that a look-up
costs some twenty comparisons however long they are, and processes share one copy of them.
"""

from __future__ import annotations

import json
import mmap
import sys
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Final

import numpy as np

from guardrail.core.errors import KnowledgeGraphError
from guardrail.core.remembered import remembered
from kg.labels import MAX_WORDS, key_of
from kg.profiles import Profile

__all__ = ["FileLabelIndex", "LabelFileWriter"]

NAMES: Final = "names"
"""Folder beside a store that holds the index."""
_VERSION: Final = 3
_PARTS: Final = ("keys", "offsets", "iris", "first", "lengths")


class FileLabelIndex:
    """A label index in files.

    Raises:
        KnowledgeGraphError: If the directory holds no index.
    """

    def __init__(self, graph: Path) -> None:
        folder = graph / NAMES
        try:
            views = {part: _mapped(folder / part) for part in _PARTS}
        except OSError as error:
            raise KnowledgeGraphError(f"cannot read the label index {folder}: {error}") from error
        self._keys, self._offsets = views["keys"].cast("Q"), views["offsets"].cast("Q")
        self._iris = views["iris"]
        self._first, self._lengths = views["first"].cast("Q"), views["lengths"].cast("I")

    @staticmethod
    def exists(graph: Path, profile: Profile) -> bool:
        """Whether the directory holds an index of the names that a profile speaks of."""
        try:
            return bool(json.loads((graph / NAMES / "meta.json").read_text()) == _meta(profile))
        except (OSError, ValueError):
            return False

    @staticmethod
    def drop(graph: Path) -> None:
        """Remove the index; done before a store is changed, so that none is ever stale."""
        (graph / NAMES / "meta.json").unlink(missing_ok=True)

    def __len__(self) -> int:
        return len(self._keys)

    def nodes(self, key: str) -> Sequence[str]:
        """IRIs of the nodes that bear a name with this key, in a stable order."""
        wanted = _hash(key)
        at = bisect_left(self._keys, wanted)
        found = set()
        while at < len(self._keys) and self._keys[at] == wanted:
            start = self._offsets[at]
            end = start + 4 + _size(self._iris, start)
            found.add(str(self._iris[start + 4 : end], "utf-8"))
            at += 1
        return sorted(found)

    def lengths(self, first: str) -> Sequence[int]:
        """Lengths, longest first, of the names whose first word is ``first`` (folded)."""
        wanted = _hash(first)
        at = bisect_left(self._first, wanted)
        if at == len(self._first) or self._first[at] != wanted:
            return ()
        mask = self._lengths[at]
        return [count for count in range(MAX_WORDS, 0, -1) if mask >> count & 1]


class LabelFileWriter:
    """Gathers names while a graph is loaded, then writes the index.

    What is gathered lies in memory, at 16 bytes a name and some 100 a first word; the IRIs go to
    disk at once.

    Args:
        graph: The graph's directory.
        profile: The vocabulary that the names are those of.
        keep: Go on from what the directory holds: names of earlier loads and, where a load was
            interrupted, of its beginning.
    """

    def __init__(self, graph: Path, profile: Profile, *, keep: bool) -> None:
        self.profile = profile
        self._folder = graph / NAMES
        self._folder.mkdir(exist_ok=True)
        self._keys, self._offsets = array("Q"), array("Q")
        self._lengths: dict[int, int] = {}
        if keep:
            self._keys = _read_array(self._folder / "keys")
            self._offsets = _read_array(self._folder / "offsets")
            for word, mask in zip(
                _read_array(self._folder / "first"),
                _read_array(self._folder / "lengths", "I"),
                strict=True,
            ):
                self._lengths[word] = mask
        self._kept = len(self._keys)
        self._iris = (self._folder / "iris").open("r+b" if self._kept else "w+b")
        self._end = self._iris.seek(0, 2)

    def add(self, names: Iterable[tuple[str, str]]) -> None:
        """Take (IRI, name) pairs."""
        keys, offsets, lengths, write = self._keys, self._offsets, self._lengths, self._iris.write
        end, last, place = self._end, "", 0
        for iri, name in names:
            key = key_of(name)
            if not key:
                continue
            if iri != last:
                packed = iri.encode("utf-8")
                write(len(packed).to_bytes(4, "little") + packed)
                last, place = iri, end
                end += 4 + len(packed)
            keys.append(_hash(key))
            offsets.append(place)
            count = key.count(" ") + 1
            if count <= MAX_WORDS:
                first = _hash_of_word(key.partition(" ")[0])
                lengths[first] = lengths.get(first, 0) | 1 << count
        self._end = end

    def speaks(self, profile: Profile) -> bool:
        """Whether a profile has the same names as the one they were gathered by."""
        return _meta(profile) == _meta(self.profile)

    def save(self) -> None:
        """Write what is gathered so far, so that an interrupted load can go on from here."""
        self._iris.flush()
        self._write(np.frombuffer(self._keys, np.uint64), np.frombuffer(self._offsets, np.uint64))

    def finish(self) -> None:
        """Sort and write the index, each name of a node once however often it was loaded."""
        self._iris.close()
        keys = np.frombuffer(self._keys, np.uint64)
        order = np.argsort(keys, kind="stable")
        keys, offsets = keys[order], np.frombuffer(self._offsets, np.uint64)[order]
        once = _distinct(keys, offsets, _mapped(self._folder / "iris"))
        compact = self._kept and not once.all()
        offsets = self._compact(offsets[once]) if compact else offsets[once]
        self._write(keys[once], offsets)
        meta = self._folder / "meta.json"
        meta.with_suffix(".new").write_text(json.dumps(_meta(self.profile)))
        meta.with_suffix(".new").replace(meta)

    def close(self) -> None:
        """Close the files; after ``finish`` there is nothing left to do."""
        self._iris.close()

    def _compact(self, offsets: np.ndarray) -> np.ndarray:
        """Leave out the IRIs that no name points to any more; return where the others are."""
        old = _mapped(self._folder / "iris")
        used = np.unique(offsets)
        moved = np.empty_like(used)
        new = self._folder / "iris.new"
        end = 0
        with new.open("wb") as file:
            for number, place in enumerate(used.tolist()):
                moved[number] = end
                end += file.write(old[place : place + 4 + _size(old, place)])
        new.replace(self._folder / "iris")
        found: np.ndarray = moved[np.searchsorted(used, offsets)]
        return found

    def _write(self, keys: np.ndarray, offsets: np.ndarray) -> None:
        first = np.fromiter(self._lengths, np.uint64, len(self._lengths))
        masks = np.fromiter(self._lengths.values(), np.uint32, len(self._lengths))
        order = np.argsort(first)
        parts: dict[str, np.ndarray] = {
            "keys": keys,
            "offsets": offsets,
            "first": first[order],
            "lengths": masks[order],
        }
        for part, rows in parts.items():
            new = self._folder / f"{part}.new"
            rows.tofile(new)
            new.replace(self._folder / part)


def _distinct(keys: np.ndarray, offsets: np.ndarray, iris: memoryview) -> np.ndarray:
    """Which rows of a sorted index say what no row before says: same key, same IRI."""
    once = np.ones(len(keys), np.bool_)
    same = keys[1:] == keys[:-1]
    shared = np.flatnonzero(np.append(same, False) | np.insert(same, 0, False))
    last, seen = None, set[bytes]()
    for row, key, place in zip(
        shared.tolist(), keys[shared].tolist(), offsets[shared].tolist(), strict=True
    ):
        if key != last:
            last, seen = key, set()
        iri = bytes(iris[place : place + 4 + _size(iris, place)])
        once[row] = iri not in seen
        seen.add(iri)
    return once


def _size(iris: memoryview, place: int) -> int:
    return int.from_bytes(iris[place : place + 4], "little")


def _hash(text: str) -> int:
    return int.from_bytes(
        blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little"
    )


_hash_of_word = remembered(2**16)(_hash)
"""First words recur, in each load for a time."""


def _meta(profile: Profile) -> dict[str, object]:
    return {
        "version": _VERSION,
        "order": sys.byteorder,
        "predicates": [*profile.label, *profile.alias],
        "languages": list(profile.tags),
    }


def _mapped(path: Path) -> memoryview:
    with path.open("rb") as file:
        size = path.stat().st_size
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if size else b"")


def _read_array(path: Path, kind: str = "Q") -> array[int]:
    values: array[int] = array(kind)
    if path.is_file():
        values.frombytes(path.read_bytes())
    return values
