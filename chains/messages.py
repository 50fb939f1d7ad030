"""Guarded answers as LangChain messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from langchain_core.messages import AIMessage
from langchain_core.messages.content import create_citation, create_text_block

from chains.outputs import calls_tools
from chains.rendering import PlacedCitation, cited, details, render
from chains.styles import MarkerStyle
from guardrail.core.types import Action, GuardedAnswer

__all__ = [
    "annotation",
    "guarded_message",
    "guarded_output",
    "judged_metadata",
]

UNJUDGED_METADATA = frozenset(
    {"citation_metadata", "grounding_metadata", "logprobs", "logprobs_result", "message"}
)
"""Fields of a reply's metadata in which providers repeat the answer, whole or token by token."""
UNJUDGED_BLOCKS = frozenset({"text", "reasoning", "non_standard"})
"""Content blocks that hold what a model wrote: the judged text takes the place of all of them."""


def guarded_output(
    output: object, answer: GuardedAnswer, style: MarkerStyle, *, reasons: bool = True
) -> AIMessage | str:
    """The guarded answer in the type that the chain returned."""
    if isinstance(output, AIMessage):
        return guarded_message(output, answer, style, reasons=reasons)
    return render(answer, style).text


def guarded_message(
    message: AIMessage, answer: GuardedAnswer, style: MarkerStyle, *, reasons: bool = True
) -> AIMessage:
    """The message with its text replaced by the guarded one.

    The message keeps its id, so that it replaces the unguarded one in an agent's state, its
    usage and its metadata. Content that was a string stays one; of content blocks the text's
    carries the citations as annotations. The verdict with its citations stands in
    ``response_metadata["guardrail"]``. Reasoning and token probabilities are left out:
    they are unjudged text as well. Of a message that calls tools only the text is replaced, or
    left out where it was refused: the rest goes back to the provider as it came, with the tools'
    results.
    """
    rendition = render(answer, style)
    annotations = [annotation(citation) for citation in rendition.citations]
    verdict = details(answer, reasons=reasons) | {"citations": annotations}
    metadata = judged_metadata(message) | {"guardrail": verdict}
    if calls_tools(message):
        text = "" if answer.action is Action.REFUSE else rendition.text
        content = _with_text(message.content, text)
        return message.model_copy(update={"content": content, "response_metadata": metadata})
    changed: dict[str, object] = {
        "content": rendition.text,
        "response_metadata": metadata,
        # Providers keep the raw answer here (refusals, parsed output): it was not judged.
        "additional_kwargs": {},
    }
    if not isinstance(message.content, str):
        block = create_text_block(rendition.text, annotations=annotations or None)  # type: ignore[arg-type]
        other = [item for item in message.content_blocks if item["type"] not in UNJUDGED_BLOCKS]
        changed["content"] = [*other, dict(block)]
        # The content is written in the standard form; without this mark, the translator of the
        # provider that made the message would translate it a second time.
        changed["response_metadata"] = metadata | {"output_version": "v1"}
    return message.model_copy(update=changed)


def _with_text(
    content: str | Sequence[str | Mapping[str, object]], text: str
) -> str | list[str | Mapping[str, object]]:
    """A message's content with the text in place of its own; all other parts as they are."""
    if isinstance(content, str):
        return text
    parts: list[str | Mapping[str, object]] = []
    for part in content:
        if not isinstance(part, str) and part.get("type") != "text":
            parts.append(part)
        elif text:
            parts.append({"type": "text", "text": text})
            text = ""
    return parts


def judged_metadata(message: AIMessage) -> dict[str, object]:
    """A reply's metadata without the fields that repeat what the model wrote."""
    return {
        name: value
        for name, value in message.response_metadata.items()
        if name not in UNJUDGED_METADATA
    }


def annotation(citation: PlacedCitation) -> dict[str, object]:
    """A citation as LangChain's standard annotation; offsets index the returned text."""
    return dict(
        create_citation(
            url=citation.url,
            title=citation.title,
            start_index=citation.start,
            end_index=citation.end,
            cited_text=citation.title,
            **cited(citation),  # type: ignore[arg-type]
        )
    )
