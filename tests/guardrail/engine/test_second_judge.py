"""A second judge speaks on the sentences that the first is not sure of, and on no others."""

import re
import time
from typing import ClassVar

import pytest

from guardrail import (
    ANNOTATE,
    ConfigError,
    Guardrail,
    GuardrailConfig,
    JudgeError,
    Passage,
    Triple,
)
from guardrail.core import workers
from guardrail.core.types import Grounding, NLIScores
from judges.base import NLITraits
from tests.chains.fake_openai import FakeOpenAI, served
from tests.clock import HandClock
from tests.guardrail.scripted import Scripted
from tests.judges.chat_server import endpoint, labels, prompt_of, sentence_of

QUESTION = "What is the pool like?"
EVIDENCE = [Passage("The pool is warm and deep. It has a slide. The pool opens at 9.")]
CHANCES = {
    "The pool is lovely.": 0.52,
    "The pool is warm.": 0.97,
    "The pool is heated.": 0.41,
    "The pool is large.": 0.68,
    "The pool is green.": 0.03,
    "The pool is deep.": 0.55,
}
ANSWER = " ".join(CHANCES)
BY_DISTANCE = [
    "The pool is lovely.",
    "The pool is deep.",
    "The pool is heated.",
    "The pool is large.",
]
"""Those within 0.2 of the threshold of support, the nearest first."""


NUMBER = re.compile(r"\d[\d,]+")


def stated(chance):
    return Grounding(
        supported=chance,
        unsupported=(1 - chance) * 0.8,
        contradicted=(1 - chance) * 0.2,
        no_claim=0,
    )


class InTheEvidence:
    """Third-party judge: a sentence is entailed if the premise contains it.

    For a sentence with numbers, only the numbers count.
    """

    name = "in-the-evidence-1"
    traits = NLITraits(tells_contradiction=True)
    batches: ClassVar[list[list[str]]] = []

    def warm_up(self) -> None:
        """Nothing to load."""

    def judge(self, pairs):
        self.batches.append([pair.hypothesis for pair in pairs])
        found = []
        for pair in pairs:
            wanted = NUMBER.findall(pair.hypothesis) or [pair.hypothesis.rstrip(".")]
            there = all(part in pair.premise for part in wanted)
            found.append(
                NLIScores(
                    entailment=0.99 if there else 0.005,
                    neutral=0.005,
                    contradiction=0.005 if there else 0.99,
                )
            )
        return found


class Broken(InTheEvidence):
    """One that always fails."""

    def judge(self, pairs):
        self.batches.append([pair.hypothesis for pair in pairs])
        raise JudgeError("out of order")


IN_THE_EVIDENCE, BROKEN = f"{__name__}:InTheEvidence", f"{__name__}:Broken"


@pytest.fixture(autouse=True)
def batches():
    InTheEvidence.batches.clear()
    return InTheEvidence.batches


def guarding(second, **more):
    config = {"graph": "none", "second_judge": second, **more}
    first = Scripted({text: stated(chance) for text, chance in CHANCES.items()})
    return Guardrail(GuardrailConfig.model_validate(config), grounding=first)


def asked(answer):
    return {sentence.text for sentence in answer.judged if sentence.second_opinion is not None}


@pytest.mark.parametrize(
    ("share", "most"), [(0, 0), (0.1, 1), (0.34, 3), (0.5, 3), (2 / 3, 4), (1, 4)]
)
def test_the_least_sure_are_asked_about_first_and_all_in_one_batch(share, most, batches):
    with guarding({"judge": IN_THE_EVIDENCE, "share": share, "band": 0.2}) as guard:
        answer = guard.check(QUESTION, ANSWER, evidence=EVIDENCE)
    assert asked(answer) == set(BY_DISTANCE[:most])
    assert batches == ([BY_DISTANCE[:most]] if most else [])
    for sentence in answer.sentences:
        again = sentence.text in BY_DISTANCE[:most]
        assert sentence.judged_by == ("in-the-evidence-1" if again else "scripted-1")


