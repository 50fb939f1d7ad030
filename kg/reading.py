"""Opens files by their name and content, unpacks them, and reports errors by line."""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import BinaryIO, Final
from xml.parsers import expat

from pyoxigraph import RdfFormat

from guardrail.core.errors import KnowledgeGraphError
from guardrail.core.fields import in_short
from guardrail.core.rows import TABLE_FILES, encoding_of, unpacked
from guardrail.core.types import Value

Progress = Callable[[int, int], None]
"""Called with the bytes read so far and the bytes of the whole file, as it lies on disk."""

_FORMATS: Final = {
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
_BLOCK: Final = 1 << 18


def suffix_of(source: Path) -> str:
    """The ending that tells the format, in lower case, without that of a packing."""
    name = source.name.lower()
    for packed in (".gz", ".bz2"):
        name = name.removesuffix(packed)
    return Path(name).suffix


def format_of(source: Path) -> RdfFormat | None:
    """The RDF format that the file's name says; None for tables and JSON lines."""
    suffix = suffix_of(source)
    if suffix in TABLE_FILES:
        return None
    if suffix not in _FORMATS:
        known = ", ".join((*_FORMATS, *TABLE_FILES))
        raise KnowledgeGraphError(
            f"cannot tell the format of {source.name}; its name must end in one of {known} "
            "(.gz and .bz2 may follow)"
        )
    return _FORMATS[suffix]


@contextmanager
def reading(source: Path, progress: Progress | None) -> Iterator[BinaryIO]:
    """Open a file, unpacked; report errors in it by line.

    Raises:
        KnowledgeGraphError: The file is damaged, unpacks to too much, or has another format.
    """
    try:
        total = source.stat().st_size
        with source.open("rb") as file:
            stream = packed = chunks(_counted(file, total, progress))
            # By content, not by name: servers and browsers unpack files without renaming them.
            if packed.peek(3).startswith(b"\x1f\x8b"):
                stream = unpacked(gzip.GzipFile(fileobj=packed), source, total, KnowledgeGraphError)
            elif packed.peek(3).startswith(b"BZh"):
                stream = unpacked(bz2.BZ2File(packed), source, total, KnowledgeGraphError)
            yield _checked(source, stream)
            if progress is not None:
                progress(total, total)
    except SyntaxError as error:
        number = error.lineno or ((m := re.search(r"\bline (\d+)", str(error))) and int(m.group(1)))
        line = f", line {number}" if number else ""
        said = str(error.msg or error)
        message = said + ("; save it as UTF-8" if "UTF-8" in said else _quoted(source, error))
        format_ = format_of(source)
        name = "a table or JSON lines" if format_ is None else format_.name
        raise KnowledgeGraphError(f"{source}{line}: not {name}: {message}") from error
    except (gzip.BadGzipFile, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise KnowledgeGraphError(f"{source} is damaged or cut short: {error}") from error
    except OSError as error:
        if error.filename is None and "Invalid data stream" not in str(error):
            raise
        raise KnowledgeGraphError(f"cannot read {source}: {error}") from error


def _quoted(source: Path, error: SyntaxError) -> str:
    """The words of the file that are wrong, where the parser names their columns."""
    first, last = error.offset, error.end_offset
    if error.lineno is None or first is None or last is None or error.end_lineno != error.lineno:
        return ""
    with reading(source, None) as stream:
        line = next(islice(stream, error.lineno - 1, None), b"")
    wrong = line.decode("utf-8", "replace")[first - 1 : last - 1].strip()
    return f" in {in_short(wrong)}; guardrail kg load --skip-invalid loads the rest"


class _Chunks(io.RawIOBase):
    """Pieces of bytes, one after another, as a raw stream."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        super().__init__()
        self._pieces, self._rest = pieces, memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        while not self._rest:
            piece = next(self._pieces, None)
            if piece is None:
                return 0
            self._rest = memoryview(piece)
        part, self._rest = self._rest[: len(buffer)], self._rest[len(buffer) :]
        buffer[: len(part)] = part
        return len(part)


def chunks(pieces: Iterator[bytes]) -> io.BufferedReader:
    """A stream over pieces of bytes."""
    return io.BufferedReader(_Chunks(pieces), _BLOCK)


def _blocks(stream: BinaryIO) -> Iterator[bytes]:
    return iter(lambda: stream.read(_BLOCK), b"")


def _counted(file: BinaryIO, total: int, progress: Progress | None) -> Iterator[bytes]:
    """The blocks of a file; reports how far it has been read."""
    for block in _blocks(file):
        if progress is not None:
            progress(file.tell(), total)
        yield block


def _checked(source: Path, stream: io.BufferedReader) -> io.BufferedReader:
    """The stream in UTF-8, without its byte order mark; XML is checked as it is read."""
    encoding = encoding_of(stream.peek(_BLOCK))
    if format_of(source) is RdfFormat.RDF_XML:  # which declares its encoding
        stream = chunks(_bounded_xml(stream, source))
    elif encoding.startswith(("utf-16", "utf-32")):
        texts = codecs.iterdecode(_blocks(stream), encoding)
        stream = chunks(text.encode() for text in texts if text)
    if stream.peek(3).startswith(codecs.BOM_UTF8):
        stream.read(3)
    return stream


def _bounded_xml(stream: BinaryIO, source: Path) -> Iterator[bytes]:
    """The blocks of XML: entities of 512 characters at most, elements 256 deep, all of them closed.

    Entities of entities grow without bound, and reading takes time by the square of the depth.
    """
    depth = 0

    def declare(name: str, parameter: int, value: str | None, *_: object) -> None:
        if value is None or parameter or len(value) > 512 or set("&%") & set(value):
            raise KnowledgeGraphError(
                f"{source}: the entity {name!r} is more than a short text; write it out"
            )

    def open_element(*_: object) -> None:
        nonlocal depth
        depth += 1
        if depth > 256:
            raise KnowledgeGraphError(f"{source}: elements nest over 256 deep")

    def close_element(*_: object) -> None:
        nonlocal depth
        depth -= 1

    parser = expat.ParserCreate()
    parser.EntityDeclHandler = declare
    parser.StartElementHandler, parser.EndElementHandler = open_element, close_element
    try:
        for block in _blocks(stream):
            parser.Parse(block)
            yield block
        parser.Parse(b"", True)
    except expat.ExpatError as error:
        raise KnowledgeGraphError(f"{source}: not RDF_XML: {error}") from error


class Selection(Value):
    """Which lines of a Wikidata dump are kept; an empty attribute keeps everything.

    All lines of an entity are consecutive in a dump; they are buffered until its classes are
    known. Properties are always kept, with their labels.

    Attributes:
        languages: Tags of the texts to keep (``en`` keeps ``en-GB``); untagged text always stays.
        properties: Ids of the properties whose facts to keep (``P31``).
        classes: Ids of the classes (``Q5``) whose instances to keep.
    """

    languages: tuple[str, ...] = ()
    properties: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()

    @property
    def everything(self) -> bool:
        """True if nothing is filtered."""
        return not (self.languages or self.properties or self.classes)

    def keep(self, lines: Iterable[bytes]) -> Iterator[bytes]:
        """Yield the lines of N-Triples to keep, those of an entity in one piece."""
        direct = b"http://www.wikidata.org/prop/direct/"
        entity = b"<http://www.wikidata.org/entity/"
        triple = re.compile(rb"[ \t]*(\S+)[ \t]+<([^>\n]*)>[ \t]+")
        languages = tuple(tag.lower().encode() for tag in self.languages)
        regional = tuple(tag + b"-" for tag in languages)
        properties = frozenset(direct + item.encode() for item in self.properties)
        classes = frozenset(entity + kind.encode() + b">" for kind in self.classes)
        block: list[bytes] = []
        subject, wanted = b"", not classes
        for line in lines:
            found = triple.match(line)
            if found is None:
                # A comment, or an invalid line that the load will report.
                yield line
                continue
            if found[1] != subject:
                if wanted and block:
                    yield b"".join(block)
                block, subject = [], found[1]
                wanted = not classes or subject.startswith(entity + b"P")
            predicate = found[2]
            if classes and predicate == direct + b"P31":
                wanted = wanted or line[found.end() :].split(None, 1)[0] in classes
            if properties and predicate.startswith(direct) and predicate not in properties:
                continue
            if languages and (tagged := re.search(rb'"@([A-Za-z0-9-]+)[ \t]*\.[ \t]*$', line)):
                tag = tagged[1].lower()
                if tag not in languages and not tag.startswith(regional):
                    continue
            block.append(line)
        if wanted and block:
            yield b"".join(block)
