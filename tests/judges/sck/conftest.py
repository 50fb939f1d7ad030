from __future__ import annotations

from collections.abc import Callable

import pytest

from guardrail.core.types import Entity, LinkedEntity, Mention
from judges.encoder import create_encoder
from judges.registry import create_nli
from judges.sck import SCKScorer

Link = Callable[..., LinkedEntity]


@pytest.fixture(scope="session")
def scorer() -> SCKScorer:
    """The scorer as shipped: encoder and NLI judge from the package's own weights."""
    return SCKScorer(create_encoder(), create_nli("onnx"))


@pytest.fixture
def link() -> Link:
    def make(name: str, identifier: str, description: str | None = None) -> LinkedEntity:
        return LinkedEntity(
            mention=Mention(text=name, start=0, end=len(name)),
            entity=Entity(id=identifier, label=name, description=description),
            matched="label",
        )

    return make
