"""Re-ranking: which of several nodes with one name a text means (KaLMA 3.2).

The paper takes the node with most neighbour values found exactly in the question. Here rare
values weigh more than common ones, parts of values and the properties themselves count a little,
and so do direct links to the candidates of other mentions. ``plain`` keeps the paper's counting.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence

from guardrail.core.text.lexicon import lexicon, lexicon_set
from guardrail.core.text.words import remembered
from guardrail.core.types import Candidate, Entity, Subgraph, Triple
from kg.mentions import fold
from kg.relations import genders


class TextIndex:
    """The words of a text, indexed once for all look-ups of values of up to eight words in it.

    The first 20,000 words are searched, which is more than a chapter.
    """

    def __init__(self, text: str) -> None:
        words = re.findall(r"\w+", fold(text))[:20_000]
        self.words = frozenset(words)
        self._stems = frozenset(word[:5] for word in words if len(word) >= 5)
        self._grams = frozenset(
            " ".join(words[first : first + length])
            for length in range(1, 9)
            for first in range(len(words) - length + 1)
        )

    def holds(self, words: Sequence[str]) -> bool:
        """True if the text contains the folded words consecutively."""
        return bool(words) and " ".join(words) in self._grams

    def share(self, words: Sequence[str]) -> float:
        """Share of the words that the text contains, by their first five letters, in [0, 1]."""
        if not words:
            return 0.0
        hits = sum(word in self.words or word[:5] in self._stems for word in words)
        return hits / len(words)


def rerank(
    groups: Sequence[Sequence[Entity]],
    index: TextIndex,
    subgraphs: Mapping[str, Subgraph],
    links: Sequence[Triple] = (),
    *,
    plain: bool = False,
) -> list[list[Candidate]]:
    """Order the candidates of every mention of one text, best first (KaLMA 3.2).

    Ties are broken by prominence, then id. Candidates without a subgraph count as having no facts;
    ``links`` are triples between candidates, and from them to nodes settled already. ``plain``
    counts exact matches only, each as 1, as the paper does.
    """
    frequency = _frequencies(groups, subgraphs)
    group_of = {entity.id: number for number, group in enumerate(groups) for entity in group}
    linked: Counter[str] = Counter()
    for triple in links:
        ends = [end for end in (triple.subject_id, triple.value_id) if end is not None]
        sides = {group_of.get(end, -1) for end in ends}
        if len(ends) == len(sides) == 2:
            linked.update(ends)
    ranked = []
    for group in groups:
        candidates = []
        for entity in group:
            subgraph = subgraphs.get(entity.id) or Subgraph(entity=entity)
            labels = _neighbour_labels(subgraph)
            matches = tuple(label for label in labels if index.holds(_words(label)))
            score = (
                float(len(matches))
                if plain
                else _weigh(subgraph, matches, index, frequency) + 1.5 * min(linked[entity.id], 3)
            )
            candidates.append(Candidate(entity=entity, matches=matches, score=round(score, 4)))
        candidates.sort(key=lambda c: (-c.score, -c.entity.prominence, c.entity.id))
        ranked.append(candidates)
    return ranked


def _weigh(
    subgraph: Subgraph, matches: Sequence[str], index: TextIndex, frequency: Mapping[str, float]
) -> float:
    """The score of a node, in units of one rare value in the text.

    The weights order kinds of evidence: a link beats a value, a value beats its parts.
    """
    stop = lexicon_set("function_words", "stop_words")
    found = set(matches)
    name = set(_words(subgraph.entity.label))
    # The mention itself holds given name and surname: together they say one thing, whether the
    # node's names are those of its label.
    own = [label for label in matches if name.issuperset(_words(label))]
    score = sum(0.1 + frequency.get(label, 1.0) for label in matches if label not in own)
    score += bool(own)
    for label in _neighbour_labels(subgraph):
        date = re.match(r"(-?\d{3,})-\d\d-\d\d", label)
        if date is not None:
            score += 0.8 * (date.group(1).lstrip("-0") in index.words)
        elif label not in found:
            parts = [
                word
                for word in _words(label)
                if len(word) >= 4 and word not in stop and word not in name
            ]
            score += 0.3 * frequency.get(label, 1.0) * index.share(parts)
    for label in {triple.property for triple in subgraph.triples}:
        words = [word for word in _words(label) if word not in stop]
        score += 0.2 * (bool(words) and index.words.issuperset(words))
    return score + 0.3 * _gender_agreement(subgraph, index)


def _gender_agreement(subgraph: Subgraph, index: TextIndex) -> int:
    """1 where the pronouns of the text fit the node's gender, -1 where only the other's do."""
    known = genders(subgraph)
    pronouns = lexicon("function_words")["genders"]
    said = {gender for gender, words in pronouns.items() if not index.words.isdisjoint(words)}
    if len(said) != 1 or len(known) != 1:
        return 0
    return 1 if said == known else -1


def _frequencies(
    groups: Sequence[Sequence[Entity]], subgraphs: Mapping[str, Subgraph]
) -> dict[str, float]:
    """Weigh each neighbour value by how few of the candidates have it, in (0, 1]."""
    ids = {entity.id for group in groups for entity in group}
    holders = Counter(
        label for key in ids if key in subgraphs for label in _neighbour_labels(subgraphs[key])
    )
    scale = math.log(len(ids) + 1)
    return {
        label: math.log((len(ids) + 1) / count) / scale if scale else 1.0
        for label, count in holders.items()
    }


def _neighbour_labels(subgraph: Subgraph) -> dict[str, None]:
    return dict.fromkeys(
        [
            *(triple.value for triple in subgraph.triples),
            *(triple.subject for triple in subgraph.incoming),
        ]
    )


@remembered(1 << 16)
def _words(label: str) -> tuple[str, ...]:
    return tuple(re.findall(r"\w+", fold(label)))
