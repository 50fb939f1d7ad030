from __future__ import annotations

import math
import time

import pytest

from benchmarks.biokalma.tables import quality_means
from guardrail.core.errors import JudgeError
from judges.text_quality import (
    OpenAIRater,
    Quality,
    QualityItem,
    Rater,
    RatingReply,
    quality_prompt,
    rate_quality,
)
from tests.guardrail.models.endpoint import serve
from tests.judges.chat_server import endpoint as chat_endpoint

ITEM = QualityItem(question="Who was Ann?", answer="A painter.", knowledge="Ann, job: painter.")


def fixed(*replies: RatingReply) -> Rater:
    """A rater that has its replies ready."""
    return lambda prompts: [replies[number % len(replies)] for number in range(len(prompts))]


def test_prompts_follow_the_papers_tables() -> None:
    assert "Knowledge: Ann, job: painter." in quality_prompt(Quality.CONSISTENCY, ITEM)
    for quality in (Quality.COHERENCE, Quality.FLUENCY, Quality.RELEVANCE):
        prompt = quality_prompt(quality, ITEM)
        assert "Knowledge" not in prompt
        assert f"{quality.capitalize()} (1-5)" in prompt


def test_ratings_are_weighted_by_their_likelihood() -> None:
    # 4 with 0.75, 5 with 0.25: 4·0.75 + 5·0.25 = 4.25. Other tokens do not count.
    likelihoods = {"4": math.log(0.6), " 5": math.log(0.2), "The": math.log(0.2)}
    ratings = rate_quality([ITEM], fixed(RatingReply("4", likelihoods)))
    assert ratings[0][Quality.FLUENCY].rating.value == 4
    assert ratings[0][Quality.FLUENCY].weighted.value == pytest.approx(4.25)


def test_a_reply_without_a_rating_is_no_number() -> None:
    ratings = rate_quality([ITEM, ITEM], fixed(RatingReply("Score: 3"), RatingReply("10")))
    means = quality_means(ratings)
    assert means["coherence"].value == 3
    assert means["coherence"].evidence == ("2 of 2 rated",)
    assert means["consistency"].value is None
    assert means["coherence_weighted"].value is None


def test_an_endpoint_rates() -> None:
    with serve() as endpoint:
        endpoint.text = "5"
        rater = OpenAIRater("m", base_url=endpoint.url, api_key="k")
        (rating,) = rate_quality([ITEM], rater)
    assert {quality: row.rating.value for quality, row in rating.items()} == dict.fromkeys(
        Quality, 5
    )
    assert len(endpoint.requests) == 4
    assert endpoint.requests[0]["temperature"] == 0


def test_a_slow_rater_has_the_time_that_it_is_given() -> None:
    def reply(_: object) -> str:
        time.sleep(0.5)
        return "5"

    with chat_endpoint(reply) as (url, _):
        (rating,) = rate_quality([ITEM], OpenAIRater("m", url, "k"))
        assert rating[Quality.FLUENCY].rating.value == 5
        with pytest.raises(JudgeError, match="in time"):
            rate_quality([ITEM], OpenAIRater("m", url, "k", timeout_s=0.1))
