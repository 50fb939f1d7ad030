"""Streamed responses (the OpenAI API of that name) under the guardrail."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from chains.openai_calls import StreamedCalls
from chains.openai_errors import clean_error
from chains.openai_fields import (
    TOOL_EVENT,
    clean_tool_event,
    identifier,
    is_call,
    is_tool_event,
    is_tool_item,
    text,
    unspaced,
)
from chains.openai_reply import ReplyStream, StreamedText, flat_annotation
from chains.openai_responses import (
    called,
    clean_item,
    clean_response,
    few_enough_parts,
    few_enough_sentences,
    guard_response,
    searched,
)
from chains.openai_sse import Event, written
from chains.openai_wire import JSON
from chains.structured import named_unjudged

if TYPE_CHECKING:
    from chains.openai_request import GuardedRequest

__all__ = ["ResponseStream", "response_events"]

STATES = frozenset({"response.created", "response.in_progress", "response.queued"})
ITEMS = frozenset({"response.output_item.added", "response.output_item.done"})
ENDS = frozenset({"response.completed", "response.incomplete", "response.failed"})
Place = tuple[int, int]
"""Output index and content index of a part."""


class _StreamedPart(StreamedText):
    """One part of a message so far."""

    def __init__(self, asked: GuardedRequest, item_id: object) -> None:
        super().__init__(asked)
        self.item_id = item_id
        self.shown: list[str] = []
        self.done: JSON | None = None


class ResponseStream(ReplyStream):
    """Guards the events of one streamed response, part by part.

    Events are renumbered. Reasoning and events of unknown types, which may hold the answer, are
    dropped.
    """

    def __init__(self, asked: GuardedRequest) -> None:
        super().__init__(asked)
        self._parts: dict[Place, _StreamedPart] = {}
        self._calls: dict[int, str] = {}
        self._calls_in_pieces = StreamedCalls(asked.tools)
        self._number = 0
        self._sentences = 0

    async def feed(self, event: Event) -> list[Event]:
        """Take an event of the model's server; return those that may leave."""
        data = event.json()
        if not isinstance(data, dict):
            return []
        out = await self._guarded(data)
        for item in out:
            item["sequence_number"] = self._number
            self._number += 1
        events = (Event.of(item, item.get("type")) for item in out)
        return await written(events, long=bool(self.answers))

    async def finish(self) -> list[Event]:
        """Nothing: a response that breaks off has no answer."""
        return []

    async def _close_open(self) -> object:
        return await self._close_all(None)

    async def _guarded(self, data: JSON) -> list[JSON]:
        kind = identifier(data.get("type")) or ""
        self.failed = bool(data.get("error")) or kind == "error"
        self.ended = self.failed or kind in ENDS
        if data.get("error"):
            return [{"type": "error", "error": clean_error(data["error"])}]
        if kind == "error":
            # The protocol's own event is the error itself, with a type.
            error = clean_error(data)
            return [{"type": kind, **{name: error[name] for name in ("code", "message", "param")}}]
        if kind in STATES:
            response = clean_response(_object(data, "response"), self._asked)
            return [{"type": kind, "response": response | {"output": [], "error": None}}]
        if kind in ENDS:
            return await self._end(kind, data)
        if self._calls_in_pieces.holds(data):
            return []
        if kind in ITEMS:
            return await self._item(kind, data)
        if is_tool_event(kind):
            return [self._tool_event(data)] if self._asked.takes_calls else []
        place = (_index(data, "output_index"), _index(data, "content_index"))
        return await self._text(kind, place, data)

    async def _text(self, kind: str, place: Place, data: JSON) -> list[JSON]:
        """An event of a message's part; all others are dropped."""
        if kind == "response.content_part.added":
            form = _object(data, "part").get("type")
            if form == "output_text":
                part: JSON = {"type": form, "text": "", "annotations": [], "logprobs": []}
            elif form == "refusal":
                part = {"type": form, "refusal": ""}
            else:
                return []
            self._part(place, data)
            return [self._event(kind, place, part=part)]
        if kind == "response.output_text.delta":
            piece = text(data.get("delta")) or ""
            return self._delta(place, await self._part(place, data).feed(piece))
        if kind == "response.refusal.delta":
            self._part(place, data).refuse(text(data.get("delta")) or "")
            return []
        if kind in ("response.output_text.done", "response.refusal.done"):
            return await self._close(place)
        if kind == "response.content_part.done" and place in self._parts:
            out = await self._close(place)
            return [*out, self._event(kind, place, part=self._parts[place].done)]
        return []

    async def _item(self, kind: str, data: JSON) -> list[JSON]:
        item = clean_item(data.get("item"))
        if item is None or (is_tool_item(item) and not self._asked.takes_calls):
            return []
        self._asked.add(searched(data.get("item"), self._asked))
        index = _index(data, "output_index")
        out: list[JSON] = []
        if is_call(item):
            self._calls[index] = called(item)
        if item.get("type") == "message":
            item["content"] = []
            if kind == "response.output_item.done":
                out += await self._close_all(index)
                item["content"] = self._contents(index)
        return [*out, {"type": kind, "output_index": index, "item": item}]

    async def _end(self, kind: str, data: JSON) -> list[JSON]:
        out = await self._close_all(None)
        streamed = {index for index, _ in self._parts}
        response = clean_response(_object(data, "response"), self._asked)
        documents = [
            f"output {index}, content {number}"
            for (index, number), part in sorted(self._parts.items())
            if part.is_data
        ]
        for index, item in enumerate(response["output"]):
            if is_call(item):
                self._calls[index] = called(item)
            if item.get("type") != "message":
                continue
            if index in streamed:
                item["content"] = self._contents(index)
            else:
                alone, answers = await guard_response(self._asked, {"output": [item]})
                response["output"][index] = alone["output"][0]
                self.answers += answers
                self._sentences += sum(len(answer.judged) for answer in answers)
                most = self._asked.guarding.guard.config.limits.sentences
                few_enough_sentences(self._sentences, most)
                names = alone.get("guardrail", {}).get("unjudged", ())
                documents += [name.replace("output 0", f"output {index}", 1) for name in names]
        unjudged = named_unjudged([*documents, *self._calls.values()])
        response |= {"guardrail": unjudged} if unjudged else {}
        await asyncio.to_thread(self._asked.remember, self.answers, response)
        return [*out, {"type": kind, "response": response}]

    def _tool_event(self, data: JSON) -> JSON:
        """An event of a tool; without its item, it is named by its type."""
        event = clean_tool_event(data)
        if event.keys() - TOOL_EVENT.keys():
            self._calls.setdefault(_index(data, "output_index"), called(event))
        return event

    def _contents(self, index: int) -> list[JSON | None]:
        return [part.done for (output, _), part in sorted(self._parts.items()) if output == index]

    async def _close_all(self, index: int | None) -> list[JSON]:
        out: list[JSON] = []
        for place in sorted(self._parts):
            if index is None or place[0] == index:
                out += await self._close(place)
        return out

    async def _close(self, place: Place) -> list[JSON]:
        """Judge the rest of a part and end it, unless it has ended."""
        part = self._parts.get(place)
        if part is None or part.done is not None:
            return []
        if (refusal := await part.judged_refusal()) is not None:
            part.done = {"type": "refusal", "refusal": refusal}
            return [
                self._event("response.refusal.delta", place, delta=refusal),
                self._event("response.refusal.done", place, refusal=refusal),
            ]
        text, answer = await part.finish()
        out = self._delta(place, text)
        annotations = [flat_annotation(citation) for citation in part.citations]
        shown = "".join(part.shown)
        part.done = {
            "type": "output_text",
            "text": shown,
            "annotations": annotations,
            "logprobs": [],
        }
        if answer is not None:
            part.done["guardrail"] = await self._report(answer)
            self._sentences += len(answer.judged)
        out += [
            self._event(
                "response.output_text.annotation.added",
                place,
                annotation=annotation,
                annotation_index=number,
            )
            for number, annotation in enumerate(annotations)
        ]
        done = self._event("response.output_text.done", place, text=shown, logprobs=[])
        return [*out, done]

    def _part(self, place: Place, data: JSON) -> _StreamedPart:
        if place not in self._parts:
            few_enough_parts(len(self._parts) + 1)
            most = self._asked.guarding.guard.config.limits.sentences
            few_enough_sentences(self._sentences, most)
            self._parts[place] = _StreamedPart(self._asked, unspaced(data.get("item_id")))
        return self._parts[place]

    def _delta(self, place: Place, text: str) -> list[JSON]:
        if not text:
            return []
        self.released = True
        self._parts[place].shown.append(text)
        return [self._event("response.output_text.delta", place, delta=text, logprobs=[])]

    def _event(self, kind: str, place: Place, **fields: object) -> JSON:
        return {
            "type": kind,
            "item_id": self._parts[place].item_id,
            "output_index": place[0],
            "content_index": place[1],
            **fields,
        }


