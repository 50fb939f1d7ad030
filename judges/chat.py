"""Any chat model behind an OpenAI-compatible endpoint as a judge, at temperature 0."""

from __future__ import annotations

import math
import os
import re
import threading
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING

from pydantic import ValidationError

from guardrail.core.errors import ConfigError, JudgeError
from guardrail.core.http_clients import attempting, open_client, openai_errors, read_in_time
from guardrail.core.types import (
    Category,
    Grounding,
    Judgement,
    NLIScores,
    StatementScore,
    Usage,
    WordScore,
)
from guardrail.core.workers import time_left, within
from judges.base import AttributionItem, GroundingItem, NLITraits, Pair
from judges.batching import distinct
from judges.chat_prompts import (
    CategoryReply,
    Choice,
    Completion,
    DetailReply,
    Read,
    TokenUsage,
    attribution_prompt,
    evidence_of,
    messages,
    read_category,
    read_detail,
    read_label,
)
from judges.settings import SPENT, Account, Calibration, ChatSettings, Cost

if TYPE_CHECKING:
    import openai
    from openai import OpenAI

DETAIL_TOKENS = 240
"""Room for the JSON of one sentence, or for a category with a short explanation."""

NAMED_SCORE = 0.9
"""Score of a statement, or of a word, that the reply names."""

NO_TIME = "it gave no answer in time"


