"""What judges on PyTorch share: loading on first use, chunks of pairs, windows over long ones."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, ClassVar, TypedDict

import numpy as np
from numpy.typing import NDArray

from guardrail.core.types import NLIScores
from judges.base import Pair
from judges.batching import distinct
from judges.pretrained import chosen_dtype, load_pretrained
from judges.session import readable
from judges.torch_runner import Prepared, TorchRunner, prepared_ahead
from judges.windows import pair_windows

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

__all__ = ["Options", "TorchJudge", "TorchModel", "WindowedJudge", "support_alone"]


class Options(TypedDict, total=False):
    """Where and how a model runs; see ``TorchModel``."""

    device: str | None
    dtype: str | None
    token_budget: int | None
    compiled: bool


class TorchModel(ABC):
    """A Hugging Face model that is loaded when it is first needed.

    Args:
        model: Model id or folder.
        device: ``cuda``, ``cpu``, …; the GPU where there is one by default.
        dtype: ``bfloat16``, ``float32``, …; bfloat16 on a GPU by default.
        token_budget: Most tokens of a batch, padding included; what fits most devices by default.
        compiled: Run it through ``torch.compile``, over few padded lengths.
    """

    _kind: ClassVar[str]
    """What stands before the colon of the judge's name."""
    _auto_class: ClassVar[str]
    """Class of ``transformers`` that loads it."""
    _token_budget: ClassVar[int]
    """Tokens of a batch, padding included, unless told."""
    _positions: int | None = None
    """Tokens that it can read at once, where its positions are a table."""

    def __init__(
        self,
        model: str,
        *,
        device: str | None = None,
        dtype: str | None = None,
        token_budget: int | None = None,
        compiled: bool = False,
    ) -> None:
        self._id = model
        self._device = device
        self._dtype = dtype
        self._budget = self._token_budget if token_budget is None else token_budget
        self._compiled = compiled
        self._lock = threading.Lock()
        self._tokenizer: PreTrainedTokenizerBase
        self._runner: TorchRunner | None = None

    @property
    def name(self) -> str:
        """Name of the judge, for the score log."""
        return f"{self._kind}:{self._id}"

    def warm_up(self) -> None:
        """Load the model; later calls do nothing.

        Raises:
            JudgeError: The model does not exist or cannot do what the judge asks of it.
            MissingExtraError: torch or transformers is missing.
        """
        with self._lock:
            if self._runner is not None:
                return
            device, dtype = chosen_dtype(self._device, self._dtype)
            model, self._tokenizer = self._load(device, dtype)
            self._settle(model)
            pad = self._tokenizer.pad_token_id
            self._runner = TorchRunner(
                model,
                pad_id=model.config.eos_token_id if pad is None else pad,
                token_budget=self._budget,
                outputs=self._outputs,
                compiled=self._compiled,
                positions=self._positions,
            )

    def _load(self, device: str, dtype: str) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
        """The model in evaluation mode on its device, and its tokenizer."""
        return load_pretrained(self._id, self._auto_class, device=device, dtype=dtype)

    def _settle(self, model: PreTrainedModel) -> None:  # noqa: B027
        """Settle what depends on the loaded model."""

    @abstractmethod
    def _outputs(self, model: PreTrainedModel, inputs: dict[str, Tensor]) -> Tensor:
        """What is wanted of the model for a batch, [n, k]."""

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
        assert self._runner is not None
        results: list[NLIScores] = []
        for chunk in prepared_ahead(self._prepare, wanted):
            rows = self._runner.run(chunk.sequences, borders=chunk.borders, name=self.name)
            results.extend(self._chunk_scores(chunk, rows))
        return [results[i] for i in inverse]

    @abstractmethod
    def _prepare(self, pairs: Sequence[Pair]) -> Prepared:
        """Token sequences of a chunk of pairs."""

    @abstractmethod
    def _chunk_scores(self, chunk: Prepared, rows: NDArray[np.float32]) -> list[NLIScores]:
        """Scores of a chunk's pairs from the outputs of its sequences."""


class WindowedJudge(TorchJudge):
    """A judge that reads pairs which are too long for its model in overlapping windows.

    Args: as of ``TorchModel``.
    """

    _longest: int
    """Most tokens of a sequence."""
    _segments = False
    """Whether the model is told where the second text of a sequence begins."""

    @abstractmethod
    def _frame(self) -> tuple[list[int], list[int], list[int]]:
        """Tokens before, between and after the two texts of a pair."""

    def _documents(self, premise: str) -> list[str]:
        """The parts of a premise that are read apart."""
        return [premise]

    def _prepare(self, pairs: Sequence[Pair]) -> Prepared:
        documents = [self._documents(pair.premise) for pair in pairs]
        texts, places = distinct(
            [
                text
                for own, pair in zip(documents, pairs, strict=True)
                for text in (*own, pair.hypothesis)
            ]
        )
        known = self._ids(texts)
        ids = iter([known[place] for place in places])
        before, between, after = self._frame()
        capacity = self._longest - len(before) - len(between) - len(after)
        chunk = Prepared(count=len(pairs))
        for number, own in enumerate(documents):
            *premises, hypothesis = (next(ids) for _ in range(len(own) + 1))
            for premise in premises:
                for window in pair_windows(premise, hypothesis, capacity):
                    first = [*before, *window.premise, *between]
                    border = len(first) if self._segments else None
                    chunk.add([*first, *window.hypothesis, *after], (number, window.part), border)
        return chunk


def support_alone(chunk: Prepared, chances: Iterable[float]) -> list[NLIScores]:
    """Scores of a judge that tells no contradiction: what is not supported is neutral.

    Of each part of a hypothesis the sequence that supports it most counts, and of a pair the part
    that is supported least.

    Args:
        chunk: The pairs; each has a sequence at least.
        chances: How likely each sequence supports its part.
    """
    best: dict[tuple[int, int], float] = {}
    for owner, chance in zip(chunk.owners, chances, strict=True):
        best[owner] = max(best.get(owner, 0.0), float(chance))
    support = [1.0] * chunk.count
    for (number, _), chance in best.items():
        support[number] = min(support[number], chance)
    return [NLIScores(entailment=p, neutral=1 - p, contradiction=0.0) for p in support]
