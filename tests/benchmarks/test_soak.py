"""The soak: it sends, counts and finds again what is in the log."""

import asyncio
import gc
import random
from typing import Any

import pytest

pytest.importorskip("starlette", reason="the extra 'server' is not installed")

from benchmarks.faults.facts import Case
from benchmarks.soak import __main__ as soaking
from benchmarks.soak.__main__ import Tally, soak
from benchmarks.soak.traffic import FAILING, Draw, Sent, draw

SOUND = Draw(1, "whole", Case("gateway", "none", "none"), False, False)


def test_each_fault_has_its_share() -> None:
    rng = random.Random(1)
    drawn = [draw(number, 0.01, rng) for number in range(20_000)]
    shares = {f"{part} {fault}" if part != "none" else fault: 0 for part, fault in FAILING}
    for item in drawn:
        if not item.healthy:
            shares[item.fault] += 1
    assert all(100 < number < 300 for number in shares.values()), shares
    assert all(draw(number, 0.0, rng).healthy for number in range(100))


def test_what_goes_wrong_is_told() -> None:
    tally = Tally()
    for outcome, unjudged in (("delivered", 0), ("refused", 0), ("delivered", 7)):
        tally.add(Sent(SOUND, outcome, 0.1, unjudged))
    tally.add(Sent(SOUND._replace(gone=True), None, 0.1))
    assert tally.unjudged == 7
    assert len(tally.amiss) == 2
    assert len(tally.healthy_s) == 3


def test_a_short_soak_loses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"WARMING": 20, "POINTS": 1, "HANG_S": 0.5}.items():
        monkeypatch.setattr(soaking, name, value)
    frozen = []
    send = soaking.send

    async def looked(*asked: Any) -> Sent:
        frozen.append(gc.get_freeze_count())
        return await send(*asked)

    monkeypatch.setattr(soaking, "send", looked)
    report = asyncio.run(soak(requests=40, share=0.03, rate=50.0, seed=1, idle_s=0.0))
    totals = report.totals()
    for name in ("unjudged bytes out", "supported wrongly", "untyped errors", "records lost"):
        assert totals[name] == 0, (name, report.mixed.amiss)
    assert report.records > 40
    assert frozen[-1], "a gateway that is served takes what is loaded out of garbage collection"
    assert not gc.get_freeze_count()
