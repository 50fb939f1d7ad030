"""Rows of CSV, TSV and JSON lines: one reader for graphs, evidence and labelled answers.

Files are unpacked up to a bound and read by lines of bounded length. The encoding and the separator
are detected, as spreadsheets of all countries write them.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import json
import lzma
import re
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from itertools import chain, islice, zip_longest
from typing import IO, AnyStr, BinaryIO, Final, TextIO, cast

from guardrail.core.errors import GuardrailError, InputError
from guardrail.core.fields import in_short
from guardrail.core.incoming import read_clean_json
from guardrail.core.text.lexicon import lexicon_set

MOST_UNPACKED: Final = 200
"""Times its packed size that a file may have; real graphs have some fifty."""
LEAST_REFUSED: Final = 64 << 20
"""Bytes that any file may unpack to."""
LONGEST_LINE: Final = 64 * 1024 * 1024
"""A longer input line, in characters or bytes, is refused; no more of it than this is ever held in
memory."""


def unpacked(
    stream: BinaryIO | io.BufferedIOBase,
    source: object,
    packed: int,
    refused: type[GuardrailError],
) -> io.BufferedReader:
    """A packed file as it is unpacked, up to many times its size.

    Args:
        stream: What unpacks it; closed with the one returned.
        source: Its name, for messages.
        packed: Its size, in bytes.
        refused: The error that reading raises where it is larger, or damaged.
    """
    return io.BufferedReader(_Unpacked(stream, source, packed, refused), 1 << 18)


def is_cut(line: str | bytes) -> bool:
    """Whether a line is too long, so that no more than its beginning was read."""
    return len(line) > LONGEST_LINE


def bounded_lines(reader: IO[AnyStr]) -> Iterator[AnyStr]:
    """Yield lines; of an overlong one the beginning, recognisable by its length."""
    while line := reader.readline(LONGEST_LINE + 1):
        piece = line
        while is_cut(piece) and piece[-1:] not in ("\n", b"\n"):
            piece = reader.readline(LONGEST_LINE + 1)
        yield line


class _Unpacked(io.RawIOBase):
    """What unpacks to many times its size is refused before it fills memory or disk."""

    def __init__(
        self,
        stream: BinaryIO | io.BufferedIOBase,
        source: object,
        packed: int,
        refused: type[GuardrailError],
    ) -> None:
        super().__init__()
        self._unpacked, self._source, self._refused = stream, source, refused
        self._most = max(MOST_UNPACKED * packed, LEAST_REFUSED)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        return self._unpacked.seek(offset, whence)

    def tell(self) -> int:
        return self._unpacked.tell()

    def close(self) -> None:
        self._unpacked.close()
        super().close()

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        try:
            piece = self._unpacked.read(len(buffer))
        except (gzip.BadGzipFile, EOFError, lzma.LZMAError, zlib.error) as error:
            raise self._refused(f"{self._source} is damaged or cut short: {error}") from error
        buffer[: len(piece)] = piece
        if self._unpacked.tell() > self._most:
            raise self._refused(
                f"{self._source} unpacks to over {MOST_UNPACKED} times its size; "
                "if that is meant, unpack it first"
            )
        return len(piece)


TABLE_FILES: Final = {".csv": "csv", ".tsv": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl"}
"""How files of tables are read, by the endings of their names."""

Rows = Iterator[tuple[int, dict[str, object]]]

# Characters of one cell; evidence may be a whole document
csv.field_size_limit(10_000_000)


def read_rows(stream: BinaryIO, kind: str, source: str) -> Rows:
    """The rows of a file, each with its line and its cells by column.

    UTF-8, UTF-16 and Windows-1252 are read, and commas, semicolons, tabs and bars between cells; a
    first line such as ``sep=;`` names the sign. Blank lines above the names of the columns are
    passed over.

    Raises:
        InputError: The file has one column, or a row is no row of a table; names the line.
    """
    size = 1 << 18  # bytes in which the encoding is looked for
    buffered = io.BufferedReader(cast(io.RawIOBase, stream), size)
    encoding = encoding_of(buffered.peek(size))
    text = io.TextIOWrapper(buffered, encoding=encoding, newline="")
    try:
        yield from (_json_rows if kind == "jsonl" else _csv_rows)(text, kind, source)
    except UnicodeDecodeError as error:
        byte = error.object[error.start]
        raise InputError(f"{source} is not UTF-8 (byte 0x{byte:02X}); save it as UTF-8") from error
    finally:
        if not stream.closed:  # whoever left off reading may have closed the file
            text.detach()
            buffered.detach()


def cell_text(value: object) -> str | None:
    """The text of a cell; None for an empty one and for one that is marked as missing (*NaN*).

    Numbers are written in figures without exponents, dates as ``2025-08-11``, points in time as
    ``2025-08-11 14:30:00``, times as ``2.5 hours``, and what is nested as JSON.
    """
    if hasattr(value, "tolist"):
        value = value.tolist()  # of numpy
    if value is None or isinstance(value, bytes | bytearray | memoryview) or value != value:
        return None  # only what is no number or time differs from itself
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        value = Decimal(f"{value:.15g}")
    if isinstance(value, int):
        value = Decimal(value)  # which writes figures of any length
    if isinstance(value, Decimal):
        return f"{value:f}" if value.is_finite() else None
    if isinstance(value, datetime):
        return value.isoformat(" ", "seconds")
    if isinstance(value, timedelta):
        return _duration(value)
    if isinstance(value, dict | list | tuple):
        try:
            return json.dumps(value, ensure_ascii=False, default=str)
        except (ValueError, RecursionError):
            return None  # a figure of thousands of digits, or nested without end: no cell
    text = str(value).strip()
    return None if not text or text.casefold() in lexicon_set("cells", "missing") else text


def _duration(value: timedelta) -> str:
    """A length of time in the largest unit that takes two decimals at most."""
    units = {"days": 86_400, "hours": 3_600, "minutes": 60}
    for name, seconds in units.items():
        count = value.total_seconds() / seconds
        if abs(count) >= 1 and round(count, 2) == count:
            return f"{count:g} {name}"
    return f"{value.total_seconds():g} seconds"


def encoding_of(sample: bytes) -> str:
    """The encoding of a text that begins with these bytes: UTF-8, 16 or 32, or Windows-1252."""
    for mark, encoding in (
        (codecs.BOM_UTF8, "utf-8-sig"),
        (codecs.BOM_UTF32_LE, "utf-32"),
        (codecs.BOM_UTF32_BE, "utf-32"),
        (codecs.BOM_UTF16_LE, "utf-16"),
        (codecs.BOM_UTF16_BE, "utf-16"),
    ):
        if sample.startswith(mark):
            return encoding
    if sample.count(0) * 4 > len(sample):
        return "utf-16-be" if sample[0::2].count(0) > sample[1::2].count(0) else "utf-16-le"
    try:
        codecs.getincrementaldecoder("utf-8")().decode(sample)
        return "utf-8"
    except UnicodeDecodeError:
        pass
    # Accents of Western languages stand apart, high bytes of other encodings side by side.
    if len(re.findall(rb"[\x80-\xff]{2}", sample)) * 5 > len(re.findall(rb"[\x80-\xff]", sample)):
        return "utf-8"
    try:
        sample.decode("cp1252")
        return "cp1252"
    except UnicodeDecodeError:
        return "utf-8"


def _csv_rows(text: TextIO, kind: str, source: str) -> Rows:
    above, lines = 0, iter(text)

    def next_line() -> str:
        nonlocal above
        line = next(lines, "")
        while line and not line.strip(' \t,;|"\r\n'):
            above, line = above + 1, next(lines, "")
        return line

    first = next_line()
    if named := re.fullmatch(r"""["']?sep=(.)["']?\s*""", first.strip(), flags=re.IGNORECASE):
        above, first = above + 1, next_line()
    sample = [first, *islice(lines, 50)] if first else []
    if not sample:
        return
    mark = named[1] if named else ""
    if "|" in "".join(sample[1:2]) and re.fullmatch(r"[\s|:-]*-[\s|:-]*", sample[1]):  # Markdown
        above, mark = above + 1, "|"
        lines = (line.strip().strip("|") for line in chain([first], sample[2:], lines))
        sample = [*islice(lines, 51)]
    mark = mark or _separator(sample, kind, source)
    reader = csv.reader(chain(sample, lines), delimiter=mark, strict=True)
    try:
        columns = [name.strip() for name in next(reader, [])]
        twice = next((name for name, count in Counter(columns).items() if name and count > 1), None)
        if twice is not None:
            raise InputError(
                f"{source}: two columns are called {in_short(twice)}; give each a name of its own"
            )
        # Spreadsheets write columns without a name behind the last one, which hold nothing.
        empty = [place for place, name in enumerate(columns) if not name]
        for row in reader:
            line = reader.line_num + above
            title = "; if the line above is a title, delete it" if reader.line_num == 2 else ""
            if len(row) > len(columns):
                raise InputError(f"{source}, line {line}: more values than columns{title}")
            if len(empty) > 1 and any(row[place].strip() for place in empty if place < len(row)):
                raise InputError(
                    f"{source}, line {line}: a value of several columns without a name; give each "
                    f"a name of its own{title}"
                )
            if row:
                yield line, dict(zip_longest(columns, row))
    except csv.Error as error:
        raise InputError(f"{source}, line {reader.line_num + above}: {error}") from error


def _separator(sample: Sequence[str], kind: str, source: str) -> str:
    """The separator that gives most lines as many cells as the first, at least two."""
    scores, title = {}, ""
    separators = {"csv": ",;\t|", "tsv": "\t,;|"}[kind]  # the likeliest first
    for mark in separators:
        widths = _widths(sample, mark)
        if widths and widths[0] == 1 and widths.count(widths[-1]) > 1 < widths[-1]:
            title = "; if the first line is a title, delete what is above the names of the columns"
        if widths and widths[0] > 1:
            scores[mark] = (sum(width == widths[0] for width in widths) / len(widths), widths[0])
    if scores:
        return max(scores, key=scores.__getitem__)
    lines = [line for line in sample if line.strip()]
    if len(lines) == 1:
        return separators[0]  # a table without rows
    signs = (sign for sign in lines[0].strip() if not (sign.isalnum() or sign in " _\"'"))
    likely = next((s for s in signs if len({line.count(s) for line in lines}) == 1), None)
    hint = f"; if {likely!r} separates them, write sep={likely} above" if likely else ""
    raise InputError(
        f"{source} has one column; separate columns with a comma, semicolon, tab or bar"
        f"{title or hint}"
    )


def _widths(sample: Sequence[str], mark: str) -> list[int]:
    widths: list[int] = []
    try:
        for row in csv.reader(sample, delimiter=mark, strict=True):
            widths += [len(row)] if row else []
    except csv.Error:
        pass  # the last cell may go on behind the sample
    return widths


def _json_rows(text: TextIO, kind: str, source: str) -> Rows:
    for number, line in enumerate(text, start=1):
        if not line.strip():
            continue
        try:
            row = read_clean_json(line.removeprefix("\ufeff"))
        except (ValueError, RecursionError) as error:
            raise InputError(f"{source}, line {number}: not JSON: {error}") from error
        if not isinstance(row, dict):
            raise InputError(f"{source}, line {number}: not a JSON object")
        yield number, row
