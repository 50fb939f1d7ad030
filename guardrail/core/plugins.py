"""Parts from outside: checks, judges, scorers and graphs of other packages, by name.

A package offers one as an entry point in its ``pyproject.toml``::

    [project.entry-points."kg_guardrail.checks"]
    promises = "my_package.promises:Promises"

and settings name it, ``promises``; or they name the class itself, ``my_package.promises:Promises``.
What is installed and not named does nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import entry_points
from typing import Literal

from guardrail.core.errors import ConfigError

__all__ = ["NOWHERE", "Kind", "named_part"]

Kind = Literal["checks", "judges", "scorers", "graphs"]
"""Kinds of parts; the group of entry points is ``kg_guardrail.`` and this."""

NOWHERE = "write module:Class of a module on Python's path, or the name of an installed part"
"""How parts from outside are named, for messages on a name that leads nowhere."""

_PLACE = re.compile(r"([A-Za-z_]\w*(?:\.\w+)*):([A-Za-z_]\w*)")


def named_part(kind: Kind, name: str) -> Callable[..., object] | None:
    """The class or function that makes a part.

    Args:
        kind: What it is to make.
        name: Name of an entry point, or ``module:Class``.

    Returns:
        None where there is no such entry point and no such module.

    Raises:
        ConfigError: It is there and cannot be loaded.
    """
    for entry in entry_points(group=f"kg_guardrail.{kind}", name=name):
        return _loaded(kind, name, entry.load)
    place = _PLACE.fullmatch(name)
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


def _loaded(kind: Kind, name: str, load: Callable[[], object]) -> Callable[..., object]:
    try:
        found = load()
    except Exception as error:  # whatever somebody else's module raises when it is imported
        raise ConfigError(f"{kind}: {name!r} cannot be loaded: {error}") from error
    if not callable(found):
        raise ConfigError(f"{kind}: {name!r} is neither a class nor a function that makes one")
    return found
