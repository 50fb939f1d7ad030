"""Wrong fields are told with the nearest right one, wherever they stand."""

import pytest
from pydantic import ValidationError

from chains.gateway.bodies import CheckBody
from guardrail.core.fields import field_problems


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ({"answer": "x", "evidences": []}, "'evidences'; did you mean 'evidence'?"),
        ({"answer": "x", "passages": [{"text": "y", "titel": "z"}]}, "did you mean 'title'?"),
        ({"answer": "x", "evidence": [{"text": "y", "titel": "z"}]}, "did you mean 'title'?"),
        ({"answer": "x", "zzz": 1}, "'zzz'; known: id, question, triples"),
        ({}, "answer: Field required"),
    ],
)
def test_a_wrong_field_is_told_with_the_nearest(body, told):
    with pytest.raises(ValidationError) as raised:
        CheckBody.model_validate(body)
    assert told in field_problems(CheckBody, raised.value)
