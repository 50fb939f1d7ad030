"""The checks that complement the judge.

Those of ``all_checks`` have a switch in ``[checks]``. Others join them from outside: by name in
``checks.more``, or handed to the guardrail.
"""

from __future__ import annotations

from typing import cast

from guardrail.core.errors import ConfigError
from guardrail.core.plugins import NOWHERE, made_part, named_part
from guardrail.verdict.checks.base import Check
from guardrail.verdict.checks.base import Context as Context
from guardrail.verdict.checks.computed import Average
from guardrail.verdict.checks.copied import Copied
from guardrail.verdict.checks.hours import OpeningHours
from guardrail.verdict.checks.names import KnownSubject, Mentions, UnknownNames, ValidInTime
from guardrail.verdict.checks.stated import ExactMatch, Stated, YesNo
from guardrail.verdict.checks.typed_values import TypedValues


def all_checks() -> tuple[Check, ...]:
    """All checks with a switch in the configuration, in the order in which they speak."""
    return (TypedValues(), YesNo(), UnknownNames(), ExactMatch(), Mentions())


def guarantees() -> tuple[Check, ...]:
    """The checks whose findings may settle a verdict; they cannot be switched off."""
    return (Copied(), Stated(), Average(), OpeningHours(), KnownSubject(), ValidInTime())


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
    return cast("Check", made_part("checks", name, make, ("name", "apply")))