def _object(data: JSON, name: str) -> JSON:
    found = data.get(name)
    return found if isinstance(found, dict) else {}


def _index(data: JSON, name: str) -> int:
    found = data.get(name)
    return found if isinstance(found, int) and found >= 0 else 0


def response_events(body: JSON) -> list[Event]:
    """A whole guarded response as the events of a stream."""
    begun = body | {"output": [], "status": "in_progress", "usage": None}
    out: list[JSON] = [{"type": "response.created", "response": begun}]
    for index, item in enumerate(body["output"]):
        message = item.get("type") == "message"
        head = item | {"content": [], "status": "in_progress"} if message else item
        out.append({"type": "response.output_item.added", "output_index": index, "item": head})
        for place, part in enumerate(item["content"] if message else ()):
            out += _part_events(item.get("id"), index, place, part)
        out.append({"type": "response.output_item.done", "output_index": index, "item": item})
    failed = body.get("status") in ("incomplete", "failed")
    kind = f"response.{body['status']}" if failed else "response.completed"
    out.append({"type": kind, "response": body})
    return [
        Event.of({**entry, "sequence_number": number}, entry["type"])
        for number, entry in enumerate(out)
    ]


def _part_events(item_id: object, index: int, place: int, part: JSON) -> list[JSON]:
    where = {"item_id": item_id, "output_index": index, "content_index": place}
    refusal = part["type"] == "refusal"
    field = "refusal" if refusal else "text"
    name = "response.refusal" if refusal else "response.output_text"
    more: JSON = {} if refusal else {"logprobs": []}
    empty = {**part, field: ""} | ({} if refusal else {"annotations": []})
    empty.pop("guardrail", None)
    return [
        {"type": "response.content_part.added", **where, "part": empty},
        {"type": f"{name}.delta", **where, "delta": part[field], **more},
        {"type": f"{name}.done", **where, field: part[field], **more},
        {"type": "response.content_part.done", **where, "part": part},
    ]
