"""The KaLMA prompt: instruction, one demonstration, facts as flat text, question (Tables 2, 10).

The demonstration leaves out facts on purpose and marks their claims ``[NA]``, which teaches
the model conscious incompetence (KaLMA 3.3). Instruction and demonstration are this project's
own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import groupby

from pydantic import Field

from guardrail.models.base import Message, Prompt
from guardrail.types import Subgraph, Triple, Value

__all__ = [
    "DEMONSTRATION",
    "INSTRUCTION",
    "Demonstration",
    "FailedSentence",
    "PromptBudget",
    "answer_prompt",
    "flatten",
    "is_housekeeping",
    "relevant_triples",
]

INSTRUCTION = (
    "Answer the question in three or four sentences. Right after each claim, cite the given "
    "facts that support it in square brackets: the id, then property: value, exactly as given. "
    "Write [NA] after a claim that needs support which is not given."
)


class Demonstration(Value):
    """One worked example: what is given, what is asked, and an answer with markers."""

    triples: tuple[Triple, ...]
    question: str
    answer: str


def _facts(entity: str, subject: str, facts: dict[str, str]) -> tuple[Triple, ...]:
    return tuple(
        Triple(subject=subject, subject_id=entity, property=name, value=value)
        for name, value in facts.items()
    )


# Left out on purpose: her date of birth, his birthplace, the wedding, and how he died.
DEMONSTRATION = Demonstration(
    triples=(
        *_facts(
            "Q7186",
            "Marie Curie",
            {
                "occupation": "physicist",
                "place of birth": "Warsaw",
                "spouse": "Pierre Curie",
                "field of work": "radioactivity",
                "award received": "Nobel Prize in Chemistry",
            },
        ),
        *_facts(
            "Q37463",
            "Pierre Curie",
            {
                "occupation": "physicist",
                "employer": "University of Paris",
                "date of death": "1906-04-19",
            },
        ),
    ),
    question="Who was Marie Curie, and how did her marriage shape her work?",
    answer=(
        "Marie Curie was a physicist [Q7186, occupation: physicist] born on November 7, 1867 "
        "[NA] in Warsaw [Q7186, place of birth: Warsaw]. In 1895 [NA] she married Pierre Curie "
        "[Q7186, spouse: Pierre Curie], a Parisian [NA] physicist [Q37463, occupation: "
        "physicist] at the University of Paris [Q37463, employer: University of Paris]. "
        "Together they studied radioactivity [Q7186, field of work: radioactivity] until he "
        "died on April 19, 1906 [Q37463, date of death: 1906-04-19] in a street accident [NA]. "
        "She later won the Nobel Prize in Chemistry [Q7186, award received: Nobel Prize in "
        "Chemistry]."
    ),
)


class PromptBudget(Value):
    """How much of the retrieved knowledge a prompt may hold.

    Attributes:
        triples: Most facts shown.
        characters: Most characters of facts; about three make a token of names and dates.
    """

    triples: int = Field(default=40, ge=0)
    characters: int = Field(default=3_000, ge=0)


class FailedSentence(Value):
    """A sentence of an earlier answer that did not hold, and why."""

    text: str
    reason: str


def answer_prompt(
    question: str,
    triples: Iterable[Triple],
    *,
    demonstration: Demonstration | None = DEMONSTRATION,
    failed: Sequence[FailedSentence] = (),
) -> Prompt:
    """Build the prompt for an answer with citations (KaLMA 3.3, Table 10).

    Args:
        question: The user's question.
        triples: The facts to show, chosen by ``relevant_triples``.
        demonstration: The worked example; None prompts without one.
        failed: What was wrong with an earlier answer, for regeneration.
    """
    task = _task(question, triples, failed)
    messages = [Message(role="system", content=INSTRUCTION)]
    text = [f"{INSTRUCTION}\n\n"]
    if demonstration is not None:
        shown = _task(demonstration.question, demonstration.triples)
        messages.append(Message(role="user", content=shown))
        messages.append(Message(role="assistant", content=demonstration.answer))
        text.append(f"{shown}\nAnswer: {demonstration.answer}\n\n")
    messages.append(Message(role="user", content=task))
    text.append(f"{task}\nAnswer:")
    return Prompt(messages=tuple(messages), text="".join(text))


def flatten(triples: Iterable[Triple]) -> str:
    """Write triples as flat text, a line for each entity: ``{Q…, name: …, property: value}``."""
    lines = []
    for (entity, name), group in groupby(triples, key=lambda t: (t.citation.entity, t.subject)):
        facts = ", ".join(f"{triple.property}: {triple.value}" for triple in group)
        named = f"name: {name}, " if name != entity else ""
        lines.append(f"{{{entity}, {named}{facts}}}")
    return "\n".join(lines)


def relevant_triples(
    question: str, subgraphs: Sequence[Subgraph], budget: PromptBudget | None = None
) -> tuple[Triple, ...]:
    """Choose the facts to show: most relevant first within the budget, then by entity.

    A fact is the more relevant, the more of the question's words its property and value share.
    Facts on the data base itself (categories, sources, given names) come last.

    Args:
        question: The user's question.
        subgraphs: What was retrieved, in the order of linking.
        budget: How much may be shown.

    Returns:
        The chosen triples, those of an entity together, in the order of relevance.
    """
    budget = budget or PromptBudget()
    words = _stems(question)
    ranked: list[tuple[float, int, int, Triple]] = []
    seen: set[Triple] = set()
    for place, subgraph in enumerate(subgraphs):
        outgoing = len(subgraph.triples)
        for position, triple in enumerate((*subgraph.triples, *subgraph.incoming)):
            if triple in seen:
                continue
            seen.add(triple)
            # A fact of another entity that points here tells less of this one.
            score = _relevance(triple, words) - (0.5 if position >= outgoing else 0.0)
            ranked.append((-score, position, place, triple))
    ranked.sort(key=lambda row: row[:3])
    chosen: list[tuple[int, Triple]] = []
    size = 0
    for _, _, place, triple in ranked:
        if len(chosen) == budget.triples:
            break
        length = len(triple.property) + len(triple.value) + 4
        if size + length > budget.characters:
            continue
        size += length
        chosen.append((place, triple))
    # Stable sorts: by entity in the order of linking, by relevance within an entity.
    chosen.sort(key=lambda row: row[0])
    order: dict[str, int] = {}
    for _, triple in chosen:
        order.setdefault(triple.citation.entity, len(order))
    chosen.sort(key=lambda row: order[row[1].citation.entity])
    return tuple(triple for _, triple in chosen)


def _task(question: str, triples: Iterable[Triple], failed: Sequence[FailedSentence] = ()) -> str:
    parts = [f"Facts:\n{flatten(triples)}\n"]
    if failed:
        parts.append("An earlier answer was rejected. Do not repeat these mistakes:\n")
        parts += [f"- {_line(row.text)} ({_line(row.reason)})\n" for row in failed]
    parts.append(f"Question: {_line(question)}")
    return "".join(parts)


def _line(text: str) -> str:
    """Text on one line: a line break would end a base model's part of the prompt."""
    return " ".join(text.split())


