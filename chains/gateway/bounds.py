"""How many requests are read and in work at once, and how many a minute: by address, by tenant."""

from __future__ import annotations

import math
import time
from collections import Counter, OrderedDict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from ipaddress import IPv6Address, ip_address
from typing import TYPE_CHECKING

from starlette.types import Scope

from chains.gateway.requests import RejectedError
from guardrail.core.types import MOST_SECONDS

if TYPE_CHECKING:
    from chains.gateway.settings import GatewaySettings
    from chains.gateway.tenants import Caller

__all__ = ["Bounds", "Rate", "address_of"]

READ_AHEAD = 4
"""Bodies that may be read at once for each place: enough that reading holds up nobody, few enough
to bound what they hold."""
REMEMBERED = 10_000
"""Most addresses whose rate is remembered; the one unseen for longest goes."""
NETWORK_BITS = 64
"""Of an IPv6 address: one caller has all addresses of such a network."""


def address_of(scope: Scope) -> str:
    """Where a request comes from; of IPv6 the network, empty where it is not known."""
    host = (scope.get("client") or ("",))[0]
    try:
        address = ip_address(host)
    except ValueError:
        return str(host)
    if isinstance(address, IPv6Address):
        return f"{int(address) >> (128 - NETWORK_BITS):x}::"
    return host


class Rate:
    """Requests a minute, each name for itself: a minute's worth may come at once."""

    def __init__(self, most: int = REMEMBERED) -> None:
        self._most = most
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, name: str, per_minute: float) -> float:
        """Take one request of a name; the seconds until there is room again, 0 where there is."""
        now = time.monotonic()
        left, since = self._left.pop(name, (per_minute, now))
        left = min(per_minute, left + (now - since) * per_minute / 60.0)
        wait = 0.0 if left >= 1.0 else (1.0 - left) * 60.0 / per_minute
        self._left[name] = (left if wait else left - 1.0, now)
        if len(self._left) > self._most:
            self._left.popitem(last=False)
        return wait


class Bounds:
    """Turns away what is too many."""

    def __init__(self, settings: GatewaySettings) -> None:
        self._settings = settings
        self._addresses = Rate()
        self._tenants = Rate()
        self._read = Counter[str]()
        self._work = Counter[str]()

    def count(self, address: str, caller: Caller | None) -> None:
        """Count a request of an address and of a tenant.

        Raises:
            RejectedError: With status 429, where a minute has seen too many.
        """
        per_minute = self._settings.address_per_minute
        wait = self._addresses.take(address, per_minute) if per_minute else 0.0
        tenant = caller.tenant if caller else None
        if not wait and caller is not None and tenant is not None and tenant.per_minute:
            wait = self._tenants.take(caller.name, tenant.per_minute)
        if wait:
            raise _too_many("more requests a minute than allowed", wait)

    @contextmanager
    def reading(self, address: str) -> Iterator[None]:
        """Hold room for a body that is being read.

        Raises:
            RejectedError: With status 429 for the address, 503 for all.
        """
        if self._read.total() >= READ_AHEAD * self._settings.concurrency:
            raise _busy()
        if self._read[address] >= self._settings.address_bodies:
            raise _too_many("too many bodies on their way from one address", 1.0)
        with _counted(self._read, address):
            yield

    @contextmanager
    def place(self, address: str, caller: Caller) -> Iterator[None]:
        """Hold a place for a request in work.

        Raises:
            RejectedError: With status 429 for the address or the tenant, 503 for all.
        """
        of_tenant, of_address = f"tenant {caller.name}", f"address {address}"
        if self._work["all"] >= self._settings.concurrency:
            raise _busy()
        if self._work[of_address] >= self._settings.most_of_an_address:
            raise _too_many("too many requests in work from one address", 1.0)
        most = caller.tenant.concurrency if caller.tenant else None
        if most is not None and self._work[of_tenant] >= most:
            raise _too_many(f"too many requests in work of {caller.name}", 1.0)
        with ExitStack() as held:
            for name in ("all", of_tenant, of_address):
                held.enter_context(_counted(self._work, name))
            yield


@contextmanager
def _counted(counter: Counter[str], name: str) -> Iterator[None]:
    counter[name] += 1
    try:
        yield
    finally:
        counter[name] -= 1
        if not counter[name]:
            del counter[name]


def _busy() -> RejectedError:
    return RejectedError(503, "the gateway is busy", "overloaded", {"retry-after": "1"})


def _too_many(what: str, seconds: float) -> RejectedError:
    wait = math.ceil(min(seconds, MOST_SECONDS))
    return RejectedError(429, what, "rate_limited", {"retry-after": str(wait)})
