"""Verdicts on JSON answers and arguments of tool calls, for policies with ``structured``.

Each text, number and truth value of a document is judged as a sentence with its key as label. A
document is returned unchanged or withheld; documents without a verdict are listed by name.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from chains.evidence.base import Case
from chains.openai_wire import JSON, UnreadableReplyError
from guardrail import Guardrail, Policy
from guardrail.core.incoming import clean_text
from guardrail.core.secrets import get_logger
from guardrail.core.types import Action, GuardedAnswer, name_in_words

log = get_logger(__name__)


class Document(NamedTuple):
    """JSON to judge; ``value`` is a text that is not JSON, or parsed.

    ``of`` names it in verdicts (``content``, or the id of a tool call), ``label`` its values
    without a key; ``name``, by default ``of``, is listed if it is returned unjudged.
    """

    of: str
    label: str
    value: object
    name: str = ""

    @classmethod
    def read(cls, of: str, label: str, text: object, name: str = "") -> Document:
        """Parse a text; anything that is not JSON stays as it is."""
        try:
            read = json.loads(text, object_pairs_hook=_object) if isinstance(text, str) else text
            return cls(of, label, read, name)
        except (ValueError, RecursionError):
            return cls(of, label, text, name)


def _object(pairs: Sequence[tuple[str, object]]) -> JSON:
    """An object; a repeated key has all of its values, since readers may take any of them."""
    values: dict[str, list[object]] = {}
    for key, value in pairs:
        values.setdefault(key, []).append(value)
    return {key: held if len(held) > 1 else held[0] for key, held in values.items()}


class Judged(NamedTuple):
    """The verdict on one document, with JSON pointer, start and end of each leaf in its text."""

    of: str
    answer: GuardedAnswer
    leaves: tuple[tuple[str, int, int], ...]

    @property
    def withheld(self) -> bool:
        """True if the policy removes any part, so that the document may not leave."""
        return self.answer.action in (Action.REFUSE, Action.FILTER, Action.REGENERATE)

    def details(self) -> JSON:
        """The verdict as JSON: each leaf by its pointer, without its text."""
        leaves = []
        for path, start, end in self.leaves:
            parts = [one for one in self.answer.judged if one.start < end and start < one.end]
            categories = [one.category.value for one in parts if one.category]
            na = any(one.na for one in parts)
            leaves.append({"path": path, "categories": categories, "na": na})
        return {
            "of": self.of,
            "id": self.answer.id,
            "action": self.answer.action.value,
            "withheld": self.withheld,
            "leaves": leaves,
            "errors": [problem.model_dump() for problem in self.answer.errors],
        } | ({"would": self.answer.would.value} if self.answer.would else {})


class Verdicts(NamedTuple):
    """The verdicts on the documents of one reply, and the names of those without one.

    These are all, unless the policy says ``structured``; else those without any text.
    """

    judged: tuple[Judged, ...] = ()
    unjudged: tuple[str, ...] = ()

    @property
    def withheld(self) -> frozenset[str]:
        """The documents that may not leave."""
        return frozenset(one.of for one in self.judged if one.withheld)

    @property
    def answers(self) -> tuple[GuardedAnswer, ...]:
        """The verdicts as those of answers."""
        return tuple(one.answer for one in self.judged)

    def report(self) -> JSON:
        """Their part of the field ``guardrail``: ``structured`` and ``unjudged``."""
        judged = {"structured": [one.details() for one in self.judged]} if self.judged else {}
        return judged | ({"unjudged": list(self.unjudged)} if self.unjudged else {})


async def judge_documents(
    guard: Guardrail, policy: Policy, case: Case | None, documents: Iterable[Document]
) -> Verdicts:
    """Judge the documents of one reply if the policy says ``structured``.

    Raises:
        UnreadableReplyError: Together they hold more values than ``limits.sentences``, or one is
            nested too deeply.
    """
    found, left = [], []
    count, most = 0, guard.config.limits.sentences
    for document in documents:
        text, leaves = _text_of(document) if policy.structured else ("", ())
        count += len(leaves)
        if count > most:
            raise UnreadableReplyError(
                f"the JSON and calls of one reply hold more than {most} texts and numbers "
                "(limits.sentences)"
            )
        if leaves and case is not None:
            answer = await case.check(guard, text, policy.settled())
            found.append(Judged(document.of, answer, leaves))
        else:
            left.append(document.name or document.of)
    return Verdicts(tuple(found), tuple(named_unjudged(left)))


def named_unjudged(names: Iterable[str]) -> list[str]:
    """Log the names of what leaves without a verdict; returns them without duplicates."""
    unjudged = list(dict.fromkeys(names))
    if unjudged:
        log.info("left without a verdict: %r", unjudged)
    return unjudged


def call_name(name: object) -> str:
    """The name of a tool call that leaves without a verdict."""
    return f"tool call {name}"


def _text_of(document: Document) -> tuple[str, tuple[tuple[str, int, int], ...]]:
    """The text to judge, a paragraph for each leaf, and the leaves' positions."""
    pieces: list[str] = []
    leaves: list[tuple[str, int, int]] = []
    at = 0
    # Brackets would be read as markers, and line breaks as ends of sentences.
    plain = str.maketrans("[]\n\r\t", "()   ")
    try:
        for path, label, value in _leaves(document.value, "", document.label):
            line = clean_text(f"{label}: {value}" if label else value).translate(plain).strip()
            pieces.append(line)
            leaves.append((path, at, at + len(line)))
            at += len(line) + 2
    except RecursionError:
        raise UnreadableReplyError("the JSON or a call of the reply is nested too deeply") from None
    return "\n\n".join(pieces), tuple(leaves)


def _leaves(
    value: object, path: str, label: str, named: str = ""
) -> Iterator[tuple[str, str, str]]:
    """JSON pointer, label and text of each text, number, truth value and key, in order.

    A key of several words is part of the labels below it (``named``). It is judged by itself if it
    is too long for a label, or has three words or more, as a claim, and nothing below it.
    """
    leaf, longest_label = "", 200  # characters
    match value:
        case Mapping():
            for number, (name, item) in enumerate(value.items()):
                key = str(name)
                words = key.split()
                below = f"{named} {name_in_words(key)}".strip()
                names = " ".join((named, *words)).strip() if len(words) > 1 else named
                if long := len(below) > longest_label:
                    below, names = name_in_words(key)[:longest_label], ""
                # A key of several words may be the model's text: the pointer has its number. So may
                # an identifier of more words than the names of fields have.
                token = key.replace("~", "~0").replace("/", "~1")
                said = len(words) > 1 or len(name_in_words(key).split()) > 5
                place = f"{path}/{f'#{number}' if said else token}"
                alone = long or len(words) >= 3
                for found in _leaves(item, place, below, names):
                    alone = long
                    yield found
                if alone and key.strip():
                    yield place, "", key
        case list():
            for number, item in enumerate(value):
                yield from _leaves(item, f"{path}/{number}", label, named)
        case bool():
            leaf = str(value).lower()
        case str() | int() | float():
            leaf = str(value)
    if leaf.strip():
        yield path, label, leaf
