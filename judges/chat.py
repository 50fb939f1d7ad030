"""Any chat model behind an OpenAI-compatible endpoint as a judge, at temperature 0."""

from __future__ import annotations

import math
import os
import threading
import time
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, Any, NamedTuple

from guardrail.core.errors import ConfigError, JudgeError
from guardrail.core.http_clients import open_client, openai_errors
from guardrail.core.types import (
    Category,
    Grounding,
    Judgement,
    NLIScores,
    StatementScore,
    Usage,
    WordScore,
)
from guardrail.core.workers import time_left
from judges.base import AttributionItem, GroundingItem, NLITraits, Pair
from judges.batching import distinct
from judges.calibration import Calibration
from judges.chat_prompts import (
    ARRAY_SCHEMA,
    CATEGORY_SCHEMA,
    Read,
    array_prompt,
    attribution_prompt,
    evidence_of,
    label_prompt,
    messages,
    read_array,
    read_category,
    read_label,
)
from judges.settings import ChatSettings

if TYPE_CHECKING:
    from openai import OpenAI
    from openai.types import CompletionUsage
    from openai.types.chat.chat_completion import Choice

__all__ = ["ChatJudge", "Cost", "calibrated", "given"]

READ_CHARS = 24_000
"""Most characters of evidence in a prompt, some 6,000 tokens."""

ARRAY_SIZE = 20
"""Most sentences of one call in the form ``array``; further ones go to further calls."""

LABEL_TOKENS = 8
"""Room for a letter, with the quotes or the word that some models put before it."""

ITEM_TOKENS = 120
"""Room for the JSON of one sentence, or for a category with a short explanation."""

TOP = 5
"""Alternatives asked for at each token: the most that every endpoint allows."""

CHARS_PER_TOKEN = 3.5
"""For estimates before a call; English has some four characters a token."""

MINUTE_S = 60.0

CLAIM_LABELS = ("supported", "unsupported", "contradicted")

SURE = 0.9
"""Score of a statement, or of a word, that the reply names."""

NO_TIME = "it gave no answer in time"


class Cost(NamedTuple):
    """What calls cost, estimated or counted."""

    calls: int
    tokens: int
    money: float


