"""Fact checkers of the Hugging Face hub, each read in the form that it was trained on.

MiniCheck (arXiv 2404.10774), FactCG (2501.17144), HHEM-2.1-open, AlignScore (2305.16739) and the
T5 models of TRUE (2204.04991). All answer whether a document supports a claim, and none
distinguishes contradiction from lack of support. Evidence of any length is read in chunks; the
chunk that supports most counts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Literal, NamedTuple, Unpack

import numpy as np
from numpy.typing import NDArray

from guardrail.core.errors import JudgeError
from guardrail.core.types import NLIScores
from judges.base import NLITraits, Pair
from judges.batching import even_chunks, sentence_chunks
from judges.pretrained import load_alignscore, load_hhem, load_pretrained
from judges.session import readable, softmax
from judges.torch_judge import Options, TorchJudge, supported
from judges.torch_runner import Prepared

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    Loader = Callable[..., tuple[PreTrainedModel, PreTrainedTokenizerBase]]

__all__ = ["CHECKERS", "Checker", "CheckerForm", "alignscore", "answer_tokens", "t5_true"]

ALL_CHARS = 1_000_000
"""Characters of evidence, read in chunks: more than is ever chosen for a sentence."""
WORDS_AND_SIGNS = re.compile(r"\w+|[^\w\s]")
CLASSIFIER = "AutoModelForSequenceClassification"
SEQ2SEQ = "AutoModelForSeq2SeqLM"


class CheckerForm(NamedTuple):
    """How a checker reads a document and a claim.

    Attributes:
        template: The input, with ``{document}`` and ``{claim}``; ``{end}`` is the tokenizer's
            end-of-sequence token.
        chunk: Maximum size of a chunk of the document.
        counted: Unit of ``chunk``.
        longest: Maximum tokens of an input.
        joint: Joins the sentences of a chunk; None for the original space.
        even: Whether all chunks have the same number of sentences.
        load: Loads the model.
        answer: The output that tells support: the logits of ``labels``, the logits of the
            ``first token``, or of "0" and "1" as the ``next token`` of a T5 model.
        support: Place of the supported answer.
        token_budget: Maximum tokens of a batch.
    """

    template: str
    chunk: int
    counted: Literal["tokens", "words", "words and signs"]
    longest: int
    joint: str | None = None
    even: bool = False
    load: Loader = partial(load_pretrained, kind=CLASSIFIER)
    answer: Literal["labels", "first token", "next token"] = "labels"
    support: int = 1
    token_budget: int = 16_384


_MINICHECK = CheckerForm("{document}{end}{claim}", 400, "tokens", 512)

CHECKERS: Mapping[str, CheckerForm] = {
    "MiniCheck-RoBERTa-Large": _MINICHECK,
    "MiniCheck-DeBERTa-v3-Large": _MINICHECK._replace(longest=2_048),
    "MiniCheck-Flan-T5-Large": CheckerForm(
        "predict: {document}{end}{claim}", 500, "words", 2_048,
        load=partial(load_pretrained, kind=SEQ2SEQ), answer="next token",
    ),
    "FactCG-DeBERTa-v3-Large": CheckerForm(
        "{document}\n\nChoose your answer: based on the paragraph above can we conclude that "
        '"{claim}"?\n\nOPTIONS:\n- Yes\n- No\nI think the answer is ',
        550, "words and signs", 2_048, joint="\n",
    ),
    "hallucination_evaluation_model": CheckerForm(
        "<pad> Determine if the hypothesis is true given the premise?\n\n"
        "Premise: {document}\n\nHypothesis: {claim}",
        1_500, "words", 4_096, load=load_hhem, answer="first token",
    ),
}  # fmt: skip
"""Forms by the last part of a model's id. The budget of tokens takes some 4 GB for a large model;
HHEM's own code reads a document of any length at once."""

_ALIGNSCORE = CheckerForm(
    "{document}{end}{end}{claim}", 350, "words", 512, even=True, support=0, token_budget=32_768
)
"""AlignScore as its mode ``nli_sp`` (section 3.3): the first of three labels is *aligned*."""

_TRUE = CheckerForm(
    "premise: {document} hypothesis: {claim}", 1_500, "words", 2_048,
    load=partial(load_pretrained, kind=SEQ2SEQ), answer="next token",
)  # fmt: skip


