"""The command; see the package."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.newcomer.domains import DOMAINS, Domain
from benchmarks.verdicts.sets import SETS, read_set
from guardrail import Guardrail, GuardrailConfig
from guardrail.core.types.answers import CheckRequest
from guardrail.evaluation.invariants import GUARANTEES, Tally, measured, trials_of

__all__ = ["main", "requests_of"]

CASES = 60
"""Cases of a public set from which trials are made."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run from the command line."""
    companies = sorted(path.name for path in DOMAINS.iterdir() if path.is_dir())
    parser = argparse.ArgumentParser(description="Violations of the guarantees.")
    parser.add_argument("--collections", default=",".join(companies))
    parser.add_argument("--data", type=Path, help="the folder of public data")
    parser.add_argument("--most", type=int, default=20, help="trials of a kind and collection")
    parser.add_argument("--judge", default="onnx")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    totals: dict[str, Tally] = {}
    with Guardrail(GuardrailConfig(judge=options.judge)) as guard:
        for name in options.collections.split(","):
            requests = requests_of(name, options.data, options.seed)
            trials = list(trials_of(requests, most=options.most, seed=options.seed))
            for kind, tally in measured(guard, trials, most=options.most).items():
                old = totals.get(kind, Tally())
                totals[kind] = Tally(*(a + b for a, b in zip(old, tally, strict=True)))
    print("| guarantee | transformation | trials | violations | contradicted |")
    print("|--:|---|--:|--:|--:|")
    for kind, guarantee in GUARANTEES.items():
        if kind in totals:
            count, violations, contradicted = totals[kind]
            share = f"{violations} ({violations / count:.1%})"
            print(f"| {guarantee} | {kind} | {count} | {share} | {contradicted} |")
    print(f"\n{sum(tally.trials for tally in totals.values())} trials")
    return 0


def requests_of(name: str, data: Path | None, seed: int) -> list[CheckRequest]:
    """The answers and evidence of a collection.

    Raises:
        SystemExit: There is no collection of that name, or it needs ``--data``.
    """
    if (DOMAINS / name).is_dir():
        return [item.request for item in Domain(name).answers]
    if name not in SETS or data is None:
        raise SystemExit(f"no collection {name!r} without --data; public sets: {', '.join(SETS)}")
    return [
        CheckRequest(question=case.question, answer=case.text, evidence=case.evidence)
        for case in read_set(name, data, CASES, seed=seed)
    ]


if __name__ == "__main__":
    sys.exit(main())
