"""Chat completions under the guardrail: whole replies, and streams of chunks.

Only fields of the protocol are returned. Everything else that a server adds (reasoning,
transcripts, token probabilities of replaced text) is unjudged text. Reasoning within the answer is
removed as well.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from chains.evidence.parts import text_of
from chains.openai_calls import (
    StreamedCalls,
    allowed_choice,
    calls_in,
    judge_data,
    name_calls,
    without_call_reason,
)
from chains.openai_errors import clean_error, error_in
from chains.openai_fields import CHOICE, COMPLETION, MESSAGE, fitting
from chains.openai_reply import Outcome, ReplyStream, StreamedText, nested_annotation, shown
from chains.openai_sse import DONE, Event, written
from chains.openai_wire import JSON, UnreadableReplyError, is_json_document
from chains.rendering import details, render
from chains.structured import named_unjudged
from guardrail import GuardedAnswer
from guardrail.core.incoming import without_reasoning

if TYPE_CHECKING:
    from chains.openai_request import GuardedRequest, GuardSettings

__all__ = ["MAX_CHOICES", "ChatStream", "CompletionCandidates", "completion_events"]

MAX_CHOICES = 128
"""Most choices of one request, the protocol's own bound on ``n``."""

USAGE_COUNTS = ("prompt_tokens", "completion_tokens", "total_tokens")


class CompletionCandidates:
    """The choices of all completions of one request, as candidates.

    Choices that are no answers (tool calls, JSON that was asked for) come after the answers, as
    they are or, where the policy says ``structured``, judged.
    """

    def __init__(self, asked: GuardedRequest) -> None:
        self._asked = asked
        self._bodies: list[JSON] = []
        self._answers: list[JSON] = []
        self._others: list[JSON] = []

    def add(self, bodies: Sequence[JSON]) -> list[str]:
        """Take the completions of one attempt; return the texts of their answers.

        Raises:
            UnreadableReplyError: A reply is not a chat completion, or has more than
                ``MAX_CHOICES`` choices.
        """
        self._bodies += bodies
        texts = []
        for choice in (choice for body in bodies for choice in _choices(body)):
            choice = allowed_choice(self._asked.tools, choice)
            text = choice["message"]["content"] or ""
            if text.strip() and not (self._asked.data and is_json_document(text)):
                self._answers.append(choice)
                texts.append(text)
            else:
                self._others.append(choice)
        return texts

    async def outcome(self, answers: Sequence[GuardedAnswer], count: int) -> Outcome:
        """The completion to return.

        Args:
            answers: The verdicts, best first.
            count: Choices to return.
        """
        asked, guarding = self._asked, self._asked.guarding
        case = await asked.case()
        done = await asyncio.to_thread(
            lambda: [
                _guarded_choice(guarding, self._answers[answer.index], answer)
                for answer in answers[:count]
            ]
        )
        done = [*done, *map(_plain_choice, self._others)][:count]
        for index, choice in enumerate(done):
            choice["index"] = index
            refusal = choice["message"].get("refusal")
            if isinstance(refusal, str) and refusal.strip():
                choice["message"]["refusal"] = await guarding.refusal(case, refusal)
        structured = [await judge_data(asked, case, choice) for choice in done]
        heads = [_head(body, asked) for body in self._bodies]
        body = heads[0]
        if len(heads) > 1:
            body["usage"] = _summed([head.get("usage") for head in heads])
        data = (answer for verdicts in structured for answer in verdicts.answers)
        return Outcome(body | {"choices": done}, (*answers, *data))


def _choices(body: JSON) -> list[JSON]:
    choices = body.get("choices")
    if not isinstance(choices, list) or not all(
        isinstance(choice, dict) and isinstance(choice.get("message"), dict) for choice in choices
    ):
        raise UnreadableReplyError("the model's server did not answer with a chat completion")
    if len(choices) > MAX_CHOICES:
        raise UnreadableReplyError(f"the model's server sends more than {MAX_CHOICES} choices")
    return [_clean_choice(choice) for choice in choices]


def _head(body: JSON, asked: GuardedRequest) -> JSON:
    """A reply, or a chunk of one, without its choices; the model is the requested one."""
    head = fitting(body, COMPLETION)
    if "model" in body and "model" in asked.body:
        head["model"] = asked.body["model"]
    return head


