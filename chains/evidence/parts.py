"""Content parts in which other gateways and models mark sources and questions.

LiteLLM: ``{"type": "grounding_source", "text": …}`` and ``{"type": "query", "text": …}``.
Bedrock: ``{"guardContent": {"text": {"text": …, "qualifiers": ["grounding_source"]}}}``, and of its
``converse`` ``{"searchResult": {"source", "title", "content"}}`` and ``{"document": …}``.
Azure: ``groundingSources`` beside the messages, or in a part.
Anthropic: ``{"type": "document", "source": …, "title": …}`` and ``search_result``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from chains.evidence.base import Found, Source
from guardrail.core.types import Passage
from guardrail.sources.tables import few_enough

__all__ = ["parts_of_messages", "plain_body", "sources_of_body", "text_of", "visible_parts"]

GROUNDING, QUERY = "grounding_source", "query"
"""Roles of a part, in the words of LiteLLM and Bedrock."""


def parts_of_messages(messages: object) -> Found:
    """Sources and the question that the content parts of messages mark.

    Args:
        messages: Messages as objects, oldest first; anything else holds nothing.
    """
    passages: list[Passage] = []
    questions: list[str] = []
    seen = False
    for message in messages if isinstance(messages, list) else []:
        content = message.get("content") if isinstance(message, Mapping) else None
        for part in content if isinstance(content, list) else []:
            if not isinstance(part, Mapping):
                continue
            for role, passage in _marked(part):
                if role == GROUNDING:
                    seen = True
                    passages.append(passage)
                    few_enough(len(passages), "the content parts")
                else:
                    questions.append(passage.text)
    found = Found.of(Source.PARTS, passages if seen else None)
    return found._replace(question=questions[-1] if questions else None)


def sources_of_body(body: Mapping[str, object]) -> Found:
    """Azure's ``groundingSources``, with its ``qna.query``, beside the messages of a request."""
    sources = body.get("groundingSources")
    if not isinstance(sources, list):
        return Found()
    few_enough(len(sources), "groundingSources")
    asked = body.get("qna")
    question = asked.get("query") if isinstance(asked, Mapping) else None
    found = Found.of(
        Source.PARTS, [Passage(text=source) for source in sources if isinstance(source, str)]
    )
    return found._replace(question=question if isinstance(question, str) else None)


def visible_parts(content: object) -> object:
    """A message's content without parts that are sources, for reading the question in it."""
    if not isinstance(content, list):
        return content
    kept: list[object] = []
    for part in content:
        marked = list(_marked(part)) if isinstance(part, Mapping) else []
        if not marked:
            kept.append(part)
        kept += [passage.text for role, passage in marked if role == QUERY]
    return kept


def text_of(content: object) -> str:
    """The text of a message's content: a string, or parts of which those with text count."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    texts = [
        part if isinstance(part, str) else part.get("text")
        for part in content
        if isinstance(part, str | dict)
    ]
    return " ".join(text for text in texts if isinstance(text, str) and text)


def plain_body(body: dict[str, object]) -> dict[str, object]:
    """A request whose marked parts are plain text, as any server takes them.

    Azure's ``groundingSources`` stay here: they are for the guardrail, not for the model.
    """
    if "groundingSources" in body:
        body = {key: value for key, value in body.items() if key not in ("groundingSources", "qna")}
    for key, kind in (("messages", "text"), ("input", "input_text")):
        messages = body.get(key)
        if isinstance(messages, list):
            plain = [_plain_message(message, kind) for message in messages]
            if plain != messages:
                body = {**body, key: plain}
    return body


def _plain_message(message: object, kind: str) -> object:
    if not isinstance(message, Mapping) or not isinstance(content := message.get("content"), list):
        return message
    parts = [_plain_part(part, kind) for part in content]
    return {**message, "content": parts}


def _plain_part(part: object, kind: str) -> object:
    if not isinstance(part, Mapping):
        return part
    block = _guarded_block(part)
    if block is not None:
        return {"type": kind, "text": block["text"]}
    texts = dict.fromkeys(passage.text for _, passage in _marked(part))
    return {"type": kind, "text": "\n\n".join(texts)} if texts else part


def _marked(part: Mapping[str, object]) -> Iterator[tuple[str, Passage]]:
    """The marked texts of one part, each with its role."""
    kind = part.get("type")
    if kind in (GROUNDING, QUERY) and isinstance(text := part.get("text"), str):
        yield str(kind), _passage(text, part)
    if (block := _guarded_block(part)) is not None:
        qualifiers = block.get("qualifiers")
        for role in qualifiers if isinstance(qualifiers, list) else []:
            if role in (GROUNDING, QUERY):
                yield role, _passage(str(block["text"]), block)
    sources = part.get("groundingSources")
    sources = sources if isinstance(sources, list) else []
    few_enough(len(sources), "groundingSources")
    for text in sources:
        if isinstance(text, str):
            yield GROUNDING, Passage(text=text)
    if kind in ("document", "search_result"):
        yield from _document(part)
    for name in ("document", "searchResult"):
        if isinstance(inner := part.get(name), Mapping):
            yield from _document(inner)


def _guarded_block(part: Mapping[str, object]) -> Mapping[str, object] | None:
    """Bedrock's block of text in a part; None where there is none."""
    guarded = part.get("guardContent")
    block = guarded.get("text") if isinstance(guarded, Mapping) else None
    return block if isinstance(block, Mapping) and isinstance(block.get("text"), str) else None


def _document(part: Mapping[str, object]) -> Iterator[tuple[str, Passage]]:
    """A document or search result of Anthropic or Bedrock: plain text, or blocks of text."""
    source = part.get("source")
    url = source if isinstance(source, str) else None
    content: object = part.get("content")
    if isinstance(source, Mapping):
        content = source.get("data") if source.get("type") == "text" else source.get("content")
        content = source["text"] if content is None and "text" in source else content
    fields = {"url": url, "title": part.get("name"), **part}
    blocks = [content] if isinstance(content, str) else content if isinstance(content, list) else []
    few_enough(len(blocks), "the content of a document")
    for block in blocks:
        text = block.get("text") if isinstance(block, Mapping) else block
        if isinstance(text, str) and text.strip():
            yield GROUNDING, _passage(text, fields)


def _passage(text: str, fields: Mapping[str, object]) -> Passage:
    def named(key: str) -> str | None:
        value = fields.get(key)
        return value if isinstance(value, str) else None

    return Passage(text=text, id=named("id"), title=named("title"), url=named("url"))
