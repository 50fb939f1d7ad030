"""The command; see the package."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.newcomer.measure import auc
from benchmarks.outcomes import Outcome, checked, outcome
from guardrail import Guardrail, GuardrailConfig
from guardrail.core.types import Passage
from guardrail.core.types.answers import CheckRequest

__all__ = ["main", "read_rules"]

RULES = Path(__file__).parent / "rules"

WAYS = {"alone": False, "after a true sentence": True}


def read_rules(folder: Path = RULES) -> list[dict[str, str]]:
    """All rules with the same in other words and their opposites."""
    return [
        json.loads(line)
        for path in sorted(folder.glob("*.jsonl"))
        for line in path.read_text(encoding="utf-8").removesuffix("\n").split("\n")
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description="Rules and their opposites.")
    parser.add_argument("--policy", default="strict")
    parser.add_argument("--judge", default="onnx")
    parser.add_argument("--json", action="store_true", help="one JSON object in place of a table")
    options = parser.parse_args(arguments)
    rules = read_rules()
    counted: dict[str, dict[str, float]] = {}
    with Guardrail(GuardrailConfig(policy=options.policy, judge=options.judge)) as guard:
        for way, behind in WAYS.items():
            same = list(_outcomes(guard, rules, "same", behind=behind))
            opposite = list(_outcomes(guard, rules, "opposite", behind=behind))
            counted[way] = _counted(same, opposite)
    if options.json:
        print(json.dumps(counted))
        return 0
    print(f"| of {len(rules)} rules | {' | '.join(counted)} |")
    print(f"|---|{'--:|' * len(counted)}")
    for key in next(iter(counted.values())):
        print(f"| {key} | {' | '.join(f'{column[key]:.3f}' for column in counted.values())} |")
    return 0


def _outcomes(
    guard: Guardrail, rules: Sequence[dict[str, str]], side: str, *, behind: bool
) -> Iterator[Outcome]:
    starts = [len(rule["before"]) + 1 if behind else 0 for rule in rules]
    texts = [f"{rule['before']} {rule[side]}" if behind else rule[side] for rule in rules]
    requests = [
        CheckRequest(
            question=rule["question"], answer=text, evidence=(Passage(text=rule["evidence"]),)
        )
        for rule, text in zip(rules, texts, strict=True)
    ]
    for start, text, answer in zip(starts, texts, checked(guard, requests), strict=True):
        yield outcome(answer, text, start, len(text))


def _counted(same: Sequence[Outcome], opposite: Sequence[Outcome]) -> dict[str, float]:
    """Shares of the rules."""
    pairs = list(zip(same, opposite, strict=True))
    size = max(1, len(pairs))
    return {
        "distinguished (same supported, opposite not)": sum(
            a.supported and not b.supported for a, b in pairs
        )
        / size,
        "the same scores above its opposite": sum(a.score > b.score for a, b in pairs) / size,
        "opposite called contradicted": sum(b.contradicted for _, b in pairs) / size,
        "opposite delivered unmarked": sum(b.unmarked for _, b in pairs) / size,
        "same called contradicted": sum(a.contradicted for a, _ in pairs) / size,
        "same removed": sum(a.removed for a, _ in pairs) / size,
        "AUC": auc([a.score for a, _ in pairs], [b.score for _, b in pairs]),
    }


if __name__ == "__main__":
    sys.exit(main())
