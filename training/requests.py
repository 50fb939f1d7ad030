"""Questions rewritten as requests, so that the intent head also learns imperatives (SCK 2.2).

NF-CATS holds 8 requests among 4,811 questions, so a head fitted on it alone takes "Compare A and
B" for a statement. Each question is turned into a request of the same intent by its parse: a verb
that fits the intent, and the question in indirect form ("why is X Y" becomes "explain why X is
Y"). Names of the questions also make "Tell me about A" and "Compare A and B".
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from guardrail.core.text.tagging import load_english, run_pipeline
from training.encoder_data import INTENTS, IntentRow

if TYPE_CHECKING:
    from spacy.tokens import Doc, Span

__all__ = ["as_requests"]

LONGEST = 25
"""Words of the longest question that is rewritten."""

BUILT_FROM_NAMES = 300
"""Requests of each kind made from names alone."""

OPENINGS = ("", "", "", "", "Please ", "please ", "Can you ", "I want you to ")

VERBS: Mapping[str, tuple[str, ...]] = {
    "instruction": ("explain", "tell me", "show me", "describe", "give instructions on"),
    "reason": ("explain", "tell me", "describe", "give the reason"),
    "evidence-based": ("explain", "tell me", "describe", "summarise"),
    "comparison": ("explain", "tell me", "describe"),
    "experience": ("tell me", "share with me", "advise me"),
    "debate": ("discuss", "tell me", "argue", "consider"),
    "factoid": ("tell me", "say", "find out", "state"),
}
"""Verbs before an indirect question, by intent."""

NOUN_FORMS: Mapping[str, tuple[re.Pattern[str], tuple[str, ...]]] = {
    "instruction": (
        re.compile(r"how (?:to|(?:do|can|should|would) (?:i|you|we|u|one)) (.+)", re.IGNORECASE),
        (
            "explain how to {}",
            "tell me how to {}",
            "list the steps to {}",
            "describe how to {}",
            "write instructions to {}",
        ),
    ),
    "comparison": (
        re.compile(
            r"what(?:'?s| is| are| were| was)?(?: the)?(?: main| major)? differences? "
            r"(?:between|in) (.+)",
            re.IGNORECASE,
        ),
        (
            "compare {}",
            "contrast {}",
            "explain the difference between {}",
            "list the differences between {}",
            "describe how {} differ",
            "make a comparison of {}",
        ),
    ),
    "evidence-based": (
        re.compile(r"what(?:'?s| is| are| was| were) (.+)", re.IGNORECASE),
        (
            "tell me about {}",
            "describe {}",
            "explain {}",
            "define {}",
            "give an overview of {}",
            "write about {}",
        ),
    ),
    "experience": (
        re.compile(r"(?:what|which)(?:'?s| is| are) (the best .+)", re.IGNORECASE),
        ("recommend {}", "list {}", "suggest {}", "name {} in your opinion"),
    ),
    "factoid": (
        re.compile(r"(?:what|which|who)(?:'?s| is| are| was| were) (the .+)", re.IGNORECASE),
        ("tell me {}", "name {}", "give {}", "list {}", "identify {}"),
    ),
}
"""Questions that ask for a noun phrase, and requests for the same phrase, by intent."""


def as_requests(rows: Sequence[IntentRow], *, seed: int = 0) -> list[IntentRow]:
    """Rewrite questions as requests of the same intent.

    Args:
        rows: Questions; those that are not questions, or long, are left out.
        seed: Chooses verbs and names.

    Returns:
        At most one request a question, then those made from names.
    """
    asked = [
        row
        for row in rows
        if INTENTS[row.intent] != "not-a-question" and len(row.question.split()) <= LONGEST
    ]
    docs = run_pipeline(load_english(), [_tidy(row.question) for row in asked])
    chance = random.Random(seed)
    requests = [
        IntentRow(_finished(text, chance), row.intent)
        for row, doc in zip(asked, docs, strict=True)
        if (text := _request(doc, INTENTS[row.intent], chance))
    ]
    names = sorted({chunk.text for doc in docs for chunk in doc.noun_chunks if _names(chunk)})
    for intent, forms in (
        ("evidence-based", ("tell me about {}", "write about {}", "introduce {}", "describe {}")),
        ("comparison", ("compare {} and {}", "compare {} with {}", "contrast {} and {}")),
    ):
        for _ in range(min(BUILT_FROM_NAMES, len(names))):
            form = chance.choice(forms)
            text = form.format(*chance.sample(names, form.count("{}")))
            requests.append(IntentRow(_finished(text, chance), INTENTS.index(intent)))
    return requests


def _request(doc: Doc, intent: str, chance: random.Random) -> str | None:
    if intent in NOUN_FORMS:
        pattern, forms = NOUN_FORMS[intent]
        if match := pattern.fullmatch(doc.text):
            return chance.choice(forms).format(match[1])
    found = _indirect(doc)
    return None if found is None else f"{chance.choice(VERBS[intent])} {found}"


def _indirect(doc: Doc) -> str | None:
    """The question as a clause: the auxiliary moves behind its subject; None without a verb."""
    root = next((token for token in doc if token.dep_ == "ROOT"), None)
    if root is None or root.pos_ not in ("VERB", "AUX"):
        return None
    subject = next((token for token in root.lefts if token.dep_ in ("nsubj", "nsubjpass")), None)
    if subject is None:
        subject = next((token for token in root.rights if token.dep_ == "nsubj"), None)
    moved = next((token for token in root.lefts if token.dep_ in ("aux", "auxpass")), root)
    words = [token.text_with_ws for token in doc]
    first = words[0][:1].lower() + words[0][1:] if doc[0].pos_ != "PROPN" else words[0]
    words[0] = first
    if subject is None or moved.i > subject.i:
        return "".join(words)
    start, end = subject.left_edge.i, subject.right_edge.i + 1
    if start <= moved.i:
        return "".join(words)
    auxiliary = "" if moved.lemma_ == "do" and moved is not root else f"{moved.lower_} "
    ask = "" if moved.i else "whether "
    inner = "".join(words[start:end]).rstrip() + " "
    before, between = "".join(words[: moved.i]), "".join(words[moved.i + 1 : start])
    return f"{ask}{before}{between}{inner}{auxiliary}{''.join(words[end:])}".strip()


def _names(chunk: Span) -> bool:
    return bool(chunk.root.pos_ == "PROPN")


def _tidy(question: str) -> str:
    return " ".join(question.split()).rstrip(" ?.!")


def _finished(text: str, chance: random.Random) -> str:
    text = chance.choice(OPENINGS) + text
    text = text[:1].upper() + text[1:] if chance.random() < 0.8 else text
    return text + chance.choice((".", ".", "", "!"))
