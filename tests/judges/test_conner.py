"""CONNER's formulas against values worked out by hand, with models of fixed weights."""

import math
from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from guardrail.core.errors import ConfigError, JudgeError, MissingExtraError
from guardrail.core.types import NLIScores
from judges.base import Pair, TokenLikelihoods
from judges.conner import (
    Aggregation,
    ConnerInput,
    ConnerModels,
    ConnerScorer,
    ConnerSettings,
    Perspective,
    QualityWeights,
    rank,
)
from judges.conner.factuality import refers_back, stated
from tests.guardrail.scripted import Ready


class TableJudge(Ready):
    """An NLI model whose verdicts stand in a table: (premise, hypothesis) -> (e, n, c)."""

    name = "table"

    def __init__(self, table: dict[tuple[str, str], tuple[float, float, float]]) -> None:
        self.table = table

    def judge(self, pairs: Sequence[Pair]) -> list[NLIScores]:
        rows = [self.table[pair] for pair in pairs]
        return [NLIScores(entailment=e, neutral=n, contradiction=c) for e, n, c in rows]


class LetterModel:
    """A causal model over letters: each has one likelihood, "x" is doubled after a "!"."""

    name = "letters"
    likelihood = {"a": 0.5, "b": 0.25, "x": 0.125}  # noqa: RUF012

    def loglikelihoods(self, pairs: Sequence[tuple[str, str]]) -> list[TokenLikelihoods]:
        return [self._one(*pair) for pair in pairs]

    def _one(self, prefix: str, continuation: str) -> TokenLikelihoods:
        letters = [letter for letter in continuation if letter in self.likelihood]
        gain = 2.0 if "!" in prefix else 1.0
        values = [
            math.log(self.likelihood[letter] * (gain if letter == "x" else 1.0))
            for letter in letters
        ]
        return TokenLikelihoods(tuple(letters), tuple(values))


class FixedEncoder:
    """Embeds texts on the axis of their first letter; relevance and coherence are fixed."""

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return np.eye(26, dtype=np.float32)[[ord(text[0]) - ord("a") for text in texts]]

    def relevance(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        return [0.8 for _ in pairs]

    def coherence(self, texts: Sequence[Sequence[str]]) -> list[float]:
        return [1.0 / len(sentences) for sentences in texts]


TWO_SENTENCES = TableJudge(
    {
        ("e1", "s1"): (0.7, 0.2, 0.1),
        ("e2", "s1"): (0.1, 0.1, 0.8),
        ("e1", "s2"): (0.2, 0.7, 0.1),
        ("e2", "s2"): (0.3, 0.1, 0.6),
    }
)
ROW = ConnerInput(query="q", knowledge="s1 s2", sentences=("s1", "s2"), evidence=("e1", "e2"))


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        # Per sentence the evidence of highest entailment: s1 -> e1, s2 -> e2.
        (Aggregation.MIN, (0.3, 0.1, 0.6)),
        (Aggregation.MEAN, (0.5, 0.15, 0.35)),
        (Aggregation.MAX, (0.7, 0.2, 0.1)),
    ],
)
def test_factuality_is_the_aggregate_of_each_sentence_s_best_evidence(how, expected):
    scorer = ConnerScorer(ConnerModels(nli=TWO_SENTENCES), ConnerSettings(aggregation=how))
    (report,) = scorer.score([ROW])
    got = (report.factuality, report.non_verified, report.factual_inconsistent)
    assert [score.value for score in got] == pytest.approx(expected)
    assert [part.evidence for part in report.sentences] == ["e1", "e2"]


def test_only_the_most_similar_evidence_is_read():
    judge = TableJudge({("apples are red", "an apple is red"): (0.9, 0.1, 0.0)})
    row = ConnerInput(
        query="q",
        knowledge="an apple is red",
        sentences=("an apple is red",),
        evidence=("bananas are yellow", "apples are red"),
    )
    scorer = ConnerScorer(
        ConnerModels(nli=judge, encoder=FixedEncoder()), ConnerSettings(evidence_per_sentence=1)
    )
    # The table has no verdict on bananas: reading them would raise.
    assert scorer.score([row])[0].factuality.value == pytest.approx(0.9)


