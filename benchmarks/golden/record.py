"""Runs the requests of the golden record, and compares what they return with what was recorded.

No neural judge takes part, so the record is the same on every processor: a third of the requests
is judged by the checks alone, the others by ``LexicalJudge``. Ids, timings and versions are left
out; floats are rounded to six digits.
"""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

import httpx

from benchmarks.golden.requests import Answered, Request
from chains.gateway import GatewaySettings, create_app
from guardrail import Guardrail, GuardrailConfig
from guardrail.config import GraphConfig
from guardrail.core.text.words import content_stems, tokenise
from guardrail.core.types import (
    Evidence,
    Grounding,
    GuardedAnswer,
    StatementScore,
    Triple,
    WordScore,
)
from guardrail.models.base import Completion, SampleRequest
from guardrail.policy import policy_named
from judges.base import GroundingItem

__all__ = ["RECORD", "LexicalJudge", "differences", "read_record", "run", "write_record"]

RECORD = Path(__file__).parent / "record.jsonl.gz"

LEFT_OUT = frozenset({"created", "id", "timings_ms", "versions"})
"""Keys that differ from run to run, or with each release."""

DIGITS = 6
CHARS = 300
"""Characters of each side that are printed of a difference."""


class LexicalJudge:
    """A grounding judge that compares word stems; deterministic, with no model.

    A sentence is supported if the statements and its context have all of its content words,
    contradicted if only words with digits or capitals are missing while a statement shares half of
    its words, and unsupported otherwise.
    """

    name = "lexical-1"

    def warm_up(self) -> None:
        """Nothing to load."""

    def ground(self, items: Sequence[GroundingItem]) -> list[Grounding]:
        """Judge n sentences."""
        return [self._one(item) for item in items]

    def _one(self, item: GroundingItem) -> Grounding:
        held = [content_stems(text) for text in item.statements]
        known = frozenset[str]().union(content_stems(item.context), *held)
        sentence = content_stems(item.sentence)
        missing = sentence - known
        shares = [len(entry & sentence) / max(1, len(sentence)) for entry in held]
        tokens = tokenise(item.sentence)
        marked = {
            token.stem
            for token in tokens
            if any(sign.isdigit() or sign.isupper() for sign in token.text)
        }
        if not sentence:
            chosen = "no_claim"
        elif not missing and held:
            chosen = "supported"
        elif max(shares, default=0.0) >= 0.5 and missing <= marked:
            chosen = "contradicted"
        else:
            chosen = "unsupported"
        against = chosen == "contradicted"
        chance = dict.fromkeys(("supported", "unsupported", "contradicted", "no_claim"), 0.03)
        chance[chosen] = 0.91
        return Grounding(
            supported=chance["supported"],
            unsupported=chance["unsupported"],
            contradicted=chance["contradicted"],
            no_claim=chance["no_claim"],
            words=tuple(
                WordScore(
                    start=token.start,
                    end=token.end,
                    missing=0.9 if token.stem in missing else 0.1,
                    contradicted=0.9 if against and token.stem in missing else 0.1,
                )
                for token in tokens
            ),
            statements=tuple(
                StatementScore(
                    carries=min(0.95, share), conflicts=0.7 if against and share >= 0.5 else 0.05
                )
                for share in shares
            ),
        )


class ScriptedModel:
    """A language model that gives the next of some texts with each sample."""

    name = "scripted"

    def __init__(self) -> None:
        self.texts: list[str] = []

    def warm_up(self) -> None:
        """Nothing to load."""

    async def sample(self, request: SampleRequest) -> list[Completion]:
        """Give ``request.n`` texts, the last one again once all were given."""
        found = []
        for _ in range(request.n):
            text = self.texts.pop(0) if len(self.texts) > 1 else self.texts[0]
            found.append(Completion(text=text))
        return found

    def close(self) -> None:
        """Nothing to release."""


def run(requests: Sequence[Request]) -> dict[str, str]:
    """What the requests return, as JSON by name."""
    with ExitStack() as stack:
        settings = GuardrailConfig(graph=GraphConfig(location="none"), judge="none")
        model = ScriptedModel()
        guards = {
            "checks": Guardrail(settings, model=model),
            "lexical": Guardrail(settings, grounding=LexicalJudge(), model=model),
        }
        for guard in guards.values():
            stack.enter_context(guard)
        return {
            item.name: json.dumps(_plain(_run(item, guards[item.judge], model)), ensure_ascii=False)
            for item in requests
        }


