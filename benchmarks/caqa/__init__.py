"""CAQA: complex attribution in question answering, built from any graph and run on any judge."""
