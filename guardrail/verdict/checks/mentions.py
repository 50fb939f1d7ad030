"""What a sentence says that the evidence does not mention."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

from guardrail.core.text.lexicon import lexicon
from guardrail.core.text.words import content_stems
from guardrail.core.types import Effect, Finding
from guardrail.verdict.checks.base import Context, finding

if TYPE_CHECKING:
    from guardrail.verdict.checks.base import Premises
    from guardrail.verdict.claims import Claim


class Mentions:
    """Compares sentences such as *The documents do not mention helmets* with all of the evidence.

    They are true where no word of the topic stands in the evidence, and false where a statement has
    all of them. In between it takes the judge.
    """

    name = "mentions"

    def apply(self, claim: Claim, evidence: Premises, context: Context) -> Sequence[Finding]:
        """Find the statement that mentions what is said not to be mentioned, or that none does."""
        found = _denial().fullmatch(claim.plain.strip())
        topic = content_stems(found["topic"]) if found else frozenset()
        if not found or not topic:
            return ()
        whole = 0, len(claim.text)
        if topic.isdisjoint(evidence.indexed.stems):
            said = self.name, Effect.CARRIES, claim, whole, f"nothing mentions {found['topic']}"
            return (finding(*said, decides=True),)
        for number, statement in enumerate(evidence.indexed.statements):
            if topic <= statement.stems | content_stems(statement.head):
                said = self.name, Effect.CONTRADICTS, claim, whole, f"mentioned: {statement.text}"
                return (finding(*said, (number,), decides=True),)
        return ()


@cache
def _denial() -> re.Pattern[str]:
    """A whole sentence that denies that something is mentioned, with its topic."""
    words = lexicon("grammar")
    parts = words["unmentioned_parts"]
    opening = "|".join(words["unmentioned"]).format(**parts)
    topic = rf"(?P<topic>[^,;:.?!]+?)(?: in {parts['source']})?[.!]?"
    return re.compile(f"(?:{opening}) {topic}", flags=re.IGNORECASE)