class ChatJudge:
    """A chat model that judges sentences, pairs and the categories of CAQA.

    Each sentence is a call of its own, so that no other sentence can change its verdict. The calls
    of one answer share a prefix of instructions and evidence, and are sent concurrently. Replies
    are cached before calibration, so that ``calibration`` may change.

    Args:
        model: Name of the model at the endpoint.
        base_url: The endpoint, in place of that of ``settings``.
        settings: Endpoint, key, calibration and limits.
        detail: Whether ``ground`` asks for evidence numbers and words at fault next to the label,
            which takes more tokens of the reply.
        examples: For the few-shot prompt of ``attribute`` (CAQA Table 13), usually one item of
            each category.
        timeout_s: Longest wait for one reply, in place of that of ``settings``.
        max_retries: Further attempts at the endpoint after a failed one, within the same wait.
    """

    follows_instructions = True
    """A text may try to instruct the model; see ``judges.second_opinion``."""

    traits = NLITraits(premise_chars=24_000, evidence_chars=24_000)
    """Some 6,000 tokens of evidence."""

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        settings: ChatSettings | None = None,
        detail: bool = True,
        examples: Sequence[tuple[AttributionItem, Category]] = (),
        timeout_s: float | None = None,
        max_retries: int = 2,
    ) -> None:
        self.name = f"chat:{model}"
        self.settings = settings or ChatSettings()
        self.calibration = self.settings.calibration
        self._model = model
        self._base_url = base_url or self.settings.base_url
        self._detail = detail
        self._examples = tuple(examples)
        self._timeout_s = timeout_s or self.settings.timeout_s
        self._max_retries = max_retries
        self._client: OpenAI | None = None
        self._pool: ThreadPoolExecutor | None = None
        self._lock = threading.Lock()
        self._refused: set[str] = set()
        self._counts: Counter[str] = Counter()
        self._spent: deque[tuple[float, Cost]] = deque()
        self._cache: OrderedDict[tuple[bool, GroundingItem], Grounding] = OrderedDict()

    def warm_up(self) -> None:
        """Open the client; nothing is sent.

        Raises:
            ConfigError: There is no API key.
        """
        with self._lock:
            if self._client is None:
                self._client = open_client(
                    self._base_url,
                    os.environ.get(self.settings.api_key_env),
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
        for item in _given(self.answers(items, detail=False)):
            claims = max(1e-9, 1.0 - item.no_claim)
            entailment, against = item.supported / claims, item.contradicted / claims
            found.append(
                NLIScores(
                    entailment=min(1.0, entailment),
                    neutral=max(0.0, 1.0 - entailment - against),
                    contradiction=min(1.0, against),
                )
            )
        return found

    def ground(self, items: Sequence[GroundingItem]) -> list[Grounding]:
        """Judge n sentences; see ``GroundingJudge``."""
        return _given(self.answers(items))

    def attribute(self, items: Sequence[AttributionItem]) -> list[Judgement]:
        """Judge n items with the prompts of CAQA (5.2); see ``AttributionJudge``."""
        self.warm_up()
        wanted, inverse = distinct(items)
        assert self._pool is not None
        judgements = list(self._pool.map(self._attribution, wanted))
        return [judgements[i] for i in inverse]

    def estimate(self, item: GroundingItem) -> Cost:
        """Estimated cost of one call on a sentence."""
        reply = DETAIL_TOKENS // 4 if self._detail else 1
        return Cost(1, _tokens(messages(item, detail=self._detail), reply))

    def answers(
        self,
        items: Sequence[GroundingItem],
        accounts: Sequence[Account] = (),
        *,
        detail: bool | None = None,
    ) -> list[Grounding | JudgeError]:
        """Judge n sentences within the time left; an error for each that has no answer.

        Args:
            items: The sentences.
            accounts: Who pays for further calls on each, [n]; the first one is paid for.
            detail: In place of that of the judge.
        """
        self.warm_up()
        detail = self._detail if detail is None else detail
        pool, until = self._pool, time.monotonic() + time_left()
        assert pool is not None
        found: dict[GroundingItem, Grounding | JudgeError] = {}
        tasks: dict[Future[Grounding | JudgeError], GroundingItem] = {}
        payers = dict(zip(items, accounts, strict=True)) if accounts else {}
        for item in dict.fromkeys(items):
            if (known := self._cache.get((detail, item))) is not None:
                found[item] = known
            else:
                tasks[pool.submit(self._ask, item, detail, until, payers.get(item))] = item
        left = time_left()
        done, _ = wait(tasks, None if math.isinf(left) else left)
        for task, item in tasks.items():
            if task not in done:
                task.cancel()
            found[item] = task.result() if task in done else JudgeError(f"{self.name}: {NO_TIME}")
        with self._lock:
            for item, answer in found.items():
                if isinstance(answer, Grounding):
                    self._cache[detail, item] = answer
                    self._cache.move_to_end((detail, item))
            while len(self._cache) > 4_096:  # some 20 MB
                self._cache.popitem(last=False)
        return [
            _calibrated(one, self.calibration) if isinstance(one, Grounding) else one
            for one in map(found.__getitem__, items)
        ]

    def _ask(
        self, item: GroundingItem, detail: bool, until: float, account: Account | None
    ) -> Grounding | JudgeError:
        """One call, and a second one if the reply cannot be read."""
        schema = ("verdicts", DetailReply.model_json_schema()) if detail else None
        # A letter, with the quotes or the word that some models put before it.
        chat, room = messages(item, detail=detail), DETAIL_TOKENS if detail else 8
        charge = self._charging(Cost(1, _tokens(chat, room)), account)
        for _ in range(2):
            try:
                choice = self._complete(chat, room, until, charge, schema)
            except (JudgeError, ConfigError) as error:
                return JudgeError(str(error))
            read = (read_detail if detail else read_label)(
                choice.message.content or "", choice.logprobs
            )
            if read is not None:
                return _grounding(item, read)
        return JudgeError(f"{self.name} gave no readable answer on a sentence")

    def _attribution(self, item: AttributionItem) -> Judgement:
        chat = {"user": attribution_prompt(item, examples=self._examples)}
        schema = ("category", CategoryReply.model_json_schema())
        charge = self._charging(Cost(1, _tokens(chat, DETAIL_TOKENS)))
        choice = self._complete(chat, DETAIL_TOKENS, math.inf, charge, schema)
        reply = choice.message.content or ""
        category = read_category(reply)
        scores = {other: float(other is category) for other in Category}
        return Judgement(category=category, scores=scores, rationale=reply.strip())

    def _complete(
        self,
        chat: Mapping[str, str],
        max_tokens: int,
        until: float,
        charge: Callable[[], None],
        schema: tuple[str, Mapping[str, object]] | None,
    ) -> Choice:
        """The first choice of a completion.

        An option that the endpoint refuses is left out from then on; the bound of the reply gets
        its other name.

        Raises:
            JudgeError: The endpoint failed, or time or budget have run out.
        """
        import openai

        client, seconds = self._client, min(self._timeout_s, until - time.monotonic())
        if client is None or seconds <= 0:
            raise JudgeError(f"{self.name}: {NO_TIME}")
        options: dict[str, object] = {
            "temperature": 0,
            "max_completion_tokens" if "max_tokens" in self._refused else "max_tokens": max_tokens,
            "logprobs": True,
            "top_logprobs": 5,  # the most that every endpoint allows
        }
        if schema is not None:
            form = {"name": schema[0], "schema": schema[1], "strict": True}
            options["response_format"] = {"type": "json_schema", "json_schema": form}
        options = {name: value for name, value in options.items() if name not in self._refused}
        with within(seconds), attempting(charge), openai_errors(self.name, JudgeError):
            try:
                with client.chat.completions.with_streaming_response.create(  # type: ignore[call-overload]
                    model=self._model,
                    messages=[{"role": role, "content": text} for role, text in chat.items()],
                    timeout=seconds,
                    **options,
                ) as reply:
                    sent = read_in_time(reply)
            except openai.APITimeoutError as error:
                late = f"{self.name}: {NO_TIME}"
                if seconds == self._timeout_s:
                    late += (
                        f", {seconds:g} s; for a slow server raise timeout_s of [chat] or lower "
                        "its concurrency"
                    )
                raise JudgeError(late) from error
            except (openai.BadRequestError, openai.UnprocessableEntityError) as error:
                refused = _refused(error, options)
                if not refused:
                    raise
                self._refused |= refused
                sent = None
        if sent is None:
            return self._complete(chat, max_tokens, until, charge, schema)
        try:
            completion = Completion.model_validate_json(sent)
        except ValidationError as error:
            raise JudgeError(f"{self.name} gave a malformed reply") from error
        self._count(completion.usage or TokenUsage())
        return completion.choices[0]

    def _charging(self, cost: Cost, account: Account | None = None) -> Callable[[], None]:
        """Charge each attempt to the minute, and each after the first to an account.

        Raises:
            OpenAIError: By what is returned; a budget is spent.
        """
        import openai

        first = True

        def charge() -> None:
            nonlocal first
            if account and not first and not account.pays({object(): cost}):
                raise openai.OpenAIError(SPENT)
            first = False
            now = time.monotonic()
            with self._lock:
                while self._spent and now - self._spent[0][0] > 60.0:
                    self._spent.popleft()
                if not self.settings.per_minute.allows([cost, *(one for _, one in self._spent)]):
                    raise openai.OpenAIError("the budget of this minute is spent")
                self._spent.append((now, cost))

        return charge

    def _count(self, usage: TokenUsage) -> None:
        with self._lock:
            self._counts["calls"] += 1
            self._counts["prompt_tokens"] += usage.prompt_tokens or 0
            self._counts["reply_tokens"] += usage.completion_tokens or 0
            details = usage.prompt_tokens_details
            self._counts["cached_tokens"] += (details and details.cached_tokens) or 0


def _refused(error: openai.APIStatusError, options: Collection[str]) -> set[str]:
    """The options that an endpoint says it does not take; none if the prompt is too long.

    The bound of the reply counts only if the message says that the option itself is not known.
    """
    message = error.message
    if re.search(r"(?i)context.{0,3}(?:length|size|window)", message):
        return set()
    named = {name for name in options if re.search(rf"(?<!\w){name}(?!\w)", message)}
    for bound in named & {"max_tokens", "max_completion_tokens"}:
        no = r"(?:un|not )(?:supported|permitted|known|expected|recogni[sz]ed)"
        near = rf"(?i){no}[^.]{{0,40}}\b{bound}\b|\b{bound}\b[^.]{{0,60}}{no}"
        if bound != "max_tokens" or not re.search(near, message):
            named.discard(bound)
    if named & {"logprobs", "top_logprobs"}:
        named |= {"logprobs", "top_logprobs"}
    return named


def _tokens(chat: Mapping[str, str], reply: int) -> int:
    """Estimated tokens of a call: some four letters of English, or one character of Chinese."""
    size = sum(len(text.encode(errors="replace")) for text in chat.values())
    return math.ceil(size / 3.5) + reply


def _given(found: Sequence[Grounding | JudgeError]) -> list[Grounding]:
    """The groundings.

    Raises:
        JudgeError: One is missing.
    """
    for item in found:
        if isinstance(item, JudgeError):
            raise item
    return [item for item in found if isinstance(item, Grounding)]


def _grounding(item: GroundingItem, read: Read) -> Grounding:
    """The grounding that a reply states, before calibration."""
    evidence = evidence_of(item)
    supported, unsupported, contradicted, none = read.probabilities
    named = {evidence[number] for number in read.evidence if 0 <= number < len(evidence)}
    against = contradicted > supported
    score = StatementScore(carries=NAMED_SCORE * (not against), conflicts=NAMED_SCORE * against)
    other = StatementScore(carries=0.0, conflicts=0.0)
    statements = tuple(score if text in named else other for text in item.statements)
    return Grounding(
        supported=supported,
        unsupported=unsupported,
        contradicted=contradicted,
        no_claim=none,
        words=tuple(_words(item.sentence, read.words, against=contradicted > unsupported)),
        statements=statements if named else (),
    )


def _words(sentence: str, words: Sequence[str], *, against: bool) -> Iterator[WordScore]:
    """Positions of the words at fault in a sentence; words that it does not contain are skipped."""
    missing, contradicted = (0.0, NAMED_SCORE) if against else (NAMED_SCORE, 0.0)
    for word in dict.fromkeys(words):
        start = sentence.find(word) if word.strip() else -1
        if start >= 0:
            end = start + len(word)
            yield WordScore(start=start, end=end, missing=missing, contradicted=contradicted)


def _calibrated(grounding: Grounding, by: Calibration) -> Grounding:
    """A grounding with the probabilities of its claim calibrated."""
    labels, claims = ("supported", "unsupported", "contradicted"), 1.0 - grounding.no_claim
    shares = by.shares([getattr(grounding, label) / max(1e-6, claims) for label in labels])
    update = {label: share * claims for label, share in zip(labels, shares, strict=True)}
    return grounding.model_copy(update=update)
