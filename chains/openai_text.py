"""How the texts of a model's replies are guarded."""

from __future__ import annotations

from dataclasses import dataclass, field

from chains.caller import CallerRights
from chains.evidence.base import Case, EvidenceSettings
from chains.evidence.earlier import EarlierAnswers
from chains.injection import Inject
from chains.openai_wire import JSON, MOST_REPLY_BYTES, UnreadableReplyError
from chains.styles import MarkerStyle, StreamMode
from guardrail import ANNOTATE, STRICT, Guardrail, Policy

__all__ = ["JSON", "Guarding", "UnreadableReplyError"]


@dataclass(frozen=True, kw_only=True)
class Guarding:
    """How replies are guarded.

    Attributes:
        guard: The guardrail.
        policy: ``candidates`` are sampled and ranked, ``attempts`` bounds the rounds.
        checks_policy: Of texts that a caller has already, and asks a verdict on.
        style: How markers look in the returned text.
        mode: When streamed text is released.
        inject: What the model is shown of the evidence.
        evidence: Where evidence is looked for in requests.
        reasons: Whether refused and filtered answers carry their reasons (field ``guardrail``).
        rights: What is taken from a request beside what it asks.
        owner: Whose ids a request names, such as those of LiteLLM's calls; no other owner's
            request reads what they stand for.
        earlier: What earlier answers rest on, for the turns that refer to them.
        max_reply_bytes: Most bytes of one reply that are read, whole or streamed.
    """

    guard: Guardrail
    policy: Policy = STRICT
    checks_policy: Policy = ANNOTATE
    style: MarkerStyle = MarkerStyle.KALMA
    mode: StreamMode = StreamMode.SENTENCE
    inject: Inject = Inject.OFF
    evidence: EvidenceSettings = field(default_factory=EvidenceSettings)
    reasons: bool = True
    rights: CallerRights = field(default_factory=CallerRights)
    owner: str = ""
    earlier: EarlierAnswers = field(default_factory=EarlierAnswers)
    max_reply_bytes: int = MOST_REPLY_BYTES

    @property
    def whole_only(self) -> bool:
        """Whether a stream must wait for the whole reply.

        It must where answers are ranked or asked for again, and where JSON is judged.
        """
        if self.policy.dry_run:
            return self.policy.structured
        buffered = self.mode is StreamMode.BUFFER
        return buffered or self.policy.resamples or self.policy.structured

    async def refusal(self, case: Case, text: str) -> str:
        """A model's refusal, without what the policy removes from it."""
        answer = await case.check(self.guard, text, self.policy.settled(), record=False)
        return text if answer.dry_run else answer.text
