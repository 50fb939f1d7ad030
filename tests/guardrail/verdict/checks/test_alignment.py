"""How well a sentence names the property of a fact."""

import pytest

from guardrail.evidence.prepared import prepare
from guardrail.markers.grammar import ParsedText
from guardrail.verdict.checks.base import NAMED, named_share
from guardrail.verdict.claims import GroundingRequest, claims_of


@pytest.mark.parametrize(
    ("sentence", "label", "share"),
    [
        ("Her place of birth is London.", "place of birth", 1.0),
        ("She was born in London.", "place of birth", NAMED),
        ("It is a warm day.", "place of birth", 0.0),
    ],
)
def test_the_share_of_its_words(sentence, label, share):
    (claim,) = claims_of(
        GroundingRequest("", ParsedText(clean=sentence, marked=sentence), prepare([]))
    )
    assert named_share(claim, label) == pytest.approx(share)
