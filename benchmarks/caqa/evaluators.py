"""Evaluators: any judge, NLI in AutoIS form, chat models by the paper's prompts (5.2)."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar, runtime_checkable

from benchmarks.caqa.prompts import (
    Form,
    category_prompt,
    demonstrations,
    fact_prompt,
    read_category,
    read_truth,
)
from benchmarks.caqa.rows import CAQARow
from benchmarks.data import PATIENCE_S
from guardrail.core.errors import ConfigError
from guardrail.core.types import Category
from guardrail.models.base import LanguageModel, Prompt, SampleRequest
from judges.base import AttributionItem, AttributionJudge, NLIJudge, Pair

__all__ = [
    "AutoISEvaluator",
    "ChatEvaluator",
    "ChatModel",
    "Evaluator",
    "JudgeEvaluator",
    "ModelChat",
    "create_evaluator",
    "in_pieces",
    "item_of",
]

ItemT = TypeVar("ItemT")
SaidT = TypeVar("SaidT")

_FORMS = {"chat": Form.GPT, "short": Form.SHORT, "attrscore": Form.ATTRSCORE}
_SHOTS = {"zero": 0, "few": 1, "1": 1, "2": 2, "3": 3}
"""Demonstrations of each category; the paper compares one to three (Table 14)."""
_KINDS = (
    "nli",
    "autois",
    "classifier",
    "attrscore",
    *(f"{form}-{shots}" for form in _FORMS for shots in _SHOTS),
)
"""Evaluators that take a model or folder after a colon, in addition to the judges."""
_NOT_SUPPORTIVE = Category.IRRELEVANT
"""What stands for *not supportive* where an evaluator knows no more."""
_REPLY_TOKENS = 256
"""Room for a model that explains before it names a category; most end after a word."""
_AT_ONCE = 4
"""Prompts sent to a chat model at the same time."""
_EVIDENCE_CHARACTERS = 4_000
"""Evidence beyond this is not shown to a chat model: about 1,000 tokens, so that a few prompts at
once fit the embedded model's context. Built rows are shorter; some of WiCE's are not."""


@runtime_checkable
class Evaluator(Protocol):
    """Something that gives categories; ``categories`` are those it can give."""

    @property
    def name(self) -> str:
        """Name for the tables."""
        ...

    @property
    def categories(self) -> tuple[Category, ...]:
        """The categories it can tell apart; others get no figure in the tables."""
        ...

    @property
    def at_once(self) -> int | None:
        """Most items for one call, so that progress shows; None where it sorts them itself."""
        ...

    def categorise(self, items: Sequence[AttributionItem]) -> list[Category | None]:
        """The category of n items; None where a reply names none."""
        ...

    def supports(self, facts: Sequence[tuple[str, tuple[str, ...]]]) -> list[bool]:
        """Whether evidence supports a sub-fact, for n pairs of (sub-fact, evidence)."""
        ...


def item_of(row: CAQARow) -> AttributionItem:
    """What an evaluator sees of a row."""
    return AttributionItem(row.question, row.answer, row.evidence)


def in_pieces(
    ask: Callable[[Sequence[ItemT]], list[SaidT]],
    items: Sequence[ItemT],
    size: int | None,
    tell: Callable[[int, int], None],
) -> list[SaidT]:
    """Ask an evaluator for all items, ``size`` of them at once, and tell after each piece.

    Args:
        ask: A method of the evaluator.
        items: What it is asked.
        size: Most items of a piece; None asks for all at once.
        tell: Called with (done, total), first with 0 done.
    """
    said: list[SaidT] = []
    tell(0, len(items))
    for start in range(0, len(items), size or max(1, len(items))):
        said += ask(items[start : start + size] if size else items)
        tell(len(said), len(items))
    return said


class JudgeEvaluator:
    """An attribution judge as an evaluator, such as the shipped head or a lifted NLI judge.

    Args:
        judge: The judge.
        name: Name for the tables; the judge's own by default.
    """

    categories = tuple(Category)
    at_once = None

    def __init__(self, judge: AttributionJudge, name: str | None = None) -> None:
        self._judge = judge
        self._name = name

    @property
    def name(self) -> str:
        """Name for the tables."""
        return self._name or self._judge.name

    def categorise(self, items: Sequence[AttributionItem]) -> list[Category | None]:
        """The judge's likeliest category of n items."""
        return [judgement.category for judgement in self._judge.attribute(items)]

    def supports(self, facts: Sequence[tuple[str, tuple[str, ...]]]) -> list[bool]:
        """Supportive is true, every other category false (App. C)."""
        items = [AttributionItem("", fact, evidence) for fact, evidence in facts]
        return [label is Category.SUPPORTIVE for label in self.categorise(items)]


