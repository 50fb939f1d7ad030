"""Options of every wrapper: marker style, stream mode, and the evidence shown to the model."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING

from guardrail.core.errors import KnowledgeGraphError
from guardrail.core.types import Evidence
from guardrail.models.prompts import system_prompt

if TYPE_CHECKING:
    from guardrail import Guardrail

__all__ = ["Inject", "MarkerStyle", "StreamMode", "injected_prompt"]


class MarkerStyle(StrEnum):
    """How citations appear in the text that a host receives.

    ``footnotes``: numbers, behind the phrase or, in a sentence that is supported as a whole, at its
    end; the notes stand below the answer; ``kalma``: triples as ``[Q212657, place of birth: Rome]``
    behind the phrase, with the label in place of an id that is an IRI, and passages as notes;
    ``none``: clean text, citations in the host's own fields only. The first two write ``[NA]``, and
    ``[corrected]`` behind words of the guardrail.
    """

    FOOTNOTES = "footnotes"
    KALMA = "kalma"
    NONE = "none"


class StreamMode(StrEnum):
    """When judged text leaves."""

    SENTENCE = "sentence"
    BUFFER = "buffer"


class Inject(StrEnum):
    """What a wrapped model is shown of the evidence.

    ``off``: nothing; ``facts``: the facts alone; ``prompt``: KaLMA's instruction to cite them, its
    demonstration with ``[NA]`` markers, and the facts.
    """

    OFF = "off"
    FACTS = "facts"
    PROMPT = "prompt"


async def injected_prompt(
    guard: Guardrail, question: str, evidence: Sequence[Evidence] | None, inject: Inject
) -> str:
    """The text to add to the system prompt; empty where nothing is to be added.

    Args:
        guard: Retrieves the facts; its settings bound their number and length.
        question: Decides which facts are shown.
        evidence: Facts that are known already; None to retrieve them.
        inject: What to show.
    """
    if inject is Inject.OFF:
        return ""
    try:
        facts = await guard.afacts(question, evidence=evidence)
    except KnowledgeGraphError:  # the check that follows reports it, as the policy says
        facts = ()
    instruct = inject is Inject.PROMPT
    return system_prompt(facts, instruct=instruct) if facts or instruct else ""
