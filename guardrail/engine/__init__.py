"""The flow of a request through the parts: batches, workers, deadlines, sessions."""
