"""Evidence and question of a request to the chat completions, responses or messages endpoint.

Content parts mark sources and questions in the forms of several hosts:

LiteLLM: ``{"type": "grounding_source", "text": …}`` and ``{"type": "query", "text": …}``.
Bedrock: ``{"guardContent": {"text": {"text": …, "qualifiers": ["grounding_source"]}}}``, and in
``converse`` ``{"searchResult": {"source", "title", "content"}}`` and ``{"document": …}``.
Azure: ``groundingSources`` in a part or at the top level of the request.
Anthropic: ``{"type": "document", "source": …, "title": …}`` and ``search_result``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from chains.conversation import Turn
from chains.evidence.base import EvidenceSettings, Found, RequestField, Source
from chains.evidence.tools import ToolResult, evidence_of_tools
from chains.openai_wire import JSON, object_at
from guardrail.core.types import Evidence, Passage
from guardrail.sources.tables import few_enough


def request_turns(
    request: JSON, settings: EvidenceSettings, *, responses: bool = False
) -> list[Turn]:
    """The messages of a request as text, without marked evidence; see ``request_evidence``."""
    turns = []
    for message in _messages(_items(request, responses), responses):
        text = text_of(visible_parts(message.get("content")))
        if (role := message.get("role")) == "user":
            text = without_marked(text, settings)
        turns.append(Turn(role if role in ("user", "assistant") else "system", text))
    return turns


def request_evidence(
    request: JSON, field: RequestField, settings: EvidenceSettings, *, responses: bool = False
) -> Found:
    """The evidence in a request and in its ``guardrail`` field, the most trusted first."""
    items = _items(request, responses)
    messages = _messages(items, responses)
    names = dict(name for item in items for name in _calls_of(item))
    results = [result for item in items for result in _results(item, names)]
    prompts = [
        text_of(message.get("content"))
        for message in messages
        if message.get("role") in ("system", "developer", "user")
    ]
    return (
        Found.of(Source.CALLER, field.evidence)
        | parts_of_messages(messages)
        | sources_of_body(request)
        | evidence_of_tools(results, settings)
        | marked_evidence(prompts, settings)
    )


def _search_results(item: Mapping[str, object]) -> Iterator[Evidence]:
    """The passages of a file search, in a request's input."""
    for result in _objects(item.get("results")):
        text, attributes = _text(result, "text"), object_at(result, "attributes") or {}
        if text and text.strip():
            named = {"id": "file_id", "title": "filename"}
            fields = {name: result.get(key) for name, key in named.items()}
            yield _passage(text, fields | {"url": attributes.get("url")})


def _items(request: JSON, responses: bool) -> list[JSON]:
    """The messages and other items of a request, with its system prompt as a message."""
    given, system = ("input", "instructions") if responses else ("messages", "system")
    items = request.get(given)
    if isinstance(items, str) and responses:
        items = [{"role": "user", "content": items}]
    prompt = request.get(system)
    first = [{"role": "system", "content": prompt}] if prompt else []
    return [*first, *_objects(items)]


def _messages(items: list[JSON], responses: bool) -> list[JSON]:
    return [item for item in items if not responses or item.get("type", "message") == "message"]


def _calls_of(item: JSON) -> Iterator[tuple[str, str]]:
    """The id and name of each tool call."""
    if item.get("type") == "function_call":
        calls = [(item.get("call_id"), item.get("name"))]
    else:
        calls = [
            (call.get("id"), tool.get("name"))
            for field in ("tool_calls", "content")  # of OpenAI and Anthropic
            for call in _objects(item.get(field))
            for tool in ([call] if call.get("type") == "tool_use" else [call.get("function")])
            if isinstance(tool, dict)
        ]
    for id, name in calls:
        if isinstance(id, str) and isinstance(name, str):
            yield id, name


def _results(item: JSON, names: Mapping[str, str]) -> Iterator[ToolResult]:
    """The tool results in a message or item, in the forms of OpenAI and Anthropic."""

    def name(id: object) -> str | None:
        return names.get(id) if isinstance(id, str) else None

    kind, content = item.get("type"), item.get("content")
    if kind in ("function_call_output", "custom_tool_call_output", "mcp_call"):
        yield ToolResult(item.get("output"), name(item.get("call_id")))
    elif kind == "file_search_call":
        yield ToolResult(None, documents=_search_results(item))
    elif item.get("role") in ("tool", "function"):
        yield ToolResult(content, _text(item, "name") or name(item.get("tool_call_id")))
    else:
        for part in _objects(content):
            if part.get("type") == "tool_result":
                yield ToolResult(part.get("content"), name(part.get("tool_use_id")))


def _objects(value: object) -> list[JSON]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


# --- content parts -----------------------------------------------------------------------

GROUNDING, QUERY = "grounding_source", "query"
"""Roles of a part, as LiteLLM and Bedrock call them."""


def parts_of_messages(messages: Iterable[Mapping[str, object]]) -> Found:
    """Sources and the question that the content parts of messages mark, oldest first."""
    contents = (message.get("content") for message in messages)
    marked = [
        found
        for content in contents
        if isinstance(content, list)
        for part in content
        for found in _marked_texts(part)
    ]
    passages = [passage for role, passage in marked if role == GROUNDING]
    few_enough(len(passages), "the content parts")
    questions = [passage.text for role, passage in marked if role == QUERY]
    found = Found.of(Source.PARTS, passages or None)
    return found._replace(question=questions[-1] if questions else None)


