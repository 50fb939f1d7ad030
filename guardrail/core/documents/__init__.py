"""Documents as text: PDF, HTML, DOCX and Markdown, with their headings, tables and pages."""

from guardrail.core.documents.markdown import Section
from guardrail.core.documents.reading import ENDINGS, MAX_BYTES, read_document, read_file

__all__ = ["ENDINGS", "MAX_BYTES", "Section", "read_document", "read_file"]