def test_the_second_judge_s_word_counts_as_if_it_were_the_only_judge():
    with guarding({"judge": "onnx", "share": 0.5}) as guard:
        both = guard.check(QUESTION, ANSWER, evidence=EVIDENCE)
    with Guardrail(GuardrailConfig(graph={"location": "none"})) as guard:
        alone = guard.check(QUESTION, ANSWER, evidence=EVIDENCE)
    assert both.versions["second_judge"] == alone.versions["judge"]
    assert asked(both) == set(BY_DISTANCE[:3])
    for one, other in zip(both.sentences, alone.sentences, strict=True):
        if one.text in asked(both):
            kept = {"judged_by", "second_opinion"}
            assert one.model_dump(exclude=kept) == other.model_dump(exclude=kept)
            assert one.judged_by == one.second_opinion.judge == alone.versions["judge"]
            assert one.second_opinion.support == pytest.approx(CHANCES[one.text])
        else:
            assert one.judged_by == "scripted-1"
            assert one.support == pytest.approx(CHANCES[one.text])


def opposing(body):
    """A model that contradicts all but the controls, which it judges correctly."""
    text = sentence_of(body)
    if "lighthouse" in text:
        return "B"
    return "C" if text in EVIDENCE[0].text else "A"


def test_a_chat_model_is_asked_once_a_sentence(monkeypatch):
    with endpoint(opposing) as (url, seen):
        monkeypatch.setenv("OPENAI_BASE_URL", url)
        monkeypatch.setenv("OPENAI_API_KEY", "k")
        with guarding({"judge": "chat:m", "share": 0.3}) as guard:
            answer = guard.check(QUESTION, ANSWER, evidence=EVIDENCE)
            again = guard.check(QUESTION, ANSWER, evidence=EVIDENCE)
    assert len(seen.requests) == 4  # two sentences and two controls
    found = {sentence.text: sentence for sentence in answer.sentences}
    for text in BY_DISTANCE[:2]:
        assert found[text].support < CHANCES[text]
        assert found[text].judged_by == "chat:m"
    assert again.sentences == answer.sentences


def test_all_sentences_of_an_answer_share_a_prefix_whatever_the_order_of_the_evidence(monkeypatch):
    facts = [Triple(subject=f"Hut {n}", property="beds", value=str(n + 3)) for n in range(200)]
    orders = [[*EVIDENCE, *facts], [*facts[::-1], *EVIDENCE, *facts]]
    with endpoint("B") as (url, served):
        monkeypatch.setenv("OPENAI_BASE_URL", url)
        with guarding({"judge": "chat:m", "share": 1, "band": 1}) as guard:
            for evidence in orders:
                guard.check(QUESTION, ANSWER, evidence=evidence)
    assert len(set(served.prompts)) == len(CHANCES) + 1  # and a copied sentence as a control
    assert len({prompt.partition("</evidence>")[0] for prompt in served.prompts}) == 1


def test_the_sentences_of_an_answer_share_a_prefix_if_a_chat_model_is_the_first_judge(monkeypatch):
    topics = {"mill": "three floors", "bakery": "rye bread", "harbour": "forty boats"}
    evidence = [Passage(f"The {name} has {what}.", title=name) for name, what in topics.items()]
    with endpoint(labels(lambda _: "B")) as (url, served):
        monkeypatch.setenv("OPENAI_BASE_URL", url)
        config = {"graph": "none", "judge": "chat:m"}
        with Guardrail(GuardrailConfig.model_validate(config)) as guard:
            guard.check("", " ".join(item.text for item in evidence), evidence=evidence)
    assert len(served.prompts) == len(topics)
    [shared] = {prompt.partition("</evidence>")[0] for prompt in served.prompts}
    assert all(item.text in shared for item in evidence)


