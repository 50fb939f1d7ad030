"""The commands of the ``guardrail`` program, one module per subject."""
