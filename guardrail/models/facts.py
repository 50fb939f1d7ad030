"""Facts that are relevant to a question, and their form in a prompt (KaLMA 3.3)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import groupby

from guardrail.core.text.lexicon import lexicon
from guardrail.core.text.words import content_stems
from guardrail.core.types import Subgraph, Triple


def flatten(triples: Iterable[Triple]) -> str:
    """Write triples as flat text, one line per entity: ``{Q…, name: …, property: value}``.

    Line breaks, tags and marks of chat templates inside a fact are neutralised: a value can neither
    end the list nor open another turn of the chat.
    """
    lines = []
    for (entity, name), group in groupby(triples, key=lambda t: (t.citation.entity, t.subject)):
        facts = ", ".join(f"{triple.property}: {triple.value}" for triple in group)
        named = f"name: {name}, " if name != entity else ""
        # The sign opens a tag or a chat template's control token, such as </facts> or <|im_end|>;
        # other templates have ### headings and [INST]
        line = re.sub(r"<(?=[|/!?A-Za-z])", "‹", f"{{{entity}, {named}{facts}}}")
        line = re.sub(r"#{3,}\s*|\[/?INST\]", "", line)
        lines.append(" ".join(line.split()))
    return "\n".join(lines)


def relevant_triples(
    question: str, subgraphs: Sequence[Subgraph], most: int = 40
) -> tuple[Triple, ...]:
    """Choose the facts to show, those of an entity together, most relevant first.

    A fact is more relevant the more words its property and value share with the question. Facts
    about the data base itself (categories, sources, given names) come last.
    """
    words = content_stems(question)
    ranks: dict[Triple, tuple[float, int, int]] = {}
    for place, subgraph in enumerate(subgraphs):
        outgoing = len(subgraph.triples)
        for position, triple in enumerate((*subgraph.triples, *subgraph.incoming)):
            if triple not in ranks:
                # A fact of another entity that points here says less about this one.
                score = _relevance(triple, words) - 0.5 * (position >= outgoing)
                ranks[triple] = (-score, position, place)
    chosen: list[Triple] = []
    size = 0
    for triple in sorted(ranks, key=ranks.__getitem__):
        length = len(triple.property) + len(triple.value) + 4
        # Three characters make about one token
        if len(chosen) < most and size + length <= 3_000:
            size += length
            chosen.append(triple)
    # Stable sorts: by entity in the order of linking, by relevance within an entity.
    chosen.sort(key=lambda triple: ranks[triple][2])
    order = list(dict.fromkeys(triple.citation.entity for triple in chosen))
    return tuple(sorted(chosen, key=lambda triple: order.index(triple.citation.entity)))


def is_housekeeping(name: str) -> bool:
    """True for properties about the database itself, such as sources and categories."""
    return bool(_housekeeping().match(name))


@cache
def _housekeeping() -> re.Pattern[str]:
    return re.compile(f"^(?:{'|'.join(lexicon('properties')['housekeeping'])})$")


def _relevance(triple: Triple, question: frozenset[str]) -> float:
    if is_housekeeping(triple.property):
        return -1.0
    shared_property = len(content_stems(triple.property) & question)
    shared_value = len(content_stems(triple.value) & question)
    return 2.0 * min(shared_value, 2) + 1.5 * min(shared_property, 2)
