"""Fixtures that several test modules share: one engine over the shipped graph, made once."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from guardrail import Guardrail, GuardrailConfig

# The same examples on each run, however busy the machine: a run fails by what was changed. To look
# for new ones: pytest --hypothesis-profile=explore
FREE_OF_TIME = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("explore", FREE_OF_TIME, max_examples=1_000)
settings.register_profile("same", FREE_OF_TIME, derandomize=True, database=None)
settings.load_profile("same")

SLOW = (
    "benchmarks", "docs", "examples", "packaging", "training",
    "chains/gateway/test_dashboard.py", "chains/gateway/test_page.py",
    "chains/gateway/test_litellm_proxy.py",
    "chains/test_event_loop.py", "chains/test_middleware.py", "chains/test_odd_requests.py",
    "guardrail/bulk", "guardrail/commands", "guardrail/core/documents",
    "guardrail/core/text/test_tagging.py", "guardrail/evaluation/test_pytest_plugin.py",
    "guardrail/models", "guardrail/test_report.py",
    "judges/test_benchmark.py", "judges/test_causal_lm.py",
    "judges/test_conner.py", "judges/test_exactness.py", "judges/test_hf.py", "judges/test_sck.py",
)  # fmt: skip
"""What only ``make test-all`` runs: browsers, programs and servers in processes of their own, what
imports torch, training, whole data sets, and properties that take long."""
_SLOW = tuple(Path(__file__).parent / name for name in SLOW)


def _is_slow(path: Path) -> bool:
    return any(path.is_relative_to(slow) for slow in _SLOW)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out what takes long before it is imported, which takes long too."""
    unwanted = config.getoption("markexpr") == "not slow" and _is_slow(collection_path)
    return True if unwanted else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what takes long."""
    for item in items:
        if _is_slow(item.path):
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def guard() -> Iterator[Guardrail]:
    """The embedded defaults: people graph and shipped judge; one per process."""
    from guardrail.evaluation.assertion import shared_guard

    with shared_guard() as guard:
        guard.warm_up()
        yield guard


@pytest.fixture(scope="session")
def exact_guard() -> Iterator[Guardrail]:
    """The people graph with exact evidence alone: fast, and the same on every machine."""
    with Guardrail(GuardrailConfig(judge="none")) as guard:
        guard.warm_up()
        yield guard
