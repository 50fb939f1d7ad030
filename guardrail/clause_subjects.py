"""Who each clause of a sentence is about: a name, *he* or *she*, or somebody's relation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from guardrail.coreference import Subject
from guardrail.naming import Span
from guardrail.syntax import SUBJECTS, end_of
from guardrail.text.values import tokenise, word_set
from guardrail.vocabulary import is_related

if TYPE_CHECKING:
    from spacy.tokens import Token as ParsedToken

__all__ = ["Clause", "Clauses"]

T = TypeVar("T")

PERSONAL = word_set("he she")

SAID = frozenset({"prep", "relcl", "acl"})
"""How what is said of a subject hangs on it that may name somebody else."""

POINTERS = word_set("there here where its his her their")
"""Words that stand for someone or somewhere named outside their clause, beside pronouns."""


class Clause(NamedTuple):
    """A clause with its own subject.

    Attributes:
        named: The subject is a name, and nothing points to another clause.
        subjects: Where its subject stands with all that is said of it, if that is a name; empty
            where it is *he* or *she*, None for any other subject.
        names: Where the names of that subject stand, not those that it is told with.
        words: Folded words of the clause, those of clauses inside it left out.
        related: The noun, where its subject is somebody's *mother* or *teacher*.
        noun: Where that stands.
        bearer: Folded names of that person, as in *her father (was) William Godwin*.
    """

    named: bool
    words: frozenset[str]
    subjects: tuple[Span, ...] | None = None
    names: tuple[Span, ...] = ()
    related: str | None = None
    noun: Span | None = None
    bearer: frozenset[str] = frozenset()


class Clauses:
    """The clauses of a sentence, each looked at once, in time linear in its words.

    Args:
        about: Who the sentence is about.
        sentence: Its words; what the parser hangs them on outside of it is not looked at.
    """

    def __init__(self, about: Subject, sentence: Sequence[ParsedToken]) -> None:
        self._about = about
        self._words = {one.i: one for one in sentence}
        self._heads: dict[int, int | None] = {}
        self._found: dict[int, Clause] = {}

    def around(self, token: ParsedToken) -> Clause | None:
        """The innermost clause with its own subject that a token stands in."""
        head = self._head(token)
        if head is None:
            return None
        if head not in self._found:
            self._found[head] = self._read(self._words[head])
        return self._found[head]

    def may_mean(self, label: str) -> bool:
        """Whether *he* or *she* may stand for an entity."""
        topic = self._about.topic
        return label == topic or (topic is None and label not in self._about.unfit)

    def excludes(self, label: str) -> bool:
        """Whether *he* or *she* can by no means stand for an entity."""
        return label in self._about.unfit

    def _read(self, head: ParsedToken) -> Clause:
        subjects = [child for child in head.children if child.dep_ in SUBJECTS]
        parts = [part for part in self._words.values() if self._head(part) == head.i]
        proper = any(one.pos_ == "PROPN" for one in subjects)
        named = proper and not any(part.pos_ == "PRON" or part.lower_ in POINTERS for part in parts)
        places: tuple[Span, ...] | None = None
        if proper:
            places = tuple((one.left_edge.idx, end_of(one.right_edge)) for one in subjects)
        elif all(one.lower_ in PERSONAL for one in subjects):
            places = ()
        names = tuple((one.idx, end_of(one)) for subject in subjects for one in _parts(subject))
        words = {one.folded for part in parts for one in tokenise(part.text)}
        return Clause(named, frozenset(words), places, names, *_related(head, subjects))

    def above(
        self,
        token: ParsedToken,
        known: dict[int, T | None],
        told: Callable[[ParsedToken], T | None],
    ) -> T | None:
        """What the first word tells of which a token is part: itself or one it hangs on.

        Args:
            token: A word of the sentence.
            known: What was found for other words, by their places, so that none is asked twice.
            told: What a word tells; None to go on to the one that it hangs on.

        Returns:
            None where no word of the sentence tells anything.
        """
        path: list[int] = []
        one = token
        found: T | None = None
        while one.i in self._words:
            found = known[one.i] if one.i in known else told(one)
            path.append(one.i)
            if one.i in known or found is not None or one.head.i == one.i:
                break
            one = one.head
        known.update(dict.fromkeys(path, found))
        return found

    def _head(self, token: ParsedToken) -> int | None:
        """Place of the word that the subject of a token's clause hangs on."""
        return self.above(token, self._heads, _bears_subject)


def _bears_subject(one: ParsedToken) -> int | None:
    """A word's place if a subject hangs on it; relative clauses are part of the clause round it."""
    if one.dep_ == "relcl" or not any(child.dep_ in SUBJECTS for child in one.children):
        return None
    return int(one.i)


def _parts(subject: ParsedToken) -> Iterator[ParsedToken]:
    """Yield the words of a subject's names: of *Anna, wife of Bruno* those of Anna."""
    waiting = [subject]
    while waiting:
        one = waiting.pop()
        yield one
        waiting += [child for child in one.children if child.dep_ not in SAID]


def _related(
    head: ParsedToken, subjects: Sequence[ParsedToken]
) -> tuple[str | None, Span | None, frozenset[str]]:
    """The noun by which a clause's subject is somebody's relation, and who that is."""
    told = [
        part
        for child in head.children
        if child.dep_ == "attr" and child.pos_ == "PROPN"
        for part in (child, *child.children)
    ]
    for subject in subjects:
        for noun in subject.subtree:
            owners = [child for child in noun.children if child.dep_ == "poss"]
            if not owners or not is_related(noun.lower_):
                continue
            inside = {part.i for owner in owners for part in owner.subtree}
            bearer = (
                one.folded
                for part in (*subject.subtree, *told)
                if part.pos_ == "PROPN" and part.i not in inside
                for one in tokenise(part.text)
            )
            return noun.lower_, (noun.idx, end_of(noun)), frozenset(bearer)
    return None, None, frozenset()
