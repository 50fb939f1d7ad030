"""Checkers trained to say whether a document supports a claim, asked as their own code asks them.

MiniCheck (arXiv 2404.10774), FactCG (arXiv 2501.17144) and HHEM-2.1-open. They give the probability
of support alone, and tell no contradiction. A long document is read in chunks, and the chunk that
supports most counts.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple, Unpack

import numpy as np
from numpy.typing import NDArray

from guardrail.core.types import NLIScores
from judges.base import NLITraits, Pair
from judges.chunks import sentence_chunks
from judges.pretrained import load_hhem
from judges.session import readable, softmax
from judges.t5 import answer_tokens, first_logits
from judges.torch_judge import Options, TorchJudge, support_alone
from judges.torch_runner import Prepared

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

__all__ = [
    "ALL_CHARS",
    "FACTCG",
    "HHEM",
    "MINICHECK",
    "MINICHECK_LONG",
    "MINICHECK_T5",
    "CheckerForm",
    "ClassifierChecker",
    "HHEMChecker",
    "T5Checker",
]

ALL_CHARS = 1_000_000
"""Characters of evidence, read in chunks: more than is ever chosen for a sentence."""

WORDS_AND_SIGNS = re.compile(r"\w+|[^\w\s]")


class CheckerForm(NamedTuple):
    """How a checker is asked.

    Attributes:
        template: What the model reads, of ``{document}`` and ``{claim}``; ``{end}`` is the
            tokenizer's own mark of an end.
        chunk: Most of a document that is read at once.
        counted: What ``chunk`` counts.
        joint: What stands between the sentences of a chunk; None for what stands in the document.
        longest: Most tokens of a reading.
    """

    template: str
    chunk: int
    counted: Literal["tokens", "words", "words and signs"]
    longest: int
    joint: str | None = None


MINICHECK = CheckerForm("{document}{end}{claim}", 400, "tokens", 512)
"""MiniCheck from RoBERTa-large, whose table of positions ends at 512."""

MINICHECK_LONG = MINICHECK._replace(longest=2_048)
"""MiniCheck from DeBERTa-v3-large."""

MINICHECK_T5 = CheckerForm("predict: {document}{end}{claim}", 500, "words", 2_048)
"""MiniCheck from Flan-T5-large, which answers with the token "1" or "0"."""

FACTCG = CheckerForm(
    "{document}\n\nChoose your answer: based on the paragraph above can we conclude that "
    '"{claim}"?\n\nOPTIONS:\n- Yes\n- No\nI think the answer is ',
    550,
    "words and signs",
    2_048,
    joint="\n",
)
"""FactCG from DeBERTa-v3-large: a prompt of FLAN's for NLI, classified."""

HHEM = CheckerForm(
    "<pad> Determine if the hypothesis is true given the premise?\n\n"
    "Premise: {document}\n\nHypothesis: {claim}",
    1_500,
    "words",
    4_096,
)
"""HHEM-2.1-open; its own code reads a document of any length at once."""


class _Checker(TorchJudge):
    """What all checkers share; their models give logits of not supported and supported, [n, 2].

    Args:
        model: Model id or folder.
        form: How it is asked.
        temperature: Divides the logits before they become probabilities; 1 is what the published
            threshold of 0.5 was measured with.
        options: As of ``TorchModel``.
    """

    _kind = "hf"
    _token_budget = 16_384
    """Takes some 4 GB for DeBERTa-large."""
    traits = NLITraits(premise_chars=ALL_CHARS, tells_contradiction=False, evidence_chars=4_000)

    def __init__(
        self,
        model: str,
        form: CheckerForm,
        *,
        temperature: float = 1.0,
        **options: Unpack[Options],
    ) -> None:
        super().__init__(model, **options)
        self._form = form
        self._temperature = temperature

    def _prepare(self, pairs: Sequence[Pair]) -> Prepared:
        chunk = Prepared(count=len(pairs))
        for number, pair in enumerate(pairs):
            document, claim = self._plain(pair.premise), self._plain(pair.hypothesis)
            for part in sentence_chunks(
                document, self._form.chunk, self._sizes, joint=self._form.joint
            ):
                for sequence in self._readings(part, claim):
                    chunk.add(sequence, (number, 0))
        return chunk

    def _plain(self, text: str) -> str:
        """A text without what the tokenizer would take for marks of its own."""
        text = readable(text)
        for mark in self._tokenizer.all_special_tokens:
            text = text.replace(mark, " ")
        return text

    def _sizes(self, sentences: Sequence[str]) -> Sequence[int]:
        if self._form.counted == "tokens":
            return [len(ids) for ids in self._ids(sentences)]
        if self._form.counted == "words":
            return [len(text.split()) for text in sentences]
        return [len(WORDS_AND_SIGNS.findall(text)) for text in sentences]

    def _readings(self, document: str, claim: str) -> list[list[int]]:
        """Token ids of a chunk with a claim; in halves where both are too long together.

        The claim stands last in most forms, so that cutting a reading short would cut it.
        """
        text = self._form.template.format(
            document=document, claim=claim, end=self._tokenizer.eos_token
        )
        ids: list[int] = self._tokenizer(text, verbose=False)["input_ids"]
        words = document.split()
        if len(ids) <= self._form.longest:
            return [ids]
        if len(words) < 2:
            return [ids[: self._form.longest - 1] + ids[-1:]]
        middle = len(words) // 2
        halves = (" ".join(words[:middle]), " ".join(words[middle:]))
        return [ids for half in halves for ids in self._readings(half, claim)]

    def _chunk_scores(self, chunk: Prepared, rows: NDArray[np.float32]) -> list[NLIScores]:
        """The highest support over the chunks of each document."""
        return support_alone(chunk, softmax(rows, self._temperature)[:, 1])


class ClassifierChecker(_Checker):
    """A checker with a head of two labels, not supported and supported."""

    _auto_class = "AutoModelForSequenceClassification"

    def _outputs(self, model: PreTrainedModel, inputs: dict[str, Tensor]) -> Tensor:
        logits: Tensor = model(**inputs).logits
        return logits[:, :2]


class HHEMChecker(_Checker):
    """HHEM-2.1-open: a T5 encoder that classifies its first token, the padding of its prompt."""

    def _load(self, device: str, dtype: str) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
        return load_hhem(self._id, device=device, dtype=dtype)

    def _outputs(self, model: PreTrainedModel, inputs: dict[str, Tensor]) -> Tensor:
        logits: Tensor = model(**inputs).logits
        return logits[:, 0, :2]


class T5Checker(_Checker):
    """A checker that answers with the token "1" where the document supports the claim, else "0"."""

    _auto_class = "AutoModelForSeq2SeqLM"

    _said: Sequence[int] = ()
    _answers: Sequence[int] = ()

    def _settle(self, model: PreTrainedModel) -> None:
        self._said, (one, zero) = answer_tokens(self._tokenizer, self._id)
        self._answers = [zero, one]

    def _outputs(self, model: PreTrainedModel, inputs: dict[str, Tensor]) -> Tensor:
        return first_logits(model, inputs, self._said)[:, self._answers]
