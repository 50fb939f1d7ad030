"""What ``guardrail tune`` is worth: learned from a third of the answers, measured on the others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from benchmarks.newcomer.domains import Domain, Labelled
from benchmarks.newcomer.measure import Table, table_of
from benchmarks.outcomes import checked
from guardrail import Guardrail, Policy
from guardrail.core.types import Verdict, VerdictThresholds
from guardrail.engine.parts import Parts
from guardrail.evaluation.rows import LabelledRow
from guardrail.tuning.thresholds import tune_labelled

__all__ = ["tuned"]

OF = 3
"""Of so many answers one is learned from."""


def tuned(guard: Guardrail, domains: Mapping[str, Domain]) -> dict[str, Table]:
    """The tables of the answers not learned from, of each domain before and after.

    Args:
        guard: With the policy and the strictness of before.
        domains: The companies by name, learned from together.
    """
    policy = guard.config.policy
    before = (policy.strictness or guard.config.strictness).thresholds
    seen = [
        row
        for name, domain in domains.items()
        for place, item in enumerate(domain.answers[::OF])
        for row in _rows(f"{name} {place}", item)
    ]
    parts = Parts(guard.config, {}, ())
    found = tune_labelled(seen, parts.remembering_grounder(), before=before)
    after = VerdictThresholds(**found.settings) if found.settings else before
    print(f"before: {before}\nlearned: {found.settings or 'nothing better'}")
    print(f"balanced accuracy: {found.before}, crossed {found.after}\n")
    tables = {}
    for name, domain in domains.items():
        rest = [item for place, item in enumerate(domain.answers) if place % OF]
        for title, strictness in (("before", before), ("after", after)):
            changed: Policy = policy.changed(strictness=strictness)
            answers = checked(guard, [item.request for item in rest], policy=changed)
            tables[f"{name}, {title}"] = table_of(list(zip(rest, answers, strict=True)))
    return tables


def _rows(group: str, item: Labelled) -> Iterator[LabelledRow]:
    """The sentences of an answer as a user would label them."""
    request = item.request
    for sentence in item.sentences:
        if sentence.label is not Verdict.NO_CLAIM:
            text = request.answer[sentence.start : sentence.end]
            yield LabelledRow(request.question, text, request.evidence or (), sentence.label, group)
