"""The ground floor: types, errors, text and limits that graphs, judges and the engine share.

Nothing here imports the rest of the guardrail, a graph or a judge.
"""
