"""No unjudged text leaves a stream, however it is cut into pieces."""

import random

import pytest

from chains.rendering import MarkerStyle
from chains.streaming import SentenceGate, StreamMode, guard_stream, guard_stream_sync
from guardrail import STRICT, Action
from tests.chains.conftest import ANSWER, CANARY, FALSE_MIDDLE, QUESTION, TRUE_END, TRUE_START


def cut(text: str, generator: random.Random) -> list[str]:
    """Cut a text into pieces at random places, down to single characters."""
    places = sorted(generator.sample(range(1, len(text)), generator.randrange(0, len(text) // 2)))
    return [text[a:b] for a, b in zip([0, *places], [*places, len(text)], strict=True)]


def test_hundreds_of_streams_leak_nothing(guard):
    generator = random.Random(7)
    for number in range(400):
        mode = StreamMode.BUFFER if number % 4 == 0 else StreamMode.SENTENCE
        style = generator.choice(list(MarkerStyle))
        gate = SentenceGate(guard, QUESTION, policy=STRICT, mode=mode, style=style)
        seen = ""
        for release in guard_stream_sync(gate, cut(ANSWER, generator)):
            seen += release.text
        assert CANARY not in seen
        assert "1999" not in seen
        assert seen.startswith("Mary Shelley was a writer")
        assert "Her mother was" in seen


def test_a_sentence_is_released_when_the_next_begins(guard):
    gate = SentenceGate(guard, QUESTION, policy=STRICT, style=MarkerStyle.NONE)
    releases = list(guard_stream_sync(gate, [TRUE_START, " ", "Her", " mother was Mary ", "W."]))
    assert releases[0].text == TRUE_START
    assert releases[0].answer is None
    assert releases[-1].answer is not None


def test_the_stream_ends_with_the_verdict_on_the_whole(guard):
    gate = SentenceGate(guard, QUESTION, policy=STRICT)
    *_, last = guard_stream_sync(gate, [ANSWER])
    assert last.answer.action is Action.FILTER
    assert last.answer.text == f"{TRUE_START} {TRUE_END}"
    assert last.answer.original == ANSWER


async def test_async_and_sync_release_the_same(guard):
    async def pieces():
        for piece in ANSWER.split("n"):
            yield piece + "n"

    asynchronous = [
        release.text
        async for release in guard_stream(SentenceGate(guard, QUESTION, policy=STRICT), pieces())
    ]
    synchronous = [
        release.text
        for release in guard_stream_sync(
            SentenceGate(guard, QUESTION, policy=STRICT), [p + "n" for p in ANSWER.split("n")]
        )
    ]
    assert asynchronous == synchronous


def test_citations_index_the_released_text(guard):
    gate = SentenceGate(guard, QUESTION, policy=STRICT)
    seen, placed = "", []
    for release in guard_stream_sync(gate, cut(ANSWER, random.Random(1))):
        seen += release.text
        placed += release.citations
    assert [seen[item.start : item.end].split()[-1] for item in placed] == [
        "writer",
        "Wollstonecraft",
    ]


def test_footnotes_are_listed_at_the_end(guard):
    gate = SentenceGate(guard, QUESTION, policy=STRICT, style=MarkerStyle.FOOTNOTES)
    seen = "".join(release.text for release in guard_stream_sync(gate, [ANSWER]))
    assert "a writer [1]." in seen
    assert seen.endswith("[2] Mary Shelley, mother: Mary Wollstonecraft")


def test_a_stream_with_nothing_to_show_ends_in_the_refusal(guard):
    gate = SentenceGate(guard, QUESTION, policy=STRICT)
    (release,) = guard_stream_sync(gate, [FALSE_MIDDLE])
    assert release.text == STRICT.refusal


@pytest.mark.parametrize("removal", [0.0, 1.0])
def test_a_stream_lets_through_what_a_whole_answer_does(guard, removal):
    strictness = {"support": 0.5, "contradiction": 0.5, "removal": removal}
    policy = STRICT.changed(strictness=strictness)
    whole = guard.check(QUESTION, ANSWER, policy=policy)
    streamed = {
        mode: "".join(
            release.text
            for release in guard_stream_sync(
                SentenceGate(guard, QUESTION, policy=policy, mode=mode, style=MarkerStyle.NONE),
                [ANSWER],
            )
        )
        for mode in StreamMode
    }
    assert streamed == dict.fromkeys(StreamMode, whole.text)


def test_an_empty_stream_has_no_verdict(guard):
    (release,) = guard_stream_sync(SentenceGate(guard, QUESTION, policy=STRICT), [])
    assert release.text == ""
    assert release.answer is None


@pytest.mark.parametrize("tail", ["\n```\n", "\n\n---\n"])
def test_marks_behind_the_last_sentence_stay(guard, tail):
    gate = SentenceGate(guard, QUESTION, policy=STRICT, style=MarkerStyle.NONE)
    seen = "".join(r.text for r in guard_stream_sync(gate, [f"```\n{TRUE_START}{tail}"]))
    assert seen.rstrip().endswith(tail.strip())


def test_the_first_sentence_is_out_before_the_stream_ends(guard):
    """Time to the first released sentence is not the time of the whole answer."""
    gate = SentenceGate(guard, QUESTION, policy=STRICT)
    pieces = [TRUE_START, " Her ", "mother ", "was ", "Mary Wollstonecraft."]
    left = iter(pieces)
    first = next(release.text for release in guard_stream_sync(gate, left))
    assert first.startswith(TRUE_START[:-1])
    assert pieces[-1] in list(left)