def _clean_choice(choice: JSON) -> JSON:
    """A choice with only what the protocol names; its texts are still unjudged."""
    message: JSON = {"role": "assistant", "content": None}
    message |= fitting(choice["message"], MESSAGE) | calls_in(choice["message"])
    if message["content"]:
        message["content"] = without_reasoning(message["content"])
    scores = {"logprobs": choice["logprobs"]} if "logprobs" in choice else {}
    return {"finish_reason": None} | fitting(choice, CHOICE) | scores | {"message": message}


def _plain_choice(choice: JSON) -> JSON:
    """A choice that is not an answer."""
    message = dict(choice["message"])
    if message.get("content"):
        message.pop("refusal", None)  # a reply is an answer or a refusal, never both
    plain = choice | {"message": message}
    if "logprobs" in choice:
        plain["logprobs"] = token_scores(choice["logprobs"], message.get("content") or "")
    return plain


def _guarded_choice(guarding: GuardSettings, choice: JSON, answer: GuardedAnswer) -> JSON:
    raw = choice["message"]["content"]
    rendering = render(answer, guarding.style)
    if answer.dry_run:
        rendering = rendering._replace(text=raw)
    guarded = _plain_choice(choice)
    message = guarded["message"]
    calls = bool(message.get("tool_calls") or message.get("function_call"))
    if rendering.text != raw:
        guarded["logprobs"] = None
    message |= {
        "content": shown(rendering.text, answer, calls_tools=calls),
        "annotations": [nested_annotation(citation) for citation in rendering.citations],
        "guardrail": details(answer, reasons=guarding.reasons),
    }
    return guarded


def token_scores(logprobs: object, text: str) -> JSON | None:
    """Log-probabilities of a text's own tokens; None where they are those of another text.

    Likely alternatives to a token are text that nobody judged.
    """
    tokens = logprobs.get("content") if isinstance(logprobs, dict) else None
    if not isinstance(tokens, list) or not all(
        isinstance(item, dict)
        and isinstance(item.get("token"), str)
        and isinstance(item.get("logprob"), int | float)
        for item in tokens
    ):
        return None
    if "".join(item["token"] for item in tokens) != text:
        return None
    own = ({"token": item["token"], "logprob": item["logprob"]} for item in tokens)
    return {"content": [item | {"bytes": None, "top_logprobs": []} for item in own]}


def _summed(usages: Sequence[object]) -> JSON | None:
    """What several calls have used together."""
    known = [usage for usage in usages if isinstance(usage, dict)]
    if not known:
        return None
    counts = {name: [usage.get(name) for usage in known] for name in USAGE_COUNTS}
    totals = {name: sum(n for n in held if isinstance(n, int)) for name, held in counts.items()}
    return {**known[0], **totals}


# --- streams -----------------------------------------------------------------------------


class _StreamedChoice(StreamedText):
    """One choice so far."""

    def __init__(self, asked: GuardedRequest, index: int) -> None:
        super().__init__(asked)
        self.index = index
        self.calls = StreamedCalls(asked.tools)
        self.calls_tools = False
        self.called: dict[object, str] = {}
        self.closed = False


