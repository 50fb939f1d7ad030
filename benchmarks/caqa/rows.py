"""One row of the benchmark."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from guardrail.core.types import Category, Complexity, Triple, Value

__all__ = ["CAQARow", "Split", "SubFact"]

Split = Literal["train", "valid", "test", "test_relations"]


class SubFact(Value):
    """One fact that the answer states, and whether the evidence holds it.

    Attributes:
        text: The fact as a sentence.
        triple: The fact.
        supported: Whether the evidence holds it.
    """

    text: str
    triple: Triple
    supported: bool


class CAQARow(Value):
    """A question with an answer, evidence and how the evidence bears on the answer (CAQA 4.4).

    Attributes:
        id: Split and running number.
        question: Asks for the answer of the extended query.
        answer: The answer as a statement, now and then as the bare name.
        evidence: Passages that verbalise ``triples`` and ``noise``, mixed.
        triples: The edited subgraph (CAQA 4.3).
        noise: Further facts in the evidence that do not bear on the answer.
        category: What the evidence does for the answer.
        complexity: The reasoning that joins the facts.
        sub_facts: The facts that the answer states.
        supported: How many of them the evidence holds.
        seeds: Labels of the entities that the question names.
        answers: Labels of the entities that the answer names as answers.
        properties: Labels of the properties that the question asks about.
        split: Which part of the benchmark the row belongs to.
        base: Shape of the query before extension.
        extension: Rule of Table 4 that extended it; None where none did.
        edited: True where question, answer or evidence state a fact that the graph does not hold.
        flat: True where the evidence is in flat form (``linearise``), not in sentences.
        verbaliser: Who wrote the texts.
    """

    id: str
    question: str
    answer: str
    evidence: tuple[str, ...]
    triples: tuple[Triple, ...]
    noise: tuple[Triple, ...]
    category: Category
    complexity: Complexity
    sub_facts: tuple[SubFact, ...]
    supported: int = Field(ge=0)
    seeds: tuple[str, ...]
    answers: tuple[str, ...]
    properties: tuple[str, ...]
    split: Split
    base: Literal["single", "path", "tree"]
    extension: Literal["union", "subject", "answer"] | None = None
    edited: bool = False
    flat: bool = False
    verbaliser: str = "template"
