"""A gateway that runs as a process of its own."""

import time

import httpx

PATIENCE_S = 200


def until_ready(url: str) -> None:
    """Wait until a gateway serves."""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        try:
            if httpx.get(f"{url}/readyz").status_code == 200:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.2)
    raise AssertionError("the gateway did not become ready")
