"""The protocol of language models: asynchronous, with n samples and constrained citations.

A JSON schema whose citations are an enum constrains models with structured outputs.
``CitationConstraint.enforce`` checks every answer afterwards, whatever the server did.
"""

from __future__ import annotations

import json
import math
from functools import cached_property
from itertools import accumulate
from typing import Literal, Protocol, runtime_checkable

from pydantic import Field, FiniteFloat

from guardrail.core.errors import ModelError
from guardrail.core.plugins import external_errors
from guardrail.core.types import Citation, Triple, Value
from guardrail.core.workers import Workers, time_left
from guardrail.log.tracing import model_call
from guardrail.markers.brackets import KnownFacts
from guardrail.markers.grammar import insert, parse, render_marker

# OpenAI, "Structured model outputs", supported schemas: at most 1,000 enum values, and
# 15,000 characters of them together where there are more than 250.
MAX_ENUM_VALUES = 250


class Message(Value):
    """One turn of a chat."""

    role: Literal["system", "user", "assistant"]
    content: str


class Prompt(Value):
    """One prompt in both forms; the back end uses the one for its model.

    Attributes:
        messages: For chat models.
        text: For base models, which continue it; the answer ends at the first line break.
    """

    messages: tuple[Message, ...]
    text: str

    @classmethod
    def from_text(cls, text: str) -> Prompt:
        """A prompt of one turn, the same for both kinds of model."""
        return cls(messages=(Message(role="user", content=text),), text=text)


class CitationConstraint(Value):
    """The triples that an answer may cite, in the order in which the model sees them."""

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
        sizes = zip(self.citations, accumulate(map(len, self.citations)), strict=True)
        allowed = [key for key, size in sizes if size <= 15_000][:MAX_ENUM_VALUES]
        # An enum must not be empty: without triples there is no citation field.
        fields: dict[str, object] = {"text": {"type": "string"}, "na": {"type": "boolean"}}
        if allowed:
            fields["citations"] = {"type": "array", "items": {"type": "string", "enum": allowed}}
        return _object({"sentences": {"type": "array", "items": _object(fields)}})

    def from_json(self, reply: str) -> str:
        """Convert a reply that follows ``json_schema`` to text with markers; raises ModelError."""
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

    def enforce(self, marked: str) -> str:
        """Remove citations of triples that were not retrieved, and repetitions within a marker.

        A marker without any citation left becomes ``[NA]``: its claim has no support.
        """
        allowed = set(self.citations.values())
        parsed = parse(marked, self.known)
        markers = []
        for marker in parsed.markers:
            cited = tuple(one for one in dict.fromkeys(marker.citations) if one in allowed)
            if cited != marker.citations:
                changes = {"citations": cited, "na": marker.na or not cited, "source": None}
                marker = marker.model_copy(update=changes)
            markers.append(marker)
        unchanged = tuple(markers) == parsed.markers
        return marked if unchanged else insert(parsed.clean, markers).marked


def _object(fields: dict[str, object]) -> dict[str, object]:
    kind = {"type": "object", "properties": fields, "required": list(fields)}
    return {**kind, "additionalProperties": False}


class SampleRequest(Value):
    """A request for samples.

    Attributes:
        temperature: 0 selects the likeliest token; KaLMA's main runs use 0.5.
        top_p: Nucleus of the token distribution to sample from.
        max_tokens: Limit per sample.
        seed: Makes samples reproducible if the server supports it.
        stop: Additional strings that end a sample.
        constraint: Allow only citations of these triples; None for free text.
        timeout_s: Seconds after which the call fails; None for the limit of the back end.
    """

    prompt: Prompt
    n: int = Field(default=1, ge=1)
    temperature: FiniteFloat = Field(default=0.5, ge=0.0)
    top_p: FiniteFloat = Field(default=1.0, gt=0.0, le=1.0)
    max_tokens: int = Field(default=256, ge=1)
    seed: int | None = None
    stop: tuple[str, ...] = ()
    constraint: CitationConstraint | None = None
    timeout_s: FiniteFloat | None = Field(default=None, gt=0.0)


class Completion(Value):
    """One sample, with markers if the prompt requested them.

    The finish reason is ``stop`` or ``length``, if the server reports it.
    """

    text: str
    finish_reason: str | None = None


@runtime_checkable
class LanguageModel(Protocol):
    """A language model.

    ``sample`` may be called from any event loop, which it does not block.
    """

    @property
    def name(self) -> str:
        """Name of the model, for the score log."""
        ...

    def warm_up(self) -> None:
        """Load everything that the first call needs."""
        ...

    async def sample(self, request: SampleRequest) -> list[Completion]:
        """Draw ``request.n`` samples.

        Raises:
            ModelError: The model was unreachable, refused, or timed out.
        """
        ...

    def close(self) -> None:
        """Release connections and memory; a later call may open them again."""
        ...


async def sampled(model: LanguageModel, request: SampleRequest) -> list[Completion]:
    """Draw ``request.n`` samples within the deadline of the answer, traced; raises ModelError."""
    # Seconds that a call may exceed the deadline of its answer, so that the deadline is reported
    left = time_left() + 1.0
    if left < (request.timeout_s or math.inf):
        request = request.model_copy(update={"timeout_s": left})
    with model_call(model, request.n), external_errors(f"model {model.name!r}", ModelError):
        return await model.sample(request)


def model_workers() -> Workers:
    """Threads for the blocking calls of one model.

    They are separate, so that hanging calls do not block other work of the event loop. Further
    calls are refused if 64 abandoned ones still hang.
    """
    return Workers(concurrency=32, stuck=64)
