"""Which sentences of an answer claim anything."""

from guardrail.markers.grammar import ParsedText
from guardrail.verdict.claims import GroundingRequest, claims_of


def test_headings_and_headers_of_tables_claim_nothing() -> None:
    text = (
        "## Plans\n\n| Plan | 2024 |\n|:---|---:|\n| Basic | 9 EUR |\n\n"
        "**Main facts:**\n\na | b\n--|--\nc | d\n"
    )
    claims = claims_of(GroundingRequest("", ParsedText(clean=text, marked=text), ()))
    assert {claim.written: claim.prose for claim in claims} == {
        "Plans": False,
        "| Plan | 2024 |": False,
        "| Basic | 9 EUR |": True,
        "**Main facts:**": False,
        "a | b": False,
        "c | d": True,
    }
