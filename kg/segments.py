"""Loads line-based RDF in segments, three at a time, and reads the names on the way.

Oxigraph parses, sorts and writes without holding Python's lock. So three segments keep two cores
busy while this thread unpacks the next one and reads its names.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import BinaryIO, Final

from pyoxigraph import Literal, NamedNode, Quad, RdfFormat, Store, parse

from kg.blank_nodes import with_iris
from kg.profiles import Profile

__all__ = ["load_rdf", "load_segments", "names_of"]

SEGMENT: Final = 16 * 2**20
"""Bytes of text that are loaded at once: about 130,000 triples. The C library reuses blocks of this
size for the next segment; larger ones are returned to the system and cleared anew."""

CONCURRENT: Final = 3
"""Segments in progress: one for each of two cores, and one that is ready."""

_NAME: Final = (
    rb'[ \t]*"((?:[^"\\\n]|\\.)*)"(?:@([A-Za-z0-9-]+)|\^\^<[^>\n]*>)?[ \t]*(?:<[^>\n]*>[ \t]*)?\.'
)
"""What follows a predicate if its value is a literal."""
_INVALID: Final = re.compile(rb'[\x00-\x20<"{}|^`]')
"""Characters that an IRI must not contain; a statement with one may be skipped."""
_LOCAL_LINE: Final = re.compile(r"\bline \d+")


def load_segments(
    store: Store,
    stream: BinaryIO,
    format_: RdfFormat,
    *,
    origin: str,
    seen: Callable[[bytes], None],
    skip_invalid: bool = False,
) -> int:
    """Load N-Triples or N-Quads into a store; return the number of skipped statements.

    Args:
        store: The store.
        stream: The unpacked text.
        format_: Which of the two it is.
        origin: Identifies the file, in characters of an IRI. Oxigraph renames blank nodes in each
            segment, so they become IRIs that contain it.
        seen: Called with every segment, to read names from it.
        skip_invalid: Skip invalid statements instead of raising.

    Raises:
        SyntaxError: A line is no triple; names the line of the whole file.
    """
    line = skipped = 0
    running: deque[tuple[Future[int], int]] = deque()
    with ThreadPoolExecutor(CONCURRENT, thread_name_prefix="kg-load") as pool:
        for data in _whole_lines(stream):
            if len(running) == CONCURRENT:
                skipped += _result(*running.popleft())
            named = with_iris(data, origin)
            future = pool.submit(load_rdf, store, named, format_, skip_invalid=skip_invalid)
            running.append((future, line))
            seen(data)
            line += data.count(b"\n")
        return skipped + sum(_result(*segment) for segment in running)


def load_rdf(
    store: Store, data: bytes | BinaryIO, format_: RdfFormat, *, skip_invalid: bool = False
) -> int:
    """Load RDF into a store; return the number of skipped statements.

    Raises:
        SyntaxError: A statement is invalid and ``skip_invalid`` is False.
    """
    if not skip_invalid:
        store.bulk_load(input=data, format=format_)
        return 0
    skipped, quads = 0, parse(input=data, format=format_)

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


def names_of(data: bytes, profile: Profile) -> Iterator[tuple[str, str]]:
    """The (IRI, name) pairs in whole lines of N-Triples, in readable languages."""
    wanted: dict[bytes | None, bool] = {}
    for predicate in profile.label + profile.alias:
        # Searching for the predicate first skips most lines.
        named = re.compile(re.escape(b"<" + predicate.encode() + b">") + _NAME)
        for found in named.finditer(data):
            start = data.rfind(b"\n", 0, found.start()) + 1
            subject = data[start : found.start()].strip(b" \t")
            if not (subject.startswith(b"<") and subject.find(b">") == len(subject) - 1):
                continue
            name, tag = found.groups()
            if tag not in wanted:
                language = None if tag is None else tag.decode()
                wanted[tag] = profile.language_rank(language) is not None
            if not wanted[tag]:
                continue
            if b"\\" in subject or b"\\" in name:
                yield from _parsed(data[start : found.end()])
            elif not _INVALID.search(subject, 1):
                yield subject[1:-1].decode(), name.decode()


def _result(future: Future[int], first: int) -> int:
    """Wait for a segment; translate the line of an error to that of the whole file."""
    try:
        return future.result()
    except SyntaxError as error:
        line = (error.lineno or 1) + first
        message = _LOCAL_LINE.sub(f"line {line}", str(error.msg), count=1)
        place = ("", line, error.offset, None, line, error.end_offset)
        raise SyntaxError(message, place) from error


def _whole_lines(stream: BinaryIO) -> Iterator[bytes]:
    rest = b""
    while block := stream.read(SEGMENT):
        cut = block.rfind(b"\n") + 1
        if cut:
            yield rest + memoryview(block)[:cut]
            rest = block[cut:]
        else:
            rest += block
    if rest:
        yield rest


def _parsed(line: bytes) -> Iterator[tuple[str, str]]:
    """Read a line with escapes; the load itself reports an invalid one."""
    try:
        for quad in parse(input=line, format=RdfFormat.N_QUADS):
            if isinstance(quad.subject, NamedNode) and isinstance(quad.object, Literal):
                yield quad.subject.value, quad.object.value
    except SyntaxError:
        return
