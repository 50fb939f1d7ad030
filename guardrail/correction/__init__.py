"""Correction: a contradicted sentence mended by the least edit that the evidence tells.

Nothing here decides: an edit is a proposal. ``guardrail.engine.correcting`` has it judged again in
its place, and releases it only where it is then supported.
"""
