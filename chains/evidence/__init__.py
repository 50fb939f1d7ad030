"""Evidence in requests: from the caller, content parts, tool results or marked text.

``base`` has the types of all hosts and the ``guardrail`` field of a request, ``tools`` reads tool
results, ``openai`` and ``langchain`` find evidence in a request of their host.
"""
