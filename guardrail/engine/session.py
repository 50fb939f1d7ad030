"""An answer that is judged while it grows, sentence by sentence, in linear time.

Each sentence is judged once it is complete, together with the text shortly before it, so that the
work for one sentence does not grow with the answer; the judges are asked nothing twice. The
verdict on the whole is that of one ``check``.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING
from uuid import uuid4

from guardrail.core.incoming import clean_text, without_controls
from guardrail.core.text.sentences import END, PIECE, WRAPPED, split_sentences
from guardrail.core.types import Action, CheckRequest, Evidence, GuardedAnswer
from guardrail.core.workers import off_loop, run_sync, synchronous
from guardrail.engine.decision import overlong
from guardrail.engine.flow import Row, parse_answer
from guardrail.evidence.retrieval import Knowledge, given
from guardrail.log.tracing import stage
from guardrail.markers.brackets import open_bracket
from guardrail.markers.rendering import shifted
from guardrail.policy import ANNOTATE, Policy, Unavailable

if TYPE_CHECKING:
    from guardrail.engine.flow import Engine
    from guardrail.verdict.claims import Claim


class CheckSession:
    """Judges one answer while it grows; made by ``Guardrail.session``.

    ``add`` and ``rest`` remove nothing: each gives the verdict on a new stretch of the answer,
    whose text continues that of the stretches before; a policy that corrects has corrected it.
    ``finish`` gives the verdict on the whole, as the policy leaves it. A session is for one caller
    at a time.

    Args:
        engine: Does the work.
        question: What the answer answers.
        evidence: Replaces the graph; None to use the graph.
        policy: Decides on the whole; its deadline and ``unavailable`` hold for each step.
        id: Echoed in the results; made when None.

    Example:
        >>> session = guard.session(question="Who was Ada Lovelace?")    # doctest: +SKIP
        >>> for piece in stream:                                         # doctest: +SKIP
        ...     judged = session.add(piece)
        >>> rest, answer = session.rest(), session.finish()              # doctest: +SKIP
    """

    def __init__(
        self,
        engine: Engine,
        *,
        question: str,
        evidence: Sequence[Evidence] | None,
        policy: Policy,
        id: str | None,
    ) -> None:
        self._engine = engine
        self._question = clean_text(question)
        self._knowledge = None if evidence is None else given(evidence, engine.config.limits)
        self._policy = policy
        names = ["unavailable", "deadline_s", "strictness", "correct_with", "dry_run"]
        look = {name: getattr(policy, name) for name in names}
        if policy.contradicted is Action.CORRECT:
            look |= {"contradicted": Action.CORRECT, "uncorrected": Action.ANNOTATE}
        self._look = ANNOTATE.model_copy(update=look)
        self._id = without_controls(id or "") or uuid4().hex
        self._raw = self._return = ""
        self._too_long = False
        self._behind: list[str] | None = None  # what is never judged; kept where it is given back
        if policy.dry_run or policy.unavailable is Unavailable.RETURN_UNVERIFIED:
            self._behind = []
        self._cuts = [0]
        self._clean = (0, 0, 0)  # a stretch of the raw text, and its length without markers
        self._seen = self._look_at = 0
        self._left = engine.config.limits.sentences
        self._recall: dict[str, Knowledge] = {}
        self._known: dict[object, Claim] = {}
        self._account = engine.parts.account()
        self._grounder = cache(engine.parts.remembering_grounder)

    async def aadd(self, text: str) -> GuardedAnswer | None:
        """Take a piece of the answer, of any size.

        Returns:
            The verdict on the sentences that it completes, None where it completes none. A
            sentence is complete when another has begun behind it. ``text`` is the new stretch
            with the gap before it, and the offsets of ``sentences`` index it. With the action
            ``unverified`` it is the original text; after ``refuse``, the stretch is judged
            again with the next one.

        Raises:
            GuardrailError: A part cannot be used and the policy says ``raise``.
        """
        end = self._grown(text)
        return None if end is None else await self._judged(end)

    def add(self, text: str) -> GuardedAnswer | None:
        """``aadd`` for synchronous callers."""
        end = self._grown(text)
        return None if end is None else run_sync(self._judged(end))

    async def arest(self) -> GuardedAnswer | None:
        """Judge what is left at the end of the answer; None where nothing is.

        Raises:
            GuardrailError: A part cannot be used and the policy says ``raise``.
        """
        self._take(clean_text(self._return))
        self._return = ""
        raw = self._all()
        return await self._judged(len(raw)) if raw[self._cuts[-1] :].strip() else None

    rest = synchronous(arest)
    """``arest`` for synchronous callers."""

    async def afinish(self) -> GuardedAnswer:
        """The verdict on the whole answer, recorded: that of ``check`` on all of its text.

        Raises:
            GuardrailError: A part cannot be used and the policy says ``raise``.
        """
        with stage("check", rows=1):
            answer = await self._checked(self._all(), self._policy, scored=True)
            return (await self._engine.recorder.record([answer]))[0]

    finish = synchronous(afinish)
    """``afinish`` for synchronous callers."""

    def _grown(self, text: str) -> int | None:
        """Take a piece; where the last sentence ends that it completes, None if there is none."""
        text = self._return + text
        # The line feed that belongs to it may be in the next piece.
        self._return = "\r" if text.endswith("\r") else ""
        self._take(clean_text(text.removesuffix("\r")))
        if self._too_long or len(self._raw) < self._look_at or not self._left:
            return None
        end = _complete(self._raw, self._cuts[-1])
        # What waits for the end of its sentence is looked at again when it is longer by this part
        # of it: anew with each piece, the work for a long rule or an open bracket would grow with
        # its square
        self._look_at = len(self._raw) + (len(self._raw) - self._cuts[-1]) // 32
        if end <= self._seen:
            return None
        self._seen, self._look_at = end, 0
        return end

    def _take(self, text: str) -> None:
        """Keep what may be judged, and what lies behind where it is given back unjudged."""
        if not self._too_long:
            self._raw += text
            self._too_long = len(self._raw) > self._engine.config.limits.answer_chars
        elif self._behind is not None:
            self._behind.append(text)

    def _all(self) -> str:
        """All that was kept."""
        if self._behind:
            self._raw, self._behind = "".join((self._raw, *self._behind)), []
        return self._raw

    async def _judged(self, end: int) -> GuardedAnswer:
        """Judge the raw text up to ``end`` and cut the verdict to what is new in it."""
        last = self._cuts[-1]
        # Characters of context: names and pronouns rarely reach back further, and it bounds the
        # work for one sentence. One step of the stream is kept whole at least.
        begin = self._cuts[bisect_left(self._cuts, last - 2_000)]
        if begin == last and len(self._cuts) > 1:
            begin = self._cuts[-2]
        with stage("check", rows=1):
            if self._clean[:2] != (begin, last):
                known = self._knowledge or self._recall.get(self._question, Knowledge())
                raw = clean_text(self._raw[begin:last])
                parsed = await off_loop(parse_answer, raw, known.evidence)
                self._clean = begin, last, len(parsed.clean)
            raw, since = self._raw[begin:end], self._clean[2]
            answer = await self._checked(
                raw, self._look, scored=False, since=since, most=self._left
            )
        # Behind the bound nothing is looked at before the end: it would be looked at ever again.
        bounded = any(problem.part == "sentences" for problem in answer.errors)
        self._left = 0 if bounded else max(0, self._left - len(answer.sentences))
        if answer.action is Action.REFUSE:
            return answer
        self._cuts.append(end)
        raw = self._raw[last:end]
        found: dict[str, object] = {"text": raw, "marked": raw, "sentences": (), "original": raw}
        if answer.action is not Action.UNVERIFIED:
            if answer.action is not Action.CORRECT:
                self._clean = begin, end, len(answer.text)
            # Of a sentence that was looked at half; only what is new has verdicts and markers
            since = min([since, *[item.start for item in answer.sentences]])
            found["text"], found["marked"] = answer.text[since:], answer.marked[since:]
            found["sentences"] = tuple([shifted(item, since) for item in answer.sentences])
        return answer.model_copy(update=found)

    async def _checked(
        self, raw: str, policy: Policy, *, scored: bool, since: int = 0, most: int | None = None
    ) -> GuardedAnswer:
        request = CheckRequest(id=self._id, question=self._question, answer=clean_text(raw))
        row = Row(request, self._knowledge, 0, since, most, self._known, self._account)
        if self._too_long:
            problem = overlong("answer", self._engine.config.limits.answer_chars)
            return self._engine.unavailable(row, [problem], policy, 0.0)
        [answer] = await self._engine.guard(
            [row], policy, grounder=self._grounder, recall=self._recall, scored=scored
        )
        return answer


def _complete(raw: str, start: int) -> int:
    """Where the last complete sentence of a growing text ends, at or after ``start``."""
    tail = raw[start:]
    if len(tail) <= PIECE and len(tail.splitlines()) < 2 and END.search(tail) is None:
        return start
    opened = open_bracket(tail)
    # From the start of its line: how it begins, and its length up to that of wrapped lines, decide
    # whether the next one goes on with it
    begin = max(raw.rfind("\n", 0, start) + 1, start - WRAPPED - 1)
    stretches = split_sentences(raw[begin : len(raw) if opened is None else start + opened])
    return max(start, begin + stretches[-2].end) if len(stretches) > 1 else start