class Checker(TorchJudge):
    """A model that tells whether a document supports a claim.

    Args:
        model: Model id or folder.
        form: Its input and output.
        kind: The part of the judge's name before the colon.
        traits: Abilities of the judge.
        options: As of ``TorchJudge``. A ``temperature`` of 1 is the one for which the published
            threshold of 0.5 was measured.
    """

    def __init__(
        self,
        model: str,
        form: CheckerForm,
        *,
        kind: str = "hf",
        traits: NLITraits | None = None,
        **options: Unpack[Options],
    ) -> None:
        super().__init__(model, kind=kind, budget=form.token_budget, **options)
        self.traits = traits or NLITraits(
            premise_chars=ALL_CHARS, tells_contradiction=False, evidence_chars=4_000
        )
        self._form = form
        self._prefix: Sequence[int] = ()
        self._answers: Sequence[int] = ()

    def _load(self, device: str, dtype: str) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
        model, tokenizer = self._form.load(self._id, device=device, dtype=dtype)
        if self._form.answer == "next token":
            self._prefix, self._answers = answer_tokens(tokenizer, self._id)
        return model, tokenizer

    def _prepare(self, pairs: Sequence[Pair]) -> Prepared:
        chunk = Prepared(count=len(pairs))
        for number, pair in enumerate(pairs):
            document, claim = self._plain(pair.premise), self._plain(pair.hypothesis)
            for part in self._parts(document):
                for sequence in self._readings(part, claim):
                    chunk.add(sequence, (number, 0))
        return chunk

    def _plain(self, text: str) -> str:
        """A text without the tokenizer's special tokens: evidence cannot end itself."""
        text = readable(text)
        for mark in self._tokenizer.all_special_tokens:
            text = text.replace(mark, " ")
        return text

    def _parts(self, document: str) -> list[str]:
        form = self._form
        if form.even:
            return even_chunks(document, form.chunk)
        return sentence_chunks(document, form.chunk, self._sizes, joint=form.joint)

    def _sizes(self, sentences: Sequence[str]) -> Sequence[int]:
        if self._form.counted == "tokens":
            return [len(ids) for ids in self._ids(sentences)]
        if self._form.counted == "words":
            return [len(text.split()) for text in sentences]
        return [len(WORDS_AND_SIGNS.findall(text)) for text in sentences]

    def _readings(self, document: str, claim: str) -> list[list[int]]:
        """Token ids of a chunk with a claim; in halves of the chunk if they are too long.

        The claim is last in most forms, so that truncation would cut it.
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

    def _outputs(self, model: PreTrainedModel, inputs: dict[str, Tensor]) -> Tensor:
        if self._form.answer == "next token":
            return _next_logits(model, inputs, self._prefix)[:, list(self._answers)]
        logits: Tensor = model(**inputs).logits
        return logits[:, 0, :2] if self._form.answer == "first token" else logits

    def _chunk_scores(self, chunk: Prepared, rows: NDArray[np.float32]) -> list[NLIScores]:
        return supported(chunk, softmax(rows, self._temperature)[:, self._form.support])


def alignscore(model: str, **options: Unpack[Options]) -> Checker:
    """AlignScore, whose two checkpoints share a repository: a name may end in the size."""
    size = "base" if model.lower().endswith("alignscore-base") else "large"
    if model.lower().endswith(f"alignscore-{size}"):
        model = model[: -len(size) - 1]
    form = _ALIGNSCORE._replace(load=partial(load_alignscore, size=size))
    judge = Checker(model, form, **options)
    judge.name += f"-{size}"
    return judge


def t5_true(model: str, **options: Unpack[Options]) -> Checker:
    """A T5 model trained to say "1" for entailment and "0" otherwise (AutoIS).

    The papers generate text with an 11B T5, one pair at a time. One decoder step gives the same
    answer: the logits of "1" and "0" as first token.
    """
    return Checker(
        model, _TRUE, kind="t5-true", traits=NLITraits(tells_contradiction=False), **options
    )


def answer_tokens(
    tokenizer: PreTrainedTokenizerBase, name: str
) -> tuple[list[int], tuple[int, int]]:
    """The common prefix of "0" and "1" as tokens, and the two tokens that follow it.

    A vocabulary may spell one of them in several tokens ("▁", "0") and the other in one ("▁1"):
    the model decides at the first token that differs.

    Raises:
        JudgeError: The vocabulary cannot distinguish them.
    """
    zero, one = tokenizer(["0", "1"], add_special_tokens=False)["input_ids"]
    place = next((i for i, (a, b) in enumerate(zip(zero, one, strict=False)) if a != b), None)
    if place is None or tokenizer.unk_token_id in (zero[place], one[place]):
        raise JudgeError(f"{name} cannot say '1' and '0'; is it a model that was trained to?")
    return list(zero[:place]), (zero[place], one[place])


def _next_logits(
    model: PreTrainedModel, inputs: dict[str, Tensor], prefix: Sequence[int]
) -> Tensor:
    """Logits of the token that a T5 model says after a prefix, over its vocabulary, [n, v]."""
    import torch

    device = inputs["input_ids"].device
    start = torch.tensor([[model.config.decoder_start_token_id, *prefix]], device=device)
    start = start.expand(len(inputs["input_ids"]), -1)
    logits: Tensor = model(**inputs, decoder_input_ids=start, use_cache=False).logits
    return logits[:, -1]