class ChatStream(ReplyStream):
    """Guards the events of one streamed chat completion, choice by choice."""

    def __init__(self, asked: GuardedRequest) -> None:
        super().__init__(asked)
        self._choices: dict[int, _StreamedChoice] = {}
        self._head: JSON = {}

    async def feed(self, event: Event) -> list[Event]:
        """Take an event of the model's server; return those that may leave."""
        if event.data == DONE:
            last = await self.finish()
            self.ended = True
            return [*last, Event(DONE)]
        chunk = event.json()
        if not isinstance(chunk, dict):
            return []
        if chunk.get("error") or event.name == "error":
            self.failed = self.ended = True
            return [Event.of({"error": clean_error(error_in(chunk))})]
        self._head = _head(chunk, self._asked)
        usage = self._head.pop("usage", None)
        choices = chunk.get("choices")
        out: list[JSON] = []
        for choice in choices if isinstance(choices, list) else []:
            if isinstance(choice, dict):
                out += await self._choice(choice)
        if not choices:
            out = [self._head | {"choices": []}]
        if usage is not None and out:
            out[-1]["usage"] = usage
        return await written(map(Event.of, out), long=bool(self.answers))

    @property
    def whole(self) -> bool:
        """Whether every choice has ended; servers may omit the last event."""
        choices = self._choices.values()
        return self.ended or (bool(choices) and all(state.closed for state in choices))

    async def finish(self) -> list[Event]:
        """Release the rest of a stream whose choices did not end."""
        return await written(map(Event.of, await self._close_open()), long=bool(self.answers))

    async def _close_open(self) -> list[JSON]:
        out: list[JSON] = []
        for state in self._choices.values():
            out += await self._close(state, None)
        return out

    async def _choice(self, choice: JSON) -> list[JSON]:
        choice_index = choice.get("index")
        index = choice_index if isinstance(choice_index, int) else 0
        state = self._choices.get(index)
        out: list[JSON] = []
        if state is None and self._choices:
            return out  # a request that streams through has one choice
        if state is None:
            state = _StreamedChoice(self._asked, index)
            self._choices[index] = state
        delta = choice.get("delta")
        delta = delta if isinstance(delta, dict) else {}
        passed = state.calls.of(calls_in(delta))
        if delta.get("role"):
            passed = {"role": fitting(delta, MESSAGE).get("role", "assistant")} | passed
        state.calls_tools |= "tool_calls" in passed or "function_call" in passed
        name_calls(passed, state.called)
        if "role" in passed and delta.get("content") is not None:
            passed["content"] = ""
        if passed:
            out.append(self._chunk(state, passed))
        if isinstance(delta.get("refusal"), str):
            state.refuse(delta["refusal"])
        if text := text_of(delta.get("content")):
            out += self._content(state, await state.feed(text))
        if choice.get("finish_reason"):
            said = fitting(choice, CHOICE)
            if not state.calls_tools:
                said = without_call_reason(said)
            out += await self._close(state, said.get("finish_reason") or "stop")
        return out

    async def _close(self, state: _StreamedChoice, finish_reason: str | None) -> list[JSON]:
        if state.closed:
            return []
        text, answer = await state.finish()
        state.closed = True  # not before: after a timeout the verdict is still to come
        out = self._content(state, shown(text, answer, calls_tools=state.calls_tools))
        if (refusal := await state.judged_refusal()) is not None:
            out.append(self._chunk(state, {"refusal": refusal}))
        last: JSON = {}
        if answer is not None:
            last = {
                # All in one delta, since clients cannot join such lists.
                "annotations": [nested_annotation(citation) for citation in state.citations],
                "guardrail": await self._report(answer),
            }
            await asyncio.to_thread(self._asked.remember, [answer], self._head)
        # A stream in which documents are judged waits for the whole reply.
        if unjudged := named_unjudged(
            [*(["content"] if state.is_data else []), *state.called.values()]
        ):
            last["guardrail"] = last.get("guardrail", {}) | unjudged
        if last or finish_reason:
            out.append(self._chunk(state, last, finish_reason))
        return out

    def _content(self, state: _StreamedChoice, text: str | None) -> list[JSON]:
        if not text:
            return []
        self.released = True
        return [self._chunk(state, {"content": text})]

    def _chunk(self, state: _StreamedChoice, delta: JSON, finish_reason: str | None = None) -> JSON:
        choice = {
            "index": state.index,
            "delta": delta,
            "logprobs": None,
            "finish_reason": finish_reason,
        }
        return self._head | {"choices": [choice]}


def completion_events(request: JSON, body: JSON) -> list[Event]:
    """A whole guarded completion as the events of a stream."""
    head = {key: body[key] for key in body if key in COMPLETION.keys() - {"usage"}}
    head["object"] = "chat.completion.chunk"
    out: list[JSON] = []
    for choice in body["choices"]:
        message: JSON = dict(choice["message"])
        index = choice["index"]

        def chunk(delta: JSON, finish_reason: object = None, index: int = index) -> JSON:
            only = {"index": index, "delta": delta, "finish_reason": finish_reason}
            return head | {"choices": [only]}

        out.append(chunk({"role": message.pop("role", "assistant"), "content": ""}))
        calls = message.pop("tool_calls", None)
        last: JSON = {
            key: message.pop(key) for key in ("annotations", "guardrail") if key in message
        }
        rest = {key: value for key, value in message.items() if value is not None}
        if rest:
            out.append(chunk(rest))
        if calls:
            numbered = [{"index": place, **call} for place, call in enumerate(calls)]
            out.append(chunk({"tool_calls": numbered}))
        out.append(chunk(last, choice.get("finish_reason")))
    options = request.get("stream_options")
    if isinstance(options, dict) and options.get("include_usage") and body.get("usage"):
        out.append(head | {"choices": [], "usage": body["usage"]})
    return [*(Event.of(item) for item in out), Event(DONE)]
