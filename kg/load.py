"""Loads files into graphs, streaming and with progress.

The file name determines the format, with or without ``.gz`` or ``.bz2``: N-Triples (``.nt``; also
the format of Wikidata's truthy dumps), Turtle (``.ttl``), N-Quads (``.nq``), TriG (``.trig``),
RDF/XML (``.rdf``, ``.owl``, ``.xml``), N3 (``.n3``), JSON-LD (``.jsonld``); tables (``.csv``,
``.tsv``, ``.jsonl``) with ``TableColumns`` that describe their columns.
"""

from __future__ import annotations

import re
import shutil
import sqlite3
import sys
import time
from collections import deque
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from itertools import chain, islice
from pathlib import Path
from traceback import clear_frames
from typing import BinaryIO, Final
from uuid import uuid4

from pydantic import Field, computed_field
from pyoxigraph import NamedNode, Quad, RdfFormat, Store, parse

from guardrail.core.errors import InputError, KnowledgeGraphError
from guardrail.core.types import Value
from kg.labels import LabelIndex, names_in, names_in_lines
from kg.profiles import STORED_PROFILE, Profile, load_profile, store_profile
from kg.reading import Progress, Selection, chunks, format_of, reading
from kg.store import SNAPSHOT, VOCABULARIES, OxigraphGraph, snapshot_of
from kg.tables import TableColumns, column_property, remove_replaced, table_name, triples_of_table

_SEGMENT: Final = 16 * 2**20
"""Bytes of text that are loaded at once."""
_LINES: Final = (RdfFormat.N_TRIPLES, RdfFormat.N_QUADS)


class LoadReport(Value):
    """The result of a load.

    Attributes:
        source: The file that was read.
        target: The graph's directory.
        triples: Triples in the graph now.
        skipped: Invalid statements.
        unmatched: For each link column of a table, an id among its first 10,000 values that is no
            row of the graph; columns without one are omitted.
        seconds: Wall time, label index included.
        peak_mb: Peak memory of the process in MiB; None if the system does not report it.
    """

    source: str
    target: str
    triples: int = Field(ge=0)
    added: int = Field(ge=0)
    skipped: int = Field(default=0, ge=0)
    unmatched: Mapping[str, str] = Field(default_factory=dict)
    seconds: float = Field(ge=0)
    peak_mb: float | None = None

    @computed_field  # type: ignore[prop-decorator]
    @property
    def rate(self) -> float:
        """Triples added per second."""
        return self.added / self.seconds if self.seconds > 0 else 0.0


def load_graph(
    source: str | Path,
    target: str | Path,
    *,
    profile: str | Path | Profile | None = None,
    progress: Progress | None = None,
    table: TableColumns | None = None,
    selection: Selection | None = None,
    skip_invalid: bool = False,
) -> LoadReport:
    """Load a file into an on-disk graph, which is created if missing, and index its labels.

    The graph is replaced at the end by a copy (with hard links) that holds the file too. So readers
    never see a half-loaded graph, and a broken file or an interruption changes nothing. If a table
    is loaded again, old values in its columns are removed.

    Args:
        source: The file.
        target: Folder of the graph.
        profile: Vocabulary profile, which defines the names, and is stored with the graph; None for
            the stored one, or else to detect it.
        progress: Called while the file is read.
        table: What the columns are, for CSV, TSV and JSON lines of objects.
        selection: What to keep of a Wikidata dump.
        skip_invalid: Skip invalid RDF statements, such as one with a space in an IRI, and count
            them in ``skipped``; otherwise the file is refused.

    Raises:
        KnowledgeGraphError: The file cannot be read or has another format (names the line), or the
            graph cannot be written.
        InputError: Table or selection do not fit the file.
    """
    source, target = Path(source), Path(target)
    started = time.perf_counter()
    given = None if profile is None else load_profile(profile)
    format_ = _format(source, table, selection)
    if table is not None and table.name is None:
        table = table.model_copy(update={"name": table_name(source)})

    def fill(folder: Path) -> tuple[int, int, int]:
        """Triples before and after, statements skipped."""
        with closing(OxigraphGraph.open(folder, profile=given, writable=True)) as graph:
            store = graph.store
            if table is not None and len(store):
                with reading(source, None) as stream:
                    remove_replaced(store, stream, source, table)
            before, skipped, index = len(store), 0, None
            with reading(source, progress) as stream:
                if table is not None:
                    stream = chunks(triples_of_table(stream, source, table))
                elif selection is not None and not selection.everything:
                    stream = chunks(selection.keep(stream))
                if before or skip_invalid or format_ not in _LINES:
                    skipped = _load(store, stream, format_, skip_invalid=skip_invalid)
                else:
                    segments = _segments(stream)
                    first = next(segments, b"")
                    found = [
                        name for start, name in VOCABULARIES.items() if start.encode() in first
                    ]
                    named_by = given or load_profile([*found, "rdfs"][0])
                    names = _load_lines(store, chain([first], segments), format_, named_by)
                    index = LabelIndex.build(names, named_by, folder)
            if given is not None:
                store_profile(folder, given)
            graph.refresh()
            if index is None or not index.is_of(graph.profile):
                LabelIndex.build(names_in(store, graph.profile), graph.profile, folder)
            # Merges the many files of a load: look-ups take half the time afterwards.
            store.optimize()
            (folder / SNAPSHOT).write_text(uuid4().hex[:16])
            store.flush()
            return before, len(store), skipped

    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with _replacement(target) as folder:
            before, after, skipped = fill(folder)
    except (OSError, sqlite3.Error) as error:
        raise KnowledgeGraphError(f"cannot write the graph {target}: {error}") from error
    return LoadReport(
        source=str(source),
        target=str(target),
        triples=after,
        added=after - before,
        skipped=skipped,
        unmatched=_unmatched(target, table.links) if table else {},
        seconds=time.perf_counter() - started,
        peak_mb=peak_mb(),
    )


