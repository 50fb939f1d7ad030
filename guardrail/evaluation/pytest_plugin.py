"""The pytest plugin: fixtures ``guardrail`` and ``assert_grounded``, a marker, and reports.

pytest loads it at every start through its entry point. So it imports only pytest; the engine loads
when a test first uses a fixture.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

import pytest

from guardrail.evaluation import observers

if TYPE_CHECKING:
    from guardrail.core.types import Evidence, GuardedAnswer
    from guardrail.evaluation import Assessment
    from guardrail.guard import Guardrail

MARKER = "grounded"
CONFIG = "guardrail_config"
HTML = "guardrail_html"
SHARES: Final = ("supported", "contradicted")


_Judged = tuple[dict[str, object], dict[str, object]]
"""Assessment and answer of a test, as JSON that pytest-xdist can send."""
_JUDGED = pytest.StashKey[list[_Judged]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options and the setting of the same name."""
    group = parser.getgroup("guardrail")
    group.addoption(
        "--guardrail-config",
        dest=CONFIG,
        metavar="FILE",
        help="settings of the fixture guardrail (TOML); default: those of the environment",
    )
    group.addoption(
        "--guardrail-html",
        dest=HTML,
        metavar="FILE",
        help="write all judged answers, sentence by sentence, as one HTML page",
    )
    parser.addini(CONFIG, "settings of the fixture guardrail (TOML), relative to the root folder")


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker, and make the folder of the HTML page."""
    config.addinivalue_line(
        "markers",
        f"{MARKER}(supported=1.0, contradicted=0.0): minimum share of supported and maximum share "
        "of contradicted claims, for assert_grounded",
    )
    if (path := _page_path(config)) is not None:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise pytest.UsageError(
                f"--guardrail-html: cannot make the folder of {path}: {error.strerror}"
            ) from error
        if path.is_dir():
            raise pytest.UsageError(f"--guardrail-html: {path} is a folder, name a file")


@pytest.fixture(scope="session")
def guardrail(pytestconfig: pytest.Config) -> Iterator[Guardrail]:
    """One guardrail for all tests, with the settings of ``--guardrail-config`` or the environment.

    Override it in a ``conftest.py`` to pass your own graph, judge or retriever.
    """
    path = pytestconfig.getoption(CONFIG)
    if path is None and (name := pytestconfig.getini(CONFIG)):
        path = pytestconfig.rootpath / name
    if path is None:
        from guardrail.evaluation.assertion import shared_guard

        yield shared_guard()
        return
    from guardrail.config import GuardrailConfig
    from guardrail.guard import Guardrail

    with Guardrail(GuardrailConfig.from_toml(path)) as guard:
        yield guard


@pytest.fixture
def assert_grounded(
    guardrail: Guardrail, request: pytest.FixtureRequest
) -> Callable[..., Assessment]:
    """``assert_grounded(answer, evidence, question=…, supported=…, contradicted=…)``.

    The two shares default to those of the test's marker, else to all and none; see
    ``guardrail.evaluation.assert_grounded``.
    """
    marker = request.node.get_closest_marker(MARKER)
    if marker is not None and marker.args:
        raise pytest.UsageError(f"write {MARKER}(supported=…, contradicted=…), by name")
    marked: dict[str, float] = dict(marker.kwargs) if marker else {}
    for name in marked.keys() - set(SHARES):
        from guardrail.core.fields import did_you_mean

        raise pytest.UsageError(f"{MARKER}: there is no {name!r}; {did_you_mean(name, SHARES)}")

    def check(
        answer: str, evidence: Sequence[Evidence | str], *, question: str = "", **shares: float
    ) -> Assessment:
        __tracebackhide__ = True
        from guardrail.evaluation.assertion import Requirement, judge_answer, require

        wanted = Requirement.model_validate(marked | shares)
        return require(judge_answer(answer, evidence, question=question, guard=guardrail), wanted)

    return check


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Record what a test asserts, through the fixture or the function."""
    observer = partial(_note, item)
    observers.append(observer)
    try:
        return (yield)
    finally:
        observers.remove(observer)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add judged answers to the report, which pytest-xdist sends to the main process.

    Setup, call and teardown of a test have a report each, and each may assert.
    """
    report = yield
    if judged := item.stash.get(_JUDGED, None):
        del item.stash[_JUDGED]
        vars(report)["guardrail_judged"] = judged
    return report


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Print how many answers were judged, and the verdicts on their claims."""
    judged = [
        (report.nodeid, *row)
        for reports in terminalreporter.stats.values()
        for report in reports
        for row in getattr(report, "guardrail_judged", ())
    ]
    path = _page_path(config)
    if not judged and path is None:
        return
    from guardrail.evaluation.assertion import Assessment

    found = [(test, Assessment.model_validate(row)) for test, row, _ in judged]
    terminalreporter.section("guardrail")
    shares = {
        name: round(sum((getattr(item, name) or 0.0) * item.claims for _, item in found))
        for name in SHARES
    }
    unchecked = sum(item.verdict is None for _, item in found)
    rest = f", {unchecked} not checked" if unchecked else ""
    verdicts = ", ".join(f"{number} {name}" for name, number in shares.items())
    claims = sum(item.claims for _, item in found)
    terminalreporter.write_line(f"{len(found)} answers{rest}, {claims} claims: {verdicts}")
    for test, item in found:
        if not item.passed:
            terminalreporter.write_line(f"  {test}: {item.verdict or 'not checked'}")
    if path is not None:
        _write_page(path, [(test, answer) for test, _, answer in judged])
        terminalreporter.write_line(f"every answer: {config.getoption(HTML)}")


def _note(item: pytest.Item, answer: GuardedAnswer, found: Assessment) -> None:
    """Record an answer for the reports: properties for JUnit, all of it for the HTML page."""
    verdict = "not checked" if found.verdict is None else found.verdict.value
    shown: dict[str, object] = {"verdict": verdict, "claims": found.claims}
    shown |= {name: value for name in SHARES if (value := getattr(found, name)) is not None}
    item.user_properties += [(f"guardrail.{name}", value) for name, value in shown.items()]
    row = found.model_dump(mode="json"), answer.model_dump(mode="json")
    item.stash.setdefault(_JUDGED, []).append(row)


def _page_path(config: pytest.Config) -> Path | None:
    """Path of the page, independent of the working folder, which a test may change."""
    name = config.getoption(HTML)
    return None if name is None else config.invocation_params.dir / name


def _write_page(path: Path, answers: Sequence[tuple[str, dict[str, object]]]) -> None:
    from guardrail.core.types import GuardedAnswer
    from guardrail.log.records import Record, SQLiteLog
    from guardrail.report import report_html

    with TemporaryDirectory() as folder, SQLiteLog(Path(folder, "log.sqlite")) as log:
        log.write_records(
            Record(
                id=f"{test}#{place}",
                answer=GuardedAnswer.model_validate(answer),
                tags={"test": test},
            )
            for place, (test, answer) in enumerate(answers)
        )
        path.write_text(report_html(log, title="Tests of answers"), "utf-8")
