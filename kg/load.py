"""Reads RDF files and JSON lines of persons into a graph, streaming, with progress.

Formats go by the file name, with or without ``.gz`` or ``.bz2``: N-Triples (``.nt``; also the
form of Wikidata's truthy dumps), Turtle (``.ttl``), N-Quads (``.nq``), TriG (``.trig``), RDF/XML
(``.rdf``, ``.owl``, ``.xml``), N3 (``.n3``), JSON-LD (``.jsonld``), and JSON lines of persons
(``.jsonl``: ``{"qid", "name", "facts": [{"pid", "property", "value"}]}``).
"""

from __future__ import annotations

import bz2
import gzip
import io
import re
import shutil
import stat
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from traceback import clear_frames
from typing import BinaryIO, cast
from uuid import uuid4

from pydantic import Field, ValidationError
from pyoxigraph import DefaultGraph, Quad, RdfFormat, Store, parse

from guardrail.errors import KnowledgeGraphError
from guardrail.types import Value
from kg.build_people import Person, build
from kg.labels import StoredLabelIndex
from kg.profiles import Profile
from kg.store import OxigraphGraph

__all__ = ["LoadReport", "Progress", "load_graph", "read_graph"]

Progress = Callable[[int, int], None]
"""Called with the bytes read so far and the bytes of the whole file, as it lies on disk."""

_FORMATS = {
    ".nt": RdfFormat.N_TRIPLES,
    ".ttl": RdfFormat.TURTLE,
    ".turtle": RdfFormat.TURTLE,
    ".nq": RdfFormat.N_QUADS,
    ".trig": RdfFormat.TRIG,
    ".rdf": RdfFormat.RDF_XML,
    ".owl": RdfFormat.RDF_XML,
    ".xml": RdfFormat.RDF_XML,
    ".n3": RdfFormat.N3,
    ".jsonld": RdfFormat.JSON_LD,
}
_PEOPLE = (".jsonl", ".ndjson")
_LINE = re.compile(r"\bline (\d+)")
_GZIP, _BZIP2 = b"\x1f\x8b", b"BZh"


class LoadReport(Value):
    """What a load did.

    Attributes:
        source: The file that was read.
        target: The graph's directory.
        triples: Triples in the graph now.
        added: Triples that this load added.
        skipped: Facts of persons that were left out (no property id, or a value without label).
        seconds: Wall time, label index included.
    """

    source: str
    target: str
    triples: int = Field(ge=0)
    added: int = Field(ge=0)
    skipped: int = Field(default=0, ge=0)
    seconds: float = Field(ge=0)


def load_graph(
    source: str | Path,
    target: str | Path,
    *,
    profile: str | Path | Profile | None = None,
    progress: Progress | None = None,
) -> LoadReport:
    """Load a file into an on-disk graph, which is made where missing, and index its labels.

    A file that turns out not to be RDF leaves the graph as it was. Memory stays bounded however
    long an RDF file is; JSON lines of persons are held in memory, since their names link them.

    Args:
        source: The file.
        target: Directory of the graph.
        profile: Vocabulary profile, which says what the names are; None to detect it.
        progress: Called while the file is read.

    Raises:
        KnowledgeGraphError: If the file cannot be read or is not what its name says (names the
            line), or the graph cannot be written.
    """
    source, target = Path(source), Path(target)
    started = time.perf_counter()
    _format(source)
    if not source.is_file():
        raise KnowledgeGraphError(f"there is no file {source}")
    existing = (target / "CURRENT").is_file()
    if not existing and target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise KnowledgeGraphError(f"{target} exists and is no graph; name another directory")
    try:
        if existing:
            # Bulk loading cannot be undone, so the file is read through once before.
            _check(source)
            added, triples, skipped = _load_into(source, target, profile, progress)
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            partial = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
            try:
                # A temporary folder is its owner's alone; the umask says who may read a graph.
                partial.chmod(_folder_mode(target.parent))
                added, triples, skipped = _load_into(source, partial, profile, progress)
                if target.exists():
                    target.rmdir()
                partial.rename(target)
            except BaseException as error:
                _release(error)
                shutil.rmtree(partial, ignore_errors=True)
                raise
    except OSError as error:
        raise KnowledgeGraphError(f"cannot write the graph {target}: {error}") from error
    return LoadReport(
        source=str(source),
        target=str(target),
        triples=triples,
        added=added,
        skipped=skipped,
        seconds=time.perf_counter() - started,
    )


def read_graph(
    source: str | Path,
    *,
    profile: str | Path | Profile | None = None,
    progress: Progress | None = None,
) -> OxigraphGraph:
    """Read a file into a graph in memory.

    Raises:
        KnowledgeGraphError: If the file cannot be read or is not what its name says.
    """
    source = Path(source)
    store = Store()
    _fill(store, source, progress)
    if profile is None and _suffix(source) in _PEOPLE:
        profile = "wikidata"
    return OxigraphGraph(store, profile=profile, name=source.name)