def read_graph(source: str | Path, *, profile: str | Path | Profile | None = None) -> OxigraphGraph:
    """Read a file into a graph in memory.

    Raises:
        KnowledgeGraphError: If the file cannot be read or is not what its name says.
    """
    source = Path(source)
    format_ = _format(source, None, None)
    store = Store()
    with reading(source, None) as stream:
        _load(store, stream, format_)
    with source.open("rb") as file:
        snapshot = snapshot_of(file)
    return OxigraphGraph(store, profile=profile, name=source.name, snapshot=snapshot)


def _format(source: Path, table: TableColumns | None, selection: Selection | None) -> RdfFormat:
    """The RDF format that is loaded, which table and selection must fit."""
    format_ = format_of(source)
    if not source.is_file():
        raise KnowledgeGraphError(f"there is no file {source}")
    if table is not None and format_ is not None:
        raise InputError(f"{source.name} is no table; columns are named for CSV and JSON")
    if table is None and format_ is None:
        raise InputError(f"{source.name} is a table; name the column of its ids with --subject")
    if selection and not selection.everything and format_ is not RdfFormat.N_TRIPLES:
        raise InputError("languages, properties and classes are chosen in N-Triples alone")
    return format_ or RdfFormat.N_TRIPLES


def _load(store: Store, stream: BinaryIO, format_: RdfFormat, *, skip_invalid: bool = False) -> int:
    """Load RDF into a store; return the number of skipped statements."""
    if not skip_invalid:
        if format_ in _LINES:
            deque(_load_lines(store, _segments(stream), format_), maxlen=0)
        else:
            store.bulk_load(input=stream, format=format_)
        return 0
    skipped, quads = 0, parse(input=stream, format=format_)

    def valid() -> Iterator[Quad]:
        nonlocal skipped
        while True:
            try:
                yield next(quads)
            except StopIteration:
                return
            except SyntaxError:  # the parser continues after the statement
                skipped += 1

    store.bulk_extend(valid())
    return skipped


