"""An output rail of NeMo Guardrails: the reply is judged against the retrieved chunks.

Run: OPENAI_API_KEY=… python examples/nemo_action.py
Needs, from a clone: pip install . nemoguardrails
"""

import os
import sys
from typing import Any

from guardrail import STRICT, Guardrail, Passage

COLANG = "define subflow check grounding\n  $bot_message = execute check_grounding\n"
YAML = """
models: [{type: main, engine: openai, model: gpt-4o-mini}]
rails: {output: {flows: [check grounding]}}
"""


def add_action(rails: Any, guard: Guardrail) -> None:
    """Give the rails the action that their flow calls; it returns the text to show."""

    async def check_grounding(context: dict[str, Any]) -> str:
        chunks = context.get("relevant_chunks_sep") or [context.get("relevant_chunks") or ""]
        evidence = [Passage(chunk) for chunk in chunks if chunk.strip()]
        asked, said = context["last_user_message"], context["bot_message"]
        return (await guard.acheck(asked, said, evidence=evidence, policy=STRICT)).text

    rails.register_action(check_grounding, "check_grounding")


if __name__ == "__main__":
    if not os.environ.get("OPENAI_API_KEY"):
        sys.exit("set OPENAI_API_KEY")
    from nemoguardrails import LLMRails, RailsConfig

    rails = LLMRails(RailsConfig.from_content(COLANG, YAML))
    add_action(rails, Guardrail())
    print(rails.generate("How many rooms does the Kestrel Hotel have?"))
