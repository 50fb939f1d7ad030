"""The base of judges on PyTorch: loading on first use, chunks of pairs, scores of support."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, TypedDict

import numpy as np
from numpy.typing import NDArray

from guardrail.core.types import NLIScores
from judges.base import Pair
from judges.batching import distinct
from judges.pretrained import chosen_dtype
from judges.session import readable
from judges.torch_runner import Prepared, TorchRunner, prepared_ahead

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

__all__ = ["Options", "TorchJudge", "TorchModel", "supported"]


class Options(TypedDict, total=False):
    """Options of every judge on PyTorch; see ``TorchModel``."""

    device: str | None
    dtype: str | None
    token_budget: int | None
    temperature: float


class TorchModel(ABC):
    """A Hugging Face model, loaded on first use.

    Args:
        model: Model id or folder.
        kind: The part of the judge's name before the colon.
        budget: Default of ``token_budget``.
        token_budget: Maximum tokens of a batch, padding included.
        device: ``cuda``, ``cpu``, …; the GPU if there is one by default.
        dtype: ``bfloat16``, ``float32``, …; bfloat16 on a GPU by default.
        temperature: Divides the logits before they become probabilities.
    """

    def __init__(
        self,
        model: str,
        *,
        kind: str,
        budget: int,
        token_budget: int | None = None,
        device: str | None = None,
        dtype: str | None = None,
        temperature: float = 1.0,
    ) -> None:
        self.name = f"{kind}:{model}"
        self._id = model
        self._device = device
        self._dtype = dtype
        self._budget = token_budget or budget
        self._temperature = temperature
        self._lock = threading.Lock()
        self._tokenizer: PreTrainedTokenizerBase
        self._runner: TorchRunner | None = None

    def warm_up(self) -> None:
        """Load the model; later calls do nothing.

        Raises:
            JudgeError: The model does not exist, or is not one that this judge can read.
            MissingExtraError: torch or transformers is missing.
        """
        with self._lock:
            if self._runner is not None:
                return
            device, dtype = chosen_dtype(self._device, self._dtype)
            model, self._tokenizer = self._load(device, dtype)
            pad = self._tokenizer.pad_token_id
            self._runner = TorchRunner(
                model,
                pad_id=model.config.eos_token_id if pad is None else pad,
                token_budget=self._budget,
                outputs=self._outputs,
            )

    @abstractmethod
    def _load(self, device: str, dtype: str) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
        """The model in evaluation mode on its device, and its tokenizer."""

    @abstractmethod
    def _outputs(self, model: PreTrainedModel, inputs: dict[str, Tensor]) -> Tensor:
        """The outputs of a batch, [n, k]."""

    def _run(self, chunk: Prepared) -> NDArray[np.float32]:
        assert self._runner is not None
        return self._runner.run(chunk.sequences, borders=chunk.borders, name=self.name)

    def _ids(self, texts: Sequence[str]) -> list[list[int]]:
        """Token ids of n texts, without special tokens and without truncation."""
        if not texts:
            return []
        cleaned = [readable(text) for text in texts]
        encoded = self._tokenizer(cleaned, add_special_tokens=False, verbose=False)
        ids: list[list[int]] = encoded["input_ids"]
        return ids


class TorchJudge(TorchModel):
    """An NLI judge from a Hugging Face model.

    Args: as of ``TorchModel``.
    """

    def judge(self, pairs: Sequence[Pair]) -> list[NLIScores]:
        """Judge n pairs; see ``NLIJudge``."""
        self.warm_up()
        wanted, inverse = distinct(pairs)
        results: list[NLIScores] = []
        for chunk in prepared_ahead(self._prepare, wanted):
            results.extend(self._chunk_scores(chunk, self._run(chunk)))
        return [results[i] for i in inverse]

    @abstractmethod
    def _prepare(self, pairs: Sequence[Pair]) -> Prepared:
        """Token sequences of a chunk of pairs."""

    @abstractmethod
    def _chunk_scores(self, chunk: Prepared, rows: NDArray[np.float32]) -> list[NLIScores]:
        """Scores of a chunk's pairs from the outputs of its sequences."""


def supported(chunk: Prepared, chances: Iterable[float]) -> list[NLIScores]:
    """Scores of a judge without contradiction: unsupported pairs are neutral.

    Args:
        chunk: The pairs; each has at least one sequence.
        chances: Probability of support by each sequence; the highest of a pair counts.
    """
    support = [0.0] * chunk.count
    for (number, _), chance in zip(chunk.owners, chances, strict=True):
        support[number] = max(support[number], float(chance))
    return [NLIScores(entailment=p, neutral=1 - p, contradiction=0.0) for p in support]