def test_a_sentence_of_the_evidence_is_entailed_unread():
    said = "Not all of it is true. Rome is  old."
    row = ConnerInput(
        query="q", knowledge="Rome is old.", sentences=("Rome is old.",), evidence=("e", said)
    )
    # The table has no verdict: asking it would raise.
    (report,) = ConnerScorer(ConnerModels(nli=TableJudge({}))).score([row])
    assert report.factuality.value == 1.0
    assert report.sentences[0].evidence == said
    denied = TableJudge({("e", "Rome is old."): (0.3, 0.7, 0.0), (said, "Rome is old."): (0, 1, 0)})
    settings = ConnerSettings(word_for_word=False)
    (report,) = ConnerScorer(ConnerModels(nli=denied), settings).score([row])
    assert report.factuality.value == pytest.approx(0.3)


def test_sentence_coherence_is_the_mean_inverse_perplexity_with_a_cap():
    row = ConnerInput(query="", knowledge="aa bb xx", sentences=("aa", "bb", "xx"))
    scorer = ConnerScorer(ConnerModels(causal=LetterModel()), ConnerSettings(perplexity_cap=5))
    (report,) = scorer.score([row])
    # PPL(aa) = 2, PPL(bb) = 4, PPL(xx) = 8, capped at 5.
    assert report.perplexities == pytest.approx((2.0, 4.0, 5.0))
    assert report.coherence_sentence.value == pytest.approx((1 / 2 + 1 / 4 + 1 / 5) / 3)
    assert report.coherence_sentence_uncapped.value == pytest.approx((1 / 2 + 1 / 4 + 1 / 8) / 3)


def test_informativeness_is_one_minus_the_geometric_mean_likelihood_of_the_first_words():
    settings = ConnerSettings(informativeness_words=2, informativeness_prompt="")
    scorer = ConnerScorer(ConnerModels(causal=LetterModel()), settings)
    (report,) = scorer.score([ConnerInput(query="", knowledge="a b xxxxxx")])
    # The third word is cut: 1 - sqrt(1/2 * 1/4).
    assert report.informativeness.value == pytest.approx(1 - math.sqrt(0.125))


@pytest.mark.parametrize(
    ("knowledge", "raw"),
    [
        ("!", 1 - math.log(4) / math.log(8)),  # the answer "x": likelihood 1/4 against 1/8
        ("nothing", 0.0),
    ],
)
def test_helpfulness_compares_with_irrelevant_knowledge(knowledge, raw):
    scorer = ConnerScorer(ConnerModels(causal=LetterModel()), irrelevant_pool=["p", "r"])
    (report,) = scorer.score([ConnerInput(query="?", knowledge=knowledge, answer="x")])
    assert report.helpfulness_unclipped.value == pytest.approx(raw)
    assert report.helpfulness.value == pytest.approx(raw)


def test_helpfulness_takes_the_mean_over_irrelevant_knowledge():
    """-ln P: ln 8 and ln 4 after the two of the pool, 2.5 ln 2 on average.

    After helpful knowledge it is ln 4 = 2 ln 2: 1 - 2 / 2.5. After any other it is ln 8, worse than
    the average: 1 - 3 / 2.5, which eq. 6 clips.
    """
    scorer = ConnerScorer(ConnerModels(causal=LetterModel()), irrelevant_pool=["p", "r!"])
    rows = [ConnerInput(query="?", knowledge=text, answer="x") for text in ("!", "nothing")]
    helpful, other = scorer.score(rows)
    assert helpful.helpfulness.value == pytest.approx(0.2)
    assert other.helpfulness.value == 0.0
    assert other.helpfulness_unclipped.value == pytest.approx(-0.2)