class AutoISEvaluator:
    """An NLI judge in the form of AutoIS: citation as premise, question and answer as hypothesis.

    It tells supportive from not supportive; its other categories have no figure (Table 6).
    """

    categories = (Category.SUPPORTIVE,)
    at_once = None

    def __init__(self, nli: NLIJudge) -> None:
        self._nli = nli

    @property
    def name(self) -> str:
        """Name for the tables."""
        return f"autois:{self._nli.name}"

    def categorise(self, items: Sequence[AttributionItem]) -> list[Category | None]:
        """Supportive where the citation entails question and answer."""
        pairs = [Pair(" ".join(i.evidence), f"{i.question} {i.answer}".strip()) for i in items]
        return [
            Category.SUPPORTIVE if score.label == "entailment" else _NOT_SUPPORTIVE
            for score in self._nli.judge(pairs)
        ]

    def supports(self, facts: Sequence[tuple[str, tuple[str, ...]]]) -> list[bool]:
        """Whether the citation entails the sub-fact."""
        scores = self._nli.judge([Pair(" ".join(evidence), fact) for fact, evidence in facts])
        return [score.label == "entailment" for score in scores]


class ChatModel(Protocol):
    """A chat model, as far as evaluators need one: n prompts in, n replies out."""

    @property
    def name(self) -> str:
        """Name of the model."""
        ...

    def reply(self, prompts: Sequence[str]) -> list[str]:
        """Answer n prompts at temperature 0.

        Raises:
            ModelError: The model cannot be reached or refused.
        """
        ...


class ModelChat:
    """A ``LanguageModel`` of the engine as a chat model of the evaluators."""

    def __init__(self, model: LanguageModel) -> None:
        self._model = model

    @property
    def name(self) -> str:
        """Name of the model."""
        return self._model.name

    def reply(self, prompts: Sequence[str]) -> list[str]:
        """Answer n prompts at temperature 0, a few at the same time."""
        return asyncio.run(self._all(prompts))

    async def _all(self, prompts: Sequence[str]) -> list[str]:
        gate = asyncio.Semaphore(_AT_ONCE)

        async def one(prompt: str) -> str:
            async with gate:
                # A model prompted by completion may begin its reply with the line break that
                # ends its samples; it then goes on from the break.
                return await self._one(prompt) or await self._one(f"{prompt}\n")

        return list(await asyncio.gather(*(one(prompt) for prompt in prompts)))

    async def _one(self, prompt: str) -> str:
        request = SampleRequest(
            prompt=Prompt.from_text(prompt), temperature=0.0, max_tokens=_REPLY_TOKENS
        )
        return (await self._model.sample(request))[0].text.strip()


