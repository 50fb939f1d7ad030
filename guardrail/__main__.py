"""``python -m guardrail``: the program without its script on the path."""

from guardrail.cli import main

main()
