"""What CONNER costs a row: likelihood by likelihood, row by row, and in one batch.

The released script asks its causal model for one likelihood at a time, in 32-bit floats, reading
prefix and continuation anew; ``PairByPair`` does the same. A row alone already shares what its own
texts have in common, a batch what the rows have in common.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from benchmarks.telling import teller
from judges.base import CausalLM, TokenLikelihoods
from judges.conner import ConnerInput, ConnerModels, ConnerScorer, ConnerSettings

__all__ = ["Cost", "PairByPair", "cost_table", "measure"]

WARM_UP = 2


class PairByPair:
    """A causal model that is asked for one likelihood at a time.

    Args:
        model: The model.
    """

    def __init__(self, model: CausalLM) -> None:
        self._model = model

    @property
    def name(self) -> str:
        """Name of the model."""
        return self._model.name

    def loglikelihoods(self, pairs: Sequence[tuple[str, str]]) -> list[TokenLikelihoods]:
        """The likelihood of each continuation, from a call of its own."""
        return [self._model.loglikelihoods([pair])[0] for pair in pairs]


class Cost(NamedTuple):
    """Mean milliseconds a row.

    Attributes:
        way: How the rows were scored.
        rows: How many.
        words: Mean words of their knowledge, which decide most of the cost.
        wall_ms: On the clock.
        busy_ms: Of all processors; it tells more than the clock where other programs run.
    """

    way: str
    rows: int
    words: float
    wall_ms: float
    busy_ms: float


def cost_table(costs: Sequence[Cost]) -> list[str]:
    """Lines that give each way's figures, and how many times faster it is than those before."""
    lines = [f"{'':<24}{'rows':>6}{'words':>8}{'clock, ms':>12}{'processors, ms':>16}  a row"]
    lines += [
        f"{cost.way:<24}{cost.rows:>6}{cost.words:>8.1f}{cost.wall_ms:>12.1f}{cost.busy_ms:>16.1f}"
        for cost in costs
    ]
    lines += [
        f"{fast.way} is {slow.wall_ms / fast.wall_ms:.2f} times faster than {slow.way}"
        f" ({slow.busy_ms / fast.busy_ms:.2f} in processor time)"
        for place, fast in enumerate(costs)
        for slow in costs[:place]
    ]
    return lines


def measure(
    models: ConnerModels,
    plain: CausalLM | None,
    rows: Sequence[ConnerInput],
    *,
    settings: ConnerSettings,
    singles: int,
    pair_by_pair: int,
) -> list[Cost]:
    """Score the same rows in three ways; irrelevant knowledge comes from the others of the batch.

    Args:
        models: What scores.
        plain: The causal model in 32-bit floats, for the way of the released script; None to
            leave that out.
        rows: The batch.
        settings: Which perspectives.
        singles: How many of the first rows are scored one by one.
        pair_by_pair: The same, for the way of the released script.

    Returns:
        The released script's way, where asked for; row by row; in one batch.
    """
    pool = list(dict.fromkeys(row.knowledge for row in rows))
    scorer = ConnerScorer(models, settings, irrelevant_pool=pool)
    costs = []
    if plain is not None and pair_by_pair:
        asked = ConnerScorer(
            models._replace(causal=PairByPair(plain)), settings, irrelevant_pool=pool
        )
        asked.score(rows[:1])
        costs.append(_singly("pair by pair, 32 bits", asked, rows[:pair_by_pair]))
    scorer.score(rows[:WARM_UP])
    costs.append(_singly("row by row", scorer, rows[:singles]))
    tell = teller("rows")
    wall, busy = _milliseconds(partial(scorer.score, rows, progress=tell, rows_per_call=len(rows)))
    count = len(rows)
    costs.append(Cost("one batch", count, _words(rows), wall / count, busy / count))
    return costs


def _singly(way: str, scorer: ConnerScorer, rows: Sequence[ConnerInput]) -> Cost:
    wall, busy = zip(*(_milliseconds(partial(scorer.score, [row])) for row in rows), strict=True)
    return Cost(way, len(rows), _words(rows), statistics.fmean(wall), statistics.fmean(busy))


def _words(rows: Sequence[ConnerInput]) -> float:
    return statistics.fmean(len(row.knowledge.split()) for row in rows)


def _milliseconds(work: Callable[[], object]) -> tuple[float, float]:
    """Time of a call on the clock and of all processors."""
    begin = time.perf_counter(), time.process_time()
    work()
    return 1e3 * (time.perf_counter() - begin[0]), 1e3 * (time.process_time() - begin[1])