class ChatEvaluator:
    """A chat model with the prompts of Tables 12 and 13.

    Args:
        chat: The model.
        form: Which input form; AttrScore's has no partially supportive.
        shots: Demonstrations; none is zero-shot.
    """

    at_once = 4 * _AT_ONCE

    def __init__(
        self, chat: ChatModel, *, form: Form = Form.GPT, shots: Sequence[CAQARow] = ()
    ) -> None:
        self._chat = chat
        self._form = form
        self._shots = tuple(shots)
        if form is Form.ATTRSCORE:
            self._shots = tuple(
                row for row in shots if row.category is not Category.PARTIALLY_SUPPORTIVE
            )

    @property
    def name(self) -> str:
        """Model, form and number of demonstrations."""
        most = max(Counter(row.category for row in self._shots).values(), default=0)
        setting = f"{most}-shot" if most else "zero-shot"
        return f"{self._chat.name} {setting} ({self._form})"

    @property
    def categories(self) -> tuple[Category, ...]:
        """All four; three in AttrScore's form."""
        skipped = Category.PARTIALLY_SUPPORTIVE if self._form is Form.ATTRSCORE else None
        return tuple(category for category in Category if category is not skipped)

    def categorise(self, items: Sequence[AttributionItem]) -> list[Category | None]:
        """The category each reply names; of long evidence the start is read."""
        prompts = [
            category_prompt(
                item._replace(evidence=_shortened(item.evidence)), self._form, self._shots
            )
            for item in items
        ]
        return [read_category(reply) for reply in self._chat.reply(prompts)]

    def supports(self, facts: Sequence[tuple[str, tuple[str, ...]]]) -> list[bool]:
        """Whether the reply to the true-or-false prompt says true; AttrScore by its own label."""
        if self._form is Form.ATTRSCORE:
            items = [AttributionItem("", fact, evidence) for fact, evidence in facts]
            return [label is Category.SUPPORTIVE for label in self.categorise(items)]
        replies = self._chat.reply(
            [fact_prompt(fact, _shortened(evidence)) for fact, evidence in facts]
        )
        return [read_truth(reply) is True for reply in replies]


def _shortened(evidence: Sequence[str]) -> tuple[str, ...]:
    """The pieces of evidence that fit, the last of them cut."""
    kept: list[str] = []
    room = _EVIDENCE_CHARACTERS
    for piece in evidence:
        if room <= 0:
            break
        kept.append(piece[:room])
        room -= len(piece)
    return tuple(kept)


def create_evaluator(name: str, *, shots: Sequence[CAQARow] = ()) -> Evaluator:
    """Make an evaluator by name.

    Args:
        name: A judge of ``judges.registry`` (``onnx``, ``transformers:MODEL``, …); ``nli:NAME``
            lifts its NLI to the categories; ``autois:NAME`` takes the AutoIS form;
            ``chat-…``, ``short-…`` and ``attrscore-…`` prompt a language model in one of the
            forms of Table 12 (GPT models, other evaluators, AttrScore), with ``zero``, ``few``,
            ``1``, ``2`` or ``3`` demonstrations of each category, such as
            ``short-zero:openai:NAME``; without a name that of ``OPENAI_BASE_URL``;
            ``classifier:FOLDER`` is a fine-tuned one.
        shots: Rows to take demonstrations from.

    Raises:
        ConfigError: The name is unknown, or demonstrations are wanted without rows.
    """
    from judges.lifting import LiftedJudge
    from judges.registry import create_attribution, create_nli, hint, kinds

    kind, _, rest = name.partition(":")
    if kind == "nli":
        return JudgeEvaluator(LiftedJudge(create_nli(rest or "onnx")))
    if kind == "autois":
        return AutoISEvaluator(create_nli(rest or "onnx"))
    if kind == "classifier":
        from benchmarks.caqa.finetune import ClassifierJudge

        return JudgeEvaluator(ClassifierJudge(rest))
    if kind in _KINDS:
        form, _, count = kind.partition("-")
        shown = _SHOTS[count or "zero"]
        if shown and not shots:
            raise ConfigError(f"{name!r} needs training rows to show; give --train")
        return ChatEvaluator(
            ModelChat(_model(rest)),
            form=_FORMS[form],
            shots=demonstrations(shots, shown) if shown else (),
        )
    if kind not in kinds():
        raise ConfigError(f"there is no evaluator {name!r}; {hint(name, (*kinds(), *_KINDS))}")
    return JudgeEvaluator(create_attribution(name))


def _model(name: str) -> LanguageModel:
    from guardrail.models import default_model, open_model

    return open_model(name, timeout_s=PATIENCE_S) if name else default_model()
