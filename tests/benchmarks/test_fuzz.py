"""The targets of fuzzing, for a moment each; and that what fails is found, kept and timed."""

import json
from contextlib import nullcontext

import pytest

pytest.importorskip("mcp", reason="the extra 'mcp' is not installed")
pytest.importorskip("starlette", reason="the extra 'server' is not installed")

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchmarks.fuzz.__main__ import TARGETS, fuzz
from benchmarks.fuzz.bodies import CANARY
from benchmarks.fuzz.exchanges import check_reply, check_stream
from benchmarks.fuzz.inputs import Target


@pytest.mark.parametrize("name", TARGETS)
@settings(deadline=None, max_examples=30, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_what_is_hostile_is_read_or_refused(name: str, data: st.DataObject) -> None:
    target = TARGETS[name]
    target.run(data.draw(target.given))


def test_every_target_can_be_timed() -> None:
    for name, target in TARGETS.items():
        for kind, given_ in target.of_size(2_000).items():
            assert len(str(given_)) > 500, (name, kind)
            target.run(given_)


def small(number: int) -> None:
    assert number < 1_000


def test_what_fails_is_kept_and_found_at_once(tmp_path) -> None:
    target = Target(st.integers(), small, lambda size: {"one": size})
    first = fuzz(target, 60.0, tmp_path)
    assert "AssertionError" in str(first.fault)
    again = fuzz(target, 60.0, tmp_path)
    assert again.fault is not None
    assert again.inputs < first.inputs


@pytest.mark.parametrize(
    ("body", "leaks"),
    [
        ({"error": {"message": CANARY, "code": 1}}, False),
        ({"type": "error", "message": CANARY}, False),
        ({"error": {"message": CANARY * 100}}, True),
        ({"error": {"message": "busy", "code": CANARY}}, True),
        ({"error": {"message": "busy"}, "choices": [{"message": {"content": CANARY}}]}, True),
        ({"choices": [{"message": CANARY}]}, True),
        ({"message": CANARY}, True),
    ],
)
def test_text_that_leaves_unjudged_is_seen(body: dict[str, object], leaks: bool) -> None:
    content = json.dumps(body).encode()
    for check, given_ in (
        (check_reply, content),
        (check_stream, b"event: x\ndata: " + content + b"\n\n"),
    ):
        with pytest.raises(AssertionError) if leaks else nullcontext():
            check(given_)
    with pytest.raises(AssertionError):
        check_stream(f"event: {CANARY}\ndata: {{}}\n\n".encode())