def _load_lines(
    store: Store, segments: Iterator[bytes], format_: RdfFormat, profile: Profile | None = None
) -> Iterator[tuple[str, str]]:
    """Load line-based RDF in segments; yield its (IRI, name) pairs by a profile on the way.

    Oxigraph parses without Python's lock: three segments keep two cores busy. It renames the blank
    nodes of each segment apart, so from the first one on the rest of the file is one segment, whose
    names are read from the store.
    """

    def load(data: bytes | BinaryIO, before: int) -> None:
        try:
            store.bulk_load(input=data, format=format_)
        except SyntaxError as error:
            line = (error.lineno or 1) + before
            message = re.sub(r"\bline \d+", f"line {line}", str(error.msg), count=1)
            place = ("", line, error.offset, None, line, error.end_offset)
            raise SyntaxError(message, place) from error

    lines = 0
    running: deque[Future[None]] = deque()
    blank = re.compile(rb"(?:^|[ \t>])_:", re.MULTILINE)
    with ThreadPoolExecutor(3, thread_name_prefix="kg-load") as pool:
        for data in segments:
            if len(running) == 3:
                running.popleft().result()
            if b"_:" in data and blank.search(data):
                running.append(pool.submit(load, chunks(chain([data], segments)), lines))
                break
            running.append(pool.submit(load, data, lines))
            if profile is not None:
                yield from names_in_lines(data, profile)
            lines += data.count(b"\n")
        else:
            profile = None
        for future in running:
            future.result()
    if profile is not None:
        yield from names_in(store, profile)


def _segments(stream: BinaryIO) -> Iterator[bytes]:
    """Whole lines of a stream, some megabytes (about 130,000 triples) at once."""
    lines = 0
    while block := stream.read(_SEGMENT):
        block += stream.readline(_SEGMENT)
        if len(block) == 2 * _SEGMENT and not block.endswith(b"\n"):
            line = lines + block.count(b"\n") + 1
            raise SyntaxError(f"the line is longer than {_SEGMENT:,} bytes", ("", line, None, None))
        lines += block.count(b"\n")
        yield block


def _unmatched(target: Path, links: Mapping[str, str]) -> dict[str, str]:
    """For each link column, an id that is no row of the graph."""
    found = {}
    with closing(OxigraphGraph.open(target)) as graph:
        store = graph.store
        for column in links:
            quads = store.quads_for_pattern(None, column_property(column), None, None)
            for value in dict.fromkeys(quad.object for quad in islice(quads, 10_000)):
                # Literals are from an earlier load, in which the column was no link.
                if isinstance(value, NamedNode) and not next(
                    store.quads_for_pattern(value, None, None, None), None
                ):
                    found[column] = value.value
                    break
    return found


@contextmanager
def _replacement(target: Path) -> Iterator[Path]:
    """A copy of a graph in a hidden folder next to it, which replaces the graph at the end."""
    old, folder = (target.parent / f".{target.name}.{kind}" for kind in ("old", "loading"))
    if old.exists() and not target.exists():
        old.rename(target)  # a load was killed between the two renames below
    existing = (target / "CURRENT").is_file()
    if not existing and target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise KnowledgeGraphError(f"{target} exists and is no graph; name another directory")
    if folder.exists():
        OxigraphGraph.open(folder, writable=True).close()  # refused while another process loads
        shutil.rmtree(folder)
    try:
        if existing:
            with closing(OxigraphGraph.open(target, writable=True)) as graph:
                graph.store.backup(str(folder))
            if (target / STORED_PROFILE).is_file():
                shutil.copy2(target / STORED_PROFILE, folder)
        else:
            folder.mkdir()
        yield folder
        if existing:
            OxigraphGraph.open(target, writable=True).close()  # refused while another one writes
            shutil.rmtree(old, ignore_errors=True)
            target.rename(old)
        elif target.exists():
            target.rmdir()
        folder.rename(target)
    except BaseException as error:
        # The frames of the error hold the store, whose files cannot be removed before.
        cause: BaseException | None = error
        while cause is not None:
            clear_frames(cause.__traceback__)
            cause = cause.__cause__ or cause.__context__
        shutil.rmtree(folder, ignore_errors=True)
        raise
    shutil.rmtree(old, ignore_errors=True)


def peak_mb() -> float | None:
    """Peak memory of the process so far, in MiB; None if the system does not report it."""
    try:
        # getrusage would count what the parent held when it started this process.
        status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
        if peak := re.search(r"^VmHWM:\s*(\d+) kB", status, re.MULTILINE):
            return int(peak[1]) / 1024
    except OSError:  # no Linux
        pass
    try:
        from resource import RUSAGE_SELF, getrusage
    except ImportError:  # Windows
        return None
    # Linux counts in KiB, macOS in bytes.
    unit = 1 if sys.platform == "darwin" else 1024
    return getrusage(RUSAGE_SELF).ru_maxrss * unit / 2**20
