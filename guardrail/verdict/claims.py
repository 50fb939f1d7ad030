"""Claims: the sentences of an answer, each with what is told before it and whom it speaks of."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from operator import itemgetter
from typing import NamedTuple

from guardrail.core.apart import within_another
from guardrail.core.text.layout import Line, cells_of, lined
from guardrail.core.text.letters import hides_letters
from guardrail.core.text.lexicon import lexicon_set
from guardrail.core.text.names import find_names, label_in
from guardrail.core.text.sentences import Stretch, code_blocks
from guardrail.core.text.values import TypedValue, find_values
from guardrail.core.text.words import Token, content_stems, plain, tokenise, without_emphasis
from guardrail.core.types import Strictness, VerdictThresholds
from guardrail.evidence.prepared import PreparedEvidence
from guardrail.markers.grammar import Marker, ParsedText
from guardrail.markers.references import without_references
from guardrail.markers.ruins import without_ruins
from guardrail.verdict.heads import is_bare, measures, names_columns
from guardrail.verdict.propositions import proposition_of
from judges.letters import plain_letters

__all__ = ["Claim", "GroundingRequest", "claims_of"]

BEFORE_CHARS = 400
"""Characters of earlier sentences that are read beside a sentence: pronouns point no further."""

PLAIN_WORDS = re.compile(r"(?<![\w'’-])['’-]*+\w[\w'’-]*+(?:,? \w[\w'’-]*+){3,}")
"""Four or more words with nothing but spaces and commas between them, as prose has and code not."""


class GroundingRequest(NamedTuple):
    """One answer to ground.

    Attributes:
        question: The question it answers.
        answer: The answer with the markers that stood in it, parsed.
        evidence: What the answer is held against.
        asked: Label of the entity that the question is about, where it is known.
        since: Offset in the clean answer; sentences that end before it are read as context alone.
        thresholds: How sure the judge must be.
        most: Most sentences that are judged; None for all.
        correct: True to propose corrections of contradicted sentences.
    """

    question: str
    answer: ParsedText
    evidence: PreparedEvidence
    asked: str | None = None
    since: int = 0
    thresholds: VerdictThresholds = Strictness.BALANCED.thresholds
    most: int | None = None
    correct: bool = False


@dataclass(eq=False)
class Claim:
    """A sentence of an answer on its way to a verdict.

    Attributes:
        stretch: The sentence as it stands in the clean answer; offsets index that.
        written: What the judge reads: the same on one line, in plain letters, references and broken
            markers blank.
        question: The question.
        before: The sentences shortly before it.
        prose: Whether it may assert something, which the judge then says: all but the head of a
            table that names its columns, a bare heading or label, and code without plain words.
        head: Whether it is such a head with an amount in it: nothing supports that it
            names columns, and only what contradicts it counts.
        evidence: What the answer is held against.
        answers: The bare yes or no in whose place this sentence, the proposition of the question,
            is judged; None for a sentence that stands in the answer.
        denied: True if the bare answer denies the proposition.
        markers: Those that the model wrote into the sentence.
    """

    stretch: Stretch
    written: str
    question: str
    before: str
    prose: bool
    head: bool
    evidence: PreparedEvidence
    answers: Stretch | None = None
    denied: bool = False
    markers: tuple[Marker, ...] = ()

    @property
    def place(self) -> Stretch:
        """Its place in the clean answer."""
        return self.answers or self.stretch

    @cached_property
    def text(self) -> str:
        """What is compared: ``written`` without marks of emphasis."""
        return without_emphasis(self.written)

    @cached_property
    def asked(self) -> str:
        """The question, without one that tells the whole sentence: who asks tells nothing."""
        told = self.stems - lexicon_set("function_words", "yes")
        whole = told and told <= content_stems(plain(self.question))
        return "" if whole else self.question.strip()

    @cached_property
    def context(self) -> str:
        """The question and the sentences before, as the judge reads them."""
        return " ".join(filter(None, (self.asked, self.before)))

    @cached_property
    def tokens(self) -> tuple[Token, ...]:
        """The words of ``text``; offsets are the sentence's own."""
        return tokenise(plain(self.text))

    @cached_property
    def stems(self) -> frozenset[str]:
        """Stems of its content words."""
        return content_stems(plain(self.text))

    @cached_property
    def values(self) -> list[TypedValue]:
        """Its typed values; the *2* inside of the name *Alba 2* is none.

        Offsets are the sentence's own.
        """
        found = find_values(self.text)
        return [item for item in found if not within_another((item.start, item.end), self.mentions)]

    @cached_property
    def mentions(self) -> list[tuple[int, int]]:
        """Where it writes out the name of a subject of the evidence; offsets are its own."""
        text, tokens = plain(self.text), self.tokens
        near = self.evidence.labels_in(tokens)
        names = (name for label in near for name in (label, *self.evidence.names.get(label, ())))
        return [span for name in names for span in label_in(text, tokens, name)]

    @cached_property
    def names(self) -> list[tuple[int, int]]:
        """Its names; offsets are the sentence's own."""
        return find_names(plain(self.text))

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Offsets of the sentence as offsets of the answer."""
        return self.stretch.start + start, self.stretch.start + end


def claims_of(request: GroundingRequest) -> list[Claim]:
    """The sentences of one answer, in order."""
    evidence = request.evidence
    text = request.answer.clean
    blocks = code_blocks(text)
    claims: list[Claim] = []
    earlier: list[str] = []
    for stretch, line in lined(text):
        judged = without_references(without_ruins(stretch.text, evidence.entities), evidence.items)
        head = names_columns(line, stretch)
        bare = (head and not measures(stretch.text)) or _is_bare(line, stretch)
        code = _is_code(stretch, blocks) and PLAIN_WORDS.search(judged) is None
        prose = not bare and not code and not judged.isspace()
        written, before = plain_letters(re.sub(r"\s", " ", judged)), _last(earlier)
        markers = request.answer.within(stretch.start, stretch.end)
        asked = proposition_of(written, request.question, evidence.all_names) if prose else None
        if asked is not None:
            stated = Stretch(asked.text, stretch.start, stretch.start + len(asked.text))
            claim = Claim(stated, asked.text, "", "", True, False, evidence, stretch, asked.denied)
        else:
            claim = Claim(stretch, written, request.question, before, prose, head, evidence)
        claims.append(replace(claim, markers=markers))
        earlier.append(" ".join(judged.split()))
    return claims


def _last(earlier: Sequence[str]) -> str:
    """The last sentences that fit ``BEFORE_CHARS``, one at least."""
    kept: list[str] = []
    room = BEFORE_CHARS
    for sentence in reversed(earlier):
        if kept and len(sentence) > room:
            break
        kept.append(sentence)
        room -= len(sentence) + 1
    return " ".join(reversed(kept))


def _is_code(stretch: Stretch, blocks: Sequence[tuple[int, int]]) -> bool:
    place = bisect_right(blocks, stretch.start, key=itemgetter(0)) - 1
    return place >= 0 and stretch.start < blocks[place][1] and not hides_letters(stretch.text)


def _is_bare(line: Line, stretch: Stretch) -> bool:
    """Whether a sentence is a heading or label of hardly a word, or a head of nothing but such."""
    if line.is_table_head(stretch):
        return not line.has_rows and all(map(is_bare, cells_of(stretch.text)))
    return (line.is_heading(stretch) or line.is_label(stretch)) and is_bare(stretch.text)
