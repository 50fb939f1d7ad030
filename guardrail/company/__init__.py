"""An invented maker of bicycles: its graph, its handbook, and answers a chat model could give.

Halden Cycles, its products, prices and policies are made up; all of it was written for this
project. ``guardrail demo`` and the documentation show the guardrail on it.
"""

from __future__ import annotations

import json
from importlib.resources import as_file, files
from typing import TYPE_CHECKING

from guardrail.core.types import Passage

if TYPE_CHECKING:
    from kg import OxigraphGraph, SparqlGraph

__all__ = ["QUESTION", "company_graph", "handbook", "recorded_answers"]

QUESTION = "What does the Fjell 3 cost, how far does it go, and can I send it back?"


def company_graph() -> OxigraphGraph | SparqlGraph:
    """The company's graph: products with their figures, people, places."""
    from kg import open_graph

    with as_file(files(__package__) / "company.ttl") as path:
        return open_graph(path)


def handbook() -> tuple[Passage, ...]:
    """The company's handbook, one passage a section, with the section's name as title and id."""
    text = files(__package__).joinpath("handbook.md").read_text("utf-8")
    sections = (section.partition("\n") for section in text.split("\n## ")[1:])
    return tuple(
        Passage(text=" ".join(body.split()), id=f"handbook: {title}", title=title)
        for title, _, body in sections
    )


def recorded_answers() -> tuple[str, ...]:
    """Three answers to ``QUESTION`` as a chat model writes them; kept as text, not sampled."""
    text = files(__package__).joinpath("answers.json").read_text("utf-8")
    return tuple(json.loads(text)["answers"])
