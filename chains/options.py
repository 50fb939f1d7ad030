"""Options of every wrapper: style, stream mode, evidence shown to the model, rights of callers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING

from chains.evidence.base import EvidenceSettings, Found, RequestField
from chains.openai_wire import object_at
from guardrail import Policy
from guardrail.core.errors import GuardrailError, KnowledgeGraphError
from guardrail.core.types import Evidence, Problem, Value
from guardrail.models.prompts import system_prompt

if TYPE_CHECKING:
    from guardrail import Guardrail


class MarkerStyle(StrEnum):
    """How citations appear in the text that a host receives.

    ``footnotes``: numbers, behind the phrase or, in a sentence that is supported as a whole, at its
    end; the notes stand below the answer; ``kalma``: triples as ``[Q212657, place of birth: Rome]``
    behind the phrase, with the label in place of an id that is an IRI, and passages as notes;
    ``none``: clean text, citations in the host's own fields only. The first two write ``[NA]``, and
    ``[corrected]`` behind words of the guardrail.
    """

    FOOTNOTES = "footnotes"
    KALMA = "kalma"
    NONE = "none"


class StreamMode(StrEnum):
    """When judged text leaves."""

    SENTENCE = "sentence"
    BUFFER = "buffer"


class Inject(StrEnum):
    """What a wrapped model is shown of the evidence.

    ``off``: nothing; ``facts``: the facts alone; ``prompt``: KaLMA's instruction to cite them, its
    demonstration with ``[NA]`` markers, and the facts.
    """

    OFF = "off"
    FACTS = "facts"
    PROMPT = "prompt"


async def injected_prompt(
    guard: Guardrail, question: str, evidence: Sequence[Evidence] | None, inject: Inject
) -> str:
    """The facts for the system prompt, retrieved unless given; empty for nothing to add."""
    if inject is Inject.OFF:
        return ""
    try:
        facts = await guard.afacts(question, evidence=evidence)
    except KnowledgeGraphError:  # the check that follows reports it, as the policy says
        facts = ()
    instruct = inject is Inject.PROMPT
    return system_prompt(facts, instruct=instruct) if facts or instruct else ""


# --- rights of callers --------------------------------------------------------------------


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
        """Refuse (NotAllowedError) a request for tools or JSON without the right."""
        if not self.tools:
            for name in ("tools", "functions", "web_search_options"):
                if request.get(name):
                    raise NotAllowedError(f"callers may not use tools here; leave {name!r} out")
        if not self.structured_output and wants_json(request):
            raise NotAllowedError("callers may not ask for JSON here; ask for text")


def wants_json(request: Mapping[str, object]) -> bool:
    """Whether a request of either endpoint asks for JSON in place of an answer."""
    formats = (object_at(request, "response_format"), object_at(request, "text", "format"))
    return any(found and found.get("type") in ("json_object", "json_schema") for found in formats)
