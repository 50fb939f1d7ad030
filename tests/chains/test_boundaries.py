"""The ways in stand on the public names of the engine, as any user's code does."""

import ast
from importlib import import_module
from pathlib import Path

import pytest

import chains
import guardrail

PUBLIC_MODULES = {
    f"guardrail.{name}"
    for name in (
        "candidates",
        "core.errors",
        "core.fields",
        "core.incoming",
        "core.http_clients",
        "core.lazy",
        "core.rows",
        "core.secrets",
        "core.text.lexicon",
        "core.text.sentences",
        "core.text.values",
        "core.text.words",
        "core.types",
        "core.workers",
        "evaluation",
        "evidence.retrieval",
        "log.records",
        "markers.grammar",
        "markers.rendering",
        "models.prompts",
        "policy",
        "report",
        "sources.items",
        "sources.tables",
    )
}
FILES = sorted(Path(chains.__file__).parent.rglob("*.py"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_only_public_names_are_imported(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("guardrail"):
            names = {alias.name for alias in node.names}
            if node.module == "guardrail":
                assert names <= set(guardrail.__all__)
            else:
                assert node.module in PUBLIC_MODULES
                assert names <= {name for name in dir(import_module(node.module)) if name[0] != "_"}
