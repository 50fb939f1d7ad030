"""JSON lines in, JSON lines out, in order, with progress bars: the contract of batch commands.

The number of unusable lines is printed on stderr at the end, and progress as well if it is a
terminal.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import IO, TYPE_CHECKING

from guardrail.core.errors import InputError, file_errors
from guardrail.core.fields import in_short
from guardrail.core.rows import bounded_lines
from guardrail.core.types import Action
from guardrail.lines import LineJob, Row, RowT, json_line

if TYPE_CHECKING:
    from rich.progress import TaskID

Tell = Callable[[str, int, int | None], None]
"""Takes a task's name, the amount done and the total."""


class QuestionRow(Row):
    """A question."""

    question: str


def run_lines(
    job: LineJob[RowT],
    source: str,
    target: str,
    show: Callable[[dict[str, object]], None] | None = None,
) -> None:
    """Run a job from one file to another; ``-`` is stdin or stdout.

    ``show`` prints a result for people; without it, results are written as JSON.

    Raises:
        InputError: A file cannot be opened, the input is empty, or every line failed.
    """
    failures = lines = 0
    with ExitStack() as stack:
        results = _results(job, source, target, stack)
        writer = stack.enter_context(_open_target(target))
        try:
            for result in results:
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
    if failures == lines:
        raise InputError(f"all {lines} lines failed" if lines > 1 else "the only line failed")
    if failures:
        print(f"guardrail: {failures} of {lines} lines failed", file=sys.stderr)


def results_of(job: LineJob[RowT], source: str) -> list[dict[str, object]]:
    """The results of a whole file; ``-`` is stdin. An unusable row has an ``error``.

    Raises:
        InputError: The file cannot be opened, or is empty.
    """
    with ExitStack() as stack:
        return list(_results(job, source, "-", stack))


def put_line(result: dict[str, object], target: str) -> None:
    """Write one result as a line of JSON; ``-`` is stdout. Raises InputError."""
    with _open_target(target) as writer:
        writer.write(json_line(result) + "\n")


def prepare_target(path: Path) -> None:
    """Create the folder of a file that will be written at the end, or fail now.

    Raises:
        InputError: The folder cannot be created, or is not writable.
    """
    with file_errors("make the folder of", path):
        path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_dir():
        raise InputError(f"cannot write {path}: it is a folder")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise InputError(f"cannot write {path}: {os.strerror(errno.EACCES)}")


@contextmanager
def telling(target: str = "") -> Iterator[Tell]:
    """A function that shows a progress bar for each task, on stderr if that is a terminal.

    There are no bars if the results of ``target`` go to the terminal, too (``-`` is stdout).
    """
    if not sys.stderr.isatty() or (target == "-" and sys.stdout.isatty()):
        yield lambda name, done, total: None
        return
    from rich import progress
    from rich.console import Console

    columns = (
        progress.TextColumn("{task.description}"),
        progress.BarColumn(),
        progress.MofNCompleteColumn(),
        progress.TimeRemainingColumn(),
    )
    with progress.Progress(*columns, console=Console(stderr=True)) as bars:
        tasks: dict[str, TaskID] = {}

        def tell(name: str, done: int, total: int | None) -> None:
            if name not in tasks:
                tasks[name] = bars.add_task(name, total=total)
            bars.update(tasks[name], completed=done, total=total)

        yield tell


def _results(
    job: LineJob[RowT], source: str, target: str, stack: ExitStack
) -> Iterator[dict[str, object]]:
    """The results of a file that is opened now; unknown keys are reported at its end."""
    if source == "-" and sys.stdin.isatty():
        print("guardrail: reading JSON lines from the terminal; Ctrl-D ends them", file=sys.stderr)
    reader, total = _open_source(source, stack)
    tell = stack.enter_context(telling(target))

    def results() -> Iterator[dict[str, object]]:
        count = 0
        for count, result in enumerate(job.results(bounded_lines(reader)), start=1):
            yield result
            tell(job.title, count, total)
        if job.unread:
            named = list(job.unread)[:8]
            keys = ", ".join(map(in_short, named))
            more = " and more" if len(job.unread) > len(named) else ""
            print(f"guardrail: not read: {keys}{more}; no field of {job.title}", file=sys.stderr)
        if not count:
            place = "the input" if source == "-" else source
            raise InputError(f"no rows in {place}: it is empty")

    return results()


def _open_source(source: str, stack: ExitStack) -> tuple[IO[str], int | None]:
    """Open the input, and count its lines if it is a file."""
    how = {"encoding": "utf-8-sig", "errors": "surrogateescape"}
    if source == "-":
        return open(sys.stdin.fileno(), closefd=False, **how), None  # type: ignore[call-overload]
    path = Path(source)
    with file_errors("read", source):
        with path.open("rb") as raw:
            total = sum(chunk.count(b"\n") for chunk in iter(lambda: raw.read(1 << 20), b""))
        return stack.enter_context(path.open(**how)), total  # type: ignore[call-overload]


def _open_target(target: str) -> AbstractContextManager[IO[str]]:
    if target == "-":
        return nullcontext(sys.stdout)
    with file_errors("write", target):
        return Path(target).open("w", encoding="utf-8")
