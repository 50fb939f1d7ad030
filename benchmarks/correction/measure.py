"""What came of cases: counts by kind, and what they make."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import islice
from typing import NamedTuple

from benchmarks.correction.errors import KINDS, ErrorCase
from guardrail import STRICT_CORRECT, Guardrail
from guardrail.core.text.lexicon import lexicon_set
from guardrail.core.text.names import label_in
from guardrail.core.text.words import tokenise
from guardrail.core.types import GuardedAnswer, Sentence, SpanKind, Triple
from guardrail.core.types.answers import CheckRequest
from guardrail.intervals import wilson

__all__ = ["Came", "came", "came_of", "table"]

BATCH = 64


class Came(NamedTuple):
    """What came of one case.

    Attributes:
        case: The case.
        corrected: The sentences with the error that were released corrected.
        changed: True sentences that were.
        sentences: True sentences of the text that claim something.
        right: Whether the error was undone, and all else of the text left as it was.
        carried: Whether all that was written, in whatever sentence, is a value of the same subject
            and property.
    """

    case: ErrorCase
    corrected: tuple[Sentence, ...]
    changed: tuple[Sentence, ...]
    sentences: int
    right: bool
    carried: bool


def came_of(guard: Guardrail, cases: Sequence[ErrorCase]) -> list[Came]:
    """Check all cases under ``strict-correct``."""
    found: list[Came] = []
    rows = iter(cases)
    while some := list(islice(rows, BATCH)):
        requests = [
            CheckRequest(question=case.question, answer=case.text, evidence=case.evidence)
            for case in some
        ]
        answers = guard.check_batch(requests, policy=STRICT_CORRECT)
        found += [came(case, answer) for case, answer in zip(some, answers, strict=True)]
    return found


def came(case: ErrorCase, answer: GuardedAnswer) -> Came:
    """What came of one case, by the whole of its answer."""
    mended = [item for item in answer.sentences if item.correction is not None]
    corrected = tuple(item for item in mended if _has_error(case, item))
    changed = tuple(item for item in mended if item not in corrected)
    claims = sum(item.category is not None for item in answer.judged) - bool(case.kind)
    right = bool(corrected) and _is_right(case, mended, answer.text)
    carried = right or not corrected or _is_carried(case, mended)
    return Came(case, corrected, changed, max(0, claims), right, carried)


def _has_error(case: ErrorCase, sentence: Sentence) -> bool:
    """Whether a corrected sentence is the one with the error."""
    if not case.kind or sentence.correction is None:
        return False
    if case.broken is None:
        return True
    start = case.text.find(sentence.correction.original)
    return start <= case.start < start + len(sentence.correction.original)


def _is_right(case: ErrorCase, mended: Sequence[Sentence], text: str) -> bool:
    """Whether the text that was released tells what the true one does, all of it and no more."""
    if len(mended) != 1:
        return False
    released = _bare(text)
    if any(released == _bare(true) for true in case.true):
        return True
    if case.broken is None or label_in(text, tokenise(text), case.wrong):
        return False
    (true,) = case.true
    words = [span.text for span in mended[0].spans if span.kind is SpanKind.CORRECTED]
    if len(words) != 1 or not label_in(words[0], tokenise(words[0]), case.broken.value):
        return False
    # Its value as the evidence writes it, where the text wrote it otherwise.
    end = len(true) - len(case.text) + case.start + len(case.wrong)
    lost = Counter(_bare(true)) - Counter(released)
    added = Counter(released) - Counter(_bare(true))
    return lost <= Counter(_bare(true[case.start : end])) and added <= Counter(_bare(words[0]))


def _bare(text: str) -> list[str]:
    """A text's words without articles; numbers by their value."""
    articles = lexicon_set("function_words", "articles")
    return [token.stem for token in tokenise(text) if token.folded not in articles]


def _is_carried(case: ErrorCase, mended: Sequence[Sentence]) -> bool:
    """Whether each correction wrote a value of the property that was broken, of its subject."""
    if case.broken is None:
        return False
    known = [
        item.value
        for item in case.evidence
        if isinstance(item, Triple)
        and (item.subject, item.property) == (case.broken.subject, case.broken.property)
    ]
    return all(
        any(label_in(span.text, tokenise(span.text), value) for value in known)
        for sentence in mended
        for span in sentence.spans
        if span.kind is SpanKind.CORRECTED
    )


def table(errors: Sequence[Came], true: Sequence[Came]) -> str:
    """A table in Markdown: one row for each kind of error, one for all, and true sentences."""
    lines = [
        "| errors | texts | attempted | right, of those attempted | not carried |",
        "|---|--:|--:|--:|--:|",
    ]
    for kind in (*KINDS, ""):
        some = [item for item in errors if kind in ("", item.case.kind)]
        if not some:
            continue
        tried = [item for item in some if item.corrected]
        right = sum(item.right for item in tried)
        lost = sum(not item.carried for item in tried)
        name = kind.replace("_", " or ") or "all"
        shares = f"{_share(len(tried), len(some))} | {_share(right, len(tried))}"
        lines.append(f"| {name} | {len(some)} | {shares} | {lost} |")
    sentences = sum(item.sentences for item in (*errors, *true))
    changed = sum(len(item.changed) for item in (*errors, *true))
    lines += [
        "",
        f"True sentences changed: {changed} of {sentences}, {_share(changed, sentences)}.",
    ]
    return "\n".join(lines)


def _share(part: int, whole: int) -> str:
    if not whole:
        return "–"
    low, high = wilson(part / whole, whole)
    return f"{100 * part / whole:.1f}% ({100 * low:.1f} to {100 * high:.1f})"