def test_what_the_budget_does_not_pay_for_keeps_the_first_verdict(monkeypatch):
    with endpoint(opposing) as (url, served):
        monkeypatch.setenv("OPENAI_BASE_URL", url)
        settings = {"judge": "chat:m", "share": 1, "per_answer": {"calls": 4}}
        with guarding(settings) as guard:
            answer = guard.check(QUESTION, ANSWER, evidence=EVIDENCE)
            used = guard.usage().counts
    judged = {one.text: one.judged_by for one in answer.judged if one.second_opinion}
    assert [judged[text] for text in BY_DISTANCE] == ["chat:m"] * 2 + ["scripted-1"] * 2
    assert {one.second_opinion.missing for one in answer.judged if one.second_opinion} == {
        None,
        "the budget of this answer is spent",
    }
    assert used["calls"] == len(served.requests) == 4  # two of them for controls


@pytest.mark.parametrize(("calls", "asked_about"), [(2, 0), (3, 1)])
def test_a_budget_that_is_too_small_for_one_sentence_says_so(monkeypatch, calls, asked_about):
    with endpoint(opposing) as (url, served):
        monkeypatch.setenv("OPENAI_BASE_URL", url)
        settings = {"judge": "chat:m", "share": 1, "per_answer": {"calls": calls}}
        with guarding(settings) as guard:
            answer = guard.check(QUESTION, ANSWER, evidence=EVIDENCE)
    why = [one.second_opinion.missing for one in answer.judged if one.second_opinion]
    too_small = [reason for reason in why if reason and "too small: a sentence takes 3" in reason]
    assert why.count(None) == asked_about
    assert len(too_small) == (0 if asked_about else len(BY_DISTANCE))
    assert len(served.requests) == 3 * asked_about


def test_a_question_that_is_put_again_is_charged_to_the_answer(monkeypatch):
    replies = []

    def unreadable_at_first(body):
        replies.append(sentence_of(body))
        return opposing(body) if replies.count(replies[-1]) > 1 else "Hm."

    with endpoint(unreadable_at_first) as (url, _):
        monkeypatch.setenv("OPENAI_BASE_URL", url)
        settings = {"judge": "chat:m", "share": 1, "per_answer": {"calls": 7}}
        with guarding(settings) as guard:
            guard.check(QUESTION, ANSWER, evidence=EVIDENCE)
    assert len(replies) == 7


def test_a_corrected_answer_has_the_budget_of_one(monkeypatch):
    wrong, right = "The Fjell 3 costs 2,190 euros.", "The Fjell 3 costs 2,490 euros."
    first = Scripted(dict.fromkeys((wrong, right), stated(0.5)))
    price = Triple(subject="Fjell 3", property="price", value="2,490 euros")

    def reply(body):
        return "C" if sentence_of(body) in (right, "Fjell 3: price: 2,490 euros.") else "A"

    calls = []
    for limit in (None, 3):
        with endpoint(reply) as (url, served):
            monkeypatch.setenv("OPENAI_BASE_URL", url)
            settings = {"judge": "chat:m", "share": 1, "band": 1, "per_answer": {"calls": limit}}
            config = {"graph": "none", "second_judge": settings, "policy": "strict-correct"}
            with Guardrail(GuardrailConfig.model_validate(config), grounding=first) as guard:
                guard.check(QUESTION, wrong, evidence=[price])
            calls.append(len(served.requests))
    assert calls[0] > 3 >= calls[1]


def test_what_fails_for_one_answer_is_asked_again_for_another(monkeypatch):
    replies = []

    def unreadable_at_first(body):
        replies.append(sentence_of(body))
        return opposing(body) if len(replies) > 1 else "Hm."

    with endpoint(unreadable_at_first) as (url, _):
        monkeypatch.setenv("OPENAI_BASE_URL", url)
        settings = {"judge": "chat:m", "share": 1, "per_answer": {"calls": 3}}
        with guarding(settings) as guard:
            found = [guard.check(QUESTION, BY_DISTANCE[0], evidence=EVIDENCE) for _ in range(2)]
    spent, asked_again = (answer.judged[0].second_opinion.missing for answer in found)
    assert "the budget of this answer is spent" in spent
    assert asked_again is None


