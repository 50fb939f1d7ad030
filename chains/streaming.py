"""Streams in which a sentence is released only after it has been judged.

``sentence`` mode releases each sentence with its markers when it is complete and judged; one that
the policy removes is never released. ``buffer`` mode releases nothing before the whole answer has
been judged, as ranking and regeneration need. In a dry run all text is released at once, and the
verdict follows it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable, Iterator
from typing import NamedTuple

from chains.evidence.base import Case
from chains.openai_wire import UnreadableReplyError
from chains.options import MarkerStyle, StreamMode
from chains.rendering import Notes, PlacedCitation, render, render_sentences
from guardrail import CheckSession, Guardrail, Policy
from guardrail.core.incoming import ReasoningFilter
from guardrail.core.types import Action, GuardedAnswer
from guardrail.core.workers import run_sync


class Release(NamedTuple):
    """Judged text that continues the text before; the last release has the whole verdict."""

    text: str
    citations: tuple[PlacedCitation, ...] = ()
    answer: GuardedAnswer | None = None


async def guard_stream(gate: SentenceGate, pieces: AsyncIterable[str]) -> AsyncIterator[Release]:
    """Judge a streamed answer, released as the gate allows; the last release has the verdict."""
    async for piece in pieces:
        release = await gate.feed(piece)
        if release.text:
            yield release
    yield await gate.finish()


def guard_stream_sync(gate: SentenceGate, pieces: Iterable[str]) -> Iterator[Release]:
    """``guard_stream`` over a blocking source, which is read in the caller's own thread."""
    for piece in pieces:
        release = run_sync(gate.feed(piece))
        if release.text:
            yield release
    yield run_sync(gate.finish())


class SentenceGate:
    """Holds a growing answer back until its sentences have been judged.

    Args:
        guard: The guardrail.
        case: The question; or a function that gives it with its evidence at the first text.
        policy: Sentences that it would remove are never released.
        mode: When judged text is released, or a function that gives the mode at the first text.
        style: Style of markers.
        is_data: True for a whole text that is released unjudged; only without ``sentence`` mode.
            Then ``ended_as_data`` is set.

    Attributes:
        judged: Number of sentences judged so far.
    """

    def __init__(
        self,
        guard: Guardrail,
        case: str | Callable[[], Awaitable[Case]],
        *,
        policy: Policy,
        mode: StreamMode | Callable[[], StreamMode] = StreamMode.SENTENCE,
        style: MarkerStyle = MarkerStyle.FOOTNOTES,
        is_data: Callable[[str], bool] | None = None,
    ) -> None:
        # A stream cannot be regenerated.
        self._policy = policy.settled()
        self._dry_run = policy.dry_run
        self._guard = guard
        self._given = case
        self._case: Case | None = None
        self._session: CheckSession | None = None
        self._chosen_mode = mode
        self._mode: StreamMode | None = None  # until the first text
        self._style = style
        self._is_data = is_data
        self.citations: list[PlacedCitation] = []
        self.ended_as_data = False
        self.judged = 0
        self._ended = False
        self._reasoning = ReasoningFilter()
        self._held: list[str] = []
        self._sent = 0
        self._notes = Notes()

    async def feed(self, piece: str) -> Release:
        """Take text; release the sentences it completes, or nothing. Reasoning is left out.

        Raises:
            UnreadableReplyError: The answer had ended.
            GuardrailError: A part cannot be used and the policy says ``raise``.
        """
        if self._ended and piece.strip():
            raise UnreadableReplyError("the model's server sent text after the end of its answer")
        release = await self._feed(self._reasoning.feed(piece))
        self.citations += release.citations
        return release

    async def _feed(self, piece: str) -> Release:
        if self._mode is None and piece.strip():
            chosen = self._chosen_mode
            self._mode = chosen if isinstance(chosen, StreamMode) else chosen()
            if self._mode is StreamMode.SENTENCE and not self._dry_run:
                piece = "".join((*self._held, piece))
        if self._dry_run or self._mode is not StreamMode.SENTENCE:
            self._held.append(piece)
            return Release(piece if self._dry_run else "")
        judged = await (await self._get_session()).aadd(piece) if piece else None
        if judged is None:
            return Release("")
        self.judged += len(judged.sentences)
        case = await self._get_case()
        return await asyncio.to_thread(self._release, case.with_problems(judged))

    async def finish(self) -> Release:
        """Judge and release what is left, and give the verdict on the whole.

        A stream without text, such as a tool call, has no verdict.
        """
        before, last = await self._feed(self._reasoning.finish()), await self._finish()
        self._ended = True  # not before: after a timeout it is still to be judged
        self.judged = len(last.answer.judged) if last.answer else 0
        self.citations += before.citations + last.citations
        return Release(before.text + last.text, before.citations + last.citations, last.answer)

    async def _finish(self) -> Release:
        if self._mode is None:
            return Release("")
        if self._dry_run or self._mode is StreamMode.BUFFER:
            text = "".join(self._held)
            if self._is_data is not None and await asyncio.to_thread(self._is_data, text):
                self.ended_as_data = True
                return Release("" if self._dry_run else text)
            case = await self._get_case()
            answer = await case.check(self._guard, text, self._policy)
            if self._dry_run:
                return Release("", (), answer)
            return Release(*await asyncio.to_thread(render, answer, self._style), answer)
        session = await self._get_session()
        rest = await session.arest()
        case, last = await self._get_case(), Release("")
        if rest is not None:
            rest = case.with_problems(rest)
            last = await asyncio.to_thread(self._release, rest, final=True)
        answer = case.with_problems(await session.afinish())
        if not self._sent and answer.action is Action.REFUSE:
            return Release(answer.text, (), answer)
        return Release(last.text + self._notes.text(), last.citations, answer)

    async def _get_case(self) -> Case:
        """Question and evidence, determined once at the first text."""
        if self._case is None:
            given = self._given
            self._case = Case(given) if isinstance(given, str) else await given()
        return self._case

    async def _get_session(self) -> CheckSession:
        if self._session is None:
            case = await self._get_case()
            self._session = await asyncio.to_thread(case.session, self._guard, self._policy)
        return self._session

    def _release(self, judged: GuardedAnswer, *, final: bool = False) -> Release:
        """The sentences of a judged part that may be released."""
        if judged.action is Action.REFUSE:
            return Release("")
        if judged.action is Action.UNVERIFIED:
            # Only under ``return_unverified``: the user wants to see what could not be judged.
            self._sent += len(judged.text)
            return Release(judged.text)
        pieces, citations = [], list[PlacedCitation]()
        position = 0
        for sentence in judged.sentences:
            removing = (Action.FILTER, Action.REGENERATE, Action.REFUSE)
            if self._policy.asks_for(sentence) not in removing:
                # With the gap before it, unless it opens the answer.
                start = position if self._sent else max(position, sentence.start)
                found = render_sentences(
                    judged, [sentence], self._style, self._notes, start, sentence.end
                )
                citations += [
                    one._replace(start=one.start + self._sent, end=one.end + self._sent)
                    for one in found.citations
                ]
                pieces.append(found.text)
                self._sent += len(found.text)
            position = sentence.end
        if final and self._sent:
            # After the last sentence there is no claim: a closing fence, a rule, space.
            pieces.append(judged.text[position:].rstrip())
        return Release("".join(pieces), tuple(citations))
