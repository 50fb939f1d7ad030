"""Which graph, judge and policy gave a verdict: short hashes that every record carries."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from guardrail.policy import Policy

__all__ = ["HASHES", "fingerprints", "shipped_judge"]

HASHES = ("graph_snapshot", "judge_hash", "policy_hash")
"""Names of the hashes among an answer's versions."""

_DIGITS = 16


def fingerprints(
    versions: Mapping[str, str], graph: object, policy: Policy, judge: object = None
) -> dict[str, str]:
    """The hashes of the parts that an answer was judged by.

    Args:
        versions: Names of the parts.
        graph: The graph, None where there is none. One without ``snapshot``, such as an endpoint,
            may change unseen and has no hash.
        policy: The policy.
        judge: The judge. One without ``snapshot``, such as a language model behind an address, is
            distinguished from others only by its name.
    """
    found = {"policy_hash": _hash(policy.model_dump_json().encode())}
    if name := versions.get("judge"):
        second = versions.get("second_judge")
        both = f"{name} {_snapshot(judge)}{f' {second}' if second else ''}"
        found["judge_hash"] = _hash(both.encode())
    if state := _snapshot(graph):
        found["graph_snapshot"] = state
    return found


@cache
def shipped_judge() -> str:
    """What tells the judge that ships with this package from that of another version."""
    file = files("judges") / "weights" / "judge" / "judge.json"
    return file.read_text("utf-8") if file.is_file() else ""


def _snapshot(part: object) -> str:
    found = getattr(part, "snapshot", None)
    return found if isinstance(found, str) else ""


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:_DIGITS]
