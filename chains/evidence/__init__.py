"""Evidence from where it already is: handed over, in content parts, tool results or marked text.

``base`` holds what all hosts share, ``items`` reads what a caller hands over, ``parts`` the
content parts of other gateways, ``tools`` what tools returned, ``marks`` marked stretches of a
message; ``openai`` and ``langchain`` find all of these in a request of their host.
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
