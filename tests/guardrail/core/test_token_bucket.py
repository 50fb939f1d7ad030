"""So many calls a second, whatever asks for them."""

from guardrail.core import http_clients
from guardrail.core.http_clients import TokenBucket
from tests.clock import HandClock


def test_a_bucket_begins_full_and_fills_with_time(monkeypatch):
    clock = HandClock().runs(monkeypatch, http_clients)
    bucket = TokenBucket(per_second=2.0, capacity=3.0)
    for _ in range(3):
        assert bucket.wait() == 0.0
        bucket.take()
    assert bucket.wait() == 0.5
    bucket.take()  # one that is still to come: the next waits behind it
    assert bucket.wait() == 1.0
    clock.sleep(60.0)
    for _ in range(3):
        assert bucket.wait() == 0.0
        bucket.take()
    assert bucket.wait() == 0.5
