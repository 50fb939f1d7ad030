"""What a policy that corrects does with what cannot be mended, in streams, and with a model."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator

import pytest

from chains.options import MarkerStyle
from chains.rendering import details, render
from chains.streaming import SentenceGate, guard_stream_sync
from guardrail import (
    STRICT_CORRECT,
    Action,
    CheckRequest,
    Guardrail,
    GuardrailConfig,
    ModelError,
    Triple,
)
from guardrail.core.workers import within
from guardrail.engine import flow
from guardrail.markers.grammar import parse, strip
from guardrail.markers.grammar import render as rendered
from guardrail.models import Completion, SampleRequest
from guardrail.models.generation import Wrong, rewritten
from tests.clock import PATIENCE_S, Deadline
from tests.guardrail.models.endpoint import Endpoint, serve
from tests.guardrail.scripted import Ready

QUESTION = "What does the Fjell 3 cost?"
FACTS = [Triple("Fjell 3", "price", "2,490 euros"), Triple("Fjell 3", "range", "110 km")]
WRONG = "The Fjell 3 costs 2,190 euros."
RIGHT = "The Fjell 3 costs 2,490 euros."
TRUE = "It has a range of 110 km."
NO_VALUE = "The Fjell 3 costs 1,990 euros and was voted bicycle of the year in Norway."
"""With the right price it would not be supported either."""


def test_each_sentence_is_corrected_and_the_others_keep_their_place(guard):
    said = f"{WRONG} {TRUE} The Fjell 3 has a range of 90 km."
    answer = guard.check(QUESTION, said, evidence=FACTS, policy=STRICT_CORRECT)
    assert answer.text == f"{RIGHT} {TRUE} The Fjell 3 has a range of 110 km."
    for sentence in answer.sentences:
        assert answer.text[sentence.start : sentence.end] == sentence.text
        for span in sentence.spans:
            assert answer.text[span.start : span.end] == span.text


def test_what_cannot_be_mended_goes_to_the_next_action(guard):
    said = f"{WRONG} {NO_VALUE} {TRUE}"
    gone = guard.check(QUESTION, said, evidence=FACTS, policy=STRICT_CORRECT)
    assert gone.action is Action.FILTER
    assert gone.text == f"{RIGHT} {TRUE}"
    (removed,) = gone.removed
    assert said[removed.start : removed.end] == NO_VALUE  # offsets are those of the original
    kept = STRICT_CORRECT.changed(uncorrected="annotate")
    shown = guard.check(QUESTION, said, evidence=FACTS, policy=kept)
    assert (shown.action, shown.text) == (Action.CORRECT, f"{RIGHT} {NO_VALUE} {TRUE}")
    refusing = STRICT_CORRECT.changed(uncorrected="refuse")
    refused = guard.check(QUESTION, said, evidence=FACTS, policy=refusing)
    assert refused.action is Action.REFUSE
    assert [item.text for item in refused.removed] == [WRONG, NO_VALUE, TRUE]


def test_a_dry_run_reports_the_correction_and_keeps_the_answer(guard):
    said = f"{WRONG} {TRUE}"
    dry = STRICT_CORRECT.changed(dry_run=True)
    answer = guard.check(QUESTION, said, evidence=FACTS, policy=dry)
    assert (answer.action, answer.would, answer.text) == (Action.PASS, Action.CORRECT, said)
    assert answer.sentences[0].sure
    assert answer.reasons[0].startswith("corrected")


def test_a_stream_releases_the_corrected_sentence():
    with Guardrail(GuardrailConfig(), retriever=lambda question: FACTS) as own:
        gate = SentenceGate(own, QUESTION, policy=STRICT_CORRECT, style=MarkerStyle.KALMA)
        said = f"{WRONG} {NO_VALUE} {TRUE}"
        releases = list(guard_stream_sync(gate, [said[i : i + 7] for i in range(0, len(said), 7)]))
    seen = "".join(release.text for release in releases)
    assert "2,190" not in seen
    assert "Norway" not in seen
    cited = "[Fjell 3, price: 2,490 euros]"
    assert seen.startswith(f"The Fjell 3 costs 2,490 euros {cited} [corrected].")
    assert strip(seen) == releases[-1].answer.text == f"{RIGHT} {TRUE}"


def test_the_mark_is_read_back_and_shown_in_each_style(guard):
    answer = guard.check(QUESTION, WRONG, evidence=FACTS, policy=STRICT_CORRECT)
    parsed = parse(answer.marked, FACTS)
    assert (parsed.clean, rendered(parsed)) == (answer.text, answer.marked)
    assert [marker.corrected for marker in parsed.markers] == [False, True]
    shown = {style: render(answer, style).text for style in MarkerStyle}
    assert shown[MarkerStyle.KALMA] == answer.marked
    assert shown[MarkerStyle.FOOTNOTES].startswith("The Fjell 3 costs 2,490 euros [1] [corrected].")
    assert shown[MarkerStyle.NONE] == answer.text
    (cited,) = render(answer, MarkerStyle.NONE).citations
    assert answer.text[cited.start : cited.end] == "2,490 euros"


def test_the_fields_of_a_reply_tell_it_but_not_what_stood_there_where_reasons_are_off(guard):
    answer = guard.check(QUESTION, WRONG, evidence=FACTS, policy=STRICT_CORRECT)
    stated = details(answer)
    assert stated["action"] == "correct"
    assert stated["sentences"][0]["correction"]["original"] == WRONG
    assert "2,190" not in str(stated["reasons"])
    silent = details(answer, reasons=False)
    assert "2,190" not in str(silent)
    assert silent["sentences"][0]["spans"][0]["kind"] == "corrected"


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with serve() as endpoint:
        yield endpoint


@pytest.fixture
def asking(endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> Iterator[Guardrail]:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    monkeypatch.setenv("OPENAI_BASE_URL", endpoint.url)
    with Guardrail(GuardrailConfig(model="openai:m")) as own:
        yield own


BY_MODEL = STRICT_CORRECT.changed(correct_with="model")


def test_a_model_is_asked_for_what_no_edit_mends_with_the_fact_against_it(asking, endpoint):
    endpoint.text = "The price of the Fjell 3 is 2,490 euros."
    answer = asking.check(QUESTION, f"{WRONG} {NO_VALUE}", evidence=FACTS, policy=BY_MODEL)
    assert answer.text == f"{RIGHT} {endpoint.text}"
    assert [item.correction.by for item in answer.sentences] == ["edit", "model"]
    assert answer.sentences[1].correction.original == NO_VALUE
    changed = [one for one in answer.sentences[1].spans if one.kind == "corrected"]
    assert [(one.text, one.instead_of) for one in changed] == [
        ("price of the", ""),
        ("is 2,490", "costs 1,990"),
        ("euros", "and was voted bicycle of the year in Norway"),
    ]
    (request,) = endpoint.requests
    asked = request["messages"][-1]["content"]
    assert "Fact: Fjell 3, price: 2,490 euros." in asked
    assert f"Sentence: {NO_VALUE}" in asked


@pytest.mark.parametrize(
    "text", ["The Fjell 3 costs 1,890 euros.", "", "It flies.\nFor real.", "x" * 2_000]
)
def test_what_a_model_writes_that_does_not_hold_is_not_released(asking, endpoint, text):
    endpoint.text = text
    answer = asking.check(QUESTION, f"{NO_VALUE} {TRUE}", evidence=FACTS, policy=BY_MODEL)
    assert (answer.text, answer.action) == (TRUE, Action.FILTER)


def test_a_model_that_fails_costs_only_its_corrections(asking, endpoint):
    endpoint.status = 401
    answer = asking.check(QUESTION, f"{WRONG} {NO_VALUE}", evidence=FACTS, policy=BY_MODEL)
    assert answer.text == RIGHT
    assert [error.part for error in answer.errors] == ["correction"]


def test_a_dry_run_asks_no_model_and_says_so(asking, endpoint):
    endpoint.text = "The price of the Fjell 3 is 2,490 euros."
    dry, said = BY_MODEL.changed(dry_run=True), f"{WRONG} {NO_VALUE}"
    answer = asking.check(QUESTION, said, evidence=FACTS, policy=dry)
    assert (answer.text, answer.would) == (said, Action.FILTER)  # the edit is reported
    assert not endpoint.requests
    assert [error.part for error in answer.errors] == ["correction"]
    assert "a dry run asks no model" in answer.errors[0].message
    assert not asking.check(QUESTION, WRONG, evidence=FACTS, policy=dry).errors


class Writing(Ready):
    """Custom model whose calls run a function of the test, by the number of the call."""

    name = "own"

    def __init__(self, does: Callable[[int], Awaitable[str]]) -> None:
        self.does = does
        self.requests: list[SampleRequest] = []

    def close(self) -> None:
        """Nothing to release."""

    async def sample(self, request: SampleRequest) -> list[Completion]:
        self.requests.append(request)
        return [Completion(text=await self.does(len(self.requests) - 1))]


MENDED = "The price of the Fjell 3 is 2,490 euros."
BATCH = [CheckRequest(question=QUESTION, answer=NO_VALUE, evidence=FACTS)] * 3


async def hangs() -> None:
    await asyncio.sleep(PATIENCE_S)


@pytest.mark.parametrize("kind", [ModelError, RuntimeError, TimeoutError])
def test_what_the_model_does_not_give_costs_its_sentence_alone(kind: type[Exception]) -> None:
    async def does(place: int) -> str:
        if place == 1:
            raise kind("rate limit")
        return MENDED

    model = Writing(does)
    with Guardrail(GuardrailConfig(), model=model) as guard:
        first, second, third = guard.check_batch(BATCH, policy=BY_MODEL)
    assert (first.text, third.text) == (MENDED, MENDED)
    assert not first.errors
    assert not third.errors
    assert second.action is Action.REFUSE
    (problem,) = second.errors
    assert problem.part == "correction"
    assert f"0 to {len(NO_VALUE)}" in problem.message
    assert "rate limit" in problem.message


async def test_a_call_that_hangs_fails_alone_after_half_of_the_time_left() -> None:
    async def does(place: int) -> str:
        if place == 0:
            await hangs()
        return MENDED

    model = Writing(does)
    with within(1.0):
        wrong = Wrong(QUESTION, NO_VALUE, (FACTS[0].text,))
        first, second = await rewritten(model, [wrong] * 2, at_once=2)
    assert isinstance(first, ModelError)
    assert second == MENDED
    assert all(0.0 < (request.timeout_s or 0.0) <= 0.5 for request in model.requests)


def test_a_late_correction_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    deadline = Deadline(monkeypatch, flow)

    async def does(place: int) -> str:
        deadline.end()
        await hangs()
        return MENDED

    with Guardrail(GuardrailConfig(), model=Writing(does)) as guard:
        answer = guard.check(QUESTION, f"{NO_VALUE} {TRUE}", evidence=FACTS, policy=BY_MODEL)
    assert (answer.text, answer.action) == (TRUE, Action.FILTER)  # the verdict stands
    assert [error.part for error in answer.errors] == ["correction"]
