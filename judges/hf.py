"""Judges of the Hugging Face hub: fact checkers by name, and any NLI classifier.

Each is read in the form that it was trained on: MiniCheck (arXiv 2404.10774), FactCG (2501.17144),
HHEM-2.1-open, AlignScore (2305.16739), LettuceDetect (2502.17125) and the T5 models of TRUE
(2204.04991). An unknown model is inspected before it is loaded: one with NLI labels is read as an
NLI classifier, any other is refused.
"""

from __future__ import annotations

import difflib
import re
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Literal, NamedTuple, Unpack, cast

import numpy as np
from numpy.typing import NDArray

from guardrail.core.errors import JudgeError
from guardrail.core.types import NLIScores
from judges.base import NLITraits, Pair
from judges.batching import (
    deciding_windows,
    distinct,
    each_once,
    even_chunks,
    pair_windows,
    sentence_chunks,
)
from judges.letters import readable
from judges.lifting import nli_scores
from judges.pretrained import config_of, load_alignscore, load_hhem, load_pretrained
from judges.session import softmax
from judges.span_marker import SpanMarker
from judges.torch_model import Options, Prepared, TorchModel

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PretrainedConfig, PreTrainedModel, PreTrainedTokenizerBase

    Loader = Callable[..., tuple[PreTrainedModel, PreTrainedTokenizerBase]]

SEQ2SEQ = partial(load_pretrained, kind="AutoModelForSeq2SeqLM")


class InputForm(NamedTuple):
    """How a model reads a document and a claim.

    Attributes:
        template: The input, with ``{document}`` and ``{claim}``; ``{end}`` is the tokenizer's
            end-of-sequence token. Empty for an NLI classifier, which reads pairs of texts in
            overlapping windows.
        chunk: Maximum size of a chunk of the document.
        counted: Unit of ``chunk``.
        longest: Maximum tokens of an input.
        joint: Joins the sentences of a chunk; None for the original space.
        even: Whether all chunks have the same number of sentences.
        load: Loads the model.
        answer: The output that scores support: the logits of ``labels``, the logits of the
            ``first token``, or of "0" and "1" as the ``next token`` of a T5 model.
        support: Place of the supported answer.
        budget: Maximum tokens of a batch: some 4 GB for a large checker.
        evidence_chars: Characters of evidence that are chosen for one sentence; None for the
            default, with premises of default length.
    """

    template: str = ""
    chunk: int = 0
    counted: Literal["tokens", "words", "words and signs"] = "words"
    longest: int = 512
    joint: str | None = None
    even: bool = False
    load: Loader = partial(load_pretrained, kind="AutoModelForSequenceClassification")
    answer: Literal["labels", "first token", "next token"] = "labels"
    support: int = 1
    budget: int = 16_384
    evidence_chars: int | None = 4_000


_MINICHECK = InputForm("{document}{end}{claim}", 400, "tokens", 512)

FORMS: Mapping[str, InputForm] = {
    "MiniCheck-RoBERTa-Large": _MINICHECK,
    "MiniCheck-DeBERTa-v3-Large": _MINICHECK._replace(longest=2_048),
    "MiniCheck-Flan-T5-Large": InputForm(
        "predict: {document}{end}{claim}", 500, "words", 2_048, load=SEQ2SEQ, answer="next token"
    ),
    "FactCG-DeBERTa-v3-Large": InputForm(
        "{document}\n\nChoose your answer: based on the paragraph above can we conclude that "
        '"{claim}"?\n\nOPTIONS:\n- Yes\n- No\nI think the answer is ',
        550, "words and signs", 2_048, joint="\n",
    ),
    "hallucination_evaluation_model": InputForm(
        "<pad> Determine if the hypothesis is true given the premise?\n\n"
        "Premise: {document}\n\nHypothesis: {claim}",
        1_500, "words", 4_096, load=load_hhem, answer="first token",
    ),
}  # fmt: skip
"""Forms by the last part of a model's id. HHEM's own code reads any document at once."""

_NLI = InputForm(budget=32_768, evidence_chars=None)
"""The budget fills a large GPU and takes under 2 GB for roberta-large."""


