"""A validator of Guardrails AI: text is judged against the sources in the call's metadata.

Run: python examples/guardrails_ai_validator.py
Needs, from a clone: pip install . guardrails-ai
"""

import sys
from typing import Any

from guardrail import STRICT, Action, Guardrail
from guardrail.sources.items import evidence_items

try:
    from guardrails import Guard
    from guardrails.validators import FailResult, PassResult, Validator, register_validator
except ImportError as missing:
    sys.exit(f"{missing}; run in the clone: pip install . guardrails-ai")


@register_validator(name="kg-guardrail/grounded", data_type="string")
class Grounded(Validator):
    """Fails where a claim lacks support; ``on_fail="fix"`` keeps what the sources carry."""

    def __init__(self, guard: Guardrail, **options: Any) -> None:
        super().__init__(**options)
        self.guard, self.policy = guard, STRICT.changed(unsupported="filter")

    def _validate(self, value: str, metadata: dict[str, Any]) -> PassResult | FailResult:
        sources, asked = evidence_items(metadata["sources"]), metadata.get("question", "")
        answer = self.guard.check(asked, value, evidence=sources, policy=self.policy)
        if answer.action is Action.PASS:
            return PassResult()
        return FailResult(error_message="; ".join(answer.reasons), fix_value=answer.text)


if __name__ == "__main__":
    metadata = {"sources": ["The Kestrel Hotel has 42 rooms."], "question": "How many rooms?"}
    guarded = Guard().use(Grounded(Guardrail(), on_fail="fix"))
    print(guarded.validate("The Kestrel Hotel has 97 rooms.", metadata=metadata).validated_output)
