"""What the guardrail round a LangChain model or Runnable takes, beside these themselves."""

from __future__ import annotations

from typing import Annotated, TypedDict

from pydantic import BeforeValidator

from chains.evidence.base import EvidenceMode
from chains.evidence.langchain import EvidenceOf
from chains.rendition import MarkerStyle
from chains.streaming import StreamMode
from guardrail import GuardrailConfig, Policy, policy_named

__all__ = ["GuardingOptions", "PolicySetting", "RunnableOptions"]

PolicySetting = Annotated[
    Policy, BeforeValidator(lambda told: policy_named(told) if isinstance(told, str) else told)
]
"""The type of a field that takes a policy or the name of one."""


class GuardingOptions(TypedDict, total=False):
    """How answers are guarded; see ``GuardrailRunnable``."""

    name: str | None
    policy: Policy | str
    style: MarkerStyle | str
    stream_mode: StreamMode | str
    evidence_mode: EvidenceMode | str
    tool_results: bool
    marks: tuple[str, str] | None
    reasons: bool


class RunnableOptions(GuardingOptions, total=False):
    """What ``GuardrailRunnable`` takes beside the guardrail and the Runnable; see there."""

    settings: GuardrailConfig
    question_key: str | None
    answer_key: str | None
    evidence: EvidenceOf | None
