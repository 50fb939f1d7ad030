"""Loads files into graphs: streaming, on two cores, with progress.

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
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from traceback import clear_frames
from typing import BinaryIO, Final, cast
from uuid import uuid4

from pydantic import Field, computed_field
from pyoxigraph import NamedNode, RdfFormat, Store

from guardrail.core.errors import InputError, KnowledgeGraphError
from guardrail.core.rows import TABLE_FILES
from guardrail.core.types import Value
from kg.label_file import NAMES, FileLabelIndex, LabelFileWriter
from kg.profiles import STORED_PROFILE, Profile, load_profile, store_profile, stored_profile
from kg.reading import (
    LINES,
    Chunks,
    Progress,
    Selection,
    format_of,
    reading,
    suffix_of,
    table_name,
)
from kg.segments import load_rdf, load_segments, names_of
from kg.store import SNAPSHOT, OxigraphGraph, snapshot_of
from kg.tables import TableColumns, column_property, remove_replaced, triples_of_table

__all__ = ["LoadReport", "Progress", "load_graph", "peak_mb", "read_graph"]

_DIRECT: Final = "http://www.wikidata.org/prop/direct/"
_LINKS_TRIED: Final = 10_000


class LoadReport(Value):
    """The result of a load.

    Attributes:
        source: The file that was read.
        target: The graph's directory.
        triples: Triples in the graph now.
        added: Triples that this load added.
        skipped: Invalid statements that were skipped.
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