def test_the_time_of_an_answer_is_that_of_all_steps_of_its_stream(monkeypatch):
    limit_s = 0.4

    def slow(_):
        time.sleep(10 * limit_s)
        return "B"

    with endpoint(slow) as (url, _):
        monkeypatch.setenv("OPENAI_BASE_URL", url)
        settings = {"judge": "chat:m", "share": 1, "band": 1, "timeout_s": limit_s}
        with guarding(settings) as guard:
            guard.check(QUESTION, BY_DISTANCE[0], evidence=EVIDENCE)
            session = guard.session(question=QUESTION, evidence=EVIDENCE)
            began = time.monotonic()
            for text in CHANCES:
                session.add(f"{text} ")
            session.rest()
            spent = time.monotonic() - began
            answer = session.finish()
    assert spent < limit_s * len(CHANCES) / 2
    assert all("no answer in time" in one.second_opinion.missing for one in answer.judged)


CAREFUL_WORDS = {"lovely.", "deep."}
CAREFUL = {"The pool is lovely.": "C", "The pool is deep.": "C"}


@pytest.mark.parametrize(
    ("supports", "turned"),
    [
        (lambda text, prompt: text in CAREFUL and "There is none." not in prompt, True),
        (lambda text, prompt: text in CAREFUL, False),  # by its own knowledge, or by an instruction
        (lambda text, prompt: "There is none." not in prompt, False),  # whatever the sentence
        # An instruction on sentences with these words
        (lambda text, prompt: CAREFUL_WORDS & {*text.split()} and "none." not in prompt, False),
    ],
)
def test_support_counts_if_it_comes_from_the_evidence(monkeypatch, supports, turned):
    def reply(body):
        return "C" if supports(sentence_of(body), prompt_of(body)) else "B"

    with endpoint(reply) as (url, _):
        monkeypatch.setenv("OPENAI_BASE_URL", url)
        with guarding({"judge": "chat:m", "share": 1}, strictness="strict") as guard:
            answer = guard.check(QUESTION, ANSWER, evidence=EVIDENCE)
    found = {one.text: one for one in answer.sentences}
    for text in CAREFUL:
        assert (found[text].judged_by == "chat:m") is turned
        assert ("supports" in (found[text].second_opinion.missing or "")) is not turned


def test_without_an_answer_the_first_verdict_stands_and_all_say_so(batches):
    with guarding(None) as guard:
        alone = guard.check(QUESTION, ANSWER, evidence=EVIDENCE)
    with guarding({"judge": BROKEN, "share": 0.5}) as guard:
        answer = guard.check(QUESTION, ANSWER, evidence=EVIDENCE)
    assert answer.action is alone.action
    judge_fields = {"judged_by", "second_opinion"}
    assert [item.model_dump(exclude=judge_fields) for item in answer.sentences] == [
        item.model_dump(exclude=judge_fields) for item in alone.sentences
    ]
    assert asked(answer) == set(BY_DISTANCE[:3])
    for sentence in answer.sentences:
        assert sentence.judged_by == "scripted-1"
        if sentence.text in asked(answer):
            assert sentence.second_opinion.missing == "out of order"
            assert "in-the-evidence-1 did not answer: out of order" in str(sentence.explain())
    [problem] = answer.errors
    assert problem.part == "second_judge"
    assert "no second opinion on 3 sentences" in problem.message
    assert "out of order" in problem.message
    assert len(batches) == 1


