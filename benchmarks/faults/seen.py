"""What came out of one run, and how it is counted."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping
from typing import Any, Literal, NamedTuple

from benchmarks.faults.facts import CANARY, DEADLINE_S, RIGHT, Case
from benchmarks.faults.leaks import waited_for_a_core
from guardrail.core.errors import GuardrailError
from guardrail.core.types import Category, GuardedAnswer
from guardrail.policy import STRICT

__all__ = ["OUTCOMES", "Began", "Outcome", "Seen", "seen_answers", "seen_error", "seen_reply"]

Outcome = Literal["delivered", "refused", "typed error", "broken off", "untyped error"]
OUTCOMES: tuple[Outcome, ...] = (
    "delivered", "refused", "typed error", "broken off", "untyped error"
)  # fmt: skip

SERVER_FAULT = 500
"""Status of a fault that nobody foresaw."""


class Began(NamedTuple):
    """When a run began, and how long threads of this process had waited for a core by then."""

    at: float
    waited: float

    @classmethod
    def now(cls) -> Began:
        """This moment."""
        return cls(time.monotonic(), waited_for_a_core())

    def since(self) -> tuple[float, float]:
        """Seconds since, and those of waiting."""
        return time.monotonic() - self.at, waited_for_a_core() - self.waited


class Seen(NamedTuple):
    """One run.

    Attributes:
        outcome: How it ended.
        unjudged: Bytes that left and were not judged, or were judged false.
        wrong: Sentences called supported that are false, or that nothing could tell.
        recorded: Whether the answer says that it is in the log: it names no trouble with it.
        detail: A message for people.
        late_s: Seconds past its deadline; less than 0 where it was in time.
        waited_s: Seconds for which threads of the process had no core meanwhile.
        lost: Records that are neither in the log nor reported by an answer.
    """

    outcome: Outcome
    unjudged: int = 0
    wrong: int = 0
    recorded: bool = True
    detail: str = ""
    late_s: float = -DEADLINE_S
    waited_s: float = 0.0
    lost: int = 0

    @property
    def bad(self) -> bool:
        """Whether it ended in a way that nothing may end in."""
        return self.outcome == "untyped error"

    def timed(self, began: Began, allowed: float = DEADLINE_S) -> Seen:
        """The same, with how long it took."""
        seconds, waited = began.since()
        return self._replace(late_s=seconds - allowed, waited_s=max(0.0, waited))


def _blind(case: Case) -> bool:
    """Whether nothing can be judged: the graph fails, or the judge does and stays away."""
    back = case.fault in ("late", "hang")
    return case.part == "graph" or (case.part == "judge" and not back)


def _unjudged(case: Case, text: str) -> int:
    """Bytes in a text that should not have left."""
    left = text.count(CANARY) * len(CANARY)
    return left + (text.count(RIGHT) * len(RIGHT) if _blind(case) else 0)


def seen_answers(case: Case, answers: Iterable[GuardedAnswer]) -> Seen:
    """What is seen of answers under ``strict``."""
    found = list(answers)
    shown = "\n".join(f"{answer.text}\n{answer.marked}" for answer in found)
    called = [
        sentence.text
        for answer in found
        for sentence in answer.judged
        if sentence.category is Category.SUPPORTIVE and not sentence.na
    ]
    wrong = sum(CANARY in text or (_blind(case) and RIGHT in text) for text in called)
    errors = [problem for answer in found for problem in answer.errors]
    return Seen(
        outcome="delivered" if RIGHT in shown else "refused",
        unjudged=_unjudged(case, shown),
        wrong=wrong,
        recorded=not any(problem.part == "records" for problem in errors),
        detail="; ".join(f"{problem.part}: {problem.message}" for problem in errors),
    )


def seen_error(error: BaseException) -> Seen:
    """What is seen of an error that came in place of an answer."""
    typed = isinstance(error, GuardrailError)
    detail = f"{type(error).__name__}: {error}"
    # No answer, so that nothing says it is in the log.
    return Seen("typed error" if typed else "untyped error", recorded=False, detail=detail)


def seen_reply(case: Case, status: int, body: str, *, whole: bool = True) -> Seen:
    """What is seen of an HTTP reply, streamed or not.

    Args:
        case: What was asked.
        status: Its status.
        body: All that came.
        whole: Whether it came to its end.
    """
    content, fields, failed = _content(body)
    unjudged = max(_unjudged(case, text) for text in (content, body))
    sentences = [item for field in fields for item in field.get("sentences", ())]
    called = [item["text"] for item in sentences if item["category"] == "supportive"]
    wrong = sum(CANARY in text or (_blind(case) and RIGHT in text) for text in called)
    parts = [problem["part"] for field in fields for problem in field.get("errors", ())]
    outcome: Outcome = "untyped error"
    if failed:
        outcome = "untyped error" if status == SERVER_FAULT else "typed error"
    elif RIGHT in content:
        outcome = "delivered"
    elif STRICT.refusal in content:
        outcome = "refused"
    if not whole and outcome == "untyped error":
        outcome = "broken off"
    recorded = bool(fields) and "records" not in parts
    return Seen(outcome, unjudged, wrong, recorded, f"{status} {body[:300]}")


def _content(body: str) -> tuple[str, list[Mapping[str, Any]], bool]:
    """The text of a reply, the guardrail's field, and whether it is an error."""
    events = [line[5:] for line in body.split("\n") if line.startswith("data:")] or [body]
    content, fields, failed = "", [], False
    for event in events:
        try:
            found = json.loads(event)
        except ValueError:
            continue
        if not isinstance(found, dict):
            continue
        failed = failed or bool(found.get("error"))
        if isinstance(found.get("guardrail"), dict):
            fields.append(found["guardrail"])
        for choice in found.get("choices") or ():
            message = choice.get("message") or choice.get("delta") or {}
            content += message.get("content") or message.get("refusal") or ""
            if isinstance(message.get("guardrail"), dict):
                fields.append(message["guardrail"])
    return content, fields, failed
