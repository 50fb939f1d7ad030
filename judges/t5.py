"""T5 judges of the TRUE kind: entailment as the likelihood of "1" against "0" (AutoIS).

The papers generate text with an 11B T5, one pair at a time. One decoder step holds the same
answer: the logits of "1" and "0" as first token.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Unpack

import numpy as np
from numpy.typing import NDArray

from guardrail.core.errors import JudgeError
from guardrail.core.types import NLIScores
from judges.base import NLITraits
from judges.torch_judge import Options, WindowedJudge, support_alone
from judges.torch_runner import Prepared

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

__all__ = ["T5True", "answer_tokens", "first_logits"]

MAX_LENGTH = 2048
"""Tokens; T5 has relative positions and no limit of its own."""

PREMISE, HYPOTHESIS = "premise:", "hypothesis:"


class T5True(WindowedJudge):
    """An NLI judge from a T5 model that was trained to say "1" for entailment and "0" else.

    It does not tell contradiction: what is not entailed counts as neutral. Premises that are
    too long are judged in windows, the most entailing one counts.

    Args:
        model: Model id or folder.
        max_length: Most tokens of a pair.
        options: As of ``TorchModel``.
    """

    _kind = "t5-true"
    _token_budget = 16_384
    """Keeps T5-XXL busy and fits beside its weights."""
    _auto_class = "AutoModelForSeq2SeqLM"
    traits = NLITraits(tells_contradiction=False)

    def __init__(
        self,
        model: str,
        *,
        max_length: int = MAX_LENGTH,
        **options: Unpack[Options],
    ) -> None:
        super().__init__(model, **options)
        self._longest = max_length
        self._said: list[int] = []
        self._answers = (0, 0)

    def _settle(self, model: PreTrainedModel) -> None:
        self._said, self._answers = answer_tokens(self._tokenizer, self._id)

    def _frame(self) -> tuple[list[int], list[int], list[int]]:
        before, between = self._ids([PREMISE, HYPOTHESIS])
        return before, between, [self._tokenizer.eos_token_id]

    def _outputs(self, model: PreTrainedModel, inputs: dict[str, Tensor]) -> Tensor:
        """Probability of "1" against "0" where the two part, [n, 1]."""
        logits = first_logits(model, inputs, self._said)
        return logits[:, list(self._answers)].float().softmax(-1)[:, :1]

    def _chunk_scores(self, chunk: Prepared, rows: NDArray[np.float32]) -> list[NLIScores]:
        """The most entailing window of the least entailed part of each hypothesis."""
        return support_alone(chunk, rows[:, 0])


def answer_tokens(
    tokenizer: PreTrainedTokenizerBase, name: str
) -> tuple[list[int], tuple[int, int]]:
    """What "1" and "0" have in common at their start, and the two tokens that follow it.

    A vocabulary may spell one of them in several tokens ("▁", "0") and the other in one ("▁1"):
    the model decides where they part, not at the last token.

    Raises:
        JudgeError: The vocabulary cannot tell them apart.
    """
    one, zero = tokenizer(["1", "0"], add_special_tokens=False)["input_ids"]
    place = next((i for i, (a, b) in enumerate(zip(one, zero, strict=False)) if a != b), None)
    if place is None or tokenizer.unk_token_id in (one[place], zero[place]):
        raise JudgeError(f"{name} cannot say '1' and '0'; is it a model that was trained to?")
    return list(one[:place]), (one[place], zero[place])


def first_logits(model: PreTrainedModel, inputs: dict[str, Tensor], said: Sequence[int]) -> Tensor:
    """Logits of the token that a T5 model says next, over its vocabulary, [n, v].

    Args:
        model: The model.
        inputs: A batch of what it reads.
        said: Tokens that it has said already.
    """
    import torch

    device = inputs["input_ids"].device
    start = torch.tensor([[model.config.decoder_start_token_id, *said]], device=device)
    start = start.expand(len(inputs["input_ids"]), -1)
    logits: Tensor = model(**inputs, decoder_input_ids=start, use_cache=False).logits
    return logits[:, -1]
