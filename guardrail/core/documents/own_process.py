"""Documents read by a process of its own, with bounds of memory and time.

A small file may unpack to any size, or take its reader hours. A thread that reads cannot be
stopped; a process can.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from typing import Any, Final

from guardrail.core.errors import InputError, OverloadedError

__all__ = ["MAX_MEMORY", "MAX_TEXT", "in_own_process"]

MAX_MEMORY: Final = 2 * 1024**3
"""Most bytes of memory that reading takes."""
AT_ONCE: Final = 4
"""Documents that are read at once; more wait."""
MAX_TEXT: Final = 64 * 1024 * 1024
"""Most characters of a document's text, as many as a file of plain text may have."""
_ROOM = threading.BoundedSemaphore(AT_ONCE)

Reader = Callable[[bytes], list[str]]


def in_own_process(reader: Reader, data: bytes, name: str, seconds: float) -> list[str]:
    """The pages of a document, as a function of a module reads them.

    Args:
        reader: The function, from the file's bytes to Markdown. What is wrong with the file it
            tells in an ``InputError`` whose text goes on behind the file's name.
        data: The file's bytes.
        name: Its name, for errors.
        seconds: Most time that reading takes.

    Raises:
        InputError: The reader says so, it takes more than ``seconds`` or ``MAX_MEMORY``, or the
            text is longer than ``MAX_TEXT``.
        OverloadedError: Others are read for as long.
    """
    if not _ROOM.acquire(timeout=seconds):
        raise OverloadedError(f"{AT_ONCE} other documents are being read; send {name} again later")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-m", __name__, reader.__module__, reader.__name__]
    try:
        done = subprocess.run(
            command, input=data, capture_output=True, env=environment, timeout=seconds, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise InputError(f"{name} takes more than {seconds:g} s to read; split it") from error
    finally:
        _ROOM.release()
    if done.returncode:
        raise InputError(f"{name} cannot be read in {MAX_MEMORY // 1024**3} GB of memory")
    result: dict[str, Any] = json.loads(done.stdout)
    if "error" in result:
        raise InputError(f"{name} {result['error']}")
    pages: list[str] = result["pages"]
    return pages


def main() -> None:
    """Read a document from the standard input, and write its pages as JSON."""
    with suppress(ImportError):  # not on Windows
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY, MAX_MEMORY))
    module, name = sys.argv[1:]
    reader: Reader = getattr(import_module(module), name)
    try:
        pages = reader(sys.stdin.buffer.read())
        if sum(map(len, pages)) > MAX_TEXT:
            raise InputError(f"holds more than {MAX_TEXT:,} characters; split it")
        result: dict[str, object] = {"pages": pages}
    except InputError as error:
        result = {"error": str(error)}
    sys.stdout.write(json.dumps(result))


if __name__ == "__main__":
    main()
