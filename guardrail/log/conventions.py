"""Names of what is traced: those of the conventions for generative AI, of readers, and our own.

Spans and events follow OpenTelemetry's semantic conventions for generative AI, of which the event
``gen_ai.evaluation.result`` is one. Readers of traces that have kinds of their own for spans are
told them: Phoenix (OpenInference), Langfuse and LangSmith. The rest begins with ``guardrail.``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

__all__ = [
    "EVALUATION",
    "EVALUATION_EXPLANATION",
    "EVALUATION_LABEL",
    "EVALUATION_NAME",
    "EVALUATION_VALUE",
    "GROUNDEDNESS",
    "MODEL_CALL_DURATION",
    "NAME",
    "RESPONSE_ID",
    "STAGE_NAMES",
    "STAGE_READERS",
    "VERDICT",
    "own",
]

NAME: Final = "guardrail"
"""The scope of spans, events and metrics, and what our own names begin with."""

EVALUATION: Final = "gen_ai.evaluation.result"
EVALUATION_NAME: Final = "gen_ai.evaluation.name"
EVALUATION_VALUE: Final = "gen_ai.evaluation.score.value"
EVALUATION_LABEL: Final = "gen_ai.evaluation.score.label"
EVALUATION_EXPLANATION: Final = "gen_ai.evaluation.explanation"
RESPONSE_ID: Final = "gen_ai.response.id"
MODEL_CALL_DURATION: Final = "gen_ai.client.operation.duration"

VERDICT: Final = "verdict"
"""Name of the evaluation of an answer by what the policy did with it."""
GROUNDEDNESS: Final = "groundedness"
"""Name of the evaluation of one sentence: the probability of support, and the verdict."""

STAGE_NAMES: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "retrieve": ("retrieval", {"gen_ai.operation.name": "retrieval"}),
}
"""Stages for which the conventions have an operation of their own."""

_GUARDRAIL = {
    "openinference.span.kind": "GUARDRAIL",
    "langfuse.observation.type": "guardrail",
    "langsmith.span.kind": "chain",
}
_RETRIEVER = {
    "openinference.span.kind": "RETRIEVER",
    "langfuse.observation.type": "retriever",
    "langsmith.span.kind": "retriever",
}
STAGE_READERS: Mapping[str, Mapping[str, str]] = {
    **dict.fromkeys(("check", "rank", "ask"), _GUARDRAIL),
    "retrieve": _RETRIEVER,
}
"""What readers of traces call the span of a stage."""


def own(name: str) -> str:
    """A name of our own, as ``guardrail.policy``."""
    return f"{NAME}.{name}"
