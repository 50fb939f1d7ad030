"""Decoding constraints: a citation can only be one of the retrieved triples.

Three forms of one constraint, for what servers understand:

- a GBNF grammar: llama.cpp's ``grammar``, vLLM's guided decoding;
- a JSON schema whose citations are an enum: OpenAI structured outputs;
- none: ``CitationConstraint.enforce`` checks an answer after the fact and is applied to
  every constrained answer, whatever the server did.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cached_property

from guardrail.core.errors import ModelError
from guardrail.core.types.knowledge import Citation, Triple
from guardrail.core.types.value import Value
from guardrail.markers.brackets import write_entity, write_fact
from guardrail.markers.grammar import KnownFacts, Marker, insert, parse, render_marker
from kg.verbalise import surface

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
    """An answer whose citations are all allowed ones.

    Attributes:
        marked: The answer with its markers.
        dropped: Citations that were taken out, because no such triple was retrieved.
    """

    marked: str
    dropped: tuple[Citation, ...] = ()


class CitationConstraint(Value):
    """The triples that an answer may cite.

    Attributes:
        triples: The retrieved triples, in the order they are shown to the model.
        anchored: A citation may stand only right after its value, as in the demonstration, so
            that a small model cannot cite what it did not say. The JSON schema, whose citations
            belong to sentences, does not know it.
    """

    triples: tuple[Triple, ...] = ()
    anchored: bool = False

    @cached_property
    def citations(self) -> dict[str, Citation]:
        """Every citation allowed, by the text that stands for it in a JSON schema."""
        citations = (triple.citation for triple in self.triples)
        return {f"{c.entity}, {c.property}: {c.value}": c for c in citations}

    @cached_property
    def known(self) -> KnownFacts:
        """The triples as the parser of markers wants them."""
        return KnownFacts(self.triples)

    def gbnf(self, *, lines: bool = False) -> str:
        """Write the constraint as a llama.cpp grammar.

        A marker holds at most three facts of one entity, because small models else go on
        listing; an anchored one holds one fact. Counted repetition (``{1,3}`` of characters) is
        avoided: it makes llama.cpp very slow.

        Args:
            lines: Allow line breaks in the answer; otherwise it is one line, ended by a break.
        """
        marks = self._anchored_marks() if self.anchored else self._marks()
        other = "" if lines else r"\n"
        return "\n".join(
            [
                # Between two markers stands at least one letter: small models repeat "[NA]".
                "root ::= text (mark text)* mark? pause*" + ("" if lines else r' "\n"'),
                "text ::= pause* letter word*",
                rf"word ::= [^\[\]{other}]",
                rf"letter ::= [^\[\]{other} .,;:]",
                "pause ::= [ .,;:]",
                *marks,
                "",
            ]
        )

    def _anchored_marks(self) -> list[str]:
        """Rules for a value with its citation behind it; values alike share one alternative."""
        by_form: dict[str, list[Citation]] = {}
        for citation in self.citations.values():
            # A date may stand as 1593-07-08, 8 July 1593 or July 8, 1593.
            value = citation.value
            for form in dict.fromkeys((value, surface(value, 0), surface(value, 1))):
                by_form.setdefault(form, []).append(citation)
        alternatives = []
        rules = []
        for number, (form, citations) in enumerate(by_form.items()):
            facts = (_quote(f"{write_entity(c.entity)}, {write_fact(c)}]") for c in citations)
            rules.append(f"fact{number} ::= {' | '.join(facts)}")
            # The blank before it keeps "actor" from being found in "factor".
            alternatives.append(f"{_quote(f' {form} [')} fact{number}")
        return ["mark ::= " + " | ".join(['"[NA]"', *alternatives]), *rules]

    def _marks(self) -> list[str]:
        """Rules for a marker anywhere."""
        by_entity: dict[str, list[Citation]] = {}
        for citation in self.citations.values():
            by_entity.setdefault(citation.entity, []).append(citation)
        groups = []
        rules = []
        for number, (entity, citations) in enumerate(by_entity.items()):
            facts = " | ".join(_quote(write_fact(citation)) for citation in citations)
            rules.append(f"fact{number} ::= {facts}")
            head = _quote(f"{write_entity(entity)}, ")
            more = f'", " fact{number}'
            groups.append(f"{head} fact{number} ({more} ({more})?)?")
        return ['mark ::= "[" (' + " | ".join(['"NA"', *groups]) + ') "]"', *rules]

    def json_schema(self) -> dict[str, object]:
        """Write the constraint as a strict JSON schema: sentences with citations from an enum.

        Triples beyond the limits of OpenAI's structured outputs are left out, last ones first.
        """
        allowed: list[str] = []
        size = 0
        for key in self.citations:
            size += len(key)
            if len(allowed) == MAX_ENUM_VALUES or size > MAX_ENUM_CHARACTERS:
                break
            allowed.append(key)
        # A schema may not hold an empty enum: without triples, no citation field.
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
        """Turn a reply that follows ``json_schema`` into text with markers.

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
        """Take out citations of triples that were not retrieved, and repeats within a marker.

        A marker that loses all its citations becomes ``[NA]``: its claim has no support.
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


def constraint_for(triples: Iterable[Triple], *, anchored: bool = False) -> CitationConstraint:
    """The constraint that allows exactly these triples, each once.

    Args:
        triples: What may be cited.
        anchored: Only right after the value that is cited.
    """
    return CitationConstraint(triples=tuple(dict.fromkeys(triples)), anchored=anchored)


def _quote(text: str) -> str:
    """A GBNF string literal; control characters that JSON escapes are escaped alike."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\x7F")
