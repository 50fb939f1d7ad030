"""JSON answers and arguments of tool calls under the guardrail, where the policy asks for it.

Every text and number in a document is judged as a sentence with its key as its label. The document
leaves as it is or not at all; the verdicts stand beside it. What leaves without one is named there.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from chains.evidence.base import Case
from chains.openai_wire import JSON
from guardrail.core.incoming import clean_text
from guardrail.core.secrets import get_logger
from guardrail.core.types import Action, GuardedAnswer, name_in_words

if TYPE_CHECKING:
    from guardrail import Guardrail, Policy

__all__ = ["Document", "Judged", "Verdicts", "call_name", "judge_documents", "named_unjudged"]

log = get_logger(__name__)

PLAIN = str.maketrans("[]\n\r\t", "()   ")
"""Brackets would pass for markers, which are no part of a text, and a line may be a leaf's own."""


class Document(NamedTuple):
    """JSON to judge.

    Attributes:
        of: What it is, for the side field: ``content``, or the id of a tool's call.
        label: Stands before what has no key.
        value: The document, read; or the text itself where it is no JSON.
        name: What it is called where it leaves unjudged; as ``of`` unless told.
    """

    of: str
    label: str
    value: object
    name: str = ""

    @classmethod
    def read(cls, of: str, label: str, text: object, name: str = "") -> Document:
        """The document that a text writes."""
        try:
            read = json.loads(text, object_pairs_hook=_object) if isinstance(text, str) else text
            return cls(of, label, read, name)
        except (ValueError, RecursionError):
            return cls(of, label, text, name)


def _object(pairs: Sequence[tuple[str, object]]) -> JSON:
    """An object in which a key that is repeated has all of its values: who reads it takes any."""
    values: dict[str, list[object]] = {}
    for key, value in pairs:
        values.setdefault(key, []).append(value)
    return {key: held if len(held) > 1 else held[0] for key, held in values.items()}


class _Leaf(NamedTuple):
    """A text of a document: where it stands there, and in the text that is judged."""

    path: str
    start: int
    end: int


class Judged(NamedTuple):
    """The verdict on one document.

    Attributes:
        of: Which document.
        answer: The verdict on all of its leaves, one after another.
        leaves: Where each stands in the text of the verdict.
    """

    of: str
    answer: GuardedAnswer
    leaves: tuple[_Leaf, ...]

    @property
    def withheld(self) -> bool:
        """Whether the policy takes out some of it, so that none of it may leave."""
        return self.answer.action in (Action.REFUSE, Action.FILTER, Action.REGENERATE)

    def details(self) -> JSON:
        """The entry of the side field: each leaf by its JSON pointer, never its text."""
        leaves = []
        for path, start, end in self.leaves:
            said = [one for one in self.answer.judged if one.start < end and start < one.end]
            leaves.append(
                {
                    "path": path,
                    "categories": [one.category.value for one in said if one.category],
                    "na": any(one.na for one in said),
                }
            )
        errors = [problem.model_dump() for problem in self.answer.errors]
        return {
            "of": self.of,
            "id": self.answer.id,
            "action": self.answer.action.value,
            "withheld": self.withheld,
            "leaves": leaves,
            "errors": errors,
        } | ({"would": self.answer.would.value} if self.answer.would else {})


class Verdicts(NamedTuple):
    """What was judged of the documents of one reply, and what was not.

    Attributes:
        judged: The verdicts.
        unjudged: The names of the documents without one: all of them unless the policy says
            ``structured``, else those in which no text and no number stands.
    """

    judged: tuple[Judged, ...] = ()
    unjudged: tuple[str, ...] = ()

    @property
    def withheld(self) -> frozenset[str]:
        """Which documents may not leave."""
        return frozenset(one.of for one in self.judged if one.withheld)

    @property
    def answers(self) -> tuple[GuardedAnswer, ...]:
        """The verdicts as those of answers."""
        return tuple(one.answer for one in self.judged)

    def told(self) -> JSON:
        """What the field ``guardrail`` says of them: ``structured`` and ``unjudged``."""
        judged = {"structured": [one.details() for one in self.judged]} if self.judged else {}
        return judged | ({"unjudged": list(self.unjudged)} if self.unjudged else {})


async def judge_documents(
    guard: Guardrail, policy: Policy, case: Case | None, documents: Iterable[Document]
) -> Verdicts:
    """Judge documents, where the policy asks for it; else none is.

    Args:
        guard: The guardrail.
        policy: What decides on them.
        case: What they are judged against; None where the policy does not ask for it.
        documents: Those of one reply; one without a text or a number has no verdict.
    """
    found, left = [], []
    for document in documents:
        text, leaves = _written(document) if policy.structured else ("", ())
        if leaves and case is not None:
            answer = await case.check(guard, text, policy.settled())
            found.append(Judged(document.of, answer, leaves))
        else:
            left.append(document.name or document.of)
    return Verdicts(tuple(found), tuple(named_unjudged(left).get("unjudged", ())))


def named_unjudged(names: Iterable[str]) -> JSON:
    """What the field ``guardrail`` says, and the log, of what leaves without a verdict, if any.

    Args:
        names: ``content``, ``output 0, content 1``, ``tool call NAME``; each is named once.
    """
    told = list(dict.fromkeys(names))
    if not told:
        return {}
    log.info("left without a verdict: %r", told)
    return {"unjudged": told}


def call_name(name: object) -> str:
    """What the call of a tool is called where it leaves unjudged."""
    return f"tool call {name}"


def _written(document: Document) -> tuple[str, tuple[_Leaf, ...]]:
    """The text that is judged, a paragraph for each leaf."""
    pieces: list[str] = []
    leaves: list[_Leaf] = []
    at = 0
    for path, label, value in _leaves(document.value, "", document.label):
        line = clean_text(f"{label}: {value}").translate(PLAIN).strip()
        pieces.append(line)
        leaves.append(_Leaf(path, at, at + len(line)))
        at += len(line) + 2
    return "\n\n".join(pieces), tuple(leaves)


def _leaves(value: object, path: str, label: str) -> Iterator[tuple[str, str, str]]:
    """Texts and numbers with their JSON pointer and label, in order; depth is that of the JSON."""
    waiting: list[tuple[object, str, str]] = [(value, path, label)]
    while waiting:
        value, path, label = waiting.pop()
        if isinstance(value, Mapping):
            inner: list[tuple[object, str, str]] = [
                (held, f"{path}/{_pointer(key)}", name_in_words(str(key)))
                for key, held in value.items()
            ]
            waiting += reversed(inner)
        elif isinstance(value, list):
            inner = [(held, f"{path}/{place}", label) for place, held in enumerate(value)]
            waiting += reversed(inner)
        elif isinstance(value, str) and value.strip():
            yield path, label, value
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield path, label, str(value)


def _pointer(key: object) -> str:
    return str(key).replace("~", "~0").replace("/", "~1")
