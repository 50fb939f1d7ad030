"""Contradicted sentences mended, judged again in their place, and kept only where they hold.

What leaves is always a text that was judged as it stands: all corrections of an answer are made,
the whole is judged, those that are not supported are taken back, and the rest is judged again.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Literal, NamedTuple

from guardrail.core.errors import GuardrailError
from guardrail.core.types import (
    AttributedAnswer,
    Category,
    Citation,
    Correction,
    Effect,
    Problem,
    Sentence,
    Span,
    SpanKind,
    Triple,
)
from guardrail.markers.rendering import marked_text
from guardrail.policy import Policy

if TYPE_CHECKING:
    from guardrail.correction.proposals import Proposal
    from guardrail.engine.pipeline import Checked, Row
    from guardrail.models.base import LanguageModel

__all__ = ["Correcting"]

ROUNDS = 3
"""Times that an answer is judged again with fewer corrections before all are given up."""

NOT_ASKED = Problem(
    part="correction",
    message="a dry run asks no model; live it is asked for each sentence that no edit mends",
)
"""Told of a dry run whose answer could have come out otherwise live."""

WORD = re.compile(r"\w+(?:[.,:'’-]\w+)*")


class _Change(NamedTuple):
    """Words of a mended sentence; offsets are its own."""

    start: int
    end: int
    instead_of: str
    triple: Triple | None


class _Draft(NamedTuple):
    """A sentence in the place of another; ``start`` and ``end`` are those of the other."""

    start: int
    end: int
    original: str
    text: str
    by: Literal["edit", "model"]
    changes: tuple[_Change, ...]
    against: tuple[str, ...]
    citations: tuple[Citation, ...]


class Correcting(NamedTuple):
    """Corrects checked answers.

    Attributes:
        judge: Judges n rows, off the loop.
        propose: Proposes edits for the contradicted sentences of n checked answers, off the loop.
        model: Gives the language model; raises where there is none.
        verbatim: Whether only triples are cited whose value stands in the sentence as written.
        at_once: Calls of the model at the same time.
        timeout_s: Seconds that one of them may take; None for a share of what is left.
    """

    judge: Callable[[Sequence[Row]], Awaitable[list[Checked]]]
    propose: Callable[[Sequence[Checked]], Awaitable[list[list[Proposal]]]]
    model: Callable[[], Awaitable[LanguageModel]]
    verbatim: bool
    at_once: int
    timeout_s: float | None

    async def correct(self, checked: Sequence[Checked], policy: Policy) -> list[Checked]:
        """Correct n answers as the policy says; those without a contradiction come back as given.

        Args:
            checked: The answers.
            policy: Says whether the model may be asked; in a dry run it is not.
        """
        places = [place for place, item in enumerate(checked) if _is_contradicted(item)]
        found = list(checked)
        if not places:
            return found
        items = [checked[place] for place in places]
        proposals = await self.propose(items)
        kept: list[tuple[_Draft, ...]] = [() for _ in items]
        drafts = [tuple(_edited(item) for item in each if item.edits) for each in proposals]
        results = await self._kept(items, kept, drafts)
        if policy.correct_with == "model":
            results = await self._by_model(items, proposals, results, policy.dry_run)
        for place, (_, result) in zip(places, results, strict=True):
            found[place] = result
        return found

    async def _by_model(
        self,
        items: Sequence[Checked],
        proposals: Sequence[Sequence[Proposal]],
        results: Sequence[tuple[tuple[_Draft, ...], Checked]],
        dry_run: bool,
    ) -> list[tuple[tuple[_Draft, ...], Checked]]:
        """Ask the model for what no edit mended; what it does not give costs its sentence alone."""
        open_ones = [
            [
                item
                for item in each
                if item.sources and not any(draft.start == item.start for draft in kept)
            ]
            for each, (kept, _) in zip(proposals, results, strict=True)
        ]
        if not any(open_ones):
            return list(results)
        if dry_run:
            return _with_problems(results, [[NOT_ASKED] if each else [] for each in open_ones])
        told = iter(await self._asked(items, open_ones))
        texts = [[(one, next(told)) for one in each] for each in open_ones]
        drafts = [
            tuple(
                _rewritten(one, text)
                for one, text in each
                if isinstance(text, str) and text != one.original
            )
            for each in texts
        ]
        problems = [
            [_not_had(one, text) for one, text in each if isinstance(text, GuardrailError)]
            for each in texts
        ]
        kept = await self._kept(items, [kept for kept, _ in results], drafts, results)
        return _with_problems(kept, problems)

    async def _asked(
        self, items: Sequence[Checked], open_ones: Sequence[Sequence[Proposal]]
    ) -> Sequence[str | GuardrailError | None]:
        """What the model writes for each sentence, or why it does not."""
        from guardrail.models.rewriting import Wrong, rewritten

        wrong = [
            Wrong(item.row.question, one.original, tuple(source.text for source in one.sources))
            for item, each in zip(items, open_ones, strict=True)
            for one in each
        ]
        try:
            model = await self.model()
        except GuardrailError as error:
            return [error] * len(wrong)
        return await rewritten(model, wrong, at_once=self.at_once, timeout_s=self.timeout_s)

    async def _kept(
        self,
        items: Sequence[Checked],
        before: Sequence[tuple[_Draft, ...]],
        drafts: Sequence[tuple[_Draft, ...]],
        results: Sequence[tuple[tuple[_Draft, ...], Checked]] | None = None,
    ) -> list[tuple[tuple[_Draft, ...], Checked]]:
        """Judge answers with their drafts, until all that are left of them hold."""
        done: list[tuple[tuple[_Draft, ...], Checked]] = [((), item) for item in items]
        done = list(results) if results else done
        trial = {
            place: tuple(sorted((*before[place], *new))) for place, new in enumerate(drafts) if new
        }
        for _ in range(ROUNDS):
            if not trial:
                break
            rows = [_row(items[place], some) for place, some in trial.items()]
            judged = await self.judge(rows)
            for (place, some), again in zip(list(trial.items()), judged, strict=True):
                holding = tuple(
                    draft
                    for draft, sentence in zip(
                        some, _sentences(items[place], again, some), strict=True
                    )
                    if sentence is not None and _holds(sentence, draft)
                )
                if holding == some:
                    done[place] = some, _result(items[place], again, some, self.verbatim)
                if holding == some or not holding or holding == done[place][0]:
                    del trial[place]
                else:
                    trial[place] = holding
        return done


def _is_contradicted(item: Checked) -> bool:
    return any(sentence.category is Category.CONTRADICTORY for sentence in item.answer.sentences)


def _not_had(proposal: Proposal, error: GuardrailError) -> Problem:
    place = f"{proposal.start} to {proposal.end}"
    message = f"the sentence at {place} of the answer as it came was not had again: {error}"
    return Problem(part="correction", message=message)


def _with_problems(
    results: Sequence[tuple[tuple[_Draft, ...], Checked]], problems: Sequence[Sequence[Problem]]
) -> list[tuple[tuple[_Draft, ...], Checked]]:
    return [
        (kept, item._replace(problems=(*item.problems, *more)))
        for (kept, item), more in zip(results, problems, strict=True)
    ]


def _edited(proposal: Proposal) -> _Draft:
    changes: list[_Change] = []
    moved = 0
    for edit, source in zip(proposal.edits, proposal.sources, strict=True):
        start = edit.start + moved
        instead_of = proposal.original[edit.start : edit.end]
        changes.append(_Change(start, start + len(edit.text), instead_of, source.triple))
        moved += len(edit.text) - len(instead_of)
    return _draft(proposal, proposal.text, "edit", tuple(changes))


def _rewritten(proposal: Proposal, text: str) -> _Draft:
    """A sentence of the model, with the words that it changed."""
    before, after = list(WORD.finditer(proposal.original)), list(WORD.finditer(text))
    matcher = SequenceMatcher(
        a=[word.group() for word in before], b=[word.group() for word in after], autojunk=False
    )
    changes: list[_Change] = []
    for kind, first, last, begin, stop in matcher.get_opcodes():
        if kind == "equal" or not after:
            continue
        gone = before[first:last]
        instead = proposal.original[gone[0].start() : gone[-1].end()] if gone else ""
        # Where words were only taken out, the word behind the gap, or before it, shows that.
        begin = begin if begin < stop else min(begin, len(after) - 1)
        start, end = after[begin].start(), after[max(begin, stop - 1)].end()
        if not changes or changes[-1].end <= start:
            changes.append(_Change(start, end, instead, proposal.sources[0].triple))
    return _draft(proposal, text, "model", tuple(changes))


def _draft(
    proposal: Proposal, text: str, by: Literal["edit", "model"], changes: tuple[_Change, ...]
) -> _Draft:
    return _Draft(
        proposal.start,
        proposal.end,
        proposal.original,
        text,
        by,
        changes,
        tuple(dict.fromkeys(source.text for source in proposal.sources)),
        tuple(dict.fromkeys(source.citation for source in proposal.sources)),
    )


def _row(item: Checked, drafts: Sequence[_Draft]) -> Row:
    """An answer with its drafts, to be judged by what it was judged by before."""
    text = item.answer.text
    for draft in sorted(drafts, reverse=True):
        text = text[: draft.start] + draft.text + text[draft.end :]
    return item.row._replace(answer=text, knowledge=item.knowledge)


def _sentences(item: Checked, again: Checked, drafts: Sequence[_Draft]) -> list[Sentence | None]:
    """The sentences of drafts as they were judged; None where the text fell apart otherwise."""
    same = len(again.answer.sentences) == len(item.answer.sentences)
    whole = (
        same
        and again.answer.text == again.row.answer
        and all(problem.part not in ("judge", "checks") for problem in again.problems)
    )
    by_place = {(one.start, one.end): one for one in again.answer.sentences} if whole else {}
    found: list[Sentence | None] = []
    moved = 0
    for draft in drafts:
        start = draft.start + moved
        found.append(by_place.get((start, start + len(draft.text))))
        moved += len(draft.text) - (draft.end - draft.start)
    return found


def _holds(sentence: Sentence, draft: _Draft) -> bool:
    """Whether a mended sentence may be released.

    It is supported, no check speaks against it, and it rests on all that the edits were taken from.
    """
    if draft.by == "edit" and not {*sentence.citations, *sentence.uncited}.issuperset(
        draft.citations
    ):
        return False
    return sentence.category is Category.SUPPORTIVE and not any(
        finding.effect is Effect.CONTRADICTS for finding in sentence.findings
    )


def _result(item: Checked, again: Checked, drafts: Sequence[_Draft], verbatim: bool) -> Checked:
    """The answer with its corrections, told as such."""
    mended = {
        sentence.start: _corrected(sentence, draft, verbatim)
        for sentence, draft in zip(_sentences(item, again, drafts), drafts, strict=True)
        if sentence is not None
    }
    sentences = tuple(mended.get(one.start, one) for one in again.answer.sentences)
    text = again.answer.text
    answer = AttributedAnswer(text=text, marked=marked_text(text, sentences), sentences=sentences)
    spent = sum(again.timings_ms.values())
    return item._replace(
        answer=answer,
        docs={**item.docs, **again.docs},
        timings_ms={**item.timings_ms, "correct": spent},
        first=item.answer,
    )


def _corrected(sentence: Sentence, draft: _Draft, verbatim: bool) -> Sentence:
    offset = sentence.start
    spans = [
        Span(
            text=draft.text[change.start : change.end],
            start=offset + change.start,
            end=offset + change.end,
            kind=SpanKind.CORRECTED,
            triple=change.triple,
            instead_of=change.instead_of,
        )
        for change in draft.changes
    ]
    others = [
        span
        for span in sentence.spans
        if not any(span.start < own.end and own.start < span.end for own in spans)
    ]
    known = {*sentence.citations, *sentence.uncited}
    told = tuple(item for item in draft.citations if item not in known)
    cited = tuple(item for item in told if not verbatim or item.value in sentence.text)
    return sentence.model_copy(
        update={
            "spans": tuple(sorted([*spans, *others], key=lambda span: span.start)),
            "citations": (*sentence.citations, *cited),
            "uncited": (*sentence.uncited, *(item for item in told if item not in cited)),
            "correction": Correction(original=draft.original, by=draft.by, against=draft.against),
        }
    )
