from __future__ import annotations

import json

import pytest

from guardrail.core.errors import ModelError
from guardrail.core.types import Triple
from guardrail.models.base import MAX_ENUM_VALUES, CitationConstraint

ROME = Triple(subject="Ann", subject_id="Q1", property="place of birth", value="Rome")
QUOTED = Triple(subject="Ann", subject_id="Q1", property="title", value='The "Bell" \\ Jar]')
BOB = Triple(subject="Bob", subject_id="Q2", property="child", value="Ann")
CONSTRAINT = CitationConstraint(triples=(ROME, QUOTED, BOB))


def test_the_schema_allows_only_retrieved_triples() -> None:
    sentence = CONSTRAINT.json_schema()["properties"]["sentences"]["items"]
    assert sentence["properties"]["citations"]["items"]["enum"] == [
        "Q1, place of birth: Rome",
        'Q1, title: The "Bell" \\ Jar]',
        "Q2, child: Ann",
    ]
    assert sentence["required"] == ["text", "na", "citations"]
    many = [ROME.model_copy(update={"value": str(number)}) for number in range(2_000)]
    schema = CitationConstraint(triples=tuple(many)).json_schema()
    allowed = schema["properties"]["sentences"]["items"]["properties"]["citations"]
    assert len(allowed["items"]["enum"]) == MAX_ENUM_VALUES


def test_a_structured_reply_becomes_text_with_markers() -> None:
    born, cited = "Ann [sic] was born in Rome.", ["Q1, place of birth: Rome"]
    sentences = [
        {"text": born, "na": False, "citations": cited},
        {"text": "She sang.", "na": True, "citations": ["Q9, made: up"]},
    ]
    marked = CONSTRAINT.from_json(json.dumps({"sentences": sentences}))
    assert marked == "Ann (sic) was born in Rome [Q1, place of birth: Rome]. She sang [NA]."
    for bad in ("", "[]", '{"sentences": [1]}', '{"sentences": [{"text": "x"}]}'):
        with pytest.raises(ModelError, match="JSON schema"):
            CONSTRAINT.from_json(bad)


def test_citations_of_other_triples_are_removed() -> None:
    enforced = CONSTRAINT.enforce(
        "Ann [Q1, place of birth: Rome, place of birth: Rome, title: Queen] "
        "met Bob [Q2, child: Eve]."
    )
    assert enforced == "Ann [Q1, place of birth: Rome] met Bob [NA]."
    untouched = "Ann  [Q1, place of birth: Rome] sang[NA]."
    assert CONSTRAINT.enforce(untouched) == untouched
