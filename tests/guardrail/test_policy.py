import pytest

from guardrail import (
    ANNOTATE,
    BEST_OF_N,
    STRICT,
    Action,
    ConfigError,
    Score,
    Sentence,
    Span,
    Triple,
)
from guardrail.core.types import AttributedAnswer, Category, ScoreCard, SpanKind
from guardrail.engine.decision import decide, feedback
from guardrail.markers.rendering import marked_text, without_sentences
from guardrail.policy import policy_named

BORN = Triple(subject="Ada", property="date of birth", value="1815-12-10")
TEXT = "# Ada\n- Ada was born in 1800.\n- Ada wrote notes. She liked tea. \n1. She met Bob."


def sentence(
    text: str, category: Category, kind: SpanKind | None = None, phrase: str = ""
) -> Sentence:
    start = TEXT.index(text)
    spans: tuple[Span, ...] = ()
    if kind is not None:
        at = TEXT.index(phrase, start)
        triple = None if kind is SpanKind.NA else BORN
        spans = (Span(text=phrase, start=at, end=at + len(phrase), kind=kind, triple=triple),)
    return Sentence(
        text=text,
        start=start,
        end=start + len(text),
        category=category,
        na=kind is SpanKind.NA,
        citations=(BORN.citation,) if kind is SpanKind.SUPPORTED else (),
        spans=spans,
        against=(BORN.text,) if kind is SpanKind.CONTRADICTED else (),
        sure=kind is SpanKind.CONTRADICTED,
    )


WRONG = sentence("Ada was born in 1800.", Category.CONTRADICTORY, SpanKind.CONTRADICTED, "1800")
RIGHT = sentence("Ada wrote notes.", Category.SUPPORTIVE, SpanKind.SUPPORTED, "notes")
TEA = sentence("She liked tea.", Category.IRRELEVANT, SpanKind.NA, "tea")
BOB = sentence("She met Bob.", Category.IRRELEVANT, SpanKind.NA, "Bob")
SENTENCES = (WRONG, RIGHT, TEA, BOB)
ANSWER = AttributedAnswer(text=TEXT, marked=marked_text(TEXT, SENTENCES), sentences=SENTENCES)
CARD = ScoreCard(overall=Score(value=0.25), scores={"sck": Score(reason="not asked")})


def test_annotate_keeps_every_word_and_gives_reasons() -> None:
    decision = decide(ANNOTATE, ANSWER, CARD)
    assert decision.action is Action.ANNOTATE
    assert decision.answer == ANSWER
    assert decision.reasons[0] == (
        'contradicted: "Ada was born in 1800." against Ada, date of birth: 1815-12-10.'
    )
    assert "Ada was born in 1800 [NA].\n- Ada wrote notes [Ada, date of birth:" in ANSWER.marked


def test_strict_takes_the_line_of_a_contradicted_item_with_it() -> None:
    decision = decide(STRICT, ANSWER, CARD)
    assert decision.action is Action.FILTER
    assert decision.answer.text == "# Ada\n- Ada wrote notes. She liked tea. \n1. She met Bob."
    assert decision.removed == (WRONG,)


@pytest.mark.parametrize(
    "removed", [(WRONG,), (RIGHT,), (TEA,), (WRONG, BOB), (RIGHT, TEA), SENTENCES]
)
def test_offsets_follow_the_text_when_sentences_go(removed: tuple[Sentence, ...]) -> None:
    left = without_sentences(ANSWER, removed)
    texts = [item.text for item in SENTENCES if item not in removed]
    assert [item.text for item in left.sentences] == texts
    for item in left.sentences:
        assert left.text[item.start : item.end] == item.text
        for span in item.spans:
            assert left.text[span.start : span.end] == span.text


def test_a_score_below_its_threshold_asks_for_another_answer() -> None:
    decision = decide(BEST_OF_N, ANSWER, CARD)
    assert decision.action is Action.REGENERATE
    assert "overall is 0.25, below 0.60" in decision.reasons


def test_a_score_without_a_value_is_not_below_a_threshold() -> None:
    policy = ANNOTATE.model_copy(update={"thresholds": {"sck": 0.9}, "below": Action.REFUSE})
    assert decide(policy, ANSWER, CARD).action is Action.ANNOTATE


def test_feedback_names_what_failed() -> None:
    lines = [(item.text, item.reason) for item in feedback(ANSWER.sentences)]
    assert lines == [
        ("Ada was born in 1800.", "but Ada, date of birth: 1815-12-10."),
        ("She liked tea.", 'no support is given for "tea"'),
        ("She met Bob.", 'no support is given for "Bob"'),
    ]


def test_a_policy_that_cannot_ask_again_keeps_to_what_can_be_done() -> None:
    settled = BEST_OF_N.changed(contradicted="regenerate", exhausted="filter").settled()
    assert (settled.contradicted, settled.below) == (Action.FILTER, Action.ANNOTATE)


def test_policies_are_found_by_name() -> None:
    assert policy_named("best_of_n") is BEST_OF_N
    with pytest.raises(ConfigError, match="did you mean 'strict'"):
        policy_named("strct")


def test_a_changed_policy_is_checked() -> None:
    changed = STRICT.changed(thresholds={"supported_share": 0.5}, below="refuse", deadline_s=5.0)
    assert changed.thresholds == {"supported_share": 0.5}
    assert (changed.below, changed.contradicted) == (Action.REFUSE, STRICT.contradicted)
    assert STRICT.changed(thresholds={"sck.knowledge": 0.5, "tone": 0.1}).thresholds["tone"] == 0.1


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"treshold": {}}, "no 'treshold'; did you mean 'thresholds'"),
        ({"thresholds": {"suported_share": 0.5}}, "did you mean 'supported_share'"),
        ({"below": "panic"}, "below: Input should be"),
        ({"below": "filter"}, "below: choose annotate, regenerate or refuse"),
        ({"contradicted": "pass"}, "contradicted: choose annotate, correct"),
        ({"deadline_s": -1}, "deadline_s: "),
    ],
)
def test_a_changed_policy_that_is_wrong_is_refused(fields: dict[str, object], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        STRICT.changed(**fields)


def test_a_contradiction_that_is_not_sure_is_marked_and_stays() -> None:
    unsure = WRONG.model_copy(update={"sure": False})
    answer = AttributedAnswer(text=unsure.text, marked=unsure.text, sentences=(unsure,))
    lenient = STRICT.changed(needs_support=False)
    decision = decide(lenient, answer, ScoreCard(overall=Score(value=0.0)))
    assert decision.action is Action.ANNOTATE
    assert decision.removed == ()
    assert decision.reasons[0].startswith("likely contradicted: ")
