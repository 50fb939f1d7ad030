"""Public names that load their module on first use (PEP 562)."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Mapping
from importlib import import_module

__all__ = ["loaded_on_use"]


def loaded_on_use(
    package: str,
    homes: Mapping[str, str],
    extras: Mapping[str, str] | None = None,
    *,
    moved: Mapping[str, str] | None = None,
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of a package whose public names load on first use.

    Args:
        package: The package's ``__name__``; its ``__all__`` is what ``dir`` gives.
        homes: By module, the names that it is asked for, separated by spaces.
        extras: By import name of a third party, the extra that brings it.
        moved: By module, former public names; they load with a ``DeprecationWarning``.

    Example:
        >>> __getattr__, __dir__ = loaded_on_use(__name__, {"json": "loads dumps"})
        >>> __getattr__("loads")("[1]")
        [1]
    """
    former = _by_name(moved or {})
    home = _by_name(homes) | former

    def load(name: str) -> object:
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        if name in former:
            message = f"import {name} from {former[name]}; {package}.{name} will be removed"
            warnings.warn(message, DeprecationWarning, stacklevel=2)
        try:
            value: object = getattr(import_module(home[name]), name)
        except ModuleNotFoundError as error:
            missing = (error.name or "").partition(".")[0]
            if missing not in (extras or {}):
                raise
            from guardrail.core.errors import MissingExtraError

            raise MissingExtraError(missing, (extras or {})[missing]) from error
        if name not in former:
            setattr(sys.modules[package], name, value)
        return value

    return load, lambda: sorted(sys.modules[package].__all__)


def _by_name(homes: Mapping[str, str]) -> dict[str, str]:
    return {name: module for module, names in homes.items() for name in names.split()}
