"""The pytest plugin, seen by a project that tests its chatbot with it."""

import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from guardrail.evaluation import assert_grounded
from tests.guardrail.evaluation.plugin import LOADING, PLUGIN
from tests.program import python

pytest_plugins = ["pytester"]

ROOT = Path(__file__).parents[3]
TESTS = """
    import pytest
    from guardrail import Triple

    FACTS = [Triple("Fjell 3", "price", "2,490 euros"), "The range of the Fjell 3 is 110 km."]
    RANGE = "The range of the Fjell 3 is 110 km."
    AWARD = "It won the Golden Spoke award in Lisbon."

    def test_right(assert_grounded):
        assert assert_grounded(RANGE, FACTS, question="How far does it go?").claims == 1

    def test_wrong(assert_grounded):
        assert_grounded("The Fjell 3 costs 2,190 euros.", FACTS)

    @pytest.mark.grounded(supported=0.5)
    class TestLenient:
        def test_by_marker(self, assert_grounded):
            assert_grounded(f"{RANGE} {AWARD}", FACTS)

        def test_by_call(self, assert_grounded):
            assert_grounded(f"{RANGE} {AWARD}", FACTS, supported=0.9)

    def test_by_hand(guardrail):
        answer = guardrail.check("", RANGE, evidence=[RANGE])
        assert not answer.sentences[0].na

    def test_of_something_else():
        pass
"""


@pytest.fixture
def project(pytester: pytest.Pytester) -> pytest.Pytester:
    pytester.makepyfile(test_bot=TESTS)
    return pytester


@pytest.fixture(autouse=True, scope="module")
def _loaded() -> None:
    """Load the engine once; pytester forgets what is imported in its runs."""
    assert_grounded("It is red.", ["It is red."])