class ChatJudge:
    """Judges with a chat model.

    Each sentence is judged by a call of its own, so that no other sentence can change its verdict;
    the calls of one answer share a prefix of instructions and evidence, and are sent concurrently.
    In the form ``array`` one call asks about up to 20 sentences.

    Args:
        model: Name of the model at the endpoint.
        base_url: The endpoint, in place of that of ``settings``.
        api_key: Its key, in place of the environment's.
        settings: How to ask.
        examples: For the few-shot prompt of ``attribute`` (CAQA Table 13), usually one item of
            each category.
        timeout_s: Longest wait for one reply, seconds.
        max_retries: Further attempts at the endpoint after a failed one.
    """

    follows_instructions = True
    """A text may try to instruct the model; see ``judges.second_opinion``."""

    traits = NLITraits(premise_chars=READ_CHARS, evidence_chars=READ_CHARS)

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        settings: ChatSettings | None = None,
        examples: Sequence[tuple[AttributionItem, Category]] = (),
        timeout_s: float = 60.0,
        max_retries: int = 2,
    ) -> None:
        self.settings = settings or ChatSettings()
        self._model = model
        self._base_url = base_url or self.settings.base_url
        self._api_key = api_key or os.environ.get(self.settings.api_key_env)
        self._examples = tuple(examples)
        self._timeout_s = timeout_s
        self._max_retries = max_retries
        self._client: OpenAI | None = None
        self._pool: ThreadPoolExecutor | None = None
        self._lock = threading.Lock()
        self._refused: set[str] = set()
        self._counts: Counter[str] = Counter()
        self._spent: deque[tuple[float, Cost]] = deque()

    @property
    def name(self) -> str:
        """Name of the judge, for the score log."""
        return f"chat:{self._model}"

    @property
    def form(self) -> str:
        """The form of the prompts."""
        return self.settings.form or "detail"

    def warm_up(self) -> None:
        """Open the client; nothing is sent.

        Raises:
            ConfigError: There is no API key.
        """
        with self._lock:
            if self._client is None:
                self._client = open_client(
                    self._base_url,
                    self._api_key,
                    timeout_s=self._timeout_s,
                    max_retries=self._max_retries,
                )
                self._pool = ThreadPoolExecutor(self.settings.concurrency, "chat-judge")

    def close(self) -> None:
        """Close the connections; calls in flight end by their time limit."""
        with self._lock:
            client, pool, self._client, self._pool = self._client, self._pool, None, None
        if pool is not None:
            pool.shutdown(wait=False, cancel_futures=True)
        if client is not None:
            client.close()

    def in_use(self) -> Usage:
        """Calls, tokens of prompts and replies, and prompt tokens that the endpoint had cached."""
        with self._lock:
            return Usage(counts=dict(self._counts))

    def judge(self, pairs: Sequence[Pair]) -> list[NLIScores]:
        """Judge n pairs; see ``NLIJudge``."""
        items = [GroundingItem((pair.premise,), pair.hypothesis) for pair in pairs]
        found = []
        for item in given(self._answers(items, "label")):
            claims = max(1e-9, 1.0 - item.no_claim)
            entailment, against = item.supported / claims, item.contradicted / claims
            neutral = max(0.0, 1.0 - entailment - against)
            found.append(
                NLIScores(
                    entailment=min(1.0, entailment),
                    neutral=neutral,
                    contradiction=min(1.0, against),
                )
            )
        return found

    def ground(self, items: Sequence[GroundingItem]) -> list[Grounding]:
        """Judge n sentences; see ``GroundingJudge``."""
        return given(self.answers(items))

    def answers(self, items: Sequence[GroundingItem]) -> list[Grounding | JudgeError]:
        """Judge n sentences within the time left; an error for each that has no answer."""
        return self._answers(items, self.form)

    def attribute(self, items: Sequence[AttributionItem]) -> list[Judgement]:
        """Judge n items with the prompts of CAQA (5.2); see ``AttributionJudge``."""
        self.warm_up()
        wanted, inverse = distinct(items)
        assert self._pool is not None
        judgements = list(self._pool.map(self._attribution, wanted))
        return [judgements[i] for i in inverse]

    def estimate(self, items: Sequence[GroundingItem]) -> Cost:
        """What asking about the sentences of one answer is going to cost."""
        calls = list(_calls(items, self.form))
        characters = sum(len(_text(evidence, some, self.form)) for evidence, some in calls)
        reply = 1 if self.form == "label" else ITEM_TOKENS // 2 * len(items)
        prompt = math.ceil(characters / CHARS_PER_TOKEN)
        return Cost(len(calls), prompt + reply, self._money(prompt, reply))

    def _answers(self, items: Sequence[GroundingItem], form: str) -> list[Grounding | JudgeError]:
        self.warm_up()
        pool, until = self._pool, time.monotonic() + time_left()
        assert pool is not None
        tasks: dict[Future[dict[GroundingItem, Grounding | JudgeError]], list[GroundingItem]] = {
            pool.submit(self._ask, evidence, some, form, until): some
            for evidence, some in _calls(list(dict.fromkeys(items)), form)
        }
        left = time_left()
        done, _ = wait(tasks, None if math.isinf(left) else left)
        found: dict[GroundingItem, Grounding | JudgeError] = {}
        for task, some in tasks.items():
            if task in done:
                found.update(task.result())
            else:
                task.cancel()
                found.update(dict.fromkeys(some, JudgeError(f"{self.name}: {NO_TIME}")))
        return [found[item] for item in items]

    def _ask(
        self, evidence: tuple[str, ...], items: list[GroundingItem], form: str, until: float
    ) -> dict[GroundingItem, Grounding | JudgeError]:
        """One call, and a second one for the sentences whose reply cannot be read."""
        found: dict[GroundingItem, Grounding | JudgeError] = {}
        for _ in range(2):
            missing = [item for item in items if not isinstance(found.get(item), Grounding)]
            if not missing:
                break
            try:
                read = self._read(evidence, missing, form, until)
            except (JudgeError, ConfigError) as error:
                found.update(dict.fromkeys(missing, JudgeError(str(error))))
                break
            for number, item in enumerate(missing):
                found[item] = (
                    self._grounding(item, evidence, read[number])
                    if number in read
                    else JudgeError(f"{self.name} gave no readable answer on a sentence")
                )
        return found

    def _read(
        self, evidence: tuple[str, ...], items: list[GroundingItem], form: str, until: float
    ) -> dict[int, Read]:
        chat = _chat(evidence, items, form)
        if form == "label":
            choice = self._complete(chat, LABEL_TOKENS, until)
            try:
                return {0: read_label(choice.message.content or "", choice.logprobs)}
            except JudgeError:
                return {}
        room = ITEM_TOKENS * (len(items) + 1)
        choice = self._complete(chat, room, until, ("verdicts", ARRAY_SCHEMA))
        return read_array(choice.message.content or "", choice.logprobs, len(items))

    def _attribution(self, item: AttributionItem) -> Judgement:
        prompt = attribution_prompt(item, examples=self._examples)
        chat = [{"role": "user", "content": prompt}]
        choice = self._complete(chat, 2 * ITEM_TOKENS, math.inf, ("category", CATEGORY_SCHEMA))
        reply = choice.message.content or ""
        category = read_category(reply)
        scores = {other: float(other is category) for other in Category}
        return Judgement(category=category, scores=scores, rationale=reply.strip())

    def _complete(
        self,
        chat: list[dict[str, str]],
        max_tokens: int,
        until: float,
        schema: tuple[str, Mapping[str, object]] | None = None,
    ) -> Choice:
        """The first choice of a completion.

        An option that the endpoint refuses is left out from then on.

        Raises:
            JudgeError: The endpoint failed, or time or budget have run out.
        """
        import openai

        client, seconds = self._client, min(self._timeout_s, until - time.monotonic())
        if client is None or seconds <= 0:
            raise JudgeError(f"{self.name}: {NO_TIME}")
        options: dict[str, Any] = {
            "temperature": 0,
            "max_tokens": max_tokens,
            "logprobs": True,
            "top_logprobs": TOP,
        }
        if schema is not None:
            form = {"name": schema[0], "schema": schema[1], "strict": True}
            options["response_format"] = {"type": "json_schema", "json_schema": form}
        options = {name: value for name, value in options.items() if name not in self._refused}
        self._reserve(sum(len(message["content"]) for message in chat), max_tokens)
        with openai_errors(self.name, JudgeError):
            try:
                completion = client.chat.completions.create(
                    model=self._model,
                    messages=chat,  # type: ignore[arg-type]
                    timeout=seconds,
                    **options,
                )
            except (openai.BadRequestError, openai.UnprocessableEntityError) as error:
                refused = {name for name in options if name in error.message}
                if not refused:
                    raise
                if "logprobs" in error.message:
                    refused |= {"logprobs", "top_logprobs"}
                self._refused |= refused
                completion = None
        if completion is None:
            return self._complete(chat, max_tokens, until, schema)
        self._count(completion.usage)
        if not completion.choices:
            raise JudgeError(f"{self.name} gave no reply")
        return completion.choices[0]

    def _reserve(self, characters: int, reply: int) -> None:
        """Count a call against the budget of this minute.

        Raises:
            JudgeError: It is spent.
        """
        now = time.monotonic()
        prompt = math.ceil(characters / CHARS_PER_TOKEN)
        with self._lock:
            while self._spent and now - self._spent[0][0] > MINUTE_S:
                self._spent.popleft()
            costs = [cost for _, cost in self._spent]
            cost = Cost(1, prompt + reply, self._money(prompt, reply))
            total = [sum(amounts) for amounts in zip(*costs, cost, strict=True)]
            if not self.settings.per_minute.allows(*total):
                raise JudgeError(f"{self.name}: the budget of this minute is spent")
            self._spent.append((now, cost))

    def _count(self, usage: CompletionUsage | None) -> None:
        details = getattr(usage, "prompt_tokens_details", None)
        with self._lock:
            self._counts["calls"] += 1
            self._counts["prompt_tokens"] += getattr(usage, "prompt_tokens", None) or 0
            self._counts["reply_tokens"] += getattr(usage, "completion_tokens", None) or 0
            self._counts["cached_tokens"] += getattr(details, "cached_tokens", None) or 0

    def _money(self, prompt: int, reply: int) -> float:
        in_price, out_price = self.settings.price
        return (prompt * in_price + reply * out_price) / 1e6

    def _grounding(self, item: GroundingItem, evidence: Sequence[str], read: Read) -> Grounding:
        supported, unsupported, contradicted, none = read.probabilities
        named = {evidence[number] for number in read.evidence if 0 <= number < len(evidence)}
        against = contradicted > supported
        score = StatementScore(carries=SURE * (not against), conflicts=SURE * against)
        other = StatementScore(carries=0.0, conflicts=0.0)
        grounding = Grounding(
            supported=supported,
            unsupported=unsupported,
            contradicted=contradicted,
            no_claim=none,
            words=tuple(_words(item.sentence, read.words, against=contradicted > unsupported)),
            statements=tuple(score if text in named else other for text in item.statements)
            if named
            else (),
        )
        return calibrated(grounding, self.settings.calibration)


