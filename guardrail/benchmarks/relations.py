"""How often a fact passes for another relation of the same subject and the same value.

    python -m guardrail.benchmarks.relations [--judge onnx] [--show]

The package brings statements on invented entities of everyday kinds: true ones in other words than
the properties' labels, and false ones, most of which tell the subject and the value of a fact in
another relation (*Ida left the firm*, for its founder). A language model that had not seen this
program wrote them; nothing was tuned to them.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from guardrail import ANNOTATE, CheckRequest, Guardrail, GuardrailConfig
from guardrail.types import Category, Triple, Value

__all__ = ["Told", "main", "read_statements", "supported"]

STATEMENTS = Path(__file__).with_suffix(".json")


class Told(Value):
    """A statement on an entity.

    Attributes:
        facts: The evidence.
        text: The statement.
        true: Whether it follows from the facts.
    """

    facts: tuple[Triple, ...]
    text: str
    true: bool


def read_statements(path: Path = STATEMENTS) -> list[Told]:
    """The statements with their facts.

    Args:
        path: A list of objects with ``facts``, each subject, property and value, and
            ``statements``, each a text and 1 or 0.
    """
    found = []
    for entity in json.loads(path.read_text("utf-8")):
        facts = tuple(
            Triple(subject=subject, property=label, value=value)
            for subject, label, value in entity["facts"]
        )
        found += [Told(facts=facts, text=text, true=true) for text, true in entity["statements"]]
    return found


def supported(guard: Guardrail, told: Sequence[Told]) -> list[bool]:
    """Whether each of n statements comes out supportive."""
    requests = [CheckRequest(question="", answer=one.text, evidence=one.facts) for one in told]
    return [
        all(sentence.category is Category.SUPPORTIVE for sentence in answer.sentences)
        for answer in guard.check_batch(requests)
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--judge", default="onnx")
    parser.add_argument("--show", action="store_true", help="print what came out wrong")
    options = parser.parse_args(arguments)
    told = read_statements()
    policy = ANNOTATE.model_copy(update={"deadline_s": None})
    with Guardrail(GuardrailConfig(judge=options.judge, policy=policy)) as guard:
        passed = supported(guard, told)
    print("| statements | n | supportive | share |\n|---|---|---|---|")
    for name, true in (("true", True), ("false", False)):
        said = [held for held, one in zip(passed, told, strict=True) if one.true is true]
        print(f"| {name} | {len(said)} | {sum(said)} | {sum(said) / len(said):.3f} |")
    if options.show:
        for held, one in zip(passed, told, strict=True):
            if held is not one.true:
                print("refused" if one.true else "passed ", one.text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