def run(project: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    return project.runpytest_inprocess(*LOADING, "-p", "no:cacheprovider", *arguments)


def run_apart(project: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    options = (*LOADING, "-p", "no:cacheprovider", *arguments)
    done = python("-m", "pytest", *options, cwd=project.path)
    assert "Traceback" not in done.stderr
    lines = (done.stdout.splitlines(), done.stderr.splitlines())
    return pytest.RunResult(done.returncode, *lines, duration=0.0)


def test_loading_it_loads_no_engine() -> None:
    code = (
        f"import sys, time, pytest; begin = time.process_time(); import {PLUGIN};"
        "print(time.process_time() - begin);"
        "print([n for n in ('pydantic', 'numpy', 'spacy', 'onnxruntime') if n in sys.modules])"
    )
    command = [sys.executable, "-c", code]
    runs = [
        subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
        for _ in range(3)
    ]
    assert min(float(done.stdout.splitlines()[0]) for done in runs) < 0.2
    assert {done.stdout.splitlines()[1] for done in runs} == {"[]"}


def test_a_run_with_all_its_reports(project: pytest.Pytester) -> None:
    done = run(project, "--strict-markers", "--junitxml=tests.xml", "--guardrail-html=answers.html")
    done.assert_outcomes(passed=4, failed=2)
    done.stdout.fnmatch_lines(
        [
            "*AssertionError: not grounded: 100% of the claims are contradicted*",
            '*contradicted: "The Fjell 3 costs 2,190 euros.", but: *2,490 euros*',
            "*= guardrail =*",
            "4 answers, 6 claims: 3 supported, 1 contradicted",
            "  test_bot.py::test_wrong: contradicted",
            "  test_bot.py::TestLenient::test_by_call: unsupported",
            "every answer: answers.html",
        ],
        consecutive=False,
    )
    done.stdout.no_fnmatch_line("*def require*")  # the test's own lines are what failed
    cases = {case.get("name"): case for case in ElementTree.parse("tests.xml").iter("testcase")}
    reported = {
        item.get("name"): item.get("value") for item in cases["test_wrong"].iter("property")
    }
    assert reported == {
        "guardrail.verdict": "contradicted",
        "guardrail.claims": "1",
        "guardrail.supported": "0.0",
        "guardrail.contradicted": "1.0",
    }
    assert not list(cases["test_of_something_else"].iter("property"))
    page = Path("answers.html").read_text("utf-8")
    assert "2,190 euros" in page
    # Which test it is is next to the question before an answer is opened.
    assert re.search(r"<summary>(?:(?!</summary>).)*test_bot\.py::test_wrong", page)
    assert "readers said" not in page


def test_every_assertion_of_a_test_is_counted(project: pytest.Pytester) -> None:
    """By the function, in a thread, and in a fixture before and behind the test."""
    project.makepyfile(
        test_imported="""
        import threading

        import pytest
        from guardrail.evaluation import assert_grounded
        from guardrail.evaluation.assertion import assert_grounded as the_same

        @pytest.fixture
        def around():
            assert_grounded("It is green.", ["It is green."])
            yield
            assert_grounded("It is blue.", ["It is blue."])

        def test_by_the_function(around):
            the_same("It is red.", ["It is red."])
            thread = threading.Thread(target=the_same, args=("It is old.", ["It is old."]))
            thread.start()
            thread.join()

        def test_wrong():
            assert_grounded("The Fjell 3 costs 2,190 euros.", ["The Fjell 3 costs 2,490 euros."])
        """
    )
    done = run(project, "test_imported.py", "--junitxml=t.xml", "--guardrail-html=answers.html")
    done.assert_outcomes(passed=1, failed=1)
    done.stdout.fnmatch_lines(
        ["5 answers, 5 claims: 4 supported, 1 contradicted", "  test_imported.py::test_wrong: *"]
    )
    counted = Path("t.xml").read_text("utf-8").count('"guardrail.verdict"')
    assert counted == 5
    page = Path("answers.html").read_text("utf-8")
    assert all(f"It is {word}." in page for word in ("green", "blue", "red", "old"))


def test_over_several_processes_the_reports_are_whole(project: pytest.Pytester) -> None:
    done = run_apart(project, "-n", "2", "--guardrail-html=answers.html")
    done.assert_outcomes(passed=4, failed=2)
    done.stdout.fnmatch_lines(["4 answers, 6 claims: 3 supported, 1 contradicted"])
    assert "test_bot.py::test_wrong" in Path("answers.html").read_text("utf-8")


@pytest.mark.parametrize("path", ["taken.txt/answers.html", "."])
def test_an_unwritable_page_is_reported_before_the_first_test(
    project: pytest.Pytester, path: str
) -> None:
    project.makefile(".txt", taken="a file")
    done = run(project, f"--guardrail-html={path}")
    assert done.ret == pytest.ExitCode.USAGE_ERROR
    done.stderr.fnmatch_lines(["ERROR: --guardrail-html: *"])


def test_settings_come_from_the_file_that_the_project_names(project: pytest.Pytester) -> None:
    project.makeini("[pytest]\nguardrail_config = guardrail.toml\n")
    project.makefile(".toml", guardrail='judge = "none"\n')
    project.makepyfile(
        test_settings="""
        def test_the_judge(guardrail):
            assert guardrail.config.judge == "none"
        """
    )
    run(project, "test_settings.py").assert_outcomes(passed=1)


def test_a_wrong_marker_is_refused(project: pytest.Pytester) -> None:
    project.makepyfile(
        test_marker="""
        import pytest

        @pytest.mark.grounded(0.5)
        def test_by_place(assert_grounded):
            assert_grounded("It is green.", ["It is green."])

        @pytest.mark.grounded(suported=0.5)
        def test_misspelled(assert_grounded):
            assert_grounded("It is green.", ["It is green."])
        """
    )
    done = run(project, "test_marker.py")
    done.stdout.fnmatch_lines(["*write grounded(supported=…, contradicted=…), by name*"])
    done.stdout.fnmatch_lines(["*there is no 'suported'; did you mean 'supported'?*"])
