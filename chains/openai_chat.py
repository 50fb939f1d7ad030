"""Chat completions under the guardrail: whole replies, and streams of chunks.

Only fields of the protocol are returned. Everything else that a server adds (reasoning,
transcripts, token probabilities), and reasoning within the answer, is unjudged text.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from itertools import islice

from chains.evidence.openai import text_of
from chains.openai_fields import clean_choice, clean_completion, clean_message
from chains.openai_reply import (
    Outcome,
    ReplyStream,
    annotation,
    gate_of,
    judge_data,
    left_out,
    write_answer,
)
from chains.openai_request import CALLS, GuardedRequest, calls_in, documents_of_calls
from chains.openai_wire import (
    DONE,
    JSON,
    MAX_PARTS,
    Event,
    UnreadableReplyError,
    clean_error,
    error_in,
    is_json_document,
)
from chains.structured import Document, call_name, named_unjudged
from guardrail import GuardedAnswer
from guardrail.core.incoming import without_reasoning


class CompletionCandidates:
    """The choices of all completions of one request, as candidates.

    Choices that are no answers (tool calls, requested JSON) come after the answers.
    """

    def __init__(self, request: GuardedRequest) -> None:
        self._request = request
        self._bodies: list[JSON] = []
        self._answers: list[JSON] = []
        self._others: list[JSON] = []

    def add(self, bodies: Sequence[JSON], most: int) -> list[str]:
        """Take the completions of one attempt; return the texts of their answers.

        More choices than ``most``, which were asked for, are not judged and not returned.
        """
        self._bodies += bodies
        texts = []
        found = (choice for body in bodies for choice in _choices(body, self._request))
        for choice in islice(found, most):
            text = choice["message"]["content"] or ""
            if self._request.is_answer(text):
                self._answers.append(choice)
                texts.append(text)
            else:
                self._others.append(choice)
        return texts

    async def outcome(self, answers: Sequence[GuardedAnswer], count: int) -> Outcome:
        """The completion to return, of ``count`` choices; the verdicts come best first."""
        chosen: list[tuple[JSON, GuardedAnswer | None]] = [
            (self._answers[answer.index], answer) for answer in answers
        ]
        chosen += [(choice, None) for choice in self._others]
        choices, verdicts = [], [*answers]
        for index, (choice, answer) in enumerate(chosen[:count]):
            choices.append(choice | {"index": index})
            await _guard(self._request, choices[-1], answer)
            verdicts += await _judge_data(self._request, choices[-1])
        heads = [_head(body, self._request) for body in self._bodies]
        body = heads[0]
        if len(heads) > 1:
            body["usage"] = _total_usage([head.get("usage") for head in heads])
        return body | {"choices": choices}, tuple(verdicts)


def _choices(body: JSON, request: GuardedRequest) -> Iterator[JSON]:
    """The choices with only what the protocol names and the request allows; still unjudged."""
    choices = body.get("choices")
    if not isinstance(choices, list) or not all(
        isinstance(choice, dict) and isinstance(choice.get("message"), dict) for choice in choices
    ):
        raise UnreadableReplyError("the model's server did not answer with a chat completion")
    if len(choices) > MAX_PARTS:
        raise UnreadableReplyError(f"the model's server sends more than {MAX_PARTS} choices")
    for choice in choices:
        given = choice["message"]
        message: JSON = {"role": "assistant", "content": None} | clean_message(given)
        message |= request.tools.of_message(calls_in(given))
        if message["content"]:
            message["content"] = without_reasoning(message["content"])
        calls = bool(CALLS & message.keys())
        head = {"finish_reason": None} | _choice_head(choice, calls=calls)
        scores = {"logprobs": None} if "logprobs" in choice else {}
        yield head | scores | {"message": message}


def _choice_head(choice: JSON, *, calls: bool) -> JSON:
    """A choice without its message; one without calls did not end because of one."""
    head = clean_choice(choice)
    if not calls and head.get("finish_reason") in CALLS:
        head["finish_reason"] = "stop"
    return head


def _head(body: JSON, request: GuardedRequest) -> JSON:
    """A reply, or a chunk of one, without its choices; the model is the requested one."""
    head = clean_completion(body)
    if "model" in body and "model" in request.body:
        head["model"] = request.body["model"]
    return head


async def _guard(request: GuardedRequest, choice: JSON, answer: GuardedAnswer | None) -> None:
    """Write the verdict on a choice into it; None for a choice that is not an answer."""
    message = choice["message"]
    raw = message["content"]
    if raw:
        message.pop("refusal", None)  # a reply is an answer or a refusal, never both
    if answer is not None:
        calls = bool(CALLS & message.keys())
        await write_answer(request, message, "content", answer, calls=calls)
        if message["content"] != raw:
            choice["logprobs"] = None
    if (message.get("refusal") or "").strip():
        message["refusal"] = await request.refusal(message["refusal"])


async def _judge_data(request: GuardedRequest, choice: JSON) -> tuple[GuardedAnswer, ...]:
    """Judge JSON and tool calls as the policy says; withhold what fails."""
    message = choice["message"]
    documents = documents_of_calls(message)
    if request.data and is_json_document(message["content"] or ""):
        documents.append(Document.read("content", "answer", message["content"]))
    verdicts = await judge_data(request, message, documents)
    if withheld := verdicts.withheld:
        calls = message.pop("tool_calls", ())
        if left := [call for call in calls if str(call.get("id")) not in withheld]:
            message["tool_calls"] = left
        if "function_call" in withheld:
            message.pop("function_call", None)
        if "content" in withheld:
            message["content"] = None
        if not left:
            choice["finish_reason"] = "stop"
            if not message["content"]:
                message["refusal"] = request.options.policy.refusal
    return verdicts.answers


def _total_usage(usages: Sequence[object]) -> JSON | None:
    """What several calls have used together."""
    known = [usage for usage in usages if isinstance(usage, dict)]
    totals = {
        name: sum(n for usage in known if isinstance(n := usage.get(name), int))
        for name in ("prompt_tokens", "completion_tokens", "total_tokens")
    }
    return {**known[0], **totals} if known else None


# --- streams -----------------------------------------------------------------------------


class ChatStream(ReplyStream):
    """Guards a streamed chat completion; a request that streams through has one choice."""

    def __init__(self, request: GuardedRequest) -> None:
        super().__init__(request)
        self._head: JSON = {}
        self._index: int | None = None
        self._text = gate_of(request)
        self._refusal: list[str] = []
        self._names: dict[object, str] = {}
        self._calls: dict[object, str] = {}
        self._closed = False

    @property
    def whole(self) -> bool:
        """Whether the choice has ended; servers may omit the last event."""
        return self.ended or self._closed

    async def _done(self) -> list[Event]:
        self.ended = True
        return [*map(Event, await self._close_all()), Event(DONE)]

    async def _handle(self, data: JSON, name: str | None) -> list[JSON]:
        if data.get("error") or name == "error":
            self.failed = self.ended = True
            return [{"error": clean_error(error_in(data))}]
        self._head = _head(data, self._request)
        usage = self._head.pop("usage", None)
        choices = data.get("choices")
        out: list[JSON] = []
        for choice in choices if isinstance(choices, list) else []:
            if isinstance(choice, dict):
                out += await self._choice(choice)
        if not choices:
            out = [self._head | {"choices": []}]
        if usage is not None and out:
            out[-1]["usage"] = usage
        return out

    async def _choice(self, choice: JSON) -> list[JSON]:
        index = choice.get("index")
        index = index if isinstance(index, int) else 0
        if self._index is None:
            self._index = index
        if index != self._index:
            return []
        delta = choice.get("delta")
        delta = delta if isinstance(delta, dict) else {}
        passed = self._request.tools.of_message(calls_in(delta), self._allows)
        if delta.get("role"):
            passed = {"role": clean_message(delta).get("role", "assistant")} | passed
            if delta.get("content") is not None:
                passed["content"] = ""
        out = [self._chunk(passed)] if passed else []
        if isinstance(delta.get("refusal"), str):
            self._refusal.append(delta["refusal"])
        if text := text_of(delta.get("content")):
            out += self._content((await self._text.feed(text)).text)
        if choice.get("finish_reason"):
            head = _choice_head(choice, calls=bool(self._calls))
            out += await self._close_all(head.get("finish_reason") or "stop")
        return out

    def _allows(self, place: object, piece: object) -> bool:
        """True for a piece of an allowed call; some servers send the name in pieces as well."""
        name = self._names.get(place, "")
        if isinstance(piece, str) and piece != name:  # others send the whole name each time
            name = self._names[place] = name + piece
        if not name or not self._request.tools.begins(name):
            return False
        self._calls[place] = call_name(name)
        return True

    async def _close_all(self, finish_reason: str | None = None) -> list[JSON]:
        if self._closed:
            return []
        text, _, answer = await self._text.finish()
        self._closed = True  # not before: after a timeout the verdict is still to come
        out = [] if left_out(answer, calls=bool(self._calls)) else self._content(text)
        if (refusal := "".join(self._refusal)).strip():
            out.append(self._chunk({"refusal": await self._request.refusal(refusal)}))
        last: JSON = {}
        if answer is not None:
            last = {
                # All in one delta, since clients cannot join such lists.
                "annotations": [annotation(item, self._request) for item in self._text.citations],
                "guardrail": await self._report(answer),
            }
            await asyncio.to_thread(self._request.remember, [answer], self._head)
        # Streams whose documents are judged wait for the whole reply.
        data = ["content"] if self._text.ended_as_data else []
        if unjudged := named_unjudged([*data, *self._calls.values()]):
            last["guardrail"] = last.get("guardrail", {}) | {"unjudged": unjudged}
        if last or finish_reason:
            out.append(self._chunk(last, finish_reason))
        return out

    def _content(self, text: str) -> list[JSON]:
        self.released = self.released or bool(text)
        return [self._chunk({"content": text})] if text else []

    def _chunk(self, delta: JSON, finish_reason: str | None = None) -> JSON:
        choice = {"index": self._index, "delta": delta, "logprobs": None}
        return self._head | {"choices": [choice | {"finish_reason": finish_reason}]}


def completion_events(request: JSON, body: JSON) -> list[Event]:
    """A whole guarded completion as the events of a stream."""
    head = {key: body[key] for key in body if key not in ("choices", "usage")}
    head["object"] = "chat.completion.chunk"
    out: list[JSON] = []
    for choice in body["choices"]:
        message: JSON = dict(choice["message"])
        deltas: list[JSON] = [{"role": message.pop("role", "assistant"), "content": ""}]
        calls = message.pop("tool_calls", None)
        last = {key: message.pop(key) for key in ("annotations", "guardrail") if key in message}
        if rest := {key: value for key, value in message.items() if value is not None}:
            deltas.append(rest)
        if calls:
            deltas.append({"tool_calls": [{"index": n, **call} for n, call in enumerate(calls)]})
        for delta in (*deltas, last):
            ended = choice.get("finish_reason") if delta is last else None
            only = {"index": choice["index"], "delta": delta, "finish_reason": ended}
            out.append(head | {"choices": [only]})
    options = request.get("stream_options")
    if isinstance(options, dict) and options.get("include_usage") and body.get("usage"):
        out.append(head | {"choices": [], "usage": body["usage"]})
    return [*map(Event, out), Event(DONE)]