def calibrated(grounding: Grounding, by: Calibration) -> Grounding:
    """A grounding with the probabilities of its claim calibrated."""
    claims = max(1e-6, 1.0 - grounding.no_claim)
    shares = by.shares([getattr(grounding, label) / claims for label in CLAIM_LABELS])
    update = {
        label: share * (1.0 - grounding.no_claim)
        for label, share in zip(CLAIM_LABELS, shares, strict=True)
    }
    return grounding.model_copy(update=update)


def given(found: Sequence[Grounding | JudgeError]) -> list[Grounding]:
    """The groundings.

    Raises:
        JudgeError: One is missing.
    """
    given = [item for item in found if isinstance(item, Grounding)]
    for item in found:
        if isinstance(item, JudgeError):
            raise item
    return given


def _calls(
    items: Sequence[GroundingItem], form: str
) -> Iterator[tuple[tuple[str, ...], list[GroundingItem]]]:
    """The evidence and the sentences of each call."""
    by_evidence: dict[tuple[str, ...], list[GroundingItem]] = {}
    for item in items:
        by_evidence.setdefault(evidence_of(item), []).append(item)
    size = ARRAY_SIZE if form == "array" else 1
    for evidence, some in by_evidence.items():
        for first in range(0, len(some), size):
            yield evidence, some[first : first + size]


def _chat(
    evidence: tuple[str, ...], items: Sequence[GroundingItem], form: str
) -> list[dict[str, str]]:
    return messages(evidence, label_prompt(items[0]) if form == "label" else array_prompt(items))


def _text(evidence: tuple[str, ...], items: Sequence[GroundingItem], form: str) -> str:
    return "".join(message["content"] for message in _chat(evidence, items, form))


def _words(sentence: str, words: Sequence[str], *, against: bool) -> Iterator[WordScore]:
    """Positions of the words at fault in a sentence; words that it does not contain are skipped."""
    for word in dict.fromkeys(words):
        start = sentence.find(word) if word.strip() else -1
        if start >= 0:
            missing, contradicted = (0.0, SURE) if against else (SURE, 0.0)
            yield WordScore(
                start=start,
                end=start + len(word),
                missing=missing,
                contradicted=contradicted,
            )
