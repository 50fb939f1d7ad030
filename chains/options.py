"""The options that the LangChain wrappers share."""

from __future__ import annotations

from typing import Annotated, Literal, TypedDict

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from chains.evidence.base import EvidenceMode, EvidenceSettings, Marks
from chains.evidence.langchain import EvidencePlace
from chains.injection import Inject
from chains.openai_wire import MOST_REPLY_BYTES
from chains.styles import MarkerStyle, StreamMode
from guardrail import STRICT, Policy
from guardrail.policy import policy_named

__all__ = ["GuardFields", "GuardOptions", "ModelOptions", "RunnableOptions"]

PolicySetting = Annotated[
    Policy, BeforeValidator(lambda given: policy_named(given) if isinstance(given, str) else given)
]
"""A policy, or the name of one."""


class GuardFields(BaseModel):
    """The options as fields; ``GuardrailRunnable`` documents them."""

    model_config = ConfigDict(extra="forbid")

    policy: PolicySetting = STRICT
    style: MarkerStyle = MarkerStyle.KALMA
    stream_mode: StreamMode = StreamMode.SENTENCE
    inject: Inject = Inject.OFF
    evidence_mode: EvidenceMode = EvidenceMode.GIVEN
    tool_results: bool = True
    marks: Marks | None = None
    reasons: bool = True
    max_reply_bytes: int = Field(default=MOST_REPLY_BYTES, ge=1)

    @property
    def places(self) -> EvidenceSettings:
        """Where to look for evidence in messages."""
        return EvidenceSettings(mode=self.evidence_mode, tools=self.tool_results, marks=self.marks)


class GuardOptions(TypedDict, total=False):
    """The options as keyword arguments of every wrapper."""

    policy: Policy | str
    style: MarkerStyle | str
    inject: Inject | Literal["off", "facts", "prompt"]
    evidence_mode: EvidenceMode | str
    tool_results: bool
    marks: tuple[str, str] | None
    reasons: bool


class ModelOptions(GuardOptions, total=False):
    """The keyword arguments of ``GuardedChatModel``."""

    name: str | None
    stream_mode: StreamMode | str
    max_reply_bytes: int


class RunnableOptions(ModelOptions, total=False):
    """The keyword arguments of ``GuardrailRunnable``."""

    question_key: str | None
    answer_key: str | None
    evidence: EvidencePlace | None
