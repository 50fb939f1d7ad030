"""Constrained citations: only retrieved triples may be cited.

A JSON schema whose citations are an enum constrains models with structured outputs.
``CitationConstraint.enforce`` checks every answer afterwards, whatever the server did.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cached_property

from guardrail.core.errors import ModelError
from guardrail.core.types.knowledge import Citation, Triple
from guardrail.core.types.value import Value
from guardrail.markers.brackets import KnownFacts
from guardrail.markers.grammar import Marker, insert, parse, render_marker

__all__ = [
    "MAX_ENUM_CHARACTERS",
    "MAX_ENUM_VALUES",
    "CitationConstraint",
    "EnforcedText",
    "constraint_for",
]

# OpenAI, "Structured model outputs", supported schemas: at most 1,000 enum values, and
# 15,000 characters of them together where there are more than 250.
MAX_ENUM_VALUES = 250
MAX_ENUM_CHARACTERS = 15_000


class EnforcedText(Value):
    """An answer with only allowed citations.

    Attributes:
        marked: The answer with its markers.
        dropped: Citations that were removed because no such triple was retrieved.
    """

    marked: str
    dropped: tuple[Citation, ...] = ()


class CitationConstraint(Value):
    """The triples that an answer may cite.

    Attributes:
        triples: The retrieved triples, in the order in which the model sees them.
    """

    triples: tuple[Triple, ...] = ()

    @cached_property
    def citations(self) -> dict[str, Citation]:
        """Allowed citations, by their text in the JSON schema."""
        citations = (triple.citation for triple in self.triples)
        return {f"{c.entity}, {c.property}: {c.value}": c for c in citations}

    @cached_property
    def known(self) -> KnownFacts:
        """The triples in the form that the marker parser needs."""
        return KnownFacts(self.triples)

    def json_schema(self) -> dict[str, object]:
        """A strict JSON schema: sentences with citations from an enum.

        The last triples are omitted if they exceed the limits of OpenAI's structured outputs.
        """
        allowed: list[str] = []
        size = 0
        for key in self.citations:
            size += len(key)
            if len(allowed) == MAX_ENUM_VALUES or size > MAX_ENUM_CHARACTERS:
                break
            allowed.append(key)
        # An enum must not be empty: without triples there is no citation field.
        fields: dict[str, object] = {"text": {"type": "string"}, "na": {"type": "boolean"}}
        if allowed:
            fields["citations"] = {"type": "array", "items": {"type": "string", "enum": allowed}}
        sentence = {
            "type": "object",
            "properties": fields,
            "required": list(fields),
            "additionalProperties": False,
        }
        return {
            "type": "object",
            "properties": {"sentences": {"type": "array", "items": sentence}},
            "required": ["sentences"],
            "additionalProperties": False,
        }

    def from_json(self, reply: str) -> str:
        """Convert a reply that follows ``json_schema`` to text with markers.

        Raises:
            ModelError: The reply is not JSON of that shape.
        """
        try:
            sentences = json.loads(reply)["sentences"]
            rows = [
                (str(row["text"]), [str(key) for key in row.get("citations", [])], bool(row["na"]))
                for row in sentences
            ]
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise ModelError(
                "the model's reply does not follow the JSON schema it was given; "
                "its server may not support structured outputs: use plain prompting"
            ) from error
        return " ".join(self._sentence(*row) for row in rows)

    def _sentence(self, text: str, keys: list[str], na: bool) -> str:
        text = " ".join(text.replace("[", "(").replace("]", ")").split())
        cited = [self.citations[key] for key in dict.fromkeys(keys) if key in self.citations]
        bracket = render_marker(cited, na=na)
        if not bracket:
            return text
        stop = len(text.rstrip(".!?")) or len(text)
        return f"{text[:stop]} {bracket}{text[stop:]}"

    def enforce(self, marked: str) -> EnforcedText:
        """Remove citations of triples that were not retrieved, and repetitions within a marker.

        A marker without any citation left becomes ``[NA]``: its claim has no support.
        """
        allowed = set(self.citations.values())
        parsed = parse(marked, self.known)
        dropped: list[Citation] = []
        markers: list[Marker] = []
        for marker in parsed.markers:
            cited = tuple(dict.fromkeys(marker.citations))
            kept = tuple(citation for citation in cited if citation in allowed)
            dropped += [citation for citation in cited if citation not in allowed]
            if kept != marker.citations:
                changes = {"citations": kept, "na": marker.na or not kept, "source": None}
                marker = marker.model_copy(update=changes)
            markers.append(marker)
        if tuple(markers) == parsed.markers:
            return EnforcedText(marked=marked)
        return EnforcedText(marked=insert(parsed.clean, markers).marked, dropped=tuple(dropped))


def constraint_for(triples: Iterable[Triple]) -> CitationConstraint:
    """The constraint that allows exactly these triples, each once."""
    return CitationConstraint(triples=tuple(dict.fromkeys(triples)))
