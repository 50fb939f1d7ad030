"""AlignScore (arXiv 2305.16739), read as its mode ``nli_sp``: evidence in chunks, three labels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

import numpy as np
from numpy.typing import NDArray

from guardrail.core.types import NLIScores
from judges.base import NLITraits
from judges.checkers import ALL_CHARS
from judges.chunks import even_chunks
from judges.pretrained import load_alignscore
from judges.session import readable, softmax
from judges.torch_judge import Options, WindowedJudge, support_alone
from judges.torch_runner import Prepared

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

__all__ = ["AlignScore"]

CHUNK_WORDS = 350
"""Words of evidence that are read at once, roughly (section 3.3)."""

LONGEST = 512
"""Tokens that RoBERTa reads."""


class AlignScore(WindowedJudge):
    """Tells how far evidence and a claim are aligned; the chunk with the highest score counts.

    It tells no contradiction: its metric uses the first of the three labels alone.

    Args:
        model: Model id, or a folder that holds the checkpoint.
        size: ``base`` or ``large``.
        temperature: Divides the logits before they become probabilities.
        options: As of ``TorchModel``.
    """

    _kind = "hf"
    _token_budget = 32_768
    """Takes under 2 GB for RoBERTa-large."""
    _longest = LONGEST
    traits = NLITraits(premise_chars=ALL_CHARS, tells_contradiction=False, evidence_chars=4_000)

    def __init__(
        self,
        model: str,
        *,
        size: str = "large",
        temperature: float = 1.0,
        **options: Unpack[Options],
    ) -> None:
        super().__init__(model, **options)
        self._size = size
        self._temperature = temperature

    @property
    def name(self) -> str:
        """Name of the judge with the size of its model, for the score log."""
        return f"{super().name}-{self._size}"

    def _load(self, device: str, dtype: str) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
        return load_alignscore(self._id, self._size, device=device, dtype=dtype)

    def _outputs(self, model: PreTrainedModel, inputs: dict[str, Tensor]) -> Tensor:
        logits: Tensor = model(**inputs)
        return logits

    def _frame(self) -> tuple[list[int], list[int], list[int]]:
        start, end = self._tokenizer.cls_token_id, self._tokenizer.sep_token_id
        return [start], [end, end], [end]

    def _documents(self, premise: str) -> list[str]:
        return even_chunks(readable(premise), CHUNK_WORDS)

    def _chunk_scores(self, chunk: Prepared, rows: NDArray[np.float32]) -> list[NLIScores]:
        """The highest alignment over the chunks, of the least aligned part of each claim."""
        return support_alone(chunk, softmax(rows, self._temperature)[:, 0])
