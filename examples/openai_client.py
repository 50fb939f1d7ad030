"""A guarded OpenAI client: same class, same methods, judged text.

python examples/openai_client.py "Who was Mary Shelley, the wife of Percy Bysshe Shelley?"

OPENAI_BASE_URL and OPENAI_API_KEY name the endpoint, OPENAI_MODEL the model.
"""

import os
import sys

from openai import OpenAI

from chains import guard_openai
from guardrail import Guardrail

QUESTION = "Who was Mary Shelley, the wife of Percy Bysshe Shelley?"


def main(question: str) -> None:
    """Ask twice: for a whole answer, and for a stream."""
    model = os.environ.get("OPENAI_MODEL", "gpt-4o-mini")
    client = guard_openai(OpenAI(), Guardrail())

    completion = client.chat.completions.create(
        model=model, messages=[{"role": "user", "content": question}]
    )
    message = completion.choices[0].message
    print(message.content)
    for annotation in message.annotations or []:
        print(f"  {annotation.url_citation.title}  {annotation.url_citation.url}")
    if message.model_extra and "guardrail" in message.model_extra:
        print("decision:", message.model_extra["guardrail"]["action"])

    print("\nstreamed, each sentence once it is judged:")
    stream = client.chat.completions.create(
        model=model, messages=[{"role": "user", "content": question}], stream=True
    )
    for chunk in stream:
        if chunk.choices and chunk.choices[0].delta.content:
            print(chunk.choices[0].delta.content, end="", flush=True)
    print()


if __name__ == "__main__":
    if not os.environ.get("OPENAI_API_KEY"):
        sys.exit("set OPENAI_API_KEY, and OPENAI_BASE_URL where the endpoint is not OpenAI's")
    main(" ".join(sys.argv[1:]) or QUESTION)