def sources_of_body(body: Mapping[str, object]) -> Found:
    """Azure's ``groundingSources``, with its ``qna.query``, at the top level of a request."""
    if not isinstance(body.get("groundingSources"), list):
        return Found()
    question = _text(object_at(body, "qna") or {}, "query")
    return Found.of(Source.PARTS, _grounding_sources(body))._replace(question=question)


def _grounding_sources(fields: Mapping[str, object]) -> list[Passage]:
    sources = fields.get("groundingSources")
    sources = sources if isinstance(sources, list) else []
    few_enough(len(sources), "groundingSources")
    return [Passage(text=source) for source in sources if isinstance(source, str)]


def visible_parts(content: object) -> object:
    """A message's content without its sources, to read the question from."""
    if not isinstance(content, list):
        return content
    visible: list[object] = []
    for part in content:
        marked = list(_marked_texts(part))
        visible += [passage.text for role, passage in marked if role == QUERY] if marked else [part]
    return visible


def text_of(content: object) -> str:
    """The text of a message's content: a string, or the texts of its parts."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    texts = [part.get("text") if isinstance(part, dict) else part for part in parts]
    return " ".join(text for text in texts if isinstance(text, str) and text)


def plain_body(body: dict[str, object]) -> dict[str, object]:
    """A request with marked parts as plain text, which any server accepts.

    Azure's ``groundingSources`` are removed: they are for the guardrail, not for the model.
    """
    if "groundingSources" in body:
        body = {key: value for key, value in body.items() if key not in ("groundingSources", "qna")}
    for key, kind in (("messages", "text"), ("input", "input_text")):
        messages = body.get(key)
        if isinstance(messages, list):
            body = body | {key: [_plain_message(message, kind) for message in messages]}
    return body


def _plain_message(message: object, kind: str) -> object:
    if not isinstance(message, Mapping) or not isinstance(content := message.get("content"), list):
        return message
    parts: list[object] = []
    for part in content:
        block = _guarded_block(part)
        marked = [block["text"]] if block else [passage.text for _, passage in _marked_texts(part)]
        text = "\n\n".join(dict.fromkeys(map(str, marked)))
        parts.append({"type": kind, "text": text} if marked else part)
    return {**message, "content": parts}


def _marked_texts(part: object) -> Iterator[tuple[str, Passage]]:
    """The marked texts of one part, each with its role."""
    if not isinstance(part, Mapping):
        return
    kind, block = part.get("type"), _guarded_block(part)
    if kind in (GROUNDING, QUERY) and isinstance(part.get("text"), str):
        yield str(kind), _passage(part["text"], part)
    if block is not None:
        qualifiers = block.get("qualifiers")
        for role in qualifiers if isinstance(qualifiers, list) else []:
            if role in (GROUNDING, QUERY):
                yield role, _passage(str(block["text"]), block)
    documents = [part] if kind in ("document", "search_result") else []
    documents += [part[name] for name in ("document", "searchResult") if name in part]
    for passage in (
        *_grounding_sources(part),
        *(passage for document in documents for passage in _document(document)),
    ):
        yield GROUNDING, passage


def _guarded_block(part: object) -> JSON | None:
    """Bedrock's block of text in a part; None where there is none."""
    block = object_at(part, "guardContent", "text")
    return block if block is not None and isinstance(block.get("text"), str) else None


def _document(part: object) -> Iterator[Passage]:
    """A document or search result of Anthropic or Bedrock: plain text, or blocks of text."""
    if not isinstance(part, Mapping):
        return
    source, content = part.get("source"), part.get("content")
    if isinstance(source, Mapping):
        content = source.get("data" if source.get("type") == "text" else "content")
        content = source["text"] if content is None and "text" in source else content
    blocks = content if isinstance(content, list) else [content]
    few_enough(len(blocks), "the content of a document")
    fields = {"url": source, "title": part.get("name"), **part}
    for block in blocks:
        text = block.get("text") if isinstance(block, Mapping) else block
        if isinstance(text, str) and text.strip():
            yield _passage(text, fields)


def _passage(text: str, fields: Mapping[str, object]) -> Passage:
    return Passage(text=text, **{key: _text(fields, key) for key in ("id", "title", "url")})


def _text(fields: Mapping[str, object], key: str) -> str | None:
    value = fields.get(key)
    return value if isinstance(value, str) else None


def marked_evidence(texts: Iterable[str], settings: EvidenceSettings) -> Found:
    """The marked spans of texts (``<context>…</context>``), each a passage."""
    if settings.marks is None:
        return Found()
    spans = [span for text in texts for span in _split(text, settings.marks)[1]]
    few_enough(len(spans), "the marked text")
    passages = [Passage(text=span.strip()) for span in spans if span.strip()]
    return Found.of(Source.MARKED, passages if spans else None)


def without_marked(text: str, settings: EvidenceSettings) -> str:
    """A text without its marked spans, to read the question from."""
    return text if settings.marks is None else _split(text, settings.marks)[0]


def _split(text: str, marks: tuple[str, str]) -> tuple[str, list[str]]:
    """The text outside the marks, and the spans inside; unclosed spans do not count."""
    opening, closing = marks
    outside, inside = [], []
    position = 0
    while (start := text.find(opening, position)) >= 0:
        end = text.find(closing, start + len(opening))
        if end < 0:
            break
        outside.append(text[position:start])
        inside.append(text[start + len(opening) : end])
        position = end + len(closing)
    return "".join([*outside, text[position:]]), inside