def _load_into(
    source: Path, target: Path, profile: str | Path | Profile | None, progress: Progress | None
) -> tuple[int, int, int]:
    """Fill and index the store in a directory; return triples added, triples, facts skipped."""
    graph = OxigraphGraph.open(target, profile=profile, writable=True)
    try:
        StoredLabelIndex.drop(graph.store)
        before = len(graph.store)
        skipped = _fill(graph.store, source, progress)
        after = len(graph.store)
        graph.refresh()
        graph.index_labels()
        graph.store.flush()
        return after - before, after, skipped
    finally:
        graph.close()


def _folder_mode(parent: Path) -> int:
    """The permissions that a folder made here in the usual way gets."""
    probe = parent / f".{uuid4().hex}"
    probe.mkdir()
    try:
        return stat.S_IMODE(probe.stat().st_mode)
    finally:
        probe.rmdir()


def _release(error: BaseException | None) -> None:
    """Let go of the store that the frames of an error hold, so that its files can go."""
    while error is not None:
        clear_frames(error.__traceback__)
        error = error.__cause__ or error.__context__


def _fill(store: Store, source: Path, progress: Progress | None) -> int:
    """Load a file into a store; return the number of facts left out."""
    format_ = _format(source)
    with _reading(source, progress) as stream:
        if format_ is None:
            people = list(_people(source, stream))
            quads = [
                Quad(triple.subject, triple.predicate, triple.object, DefaultGraph())
                for triple in build(people, {})
            ]
            store.bulk_extend(quads)
            facts = sum(quad.predicate.value.startswith(_DIRECT) for quad in quads)
            return sum(len(person.facts) for person in people) - facts
        store.bulk_load(input=stream, format=format_)
    return 0


_DIRECT = "http://www.wikidata.org/prop/direct/"


def _check(source: Path) -> None:
    """Read a file to its end without keeping anything."""
    format_ = _format(source)
    with _reading(source, None) as stream:
        rows: Iterator[object]
        rows = _people(source, stream) if format_ is None else parse(input=stream, format=format_)
        for _ in rows:
            pass


def _people(source: Path, stream: BinaryIO) -> Iterator[Person]:
    for number, line in enumerate(stream, start=1):
        if not line.strip():
            continue
        try:
            yield Person.model_validate_json(line)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"])
            raise KnowledgeGraphError(
                f"{source}, line {number}: not a person ({where or 'JSON'}: {first['msg']})"
            ) from error


def _suffix(source: Path) -> str:
    name = source.name.lower()
    for packed in (".gz", ".bz2"):
        name = name.removesuffix(packed)
    return Path(name).suffix


def _format(source: Path) -> RdfFormat | None:
    """The RDF format that the file's name says; None for JSON lines of persons."""
    suffix = _suffix(source)
    if suffix in _PEOPLE:
        return None
    if suffix not in _FORMATS:
        known = ", ".join((*_FORMATS, *_PEOPLE))
        raise KnowledgeGraphError(
            f"cannot tell the format of {source.name}; its name must end in one of {known} "
            "(.gz and .bz2 may follow)"
        )
    return _FORMATS[suffix]


@contextmanager
def _reading(source: Path, progress: Progress | None) -> Iterator[BinaryIO]:
    """Open a file, unpacked; say what is wrong with it in terms of its lines."""
    try:
        with source.open("rb") as file:
            total = source.stat().st_size
            raw = cast(BinaryIO, io.BufferedReader(_Counted(file, total, progress), 1 << 18))
            magic = file.read(3)
            file.seek(0)
            # By content, not by name: servers and browsers unpack files without renaming them.
            if magic.startswith(_GZIP):
                with gzip.open(raw) as unpacked:
                    yield cast(BinaryIO, unpacked)
            elif magic == _BZIP2:
                with bz2.open(raw) as unpacked:
                    yield cast(BinaryIO, unpacked)
            else:
                yield raw
            if progress is not None:
                progress(total, total)
    except SyntaxError as error:
        number = error.lineno or ((m := _LINE.search(str(error))) and int(m.group(1)))
        line = f", line {number}" if number else ""
        message = str(error.msg or error)
        raise KnowledgeGraphError(f"{source}{line}: not {_name(source)}: {message}") from error
    except (gzip.BadGzipFile, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise KnowledgeGraphError(f"{source} is damaged or cut short: {error}") from error
    except OSError as error:
        if error.filename is None and "Invalid data stream" not in str(error):
            raise
        raise KnowledgeGraphError(f"cannot read {source}: {error}") from error


def _name(source: Path) -> str:
    format_ = _format(source)
    return "JSON lines of persons" if format_ is None else format_.name


class _Counted(io.RawIOBase):
    """A raw file that reports how far it has been read."""

    def __init__(self, file: io.BufferedReader, total: int, progress: Progress | None) -> None:
        super().__init__()
        self._file, self._total, self._progress = file, total, progress
        self._read = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        count = self._file.readinto(buffer)
        self._read += count
        if self._progress is not None and count:
            self._progress(self._read, self._total)
        return count
