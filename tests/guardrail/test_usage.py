"""What a guardrail is busy with: queues, calls in work, caches, batches."""

import asyncio
import threading

import pytest

from guardrail import Guardrail, GuardrailConfig
from guardrail.core.types import CacheUse, Usage
from kg.cache import QueryCache
from tests.chains.conftest import ANSWER, FACTS, QUESTION
from tests.chains.scripted import ScriptedJudge


def test_parts_add_up():
    one = Usage(queues={"judge": 2}, running=1, caches={"verdicts": CacheUse(hits=1, misses=2)})
    other = Usage(queues={"judge": 1, "calls": 1}, stuck=1, batches={3: 1})
    both = Usage.together([one, other, one])
    assert both.queues == {"judge": 5, "calls": 1}
    assert (both.running, both.stuck) == (2, 1)
    assert both.caches == {"verdicts": CacheUse(hits=2, misses=4)}
    assert both.batches == {3: 1}


async def test_usage_reports_waiting_and_running_calls():
    let_go = threading.Event()

    class Slow(ScriptedJudge):
        def ground(self, items):
            assert let_go.wait(30)
            return super().ground(items)

    config = GuardrailConfig.model_validate({"limits": {"concurrency": 1}, "graph": "none"})
    with Guardrail(config, grounding=Slow()) as guard:
        checks = [guard.acheck(QUESTION, ANSWER, evidence=FACTS) for _ in range(3)]
        tasks = [asyncio.create_task(check) for check in checks]
        async with asyncio.timeout(30):
            while guard.usage().queues["calls"] < 2:
                await asyncio.sleep(0.01)
        assert guard.usage().running == 1
        let_go.set()
        await asyncio.gather(*tasks)
        async with asyncio.timeout(30):  # a thread is free a moment after its result is there
            while guard.usage().running:
                await asyncio.sleep(0.01)
        assert guard.usage().queues["calls"] == 0


def test_the_query_cache_counts(tmp_path):
    cache = QueryCache(tmp_path / "queries.sqlite")
    cache.get("https://graph.example", "ASK {}")
    cache.put("https://graph.example", "ASK {}", b"yes")
    assert cache.get("https://graph.example", "ASK {}") == b"yes"
    assert (cache.hits, cache.misses) == (1, 1)
    cache.close()


@pytest.mark.parametrize("asked", [1, 2])
def test_usage_reports_the_queries_of_a_sparql_endpoint(tmp_path, asked):
    from kg import open_graphs

    address = "https://graph.example/sparql"
    location = " + ".join([address] * asked)
    graph = open_graphs(location)
    assert set(graph.in_use().caches) <= {"queries"}
    graph.close()
