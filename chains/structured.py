"""JSON answers and arguments of tool calls under the guardrail, where the policy asks for it.

Every text, number and truth value in a document is judged as a sentence with its key as its label.
The document leaves unchanged or not at all, with its verdicts. What leaves without one is
named there.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from chains.evidence.base import Case
from chains.openai_wire import JSON, UnreadableReplyError
from guardrail.core.incoming import clean_text
from guardrail.core.secrets import get_logger
from guardrail.core.types import Action, GuardedAnswer, name_in_words

if TYPE_CHECKING:
    from guardrail import Guardrail, Policy

__all__ = ["Document", "Judged", "Verdicts", "call_name", "judge_documents", "named_unjudged"]

log = get_logger(__name__)

PLAIN = str.maketrans("[]\n\r\t", "()   ")
"""Brackets would pass for markers, which are no part of a text, and a line may be a leaf's own."""
LONGEST_LABEL = 200
"""Characters of keys before what they hold; a longer key is a text of its own."""
CLAIM_WORDS = 3
"""Fewest words of a key that may state something by itself."""


class Document(NamedTuple):
    """JSON to judge.

    Attributes:
        of: What it is, for the side field: ``content``, or the id of a tool's call.
        label: Stands before what has no key.
        value: The document, read; or the text itself where it is no JSON.
        name: Its name if it leaves unjudged; ``of`` by default.
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
        leaves: The position of each in the text of the verdict.
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
            ``structured``, else those in which nothing stands that could be judged.
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

    def report(self) -> JSON:
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
        documents: Those of one reply; one that holds nothing has no verdict.

    Raises:
        UnreadableReplyError: They hold more texts and numbers together than ``limits.sentences``.
    """
    found, left = [], []
    count, most = 0, guard.config.limits.sentences
    for document in documents:
        text, leaves = _written(document) if policy.structured else ("", ())
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
    return Verdicts(tuple(found), tuple(named_unjudged(left).get("unjudged", ())))


def named_unjudged(names: Iterable[str]) -> JSON:
    """What the field ``guardrail`` says, and the log, of what leaves without a verdict, if any.

    Args:
        names: ``content``, ``output 0, content 1``, ``tool call NAME``; each is named once.
    """
    unjudged = list(dict.fromkeys(names))
    if not unjudged:
        return {}
    log.info("left without a verdict: %r", unjudged)
    return {"unjudged": unjudged}


def call_name(name: object) -> str:
    """What the call of a tool is called where it leaves unjudged."""
    return f"tool call {name}"


def _written(document: Document) -> tuple[str, tuple[_Leaf, ...]]:
    """The text that is judged, a paragraph for each leaf."""
    pieces: list[str] = []
    leaves: list[_Leaf] = []
    at = 0
    for path, label, value in _leaves(document.value, "", document.label):
        line = clean_text(f"{label}: {value}" if label else value).translate(PLAIN).strip()
        pieces.append(line)
        leaves.append(_Leaf(path, at, at + len(line)))
        at += len(line) + 2
    return "\n\n".join(pieces), tuple(leaves)


class _Held(NamedTuple):
    """A value of a document that is still to be read.

    Attributes:
        value: The value; once that is read the number of leaves found before it.
        path: Its JSON pointer.
        label: Its key in words.
        named: The keys of several words above it.
        key: Its key, where that may state something by itself.
        long: Whether the key is too long to stand before the labels of what it holds.
        read: Whether the value has been read.
    """

    value: object
    path: str
    label: str
    named: str = ""
    key: str = ""
    long: bool = False
    read: bool = False


def _leaves(value: object, path: str, label: str) -> Iterator[tuple[str, str, str]]:
    """Texts, numbers, truth values and keys with their JSON pointer and label, in order.

    A key of several words names or states something by itself: it stands before the labels of
    what it holds, and where it holds nothing it is judged alone.
    """
    waiting = [_Held(value, path, label)]
    found = 0
    while waiting:
        held = waiting.pop()
        if held.key and not held.read:
            waiting.append(held._replace(value=found, label="", read=True))
        leaf, inner = "", list[_Held]()
        match held.value:
            case _ if held.read:
                leaf = held.key if held.long or held.value == found else ""
            case Mapping() as keys:
                inner = [
                    _of_key(held, str(key), n, item) for n, (key, item) in enumerate(keys.items())
                ]
            case list() as items:
                inner = [
                    held._replace(value=item, path=f"{held.path}/{n}", key="", long=False)
                    for n, item in enumerate(items)
                ]
            case bool() as truth:
                leaf = str(truth).lower()
            case str() | int() | float() as written:
                leaf = str(written)
        waiting += reversed(inner)
        if leaf.strip():
            found += 1
            yield held.path, held.label, leaf


def _of_key(above: _Held, key: str, number: int, value: object) -> _Held:
    """What stands under a key of an object."""
    words = key.split()
    label = f"{above.named} {name_in_words(key)}".strip()
    named = " ".join((above.named, *words)).strip() if len(words) > 1 else above.named
    alone = key if len(words) >= CLAIM_WORDS else ""
    if long := len(label) > LONGEST_LABEL:
        label, named, alone = name_in_words(key)[:LONGEST_LABEL], "", key
    # In the pointer a key of several words has its number: it is a text of the model's.
    place = f"#{number}" if len(words) > 1 else key.replace("~", "~0").replace("/", "~1")
    return _Held(value, f"{above.path}/{place}", label, named, alone, long)
