"""Content score: which of the key entities the answer mentions (SCK 2.3, eq. 4)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache
from typing import NamedTuple

from guardrail.core.text.lexicon import lexicon
from guardrail.core.types import LinkedEntity, Mention, Score
from judges.sck.report import ContentReport, KeyEntity

__all__ = ["Name", "fold", "names_in", "occurs", "score_content"]

_SPACE = re.compile(r"\s+")


class Name(NamedTuple):
    """An entity by the names it may appear under.

    Attributes:
        text: The name to show.
        forms: Folded names, any of which counts.
        entity_id: The linked node, where there is one.
    """

    text: str
    forms: frozenset[str]
    entity_id: str | None


def fold(text: str) -> str:
    """Case folded, white space single, without an article before and ``'s`` after."""
    return _edges().sub("", _SPACE.sub(" ", text.strip()).casefold())


@cache
def _edges() -> re.Pattern[str]:
    articles = "|".join(lexicon("function_words")["articles"])
    return re.compile(rf"^(?:{articles})\s+|[’']s$", re.IGNORECASE)


def occurs(form: str, folded: str) -> bool:
    """Whether a folded name stands in a folded text, at word boundaries."""
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
    """The different entities of a text: linked ones whose mention stands in it, then other names.

    Args:
        text: The text.
        mentions: Names a tagger found in it.
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


def score_content(answer: str, key: Sequence[Name], *, source: str) -> ContentReport:
    """The share of key entities that the answer mentions under any of their names.

    Args:
        answer: The answer.
        key: The key entities.
        source: ``reference`` or ``question``.
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
