"""What SCK adds to ``check``, one by one and in a batch, as a caller meets it.

Two guardrails check the same answers in turn, one with the scorer and one without; they differ in
nothing else. Each answer is met once, so that nothing is served from a memory of answers.
"""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from statistics import fmean, median
from typing import NamedTuple

from benchmarks.latency import UNKNOWN
from benchmarks.sck.rates import Pair
from benchmarks.verdicts.people import biographies
from guardrail import ANNOTATE, CheckRequest, Guardrail, GuardrailConfig
from guardrail.core.types import Passage

__all__ = ["cost", "graph_answers", "passage_answers"]

SEED = 0

PATIENT = ANNOTATE.model_copy(update={"deadline_s": None})
"""No answer is cut short on a busy machine: what is not scored costs nothing."""

LONGEST = 10_000
"""Characters of the longest passage taken; one of 150,000 would be most of a batch's time."""

WARM_UP = 5

SINGLE_CALLS = 100
"""Answers checked one by one; further ones would not change the median."""


def graph_answers(count: int) -> list[CheckRequest]:
    """Five-sentence answers about persons of the shipped graph, all different."""
    rng = random.Random(SEED)
    texts = biographies(rng)
    rng.shuffle(texts)
    return [
        CheckRequest(question=f"Who was {facts[0].subject}?", answer=text + UNKNOWN)
        for text, facts in texts[:count]
    ]


def passage_answers(pairs: Sequence[Pair], count: int) -> list[CheckRequest]:
    """Knowledge texts as answers, and as the passage they are judged against."""
    usual = [pair for pair in pairs if 0 < len(pair.text.strip()) <= LONGEST]
    chosen = random.Random(SEED).sample(usual, min(count, len(usual)))
    return [
        CheckRequest(question=item.question, answer=item.text, evidence=(Passage(text=item.text),))
        for item in chosen
    ]


def cost(requests: Sequence[CheckRequest], singly: int = SINGLE_CALLS) -> dict[str, float]:
    """Milliseconds an answer: alone and in one batch, with SCK and without.

    Args:
        requests: Different answers.
        singly: So many of them, after those that warm up, are checked one by one; the others in
            one batch.
    """
    alone = requests[: singly + WARM_UP]
    batch = requests[singly + WARM_UP :]
    with (
        Guardrail(GuardrailConfig(policy=PATIENT)) as plain,
        Guardrail(GuardrailConfig(policy=PATIENT, scorers=("sck",))) as scoring,
    ):
        for guard in (plain, scoring):
            guard.warm_up()
        without, added, stage, both = [], [], [], []
        for number, request in enumerate(alone):
            pair = [plain, scoring] if number % 2 else [scoring, plain]
            spent = {guard: _spent(guard, [request]) for guard in pair}
            if number < WARM_UP:
                continue
            without.append(spent[plain])
            both.append(spent[scoring])
            added.append(spent[scoring] - spent[plain])
            stage.append(spent[scoring].stage_ms - spent[plain].stage_ms)
        result = {
            "check alone, p50 ms": median(item.wall_ms for item in without),
            "SCK adds to it, p50 ms": median(item.wall_ms for item in added),
            "  of that in the stage of scoring, p50 ms": median(stage),
            "check alone, p50 processor ms": median(item.busy_ms for item in without),
            "SCK adds to it, p50 processor ms": median(item.busy_ms for item in added),
        }
        if not batch:
            return result
        plainly = _spent(plain, batch)
        scored = _spent(scoring, batch)
    more = scored - plainly
    return result | {
        "answers in the batch": float(len(batch)),
        "in the batch: check, ms an answer": plainly.wall_ms,
        "in the batch: SCK adds, ms an answer": more.wall_ms,
        "  of that in the stage of scoring, ms an answer": more.stage_ms,
        "in the batch: check, processor ms an answer": plainly.busy_ms,
        "in the batch: SCK adds, processor ms an answer": more.busy_ms,
        "what SCK adds, alone over batch": fmean(item.wall_ms for item in added) / more.wall_ms,
        "check with SCK, alone over batch": fmean(item.wall_ms for item in both) / scored.wall_ms,
        "check without, alone over batch": fmean(item.wall_ms for item in without)
        / plainly.wall_ms,
    }


class _Spent(NamedTuple):
    """Milliseconds an answer: on the clock, of all processors, and in the stage of scoring."""

    wall_ms: float
    busy_ms: float
    stage_ms: float

    def __sub__(self, other: _Spent) -> _Spent:
        return _Spent(*(item - two for item, two in zip(self, other, strict=True)))


def _spent(guard: Guardrail, requests: Sequence[CheckRequest]) -> _Spent:
    begin, busy = time.perf_counter(), time.process_time()
    answers = guard.check_batch(requests)
    busy, wall = time.process_time() - busy, time.perf_counter() - begin
    stage_ms = fmean(answer.timings_ms["score"] for answer in answers)
    return _Spent(1e3 * wall / len(requests), 1e3 * busy / len(requests), stage_ms)