def _run(item: Request, guard: Guardrail, model: ScriptedModel) -> object:
    policy = policy_named(item.policy).changed(deadline_s=None)
    known = item.evidence
    if item.way == "check":
        return guard.check(item.question, item.answers[0], evidence=known, policy=policy)
    if item.way == "rank":
        return guard.rank(item.question, item.answers, evidence=known, policy=policy)
    if item.way == "ask":
        model.texts = list(item.answers)
        return guard.ask(item.question, evidence=known, policy=policy)
    if item.way == "session":
        session = guard.session(item.question, evidence=known, policy=policy)
        found: list[GuardedAnswer | None] = [session.add(piece) for piece in item.pieces]
        return [answer for answer in (*found, session.rest(), session.finish()) if answer]
    return asyncio.run(_through_gateway(item, guard))


async def _through_gateway(item: Request, guard: Guardrail) -> Answered:
    """The reply of the gateway in this process to a chat completion, as it was sent."""

    class _Pieces(httpx.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            for piece in item.pieces:
                delta = {"index": 0, "delta": {"content": piece}, "finish_reason": None}
                yield _event([delta])
            yield _event([{"index": 0, "delta": {}, "finish_reason": "stop"}])
            yield b"data: [DONE]\n\n"

    def upstream(request: httpx.Request) -> httpx.Response:
        if json.loads(request.content).get("stream"):
            kind = {"content-type": "text/event-stream"}
            return httpx.Response(200, headers=kind, stream=_Pieces())
        message = {"role": "assistant", "content": item.answers[0]}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        body = {"id": "c", "object": "chat.completion", "created": 1, "model": "m"}
        return httpx.Response(200, json=body | {"choices": [choice]})

    settings = GatewaySettings(upstream="http://127.0.0.1:9/v1")
    async with httpx.AsyncClient(transport=httpx.MockTransport(upstream)) as client:
        app = create_app(guard, settings, client=client)
        transport = httpx.ASGITransport(app)
        async with (
            app.router.lifespan_context(app),
            httpx.AsyncClient(transport=transport, base_url="http://gateway") as caller,
        ):
            body = {
                "model": "m",
                "messages": [{"role": "user", "content": item.question}],
                "stream": item.way == "stream",
                "guardrail": {
                    "evidence": [_sent(piece) for piece in item.evidence],
                    "policy": item.policy,
                },
            }
            reply = await caller.post("/v1/chat/completions", json=body)
    return Answered(reply.status_code, reply.headers["content-type"], reply.text)


def _event(choices: Sequence[Mapping[str, object]]) -> bytes:
    head = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    return f"data: {json.dumps(head | {'choices': choices})}\n\n".encode()


def _sent(piece: Evidence) -> object:
    if isinstance(piece, Triple):
        return [piece.subject, piece.property, piece.value]
    return piece.text


def _plain(value: object) -> object:
    """A result as JSON without what differs from run to run."""
    if isinstance(value, GuardedAnswer):
        return _plain(value.model_dump(mode="json", exclude={"evidence"}))
    if isinstance(value, Answered):
        return [value.status, value.kind, *map(_line, value.text.split("\n"))]
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items() if key not in LEFT_OUT}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return round(value, DIGITS) if isinstance(value, float) else value


def _line(line: str) -> object:
    """A line of a reply: the JSON of a body or an event, anything else as it is."""
    head, data = ("data: ", line[6:]) if line.startswith("data: ") else ("", line)
    if not data.startswith("{"):
        return line
    return [head, _plain(json.loads(data))]


def read_record() -> dict[str, str]:
    """The record: JSON by name of the request."""
    with gzip.open(RECORD, "rt", encoding="utf-8") as lines:
        return dict(line.rstrip("\n").split("\t", 1) for line in lines)


def write_record(found: Mapping[str, str]) -> None:
    """Write the record; the same results give the same bytes."""
    lines = "".join(f"{name}\t{found[name]}\n" for name in sorted(found))
    RECORD.write_bytes(gzip.compress(lines.encode(), 9, mtime=0))


def differences(known: Mapping[str, str], found: Mapping[str, str]) -> dict[str, list[str]]:
    """For each request that returns something else, where and what, by its name."""
    changed = {}
    for name in sorted({*known, *found}):
        if name not in found or name not in known:
            changed[name] = ["not run" if name in known else "not recorded"]
        elif known[name] != found[name]:
            changed[name] = list(_paths("", json.loads(known[name]), json.loads(found[name])))
    return changed


def _paths(place: str, before: object, after: object) -> list[str]:
    if isinstance(before, dict) and isinstance(after, dict):
        keys = dict.fromkeys([*before, *after])
        return [
            line
            for key in keys
            for line in _paths(f"{place}.{key}", before.get(key), after.get(key))
        ]
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        pairs = enumerate(zip(before, after, strict=True))
        return [line for n, pair in pairs for line in _paths(f"{place}[{n}]", *pair)]
    if before == after:
        return []
    return [f"{place}: {repr(before)[:CHARS]} -> {repr(after)[:CHARS]}"]
