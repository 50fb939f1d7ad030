"""How prose names the properties of knowledge graphs, and what kind their values are."""

from __future__ import annotations

from guardrail.core.remembered import remembered
from guardrail.core.text.lexicon import lexicon, lexicon_set
from guardrail.core.text.units import head_of
from guardrail.core.text.words import content_stems, property_words

__all__ = ["certain_cues", "cues", "property_name", "tells_place"]


def property_name(label: str) -> str:
    """The words of a label without its unit and scale: *price* of ``price_eur``."""
    return head_of(label).name


@remembered(16_384)
def cues(label: str) -> frozenset[str]:
    """Stems of the words that name a property in prose, including those of its label."""
    name = property_name(label)
    return content_stems(" ".join([name, *lexicon("properties")["wording"].get(name, ())]))


@remembered(16_384)
def certain_cues(label: str) -> frozenset[str]:
    """The cues that name this property and no unrelated one.

    *born* names places and dates of birth, which share a word; *parent* names a father and a
    mother, which do not.
    """
    name = property_name(label)
    own = content_stems(name)
    shared = frozenset[str]().union(
        *(
            content_stems(" ".join([other, *words]))
            for other, words in lexicon("properties")["wording"].items()
            if own.isdisjoint(content_stems(other))
        )
    )
    return own | (cues(label) - shared)


def tells_place(label: str) -> bool:
    """Whether a property tells where something is or happened, and so in any wider place as well.

    A river or a range of hills does not place something in one of its countries.
    """
    name = property_words(label)
    within = lexicon_set("properties", "within")
    return name in lexicon_set("properties", "within_labels") or not within.isdisjoint(name.split())
