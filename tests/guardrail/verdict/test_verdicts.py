"""Verdicts as data: sentence, evidence and the judge's recorded scores, to verdict and findings.

A row of ``*.jsonl`` has ``evidence`` (triples as lists of three, passages as texts), ``sentence``,
optionally ``question`` and ``before``, ``read`` where the judge reads the sentence in the notation
of the evidence, ``scores`` (a ``Grounding``; null for none) and what is expected: ``category``,
``findings`` as [check, effect, words], ``cited`` values, ``na`` and ``contradicted`` words.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from guardrail.core.types import Grounding, Passage, SpanKind, Triple
from guardrail.evidence.prepared import prepare
from guardrail.markers.grammar import ParsedText
from guardrail.verdict.claims import GroundingRequest
from guardrail.verdict.grounder import Grounder
from tests.guardrail.scripted import Scripted


def rows() -> Iterator[Any]:
    for path in sorted(Path(__file__).parent.glob("*.jsonl")):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            yield pytest.param(json.loads(line), id=f"{path.stem}-{number}")


@pytest.mark.parametrize("row", list(rows()))
def test_a_sentence_gets_its_verdict(row: dict[str, Any]) -> None:
    evidence = tuple(
        Passage(text=item)
        if isinstance(item, str)
        else Triple(subject=item[0], property=item[1], value=item[2])
        for item in row["evidence"]
    )
    judge = None
    if row.get("scores"):
        judge = Scripted(
            {row.get("read", row["sentence"]): Grounding.model_validate(row["scores"])}
        )
    text = f"{row['before']} {row['sentence']}" if row.get("before") else row["sentence"]
    request = GroundingRequest(
        row.get("question", ""), ParsedText(clean=text, marked=text), prepare(evidence)
    )
    (answer,), _, problems = Grounder(judge).ground([request])
    assert problems == []
    one = answer.sentences[-1]
    assert (one.category and one.category.value) == row["category"]
    if "findings" in row:
        told = [[f.check, f.effect.value, text[f.start : f.end]] for f in one.findings]
        assert told == row["findings"]
    if "cited" in row:
        assert [citation.value for citation in one.citations] == row["cited"]
    for kind in (SpanKind.NA, SpanKind.CONTRADICTED):
        if kind.value in row:
            assert [s.text for s in one.spans if s.kind is kind] == row[kind.value]
    for span in one.spans:
        assert text[span.start : span.end] == span.text
    if one.judgement is not None:
        assert one.judgement.category is one.category
    if one.judgement is not None and not one.findings:
        assert max(one.judgement.scores.values()) == one.judgement.scores[one.category]
