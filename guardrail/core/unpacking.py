"""External files: unpacked up to a bound, and read by lines of bounded length."""

from __future__ import annotations

import gzip
import io
import lzma
import zlib
from collections.abc import Iterator
from typing import IO, AnyStr, BinaryIO, Final, cast

from guardrail.core.errors import GuardrailError

__all__ = ["LONGEST_LINE", "bounded_lines", "is_cut", "unpacked"]

MOST_UNPACKED: Final = 200
"""Times its packed size that a file may have; real graphs have some fifty."""
LEAST_REFUSED: Final = 64 << 20
"""Bytes that any file may unpack to."""
LONGEST_LINE: Final = 64 * 1024 * 1024
"""A longer input line, in characters or bytes, is refused; no more of it than this is ever held in
memory."""


def unpacked(
    stream: BinaryIO, source: object, packed: int, refused: type[GuardrailError]
) -> BinaryIO:
    """A packed file as it is unpacked, up to many times its size.

    Args:
        stream: What unpacks it; closed with the one returned.
        source: Its name, for messages.
        packed: Its size, in bytes.
        refused: The error that reading raises where it is larger, or damaged.
    """
    return cast("BinaryIO", io.BufferedReader(_Unpacked(stream, source, packed, refused), 1 << 18))


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
        self, stream: BinaryIO, source: object, packed: int, refused: type[GuardrailError]
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
