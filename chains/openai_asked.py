"""What a request of the OpenAI protocol asks, and what its answers are judged against."""

from __future__ import annotations

from dataclasses import replace

from chains.caller import wants_json
from chains.evidence.base import Case, Found, case_of
from chains.evidence.items import FIELD, request_field
from chains.evidence.openai import (
    chat_evidence,
    chat_question,
    response_evidence,
    response_question,
)
from chains.evidence.parts import plain_body
from chains.openai_text import JSON, Guarding
from guardrail.core.errors import KnowledgeGraphError
from guardrail.core.types import Problem

__all__ = ["Asked"]


class Asked:
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

    Raises:
        InputError: The ``guardrail`` field holds what is not known, or is no evidence.
        NotAllowedError: It asks for what callers may not have.
        ConfigError: It names a policy or a strictness that there is not.
    """

    def __init__(self, guarding: Guarding, request: JSON, *, responses: bool = False) -> None:
        field = request_field(request.get(FIELD))
        given = {key: value for key, value in request.items() if key != FIELD}
        rights = guarding.rights
        rights.require(given)
        policy, problems = rights.policy_of(field, guarding.policy)
        self.guarding = replace(guarding, policy=policy)
        settings = rights.places(guarding.evidence)
        find = response_evidence if responses else chat_evidence
        found = rights.evidence_of(find(given, field, settings))
        self._found = found._replace(problems=(*problems, *found.problems))
        self.data = wants_json(given)
        asked = (response_question if responses else chat_question)(given, settings)
        self.question = self._found.question or asked
        self.body = given if settings.keep_parts else plain_body(given)
        self._case: Case | None = None

    def add(self, found: Found) -> None:
        """Take evidence that comes with the reply, such as results of a file search."""
        rights = self.guarding.rights
        if found.sources and rights.evidence and rights.tools:
            self._found |= found
            self._case = None

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
