"""Asks whether the pages that the documentation links to are there: ``make links``.

It needs the internet, so that it is no part of ``make test``.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

import httpx

from tests.docs.pages import LINKED_PAGES, links

TIMEOUT_S = 30.0
AT_ONCE = 8
NO_HEAD = (403, 405, 501)
"""What servers answer that take GET alone."""


def dead(addresses: Iterable[str]) -> list[str]:
    """The addresses where no page is, each with the status or the error that came back."""
    with (
        httpx.Client(follow_redirects=True, timeout=TIMEOUT_S) as client,
        ThreadPoolExecutor(AT_ONCE) as threads,
    ):

        def asked(address: str) -> str | None:
            try:
                reply = client.head(address)
                if reply.status_code in NO_HEAD:
                    with client.stream("GET", address) as reply:
                        pass
            except httpx.HTTPError as error:
                return f"{address}: {type(error).__name__}: {error}"
            return f"{address}: {reply.status_code}" if reply.is_error else None

        return [result for result in threads.map(asked, addresses) if result]


def main() -> None:
    """Print the dead links of all pages, and exit with 1 where there are any."""
    found = {link.partition("#")[0]: None for page in LINKED_PAGES for link in links(page)}
    addresses = [link for link in found if link.startswith("https://")]
    results = dead(addresses)
    print("\n".join([*results, f"{len(addresses)} links, {len(results)} dead"]))
    sys.exit(bool(results))


if __name__ == "__main__":
    main()
