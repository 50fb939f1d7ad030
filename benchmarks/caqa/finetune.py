"""Fine-tune any Hugging Face classifier on built rows, and judge with the result (5.2)."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, cast

from benchmarks.caqa.rows import CAQARow
from guardrail.commands.lines import Tell
from guardrail.core.errors import InputError, JudgeError, MissingExtraError
from guardrail.core.types import Category, Judgement, Value
from judges.base import AttributionItem

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import BatchEncoding, PreTrainedModel, PreTrainedTokenizerBase

__all__ = ["ClassifierJudge", "FineTuning", "fine_tune"]


class FineTuning(Value):
    """Settings of a fine-tuning run.

    Attributes:
        epochs: Passes over the rows.
        batch_size: Rows a step.
        learning_rate: Peak rate of AdamW; a tenth of the steps warms up to it, then it falls
            linearly to 0.
        max_length: Most tokens of a row; longer evidence is cut.
        seed: Seed of the order of rows and of new weights.
    """

    epochs: int = 2
    batch_size: int = 32
    learning_rate: float = 3e-5
    max_length: int = 256
    seed: int = 0


_WARM_UP = 0.1
_LABELS = [str(category) for category in Category]


def fine_tune(
    model: str,
    rows: Sequence[CAQARow],
    folder: Path,
    settings: FineTuning | None = None,
    tell: Tell | None = None,
) -> float:
    """Train a sequence classifier on rows and save it with its tokenizer.

    The input is a pair: evidence, and question with answer. Runs on a GPU where there is one.

    Args:
        model: Hugging Face id or path of an encoder (or of a classifier to go on from).
        rows: Training rows.
        folder: Where the trained model goes; ``classifier:FOLDER`` evaluates it.
        settings: How to train.
        tell: Called with the number of finished steps.

    Returns:
        Mean loss of the last tenth of the steps.

    Raises:
        MissingExtraError: torch or transformers is not installed.
        InputError: There are no rows.
    """
    if not rows:
        raise InputError("no rows to train on; run: guardrail bench caqa build --split train")
    torch, transformers = _libraries()
    settings = settings or FineTuning()
    torch.manual_seed(settings.seed)
    tokenizer = transformers.AutoTokenizer.from_pretrained(model)
    network = transformers.AutoModelForSequenceClassification.from_pretrained(
        model,
        num_labels=len(_LABELS),
        id2label=dict(enumerate(_LABELS)),
        label2id={label: place for place, label in enumerate(_LABELS)},
        ignore_mismatched_sizes=True,
    )
    device = "cuda" if torch.cuda.is_available() else "cpu"
    network.to(device).train()
    optimiser = torch.optim.AdamW(network.parameters(), lr=settings.learning_rate)
    per_epoch = math.ceil(len(rows) / settings.batch_size)
    total = per_epoch * settings.epochs
    warm = max(1, int(total * _WARM_UP))
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimiser,
        lambda step: min((step + 1) / warm, max(0.0, (total - step) / max(1, total - warm))),
    )
    rng = random.Random(settings.seed)
    losses: list[float] = []
    for _ in range(settings.epochs):
        order = rng.sample(range(len(rows)), len(rows))
        for start in range(0, len(order), settings.batch_size):
            batch = [rows[i] for i in order[start : start + settings.batch_size]]
            inputs = _encode(
                tokenizer,
                [AttributionItem(r.question, r.answer, r.evidence) for r in batch],
                settings.max_length,
            ).to(device)
            targets = torch.tensor([_LABELS.index(row.category) for row in batch], device=device)
            loss = network(**inputs, labels=targets).loss
            loss.backward()
            torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
            optimiser.step()
            schedule.step()
            optimiser.zero_grad()
            losses.append(float(loss.detach()))
            if tell is not None:
                tell("steps", len(losses), total)
    network.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    last = losses[-max(1, len(losses) // 10) :]
    return sum(last) / len(last)


class ClassifierJudge:
    """A classifier that ``fine_tune`` saved, as an attribution judge.

    Args:
        folder: Where it was saved.
        batch_size: Rows computed at once.
        max_length: Most tokens of a row.
    """

    def __init__(self, folder: str | Path, *, batch_size: int = 32, max_length: int = 256) -> None:
        self._folder = Path(folder)
        self._batch_size = batch_size
        self._max_length = max_length
        self._loaded: tuple[PreTrainedTokenizerBase, PreTrainedModel] | None = None

    @property
    def name(self) -> str:
        """The folder's name."""
        return f"classifier:{self._folder.name}"

    def warm_up(self) -> None:
        """Load the model; later calls do nothing."""
        self._load()

    def attribute(self, items: Sequence[AttributionItem]) -> list[Judgement]:
        """Judge n items; the result has length n and the order of the input.

        Raises:
            JudgeError: The folder holds no classifier of the four categories.
        """
        tokenizer, network = self._load()
        torch, _ = _libraries()
        found: list[Judgement] = []
        for start in range(0, len(items), self._batch_size):
            inputs = _encode(tokenizer, items[start : start + self._batch_size], self._max_length)
            with torch.no_grad():
                logits: Tensor = network(**inputs.to(network.device)).logits
            for row in torch.softmax(logits.double(), dim=-1).tolist():
                labels = cast("dict[int, str]", network.config.id2label)
                scores = {Category(labels[i]): p for i, p in enumerate(row)}
                found.append(Judgement(category=max(scores, key=scores.__getitem__), scores=scores))
        return found

    def _load(self) -> tuple[PreTrainedTokenizerBase, PreTrainedModel]:
        if self._loaded is None:
            torch, transformers = _libraries()
            try:
                tokenizer = transformers.AutoTokenizer.from_pretrained(self._folder)
                network = transformers.AutoModelForSequenceClassification.from_pretrained(
                    self._folder
                )
            except (OSError, ValueError) as error:
                raise JudgeError(f"no classifier in {self._folder}: {error}") from error
            if set(network.config.id2label.values()) != set(_LABELS):
                raise JudgeError(f"{self._folder} does not tell the four categories")
            network.to("cuda" if torch.cuda.is_available() else "cpu").eval()
            self._loaded = (tokenizer, network)
        return self._loaded


def _encode(
    tokenizer: PreTrainedTokenizerBase, items: Sequence[AttributionItem], max_length: int
) -> BatchEncoding:
    encoded: BatchEncoding = tokenizer(
        [" ".join(item.evidence) for item in items],
        [f"{item.question} {item.answer}" for item in items],
        truncation="only_first",
        max_length=max_length,
        padding=True,
        return_tensors="pt",
    )
    return encoded


def _libraries() -> tuple[ModuleType, ModuleType]:
    try:
        import torch
        import transformers
    except ImportError as error:
        raise MissingExtraError(str(error.name), "train") from error
    return torch, transformers
