"""The requests of the golden record, drawn with one seed from what is in the repository."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from benchmarks.newcomer.domains import DOMAINS, Domain
from guardrail.core.types import Evidence, Passage, Triple

__all__ = ["Answered", "Request", "all_requests"]

ROOT = Path(__file__).parents[2]
STATEMENTS = ROOT / "training" / "statements"
CORRECTIONS = ROOT / "benchmarks" / "correction" / "domains"
SEED = 46

POLICIES = ("annotate", "strict", "strict-correct")
JUDGES = ("lexical", "lexical", "checks")

SETS = {"statement": 190, "whole": 60, "passage": 50, "session": 60, "rank": 30, "ask": 30}
SETS |= {"reply": 20, "stream": 30}
"""Requests drawn from the statements, by how they are made."""

PIECES = (1, 40)
"""Least and greatest length of a piece of a stream, in characters."""


class Request(NamedTuple):
    """One request.

    Attributes:
        name: Its name in the record, ``way/…``.
        way: ``check``, ``rank``, ``ask``, ``session``, ``reply`` or ``stream`` (of the gateway).
        judge: ``checks`` for no judge, or ``lexical``.
        policy: Name of the policy.
        question: The question.
        answers: The answer; several to rank, or what a model writes one after the other.
        evidence: The evidence.
        pieces: The answer as it is streamed.
    """

    name: str
    way: str
    judge: str
    policy: str
    question: str
    answers: tuple[str, ...]
    evidence: tuple[Evidence, ...]
    pieces: tuple[str, ...] = ()


class Answered(NamedTuple):
    """What the gateway replied."""

    status: int
    kind: str
    text: str


def all_requests() -> list[Request]:
    """All requests, in the order of their names' first use."""
    rng = random.Random(SEED)
    return [*_from_statements(rng), *_from_companies(), *_corrections()]


def _from_statements(rng: random.Random) -> Iterator[Request]:
    sets = [
        json.loads(line)
        for path in sorted(STATEMENTS.glob("*.jsonl"))
        for line in path.read_text(encoding="utf-8").splitlines()
    ]
    rng.shuffle(sets)
    prose = [item for item in sets if all("passage" in piece for piece in item["evidence"])]
    others = [item for item in sets if item not in prose]
    drawn = {True: iter(prose), False: iter(others)}
    for way, count in SETS.items():
        for number in range(count):
            item = next(drawn[way == "passage" or number % 5 == 4])
            yield _request(way, number, item, rng)


def _request(way: str, number: int, item: dict[str, object], rng: random.Random) -> Request:
    rows: list[dict[str, str]] = item["rows"]  # type: ignore[assignment]
    pieces: list[dict[str, object]] = item["evidence"]  # type: ignore[assignment]
    evidence = tuple(_piece(piece, place) for place, piece in enumerate(pieces))
    row = rng.choice(rows)
    alone = " ".join(filter(None, (row["context"], row["sentence"])))
    whole = " ".join(one["sentence"] for one in rng.sample(rows, min(5, len(rows))))
    answers: tuple[str, ...] = (alone if way in ("statement", "passage") else whole,)
    if way in ("rank", "ask"):
        answers = tuple(one["sentence"] for one in rng.sample(rows, min(4, len(rows))))
    made = {"statement": "check", "whole": "check", "passage": "check"}.get(way, way)
    policy = POLICIES[number % 3] if way != "ask" else ("best-of-n", "strict")[number % 2]
    return Request(
        f"{way}/{number:03}/{item['set']}",
        made,
        JUDGES[number % 3 if way != "statement" else number % 2 + 1],
        policy,
        row["question"],
        answers,
        evidence,
        tuple(_cut(answers[0], rng)) if way in ("session", "stream") else (),
    )


def _piece(piece: dict[str, object], place: int) -> Evidence:
    if "triple" in piece:
        return Triple(*map(str, piece["triple"]))  # type: ignore[call-overload]
    return Passage(text=str(piece["passage"]), id=f"p{place}")


def _cut(text: str, rng: random.Random) -> Iterator[str]:
    while text:
        size = rng.randint(*PIECES)
        yield text[:size]
        text = text[size:]


def _from_companies() -> Iterator[Request]:
    """Answers on linked tables and handbooks."""
    for path in sorted(item for item in DOMAINS.iterdir() if item.is_dir()):
        for number, answer in enumerate(Domain(path.name).answers[:20]):
            request = answer.request
            yield Request(
                f"table/{path.name}/{number:02}",
                "check",
                JUDGES[number % 3],
                POLICIES[number % 3],
                request.question,
                (request.answer,),
                tuple(request.evidence or ()),
            )


def _corrections() -> Iterator[Request]:
    """Sentences with one error, for ``strict-correct``."""
    for path in sorted(CORRECTIONS.glob("*.json")):
        domain = json.loads(path.read_text(encoding="utf-8"))
        evidence: tuple[Evidence, ...] = (
            *(Triple(*item) for item in domain.get("triples", ())),
            *(Passage(text, title=title) for title, text in domain.get("passages", ())),
        )
        for number, case in enumerate(domain["cases"][:16]):
            yield Request(
                f"correction/{path.stem}/{number:02}",
                "check",
                JUDGES[number % 3],
                "strict-correct",
                case["question"],
                (case["wrong"],),
                evidence,
            )
