"""Loads line-based RDF in segments: three at a time, names on the way, resumable.

Oxigraph parses, sorts and writes outside Python's lock, so that three segments at a time keep two
cores busy while this thread unpacks the next one and reads the names in it.
"""

from __future__ import annotations

import re
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import BinaryIO, Final

from pyoxigraph import Literal, NamedNode, Quad, RdfFormat, Store, parse

from kg.blank_nodes import with_iris
from kg.profiles import Profile

__all__ = ["Place", "load_rdf", "load_segments", "names_of"]

SEGMENT: Final = 16 * 2**20
"""Bytes of text that are loaded at once: about 130,000 triples. The C library keeps blocks of this
size for the next segment; larger ones it hands back, and all their pages are cleared anew."""

AT_ONCE: Final = 3
"""Segments under way: one for each of two cores, one that is there when either is done."""

SAVE_EVERY_S: Final = 60.0
"""Nothing is loaded while the store writes out what it holds."""

_NAME: Final = (
    rb'[ \t]*"((?:[^"\\\n]|\\.)*)"(?:@([A-Za-z0-9-]+)|\^\^<[^>\n]*>)?[ \t]*(?:<[^>\n]*>[ \t]*)?\.'
)
"""What follows a predicate where its value is a literal."""
_INVALID: Final = re.compile(rb'[\x00-\x20<"{}|^`]')
"""Characters of no IRI; a statement with one may be skipped."""
_LOCAL_LINE: Final = re.compile(r"\bline \d+")

Place = tuple[int, int]
"""How far a file was read: bytes of its unpacked text, and lines."""


def load_segments(
    store: Store,
    stream: BinaryIO,
    format_: RdfFormat,
    *,
    start: Place = (0, 0),
    origin: str,
    seen: Callable[[bytes], None],
    save: Callable[[Place], None],
    skip_invalid: bool = False,
) -> int:
    """Load N-Triples or N-Quads into a store; return the number of statements left out.

    Args:
        store: The store.
        stream: The unpacked text, read from ``start`` on.
        format_: Which of the two it is.
        start: Where the stream begins.
        origin: What tells the file from others, in characters of an IRI: Oxigraph names blank
            nodes anew in each segment, so that they get IRIs with it.
        seen: Is handed every segment, to read names from it.
        save: Called every now and then with a place; all before it is in the store.
        skip_invalid: Leave out invalid statements in place of raising.

    Raises:
        SyntaxError: A line is no triple; it names the line of the whole file.
    """
    offset, line = start
    saved = time.monotonic()
    running: deque[tuple[Future[int], int]] = deque()
    skipped = 0

    def settle(most: int) -> None:
        nonlocal skipped
        while len(running) > most:
            future, first = running.popleft()
            skipped += _result(future, first)

    with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="kg-load") as pool:
        for data in _whole_lines(stream):
            settle(AT_ONCE - 1)
            named = with_iris(data, origin)
            future = pool.submit(load_rdf, store, named, format_, skip_invalid=skip_invalid)
            running.append((future, line))
            seen(data)
            offset, line = offset + len(data), line + data.count(b"\n")
            if time.monotonic() - saved > SAVE_EVERY_S:
                settle(0)
                save((offset, line))
                saved = time.monotonic()
        settle(0)
    return skipped


def load_rdf(
    store: Store, data: bytes | BinaryIO, format_: RdfFormat, *, skip_invalid: bool = False
) -> int:
    """Load one piece of RDF into a store; return the number of statements left out.

    Raises:
        SyntaxError: A statement is invalid, and invalid ones are not to be skipped.
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
            except SyntaxError:  # the parser goes on behind the statement
                skipped += 1

    store.bulk_extend(valid())
    return skipped


def names_of(data: bytes, profile: Profile) -> Iterator[tuple[str, str]]:
    """The (IRI, name) pairs that stand in whole lines of N-Triples, in readable languages."""
    wanted: dict[bytes | None, bool] = {}
    for predicate in profile.label + profile.alias:
        # Looked for from the predicate on: most lines have another one and are passed over.
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
    """Wait for a segment; give an error its line in the whole file."""
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
    """Read a line with escapes in it; one that is no triple is told by the load itself."""
    try:
        for quad in parse(input=line, format=RdfFormat.N_QUADS):
            if isinstance(quad.subject, NamedNode) and isinstance(quad.object, Literal):
                yield quad.subject.value, quad.object.value
    except SyntaxError:
        return
