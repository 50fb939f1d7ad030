"""Evidence that a caller hands over: items of a list, and the ``guardrail`` field of a request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import BeforeValidator
from typing_extensions import TypedDict

from guardrail import Policy
from guardrail.core.errors import InputError
from guardrail.core.fields import did_you_mean, in_short
from guardrail.core.types import Evidence, OwnStrictness, Value
from guardrail.policy import policy_named
from guardrail.sources.items import evidence_items

__all__ = [
    "FIELD",
    "HandedOver",
    "RequestField",
    "request_field",
]

FIELD = "guardrail"
"""Name of the field in a request's body, and of the key in a LangChain config's metadata."""


class WrittenTable(TypedDict, total=False):
    """Rows of a table: objects by column, or lists of cells in the order of ``columns``."""

    rows: list[dict[str, object]] | list[list[object]]
    columns: list[str]
    subject: str
    name: str


class WrittenFile(TypedDict):
    """A document: its name, and its bytes in base 64, which may be a ``data:`` address."""

    filename: str
    file_data: str


class WrittenItem(TypedDict, total=False):
    """An item of evidence as a request writes it: a passage, a triple, or both; a table; a file."""

    text: str
    id: str | int
    title: str
    url: str
    triple: tuple[str, str, str]
    table: WrittenTable
    file: WrittenFile


def _read_items(items: object) -> tuple[Evidence, ...] | None:
    return None if items is None else evidence_items(items)


HandedOver = Annotated[
    tuple[Evidence, ...] | None,
    BeforeValidator(
        _read_items,
        json_schema_input_type=list[str | WrittenItem | tuple[str, str, str]] | None,
    ),
]
"""The type of a field that hands evidence over; see ``evidence_items``."""


class RequestField(Value):
    """What a request says of its own guarding.

    Attributes:
        evidence: What its answer is judged against; None where it hands nothing over.
        policy: A policy by name.
        strictness: How sure the judge must be, a preset or thresholds.
    """

    evidence: HandedOver = None
    policy: str | None = None
    strictness: OwnStrictness = None

    @property
    def changes_policy(self) -> bool:
        """Whether it asks for another policy, or for a strictness of its own."""
        return self.policy is not None or self.strictness is not None

    def chosen_policy(self, configured: Policy) -> Policy:
        """The named policy, else the configured one, with the given strictness.

        The time that an answer may take stays the configured one, and so does whether documents are
        judged: a caller does not change either.

        Raises:
            ConfigError: There is none of that name.
        """
        policy = configured
        if self.policy:
            # Time is the settings', and who tries the guardrail out, or has documents judged, does
            # so on every policy.
            policy = policy_named(self.policy)
            policy = policy.changed(
                deadline_s=configured.deadline_s,
                dry_run=policy.dry_run or configured.dry_run,
                structured=policy.structured or configured.structured,
            )
        return policy.changed(strictness=self.strictness) if self.strictness else policy


def request_field(value: object) -> RequestField:
    """Read the ``guardrail`` field of a request.

    Args:
        value: ``{"evidence": [...], "policy": "strict", "strictness": "lenient"}``; None for a
            request without it.

    Raises:
        InputError: It holds a key that is not known, or an item that is no evidence.
        ConfigError: There is no such policy or strictness.
    """
    if value is None:
        return RequestField()
    if not isinstance(value, Mapping):
        raise InputError(f"{FIELD!r} must be an object, not {_kind(value)}")
    known = tuple(RequestField.model_fields)
    for key in value:
        if key not in known:
            hint = did_you_mean(str(key), known)
            raise InputError(f"{FIELD} has no field {in_short(key)}; {hint}")
    evidence, policy = value.get("evidence"), value.get("policy")
    if policy is not None:
        if not isinstance(policy, str):
            raise InputError(f"{FIELD}.policy must be a policy's name, not {_kind(policy)}")
        policy_named(policy)
    items = None if evidence is None else evidence_items(evidence, f"{FIELD}.evidence")
    return RequestField(evidence=items, policy=policy, strictness=value.get("strictness"))


def _kind(value: object) -> str:
    return "null" if value is None else type(value).__name__
