"""Benchmarks that are built from any graph and print the papers' tables."""
