from __future__ import annotations

import json

import pytest

from guardrail.core.errors import ModelError
from guardrail.core.types import Citation, Triple
from guardrail.markers.grammar import parse
from guardrail.models.constraints import MAX_ENUM_VALUES, constraint_for

ROME = Triple(subject="Ann", subject_id="Q1", property="place of birth", value="Rome")
QUOTED = Triple(subject="Ann", subject_id="Q1", property="title", value='The "Bell" \\ Jar]')
BOB = Triple(subject="Bob", subject_id="Q2", property="child", value="Ann")
CONSTRAINT = constraint_for([ROME, QUOTED, BOB, ROME])

TEXT = [
    r'root ::= text (mark text)* mark? pause* "\n"',
    "text ::= pause* letter word*",
    r"word ::= [^\[\]\n]",
    r"letter ::= [^\[\]\n .,;:]",
    "pause ::= [ .,;:]",
]
MARK = (
    'mark ::= "[" ("NA" | "Q1, " fact0 (", " fact0 (", " fact0)?)? | '
    '"Q2, " fact1 (", " fact1 (", " fact1)?)?) "]"'
)


def test_the_grammar_lists_each_fact_once_under_its_entity() -> None:
    assert CONSTRAINT.gbnf().splitlines() == [
        *TEXT,
        MARK,
        'fact0 ::= "place of birth: Rome" | "title: The \\"Bell\\" \\\\\\\\ Jar\\\\]"',
        'fact1 ::= "child: Ann"',
    ]
    assert constraint_for([]).gbnf().splitlines()[len(TEXT)] == 'mark ::= "[" ("NA") "]"'


def test_an_anchored_citation_stands_right_after_its_value() -> None:
    born = Triple(subject="Ann", subject_id="Q1", property="date of birth", value="1593-07-08")
    died = Triple(subject="Bob", subject_id="Q2", property="place of death", value="Rome")
    assert constraint_for([ROME, born, died], anchored=True).gbnf().splitlines() == [
        *TEXT,
        (
            'mark ::= "[NA]" | " Rome [" fact0 | " 1593-07-08 [" fact1 | " 8 July 1593 [" fact2 | '
            '" July 8, 1593 [" fact3'
        ),
        'fact0 ::= "Q1, place of birth: Rome]" | "Q2, place of death: Rome]"',
        *(f'fact{number} ::= "Q1, date of birth: 1593-07-08]"' for number in (1, 2, 3)),
    ]


def test_the_schema_allows_only_retrieved_triples() -> None:
    sentence = CONSTRAINT.json_schema()["properties"]["sentences"]["items"]
    assert sentence["properties"]["citations"]["items"]["enum"] == [
        "Q1, place of birth: Rome",
        'Q1, title: The "Bell" \\ Jar]',
        "Q2, child: Ann",
    ]
    assert sentence["required"] == ["text", "na", "citations"]
    many = [ROME.model_copy(update={"value": str(number)}) for number in range(2_000)]
    schema = constraint_for(many).json_schema()
    allowed = schema["properties"]["sentences"]["items"]["properties"]["citations"]
    assert len(allowed["items"]["enum"]) == MAX_ENUM_VALUES


def test_a_structured_reply_becomes_text_with_markers() -> None:
    reply = {
        "sentences": [
            {
                "text": "Ann [sic] was born in Rome.",
                "na": False,
                "citations": ["Q1, place of birth: Rome"],
            },
            {"text": "She sang.", "na": True, "citations": ["Q9, made: up"]},
        ]
    }
    marked = CONSTRAINT.from_json(json.dumps(reply))
    assert marked == "Ann (sic) was born in Rome [Q1, place of birth: Rome]. She sang [NA]."
    for bad in ("", "[]", '{"sentences": [1]}', '{"sentences": [{"text": "x"}]}'):
        with pytest.raises(ModelError, match="JSON schema"):
            CONSTRAINT.from_json(bad)


def test_citations_of_other_triples_are_taken_out() -> None:
    enforced = CONSTRAINT.enforce(
        "Ann [Q1, place of birth: Rome, place of birth: Rome, title: Queen] "
        "met Bob [Q2, child: Eve]."
    )
    assert enforced.marked == "Ann [Q1, place of birth: Rome] met Bob [NA]."
    assert enforced.dropped == (
        Citation(entity="Q1", property="title", value="Queen"),
        Citation(entity="Q2", property="child", value="Eve"),
    )
    assert parse(enforced.marked).clean == "Ann met Bob."
    untouched = "Ann  [Q1, place of birth: Rome] sang[NA]."
    assert CONSTRAINT.enforce(untouched).marked == untouched
