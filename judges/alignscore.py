"""AlignScore (arXiv 2305.16739), read as its mode ``nli_sp``: evidence in chunks, three labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Unpack

import numpy as np
from numpy.typing import NDArray

from guardrail.core.types import NLIScores
from judges.base import NLITraits, Pair
from judges.checkers import ALL_CHARS
from judges.chunks import even_chunks
from judges.pretrained import load_alignscore
from judges.session import readable, softmax
from judges.torch_judge import Placed, TorchJudge, support_alone
from judges.torch_runner import Prepared, TorchRunner
from judges.windows import pair_windows

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

__all__ = ["AlignScore"]

CHUNK_WORDS = 350
"""Words of evidence that are read at once, roughly (section 3.3)."""

LONGEST = 512
"""Tokens that RoBERTa reads."""

TOKEN_BUDGET = 32_768
"""Tokens of a batch, padding included; takes under 2 GB for RoBERTa-large."""


class AlignScore(TorchJudge):
    """Tells how far evidence and a claim are aligned; the chunk with the highest score counts.

    It tells no contradiction: its metric uses the first of the three labels alone.

    Args:
        model: Model id, or a folder that holds the checkpoint.
        size: ``base`` or ``large``.
        temperature: Divides the logits before they become probabilities.
        placed: ``device`` and ``dtype``, as of ``TorchModel``.
    """

    _kind = "hf"
    traits = NLITraits(premise_chars=ALL_CHARS, tells_contradiction=False)

    def __init__(
        self,
        model: str,
        *,
        size: str = "large",
        temperature: float = 1.0,
        **placed: Unpack[Placed],
    ) -> None:
        super().__init__(model, **placed)
        self._size = size
        self._temperature = temperature

    @property
    def name(self) -> str:
        """Name of the judge with the size of its model, for the score log."""
        return f"{super().name}-{self._size}"

    def _load(self, device: str, dtype: str) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
        return load_alignscore(self._id, self._size, device=device, dtype=dtype)

    def _runner_of(self, model: PreTrainedModel) -> TorchRunner:
        return TorchRunner(
            model,
            pad_id=self._tokenizer.pad_token_id,
            token_budget=TOKEN_BUDGET,
            outputs=lambda loaded, inputs: loaded(**inputs),
        )

    def _prepare(self, pairs: Sequence[Pair]) -> Prepared:
        chunk = Prepared(count=len(pairs))
        start, end = self._tokenizer.cls_token_id, self._tokenizer.sep_token_id
        for number, pair in enumerate(pairs):
            parts = even_chunks(readable(pair.premise), CHUNK_WORDS)
            *documents, claim = self._ids([*parts, pair.hypothesis])
            for document in documents:
                for window in pair_windows(document, claim, LONGEST - 4):
                    first = [start, *window.premise, end, end]
                    chunk.add([*first, *window.hypothesis, end], (number, window.part))
        return chunk

    def _chunk_scores(self, chunk: Prepared, rows: NDArray[np.float32]) -> list[NLIScores]:
        """The highest alignment over the chunks, of the least aligned part of each claim."""
        return support_alone(chunk, softmax(rows, self._temperature)[:, 0])
