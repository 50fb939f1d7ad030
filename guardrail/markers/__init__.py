"""The grammar of markers, and how they are rendered."""
