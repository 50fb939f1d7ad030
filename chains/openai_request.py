"""A request of the OpenAI protocol: its question, its evidence, and the tools that it allows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from chains.conversation import standalone_question
from chains.evidence.base import (
    FIELD,
    Case,
    EvidenceSettings,
    Found,
    Source,
    case_of,
    request_field,
)
from chains.evidence.earlier import (
    EarlierAnswers,
    grounds_of,
    key_of,
    keys_of_answer,
    keys_of_turns,
)
from chains.evidence.openai import plain_body, request_evidence, request_turns
from chains.openai_fields import clean_calls
from chains.openai_wire import JSON, MOST_REPLY_BYTES, Endpoint, is_json_document
from chains.options import (
    CallerRights,
    Inject,
    MarkerStyle,
    StreamMode,
    injected_prompt,
    wants_json,
)
from chains.structured import Document, call_name
from guardrail import ANNOTATE, STRICT, Guardrail, Policy
from guardrail.candidates import Attempt
from guardrail.core.errors import InputError, KnowledgeGraphError
from guardrail.core.types import GuardedAnswer, Problem
from guardrail.evidence.retrieval import bounded

MOST_CANDIDATES = 64
"""Choices that one request may ask for: as many as are ranked, and as a policy samples."""
CALLS = frozenset({"tool_calls", "function_call"})
"""Fields of a message that call tools, and its ``finish_reason`` then."""
NAMED = ("function", "custom")
"""Types of tools with a name of the caller's own, and where a chat has it."""


@dataclass(frozen=True, kw_only=True)
class GuardSettings:
    """How replies are guarded; ``guard_openai`` documents most of the options.

    Attributes:
        checks_policy: For the caller's own texts.
        owner: Owner of the ids in a request; other owners' requests cannot refer to them.
        earlier: Evidence of earlier answers, for the turns that refer to them.
    """

    guard: Guardrail
    policy: Policy = STRICT
    checks_policy: Policy = ANNOTATE
    style: MarkerStyle = MarkerStyle.FOOTNOTES
    mode: StreamMode = StreamMode.SENTENCE
    inject: Inject = Inject.OFF
    evidence: EvidenceSettings = field(default_factory=EvidenceSettings)
    rights: CallerRights = field(default_factory=CallerRights)
    owner: str = ""
    earlier: EarlierAnswers = field(default_factory=EarlierAnswers)
    max_reply_bytes: int = MOST_REPLY_BYTES


class GuardedRequest:
    """One request.

    Attributes:
        options: How its replies are guarded; the request may name another policy.
        body: What the model's server gets: without the ``guardrail`` field, and with the content
            parts of other gateways as plain text.
        count: Choices to return.
        data: Whether JSON was requested instead of an answer.

    Raises:
        InputError: The ``guardrail`` field has unknown content or unreadable evidence, or ``n`` is
            not a whole number from 1 to ``MOST_CANDIDATES``.
        NotAllowedError: It asks for something that callers may not have.
        ConfigError: It names an unknown policy or strictness.
    """

    def __init__(self, options: GuardSettings, endpoint: Endpoint, request: JSON) -> None:
        own = request_field(request.get(FIELD))
        given = {key: value for key, value in request.items() if key != FIELD}
        rights = options.rights
        rights.require(given)
        policy, problems = rights.policy_of(own, options.policy)
        self.options = replace(options, policy=policy)
        self.responses = endpoint is Endpoint.RESPONSES
        self.count = 1 if self.responses else _choices(given)
        settings = rights.places(options.evidence)
        self._turns = request_turns(given, settings, responses=self.responses)
        self._remembers = settings.earlier > 0
        ids = _ids(given, "previous_response_id") if self.responses and self._remembers else []
        self._earlier = options.earlier.of(
            (
                *(key_of(options.owner, id) for id in ids),
                *keys_of_turns(options.owner, self._turns, settings.earlier),
            )
        )
        found = rights.evidence_of(request_evidence(given, own, settings, responses=self.responses))
        if not found.sources:  # evidence in the request is newer than the remembered one
            found |= Found.of(Source.EARLIER, self._earlier or None)
        for place, item in enumerate(found.evidence):
            bounded(item, f"evidence[{place}]")
        self._found = found._replace(problems=(*problems, *found.problems))
        self.data = wants_json(given)
        self.tools = AllowedTools(given, allowed=rights.tools)
        self._question = self._found.question or standalone_question(self._turns)
        self.body = plain_body(given)
        self._case: Case | None = None

    def is_answer(self, text: str) -> bool:
        """True if a text is judged as an answer: requested JSON is data."""
        return bool(text.strip()) and not (self.data and is_json_document(text))

    def remember(self, answers: Sequence[GuardedAnswer], reply: JSON) -> None:
        """Store the evidence of returned answers, for the turns that refer to them."""
        options = self.options
        for answer in answers if self._remembers else ():
            keys = keys_of_answer(options.owner, self._turns, answer, options.style)
            keys |= {key_of(options.owner, id) for id in _ids(reply, "id")}
            options.earlier.keep(keys, (*grounds_of(answer), *self._earlier))

    async def case(self) -> Case:
        """Question and evidence that the answers are judged against; settled once."""
        if self._case is None:
            found = self._found
            try:
                self._case = await case_of(
                    self.options.guard, self._question, found, self.options.evidence.mode
                )
            except KnowledgeGraphError as error:
                if not self.options.policy.dry_run:
                    raise
                # A dry run returns every reply, whatever fails.
                problems = (*found.problems, Problem(part="kg", message=str(error)))
                self._case = Case(self._question, found.evidence, found.sources, problems=problems)
        return self._case

    async def refusal(self, text: str) -> str:
        """A model's refusal, without what the policy removes from it."""
        case, options = await self.case(), self.options
        answer = await case.check(options.guard, text, options.policy.settled(), record=False)
        return text if answer.dry_run else answer.text

    async def inject(self) -> None:
        """Add the facts to the system message or the instructions, if the options say so."""
        options, request = self.options, self.body
        if options.inject is Inject.OFF:
            return
        case = await self.case()
        text = await injected_prompt(options.guard, case.question, case.evidence, options.inject)
        if not text:
            return
        if self.responses:
            self.body = request | {"instructions": _join(request.get("instructions"), text)}
            return
        messages = _items(request.get("messages"))
        first = messages[0] if messages else None
        if isinstance(first, dict) and first.get("role") in ("system", "developer"):
            own = first.get("content")
            part = {"type": "text", "text": text}
            content = [*own, part] if isinstance(own, list) else _join(own, text)
            messages = [first | {"content": content}, *messages[1:]]
        else:
            messages = [{"role": "system", "content": text}, *messages]
        self.body = request | {"messages": messages}

    def again(self, attempt: Attempt) -> JSON:
        """The body of an attempt, with the rejected answer and the feedback on it."""
        request = {key: value for key, value in self.body.items() if key != "stream_options"}
        if self.body.get("stream"):
            request["stream"] = False
        if not attempt.feedback:
            return request
        turns = [
            {"role": "assistant", "content": attempt.rejected},
            {"role": "user", "content": attempt.feedback},
        ]
        name = "input" if self.responses else "messages"
        given = request.get(name)
        before = [{"role": "user", "content": given}] if isinstance(given, str) else _items(given)
        return request | {name: [*before, *turns]}


