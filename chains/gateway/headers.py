"""What a reply of the gateway tells in its headers of the verdicts behind it."""

from __future__ import annotations

from collections.abc import Sequence

from guardrail import GuardedAnswer, Policy

__all__ = ["DRY_RUN", "WOULD", "dry_run_headers"]

DRY_RUN = "x-guardrail-dry-run"
"""``true`` on a reply whose text is the model's own."""
WOULD = "x-guardrail-would"
"""What the policy would have done with each answer, in the order of the reply."""


def dry_run_headers(policy: Policy, answers: Sequence[GuardedAnswer] = ()) -> dict[str, str]:
    """The headers that tell of a dry run; nothing where it is none.

    Args:
        policy: The call's.
        answers: The verdicts; empty where they come behind the headers, as in a stream.
    """
    if not policy.dry_run:
        return {}
    would = [answer.would.value for answer in answers if answer.would is not None]
    return {DRY_RUN: "true"} | ({WOULD: ", ".join(would)} if would else {})
