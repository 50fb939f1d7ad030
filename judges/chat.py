"""Any chat model as a judge, with the prompts of CAQA (Tables 12 and 13)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ValidationError

from guardrail.core.errors import ConfigError, JudgeError
from guardrail.core.http_clients import reading_environment
from guardrail.core.types import Category, Judgement, NLIScores
from judges.base import AttributionItem, Pair
from judges.batching import distinct

if TYPE_CHECKING:
    from openai import OpenAI

__all__ = [
    "FEW_SHOT",
    "TASK",
    "ZERO_SHOT",
    "ChatJudge",
    "attribution_prompt",
    "read_category",
    "read_nli_label",
]

MAX_TOKENS = 256
"""Room for a category with a short explanation."""

CONCURRENCY = 8
"""Requests in flight at the same time."""

TASK = """\
Your task is to evaluate the relationship between a provided citation and the \
answer to a specific question. There are four possible types of relationships:
1. Supportive: Choose this if the citation directly confirms or is fully in alignment with the \
answer, providing all necessary information to substantiate it.
2. Insufficient: Choose this when the citation provides only partial backing for the answer, \
lacking some essential details or evidence needed for full support.
3. Contradictory: Choose this option if the citation is consistent with the intent of the \
question but directly opposes or contradicts the answer.
4. Irrelevant: Select this option if the citation does not match the intent of the question and \
contains information that is not useful for answering.
"""
"""What a chat model is asked for (CAQA Table 12)."""

ZERO_SHOT = """\
For each example provided: First, you need to look at the question given and the answer \
provided. Then, compare them with the content of the citation. Finally, select the appropriate \
relationship category based on whether the citation supports the answer, is missing \
information, contradicts itself, or is irrelevant to the answer.
Example:
"""
"""Goes before an item alone (CAQA Table 12)."""

FEW_SHOT = """\
Please read the examples and choose the most appropriate relationship category for the test \
example.
"""
"""Goes before examples and an item (CAQA Table 12)."""

_NLI_PROMPT = """\
Instruction: Tell how a premise bears on a hypothesis. There are three possible labels:
1. Entailment: the premise implies that the hypothesis is true.
2. Neutral: the premise leaves open whether the hypothesis is true.
3. Contradiction: the premise implies that the hypothesis is false.

Premise: {premise}
Hypothesis: {hypothesis}
Label:"""

_CATEGORY_WORDS: Mapping[Category, str] = {
    Category.SUPPORTIVE: r"support(?:ive|ed|s)?|attributable",
    Category.PARTIALLY_SUPPORTIVE: (
        r"partially[\s_-]support(?:ive|ed|s)?|insufficient|missing|extrapolatory"
    ),
    Category.CONTRADICTORY: r"contradict(?:ory|s|ed|ion)?",
    Category.IRRELEVANT: r"irrelevant",
}

_NLI_WORDS: Mapping[str, str] = {
    "entailment": r"entail(?:ment|s|ed)?",
    "neutral": r"neutral",
    "contradiction": r"contradict(?:ion|ory|s|ed)?",
}

_PAPER_NAMES: Mapping[Category, str] = {
    Category.SUPPORTIVE: "Supportive",
    Category.PARTIALLY_SUPPORTIVE: "Insufficient",
    Category.CONTRADICTORY: "Contradictory",
    Category.IRRELEVANT: "Irrelevant",
}


class _CategoryReply(BaseModel):
    category: Literal["Supportive", "Insufficient", "Contradictory", "Irrelevant"]


class _LabelReply(BaseModel):
    label: Literal["entailment", "neutral", "contradiction"]


class ChatJudge:
    """Judges with a chat model at any OpenAI-compatible endpoint, at temperature 0.

    A chat model gives a label, not a distribution: the chosen label has probability 1.

    Args:
        model: Name of the model at the endpoint.
        base_url: The endpoint; the environment's ``OPENAI_BASE_URL`` or OpenAI by default.
        api_key: Its key; the environment's ``OPENAI_API_KEY`` by default.
        structured: Ask for JSON by schema. An endpoint that refuses is asked in plain text
            from then on.
        examples: For the few-shot prompt (Table 13), usually one item of each category.
        timeout_s: Longest wait for one reply, seconds.
        concurrency: Requests in flight at the same time.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        structured: bool = True,
        examples: Sequence[tuple[AttributionItem, Category]] = (),
        timeout_s: float = 60.0,
        concurrency: int = CONCURRENCY,
    ) -> None:
        self._model = model
        self._base_url = base_url
        self._api_key = api_key
        self._structured = structured
        self._examples = tuple(examples)
        self._timeout = timeout_s
        self._concurrency = concurrency
        self._client: OpenAI | None = None

    @property
    def name(self) -> str:
        """Name of the judge, for the score log."""
        return f"chat:{self._model}"

    def warm_up(self) -> None:
        """Make the client; nothing is sent.

        Raises:
            ConfigError: There is no API key.
        """
        if self._client is not None:
            return
        import openai

        try:
            with reading_environment():
                self._client = openai.OpenAI(
                    base_url=self._base_url,
                    api_key=self._api_key or ("none" if self._base_url else None),
                    timeout=self._timeout,
                )
        except openai.OpenAIError as error:
            raise ConfigError(f"the chat judge cannot be set up: {error}") from error

    def judge(self, pairs: Sequence[Pair]) -> list[NLIScores]:
        """Judge n pairs; see ``NLIJudge``. A reply must name one label."""
        wanted, inverse = distinct(pairs)
        prompts = [
            _NLI_PROMPT.format(premise=pair.premise, hypothesis=pair.hypothesis) for pair in wanted
        ]
        labels = [_nli_label(reply) for reply in self._ask(prompts, _LabelReply)]
        scores = [
            NLIScores(**{name: float(name == label) for name in _NLI_WORDS}) for label in labels
        ]
        return [scores[i] for i in inverse]

    def attribute(self, items: Sequence[AttributionItem]) -> list[Judgement]:
        """Judge n items (CAQA 5.2); see ``AttributionJudge``. A reply must name one category."""
        wanted, inverse = distinct(items)
        prompts = [attribution_prompt(item, examples=self._examples) for item in wanted]
        replies = self._ask(prompts, _CategoryReply)
        judgements = [_judgement(reply) for reply in replies]
        return [judgements[i] for i in inverse]

    def _ask(self, prompts: Sequence[str], schema: type[BaseModel]) -> list[str]:
        self.warm_up()
        if not prompts:
            return []
        with ThreadPoolExecutor(min(self._concurrency, len(prompts))) as pool:
            return list(pool.map(lambda prompt: self._reply(prompt, schema), prompts))

    def _reply(self, prompt: str, schema: type[BaseModel]) -> str:
        import openai

        assert self._client is not None
        options: dict[str, Any] = {}
        if self._structured:
            options["response_format"] = {
                "type": "json_schema",
                "json_schema": {
                    "name": schema.__name__.strip("_"),
                    "schema": schema.model_json_schema() | {"additionalProperties": False},
                    "strict": True,
                },
            }
        try:
            completion = self._client.chat.completions.create(
                model=self._model,
                messages=[{"role": "user", "content": prompt}],
                temperature=0,
                max_tokens=MAX_TOKENS,
                **options,
            )
        except openai.NotFoundError as error:
            raise JudgeError(
                f"the endpoint knows no model {self._model!r}: {error.message}"
            ) from error
        except (openai.BadRequestError, openai.UnprocessableEntityError) as error:
            if self._structured and "response_format" in str(error):
                self._structured = False
                return self._reply(prompt, schema)
            raise JudgeError(f"{self.name} refused the request: {error.message}") from error
        except openai.OpenAIError as error:
            raise JudgeError(f"{self.name} gave no reply: {error}") from error
        text: str | None = completion.choices[0].message.content if completion.choices else None
        if not text:
            raise JudgeError(f"{self.name} gave an empty reply")
        return text


