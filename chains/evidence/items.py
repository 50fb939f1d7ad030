"""The ``guardrail`` field of a request: evidence, policy and strictness."""

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

__all__ = ["FIELD", "HandedOver", "RequestField", "request_field"]

FIELD = "guardrail"
"""Name of the field of a request's body, and of the key of a LangChain config's metadata."""


class WrittenTable(TypedDict, total=False):
    """A table: rows as objects by column, or as lists of cells in the order of ``columns``."""

    rows: list[dict[str, object]] | list[list[object]]
    columns: list[str]
    subject: str
    name: str


class WrittenFile(TypedDict):
    """A document: its name, and its bytes in base 64 or as a ``data:`` address."""

    filename: str
    file_data: str


class WrittenItem(TypedDict, total=False):
    """An item of evidence: a passage, a triple or both; a table; a file."""

    text: str
    id: str | int
    title: str
    url: str
    triple: tuple[str, str, str]
    table: WrittenTable
    file: WrittenFile


HandedOver = Annotated[
    tuple[Evidence, ...] | None,
    BeforeValidator(
        lambda items: None if items is None else evidence_items(items),
        json_schema_input_type=list[str | WrittenItem | tuple[str, str, str]] | None,
    ),
]
"""The type of a field of evidence; see ``evidence_items``."""


class RequestField(Value):
    """The ``guardrail`` field of a request.

    Attributes:
        evidence: Evidence to judge the answer against; None for none of its own.
        policy: Name of a policy.
        strictness: How sure the judge must be, a preset or thresholds.
    """

    evidence: HandedOver = None
    policy: str | None = None
    strictness: OwnStrictness = None

    @property
    def changes_policy(self) -> bool:
        """True if it names a policy or a strictness."""
        return self.policy is not None or self.strictness is not None

    def chosen_policy(self, configured: Policy) -> Policy:
        """The named policy, else the configured one, with the given strictness.

        A caller cannot change the deadline, nor end a dry run or the judging of documents.

        Raises:
            ConfigError: There is no policy of that name.
        """
        policy = configured
        if self.policy:
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
        InputError: It has an unknown key, or an item that is not evidence.
        ConfigError: There is no such policy or strictness.
    """
    if value is None:
        return RequestField()
    if not isinstance(value, Mapping):
        raise InputError(f"{FIELD!r} must be an object, not {type(value).__name__}")
    known = tuple(RequestField.model_fields)
    for key in value:
        if key not in known:
            hint = did_you_mean(str(key), known)
            raise InputError(f"{FIELD} has no field {in_short(key)}; {hint}")
    evidence, policy = value.get("evidence"), value.get("policy")
    if policy is not None and not isinstance(policy, str):
        raise InputError(f"{FIELD}.policy must be the name of a policy")
    if policy is not None:
        policy_named(policy)
    items = None if evidence is None else evidence_items(evidence, f"{FIELD}.evidence")
    return RequestField(evidence=items, policy=policy, strictness=value.get("strictness"))
