"""Thresholds learned from answers that people judged: in the score log, or in a file."""