def test_validity_of_span_and_open_answers():
    judge = TableJudge(
        {
            ("capital? Paris", "capital? Lutetia"): (0.6, 0.3, 0.1),
            ("e1", "Paris is big."): (0.2, 0.8, 0.0),
            ("e2", "Paris is big."): (0.9, 0.1, 0.0),
            ("e1", "It is old."): (0.5, 0.5, 0.0),
            ("e2", "It is old."): (0.1, 0.9, 0.0),
        }
    )
    span = ConnerInput(query="capital?", knowledge="k", answer="Lutetia", reference="Paris")
    free = ConnerInput(
        query="q", knowledge="k", answer="Paris is big.", answer_kind="open", evidence=("e1", "e2")
    )
    longer = free.model_copy(update={"answer": "Paris is big. It is old."})
    reports = ConnerScorer(ConnerModels(nli=judge)).score([span, free, longer])
    assert [report.validity.value for report in reports] == pytest.approx([0.6, 0.9, 0.7])


LONG = "Paris is the capital of France, and has been so since the tenth century."


@pytest.mark.parametrize(
    ("answer", "reference", "kind"),
    [("Lutetia", "Paris", "span"), (LONG, "Paris", "open"), ("Lutetia", None, "open"),
     ("Lutetia", " ", "open")],
)  # fmt: skip
def test_an_answer_is_open_unless_answer_and_reference_are_short(answer, reference, kind):
    row = ConnerInput(query="q", knowledge="k", answer=answer, reference=reference)
    assert row.kind == kind


def test_helpfulness_is_about_the_reference_where_there_is_one():
    scorer = ConnerScorer(ConnerModels(causal=LetterModel()), irrelevant_pool=["p"])
    row = ConnerInput(query="?", knowledge="!", answer="a", reference="x")
    (report,) = scorer.score([row])
    # The reference "x": likelihood 1/4 after the knowledge against 1/8.
    assert report.helpfulness.value == pytest.approx(1 - math.log(4) / math.log(8))


def test_the_gold_answer_is_evidence_for_an_open_answer():
    judge = TableJudge(
        {
            ("e", "a"): (0.2, 0.8, 0.0),
            ("gold", "a"): (0.7, 0.3, 0.0),
            ("q gold", "a"): (0.6, 0.4, 0.0),
        }
    )
    row = ConnerInput(
        query="q", knowledge="k", answer="a", answer_kind="open", evidence=("e",), reference="gold"
    )
    (report,) = ConnerScorer(ConnerModels(nli=judge)).score([row])
    assert report.validity.value == pytest.approx(0.7)


ALL = ConnerModels(nli=TWO_SENTENCES, encoder=FixedEncoder(), causal=LetterModel())


def test_quality_is_the_weighted_sum_of_the_four_intrinsic_perspectives():
    weights = QualityWeights(factuality=1, relevance=2, coherence=3, informativeness=0)
    (report,) = ConnerScorer(ALL, ConnerSettings(weights=weights)).score([ROW])
    assert report.quality.value == pytest.approx(1 * 0.3 + 2 * 0.8 + 3 * 0.5)


def test_rows_are_ranked_by_quality():
    rows = [ROW.model_copy(update={"sentences": own}) for own in (("s2",), ("s1",), ("s1", "s2"))]
    weights = QualityWeights(factuality=1, relevance=0, coherence=0, informativeness=0)
    reports = ConnerScorer(ALL, ConnerSettings(weights=weights)).score(rows)
    assert rank(reports) == [1, 0, 2]


@pytest.mark.parametrize(
    "error",
    [JudgeError("out of order"), MissingExtraError("torch", "gpu"), ConfigError("no key is set")],
)
def test_a_model_that_cannot_be_used_costs_its_own_perspectives_only(error):
    class Unusable(LetterModel):
        def loglikelihoods(self, pairs: Sequence[tuple[str, str]]) -> list[TokenLikelihoods]:
            raise error

    models = ConnerModels(encoder=FixedEncoder(), causal=Unusable())
    (report,) = ConnerScorer(models).score([ROW])
    assert report.relevance.value == 0.8
    assert report.informativeness.reason == str(error)
    assert report.factuality.reason == "no NLI judge is configured"
    assert report.quality.value == pytest.approx((0.8 + 0.5) / 2)


