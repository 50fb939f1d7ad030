"""Loads files into graphs: streaming, on two cores, resumable, with progress.

Formats go by the file name, with or without ``.gz`` or ``.bz2``: N-Triples (``.nt``; also the
form of Wikidata's truthy dumps), Turtle (``.ttl``), N-Quads (``.nq``), TriG (``.trig``), RDF/XML
(``.rdf``, ``.owl``, ``.xml``), N3 (``.n3``), JSON-LD (``.jsonld``); tables (``.csv``, ``.tsv``,
``.jsonl``) with a ``TableColumns`` that says what their columns are.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
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
from kg.journal import Journal
from kg.label_file import FileLabelIndex, LabelFileWriter
from kg.memory import peak_mb
from kg.profiles import Profile, load_profile, store_profile, stored_profile
from kg.reading import (
    LINES,
    Chunks,
    Progress,
    format_of,
    reading,
    suffix_of,
    table_name,
)
from kg.replacing import Replacement
from kg.segments import Place, load_rdf, load_segments, names_of
from kg.selection import Selection
from kg.store import SNAPSHOT, OxigraphGraph, snapshot_of
from kg.tables import TableColumns, column_property, remove_replaced, triples_of_table

__all__ = ["LoadReport", "Progress", "load_graph", "read_graph"]

_DIRECT: Final = "http://www.wikidata.org/prop/direct/"
_SKIPPED: Final = 2**20
_LINKS_TRIED: Final = 10_000


class LoadReport(Value):
    """What a load did.

    Attributes:
        source: The file that was read.
        target: The graph's directory.
        triples: Triples in the graph now.
        added: Triples that this load added.
        skipped: Invalid statements that were left out.
        resumed: Lines that an earlier, interrupted load had put into the graph already.
        unmatched: Of each link column of a table, an id among its first 10,000 values that is no
            row of the graph; columns without one are left out.
        seconds: Wall time, label index included.
        peak_mb: Most memory that the process held, in MiB; None where the system does not tell.
    """

    source: str
    target: str
    triples: int = Field(ge=0)
    added: int = Field(ge=0)
    skipped: int = Field(default=0, ge=0)
    resumed: int = Field(default=0, ge=0)
    unmatched: Mapping[str, str] = Field(default_factory=dict)
    seconds: float = Field(ge=0)
    peak_mb: float | None = None

    @computed_field  # type: ignore[prop-decorator]
    @property
    def rate(self) -> float:
        """Triples added in a second."""
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

    def journal(self, base: str) -> Journal:
        """The journal of this load into a state of a graph, at its beginning."""
        stat = self.source.stat()
        options = "|".join(
            "" if item is None else item.model_dump_json() for item in (self.table, self.selection)
        )
        return Journal(
            source=str(self.source.resolve()),
            size=stat.st_size,
            changed=stat.st_mtime_ns,
            options=options,
            base=base,
        )


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
    """Load a file into an on-disk graph, which is made where missing, and index its labels.

    A file that turns out not to be RDF leaves the graph as it was: all is done beside it, with hard
    links to what stays, and put in its place at the end. A load of N-Triples, N-Quads or a table
    that is interrupted goes on where it was when it is called again with the same file. The rows of
    a table that is loaded again say what the file says now: old values in its columns are removed.

    Of the triples three segments are held in memory, however long a file is, beside what the store
    itself takes (1.5 GiB at ten million triples). The index of names grows with the names, those
    that the graph has already included: 58 bytes a name at most were measured for names of few
    first words, 172 where each first word was another.

    Args:
        source: The file.
        target: Directory of the graph.
        profile: Vocabulary profile, which says what the names are, and is kept with the graph;
            None for the one that is kept there, or else to detect it.
        progress: Called while the file is read.
        table: What the columns are, for CSV, TSV and JSON lines of objects.
        selection: What to keep of a Wikidata dump.
        skip_invalid: Leave out invalid statements of RDF, such as one with a space in an IRI, and
            count them in ``skipped``; the file is refused otherwise.

    Raises:
        KnowledgeGraphError: If the file cannot be read or is not what its name says (names the
            line), or the graph cannot be written.
        InputError: If table or selection do not fit the file.
    """
    source, target = Path(source), Path(target)
    started = time.perf_counter()
    job = _Job(source, profile, table, selection, progress, skip_invalid=skip_invalid)
    replacement = Replacement(target)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        added, triples, skipped, resumed = _load_beside(job, replacement)
    except OSError as error:
        raise KnowledgeGraphError(f"cannot write the graph {target}: {error}") from error
    return LoadReport(
        source=str(source),
        target=str(target),
        triples=triples,
        added=added,
        skipped=skipped,
        resumed=resumed,
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
    """By link column, an id that is no row of the graph."""
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


def _load_beside(job: _Job, replacement: Replacement) -> tuple[int, int, int, int]:
    """Load a graph in a folder beside its place, and put it there when it is complete."""
    partial = replacement.folder
    journal = job.journal(replacement.snapshot)
    if partial.exists():
        # Refused while another process loads there, whose work must not be removed below.
        OxigraphGraph.open(partial, writable=True).close()
        if Journal.resumable(journal, partial) is None:
            shutil.rmtree(partial)
    try:
        if not partial.exists():
            replacement.start()
        counts = _load_into(job, partial, journal)
        replacement.finish()
        return counts
    except BaseException as error:
        _release(error)
        # What was interrupted can go on; what is wrong in itself cannot.
        if isinstance(error, KnowledgeGraphError | InputError) or not Journal.resumable(
            journal, partial
        ):
            shutil.rmtree(partial, ignore_errors=True)
        raise


def _load_into(job: _Job, target: Path, start: Journal) -> tuple[int, int, int, int]:
    """Fill and index the store in a directory.

    Returns:
        Triples added, triples, statements left out, lines that were there from an earlier try.
    """
    graph = OxigraphGraph.open(target, profile=job.profile, writable=True)
    try:
        journal = Journal.resumable(start, target)
        resumed = journal.place[1] if journal else 0
        if journal is None:
            named = job.remove_replaced(graph.store)
            before = len(graph.store)
            indexed = before == 0 or (not named and FileLabelIndex.exists(target, graph.profile))
            journal = start.model_copy(update={"before": before, "indexed": indexed})
        FileLabelIndex.drop(target)
        writer = None
        if job.by_lines is None:
            skipped = _fill(graph.store, job)
        else:
            writer, skipped = _load_lines(graph, job, target, journal)
        graph.refresh()
        if job.profile is not None:
            store_profile(target, job.profile)
        if writer is not None and journal.indexed and writer.speaks(graph.profile):
            writer.finish()
            # Merges what loading left in many files: look-ups take half the time afterwards.
            graph.store.optimize()
        else:
            if writer is not None:
                writer.close()
            graph.index_labels()
        after = len(graph.store)
        (target / SNAPSHOT).write_text(uuid4().hex[:16])
        graph.store.flush()
        Journal.remove(target)
        return after - journal.before, after, skipped, resumed
    finally:
        graph.close()


def _load_lines(
    graph: OxigraphGraph, job: _Job, target: Path, journal: Journal
) -> tuple[LabelFileWriter | None, int]:
    """Load line-based text.

    Returns:
        The names in it, None where it has no line; and the number of statements left out.
    """
    assert job.by_lines is not None
    writer: LabelFileWriter | None = None
    known = job.profile or stored_profile(target)
    if known is None and journal.before + journal.place[0] > 0:
        known = graph.profile

    def seen(data: bytes) -> None:
        nonlocal writer
        if writer is None:
            profile = known or load_profile("wikidata" if _DIRECT.encode() in data else "rdfs")
            keep = journal.before + journal.place[0] > 0
            writer = LabelFileWriter(target, profile, keep=keep)
        writer.add(names_of(data, writer.profile))

    def save(place: Place) -> None:
        graph.store.flush()
        if writer is not None:
            writer.save()
        journal.model_copy(update={"place": place}).write(target)

    with job.lines() as stream:
        left = journal.place[0]
        while left > 0 and (part := stream.read(min(left, _SKIPPED))):
            left -= len(part)
        journal.write(target)
        try:
            skipped = load_segments(
                graph.store,
                stream,
                job.by_lines,
                start=journal.place,
                origin=journal.origin,
                seen=seen,
                save=save,
                skip_invalid=job.skip_invalid,
            )
        except BaseException:
            if writer is not None:
                writer.close()
            raise
    return writer, skipped


def _release(error: BaseException | None) -> None:
    """Let go of the store that the frames of an error hold, so that its files can go."""
    while error is not None:
        clear_frames(error.__traceback__)
        error = error.__cause__ or error.__context__


def _fill(store: Store, job: _Job) -> int:
    """Load a file into a store in one piece; return the number of statements left out."""
    with reading(job.source, job.progress) as stream:
        assert job.format is not None  # tables are loaded by lines
        return load_rdf(store, stream, job.format, skip_invalid=job.skip_invalid)
