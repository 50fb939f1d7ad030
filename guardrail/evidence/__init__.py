"""Evidence: what is retrieved, and which of it a sentence needs."""
