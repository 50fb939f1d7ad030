"""The checks beside the judge: each in a file of its own, each with a switch in ``[checks]``.

Others join them from outside: by name in ``checks.more``, or handed to the guardrail.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import cast

from guardrail.core.errors import ConfigError
from guardrail.core.plugins import NOWHERE, named_part
from guardrail.verdict.checks.aggregates import Aggregates
from guardrail.verdict.checks.base import Check, Context
from guardrail.verdict.checks.exact import ExactMatch
from guardrail.verdict.checks.names import UnknownNames
from guardrail.verdict.checks.typed_values import TypedValues
from guardrail.verdict.checks.weekday_hours import WeekdayHours
from guardrail.verdict.checks.yes_no import YesNo

__all__ = ["Check", "Context", "all_checks", "checks_without", "create_check"]


def all_checks() -> tuple[Check, ...]:
    """All checks of the package, in the order in which they speak."""
    return (TypedValues(), Aggregates(), WeekdayHours(), YesNo(), UnknownNames(), ExactMatch())


def create_check(name: str) -> Check:
    """Make a check of another package.

    Args:
        name: Name of an entry point of ``kg_guardrail.checks``, or ``module:Class``.

    Raises:
        ConfigError: There is none, or it is no check.
    """
    make = named_part("checks", name)
    if make is None:
        raise ConfigError(f"there is no check {name!r}; {NOWHERE}")
    try:
        check = make()
    except TypeError as error:
        raise ConfigError(f"the check {name!r} cannot be made: {error}") from error
    if not isinstance(getattr(check, "name", None), str) or not hasattr(check, "apply"):
        raise ConfigError(f"{name!r} is no check; it needs a name and a method apply")
    return cast("Check", check)


def checks_without(off: Collection[str]) -> tuple[Check, ...]:
    """All checks but those of some names."""
    return tuple(check for check in all_checks() if check.name not in off)