def test_blocks_of_rows_keep_their_order_and_report_progress():
    seen: list[tuple[int, int]] = []
    rows = [ROW.model_copy(update={"query": str(n)}) for n in range(130)]
    reports = ConnerScorer(ALL).score(rows, progress=lambda done, total: seen.append((done, total)))
    assert len(reports) == 130
    assert seen == [(64, 130), (128, 130), (130, 130)]


def test_perspectives_that_are_not_asked_for_cost_nothing():
    class Untouchable:
        name = "untouchable"

        def loglikelihoods(self, pairs):
            raise AssertionError("nobody asked for likelihoods")

    models = ConnerModels(nli=TableJudge({}), encoder=FixedEncoder(), causal=Untouchable())
    settings = ConnerSettings(perspectives=frozenset({Perspective.RELEVANCE}))
    row = ROW.model_copy(update={"answer": "a", "reference": "a"})
    (report,) = ConnerScorer(models, settings, irrelevant_pool=["p"]).score([row])
    assert report.relevance.value == pytest.approx(0.8)
    assert report.quality.value == pytest.approx(0.8)
    for score in (report.factuality, report.helpfulness, report.informativeness, report.validity):
        assert score.reason == "this perspective was not requested"


# --- Sentences that the evidence states word for word -------------------------------------------

ADA = "Ada Lovelace was a mathematician. She was born in 1815. She died in 1852."
CHARLES = "Charles Babbage was an engineer. He was born in 1791. He died in 1871."
CUT = ["Charles Babbage was an engineer.", "He was born in 1791. He died in 1871."]
BABBAGE = ["Charles Babbage was an engineer.", "He was born in 1791.", "He died in 1871."]
LOVELACE = ["Ada Lovelace was a mathematician.", "She was born in 1815.", "She died in 1852."]
BOTH = "Ada Lovelace was a countess. Charles Babbage was an engineer. He was born in 1791."


@pytest.mark.parametrize(
    ("sentences", "evidence", "places"),
    [
        # One that names its subject is stated wherever it is, whatever the spacing.
        (["Charles Babbage was  an engineer.", LOVELACE[0]], [ADA, CHARLES], [1, 0]),
        # One that refers back is stated only after the sentence that it follows in the evidence.
        (LOVELACE, [CHARLES, ADA], [1, 1, 1]),
        ([LOVELACE[0], "He was born in 1791."], [ADA, CHARLES], [0, None]),
        (["He was born in 1791."], [CHARLES], [None]),
        (["Ada Lovelace wrote.", *BABBAGE[1:]], [CHARLES], [None, None, None]),
        (["Ada Lovelace was a countess.", "He was born in 1791."], [BOTH], [0, None]),
        # A passage may be cut into consecutive pieces.
        (BABBAGE, CUT, [0, 1, 1]),
        (BABBAGE, [CUT[0], ADA, CUT[1]], [0, None, None]),
        (BABBAGE, CUT[::-1], [1, None, None]),
        # A part of a sentence is not stated.
        (["Rome is old"], ["It is false that Rome is old."], [None]),
        (["Rome is old"], ["Rome is old. in parts"], [None]),
        ([], [ADA], []),
    ],
)
def test_which_evidence_states_a_sentence(sentences, evidence, places):
    expected = [None if place is None else evidence[place] for place in places]
    assert stated(sentences, evidence) == expected


@pytest.mark.parametrize(
    ("sentence", "refers"),
    [
        ("He was born in 1950.", True),
        ("“Her father was a poet.", True),
        ("In April 1950 he moved to Paris.", True),
        ("However, this was false.", True),
        ("The latter won in Paris.", True),
        ("The film was released in 1950.", True),
        ("And it grew.", True),
        ("The actress Emma Thompson said that she was tired.", False),
        ("In 1950, Ada moved to Paris with her mother.", False),
        ("Paris is old.", False),
        ("The capital of France is Paris.", False),
        ("However.", False),
        ("", False),
    ],
)
def test_which_sentence_refers_back(sentence, refers):
    assert refers_back(sentence) is refers
