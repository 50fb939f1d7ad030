"""Responses (the OpenAI API of that name) under the guardrail: whole and streamed.

Message items are judged; items of tools pass; reasoning keeps only what is encrypted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from chains.openai_fields import (
    clean_message_item,
    clean_reasoning_item,
    clean_response,
    clean_tool_event,
    clean_tool_item,
    handed_over,
    identifier,
    is_call,
    is_tool_event,
    is_tool_item,
    text,
    unspaced,
)
from chains.openai_reply import (
    Outcome,
    ReplyStream,
    annotation,
    gate_of,
    judge_data,
    write_answer,
)
from chains.openai_request import GuardedRequest
from chains.openai_wire import (
    JSON,
    MAX_PARTS,
    Event,
    UnreadableReplyError,
    clean_error,
    is_json_document,
    object_at,
)
from chains.structured import Document, call_name, named_unjudged
from guardrail import CheckRequest, GuardedAnswer
from guardrail.core.incoming import without_reasoning
from guardrail.core.text.sentences import split_sentences

TEXTS = {"output_text": "text", "refusal": "refusal"}
"""Types of parts, and the field of their text."""


class ResponseCandidates:
    """The responses to one request, each of them a candidate."""

    def __init__(self, request: GuardedRequest) -> None:
        self._request = request
        self._bodies: list[JSON] = []
        self._answers: list[JSON] = []

    def add(self, bodies: Sequence[JSON], most: int) -> list[str]:
        """Take ``most`` responses of one attempt; return the texts of their answers."""
        texts = []
        for body in bodies[:most]:
            if not isinstance(body.get("output"), list):
                raise UnreadableReplyError("the model's server did not answer with a response")
            response = _clean_reply(body, self._request)
            self._bodies.append(response)
            parts = _parts(response)
            if answer := " ".join(
                part["text"] for part in parts if _is_answer(part, self._request)
            ):
                self._answers.append(response)
                texts.append(answer)
        return texts

    async def outcome(self, answers: Sequence[GuardedAnswer], count: int) -> Outcome:
        """The response to return; ``answers`` are the verdicts, best first."""
        if not answers:
            return await _guard(self._request, self._bodies[0])
        return await _guard(self._request, self._answers[answers[0].index], answers[0])


async def _guard(
    request: GuardedRequest, response: JSON, answer: GuardedAnswer | None = None
) -> Outcome:
    """Guard one response from ``_clean_reply``, in place; ``answer`` is the verdict on it."""
    case, options = await request.case(), request.options
    parts = _parts(response)
    judged = [part for part in parts if _is_answer(part, request)]
    if len(judged) > 1:  # the bound of one part alone is that of any answer
        texts = [part["text"] for part in judged]
        count = await asyncio.to_thread(lambda: sum(len(split_sentences(text)) for text in texts))
        _few_enough_sentences(count, request)
    answers = [answer] if answer is not None else []
    if len(judged) != len(answers):
        checks = [
            CheckRequest(question=case.question, answer=part["text"], evidence=case.evidence)
            for part in judged
        ]
        checked = await options.guard.acheck_batch(
            checks, policy=options.policy.settled(), record=answer is None
        )
        answers = [case.with_problems(one) for one in checked]
    calls = any(str(item.get("type")).endswith("_call") for item in response["output"])
    for part, verdict in zip(judged, answers, strict=True):
        await write_answer(request, part, "text", verdict, calls=calls)
    for part in parts:
        if part["type"] == "refusal" and part["refusal"].strip():
            part["refusal"] = await request.refusal(part["refusal"])
    return response, (*answers, *await _judge_data(request, response))


async def _judge_data(request: GuardedRequest, response: JSON) -> tuple[GuardedAnswer, ...]:
    """Judge JSON and tool calls as the policy says; withhold what fails."""
    found: list[tuple[Document, JSON]] = []
    for place, item in enumerate(response["output"]):
        if is_call(item):
            of = str(item.get("call_id") or item.get("id") or f"output {place}")
            passed = {
                key: Document.read(of, key, value).value for key, value in handed_over(item).items()
            }
            name = str(item.get("name") or item.get("type"))
            found.append((Document(of, name, passed, _call_name(item)), item))
        for number, part in enumerate(item["content"] if item["type"] == "message" else ()):
            if request.data and is_json_document(part.get("text", "")):
                of = f"output {place}, content {number}"
                found.append((Document.read(of, "answer", part["text"]), part))
    verdicts = await judge_data(request, response, [document for document, _ in found])
    for failed in (held for document, held in found if document.of in verdicts.withheld):
        if failed["type"] == "output_text":
            failed.clear()
            failed |= {"type": "refusal", "refusal": request.options.policy.refusal}
        else:
            response["output"] = [item for item in response["output"] if item is not failed]
    return verdicts.answers


def _call_name(item: JSON) -> str:
    return call_name(item.get("name") or item.get("type"))


def _clean_reply(body: JSON, request: GuardedRequest) -> JSON:
    """A response with only fields of the protocol and allowed calls; its texts are unjudged."""
    output = body.get("output")
    items = (_clean_item(item, request) for item in (output if isinstance(output, list) else []))
    response = clean_response(body, request.body) | {"output": [item for item in items if item]}
    _few_enough_parts(len(_parts(response)))
    return response


def _clean_item(item: object, request: GuardedRequest) -> JSON | None:
    """An item of the output with only what may be returned; None if nothing may."""
    if not isinstance(item, dict) or identifier(item.get("type")) is None:
        return None
    if item["type"] == "message":
        content = item.get("content")
        parts = [_clean_part(part) for part in (content if isinstance(content, list) else [])]
        return clean_message_item(item) | {"content": [part for part in parts if part]}
    if item["type"] == "reasoning":
        return clean_reasoning_item(item) | {"summary": []}
    if not is_tool_item(item) or not request.tools.any or request.tools.is_other(item):
        return None
    return clean_tool_item(item)


def _clean_part(part: object) -> JSON | None:
    """A part of a message; None unless it is a text or a refusal."""
    found = part if isinstance(part, dict) else {}
    kind = str(found.get("type"))
    if kind not in TEXTS or (content := text(found.get(TEXTS[kind]))) is None:
        return None
    return _part_of(kind, without_reasoning(content) if kind == "output_text" else content)


def _part_of(kind: str, text: str) -> JSON:
    more: JSON = {"annotations": [], "logprobs": []} if kind == "output_text" else {}
    return {"type": kind, TEXTS[kind]: text, **more}


def _parts(response: JSON) -> list[JSON]:
    items = response["output"]
    return [part for item in items if item["type"] == "message" for part in item["content"]]


def _is_answer(part: JSON, request: GuardedRequest) -> bool:
    return part["type"] == "output_text" and request.is_answer(part["text"])


def _few_enough_parts(parts: int) -> None:
    if parts > MAX_PARTS:
        raise UnreadableReplyError(f"the model's server sends more than {MAX_PARTS} parts")


def _few_enough_sentences(count: int, request: GuardedRequest) -> None:
    most = request.options.guard.config.limits.sentences
    if count > most:
        raise UnreadableReplyError(
            f"the parts of one response have more than {most} sentences (limits.sentences)"
        )


# --- streams -----------------------------------------------------------------------------

Place = tuple[int, int]
"""Output index and content index of a part."""


class _StreamedPart:
    """One part of a message so far."""

    def __init__(self, request: GuardedRequest, item_id: object, place: Place) -> None:
        self.gate = gate_of(request)
        self.refusal: list[str] = []
        self.shown: list[str] = []
        self.done: JSON | None = None
        self._where = _where(item_id, *place)

    def events(self, text: str, done: JSON | None = None) -> list[JSON]:
        """The events of further text, and those that end the part."""
        if not text and done is None:
            return []
        out = _part_events(self._where, text, done, begun=bool(self.shown))
        self.shown.append(text)
        self.done = done
        return out


class ResponseStream(ReplyStream):
    """Guards the events of one streamed response, part by part.

    Events are renumbered. Reasoning and events of unknown types, which may hold the answer, are
    dropped.
    """

    def __init__(self, request: GuardedRequest) -> None:
        super().__init__(request)
        self._parts: dict[Place, _StreamedPart] = {}
        self._calls: dict[int, str] = {}
        self._other_calls: set[int] = set()
        self._number = 0
        self._judged = 0  # sentences of messages that were not streamed

    def _event(self, data: JSON) -> Event:
        data["sequence_number"] = self._number
        self._number += 1
        return Event(data, data["type"])

    async def _handle(self, data: JSON, name: str | None) -> list[JSON]:
        kind, index = identifier(data.get("type")) or "", _index(data, "output_index")
        self.failed = bool(data.get("error")) or kind == "error"
        last = kind in ("response.completed", "response.incomplete", "response.failed")
        self.ended = self.failed or last
        if data.get("error"):
            return [{"type": "error", "error": clean_error(data["error"])}]
        if kind == "error":
            # The protocol's own event is the error itself, with a type.
            error = clean_error(data)
            return [{"type": kind, **{name: error[name] for name in ("code", "message", "param")}}]
        if kind in ("response.created", "response.in_progress", "response.queued"):
            response = _clean_reply(object_at(data, "response") or {}, self._request)
            return [{"type": kind, "response": response | {"output": [], "error": None}}]
        if last:
            return await self._end(kind, data)
        if self._request.tools.is_other(data.get("item")):
            self._other_calls.add(index)
        if kind in ("response.output_item.added", "response.output_item.done"):
            return await self._item(kind, index, data)
        if is_tool_event(kind):
            if index in self._other_calls or not self._request.tools.any:
                return []
            event, passes = clean_tool_event(data)
            if passes:  # without its item, a call is named by its type
                self._calls.setdefault(index, _call_name(event))
            return [event]
        return await self._text(kind, (index, _index(data, "content_index")), data)

    async def _text(self, kind: str, place: Place, data: JSON) -> list[JSON]:
        """An event of a message's part, which begins with its first text; others are dropped."""
        if kind == "response.output_text.delta":
            part = self._part(place, data)
            self._few_enough_judged()
            piece = (await part.gate.feed(text(data.get("delta")) or "")).text
            self.released = self.released or bool(piece)
            return part.events(piece)
        if kind == "response.refusal.delta":
            self._part(place, data).refusal.append(text(data.get("delta")) or "")
        ends = ("output_text.done", "refusal.done", "content_part.done")
        return await self._close(place) if kind.removeprefix("response.") in ends else []

    async def _item(self, kind: str, index: int, data: JSON) -> list[JSON]:
        item = _clean_item(data.get("item"), self._request)
        if item is None:
            return []
        out: list[JSON] = []
        if is_call(item):
            self._calls[index] = _call_name(item)
        if item["type"] == "message":
            item["content"] = []
            if kind == "response.output_item.done":
                out = await self._close_all(index)
                item["content"] = self._contents(index)
        return [*out, {"type": kind, "output_index": index, "item": item}]

    async def _end(self, kind: str, data: JSON) -> list[JSON]:
        out = await self._close_all()
        streamed = {index for index, _ in self._parts}
        response = _clean_reply(object_at(data, "response") or {}, self._request)
        documents = [
            f"output {index}, content {number}"
            for (index, number), part in sorted(self._parts.items())
            if part.gate.ended_as_data
        ]
        for index, item in enumerate(response["output"]):
            if is_call(item):
                self._calls[index] = _call_name(item)
            if item["type"] == "message" and index in streamed:
                item["content"] = self._contents(index)
            elif item["type"] == "message":
                alone, answers = await _guard(self._request, {"output": [item]})
                self.answers += answers
                self._judged += sum(len(answer.judged) for answer in answers)
                self._few_enough_judged()
                names = alone.get("guardrail", {}).get("unjudged", ())
                documents += [name.replace("output 0", f"output {index}", 1) for name in names]
        if unjudged := named_unjudged([*documents, *self._calls.values()]):
            response["guardrail"] = {"unjudged": unjudged}
        await asyncio.to_thread(self._request.remember, self.answers, response)
        return [*out, {"type": kind, "response": response}]

    def _contents(self, index: int) -> list[JSON | None]:
        return [part.done for (output, _), part in sorted(self._parts.items()) if output == index]

    async def _close_all(self, index: int | None = None) -> list[JSON]:
        places = [place for place in sorted(self._parts) if index in (None, place[0])]
        return [event for place in places for event in await self._close(place)]

    async def _close(self, place: Place) -> list[JSON]:
        """Judge the rest of a part and end it, unless it has ended."""
        part = self._parts.get(place)
        if part is None or part.done is not None:
            return []
        if (refusal := "".join(part.refusal)).strip():
            refusal = await self._request.refusal(refusal)
            return part.events(refusal, _part_of("refusal", refusal))
        self._few_enough_judged()
        last, _, answer = await part.gate.finish()
        self.released = self.released or bool(last)
        done = _part_of("output_text", "".join((*part.shown, last)))
        done["annotations"] = [annotation(one, self._request) for one in part.gate.citations]
        if answer is not None:
            done["guardrail"] = await self._report(answer)
        return part.events(last, done)

    def _part(self, place: Place, data: JSON) -> _StreamedPart:
        if place not in self._parts:
            _few_enough_parts(len(self._parts) + 1)
            self._few_enough_judged()
            self._parts[place] = _StreamedPart(self._request, unspaced(data.get("item_id")), place)
        return self._parts[place]

    def _few_enough_judged(self) -> None:
        """Bound all parts together; of one alone, what is beyond the bound is not judged."""
        most = self._request.options.guard.config.limits.sentences
        parts = sum(min(most, part.gate.judged) for part in self._parts.values())
        _few_enough_sentences(self._judged + parts, self._request)


