"""Content score: the share of the key entities that the answer mentions (SCK 2.3, eq. 4)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache
from typing import NamedTuple

from guardrail.core.text.lexicon import lexicon
from guardrail.core.types import Evidence, LinkedEntity, Mention, Passage, Score
from judges.sck.report import ContentReport, KeyEntity

__all__ = ["Name", "fold", "key_names", "names_in", "occurs", "score_content"]

MOST_SUBJECTS = 10
"""Most subjects of the evidence that count as key entities."""

_SPACE = re.compile(r"\s+")


class Name(NamedTuple):
    """An entity and the names that count as a mention of it.

    Attributes:
        text: The name to show.
        forms: Folded names.
        entity_id: The linked node, where there is one.
    """

    text: str
    forms: frozenset[str]
    entity_id: str | None


def fold(text: str) -> str:
    """Fold case and white space; drop a leading article and a trailing ``'s``."""
    return _edges().sub("", _SPACE.sub(" ", text.strip()).casefold())


@cache
def _edges() -> re.Pattern[str]:
    articles = "|".join(lexicon("function_words")["articles"])
    return re.compile(rf"^(?:{articles})\s+|[’']s$", re.IGNORECASE)


def occurs(form: str, folded: str) -> bool:
    """True if a folded text contains a folded name at word boundaries."""
    start = folded.find(form)
    while start >= 0:
        end = start + len(form)
        before = start == 0 or not folded[start - 1].isalnum()
        if before and (end == len(folded) or not folded[end].isalnum()):
            return True
        start = folded.find(form, start + 1)
    return False


def names_in(
    text: str, mentions: Iterable[Mention], entities: Iterable[LinkedEntity]
) -> list[Name]:
    """The distinct entities of a text: linked entities that it mentions, then other names.

    Args:
        text: The text.
        mentions: Names that a tagger found in it.
        entities: Entities linked in it or elsewhere.
    """
    folded = fold(text)
    found: dict[str, Name] = {}
    taken: set[str] = set()
    for linked in entities:
        entity = linked.entity
        surface = fold(linked.mention.text)
        if not surface or not occurs(surface, folded):
            continue
        forms = frozenset(filter(None, map(fold, (surface, entity.label, *entity.aliases))))
        found.setdefault(entity.id, Name(linked.mention.text, forms, entity.id))
        taken |= forms
    for mention in mentions:
        form = fold(mention.text)
        if form and form not in taken:
            taken.add(form)
            found[form] = Name(mention.text, frozenset({form}), None)
    return list(found.values())


def key_names(
    question: str,
    mentions: Iterable[Mention],
    entities: Iterable[LinkedEntity],
    evidence: Iterable[Evidence],
) -> tuple[list[Name], str]:
    """The entities that an answer to a question should mention, from question and evidence.

    These are the names of the question: linked ones, those of the tagger, and every subject of
    the evidence that the question mentions, so that products or rows without a graph count too.
    A question without any name takes the subjects of the evidence, if they are at most ten.

    Returns:
        The names, and ``question`` or ``evidence`` as their source.
    """
    subjects: dict[str, Name] = {}
    for item in evidence:
        subject = item.title if isinstance(item, Passage) else getattr(item, "subject", None)
        if subject and (form := fold(subject)):
            subjects.setdefault(form, Name(subject, frozenset({form}), None))
    names = names_in(question, mentions, entities)
    taken = {form for name in names for form in name.forms}
    folded = fold(question)
    found = [name for form, name in subjects.items() if form not in taken and occurs(form, folded)]
    # A tagger's name within or around a subject of the evidence is the same entity.
    forms = [form for name in found for form in name.forms]
    names = [
        name
        for name in names
        if name.entity_id is not None
        or not any(occurs(form, own) or occurs(own, form) for form in forms for own in name.forms)
    ]
    if names or found:
        return [*names, *found], "question"
    if not 1 <= len(subjects) <= MOST_SUBJECTS:
        return [], "question"
    return list(subjects.values()), "evidence"


def score_content(answer: str, key: Sequence[Name], *, source: str) -> ContentReport:
    """The share of key entities that the answer mentions under any of their names.

    Args:
        answer: The answer.
        key: The key entities.
        source: ``reference``, ``question`` or ``evidence``.
    """
    folded = fold(answer)
    entities = tuple(
        KeyEntity(
            text=name.text,
            entity_id=name.entity_id,
            found=any(occurs(form, folded) for form in name.forms),
        )
        for name in key
    )
    if not entities:
        return ContentReport(
            score=Score(reason=f"the {source} names no entity"), source=source, entities=()
        )
    found = sum(entity.found for entity in entities)
    return ContentReport(
        score=Score(
            value=found / len(entities),
            evidence=(f"{found} of {len(entities)} key entities of the {source}",),
        ),
        source=source,
        entities=entities,
    )
