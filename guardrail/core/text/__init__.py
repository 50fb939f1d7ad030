"""Texts: sentences, tagging, names and values."""