def _choices(request: JSON) -> int:
    count = request.get("n")
    if count is None:
        return 1
    if type(count) is not int or not 1 <= count <= MOST_CANDIDATES:
        raise InputError(f"n must be a whole number from 1 to {MOST_CANDIDATES}")
    return count


def _ids(body: JSON, name: str) -> list[str]:
    """A server's ids of a response, or the previous one, and its conversation."""
    conversation = body.get("conversation")
    if isinstance(conversation, dict):
        conversation = conversation.get("id")
    return [id for id in (body.get(name), conversation) if isinstance(id, str) and id]


def _join(own: object, text: str) -> str:
    return f"{own}\n\n{text}" if own else text


def _items(value: object) -> list[object]:
    return value if isinstance(value, list) else []


# --- calls of tools ----------------------------------------------------------------------


class AllowedTools:
    """The tools that a reply may call; ``any`` if there may be some."""

    def __init__(self, request: JSON, *, allowed: bool) -> None:
        given = [request.get(field) or [] for field in ("tools", "functions")]
        listed = [tool for held in given for tool in (held if isinstance(held, list) else [held])]
        # What its server stores may have tools, whose names are not known.
        stored = any(map(request.get, ("prompt", "previous_response_id", "conversation")))
        none = "none" in (request.get("tool_choice"), request.get("function_call"))
        self.any = allowed and bool(listed or stored) and not none
        names = [_tool_name(tool) for tool in listed]
        self._names = None if stored or None in names else frozenset(filter(None, names))

    def has(self, name: object) -> bool:
        """True if a tool of this name may be called."""
        return self.any and (self._names is None or (isinstance(name, str) and name in self._names))

    def begins(self, name: str) -> bool:
        """True if a name is the beginning of that of a tool."""
        names = self._names
        return self.any and (names is None or any(one.startswith(name) for one in names))

    def is_other(self, item: object) -> bool:
        """True if an item of a response calls a tool that may not be called."""
        if not isinstance(item, dict):
            return False
        named = item.get("type") in ("function_call", "custom_tool_call")
        return named and not self.has(item.get("name"))

    def of_message(
        self, message: JSON, allows: Callable[[object, object], bool] | None = None
    ) -> JSON:
        """A message, or a piece of one, from ``calls_in``, without calls of other tools.

        ``allows`` decides by the place and the name of a call, by default by the name alone.
        """
        allows = allows or (lambda place, name: self.has(name))
        found = {name: held for name, held in message.items() if name not in CALLS}
        old = message.get("function_call")
        if old and allows("function_call", old.get("name")):
            found["function_call"] = old
        calls = message.get("tool_calls", ())
        if calls := [call for call in calls if allows(call.get("index"), _called_tool(call))]:
            found["tool_calls"] = calls
        return found


def _tool_name(tool: object) -> str | None:
    """The name of a tool that its caller brings; None for one that the server has."""
    if not isinstance(tool, dict) or tool.get("type", NAMED[0]) not in NAMED:
        return None
    inner = next((tool[kind] for kind in NAMED if isinstance(tool.get(kind), dict)), tool)
    name = inner.get("name")
    return name if isinstance(name, str) else None


def _called_tool(call: JSON) -> object:
    """The name of the tool in a call; None if there is none, or another in each form."""
    names = [held.get("name") for kind in NAMED if isinstance(held := call.get(kind), dict)]
    return names[0] if names and all(name == names[0] for name in names) else None


def calls_in(message: JSON) -> JSON:
    """The fields of a message, or of a piece of one, that call tools."""
    return {name: held for name, held in clean_calls(message).items() if held}


def documents_of_calls(message: JSON) -> list[Document]:
    """What the calls of a message, as from ``calls_in``, pass to tools."""
    calls = [(str(call.get("id")), call) for call in message.get("tool_calls", ())]
    if "function_call" in message:
        calls.append(("function_call", {"function": message["function_call"]}))
    return [
        Document.read(of, str(held.get("name")), held[name], call_name(held.get("name") or of))
        for of, call in calls
        for kind in NAMED
        if isinstance(held := call.get(kind), dict)
        for name in ("arguments", "input")
        if name in held
    ]
