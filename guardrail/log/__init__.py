"""The score log: records, files, export, tracing."""