class HFJudge(TorchModel):
    """An NLI judge from a Hugging Face model.

    Fact checkers score whether a document supports a claim, and do not distinguish contradiction
    from lack of support. Evidence of any length is read in chunks; the chunk that supports most
    counts. NLI classifiers may have any order of labels; with two (entailment or not), the second
    is ``neutral``. Of their overlapping windows the most decided one of each part of a hypothesis
    counts, and the least entailed part.

    Args:
        model: Model id or folder.
        form: Its input and output; those of an NLI classifier by default.
        labels: Labels of an NLI classifier in the order of its logits if its configuration does
            not name them; ``not_entailment`` for the second of two.
        kind: The part of the judge's name before the colon.
        inspect: Whether to refuse a model that is no NLI classifier before loading it.
        options: As of ``TorchModel``. A ``temperature`` of 1 is the one for which the published
            threshold of 0.5 of a checker was measured.
    """

    def __init__(
        self,
        model: str,
        form: InputForm = _NLI,
        *,
        labels: Sequence[str] | None = None,
        kind: str = "hf",
        inspect: bool = False,
        **options: Unpack[Options],
    ) -> None:
        super().__init__(model, kind=kind, budget=form.budget, **options)
        self._form = form
        self._labels = labels
        self._inspect = inspect
        self._columns: dict[str, int] = {"entailment": form.support} if form.template else {}
        self._longest = form.longest
        self._segments = False
        self._prefix: Sequence[int] = ()
        self._answers: Sequence[int] = ()

    @property
    def traits(self) -> NLITraits:
        """Its abilities; those of a classifier are known once it is loaded."""
        form, two_labels = self._form, "neither" in self._columns
        if form.evidence_chars is None:
            return NLITraits(tells_contradiction=not form.template and not two_labels)
        # Premises of any length are read in chunks.
        return NLITraits(1_000_000, tells_contradiction=False, evidence_chars=form.evidence_chars)

    @each_once
    def judge(self, pairs: Sequence[Pair]) -> list[NLIScores]:
        """Judge n pairs; see ``NLIJudge``."""
        self.warm_up()
        results: list[NLIScores] = []
        for chunk in self._prepared(pairs):
            results += self._scores(chunk, self._run(chunk))
        return results

    def _load(self, device: str, dtype: str) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
        if self._inspect:
            _refuse(self._id, own_labels=self._labels is not None)
        model, tokenizer = self._form.load(self._id, device=device, dtype=dtype)
        if not self._form.template:
            known = cast("dict[int, str]", model.config.id2label or {})
            self._columns = label_columns(dict(enumerate(self._labels)) if self._labels else known)
            self._longest = _longest(model.config, tokenizer)
            self._segments = getattr(model.config, "type_vocab_size", 0) > 1
        if self._form.answer == "next token":
            self._prefix, self._answers = _answer_tokens(tokenizer, self._id)
        return model, tokenizer

    def _outputs(self, model: PreTrainedModel, inputs: dict[str, Tensor]) -> Tensor:
        if self._form.answer == "next token":
            import torch

            said = [model.config.decoder_start_token_id, *self._prefix]
            start = torch.tensor([said], device=inputs["input_ids"].device)
            inputs["decoder_input_ids"] = start.expand(len(inputs["input_ids"]), -1)
            spoken: Tensor = model(**inputs, use_cache=False).logits[:, -1]
            return spoken[:, list(self._answers)]
        logits: Tensor = model(**inputs).logits
        return logits[:, 0, :2] if self._form.answer == "first token" else logits

    def _prepared(self, pairs: Sequence[Pair]) -> Iterator[Prepared]:
        """Chunks of pairs as token sequences, tokenised in another thread one chunk ahead."""
        prepare = self._documents if self._form.template else self._windows
        size = 4_096
        with ThreadPoolExecutor(1, thread_name_prefix="tokenize") as pool:
            waiting: deque[Future[Prepared]] = deque()
            for start in range(0, len(pairs), size):
                waiting.append(pool.submit(prepare, pairs[start : start + size]))
                if len(waiting) > 1:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()

    def _scores(self, chunk: Prepared, rows: NDArray[np.float32]) -> list[NLIScores]:
        chances = softmax(rows, self._temperature)
        columns = {name: chances[:, column] for name, column in self._columns.items()}
        entailed = columns["entailment"]
        neutral = columns.get("neutral", columns.get("neither", 1 - entailed))
        against = columns.get("contradiction", np.zeros_like(entailed))
        scores = np.stack([entailed, neutral, against], axis=1)
        windows = deciding_windows(chunk.owners, neutral, entailed)
        return [nli_scores(scores[windows[number]]) for number in range(chunk.count)]

    # --- Pairs in windows ---

    def _windows(self, pairs: Sequence[Pair]) -> Prepared:
        texts, places = distinct([text for pair in pairs for text in pair])
        known = self._ids(texts)
        ids = iter([known[place] for place in places])
        before, between, after = self._frame()
        capacity = self._longest - len(before) - len(between) - len(after)
        chunk = Prepared(count=len(pairs))
        for number, (premise, hypothesis) in enumerate(zip(ids, ids, strict=True)):
            for window in pair_windows(premise, hypothesis, capacity):
                first = [*before, *window.premise, *between]
                border = len(first) if self._segments else None
                chunk.add([*first, *window.hypothesis, *after], (number, window.part), border)
        return chunk

    def _frame(self) -> tuple[list[int], list[int], list[int]]:
        """Special tokens before, between and after the two texts of a pair."""
        first, second = self._ids(["a", "b"])
        whole: list[int] = self._tokenizer("a", "b")["input_ids"]
        start = _find(whole, first, 0)
        middle = _find(whole, second, start + len(first))
        return whole[:start], whole[start + len(first) : middle], whole[middle + len(second) :]

    # --- Documents in chunks ---

    def _documents(self, pairs: Sequence[Pair]) -> Prepared:
        chunk = Prepared(count=len(pairs))
        form = self._form
        for number, pair in enumerate(pairs):
            document, claim = self._plain(pair.premise), self._plain(pair.hypothesis)
            if form.even:
                parts = even_chunks(document, form.chunk)
            else:
                parts = sentence_chunks(document, form.chunk, self._sizes, joint=form.joint)
            for part in parts:
                for sequence in self._readings(part, claim):
                    chunk.add(sequence, (number, 0))
        return chunk

    def _plain(self, text: str) -> str:
        """A text without the tokenizer's special tokens, so that evidence cannot end the input."""
        text = readable(text)
        for mark in self._tokenizer.all_special_tokens:
            text = text.replace(mark, " ")
        return text

    def _sizes(self, sentences: Sequence[str]) -> Sequence[int]:
        if self._form.counted == "tokens":
            return [len(ids) for ids in self._ids(sentences)]
        if self._form.counted == "words":
            return [len(text.split()) for text in sentences]
        return [len(re.findall(r"\w+|[^\w\s]", text)) for text in sentences]

    def _readings(self, document: str, claim: str) -> list[list[int]]:
        """Token ids of a chunk with a claim; in halves of the chunk if they are too long.

        The claim is last in most forms, so that truncation would cut it.
        """
        text = self._form.template.format(
            document=document, claim=claim, end=self._tokenizer.eos_token
        )
        ids: list[int] = self._tokenizer(text, verbose=False)["input_ids"]
        words = document.split()
        if len(ids) <= self._longest:
            return [ids]
        if len(words) < 2:
            return [ids[: self._longest - 1] + ids[-1:]]
        middle = len(words) // 2
        halves = (" ".join(words[:middle]), " ".join(words[middle:]))
        return [ids for half in halves for ids in self._readings(half, claim)]


