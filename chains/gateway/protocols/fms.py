"""The detector API of the FMS guardrails orchestrator, for answers with context documents.

``POST /api/v1/text/context/doc`` takes ``{"content", "context_type": "docs", "context": [...]}``
and returns one detection for each sentence that the documents do not carry.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from chains.evidence.base import Found, Source, case_of
from chains.gateway.protocols.base import Protocol, ProtocolReply
from chains.openai_wire import JSON
from guardrail import Policy
from guardrail.core.errors import InputError
from guardrail.core.types import Category, Passage, Sentence

if TYPE_CHECKING:
    from chains.openai_text import Guarding

__all__ = ["FMSDetector"]

DETECTION_TYPE = "grounding"
DOCUMENTS = ("docs", "chunks", "document")
"""Kinds of context that are texts; the other one is addresses, which nothing here fetches."""


class FMSDetector(Protocol):
    """Answers the calls of the orchestrator."""

    def policy_of(self, guarding: Guarding) -> Policy:
        """Give the policy of checks: a detector tells, and the orchestrator acts."""
        return guarding.checks_policy

    async def __call__(self, body: JSON, guarding: Guarding) -> ProtocolReply:
        """Take a text with its context.

        Raises:
            InputError: The text or the context is missing, or is a list of addresses.
        """
        content = body.get("content", body.get("generated_text"))
        if not isinstance(content, str):
            raise InputError("content must be the text to judge")
        kind = body.get("context_type", DOCUMENTS[0])
        if kind not in DOCUMENTS:
            raise InputError(f"context_type must be {DOCUMENTS[0]!r}; {kind!r} is not fetched here")
        context = body.get("context")
        if not isinstance(context, list) or not all(isinstance(item, str) for item in context):
            raise InputError("context must be a list of texts")
        parameters = body.get("detector_params")
        asked_question = parameters.get("question") if isinstance(parameters, dict) else None
        question = str(asked_question or body.get("prompt") or "")
        documents = Found.of(Source.CALLER, [Passage(text=text) for text in context])
        found = guarding.rights.evidence_of(documents)
        case = await case_of(guarding.guard, question, found, guarding.evidence.mode)
        answer = await case.check(guarding.guard, content, self.policy_of(guarding).settled())
        told = () if answer.dry_run else answer.sentences
        return [_detection(sentence) for sentence in told if _failed(sentence)], (answer,)


def _failed(sentence: Sentence) -> bool:
    return sentence.na or sentence.category is Category.CONTRADICTORY


def _detection(sentence: Sentence) -> JSON:
    contradicted = sentence.category is Category.CONTRADICTORY
    score = 1.0 - (sentence.support or 0.0)
    evidence = [{"name": "sentence", "value": sentence.text}]
    if sentence.note:
        evidence.append({"name": "note", "value": sentence.note})
    return {
        "start": sentence.start,
        "end": sentence.end,
        "text": sentence.text,
        "detection": "contradicted" if contradicted else "unsupported",
        "detection_type": DETECTION_TYPE,
        "score": score,
        "evidence": evidence,
    }
