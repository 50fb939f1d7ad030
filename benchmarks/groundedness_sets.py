"""Public sets of claims with their evidence, read from the data folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from benchmarks.data import HELD_OUT, measures, read_jsonl

__all__ = ["SETS", "ClaimRow", "read_own", "read_set"]

Raw = Mapping[str, Any]


class ClaimRow(NamedTuple):
    """A claim, its evidence, and whether the evidence supports all of it."""

    question: str
    claim: str
    evidence: tuple[str, ...]
    supported: bool


class _Set(NamedTuple):
    """A set's file, and how a row of it is read."""

    file: str
    read: Callable[[Raw], ClaimRow]


def _nli(raw: Raw) -> ClaimRow:
    return ClaimRow("", raw["hypothesis"], (raw["premise"],), raw["label"] == "entailment")


def _attribution(raw: Raw) -> ClaimRow:
    supported = raw["label"] in ("attributable", "supportive")
    return ClaimRow(raw["question"], raw["answer"], tuple(raw["evidence"]), supported)


def _wice(raw: Raw) -> ClaimRow:
    return ClaimRow("", raw["claim"], ("\n".join(raw["evidence"]),), raw["label"] == "supported")


def _factcheck(raw: Raw) -> ClaimRow:
    supported = raw["stance"] == "completely-support"
    return ClaimRow("", raw["claim"], (raw["evidence"],), supported)


def _attribution_bench(raw: Raw) -> ClaimRow:
    supported = raw["attribution_label"] == "attributable"
    return ClaimRow(raw["question"], raw["claim"], tuple(raw["references"]), supported)


SETS: Final[Mapping[str, _Set]] = {
    "WiCE": _Set("attribution/wice_claim_dev", _wice),
    "Factcheck-GPT": _Set("attribution/factcheck_stance", _factcheck),
    "AttributionBench": _Set("attribution/attributionbench_dev", _attribution_bench),
    "LFQA": _Set("attribution/lfqa_evalonly", _attribution),
    "FaithBench": _Set("attribution/faithbench_evalonly", _attribution),
    "SummEdits": _Set("attribution/summedits", _attribution),
    "SummaC": _Set("attribution/summac_parts", _attribution),
    "FM2": _Set("nli/fm2_dev", _nli),
    "ContractNLI": _Set("nli/contract_nli_dev", _nli),
    "Climate-FEVER": _Set("nli/climate_fever_evalonly", _nli),
    "COVID-Fact": _Set("nli/covidfact_evalonly", _nli),
    "HealthVer": _Set("nli/healthver_evalonly", _nli),
    "TabFact": _Set("nli/tabfact", _nli),
}
"""The sets by name. Of SummEdits and TabFact only the groups that no training reads."""


def read_set(data: Path, name: str) -> Iterator[ClaimRow]:
    """Read a set that measures.

    Args:
        data: The data folder.
        name: A name of ``SETS``.
    """
    source = SETS[name]
    stem = Path(source.file).name
    for raw in read_jsonl(data / f"{source.file}.jsonl.gz"):
        if stem in HELD_OUT and not measures(stem, str(raw["group"])):
            continue
        row = source.read(raw)
        if row.claim.strip():
            yield row


def read_own(path: Path) -> Iterator[ClaimRow]:
    """Read a user's own set: gzipped JSON lines of ``claim``, ``evidence`` and ``supported``.

    Raises:
        KeyError: A row lacks a field.
    """
    for raw in read_jsonl(path):
        evidence = raw["evidence"]
        texts = (evidence,) if isinstance(evidence, str) else tuple(evidence)
        yield ClaimRow(raw.get("question", ""), raw["claim"], texts, bool(raw["supported"]))
