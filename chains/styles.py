"""How judged text is returned: how its markers look, and when what is streamed leaves."""

from __future__ import annotations

from enum import StrEnum

__all__ = ["MarkerStyle", "StreamMode"]


class MarkerStyle(StrEnum):
    """How citations appear in the text that a host receives.

    ``kalma``: triples as ``[Q212657, place of birth: Rome]``, with the label in place of an id that
    is an IRI; passages as numbered notes, whose list with title and address stands at the end, and
    ``[NA]``; ``footnotes``: all as numbered notes; ``none``: clean text, citations in the host's
    own fields only. Behind words that the guardrail wrote the first two have ``[corrected]``.
    """

    KALMA = "kalma"
    FOOTNOTES = "footnotes"
    NONE = "none"


class StreamMode(StrEnum):
    """When judged text leaves."""

    SENTENCE = "sentence"
    BUFFER = "buffer"
