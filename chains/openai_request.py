"""What a request of the OpenAI protocol asks, and what its answers are judged against."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from chains.caller import CallerRights, wants_json
from chains.conversation import standalone_question
from chains.evidence.base import Case, EvidenceSettings, Found, Source, case_of
from chains.evidence.earlier import (
    EarlierAnswers,
    grounds_of,
    keys_of_answer,
    keys_of_turns,
    reply_key,
)
from chains.evidence.items import FIELD, request_field
from chains.evidence.openai import request_evidence, request_turns
from chains.evidence.parts import plain_body
from chains.injection import Inject
from chains.openai_calls import AllowedTools
from chains.openai_wire import JSON, MOST_REPLY_BYTES
from chains.styles import MarkerStyle, StreamMode
from guardrail import ANNOTATE, STRICT, Guardrail, Policy
from guardrail.core.errors import InputError, KnowledgeGraphError
from guardrail.core.types import GuardedAnswer, Problem
from guardrail.evidence.retrieval import bounded

__all__ = ["MOST_CANDIDATES", "GuardSettings", "GuardedRequest", "requested_choices"]


MOST_CANDIDATES = 64
"""Choices that one request may ask for: as many as are ranked, and as a policy samples."""


@dataclass(frozen=True, kw_only=True)
class GuardSettings:
    """How replies are guarded.

    Attributes:
        guard: The guardrail.
        policy: ``candidates`` are sampled and ranked, ``attempts`` bounds the rounds.
        checks_policy: For the caller's own texts.
        style: Style of markers in the returned text.
        mode: When streamed text is released.
        inject: Evidence shown to the model.
        evidence: Where requests may hold evidence.
        reasons: Whether refused and filtered answers carry their reasons (field ``guardrail``).
        rights: What a request may bring or choose.
        owner: Owner of the ids in a request; other owners' requests cannot refer to them.
        earlier: Evidence of earlier answers, for the turns that refer to them.
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


def requested_choices(request: JSON) -> int:
    """How many choices a chat completion is asked for.

    Raises:
        InputError: ``n`` is no whole number, or more than ``MOST_CANDIDATES``: each choice is
            judged.
    """
    asked = request.get("n")
    if asked is None:
        return 1
    if not isinstance(asked, int) or isinstance(asked, bool) or not 1 <= asked <= MOST_CANDIDATES:
        raise InputError(f"n must be a whole number from 1 to {MOST_CANDIDATES}")
    return asked


class GuardedRequest:
    """One request: its question, its evidence, and its body as the model's server gets it.

    Args:
        guarding: How replies are guarded; the request may name another policy.
        request: The body as the caller sent it.
        responses: Whether it is one of the responses API, rather than a chat completion.

    Attributes:
        guarding: How this request's replies are guarded.
        body: The body without the ``guardrail`` field, and with the content parts of other
            gateways as plain text unless the settings keep them.
        question: What is asked.
        data: Whether JSON was asked for in place of an answer.
        reads_searches: Whether what a file search found, as the reply tells it, is evidence.
        tools: The tools that the reply may call.

    Raises:
        InputError: The ``guardrail`` field holds what is not known, or is no evidence.
        NotAllowedError: It asks for what callers may not have.
        ConfigError: It names a policy or a strictness that there is not.
    """

    def __init__(self, guarding: GuardSettings, request: JSON, *, responses: bool = False) -> None:
        own = request_field(request.get(FIELD))
        given = {key: value for key, value in request.items() if key != FIELD}
        rights = guarding.rights
        rights.require(given)
        policy, problems = rights.policy_of(own, guarding.policy)
        self.guarding = replace(guarding, policy=policy)
        settings = rights.places(guarding.evidence)
        self._turns = request_turns(given, settings, responses=responses)
        self._remembers = settings.earlier > 0
        ids = _ids(given, "previous_response_id") if responses else []
        self._earlier = guarding.earlier.of(
            (
                *(reply_key(guarding.owner, id) for id in ids if self._remembers),
                *keys_of_turns(guarding.owner, self._turns, settings.earlier),
            )
        )
        found = rights.evidence_of(request_evidence(given, own, settings, responses=responses))
        if not found.sources:  # what comes with the request is newer than what is remembered
            found |= Found.of(Source.EARLIER, self._earlier or None)
        for place, item in enumerate(found.evidence):
            bounded(item, f"evidence[{place}]")
        self._found = found._replace(problems=(*problems, *found.problems))
        self.reads_searches = rights.evidence and rights.tools and settings.reply_searches
        self.data = wants_json(given)
        self.tools = AllowedTools(given, allowed=rights.tools)
        self.question = self._found.question or standalone_question(self._turns)
        self.body = given if settings.keep_parts else plain_body(given)
        self._case: Case | None = None

    @property
    def takes_calls(self) -> bool:
        """Whether the reply may call tools at all."""
        return self.tools.any

    def add(self, found: Found) -> None:
        """Take evidence that comes with the reply, such as results of a file search."""
        if found.sources:
            self._found |= found
            self._case = None

    def remember(self, answers: Sequence[GuardedAnswer], reply: JSON) -> None:
        """Store the evidence of returned answers, for the turns that refer to them."""
        guarding = self.guarding
        for answer in answers if self._remembers else ():
            keys = keys_of_answer(guarding.owner, self._turns, answer, guarding.style)
            keys |= {reply_key(guarding.owner, id) for id in _ids(reply, "id")}
            guarding.earlier.keep(keys, (*grounds_of(answer), *self._earlier))

    async def case(self) -> Case:
        """What the answers are judged against; settled once."""
        if self._case is None:
            found = self._found
            try:
                self._case = await case_of(
                    self.guarding.guard, self.question, found, self.guarding.evidence.mode
                )
            except KnowledgeGraphError as error:
                if not self.guarding.policy.dry_run:
                    raise
                # A dry run keeps no reply back, whatever fails.
                problems = (*found.problems, Problem(part="kg", message=str(error)))
                self._case = Case(self.question, found.evidence, found.sources, problems=problems)
        return self._case


def _ids(body: JSON, name: str) -> list[str]:
    """A server's ids of a response, or the previous one, and its conversation."""
    conversation = body.get("conversation")
    if isinstance(conversation, dict):
        conversation = conversation.get("id")
    return [id for id in (body.get(name), conversation) if isinstance(id, str) and id]
