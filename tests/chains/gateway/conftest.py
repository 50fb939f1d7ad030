"""The server of a model that gateways of these tests stand before."""

import pytest

from tests.chains.fake_openai import served


@pytest.fixture(scope="module")
def upstream(fake):
    """The address of its API."""
    with served(fake.app) as url:
        yield f"{url}/v1"
