"""Corrected answers, judged again as they leave.

All corrections of an answer are applied and the whole is judged; those whose sentence is not
supported are taken back, and the rest is judged once more. A language model may rewrite what no
edit corrects.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Literal, NamedTuple

from guardrail.core.errors import GuardrailError
from guardrail.core.text.words import outside
from guardrail.core.types import (
    AttributedAnswer,
    Correction,
    Effect,
    Problem,
    Sentence,
    Span,
    SpanKind,
    Verdict,
)
from guardrail.correction.edits import Proposal, replaced
from guardrail.markers.rendering import marked_text
from guardrail.policy import Policy

if TYPE_CHECKING:
    from guardrail.engine.flow import Checked, Row
    from guardrail.evidence.statements import Statement
    from guardrail.models.base import LanguageModel


class _Draft(NamedTuple):
    """A sentence in place of the contradicted one; offsets of its changes are its own."""

    proposal: Proposal
    text: str
    by: Literal["edit", "model"]
    changes: tuple[Span, ...]


_Kept = tuple[tuple[_Draft, ...], "Checked"]
"""The drafts of an answer that hold, and the answer with them."""


class Correcting(NamedTuple):
    """Corrects checked answers.

    Attributes:
        judge: Judges n rows, off the event loop.
        model: Gives the language model; raises if there is none.
        verbatim: True if only triples are cited whose value the sentence contains as written.
        at_once: Concurrent calls of the model.
    """

    judge: Callable[[Sequence[Row]], Awaitable[list[Checked]]]
    model: Callable[[], Awaitable[LanguageModel]]
    verbatim: bool
    at_once: int

    async def correct(self, checked: Sequence[Checked], policy: Policy) -> list[Checked]:
        """Correct n answers; those without a contradiction are returned as they are."""
        drafts = [[_edited(one) for one in item.proposals if one.edits] for item in checked]
        kept = await self._kept([((), item) for item in checked], drafts, checked)
        if policy.correct_with == "model":
            kept = await self._by_model(checked, kept, dry_run=policy.dry_run)
        return [item for _, item in kept]

    async def _by_model(
        self, checked: Sequence[Checked], kept: Sequence[_Kept], *, dry_run: bool
    ) -> list[_Kept]:
        """Ask the model for each sentence that no edit corrected; a failure costs that sentence."""
        from guardrail.models.generation import Wrong, rewritten

        left = [
            (place, one)
            for place, (drafts, _) in enumerate(kept)
            for one in checked[place].proposals
            if one.sources and all(draft.proposal is not one for draft in drafts)
        ]
        problems: list[list[Problem]] = [[] for _ in checked]
        drafts: list[list[_Draft]] = [[] for _ in checked]
        if dry_run:
            for place in {place for place, _ in left}:
                problems[place] = [
                    Problem(
                        part="correction",
                        message="a dry run asks no model; live it is asked for each sentence that "
                        "no edit corrects",
                    )
                ]
        elif left:
            wrong = [
                Wrong(
                    checked[place].row.request.question,
                    one.original,
                    tuple(map(_text, one.sources)),
                )
                for place, one in left
            ]
            replies: Sequence[str | GuardrailError | None]
            try:
                model = await self.model()
                replies = await rewritten(model, wrong, at_once=self.at_once)
            except GuardrailError as error:
                replies = [error] * len(wrong)
            for (place, one), text in zip(left, replies, strict=True):
                if isinstance(text, GuardrailError):
                    message = f"the sentence at {one.start} to {one.end} was not rewritten: {text}"
                    problems[place].append(Problem(part="correction", message=message))
                elif text and text != one.original:
                    drafts[place].append(_rewritten(one, text))
        kept = await self._kept(kept, drafts, checked)
        return [
            (some, item._replace(problems=(*item.problems, *more)))
            for (some, item), more in zip(kept, problems, strict=True)
        ]

    async def _kept(
        self,
        before: Sequence[_Kept],
        drafts: Sequence[Sequence[_Draft]],
        checked: Sequence[Checked],
    ) -> list[_Kept]:
        """Judge answers with further drafts until all that remain hold."""
        done = list(before)
        trial = {
            place: tuple(sorted((*before[place][0], *new), key=lambda one: one.proposal.start))
            for place, new in enumerate(drafts)
            if new
        }
        for _ in range(3):
            if not trial:
                break
            judged = await self.judge([_row(checked[n], some) for n, some in trial.items()])
            for (place, some), again in zip(list(trial.items()), judged, strict=True):
                sentences = _sentences(checked[place], again, some)
                holding = tuple(
                    draft
                    for draft, sentence in zip(some, sentences, strict=True)
                    if sentence is not None and _holds(sentence, draft)
                )
                if holding == some:
                    corrected = _result(checked[place], again, some, sentences, self.verbatim)
                    done[place] = some, corrected
                trial[place] = holding
                if holding in (some, (), done[place][0]):
                    del trial[place]
        return done


def _text(statement: Statement) -> str:
    return statement.triple.text if statement.triple else statement.text


def _change(text: str, start: int, end: int, instead_of: str, source: Statement) -> Span:
    """Corrected words, with the triple that they show; a yes or no is shown by no words."""
    triple = source.triple if source.yes is None else None
    kind = SpanKind.CORRECTED
    return Span(
        text=text[start:end], start=start, end=end, kind=kind, triple=triple, instead_of=instead_of
    )


def _edited(proposal: Proposal) -> _Draft:
    text = replaced(proposal.original, proposal.edits)
    changes: list[Span] = []
    moved = 0
    for edit, source in zip(proposal.edits, proposal.sources, strict=True):
        start, instead_of = edit.start + moved, proposal.original[edit.start : edit.end]
        changes.append(_change(text, start, start + len(edit.text), instead_of, source))
        moved += len(edit.text) - len(instead_of)
    return _Draft(proposal, text, "edit", tuple(changes))


def _rewritten(proposal: Proposal, text: str) -> _Draft:
    """A sentence of the model, with the words that it changed."""
    word = re.compile(r"\w+(?:[.,:'’-]\w+)*")
    before, after = list(word.finditer(proposal.original)), list(word.finditer(text))
    matcher = SequenceMatcher(
        a=[found[0] for found in before], b=[found[0] for found in after], autojunk=False
    )
    changes: list[Span] = []
    for kind, first, last, begin, stop in matcher.get_opcodes():
        if kind == "equal" or not after:
            continue
        gone = before[first:last]
        instead_of = proposal.original[gone[0].start() : gone[-1].end()] if gone else ""
        # A deletion is shown by the word behind the gap, or before it.
        begin = begin if begin < stop else min(begin, len(after) - 1)
        start, end = after[begin].start(), after[max(begin, stop - 1)].end()
        if not changes or changes[-1].end <= start:
            changes.append(_change(text, start, end, instead_of, proposal.sources[0]))
    return _Draft(proposal, text, "model", tuple(changes))


def _row(item: Checked, drafts: Sequence[_Draft]) -> Row:
    """An answer with its drafts, to be judged by the same evidence."""
    text = item.answer.text
    for draft in reversed(drafts):
        text = text[: draft.proposal.start] + draft.text + text[draft.proposal.end :]
    return item.row.answering(text)._replace(knowledge=item.knowledge)


def _sentences(item: Checked, again: Checked, drafts: Sequence[_Draft]) -> list[Sentence | None]:
    """The sentences of drafts as judged; None if the text was split in another way."""
    whole = (
        len(again.answer.sentences) == len(item.answer.sentences)
        and again.answer.text == again.row.request.answer
        and all(problem.part not in ("judge", "checks") for problem in again.problems)
    )
    by_place = {(one.start, one.end): one for one in again.answer.sentences} if whole else {}
    found: list[Sentence | None] = []
    moved = 0
    for draft in drafts:
        start = draft.proposal.start + moved
        found.append(by_place.get((start, start + len(draft.text))))
        moved += len(draft.text) - len(draft.proposal.original)
    return found


def _holds(sentence: Sentence, draft: _Draft) -> bool:
    """True if the sentence is supported, no check objects, and it cites what the edits use."""
    cited = {*sentence.citations, *sentence.uncited}
    if draft.by == "edit" and any(one.citation not in cited for one in draft.proposal.sources):
        return False
    return sentence.verdict is Verdict.SUPPORTED and not any(
        finding.effect is Effect.CONTRADICTS for finding in sentence.findings
    )


def _result(
    item: Checked,
    again: Checked,
    drafts: Sequence[_Draft],
    sentences: Sequence[Sentence | None],
    verbatim: bool,
) -> Checked:
    """The answer with its corrections, shown as such."""
    corrected = {
        sentence.start: _corrected(sentence, draft, verbatim)
        for sentence, draft in zip(sentences, drafts, strict=True)
        if sentence is not None
    }
    shown = tuple(corrected.get(one.start, one) for one in again.answer.sentences)
    text = again.answer.text
    return item._replace(
        answer=AttributedAnswer(text=text, marked=marked_text(text, shown), sentences=shown),
        docs={**item.docs, **again.docs},
        timings_ms={**item.timings_ms, "correct": sum(again.timings_ms.values())},
        first=item.answer,
    )


def _corrected(sentence: Sentence, draft: _Draft, verbatim: bool) -> Sentence:
    proposal = draft.proposal
    own = [
        one.model_copy(
            update={"start": sentence.start + one.start, "end": sentence.start + one.end}
        )
        for one in draft.changes
    ]
    places = [(span.start, span.end) for span in own]
    others = outside(sentence.spans, places)
    used = dict.fromkeys(source.citation for source in proposal.sources)
    new = [item for item in used if item not in {*sentence.citations, *sentence.uncited}]
    cited = [item for item in new if not verbatim or item.value in sentence.text]
    against = tuple(dict.fromkeys(map(_text, proposal.sources)))
    return sentence.model_copy(
        update={
            "spans": tuple(sorted([*own, *others], key=lambda span: span.start)),
            "citations": (*sentence.citations, *cited),
            "uncited": (*sentence.uncited, *(item for item in new if item not in cited)),
            "correction": Correction(original=proposal.original, by=draft.by, against=against),
        }
    )
