"""What a soak sends: requests drawn by chance, with what became of each."""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import MutableMapping
from contextlib import suppress
from typing import Any, Literal, NamedTuple, get_args

from starlette.types import ASGIApp

from benchmarks.faults.facts import CASES, FAULTS, RIGHT, Case, Part, Way
from benchmarks.faults.seen import Outcome, seen_answers, seen_reply
from guardrail.core.types import GuardedAnswer

__all__ = ["FAILING", "Call", "Draw", "Kind", "Sent", "draw", "send"]

Kind = Literal["whole", "stream", "check"]
WAYS: dict[Kind, Way] = {"whole": "gateway", "stream": "stream", "check": "check"}

FAILING: tuple[tuple[Part, str], ...] = (
    *((part, fault) for part in get_args(Part) if part in ("graph", "model", "judge")
      for fault in FAULTS),
    ("none", "caller gone"),
)  # fmt: skip
"""Each fault that a share of the requests meets: a part's, or the caller's own going away."""
CASE = {case: case for case in CASES}
"""One object for each case, lest those of a long soak count as memory that it leaks."""
BY_GRAPH = 0.1
"""Share of the healthy requests that bring no evidence, so that the graph is asked."""
GONE_AFTER_S = (0.0, 0.05)
"""Between which seconds a caller goes away."""


class Draw(NamedTuple):
    """One request that is to be sent.

    Attributes:
        number: Of the request; part of its question, so that its record can be found.
        kind: How it is asked.
        case: What is asked and which part fails.
        gone: Whether the caller goes away before the answer.
        by_graph: Whether the graph is asked, and not evidence of its own given.
    """

    number: int
    kind: Kind
    case: Case
    gone: bool
    by_graph: bool

    @property
    def healthy(self) -> bool:
        """Whether nothing fails."""
        return self.case.fault == "none" and not self.gone

    @property
    def fault(self) -> str:
        """What fails, for a person."""
        return "caller gone" if self.gone else f"{self.case.part} {self.case.fault}"

    @property
    def question(self) -> str:
        """The question, with its number."""
        return f"{self.case.question} [{self.number}]"


class Sent(NamedTuple):
    """What became of a request.

    Attributes:
        draw: The request.
        outcome: How it ended; None where the caller went away.
        seconds: From when it was due to when its answer was there.
        unjudged: Bytes that left and were not judged.
        wrong: Sentences called supported that are false.
        recorded: Whether an answer came that names no trouble with its record.
        detail: The reply, for people.
    """

    draw: Draw
    outcome: Outcome | None
    seconds: float
    unjudged: int = 0
    wrong: int = 0
    recorded: bool = False
    detail: str = ""


def draw(number: int, share: float, rng: random.Random) -> Draw:
    """Draw a request.

    Args:
        number: Of the request.
        share: Of each fault, in [0, 1 / len(FAILING)].
        rng: Of what is random.
    """
    kind = rng.choice(get_args(Kind))
    place = int(rng.random() / share) if share else len(FAILING)
    part, fault = FAILING[place] if place < len(FAILING) else ("none", "none")
    gone = fault == "caller gone"
    if part == "model" and kind == "check":
        kind = "whole"  # a check asks no model
    stage = rng.choice(("names", "facts")) if part == "graph" else "names"
    case = CASE[Case(WAYS[kind], part, "none" if gone else fault, stage)]  # type: ignore[arg-type]
    by_graph = part == "graph" or rng.random() < BY_GRAPH
    return Draw(number, kind, case, gone, by_graph)


async def send(app: ASGIApp, drawn: Draw, due: float, rng: random.Random) -> Sent:
    """Send a request and read its answer.

    Args:
        app: The gateway.
        drawn: The request.
        due: When it was to be sent, by ``time.monotonic``.
        rng: Of when a caller goes away.
    """
    call = Call(rng.uniform(*GONE_AFTER_S) if drawn.gone else None)
    path, body = _asked(drawn)
    try:
        await call.run(app, path, body)
    except Exception as error:  # what comes is what is measured
        if not call.status or call.status >= 300:
            return Sent(drawn, "untyped error", time.monotonic() - due, detail=repr(error))
    seconds = time.monotonic() - due
    if drawn.gone:
        return Sent(drawn, None, seconds)
    return _seen(drawn, call)._replace(seconds=seconds)


class Call:
    """One request to an application, as a server makes it.

    Args:
        gone_after_s: Seconds after which the caller goes away; None for one that stays.
    """

    def __init__(self, gone_after_s: float | None) -> None:
        self._gone_after_s = gone_after_s
        self.status = 0
        self.came = bytearray()
        self.whole = False

    async def run(self, app: ASGIApp, path: str, body: bytes) -> None:
        """Send it and collect what comes.

        Args:
            app: The application.
            path: Its path.
            body: JSON.
        """
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": "POST",
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "root_path": "",
            "query_string": b"",
            "headers": [
                (b"host", b"gateway"),
                (b"content-type", b"application/json"),
                (b"content-length", str(len(body)).encode()),
            ],
            "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 80),
        }
        left = [body]
        done = asyncio.Event()

        async def receive() -> dict[str, object]:
            if left:
                return {"type": "http.request", "body": left.pop(), "more_body": False}
            with suppress(TimeoutError):
                async with asyncio.timeout(self._gone_after_s):
                    await done.wait()
            return {"type": "http.disconnect"}

        async def take(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                self.status = message["status"]
            elif message["type"] == "http.response.body":
                self.came += message.get("body", b"")
                self.whole = not message.get("more_body")
                if self.whole:
                    done.set()

        await app(scope, receive, take)


def _asked(drawn: Draw) -> tuple[str, bytes]:
    evidence = None if drawn.by_graph else [f"{drawn.case.person} {RIGHT}."]
    if drawn.kind == "check":
        body: dict[str, object] = {"question": drawn.question, "answer": drawn.case.answer}
        body |= {"policy": "strict"} | ({"evidence": evidence} if evidence else {})
        return "/v1/checks", json.dumps(body).encode()
    body = {"model": "faults", "messages": [{"role": "user", "content": drawn.question}]}
    body |= {"stream": drawn.kind == "stream"}
    body |= {"guardrail": {"evidence": evidence}} if evidence else {}
    return "/v1/chat/completions", json.dumps(body).encode()


def _seen(drawn: Draw, call: Call) -> Sent:
    if drawn.kind == "check" and call.status == 200:
        answer = GuardedAnswer.model_validate_json(bytes(call.came))
        seen = seen_answers(drawn.case, [answer])
    else:
        text = call.came.decode(errors="replace")
        seen = seen_reply(drawn.case, call.status, text, whole=call.whole)
    # Text that has left must be in the log, also where the stream broke off and says nothing of it.
    recorded = seen.recorded or (seen.outcome == "delivered" and not call.whole)
    return Sent(drawn, seen.outcome, 0.0, seen.unjudged, seen.wrong, recorded, seen.detail)
