"""Evidence in requests: from the caller, content parts, tool results or marked text.

``base`` has the types of all hosts and the ``guardrail`` field of a request, ``tools`` reads tool
results, ``openai`` and ``langchain`` find evidence in a request of their host.
"""

from __future__ import annotations

from chains.evidence.base import (
    Case,
    EvidenceMode,
    EvidenceSettings,
    Found,
    RequestField,
    Source,
    case_of,
    request_field,
)
from guardrail.sources.items import evidence_items

__all__ = [
    "Case",
    "EvidenceMode",
    "EvidenceSettings",
    "Found",
    "RequestField",
    "Source",
    "case_of",
    "evidence_items",
    "request_field",
]
