"""A gateway that runs as a process of its own."""

import httpx

from tests.clock import until


def until_ready(url: str) -> None:
    """Wait until a gateway serves."""

    def ready() -> bool:
        try:
            return httpx.get(f"{url}/readyz").status_code == 200
        except httpx.TransportError:
            return False

    until(ready)
