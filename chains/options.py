"""How LangChain's ways in are guarded: the fields that they share, the options that set them."""

from __future__ import annotations

from typing import Annotated, TypedDict

from pydantic import BaseModel, BeforeValidator, Field

from chains.evidence.base import EvidenceMode, Marks
from chains.evidence.langchain import EvidenceOf
from chains.openai_wire import MOST_REPLY_BYTES
from chains.styles import MarkerStyle, StreamMode
from guardrail import STRICT, GuardrailConfig, Policy, policy_named

__all__ = ["GuardingFields", "GuardingOptions", "RunnableOptions"]

PolicySetting = Annotated[
    Policy, BeforeValidator(lambda told: policy_named(told) if isinstance(told, str) else told)
]
"""The type of a field that takes a policy or the name of one."""


class GuardingFields(BaseModel):
    """What ``GuardrailRunnable`` says of how answers are guarded; see there."""

    policy: PolicySetting = STRICT
    style: MarkerStyle = MarkerStyle.KALMA
    stream_mode: StreamMode = StreamMode.SENTENCE
    evidence_mode: EvidenceMode = EvidenceMode.GIVEN
    tool_results: bool = True
    marks: Marks | None = None
    reasons: bool = True
    max_reply_bytes: int = Field(default=MOST_REPLY_BYTES, ge=1)


class GuardingOptions(TypedDict, total=False):
    """The same, as a caller writes it."""

    name: str | None
    policy: Policy | str
    style: MarkerStyle | str
    stream_mode: StreamMode | str
    evidence_mode: EvidenceMode | str
    tool_results: bool
    marks: tuple[str, str] | None
    reasons: bool
    max_reply_bytes: int


class RunnableOptions(GuardingOptions, total=False):
    """What ``GuardrailRunnable`` takes beside the guardrail and the Runnable; see there."""

    settings: GuardrailConfig
    question_key: str | None
    answer_key: str | None
    evidence: EvidenceOf | None