def attribution_prompt(
    item: AttributionItem, *, examples: Sequence[tuple[AttributionItem, Category]] = ()
) -> str:
    """Write the prompt of Table 12 (zero-shot), or of Table 13 where there are examples."""
    if not examples:
        return f"Instruction: {TASK}\n{ZERO_SHOT}{_form(item)}"
    shots = "\n".join(
        f"Example {number}:\n{_form(example)} {_PAPER_NAMES[category]}"
        for number, (example, category) in enumerate(examples, start=1)
    )
    return f"Instruction: {TASK}\n{FEW_SHOT}{shots}\nTest Example:\n{_form(item)}"


def read_category(reply: str) -> Category:
    """Read the category from free text (CAQA 5.2: "using regular expression techniques").

    The category named after "category:" counts, else that of the first line, else the only one
    that the whole reply names.

    Raises:
        JudgeError: The reply names no category, or several.
    """
    return Category(_read(reply, {str(k): v for k, v in _CATEGORY_WORDS.items()}, "category"))


def read_nli_label(reply: str) -> str:
    """Read entailment, neutral or contradiction from free text, as ``read_category`` does.

    Raises:
        JudgeError: The reply names no label, or several.
    """
    return _read(reply, _NLI_WORDS, "label")


def _form(item: AttributionItem) -> str:
    return (
        f"Question: {item.question}\nAnswer: {item.answer}\n"
        f"Reference: {' '.join(item.evidence)}\nRelationship Category:"
    )


def _judgement(reply: str) -> Judgement:
    try:
        name = _CategoryReply.model_validate_json(reply).category
        category = next(c for c, word in _PAPER_NAMES.items() if word == name)
    except ValidationError:
        category = read_category(reply)
    return Judgement(
        category=category,
        scores={other: float(other is category) for other in Category},
        rationale=reply.strip(),
    )


def _nli_label(reply: str) -> str:
    try:
        return _LabelReply.model_validate_json(reply).label
    except ValidationError:
        return read_nli_label(reply)


def _read(reply: str, words: Mapping[str, str], what: str) -> str:
    after = re.search(rf"{what}\W{{1,4}}(.{{1,60}})", reply, re.IGNORECASE | re.DOTALL)
    first = reply.strip().split("\n", 1)[0]
    for part in (after.group(1) if after else "", first, reply):
        named = _named(part, words)
        if len(named) == 1:
            return named.pop()
    raise JudgeError(f"the judge's reply names no single {what}: {reply.strip()[:200]!r}")


def _named(text: str, words: Mapping[str, str]) -> set[str]:
    """Labels that a text names and does not deny; longer names win over those inside them."""
    rest, named = text, set()
    for label, pattern in sorted(words.items(), key=lambda entry: -len(entry[1])):
        whole = re.compile(rf"\b(?P<no>(?:not|isn't|neither|nor|un)[\s-]+)?(?:{pattern})\b", re.I)
        if any(not match["no"] for match in whole.finditer(rest)):
            named.add(label)
        rest = whole.sub(" ", rest)
    return named