@pytest.mark.parametrize(("timeout_s", "spent_s"), [(0.5, 0.0), (60.0, 59.4)])
def test_it_is_waited_for_within_its_time_and_the_answer_s(monkeypatch, timeout_s, spent_s):
    clock = HandClock().runs(monkeypatch, workers)
    plain = Scripted.ground

    def ground(self, items):
        clock.now += spent_s
        return plain(self, items)

    monkeypatch.setattr(Scripted, "ground", ground)
    with served(FakeOpenAI().app) as address:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{address}/v1")
        monkeypatch.setenv("OPENAI_API_KEY", "k")
        settings = {"judge": "chat:slow", "timeout_s": timeout_s}
        with guarding(settings, policy=ANNOTATE.changed(deadline_s=60.0)) as guard:
            guard.warm_up()
            answer = guard.check(QUESTION, ANSWER, evidence=EVIDENCE)
    assert [problem.part for problem in answer.errors] == ["second_judge"]
    assert "it gave no answer in time" in answer.errors[0].message
    assert len(answer.sentences) == len(CHANCES)


def test_a_stream_keeps_to_the_share_and_to_what_it_said(batches):
    with guarding({"judge": IN_THE_EVIDENCE, "share": 0.5, "band": 0.2}) as guard:
        session = guard.session(question=QUESTION, evidence=EVIDENCE)
        pieces = [session.add(f"{text} ") for text in CHANCES] + [session.rest()]
        whole = session.finish()
    shown = {one.text: one for piece in pieces if piece for one in piece.sentences}
    assert list(shown) == list(CHANCES)
    assert {text: one.support for text, one in shown.items()} == {
        one.text: one.support for one in whole.sentences
    }
    # Of the first sentence one may be asked about, of three two, of five three.
    assert batches == [["The pool is lovely."], ["The pool is heated."], ["The pool is deep."]]
    assert {text for text, one in shown.items() if one.second_opinion} == asked(whole)


def test_with_the_whole_share_a_stream_ends_in_the_verdict_of_one_check():
    with guarding({"judge": IN_THE_EVIDENCE, "share": 1, "band": 0.2}) as guard:
        session = guard.session(question=QUESTION, evidence=EVIDENCE)
        for text in CHANCES:
            session.add(f"{text} ")
        session.rest()
        assert (
            session.finish().sentences == guard.check(QUESTION, ANSWER, evidence=EVIDENCE).sentences
        )


def test_what_the_second_judge_contradicts_is_corrected_and_asked_about_once(batches):
    wrong, right = "The Fjell 3 costs 2,190 euros.", "The Fjell 3 costs 2,490 euros."
    first = Scripted(dict.fromkeys((wrong, right, "The pool is warm."), stated(0.5)))
    settings = {"judge": IN_THE_EVIDENCE, "share": 1, "band": 1}
    config = GuardrailConfig.model_validate(
        {"graph": "none", "second_judge": settings, "policy": "strict-correct"}
    )
    price = Triple(subject="Fjell 3", property="price", value="2,490 euros")
    with Guardrail(config, grounding=first) as guard:
        answer = guard.check(QUESTION, f"The pool is warm. {wrong}", evidence=[*EVIDENCE, price])
    assert answer.text == f"The pool is warm. {right}"
    assert answer.sentences[1].correction.original == wrong
    assert {one.judged_by for one in answer.sentences} == {"in-the-evidence-1"}
    asked_about = [text for batch in batches for text in batch]
    assert sorted(asked_about) == sorted(set(asked_about))


def test_it_needs_a_first_judge_and_a_name_that_is_known():
    config = GuardrailConfig.model_validate(
        {"graph": "none", "judge": "none", "second_judge": IN_THE_EVIDENCE}
    )
    with Guardrail(config) as guard, pytest.raises(ConfigError, match="must not be 'none'"):
        guard.check(QUESTION, ANSWER, evidence=EVIDENCE)
    with guarding("chta:m") as guard, pytest.raises(ConfigError, match="did you mean 'chat:m'"):
        guard.warm_up()
