"""Three verdicts that any judge gets right, to detect a damaged one before it serves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from guardrail.core.errors import JudgeError
from guardrail.core.types import Verdict

if TYPE_CHECKING:
    from judges.base import GroundingJudge

EVIDENCE = "The door is green and made of wood."
"""The evidence."""
TRIED = {
    "The door is green.": Verdict.SUPPORTED,
    "The door is not green.": Verdict.CONTRADICTED,
    "The garden is large.": Verdict.UNSUPPORTED,
}
"""Sentences with their verdicts, given ``EVIDENCE``."""


def try_judge(judge: GroundingJudge, setting: str = "judge") -> None:
    """Check that a judge distinguishes three sentences.

    A judge that detects no contradictions only has to support neither of the false two.

    Args:
        judge: The judge, loaded or not.
        setting: The setting that names it.

    Raises:
        JudgeError: A verdict is wrong, or the judge failed.
    """
    from judges.base import GroundingItem, traits_of
    from judges.grounding import grounded_by

    items = [GroundingItem(statements=(EVIDENCE,), sentence=sentence) for sentence in TRIED]
    found = [grounding.verdict for grounding in grounded_by(judge, items)]
    wanted = list(TRIED.values())
    supported = [verdict is Verdict.SUPPORTED for verdict in found]
    if found != wanted and (
        traits_of(judge).tells_contradiction or supported != [True, False, False]
    ):
        verdicts = ", ".join(map(str, found))
        raise JudgeError(
            f"the judge {judge.name} fails its self-test: given {EVIDENCE!r} it finds "
            f"{', '.join(map(repr, TRIED))} to be {verdicts}; install it again, or choose another "
            f"with the setting {setting!r}"
        )
