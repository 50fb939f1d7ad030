"""LettuceDetect (arXiv 2502.17125), which marks the unsupported tokens of an answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, Unpack

import numpy as np
from numpy.typing import NDArray

from guardrail.core.types import Grounding, NLIScores
from judges.base import GroundingItem, NLITraits, Pair
from judges.grounding import NOTHING
from judges.grounding_pass import word_scores
from judges.letters import readable
from judges.pretrained import load_pretrained
from judges.session import softmax
from judges.torch_model import Options, Prepared, TorchModel

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

LONGEST = 4_096
"""Tokens of an input, as in training."""


class _Answer(NamedTuple):
    """An answer, and the characters of each of its tokens."""

    text: str
    offsets: list[tuple[int, int]]


def marker_prompt(passages: Sequence[str], question: str) -> str:
    """The text before the answer: a prompt of RAGTruth, on which the models were trained.

    Args:
        passages: The evidence.
        question: The question; empty for the prompt of a summary.
    """
    numbered = "\n".join(f"passage {i}: {text}" for i, text in enumerate(passages, start=1))
    if not question:
        return f"Summarize the following text:\n{numbered}\noutput:"
    return (
        f"Briefly answer the following question:\n{question}\nBear in mind that your response "
        f"should be strictly based on the following {len(passages)} passages:\n{numbered}\nIn case "
        "the passages do not contain the necessary information to answer the question, please "
        'reply with: "Unable to answer based on given passages."\noutput:'
    )


class SpanMarker(TorchModel):
    """Marks the words of a sentence that its evidence does not support.

    The support of a sentence is that of its worst token, since the published code calls an
    answer hallucinated if one token is. If the evidence needs several inputs, the one that
    supports a token most counts for it. It distinguishes neither contradiction nor the supporting
    passage.

    Args:
        model: Model id or folder.
        options: As of ``TorchModel``.
    """

    traits = NLITraits(tells_contradiction=False)

    def __init__(self, model: str, **options: Unpack[Options]) -> None:
        # The budget takes some 4 GB for ModernBERT-large.
        super().__init__(model, kind="hf", budget=16_384, **options)

    def _load(self, device: str, dtype: str) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
        kind = "AutoModelForTokenClassification"
        return load_pretrained(self._id, kind=kind, device=device, dtype=dtype)

    def ground(self, items: Sequence[GroundingItem]) -> list[Grounding]:
        """Ground n sentences; see ``GroundingJudge``."""
        self.warm_up()
        chunk = Prepared(count=len(items))
        answers = [self._add(chunk, number, item) for number, item in enumerate(items)]
        rows = self._run(chunk)
        lacking = [np.ones(len(answer.offsets)) for answer in answers]
        for (number, start), row in zip(chunk.owners, rows, strict=True):
            count = len(answers[number].offsets)
            logits = row.reshape(-1, 2)[start : start + count]
            chances = softmax(logits, self._temperature)[:, 1]
            lacking[number] = np.minimum(lacking[number], chances)
        return [_grounding(*pair) for pair in zip(answers, lacking, strict=True)]

    def _add(self, chunk: Prepared, number: int, item: GroundingItem) -> _Answer:
        """Add the inputs of an item to the chunk."""
        sentence = readable(item.sentence)
        encoded = self._tokenizer(sentence, add_special_tokens=False, return_offsets_mapping=True)
        answer = _Answer(sentence, list(map(tuple, encoded["offset_mapping"])))
        if not item.statements or not sentence.strip():
            return answer._replace(offsets=[])
        passages = [readable(text) for text in item.statements]
        for group in self._groups(passages, item.context, len(answer.offsets)):
            prompt = marker_prompt(group, readable(item.context))
            ids: list[int] = self._tokenizer(
                prompt,
                sentence,
                truncation="only_first",
                max_length=max(LONGEST, len(answer.offsets) + 4),
            )["input_ids"]
            chunk.add(ids, (number, len(ids) - len(answer.offsets) - 1))
        return answer

    def _groups(self, passages: Sequence[str], question: str, answer: int) -> list[list[str]]:
        """Groups of passages that fit into one input, with the prompt and the answer's tokens."""
        lengths = [len(ids) + 6 for ids in self._ids(passages)]  # "passage 12: " and a line's end
        room = LONGEST - answer - 3 - len(self._ids([marker_prompt([], question)])[0])
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
        """Logits of each token, padded so that all batches have one shape, [n, 2 l]."""
        import torch

        logits: Tensor = model(**inputs).logits[..., :2].float()
        missing = LONGEST + 4 - logits.shape[1]
        return torch.nn.functional.pad(logits, (0, 0, 0, max(0, missing))).flatten(1)

    def judge(self, pairs: Sequence[Pair]) -> list[NLIScores]:
        """Judge n pairs; a hypothesis is a sentence without a question."""
        found = self.ground([GroundingItem((pair.premise,), pair.hypothesis) for pair in pairs])
        return [
            NLIScores(entailment=one.supported, neutral=one.unsupported, contradiction=0.0)
            for one in found
        ]


def _grounding(answer: _Answer, lacking: NDArray[np.float64]) -> Grounding:
    if not len(lacking):
        return NOTHING
    rows = np.stack([1 - lacking, lacking, np.zeros_like(lacking)], axis=1)
    worst = float(lacking.max())
    return Grounding(
        supported=1.0 - worst,
        unsupported=worst,
        contradicted=0.0,
        no_claim=0.0,
        words=word_scores(answer.text, answer.offsets, rows, worst=True),
    )
