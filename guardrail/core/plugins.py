"""Parts from outside: checks, judges, scorers and graphs of other packages, by name.

A package offers one as an entry point in its ``pyproject.toml``::

    [project.entry-points."kg_guardrail.checks"]
    promises = "my_package.promises:Promises"

and settings name it, ``promises``; or they name the class itself, ``my_package.promises:Promises``.
What is installed and not named does nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from traceback import extract_tb
from typing import Literal

from guardrail.core.errors import ConfigError, GuardrailError, InputError
from guardrail.core.types import Problem
from guardrail.core.workers import GivenUpError

Kind = Literal["checks", "judges", "scorers", "graphs"]
"""Kinds of parts; the group of entry points is ``kg_guardrail.`` and this."""

NOWHERE = "write module:Class of a module on Python's path, or the name of an installed part"
"""How parts from outside are named, for messages on a name that leads nowhere."""


def named_part(kind: Kind, name: str) -> Callable[..., object] | None:
    """The class or function that makes a part.

    Returns:
        None where there is no such entry point and no such module.

    Raises:
        ConfigError: It is there and cannot be loaded.
    """
    for entry in entry_points(group=f"kg_guardrail.{kind}", name=name):
        return _loaded(kind, name, entry.load)
    place = re.fullmatch(r"([A-Za-z_]\w*(?:\.\w+)*):([A-Za-z_]\w*)", name)
    if place is None:
        return None
    module, attribute = place.groups()
    try:
        return _loaded(kind, name, lambda: getattr(import_module(module), attribute))
    except ConfigError as error:
        cause = error.__cause__
        if isinstance(cause, ModuleNotFoundError) and f"{module}.".startswith(f"{cause.name}."):
            return None
        raise


def made_part(kind: Kind, name: str, make: Callable[[], object], needs: tuple[str, ...]) -> object:
    """Make a part, and see that it has all that its protocol asks for.

    Raises:
        ConfigError: It cannot be made, or lacks one of them.
    """
    with external_errors(f"{kind}: {name!r} cannot be made; it", ConfigError):
        part = make()
    missing = [need for need in needs if not hasattr(part, need)]
    if missing:
        raise ConfigError(
            f"{kind}: {name!r} makes a {type(part).__name__}, which lacks {', '.join(missing)}; "
            f"it needs {', '.join(needs)}, as docs/extending.md shows"
        )
    return part


@contextmanager
def external_errors(what: str, kind: type[GuardrailError]) -> Iterator[None]:
    """Run code of another package, which may raise anything.

    Args:
        what: Whose code it is, for the message.
        kind: The error that all it raises becomes; typed errors stay as they are, but for those
            that blame a caller's input, which it was not called with.

    Raises:
        GuardrailError: It failed. The message names the line of the code that did.
    """
    try:
        yield
    except Exception as error:
        if isinstance(error, GuardrailError) and not isinstance(error, InputError):
            raise
        raise kind(_said(what, error)) from error


def _said(what: str, error: Exception) -> str:
    """What an error of another package's code says, with the line of the code."""
    *_, last = extract_tb(error.__traceback__)
    place = f"{Path(last.filename).name}:{last.lineno}"
    return f"{what} failed: {type(error).__name__}: {error} ({place})"


def note_failure(problems: list[Problem], part: str, what: str, error: Exception) -> None:
    """Record, once, that a part failed without which the rest goes on.

    Raises:
        GivenUpError: It says that nobody waits for the rest either.
    """
    if isinstance(error, GivenUpError):
        raise error
    typed = isinstance(error, GuardrailError) and not isinstance(error, InputError)
    problem = Problem(part=part, message=str(error) if typed else _said(what, error))
    if problem not in problems:
        problems.append(problem)


@contextmanager
def reporting(problems: list[Problem], part: str, what: str) -> Iterator[None]:
    """Run code of another package without which the rest goes on.

    Raises:
        GivenUpError: Nobody waits for the rest either.
    """
    try:
        yield
    except Exception as error:
        note_failure(problems, part, what, error)


def _loaded(kind: Kind, name: str, load: Callable[[], object]) -> Callable[..., object]:
    try:
        found = load()
    except Exception as error:  # whatever somebody else's module raises when it is imported
        raise ConfigError(f"{kind}: {name!r} cannot be loaded: {error}") from error
    if not callable(found):
        raise ConfigError(f"{kind}: {name!r} is neither a class nor a function that makes one")
    return found
