"""LangChain messages to questions, and guarded answers back to messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from langchain_core.messages import AIMessage, BaseMessage, convert_to_messages
from langchain_core.messages.content import create_citation, create_text_block
from langchain_core.prompt_values import PromptValue

from chains.conversation import Turn, standalone_question
from chains.evidence.base import EvidenceSettings
from chains.evidence.marks import without_marked
from chains.evidence.parts import text_of, visible_parts
from chains.rendition import PlacedCitation, cited, details, render
from chains.styles import MarkerStyle
from guardrail.core.errors import InputError
from guardrail.core.types import Action, GuardedAnswer

__all__ = [
    "ANSWER_KEYS",
    "annotation",
    "answer_at",
    "answer_key",
    "calls_tools",
    "guarded_message",
    "guarded_output",
    "has_text",
    "is_answer",
    "judged_metadata",
    "output_text",
    "question_of",
    "with_answer",
]

ROLES = {"human": "user", "ai": "assistant", "system": "system", "tool": "tool"}
UNJUDGED_METADATA = frozenset(
    {"citation_metadata", "grounding_metadata", "logprobs", "logprobs_result", "message"}
)
"""Fields of a reply's metadata in which providers repeat the answer, whole or token by token."""
UNJUDGED_BLOCKS = frozenset({"text", "reasoning", "non_standard"})
"""Content blocks that hold what a model wrote: the judged text takes the place of all of them."""
QUESTION_KEYS = ("question", "input", "query", "messages")
"""Keys of a chain's input that hold the question, the first one present counts."""


ANSWER_KEYS = ("answer", "output", "response", "result", "text")
"""Keys of a chain's output that hold the answer, the first one present counts."""


def question_of(
    value: object, key: str | None = None, places: EvidenceSettings | None = None
) -> str:
    """The question in a chain's input.

    Args:
        value: A string, a prompt value, messages, or a mapping that holds one of these.
        key: Where in the mapping the question stands; the usual keys are tried when None.
        places: Whose marked stretches of messages are evidence and no part of the question.

    Returns:
        The question, made to stand on its own where it is the end of a conversation; empty
        where messages hold none.

    Raises:
        InputError: A mapping does not tell which of its texts is the question.
    """
    if isinstance(value, Mapping):
        return _question_in(value, key, places)
    if isinstance(value, str):
        return value
    if isinstance(value, PromptValue):
        value = value.to_messages()
    if isinstance(value, BaseMessage):
        value = [value]
    if isinstance(value, Sequence) and value:
        return standalone_question([_turn(item, places) for item in convert_to_messages(value)])
    return ""


def _turn(message: BaseMessage, places: EvidenceSettings | None) -> Turn:
    role = ROLES.get(message.type, "tool")
    text = str(message.text)
    if role == "user":
        text = text_of(visible_parts(message.content))
        text = text if places is None else without_marked(text, places)
    return Turn(role, text)  # type: ignore[arg-type]


def answer_key(output: object, keys: Sequence[str]) -> str | None:
    """The key under which a mapping output holds its answer; None where it is no such mapping."""
    if not isinstance(output, Mapping):
        return None
    return next((key for key in keys if isinstance(output.get(key), str | AIMessage)), None)


def answer_at(output: object, key: str | None) -> object:
    """What stands under the key that ``answer_key`` told; without one the output itself."""
    return output[key] if isinstance(output, Mapping) and key is not None else output


def with_answer(output: object, key: str | None, answer: object) -> object:
    """The output with another answer in the place of its own."""
    return {**output, key: answer} if isinstance(output, Mapping) and key is not None else answer


def _question_in(
    value: Mapping[str, object], key: str | None, places: EvidenceSettings | None
) -> str:
    keys = QUESTION_KEYS if key is None else (key,)
    found = next((name for name in keys if value.get(name)), None)
    if found is not None:
        return question_of(value[found], None, places)
    only = [text for text in value.values() if isinstance(text, str)]
    if key is None and len(only) == 1:
        return only[0]
    known = ", ".join(map(repr, value)) or "none"
    wanted = f"{key!r} holds nothing" if key else "which of them holds the question is not told"
    raise InputError(
        f"the question cannot be told in the chain's input: its keys are {known}, and {wanted}; "
        "name the key of the question with the parameter 'question_key'"
    )


def calls_tools(output: object) -> bool:
    """Whether a chain's output is a message that calls tools."""
    return isinstance(output, AIMessage) and bool(output.tool_calls or output.invalid_tool_calls)


def has_text(output: object) -> bool:
    """Whether a chain's output has text to judge: an answer, or words beside a tool call."""
    if isinstance(output, AIMessage):
        return bool(output.text.strip() if calls_tools(output) else output.text)
    return isinstance(output, str)


def is_answer(output: object) -> bool:
    """Whether a chain's output is an answer, rather than a tool call or data."""
    return has_text(output) and not calls_tools(output)


def output_text(output: object) -> str:
    """The text of an answer."""
    return output.text if isinstance(output, BaseMessage) else str(output)


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
