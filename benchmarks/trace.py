"""How many files, calls and types one check goes through, and what a stream costs over it.

    python -m benchmarks.trace [--judge none] [--json]

Counts what runs of guardrail, judges, kg and chains while one sentence is checked against two
facts, and while three sentences are checked at once and as a stream, each by a new guardrail that
records the answer; everything is loaded before. A *switch* is a call
into another file than that of the call before it. A *form* is a type of ours among the arguments
of a call that holds the answer or an item of the evidence.
"""

from __future__ import annotations

import argparse
import json
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import NamedTuple

from guardrail import Guardrail, GuardrailConfig, Triple
from guardrail.config import GraphConfig

__all__ = ["Counts", "Tracer", "main", "session_cost"]

ROOT = Path(__file__).parents[1]
PACKAGES = tuple(str(ROOT / name) for name in ("guardrail", "judges", "kg", "chains"))
MODULES = ("guardrail.", "judges.", "kg.", "chains.")
FACTS = (Triple("Fjell 3", "price", "2,490 euros"), Triple("Fjell 3", "range", "110 km"))
QUESTION = "What does the Fjell 3 cost?"
SENTENCES = (
    "The Fjell 3 costs 2,490 euros.",
    "Its range is 110 km.",
    "The Fjell 3 was built in Norway.",
)
WARM = "The Tarn City costs 1,790 euros. Its weight is 90 kg. The Tarn City was made in Sweden."
"""Checked beforehand: it loads what the counted sentences need, and shares none of them."""
COMPREHENSIONS = frozenset({"<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"})
PIECE = 12
"""Characters of a piece of the stream."""


class Counts(NamedTuple):
    """What ran: numbers of files, functions, calls and switches, and the names of the forms.

    ``comprehensions`` counts those of the calls that run the body of a comprehension or resume a
    generator expression; later versions of Python than 3.11 run most of them in place.
    """

    files: int
    functions: int
    calls: int
    comprehensions: int
    switches: int
    forms: tuple[str, ...]


class Tracer:
    """Counts the calls of some work in all threads that start after it was made."""

    def __init__(self) -> None:
        self._answer: str | None = None
        self._calls: list[tuple[str, int, str]] = []
        self._forms: set[str] = set()
        threading.setprofile(self._look)
        sys.setprofile(self._look)

    def count(self, work: Callable[[], object], answer: str) -> Counts:
        """Run some work.

        Args:
            work: What to run.
            answer: The text of the answer, used to recognise forms.
        """
        self._calls, self._forms, self._answer = [], set(), answer
        work()
        self._answer = None
        files = [file for file, _, _ in self._calls]
        switches = sum(one != other for one, other in pairwise(files))
        inner = sum(name in COMPREHENSIONS for _, _, name in self._calls)
        functions, forms = len(set(self._calls)), tuple(sorted(self._forms))
        return Counts(len(set(files)), functions, len(files), inner, switches, forms)

    def _look(self, frame: FrameType, event: str, _: object) -> None:
        code, answer = frame.f_code, self._answer
        if answer is None or event != "call" or not code.co_filename.startswith(PACKAGES):
            return
        self._calls.append((code.co_filename, code.co_firstlineno, code.co_name))
        for value in list(frame.f_locals.values()):
            kind = type(value)
            if kind.__module__.startswith(MODULES) and _holds(value, answer):
                self._forms.add(f"{kind.__module__}.{kind.__qualname__}")


def _holds(value: object, answer: str) -> bool:
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        fields: Iterator[object] = iter(value)
    else:
        fields = iter(list(getattr(value, "__dict__", {}).values()))
    for field in fields:
        if isinstance(field, str) and answer in field:
            return True
        if isinstance(field, Triple) or (
            isinstance(field, tuple | list) and any(isinstance(item, Triple) for item in field)
        ):
            return True
    return False


def session_cost(facts: int = 2_000, sentences: int = 20) -> tuple[float, float]:
    """CPU seconds of one check of a long answer, and of a session that streams it; no judge."""
    evidence = [
        Triple(f"Bike {number // 4}", f"property {number % 4}", f"{number} km")
        for number in range(facts)
    ]
    text = " ".join(f"Bike {n} has a property {n % 4} of {4 * n} km." for n in range(sentences))
    with Guardrail(GuardrailConfig(graph=GraphConfig(location="none"), judge="none")) as guard:
        guard.check(QUESTION, text, evidence=FACTS)
        begin = time.process_time()
        guard.check(QUESTION, text, evidence=evidence)
        whole = time.process_time() - begin
    with Guardrail(GuardrailConfig(graph=GraphConfig(location="none"), judge="none")) as guard:
        guard.check(QUESTION, text, evidence=FACTS)
        begin = time.process_time()
        _stream(guard, text, evidence)
        return whole, time.process_time() - begin


def _stream(guard: Guardrail, text: str, evidence: Sequence[Triple]) -> None:
    session = guard.session(QUESTION, evidence=evidence)
    for start in range(0, len(text), PIECE):
        session.add(text[start : start + PIECE])
    session.rest()
    session.finish()


def main(arguments: Sequence[str] | None = None) -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description="What one check goes through.")
    parser.add_argument("--judge", help="judge of the check; the shipped one by default")
    parser.add_argument("--json", action="store_true", help="one JSON object")
    options = parser.parse_args(arguments)
    more = {"judge": options.judge} if options.judge else {}
    text, tracer = " ".join(SENTENCES), Tracer()
    with Guardrail(GuardrailConfig(graph=GraphConfig(location="none"), **more)) as guard:
        warm = [Triple("Tarn City", "price", "1,790 euros")]
        _stream(guard, WARM, warm)
        guard.check(QUESTION, WARM, evidence=warm, record=False)
        one = tracer.count(
            lambda: guard.check(QUESTION, SENTENCES[0], evidence=FACTS, record=False), SENTENCES[0]
        )
    with Guardrail(GuardrailConfig(graph=GraphConfig(location="none"), **more)) as guard:
        _stream(guard, WARM, warm)
        whole = tracer.count(lambda: guard.check(QUESTION, text, evidence=FACTS), text)
    with Guardrail(GuardrailConfig(graph=GraphConfig(location="none"), **more)) as guard:
        _stream(guard, WARM, warm)
        stream = tracer.count(lambda: _stream(guard, text, FACTS), text)
    sys.setprofile(None)
    threading.setprofile(None)
    check_s, session_s = session_cost()
    found = {
        "check of one sentence": one._asdict(),
        "check of three sentences": whole._asdict(),
        "stream of three sentences": stream._asdict(),
        "stream over check, calls": round(stream.calls / whole.calls, 2),
        "check of 20 sentences, 2,000 facts, no judge, s": round(check_s, 3),
        "session over check, seconds": round(session_s / check_s, 2),
    }
    if options.json:
        print(json.dumps(found))
        return
    for name, value in found.items():
        print(f"{name}: {value}")


if __name__ == "__main__":
    main()