def is_housekeeping(name: str) -> bool:
    """True for properties on the data base itself, such as sources and categories."""
    return bool(_HOUSEKEEPING.match(name))


# Properties of Wikidata that describe its own pages or repeat the name.
_HOUSEKEEPING = re.compile(
    r"^(?:instance of|given name|family name|surname|described by source|topic's main .*|"
    r"Commons .*|on focus list of .*|list of works|discography|filmography|archives at|"
    r"present in work|depicted by|topic's .*|.* ID|category for .*|Wikimedia .*|different from)$"
)

_WORD = re.compile(r"\w+")
_STOP = frozenset(
    word
    for line in (
        "a an and are as at be by did do does for from had has have he her his how in into is it",
        "its of on or she some that the their they this to was were what when where which who",
        "whom why will with you",
    )
    for word in line.split()
)


def _stems(text: str) -> frozenset[str]:
    """Content words cut to five letters, so that "painted" meets "painter"."""
    words = (word.casefold() for word in _WORD.findall(text))
    return frozenset(word[:5] for word in words if word not in _STOP and len(word) > 1)


def _relevance(triple: Triple, question: frozenset[str]) -> float:
    if is_housekeeping(triple.property):
        return -1.0
    shared_property = len(_stems(triple.property) & question)
    shared_value = len(_stems(triple.value) & question)
    return 2.0 * min(shared_value, 2) + 1.5 * min(shared_property, 2)