def _alignscore(model: str, **options: Unpack[Options]) -> HFJudge:
    """AlignScore in its mode ``nli_sp`` (section 3.3), whose first label is *aligned*.

    Two checkpoints share a repository: a name may end in the size.
    """
    repository, _, size = model.rstrip("/").rpartition("-")
    if not repository.lower().endswith("alignscore"):
        repository, size = model, "large"
    form = InputForm(
        "{document}{end}{end}{claim}", 350, even=True, support=0, budget=32_768,
        load=partial(load_alignscore, size=size.lower()),
    )  # fmt: skip
    judge = HFJudge(repository, form, **options)
    judge.name += f"-{size.lower()}"
    return judge


def nli_classifier(model: str, **options: Unpack[Options]) -> HFJudge:
    """Any NLI classifier, without inspection; see ``HFJudge``."""
    return HFJudge(model, kind="transformers", **options)


def t5_true(model: str, **options: Unpack[Options]) -> HFJudge:
    """A T5 model trained to say "1" for entailment and "0" otherwise (AutoIS).

    The papers generate text with an 11B T5, one pair at a time. One decoder step gives the same
    answer: the logits of "1" and "0" as first token.
    """
    form = InputForm(
        "premise: {document} hypothesis: {claim}", 1_500, "words", 2_048, load=SEQ2SEQ,
        answer="next token", evidence_chars=None,
    )  # fmt: skip
    return HFJudge(model, form, kind="t5-true", **options)


KNOWN: Mapping[str, Callable[..., TorchModel]] = {
    **{name: partial(HFJudge, form=form) for name, form in FORMS.items()},
    **dict.fromkeys(("AlignScore", "AlignScore-base", "AlignScore-large"), _alignscore),
    "lettucedect-base-modernbert-en-v1": SpanMarker,
    "lettucedect-large-modernbert-en-v1": SpanMarker,
    "lettucedect-v2-mmbert-base": SpanMarker,
}
"""Models by the last part of their id, which may be the name of a folder."""

_BY_FOLDED = {name.casefold(): name for name in KNOWN}


