"""Whether a judged answer is grounded well enough."""

from __future__ import annotations

from guardrail.core.types import Action, GuardedAnswer, Probability, Sentence, Value, Verdict

__all__ = ["Assessment", "Requirement", "assess"]


class Requirement(Value):
    """What a grounded answer must reach.

    Attributes:
        supported: Least share of the answer's claims that the evidence supports.
        contradicted: Most of them that it may contradict, as a share.
    """

    supported: Probability = 1.0
    contradicted: Probability = 0.0


class Assessment(Value):
    """What became of an answer's claims, and where it falls short.

    Attributes:
        verdict: On the answer as a whole: contradicted where one claim is, else unsupported where
            one is, else supported; ``no_claim`` where it claims nothing. None where nothing could
            be checked.
        claims: Sentences that claim something.
        supported: Share of them that the evidence supports; None without claims.
        contradicted: Share of them that it contradicts; None without claims.
        failures: What falls short, a line each; empty where the requirement is met.
    """

    verdict: Verdict | None
    claims: int
    supported: Probability | None = None
    contradicted: Probability | None = None
    failures: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether the answer was checked and meets the requirement."""
        return not self.failures


def assess(answer: GuardedAnswer, requirement: Requirement | None = None) -> Assessment:
    """Hold a judged answer against a requirement.

    Args:
        answer: The answer; sentences that a policy removed count as well.
        requirement: What it must reach; every claim supported where None.
    """
    wanted = requirement or Requirement()
    if not answer.text.strip():
        return Assessment(verdict=Verdict.NO_CLAIM, claims=0, failures=("the answer is empty",))
    if answer.action is Action.UNVERIFIED:
        why = "; ".join(answer.reasons) or "; ".join(item.message for item in answer.errors)
        return Assessment(verdict=None, claims=0, failures=(f"not checked: {why}",))
    claims = [item for item in answer.judged if item.verdict is not Verdict.NO_CLAIM]
    if not claims:
        return Assessment(verdict=Verdict.NO_CLAIM, claims=0)
    found = [item.verdict for item in claims]
    supported = found.count(Verdict.SUPPORTED) / len(claims)
    contradicted = found.count(Verdict.CONTRADICTED) / len(claims)
    failures = []
    if contradicted > wanted.contradicted:
        failures.append(
            f"{contradicted:.0%} of the claims are contradicted, at most "
            f"{wanted.contradicted:.0%} may be"
        )
    if supported < wanted.supported:
        failures.append(
            f"{supported:.0%} of the claims are supported, at least {wanted.supported:.0%} must be"
        )
    if failures:
        failures += [
            f'{verdict}: "{item.text}"{_against(item)}'
            for item, verdict in zip(claims, found, strict=True)
            if verdict is not Verdict.SUPPORTED
        ]
    whole = next(
        kind
        for kind in (
            Verdict.CONTRADICTED,
            Verdict.NOT_CHECKED,
            Verdict.UNSUPPORTED,
            Verdict.SUPPORTED,
        )
        if kind in found
    )
    return Assessment(
        verdict=whole,
        claims=len(claims),
        supported=supported,
        contradicted=contradicted,
        failures=tuple(failures),
    )


def _against(sentence: Sentence) -> str:
    return f", but: {' '.join(sentence.against)}" if sentence.against else ""
