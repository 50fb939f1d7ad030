"""The checks beside the judge: each in a file of its own, each with a switch in ``[checks]``."""

from __future__ import annotations

from collections.abc import Collection

from guardrail.verdict.checks.base import Check, Context
from guardrail.verdict.checks.exact import ExactMatch
from guardrail.verdict.checks.names import UnknownNames
from guardrail.verdict.checks.small_talk import SmallTalk
from guardrail.verdict.checks.truth_values import TruthValues
from guardrail.verdict.checks.typed_values import TypedValues

__all__ = ["Check", "Context", "all_checks", "checks_without"]


def all_checks() -> tuple[Check, ...]:
    """All checks, in the order in which they speak."""
    return (SmallTalk(), TruthValues(), TypedValues(), UnknownNames(), ExactMatch())


def checks_without(off: Collection[str]) -> tuple[Check, ...]:
    """All checks but those of some names."""
    return tuple(check for check in all_checks() if check.name not in off)