class _Job:
    """One file on its way into one graph."""

    def __init__(
        self,
        source: Path,
        profile: str | Path | Profile | None,
        table: TableColumns | None,
        selection: Selection | None,
        progress: Progress | None,
        *,
        skip_invalid: bool = False,
    ) -> None:
        self.source, self.progress, self.skip_invalid = source, progress, skip_invalid
        self.format = format_of(source)
        self.profile = None if profile is None else load_profile(profile)
        self.selection = selection if selection and not selection.everything else None
        self.table = table
        if not source.is_file():
            raise KnowledgeGraphError(f"there is no file {source}")
        suffix = suffix_of(source)
        if table is not None:
            if suffix not in TABLE_FILES:
                raise InputError(f"{source.name} is no table; columns are named for CSV and JSON")
            if table.name is None:
                self.table = table.model_copy(update={"name": table_name(source)})
        elif suffix in TABLE_FILES:
            raise InputError(f"{source.name} is a table; name the column of its ids with --subject")
        if self.selection and self.format is not RdfFormat.N_TRIPLES:
            raise InputError("languages, properties and classes are chosen in N-Triples alone")

    @property
    def by_lines(self) -> RdfFormat | None:
        """The line-based format in which the file is loaded, None for any other."""
        if self.table is not None:
            return RdfFormat.N_TRIPLES
        return self.format if self.format in LINES else None

    @contextmanager
    def lines(self) -> Iterator[BinaryIO]:
        """The text that is loaded, where it is line-based."""
        with reading(self.source, self.progress) as stream:
            if self.table is not None:
                kind = TABLE_FILES[suffix_of(self.source)]
                pieces = triples_of_table(stream, kind, self.table, str(self.source))
                yield cast(BinaryIO, Chunks(pieces))
            elif self.selection is not None:
                yield cast(BinaryIO, Chunks(self.selection.keep(stream)))
            else:
                yield stream

    def remove_replaced(self, store: Store) -> bool:
        """Remove what a table says otherwise now; returns whether a name was among it."""
        if self.table is None or not len(store):
            return False
        kind = TABLE_FILES[suffix_of(self.source)]
        with reading(self.source, None) as stream:
            return remove_replaced(store, stream, kind, self.table, str(self.source))

    @property
    def origin(self) -> str:
        """Identifies this state of the file, in 16 hexadecimal digits."""
        stat = self.source.stat()
        file = f"{self.source.resolve()}|{stat.st_size}|{stat.st_mtime_ns}"
        return blake2b(file.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


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

    Three segments of triples are held in memory, however long the file is, besides what the store
    itself needs (1.5 GiB at ten million triples).

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
    job = _Job(source, profile, table, selection, progress, skip_invalid=skip_invalid)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with _replacement(target) as folder:
            added, triples, skipped = _load_into(job, folder)
    except (OSError, sqlite3.Error) as error:
        raise KnowledgeGraphError(f"cannot write the graph {target}: {error}") from error
    return LoadReport(
        source=str(source),
        target=str(target),
        triples=triples,
        added=added,
        skipped=skipped,
        unmatched=_unmatched(target, job.table.links) if job.table else {},
        seconds=time.perf_counter() - started,
        peak_mb=peak_mb(),
    )


def read_graph(source: str | Path, *, profile: str | Path | Profile | None = None) -> OxigraphGraph:
    """Read a file into a graph in memory.

    Raises:
        KnowledgeGraphError: If the file cannot be read or is not what its name says.
    """
    source = Path(source)
    store = Store()
    _fill(store, _Job(source, profile, None, None, None))
    with source.open("rb") as file:
        snapshot = snapshot_of(file)
    return OxigraphGraph(store, profile=profile, name=source.name, snapshot=snapshot)


def _unmatched(target: Path, links: Mapping[str, str]) -> dict[str, str]:
    """For each link column, an id that is no row of the graph."""
    if not links:
        return {}
    graph = OxigraphGraph.open(target)
    try:
        found = {}
        for column in links:
            quads = graph.store.quads_for_pattern(None, column_property(column), None, None)
            values = dict.fromkeys(quad.object for quad in islice(quads, _LINKS_TRIED))
            for value in values:
                if not isinstance(value, NamedNode):
                    continue  # from an earlier load, in which the column was no link
                if next(graph.store.quads_for_pattern(value, None, None, None), None) is None:
                    found[column] = value.value
                    break
        return found
    finally:
        graph.close()


@contextmanager
def _replacement(target: Path) -> Iterator[Path]:
    """A copy of a graph in a hidden folder next to it, which replaces the graph at the end.

    Raises:
        KnowledgeGraphError: The target is something else or is being written, or both the graph
            and its predecessor are there.
    """
    old, folder, replaced = (
        target.parent / f".{target.name}.{kind}" for kind in ("old", "loading", "replaced")
    )
    if old.exists():
        if target.exists():
            raise KnowledgeGraphError(
                f"{old} holds {target} as it was before a load that was killed; remove it, or "
                f"move it back to {target}"
            )
        old.rename(target)
    existing = (target / "CURRENT").is_file()
    if not existing and target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise KnowledgeGraphError(f"{target} exists and is no graph; name another directory")
    if folder.exists():
        OxigraphGraph.open(folder, writable=True).close()  # refused while another process loads
        shutil.rmtree(folder)
    try:
        if existing:
            _copy(target, folder)
        else:
            folder.mkdir()
        yield folder
        if existing:
            OxigraphGraph.open(target, writable=True).close()  # refused while another one writes
            target.rename(old)
        elif target.exists():
            target.rmdir()
        folder.rename(target)
    except BaseException as error:
        _release(error)
        shutil.rmtree(folder, ignore_errors=True)
        raise
    if existing:
        # Renamed first, so that a half-removed folder is not taken for a graph.
        shutil.rmtree(replaced, ignore_errors=True)
        old.rename(replaced)
        shutil.rmtree(replaced, ignore_errors=True)


def _copy(target: Path, folder: Path) -> None:
    graph = OxigraphGraph.open(target, writable=True)
    try:
        graph.store.backup(str(folder))
    finally:
        graph.close()
    for name in (SNAPSHOT, STORED_PROFILE, NAMES):
        if (target / name).is_file():
            shutil.copy2(target / name, folder / name)


def _load_into(job: _Job, folder: Path) -> tuple[int, int, int]:
    """Load a file into the store of a folder and index its labels.

    Returns:
        Triples added, all triples, statements skipped.
    """
    graph = OxigraphGraph.open(folder, profile=job.profile, writable=True)
    writer: LabelFileWriter | None = None
    try:
        renamed = job.remove_replaced(graph.store)
        before = len(graph.store)
        indexed = before == 0 or (not renamed and FileLabelIndex.exists(folder, graph.profile))
        known = job.profile or stored_profile(folder) or (graph.profile if before else None)

        def seen(data: bytes) -> None:
            nonlocal writer
            if writer is None:
                profile = known or load_profile("wikidata" if _DIRECT.encode() in data else "rdfs")
                writer = LabelFileWriter(folder, profile, keep=before > 0)
            writer.add(names_of(data, writer.profile))

        if job.by_lines is None:
            skipped = _fill(graph.store, job)
        else:
            with job.lines() as stream:
                skipped = load_segments(
                    graph.store,
                    stream,
                    job.by_lines,
                    origin=job.origin,
                    seen=seen,
                    skip_invalid=job.skip_invalid,
                )
        graph.refresh()
        if job.profile is not None:
            store_profile(folder, job.profile)
        if writer is not None and indexed and writer.fits(graph.profile):
            writer.finish()
            # Merges the many files of a load: look-ups take half the time afterwards.
            graph.store.optimize()
        else:
            graph.index_labels()
        after = len(graph.store)
        (folder / SNAPSHOT).write_text(uuid4().hex[:16])
        graph.store.flush()
        return after - before, after, skipped
    finally:
        if writer is not None:
            writer.close()
        graph.close()


def _release(error: BaseException | None) -> None:
    """Release the store that the frames of an error hold, so that its files can be removed."""
    while error is not None:
        clear_frames(error.__traceback__)
        error = error.__cause__ or error.__context__


def _fill(store: Store, job: _Job) -> int:
    """Load a whole file into a store; return the number of skipped statements."""
    with reading(job.source, job.progress) as stream:
        assert job.format is not None  # tables are loaded by lines
        return load_rdf(store, stream, job.format, skip_invalid=job.skip_invalid)


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
