"""JSON lines in, JSON lines out, in order: the contract of every batch command.

The number of unusable lines is printed on stderr at the end, and progress as well if it is a
terminal.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import IO

from guardrail.commands.progress import bars, visible
from guardrail.core.errors import InputError
from guardrail.core.fields import in_short
from guardrail.core.rows import bounded_lines
from guardrail.core.types import Action
from guardrail.lines.rows import LineJob, RowT, json_line

__all__ = ["prepare_target", "put_line", "results_of", "run_lines"]

KEYS_NAMED = 8
"""Most keys that were not read to be named."""
_ENCODING, _ERRORS = "utf-8-sig", "surrogateescape"


def run_lines(
    job: LineJob[RowT],
    source: str,
    target: str,
    show: Callable[[dict[str, object]], None] | None = None,
) -> int:
    """Run a job from one file to another; ``-`` is stdin or stdout.

    Args:
        job: What is done with the rows.
        source: Where they are.
        target: Where the results go.
        show: Prints a result for a person, where the results go to a terminal; None for JSON.

    Returns:
        The number of lines that yielded an error, or an answer that nothing could verify.

    Raises:
        InputError: A file cannot be opened, the input is empty, or every line failed.
    """
    if source == "-" and sys.stdin.isatty():
        print("guardrail: reading JSON lines from the terminal; Ctrl-D ends them", file=sys.stderr)
    failures = lines = 0
    with ExitStack() as stack:
        reader, total = _open_source(source, stack)
        writer = sys.stdout if target == "-" else stack.enter_context(_open_target(target))
        try:
            for result in _with_progress(job, bounded_lines(reader), total, target, stack):
                lines += 1
                failures += "error" in result or result.get("action") == Action.UNVERIFIED
                if show is not None and "error" not in result:
                    show(result)
                    continue
                writer.write(json_line(result) + "\n")
                writer.flush()
        except KeyboardInterrupt:
            print(f"guardrail: stopped; lines written: {lines}", file=sys.stderr)
            raise
    _tell_unread(job)
    if not lines:
        raise _empty(source)
    if failures == lines:
        raise InputError(f"all {lines} lines failed" if lines > 1 else "the only line failed")
    if failures:
        print(f"guardrail: {failures} of {lines} lines failed", file=sys.stderr)
    return failures


def results_of(job: LineJob[RowT], source: str) -> list[dict[str, object]]:
    """The results of a whole file; ``-`` is stdin. What could not be used is a row with ``error``.

    Raises:
        InputError: The file cannot be opened, or is empty.
    """
    with ExitStack() as stack:
        reader, total = _open_source(source, stack)
        found = list(_with_progress(job, bounded_lines(reader), total, "-", stack))
    _tell_unread(job)
    if not found:
        raise _empty(source)
    return found


def put_line(result: dict[str, object], target: str) -> None:
    """Write one result as a line of JSON; ``-`` is stdout.

    Raises:
        InputError: The file cannot be opened.
    """
    with ExitStack() as stack:
        writer = sys.stdout if target == "-" else stack.enter_context(_open_target(target))
        writer.write(json_line(result) + "\n")


def prepare_target(path: Path) -> None:
    """Make the folder of a file that is written when all is judged, or tell now that it cannot be.

    Raises:
        InputError: The folder cannot be made, or nothing may be written into it.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot make the folder of {path}: {error.strerror}") from error
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise InputError(f"cannot write {path}: {os.strerror(errno.EACCES)}")


def _tell_unread(job: LineJob[RowT]) -> None:
    if job.unread:
        keys = ", ".join(map(in_short, list(job.unread)[:KEYS_NAMED]))
        more = " and more" if len(job.unread) > KEYS_NAMED else ""
        print(f"guardrail: not read: {keys}{more}; no field of {job.title}", file=sys.stderr)


def _empty(source: str) -> InputError:
    return InputError(f"no rows in {'the input' if source == '-' else source}: it is empty")


def _open_source(source: str, stack: ExitStack) -> tuple[IO[str], int | None]:
    """Open the input and count its lines where it is a file."""
    if source == "-":
        return open(sys.stdin.fileno(), encoding=_ENCODING, errors=_ERRORS, closefd=False), None
    path = Path(source)
    try:
        with path.open("rb") as raw:
            total = sum(chunk.count(b"\n") for chunk in iter(lambda: raw.read(1 << 20), b""))
        return stack.enter_context(path.open(encoding=_ENCODING, errors=_ERRORS)), total
    except OSError as error:
        raise InputError(f"cannot read {source}: {error.strerror}") from error


def _open_target(target: str) -> IO[str]:
    try:
        return Path(target).open("w", encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot write {target}: {error.strerror}") from error


def _with_progress(
    job: LineJob[RowT], lines: Iterable[str], total: int | None, target: str, stack: ExitStack
) -> Iterator[dict[str, object]]:
    """Show a bar on stderr where it is a terminal to which no results go."""
    if not visible(target):
        yield from job.results(lines)
        return
    progress = stack.enter_context(bars())
    task = progress.add_task(job.title, total=total)
    for result in job.results(lines):
        yield result
        progress.advance(task)
