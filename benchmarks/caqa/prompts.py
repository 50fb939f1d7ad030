"""The evaluators' prompts and how a category is read from a reply (CAQA Tables 12, 13, App. C)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import StrEnum

from benchmarks.caqa.rows import CAQARow
from guardrail.core.types import Category
from judges.base import AttributionItem
from judges.chat_prompts import FEW_SHOT, TASK, ZERO_SHOT

__all__ = [
    "Form",
    "category_prompt",
    "demonstrations",
    "fact_prompt",
    "read_category",
    "read_truth",
]


class Form(StrEnum):
    """Which of the paper's input forms a prompt takes.

    Attributes:
        GPT: Definitions of the four categories, for large chat models.
        SHORT: One line of instruction with four options, for other models and fine-tuning.
        ATTRSCORE: The same with AttrScore's three options.
    """

    GPT = "gpt"
    SHORT = "short"
    ATTRSCORE = "attrscore"


_NAMES = {
    Category.SUPPORTIVE: "Supportive",
    Category.PARTIALLY_SUPPORTIVE: "Insufficient",
    Category.CONTRADICTORY: "Contradictory",
    Category.IRRELEVANT: "Irrelevant",
}

_SHORT = """\
Below is an instruction that describes a task, paired with an input that provides further \
context. Write a response that appropriately completes the request.
Instruction: Verify whether a given reference can support the claim. Options: {options}.
"""
_FACT = (
    "Judge this fact based on the given context.\n\n"
    "Fact: {fact}\nText: {text}\n\nTrue or False?\nOutput:"
)


def category_prompt(
    item: AttributionItem, form: Form = Form.GPT, shots: Sequence[CAQARow] = ()
) -> str:
    """The prompt that asks for the category of one item.

    Args:
        item: Question, answer and evidence.
        form: Which of the paper's forms.
        shots: Demonstrations, one a category in the paper (``demonstrations``); none is zero-shot.
    """
    if form is Form.GPT:
        if not shots:
            return f"{TASK}{ZERO_SHOT}{_gpt_case(item)}"
        shown = "\n".join(
            f"Example {number}:\n{_gpt_case(_item(row))} {_NAMES[row.category]}"
            for number, row in enumerate(shots, 1)
        )
        return f"{TASK}{FEW_SHOT}{shown}\nTest Example:\n{_gpt_case(item)}"
    options = (
        "Attributable, Extrapolatory or Contradictory"
        if form is Form.ATTRSCORE
        else "Supportive, Insufficient, Contradictory or Irrelevant"
    )
    names = {**_NAMES, Category.SUPPORTIVE: "Attributable", Category.IRRELEVANT: "Extrapolatory"}
    names = names if form is Form.ATTRSCORE else _NAMES
    shown = "".join(f"{_short_case(_item(row))} {names[row.category]}\n" for row in shots)
    return f"{_SHORT.format(options=options)}{shown}{_short_case(item)}"


def fact_prompt(fact: str, evidence: Sequence[str]) -> str:
    """The prompt that asks whether evidence supports one sub-fact (App. C)."""
    return _FACT.format(fact=fact, text=" ".join(evidence))


def demonstrations(rows: Sequence[CAQARow], per_category: int = 1) -> tuple[CAQARow, ...]:
    """The first rows of each category, in the paper's order, to show in a few-shot prompt."""
    return tuple(
        row
        for category in Category
        for row in [row for row in rows if row.category is category][:per_category]
    )


def read_category(reply: str) -> Category | None:
    """The category that a reply concludes or else names first; None where it names none.

    A reply that explains itself concludes in the words of the prompt, *relationship category*.
    Reads the words of all forms: *Insufficient*, *Missing* and *Partially supportive* are one,
    *Attributable* is supportive, *Extrapolatory* irrelevant. ``not supportive`` names none.
    """
    concluded = [*_CONCLUDED.finditer(reply)][-1:]
    for match in concluded or _NAMED.finditer(reply):
        if concluded or not match["negated"]:
            word = match["name"].casefold()
            return next(category for start, category in _WORDS if word.startswith(start))
    number = re.match(r"\s*([1-4])\b", reply)
    return list(Category)[int(number[1]) - 1] if number else None


def read_truth(reply: str) -> bool | None:
    """*True* or *False*, whichever a reply names first; None where it names neither."""
    match = re.search(r"\b(true|false)\b", reply, re.IGNORECASE)
    return None if match is None else match[1].casefold() == "true"


_WORDS = (
    ("partial", Category.PARTIALLY_SUPPORTIVE),
    ("insufficient", Category.PARTIALLY_SUPPORTIVE),
    ("missing", Category.PARTIALLY_SUPPORTIVE),
    ("contradict", Category.CONTRADICTORY),
    ("irrelevant", Category.IRRELEVANT),
    ("extrapolat", Category.IRRELEVANT),
    ("support", Category.SUPPORTIVE),
    ("attributable", Category.SUPPORTIVE),
)
_NAME = (
    r"\b(?P<name>partial(?:ly)?(?:[\s_-]+support\w*)?|insufficient|missing|contradict\w*|"
    r"irrelevant|extrapolat\w*|support(?:ive|s|ed)\b|attributable)"
)
_NAMED = re.compile(rf"(?P<negated>\b(?:not|neither|isn't)\s+)?{_NAME}", re.IGNORECASE)
_CONCLUDED = re.compile(rf"relationship category\W+(?:is\b\W+)?{_NAME}", re.IGNORECASE)


def _item(row: CAQARow) -> AttributionItem:
    return AttributionItem(row.question, row.answer, row.evidence)


def _gpt_case(item: AttributionItem) -> str:
    reference = " ".join(item.evidence)
    return (
        f"Question: {item.question}\nAnswer: {item.answer}\nReference: {reference}\n"
        "Relationship Category:"
    )


def _short_case(item: AttributionItem) -> str:
    reference = " ".join(item.evidence)
    return f"Claim: {item.question} {item.answer}\nReference: {reference}\nResponse:"
