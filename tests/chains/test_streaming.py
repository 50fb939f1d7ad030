"""No unjudged text leaves a stream, however it is cut into pieces."""

import random

import pytest

from chains.options import MarkerStyle, StreamMode
from chains.streaming import SentenceGate, guard_stream_sync
from guardrail import STRICT, Action
from tests.chains.conftest import ANSWER, CANARY, FALSE_MIDDLE, QUESTION, TRUE_END, TRUE_START


def cut(text, generator):
    """Cut a text into pieces at random places, down to single characters."""
    places = sorted(generator.sample(range(1, len(text)), generator.randrange(0, len(text) // 2)))
    return [text[a:b] for a, b in zip([0, *places], [*places, len(text)], strict=True)]


def released(guard, pieces, **options):
    """The releases of a stream."""
    gate = SentenceGate(guard, QUESTION, **{"policy": STRICT} | options)
    return list(guard_stream_sync(gate, pieces))


def text_of(releases):
    return "".join(release.text for release in releases)


def test_hundreds_of_streams_leak_nothing(guard):
    generator = random.Random(7)
    for number in range(200):
        mode = StreamMode.BUFFER if number % 4 == 0 else StreamMode.SENTENCE
        style = generator.choice(list(MarkerStyle))
        seen = text_of(released(guard, cut(ANSWER, generator), mode=mode, style=style))
        assert CANARY not in seen
        assert "1999" not in seen
        assert seen.startswith("Mary Shelley was a writer")
        assert "Her mother was" in seen


def test_a_sentence_is_released_when_the_next_begins(guard):
    gate = SentenceGate(guard, QUESTION, policy=STRICT, style=MarkerStyle.NONE)
    pieces = iter([TRUE_START, " ", "Her ", "mother ", "was ", "Mary Wollstonecraft."])
    releases = guard_stream_sync(gate, pieces)
    first = next(releases)
    assert (first.text, first.answer) == (TRUE_START, None)
    assert "Mary Wollstonecraft." in list(pieces)


def test_the_stream_ends_with_notes_and_the_verdict_on_the_whole(guard):
    *_, last = releases = released(guard, [ANSWER], style=MarkerStyle.FOOTNOTES)
    assert last.answer.action is Action.FILTER
    assert last.answer.text == f"{TRUE_START} {TRUE_END}"
    assert last.answer.original == ANSWER
    assert "a writer [1]." in text_of(releases)
    assert last.text.endswith("[2] Mary Shelley, mother: Mary Wollstonecraft")
    (only,) = released(guard, [FALSE_MIDDLE])
    assert only.text == STRICT.refusal
    assert released(guard, []) == [("", (), None)]


def test_citations_index_the_released_text(guard):
    releases = released(guard, cut(ANSWER, random.Random(1)))
    seen = text_of(releases)
    cited = [seen[one.start : one.end] for release in releases for one in release.citations]
    assert cited == ["writer", "Mary Wollstonecraft"]


@pytest.mark.parametrize("mode", StreamMode)
@pytest.mark.parametrize("removal", [0.0, 1.0])
def test_a_stream_releases_the_same_as_a_whole_answer(guard, removal, mode):
    strictness = {"support": 0.5, "contradiction": 0.5, "removal": removal}
    policy = STRICT.changed(strictness=strictness)
    whole = guard.check(QUESTION, ANSWER, policy=policy)
    releases = released(guard, [ANSWER], policy=policy, mode=mode, style=MarkerStyle.NONE)
    assert text_of(releases) == whole.text


@pytest.mark.parametrize("tail", ["\n```\n", "\n\n---\n"])
def test_marks_behind_the_last_sentence_stay(guard, tail):
    seen = text_of(released(guard, [f"```\n{TRUE_START}{tail}"], style=MarkerStyle.NONE))
    assert seen.rstrip().endswith(tail.strip())
