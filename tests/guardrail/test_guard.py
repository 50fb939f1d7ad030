"""Check and rank over the shipped graph; exact evidence keeps the tests fast and stable."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from itertools import chain

import pytest

from guardrail import (
    ANNOTATE,
    STRICT,
    Action,
    AskRequest,
    CheckRequest,
    ConfigError,
    GuardedAnswer,
    Guardrail,
    GuardrailConfig,
    InputError,
    JudgeError,
    KnowledgeGraphError,
    Passage,
    RankRequest,
    Score,
    Triple,
)
from guardrail.config import GraphConfig, LimitsConfig
from guardrail.core.types import Category
from guardrail.policy import Unavailable
from guardrail.scorers import ScoringRequest

QUESTION = "Who was Wolfgang Amadeus Mozart?"
ANSWER = (
    "Wolfgang Amadeus Mozart was a composer born in Salzburg on 27 January 1756. "
    "His father was Leopold. He was taught by Agostino Tassi."
)


def plain(answer: GuardedAnswer) -> dict[str, object]:
    return answer.model_dump(exclude={"id", "timings_ms"})


def test_an_answer_is_grounded_in_the_graph(exact_guard):
    answer = exact_guard.check(question=QUESTION, answer=ANSWER, id="one")
    assert answer.id == "one"
    assert answer.action is Action.ANNOTATE
    categories = [item.category for item in answer.sentences]
    assert categories == ["supportive", "supportive", "irrelevant"]
    assert "Salzburg [Q254, place of birth: Salzburg]" in answer.marked
    assert answer.marked.endswith("Agostino Tassi [NA].")
    assert answer.entities[0].entity.id == "Q254"
    assert answer.scorecard.scores["na_share"].value == pytest.approx(1 / 3)
    assert answer.errors == ()
    held = {item.citation for item in answer.evidence if isinstance(item, Triple)}
    assert {citation for sentence in answer.sentences for citation in sentence.citations} <= held


@pytest.mark.parametrize(
    ("form", "right"),
    [
        ("check", CheckRequest(question=QUESTION, answer=ANSWER)),
        ("rank", RankRequest(question=QUESTION, answers=(ANSWER,))),
        ("ask", AskRequest(question=QUESTION)),
    ],
)
def test_a_batch_of_something_else_is_refused_by_place_and_type(exact_guard, form, right):
    batch = getattr(exact_guard, f"{form}_batch")
    for wrong in ("text", {"question": QUESTION, "answer": ANSWER}, (QUESTION, ANSWER), None):
        with pytest.raises(InputError, match=rf"requests\[1\] .* {type(right).__name__}, not"):
            batch([right, wrong])
    for no_list in ("text", right, {"question": QUESTION}, None):
        with pytest.raises(InputError, match=f"list of {type(right).__name__}"):
            batch(no_list)


async def test_all_forms_say_the_same(exact_guard):
    request = CheckRequest(question=QUESTION, answer=ANSWER)
    single = await exact_guard.acheck(question=QUESTION, answer=ANSWER)
    batch = await exact_guard.acheck_batch([request, request])
    # The synchronous forms work inside a running loop and from other threads as well.
    inside = exact_guard.check(question=QUESTION, answer=ANSWER)

    threaded = await asyncio.gather(
        *(asyncio.to_thread(exact_guard.check_batch, [request]) for _ in range(4))
    )
    for other in (*batch, inside, *chain.from_iterable(threaded)):
        assert plain(other) == plain(single)


def test_inline_evidence_replaces_the_graph(exact_guard):
    triple = Triple(subject="Mozart", property="place of birth", value="Paris")
    answer = exact_guard.check(
        question=QUESTION, answer="Mozart was born in Paris.", evidence=[triple]
    )
    assert answer.sentences[0].citations == (triple.citation,)
    assert answer.evidence == (triple,)
    assert answer.entities == ()
    with pytest.raises(InputError, match="must be Triple"):
        exact_guard.check(question="", answer="x", evidence=[3])


def test_a_retriever_serves_in_place_of_the_graph():
    def retriever(question: str) -> list[Triple]:
        return [Triple(subject="Mozart", property="place of birth", value=question.split()[-1])]

    with Guardrail(GuardrailConfig(judge="none"), retriever=retriever) as guard:
        answer = guard.check(question="Mozart Linz", answer="Mozart was born in Linz.")
    assert answer.sentences[0].category is Category.SUPPORTIVE


def test_strict_removes_contradictions_and_refuses_what_nothing_supports(exact_guard):
    wrong = "Mozart was born in 1770."
    answer = exact_guard.check(
        question=QUESTION, answer=f"{wrong} Mozart was born in Salzburg.", policy="strict"
    )
    assert answer.action is Action.FILTER
    assert answer.text == "Mozart was born in Salzburg."
    assert answer.original == f"{wrong} Mozart was born in Salzburg."
    assert answer.text[answer.sentences[0].start :] == answer.sentences[0].text
    refused = exact_guard.check(question=QUESTION, answer=wrong, policy=STRICT)
    assert refused.action is Action.REFUSE
    assert (refused.text, refused.original) == (STRICT.refusal, wrong)
    assert refused.sentences == ()
    assert [sentence.text for sentence in refused.removed] == [wrong]
    assert refused.judged == refused.removed


def test_ranking_puts_the_supported_answer_first_and_says_why(exact_guard):
    answers = ["Mozart was born in Paris.", "Mozart was born in Salzburg.", "Which Mozart?"]
    ranking = exact_guard.rank(question=QUESTION, answers=answers, id="q")
    assert [item.id for item in ranking] == ["q.1", "q.0", "q.2"]
    assert [item.index for item in ranking] == [1, 0, 2]
    assert ranking[0].reasons[0] == (
        "rank 1 of 3: overall 1.00 (1 of 1 claims supported; 0 lack support, 0 contradicted)"
    )
    assert ranking[2].scorecard.overall.value is None
    batch = exact_guard.rank_batch([RankRequest(question=QUESTION, answers=tuple(answers))] * 2)
    for group in batch:
        assert [item.original for item in group] == [item.original for item in ranking]


class Length:
    name = "length"

    def score(self, batch: Sequence[ScoringRequest]) -> list[Mapping[str, Score]]:
        return [{"length": Score(value=float(len(item.answer.text)))} for item in batch]


class Broken:
    name = "broken"

    async def score(self, batch: Sequence[ScoringRequest]) -> list[Mapping[str, Score]]:
        raise JudgeError("no such model")


class FullDisk:
    def write(self, answer: GuardedAnswer, *, tags: Mapping[str, str] | None = None) -> None:
        raise OSError("no space left on device")

    def close(self) -> None: ...


def test_scorers_add_scores_and_failing_parts_never_fail_an_answer():
    policy = STRICT.model_copy(update={"rank_by": "length", "thresholds": {"length": 30}})
    with Guardrail(
        GuardrailConfig(judge="none", policy=policy), scorers=[Length(), Broken()], log=FullDisk()
    ) as guard:
        answers = ["Mozart was born in Salzburg.", "Mozart was born in Salzburg, once."]
        first, second = guard.rank(question=QUESTION, answers=answers)
    assert first.original == answers[1]
    assert "length is 28.00, below 30.00" in second.reasons
    assert [(error.part, error.message) for error in first.errors] == [
        ("scorer broken", "no such model"),
        ("records", "not recorded: no space left on device"),
    ]


def test_a_graph_that_cannot_be_opened_is_reported_and_the_policy_decides():
    config = GuardrailConfig(judge="none", graph=GraphConfig(location="/no/such/graph"))
    with Guardrail(config) as guard:
        shown = guard.check(question=QUESTION, answer=ANSWER)
        assert shown.action is Action.UNVERIFIED
        assert shown.text == ANSWER
        assert [error.part for error in shown.errors] == ["kg"]
        refuse = STRICT.model_copy(update={"unavailable": Unavailable.REFUSE})
        assert guard.check(question=QUESTION, answer=ANSWER, policy=refuse).text == STRICT.refusal
        stop = STRICT.model_copy(update={"unavailable": Unavailable.RAISE})
        with pytest.raises(KnowledgeGraphError, match="no graph at"):
            guard.check(question=QUESTION, answer=ANSWER, policy=stop)


@pytest.mark.parametrize(
    "answer", ["", "  \n", "\x00\x01", "\ud800", "a" * 1_000_000, "x. " * 400_000]
)
def test_answers_that_cannot_be_checked_come_back_unverified(exact_guard, answer):
    result = exact_guard.check(question=QUESTION, answer=answer)
    assert result.action is Action.UNVERIFIED
    assert [error.part for error in result.errors] == ["input"]
    result.model_dump_json()


ODD = ["[" * 10_000, "]" * 10_000, "[Q254, " * 3_000, "\x1b[31mMozart\x07 was born.", "a\r\nb",
       "." * 9_999]  # fmt: skip


@pytest.mark.parametrize("answer", ODD)
def test_odd_text_is_checked_in_bounded_time(exact_guard, answer):
    begin = time.process_time()
    result = exact_guard.check(question="", answer=answer)
    assert time.process_time() - begin < 10
    assert any(error.part == "question" for error in result.errors)


def test_a_deadline_bounds_the_whole(exact_guard):
    for policy, action in ((ANNOTATE, Action.UNVERIFIED), (STRICT, Action.REFUSE)):
        hurry = policy.model_copy(update={"deadline_s": 0.0001})
        result = exact_guard.check(question=QUESTION, answer=ANSWER * 20, policy=hurry)
        assert result.action is action
        assert [error.part for error in result.errors] == ["deadline"]
        assert result.judged == ()


def test_limits_are_settings():
    config = GuardrailConfig(judge="none", limits=LimitsConfig(answer_chars=10, evidence=1))
    facts = [Triple(subject="A", property="b", value=str(n)) for n in range(5)]
    with Guardrail(config) as guard:
        long = guard.check(question=QUESTION, answer="more than ten characters")
        assert "limits.answer_chars" in long.errors[0].message
        short = guard.check(question=QUESTION, answer="A is 4.", evidence=facts)
        assert short.evidence == tuple(facts[:1])
        assert [error.part for error in short.errors] == ["evidence"]
        assert short.errors[0].message.startswith("4 triples and passages were left out")


def test_one_large_entity_does_not_starve_the_others():
    config = GuardrailConfig(judge="none", limits=LimitsConfig(evidence=4))
    large = [Triple(subject="Mozart", property="work", value=f"K. {n}") for n in range(50)]
    small = [Triple(subject="Salzburg", property="country", value="Austria")]
    note = [Passage(text="Haydn was a friend of Mozart.")]
    for handed_in in (True, False):
        retriever = None if handed_in else lambda question: [*large, *small, *note]
        with Guardrail(config, retriever=retriever) as guard:
            answer = guard.check(
                question="Where is Salzburg?",
                answer="Salzburg is in the country Austria.",
                evidence=[*large, *small, *note] if handed_in else None,
            )
        assert answer.evidence == (*large[:2], *small, *note)
        assert answer.sentences[0].category is Category.SUPPORTIVE
        assert "48 triples and passages were left out" in answer.errors[0].message


def test_entities_of_the_graph_share_the_room_for_evidence(exact_guard):
    question = "Were Wolfgang Amadeus Mozart and Ada Lovelace both born in Vienna?"
    everything = exact_guard.check(question=question, answer="Neither was.").evidence
    config = GuardrailConfig(judge="none", limits=LimitsConfig(evidence=10))
    with Guardrail(config) as guard:
        answer = guard.check(question=question, answer="Neither was.")
    subjects = [item.subject for item in answer.evidence if isinstance(item, Triple)]
    assert (subjects.count("Wolfgang Amadeus Mozart"), subjects.count("Ada Lovelace")) == (5, 5)
    left_out = len(everything) - 10
    assert [error.message.split()[0] for error in answer.errors] == [str(left_out)]


@pytest.mark.parametrize("evidence", [{"name": "Ada"}, [{"name": "Ada"}]])
def test_the_json_of_a_tool_is_refused_with_a_hint(guard, evidence):
    with pytest.raises(InputError, match=r"Table\("):
        guard.check(question="Who was Ada?", answer="She was born.", evidence=evidence)


def test_one_thing_in_place_of_several_is_refused(guard):
    born = Passage(text="Ada was born.")
    for evidence in ("Ada was born.", b"Ada was born.", {"text": "Ada was born."}, born, 42):
        with pytest.raises(InputError, match="evidence must be a list"):
            guard.check(question="Who was Ada?", answer="She was born.", evidence=evidence)
    with pytest.raises(InputError, match="answers must be several texts"):
        guard.rank(question="Who was Ada?", answers="She was born.")
    with pytest.raises(ConfigError, match="a policy is a Policy or its name, not a dict"):
        guard.check(question="Who?", answer="She.", policy={"base": "strict"})
