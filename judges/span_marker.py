"""LettuceDetect (arXiv 2502.17125), which marks the tokens of an answer that lack support."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, Unpack

import numpy as np
from numpy.typing import NDArray

from guardrail.core.types import Grounding, NLIScores, WordScore
from judges.base import GroundingItem, NLITraits, Pair
from judges.grounding import NOTHING
from judges.session import readable, softmax
from judges.torch_judge import Options, TorchModel
from judges.torch_runner import Prepared

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel

__all__ = ["SpanMarker", "marker_prompt"]

LONGEST = 4_096
"""Tokens of a reading, as in training."""

ASKED = (
    "Briefly answer the following question:\n{question}\nBear in mind that your response should be "
    "strictly based on the following {count} passages:\n{passages}\nIn case the passages do not "
    "contain the necessary information to answer the question, please reply with: "
    '"Unable to answer based on given passages."\noutput:'
)
SUMMARISED = "Summarize the following text:\n{passages}\noutput:"
"""The prompts of RAGTruth, which the models were trained behind."""

WORD = re.compile(r"\S+")


class _Answer(NamedTuple):
    """An answer behind its prompt: where its tokens begin, and which characters each covers."""

    text: str
    start: int
    offsets: list[tuple[int, int]]


def marker_prompt(passages: Sequence[str], question: str) -> str:
    """What stands before the answer.

    Args:
        passages: The evidence.
        question: What it answers; without one the prompt is that of a summary.
    """
    numbered = "\n".join(f"passage {i}: {text}" for i, text in enumerate(passages, start=1))
    if not question:
        return SUMMARISED.format(passages=numbered)
    return ASKED.format(question=question, count=len(passages), passages=numbered)


class SpanMarker(TorchModel):
    """Marks the words of a sentence that its evidence does not carry.

    A sentence is as likely supported as its worst token, by which the published code calls an
    answer hallucinated. Where evidence does not fit at once, each token counts as supported as in
    the reading that supports it most. It tells no contradiction, and not which passage carries.

    Args:
        model: Model id or folder.
        temperature: Divides the logits before they become probabilities.
        options: As of ``TorchModel``.
    """

    _kind = "hf"
    _token_budget = 16_384
    """Takes some 4 GB for ModernBERT-large."""
    _auto_class = "AutoModelForTokenClassification"
    traits = NLITraits(tells_contradiction=False)

    def __init__(self, model: str, *, temperature: float = 1.0, **options: Unpack[Options]) -> None:
        super().__init__(model, **options)
        self._temperature = temperature
        self._longest = LONGEST

    def ground(self, items: Sequence[GroundingItem]) -> list[Grounding]:
        """Ground n sentences; see ``GroundingJudge``."""
        self.warm_up()
        assert self._runner is not None
        asked = Prepared(count=len(items))
        answers = [self._add(asked, number, item) for number, item in enumerate(items)]
        rows = self._runner.run(asked.sequences, name=self.name)
        lacking = [np.ones(len(answer.offsets)) for answer in answers]
        for (number, start), row in zip(asked.owners, rows, strict=True):
            count = len(answers[number].offsets)
            logits = row.reshape(-1, 2)[start : start + count]
            chances = softmax(logits, self._temperature)[:, 1]
            lacking[number] = np.minimum(lacking[number], chances)
        return [_grounding(*pair) for pair in zip(answers, lacking, strict=True)]

    def _add(self, asked: Prepared, number: int, item: GroundingItem) -> _Answer:
        """Put the readings of an item to those that are asked."""
        sentence = readable(item.sentence)
        told = self._tokenizer(sentence, add_special_tokens=False, return_offsets_mapping=True)
        answer = _Answer(sentence, 0, list(map(tuple, told["offset_mapping"])))
        if not item.statements or not sentence.strip():
            return answer._replace(offsets=[])
        passages = [readable(text) for text in item.statements]
        for group in self._groups(passages, item.context, len(answer.offsets)):
            prompt = marker_prompt(group, readable(item.context))
            ids: list[int] = self._tokenizer(
                prompt,
                sentence,
                truncation="only_first",
                max_length=max(self._longest, len(answer.offsets) + 4),
            )["input_ids"]
            asked.add(ids, (number, len(ids) - len(answer.offsets) - 1))
        return answer

    def _groups(self, passages: Sequence[str], question: str, answer: int) -> list[list[str]]:
        """Passages that fit behind one another, with the prompt and the answer's tokens."""
        lengths = [len(ids) + 6 for ids in self._ids(passages)]  # "passage 12: " and a line's end
        room = self._longest - answer - 3 - len(self._ids([marker_prompt([], question)])[0])
        groups: list[list[str]] = []
        left = 0
        for text, length in zip(passages, lengths, strict=True):
            if not groups or length > left:
                groups.append([])
                left = room
            groups[-1].append(text)
            left -= length
        return groups

    def _outputs(self, model: PreTrainedModel, inputs: dict[str, Tensor]) -> Tensor:
        """Logits of each token, filled up so that all batches have one shape, [n, 2 l]."""
        import torch

        logits: Tensor = model(**inputs).logits[..., :2].float()
        missing = self._longest + 4 - logits.shape[1]
        return torch.nn.functional.pad(logits, (0, 0, 0, max(0, missing))).flatten(1)

    def judge(self, pairs: Sequence[Pair]) -> list[NLIScores]:
        """Judge n pairs as sentences without a question."""
        found = self.ground([GroundingItem((pair.premise,), pair.hypothesis) for pair in pairs])
        return [
            NLIScores(entailment=one.supported, neutral=one.unsupported, contradiction=0.0)
            for one in found
        ]


def _grounding(answer: _Answer, lacking: NDArray[np.float64]) -> Grounding:
    if not len(lacking):
        return NOTHING
    words = []
    for match in WORD.finditer(answer.text):
        inside = [
            chance
            for (start, end), chance in zip(answer.offsets, lacking.tolist(), strict=True)
            if start < match.end() and end > match.start()
        ]
        if inside:
            words.append(
                WordScore(
                    start=match.start(), end=match.end(), missing=max(inside), contradicted=0.0
                )
            )
    worst = float(lacking.max())
    return Grounding(
        supported=1.0 - worst,
        unsupported=worst,
        contradicted=0.0,
        no_claim=0.0,
        words=tuple(words),
    )