def open_hf(model: str, **options: object) -> TorchModel:
    """Make the judge of a model of the hub; nothing is loaded yet.

    Args:
        model: Model id, or a folder; a folder with the name of a known model is read like it.
        options: Options of the judge, such as ``device="cpu"`` or ``temperature=1.3``.
    """
    name = model.rstrip("/").rpartition("/")[2].casefold()
    make: Callable[..., TorchModel] = partial(HFJudge, inspect=True)
    return (KNOWN[_BY_FOLDED[name]] if name in _BY_FOLDED else make)(model, **options)


def label_columns(id2label: Mapping[int, str]) -> dict[str, int]:
    """Find the columns of the labels in a model's configuration.

    Returns:
        Column of ``entailment`` and either of ``neutral`` and ``contradiction``, or of
        ``neither`` for a model with two labels.

    Raises:
        JudgeError: The labels are not those of an NLI model.
    """
    patterns = {  # the first that matches counts
        "neither": r"not?[\s_-]*entail|non[\s_-]*entail",
        "entailment": r"entail|support",
        "neutral": r"neutral|not[\s_-]*enough|nei\b|unrelated",
        "contradiction": r"contra|refut",
    }
    columns: dict[str, int] = {}
    for column, label in id2label.items():
        matching = (name for name, pattern in patterns.items() if re.search(pattern, label, re.I))
        if (name := next(matching, None)) is not None:
            if name in columns:
                raise JudgeError(f"two labels of {dict(id2label)} mean {name}")
            columns[name] = int(column)
    known = [{"entailment", "neutral", "contradiction"}, {"entailment", "neither"}]
    if len(columns) != len(id2label) or set(columns) not in known:
        raise JudgeError(
            f"the labels {dict(id2label)} are not those of an NLI model; "
            "pass labels=('entailment', 'neutral', 'contradiction') in the model's order"
        )
    return columns


def _answer_tokens(
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


def _find(whole: Sequence[int], part: Sequence[int], start: int) -> int:
    for place in range(start, len(whole) - len(part) + 1):
        if list(whole[place : place + len(part)]) == list(part):
            return place
    raise JudgeError("the model's tokenizer reads a pair of texts in a way that is not supported")


def _longest(config: PretrainedConfig, tokenizer: PreTrainedTokenizerBase) -> int:
    """Maximum tokens of a sequence: the smaller limit of model and tokenizer."""
    limits = [int(tokenizer.model_max_length)]
    positions = getattr(config, "max_position_embeddings", None)
    if positions and positions > 0:
        # RoBERTa's position table begins after the padding id and holds that many less.
        shifted = "roberta" in getattr(config, "model_type", "")
        limits.append(int(positions) - (config.pad_token_id + 1 if shifted else 0))
    return min((limit for limit in limits if limit < 1_000_000), default=512)


def _refuse(model: str, *, own_labels: bool) -> None:
    """Refuse a model that cannot be read as an NLI classifier.

    Raises:
        JudgeError: Says what the model is, and what to write instead.
    """
    config = config_of(model)
    head = str((*(config.get("architectures") or ()), "")[0])
    labels = [str(name) for name in (config.get("id2label") or {}).values()]
    close = difflib.get_close_matches(
        model.rpartition("/")[2].casefold(), _BY_FOLDED, n=1, cutoff=0.8
    )
    near = f"; did you mean {_BY_FOLDED[close[0]]!r}?" if close else ""
    other_heads = {
        "ForTokenClassification": "marks words; of such models those of LettuceDetect are known",
        "ForCausalLM": "is a language model; serve it behind an OpenAI-compatible endpoint and "
        "write chat:MODEL",
        "ForConditionalGeneration": "writes text; if it was trained to say 1 for entailment and 0 "
        "otherwise, write t5-true:MODEL",
    }
    for end, reason in other_heads.items():
        if head.endswith(end):
            raise JudgeError(f"{model!r} ({head}) {reason}{near}")
    if config.get("auto_map"):
        raise JudgeError(
            f"{model!r} brings Python code of its own, which is not run; known models are "
            f"{', '.join(KNOWN)}"
        )
    if not head.endswith("ForSequenceClassification"):
        raise JudgeError(
            f"{model!r} ({head or 'no architecture named'}) has no head that classifies, so that "
            f"its answers would be random; name a model that was trained for NLI{near}"
        )
    if len(labels) == 1:
        raise JudgeError(f"{model!r} gives one number and no labels; name a model of NLI")
    if not own_labels and all(name.upper().startswith("LABEL_") for name in labels):
        raise JudgeError(
            f"{model!r} does not name its labels ({', '.join(labels) or 'none'}); write their "
            "order into id2label of the config.json of a copy, as "
            '{"0": "entailment", "1": "neutral", "2": "contradiction"}, and name its folder'
        )
