"""Token likelihoods that are kept, because trials share texts and a stopped run should go on."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.kept import kept_lines
from guardrail.core.errors import ConfigError
from judges.base import CausalLM, TokenLikelihoods

__all__ = ["KeptLikelihoods"]

PAIRS_PER_CALL = 128
"""Pairs per model call; the results are written after each call."""
DIGITS = 5
"""Digits after the point of a likelihood in the file."""

Pair = tuple[str, str]


class KeptLikelihoods:
    """A causal model whose likelihoods are kept, in memory and in a file.

    Args:
        model: Asked for pairs that are new.
        file: JSON lines of cached pairs, extended by each call; None for no cache.
        progress: Called with (pairs done, total pairs) after each call.

    Raises:
        ConfigError: The file is damaged.
    """

    def __init__(
        self,
        model: CausalLM,
        file: Path | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        self._model = model
        self._file = file
        self._progress = progress
        self._found = _read(file, model.name) if file is not None and file.exists() else {}

    @property
    def name(self) -> str:
        """The model's name."""
        return self._model.name

    def loglikelihoods(self, pairs: Sequence[Pair]) -> list[TokenLikelihoods]:
        """Likelihoods of n continuations, each given its prefix; see ``CausalLM``.

        New pairs reach the model in the order of their prefixes, so that shared ones are read
        once, and otherwise in the order given, so that a stopped run has whole texts.
        """
        new = sorted(
            dict.fromkeys(pair for pair in pairs if pair not in self._found),
            key=lambda pair: pair[0],
        )
        for start in range(0, len(new), PAIRS_PER_CALL):
            chunk = new[start : start + PAIRS_PER_CALL]
            computed = dict(zip(chunk, self._model.loglikelihoods(chunk), strict=True))
            self._found |= computed
            self._keep(computed)
            if self._progress is not None:
                self._progress(start + len(chunk), len(new))
        return [self._found[pair] for pair in pairs]

    def _keep(self, computed: dict[Pair, TokenLikelihoods]) -> None:
        if self._file is None:
            return
        with self._file.open("a", encoding="utf-8") as file:
            for pair, value in computed.items():
                rounded = [round(logprob, DIGITS) for logprob in value.logprobs]
                row = [self._model.name, *pair, value.tokens, rounded]
                file.write(json.dumps(row, ensure_ascii=False) + "\n")


def _read(file: Path, name: str) -> dict[Pair, TokenLikelihoods]:
    try:
        rows = map(json.loads, kept_lines(file))
        return {
            (prefix, continuation): TokenLikelihoods(tuple(tokens), tuple(map(float, logprobs)))
            for model, prefix, continuation, tokens, logprobs in rows
            if model == name
        }
    except (ValueError, TypeError) as error:
        raise ConfigError(f"{file} holds no likelihoods of this benchmark: {error}") from error
