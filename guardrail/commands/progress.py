"""How far a long command is: bars on stderr, where it is a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

__all__ = ["Tell", "bars", "telling", "visible"]

Tell = Callable[[str, int, int], None]
"""Takes a task's name, the amount done and the total."""


def visible(target: str = "") -> bool:
    """Whether to show bars: stderr is a terminal, and results (``-`` is stdout) go elsewhere."""
    return sys.stderr.isatty() and not (target == "-" and sys.stdout.isatty())


def bars() -> Progress:
    """Bars with their name, count and remaining time; nothing where stderr is no terminal."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        disable=not sys.stderr.isatty(),
    )


@contextmanager
def telling(target: str = "") -> Iterator[Tell]:
    """A function that shows a bar for each task.

    Args:
        target: Where the results go meanwhile; see ``visible``.
    """
    if not visible(target):
        yield lambda name, done, total: None
        return
    with bars() as progress:
        tasks: dict[str, TaskID] = {}

        def tell(name: str, done: int, total: int) -> None:
            if name not in tasks:
                tasks[name] = progress.add_task(name, total=total)
            progress.update(tasks[name], completed=done, total=total)

        yield tell
