"""An answer that is judged while it grows: the same verdict as one check, in linear time."""

import threading
from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from guardrail import (
    ANNOTATE,
    STRICT,
    Action,
    CheckSession,
    GuardedAnswer,
    Guardrail,
    GuardrailConfig,
    Triple,
)
from guardrail.core.types import Category
from guardrail.engine import session as session_module
from guardrail.markers import brackets
from tests.guardrail.scripted import Overlap

QUESTION = "Who was Mary Shelley?"
FACTS = [
    Triple(subject="Mary Shelley", subject_id="Q47152", property=name, value=value)
    for name, value in (
        ("occupation", "writer"),
        ("date of birth", "1797-08-30"),
        ("place of birth", "London"),
        ("mother", "Mary Wollstonecraft"),
    )
]
SENTENCES = [
    "Mary Shelley was a writer.",
    "She was born on 4 May 1999.",
    "Her mother was Mary Wollstonecraft [Q47152, mother: Mary Wollstonecraft].",
    "Her father was the philosopher William Godwin. [NA]",
    "She was born in London [Q47152, place of birth: London]!",
    "- She wrote to Dr. John Polidori [sic] (see [1])",
    "Who knows?",
    "```\ncode\n```",
]


def plain(answer: GuardedAnswer) -> dict[str, object]:
    return answer.model_dump(exclude={"id", "timings_ms"})


def stretches(session: CheckSession, pieces: Sequence[str]) -> list[GuardedAnswer]:
    judged = [session.add(piece) for piece in pieces]
    return [item for item in [*judged, session.rest()] if item is not None]


texts = st.lists(st.sampled_from(SENTENCES), min_size=1, max_size=8).flatmap(
    lambda chosen: st.lists(
        st.sampled_from([" ", "\n", "\n\n"]), min_size=len(chosen), max_size=len(chosen)
    ).map(lambda gaps: "".join(a + b for a, b in zip(chosen, gaps, strict=True)))
)


DASHED = f"{' '.join(SENTENCES[:1] * 5)}\n{SENTENCES[0]} {SENTENCES[5]}\n{SENTENCES[0]} "


@given(texts, st.lists(st.integers(0, 600), max_size=12), st.sampled_from(["annotate", "strict"]))
@example(DASHED, [DASHED.index("- ") + 3], "annotate")
@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_a_session_ends_in_the_verdict_of_one_check(
    exact_guard: Guardrail, text: str, places: list[int], policy: str
) -> None:
    cuts = [0, *sorted(min(place, len(text)) for place in places), len(text)]
    pieces = [text[a:b] for a, b in pairwise(cuts)]
    session = exact_guard.session(question=QUESTION, evidence=FACTS, policy=policy)
    judged = stretches(session, pieces)
    whole = exact_guard.check(question=QUESTION, answer=text, evidence=FACTS, policy=policy)
    assert plain(session.finish()) == plain(whole)
    noted = exact_guard.check(question=QUESTION, answer=text, evidence=FACTS)
    assert "".join(item.text for item in judged).rstrip() == noted.text.rstrip()
    found = [sentence for item in judged for sentence in item.sentences]
    assert [item.text for item in found] == [item.text for item in noted.sentences]
    assert [item.category for item in found] == [item.category for item in noted.sentences]
    for item in judged:
        for sentence in item.sentences:
            assert item.text[sentence.start : sentence.end] == sentence.text


def test_spans_and_findings_index_the_text_of_their_stretch(exact_guard: Guardrail) -> None:
    session = exact_guard.session(question=QUESTION, evidence=FACTS)
    judged = stretches(session, [f"{sentence} " for sentence in SENTENCES[:5]])
    assert len(judged) > 2
    for sentence in (sentence for item in judged for sentence in item.sentences):
        for one in (*sentence.spans, *sentence.findings):
            assert sentence.start <= one.start <= one.end <= sentence.end


def test_a_stretch_is_judged_once_and_the_judge_is_asked_nothing_twice(
    exact_guard: Guardrail,
) -> None:
    sentences = [f"Mary Shelley was a writer of book {n}." for n in range(60)]
    asked = {}
    for way in ("check", "session"):
        judge = Overlap()
        config = GuardrailConfig(judge="none")
        with Guardrail(config, grounding=judge, retriever=lambda question: FACTS) as guard:
            if way == "check":
                guard.check(question=QUESTION, answer=" ".join(sentences))
            else:
                session = guard.session(question=QUESTION)
                judged = stretches(session, [f"{sentence} " for sentence in sentences])
                session.finish()
                assert len(judged) == len(sentences)
                assert all(item.sentences[0].category for item in judged)
        asked[way] = len(judge.asked)
    assert asked["check"] > 0
    assert asked["session"] == asked["check"]