def _index(data: JSON, name: str) -> int:
    found = data.get(name)
    return found if isinstance(found, int) and found >= 0 else 0


def _where(item_id: object, output: int, content: int) -> JSON:
    return {"item_id": item_id, "output_index": output, "content_index": content}


def _part_events(where: JSON, text: str, done: JSON | None, *, begun: bool) -> list[JSON]:
    """The events of a piece of a part's text; the first begin the part, and the last end it."""
    kind = "output_text" if done is None else done["type"]
    more: JSON = {"logprobs": []} if kind == "output_text" else {}
    out: list[JSON] = []
    if not begun:
        out.append({"type": "response.content_part.added", "part": _part_of(kind, "")})
    if text:
        out.append({"type": f"response.{kind}.delta", "delta": text, **more})
    if done is not None:
        out += [
            {"type": f"response.{kind}.annotation.added", "annotation": one, "annotation_index": n}
            for n, one in enumerate(done.get("annotations", ()))
        ]
        name = TEXTS[kind]
        out.append({"type": f"response.{kind}.done", name: done[name], **more})
        out.append({"type": "response.content_part.done", "part": done})
    return [event | where for event in out]


def response_events(body: JSON) -> list[Event]:
    """A whole guarded response as the events of a stream."""
    begun = body | {"output": [], "status": "in_progress", "usage": None}
    out: list[JSON] = [{"type": "response.created", "response": begun}]
    for index, item in enumerate(body["output"]):
        message = item["type"] == "message"
        head = item | {"content": [], "status": "in_progress"} if message else item
        out.append({"type": "response.output_item.added", "output_index": index, "item": head})
        for number, part in enumerate(item["content"] if message else ()):
            where = _where(item.get("id"), index, number)
            out += _part_events(where, part[TEXTS[part["type"]]], part, begun=False)
        out.append({"type": "response.output_item.done", "output_index": index, "item": item})
    failed = body.get("status") in ("incomplete", "failed")
    kind = f"response.{body['status']}" if failed else "response.completed"
    out.append({"type": kind, "response": body})
    return [
        Event({**entry, "sequence_number": number}, entry["type"])
        for number, entry in enumerate(out)
    ]
