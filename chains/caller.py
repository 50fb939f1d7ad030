"""Rights of callers: choose a policy, bring evidence, use tools, request JSON, see reasons."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from chains.evidence.base import EvidenceSettings, Found
from guardrail import Policy
from guardrail.core.errors import GuardrailError
from guardrail.core.types import Problem, Value

if TYPE_CHECKING:
    from chains.evidence.base import RequestField

__all__ = ["CallerRights", "NotAllowedError", "wants_json"]


class NotAllowedError(GuardrailError):
    """A request asks for what its caller may not have."""


class CallerRights(Value):
    """What a caller may do.

    Attributes:
        policy: Name a policy or a strictness. Otherwise the configured one decides, and ``errors``
            says so.
        evidence: Bring evidence: handed over, in content parts, tool results or marked text.
            Otherwise the graph alone judges, and ``errors`` says so.
        tools: Use tools. Otherwise requests with tools are refused, tool results are not read, and
            calls in a reply are removed.
        structured_output: Ask for JSON. Otherwise such requests are refused, and JSON is judged as
            any text.
        reasons: See the reasons of refused and filtered answers.
    """

    policy: bool = True
    evidence: bool = True
    tools: bool = True
    structured_output: bool = True
    reasons: bool = True

    def policy_of(
        self, field: RequestField, configured: Policy
    ) -> tuple[Policy, tuple[Problem, ...]]:
        """The policy of one request, and the problem if it may not choose one."""
        if not field.changes_policy:
            return configured, ()
        if not self.policy:
            message = (
                "the request names a policy or a strictness, which callers may not choose here; "
                "the configured one decided"
            )
            return configured, (Problem(part="caller", message=message),)
        return field.chosen_policy(configured), ()

    def evidence_of(self, found: Found) -> Found:
        """What counts of the evidence in a request."""
        if self.evidence or not found.sources:
            return found
        message = (
            "the request brings evidence, which callers may not hand over here; it was not read"
        )
        return Found(question=found.question, problems=(Problem(part="caller", message=message),))

    def places(self, settings: EvidenceSettings) -> EvidenceSettings:
        """The places of evidence that are looked at: no results of tools without the right."""
        return settings if self.tools else settings.model_copy(update={"tools": False})

    def require(self, request: Mapping[str, object]) -> None:
        """Refuse a request of the OpenAI protocol that asks for tools or JSON without the right.

        Raises:
            NotAllowedError: It does; the message names the field.
        """
        if not self.tools:
            for name in ("tools", "functions", "web_search_options"):
                if request.get(name):
                    raise NotAllowedError(f"callers may not use tools here; leave {name!r} out")
        if not self.structured_output and wants_json(request):
            raise NotAllowedError("callers may not ask for JSON here; ask for text")


def wants_json(request: Mapping[str, object]) -> bool:
    """Whether a request of either endpoint asks for JSON in place of an answer."""
    text = request.get("text")
    formats = (
        request.get("response_format"),
        text.get("format") if isinstance(text, Mapping) else None,
    )
    return any(
        isinstance(found, Mapping) and found.get("type") in ("json_object", "json_schema")
        for found in formats
    )