def test_a_long_first_piece_does_not_hold_up_the_next_sentences(exact_guard: Guardrail) -> None:
    session = exact_guard.session(question=QUESTION, evidence=FACTS)
    session.add("It was opened in 1932. " * 200)
    assert session.add("It is closed. It is old. ") is not None


@pytest.mark.parametrize("piece", ["----", "[---", "... "])
def test_the_work_for_a_text_without_sentences_is_linear(
    exact_guard: Guardrail, monkeypatch: pytest.MonkeyPatch, piece: str
) -> None:
    read: list[int] = []

    def counted(text: str) -> int | None:
        read.append(len(text))
        return brackets.open_bracket(text)

    monkeypatch.setattr(session_module, "open_bracket", counted)
    for size in (1_000, 4_000):
        read.clear()
        session = exact_guard.session(question=QUESTION, evidence=FACTS)
        assert not any(session.add(piece) for _ in range(size))
        assert sum(read) < 50 * len(piece) * size


def test_an_open_bracket_holds_back_what_may_be_a_marker(exact_guard: Guardrail) -> None:
    session = exact_guard.session(question=QUESTION, evidence=FACTS)
    assert session.add("Mary Shelley was a writer [Q1, a: [b] c. She was") is None
    judged = session.add(" born in Rome. And] she") or session.rest()
    assert judged is not None
    assert judged.text.startswith("Mary Shelley was a writer")


def test_a_sentence_that_was_looked_at_half_is_judged_whole(exact_guard: Guardrail) -> None:
    session = exact_guard.session(QUESTION, evidence=FACTS)
    session.add("Someone told {it}")
    assert session.rest() is not None
    judged = session.add("that she was born in 1897. She died.")
    assert judged is not None
    assert judged.text == "Someone told {it}that she was born in 1897."
    assert [sentence.start for sentence in judged.sentences] == [0]


def test_steps_that_cannot_be_judged_show_the_original_text() -> None:
    text = "Mary Shelley was a writer [Q47152, occupation: writer]. She lived. "
    config = GuardrailConfig(judge="none", graph={"location": "/no/such/graph"})
    with Guardrail(config) as guard:
        session = guard.session(question=QUESTION)
        judged = stretches(session, [text, "She was born in London."])
        assert {item.action for item in judged} == {Action.UNVERIFIED}
        assert "".join(item.text for item in judged) == text + "She was born in London."
        assert session.finish().action is Action.UNVERIFIED


def test_text_that_was_refused_is_judged_with_what_follows() -> None:
    down = [True]

    def retriever(question: str) -> list[Triple]:
        if down[0]:
            raise ConnectionError("away")
        return FACTS

    with Guardrail(GuardrailConfig(judge="none"), retriever=retriever) as guard:
        session = guard.session(question=QUESTION, policy=STRICT)
        refused = session.add("Mary Shelley was a writer. She")
        assert refused is not None
        assert refused.action is Action.REFUSE
        assert session.add(" was") is None  # no further sentence, no further look
        down[0] = False
        judged = session.add(" born in London. Then")
    assert judged is not None
    assert [sentence.category for sentence in judged.sentences] == [Category.SUPPORTIVE] * 2


def test_a_hanging_retriever_costs_each_step_its_time_and_no_more() -> None:
    wake = threading.Event()
    hurry = ANNOTATE.model_copy(update={"deadline_s": 0.3})
    with Guardrail(GuardrailConfig(judge="none"), retriever=lambda question: wake.wait()) as guard:
        guard.warm_up()
        session = guard.session(question=QUESTION, policy=hurry)
        judged = session.add("Mary Shelley was a writer. She")
        assert judged is not None
        assert [error.part for error in judged.errors] == ["deadline"]
        wake.set()


def test_a_retriever_is_asked_once_for_an_answer() -> None:
    asked: list[str] = []

    def retriever(question: str) -> list[Triple]:
        asked.append(question)
        return FACTS

    with Guardrail(GuardrailConfig(judge="none"), retriever=retriever) as guard:
        session = guard.session(question=QUESTION)
        stretches(session, [f"{sentence} " for sentence in SENTENCES])
        session.finish()
    assert asked == [QUESTION]


def test_a_session_is_recorded_once(exact_guard: Guardrail) -> None:
    class Memory:
        def __init__(self) -> None:
            self.answers: list[GuardedAnswer] = []

        def write(self, answer: GuardedAnswer, *, tags: object = None) -> None:
            self.answers.append(answer)

        def close(self) -> None: ...

    log = Memory()
    with Guardrail(GuardrailConfig(judge="none"), log=log) as guard:  # type: ignore[arg-type]
        session = guard.session(question=QUESTION, evidence=FACTS, id="one")
        stretches(session, SENTENCES)
        session.finish()
    assert [item.id for item in log.answers] == ["one"]
