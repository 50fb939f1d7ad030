"""The soak: it sends, counts and finds again what is in the log."""

import asyncio
import gc
from typing import Any

import pytest

pytest.importorskip("starlette", reason="the extra 'server' is not installed")

from benchmarks.soak import __main__ as soaking
from benchmarks.soak.__main__ import soak
from benchmarks.soak.traffic import Sent


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
