"""Correction: a contradicted sentence mended by the least edit that the evidence tells.

An edit is a proposal. ``judged_again`` has it judged in its place, and keeps it only where its
sentence is then supported.
"""
